//! The weights of a network: keys, shapes, and what their layers are.

use sampan_core::Tensor;
use sampan_nn::{Buffer, LayerRef, Members, Parameter, Path, Visitor};
use std::collections::HashMap;

/// Whose way of naming and laying out weights it is. `Linear` is where they part: PyTorch keeps `[out, in]`, Paddle
/// `[in, out]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convention {
    /// PyTorch's.
    Torch,
    /// Paddle's, which is sampan's.
    Paddle,
}

impl Convention {
    /// By name: `torch` or `paddle`.
    pub fn from_name(name: &str) -> Option<Convention> {
        match name {
            "torch" | "pytorch" => Some(Convention::Torch),
            "paddle" | "sampan" => Some(Convention::Paddle),
            _ => None,
        }
    }

    /// What the keys tell, if they tell it.
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Option<Convention> {
        keys.into_iter().find_map(|key| match key.rsplit('.').next()? {
            "running_mean" | "running_var" | "num_batches_tracked" | "in_proj_weight" | "in_proj_bias" => {
                Some(Convention::Torch)
            }
            "_mean" | "_variance" => Some(Convention::Paddle),
            _ => None,
        })
    }
}

impl std::fmt::Display for Convention {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Convention::Torch => "PyTorch",
            Convention::Paddle => "Paddle",
        })
    }
}

/// What a layer's class says about the way its weights lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A product with a matrix, which the frameworks keep turned.
    Linear,
    /// A table of rows.
    Embedding,
    /// A normalisation, whose weights may be kept flat.
    Norm,
    /// A known class whose weights lie the same everywhere.
    Same,
    /// A class that is not known, or no class at all.
    Unknown,
}

impl Kind {
    /// By the name of the class, in either framework.
    pub fn of_class(class: &str) -> Kind {
        match class {
            "Linear"
            | "NonDynamicallyQuantizableLinear"
            | "LazyLinear"
            | "ColumnParallelLinear"
            | "RowParallelLinear" => Kind::Linear,
            "Embedding" | "EmbeddingBag" => Kind::Embedding,
            "PReLU" | "Bilinear" | "LSTM" | "GRU" | "RNN" | "SimpleRNN" | "LSTMCell" | "GRUCell" | "RNNCell"
            | "SimpleRNNCell" => Kind::Same,
            _ if class.ends_with("Norm")
                || class.contains("Norm1")
                || class.contains("Norm2")
                || class.contains("Norm3") =>
            {
                Kind::Norm
            }
            _ if class.starts_with("Conv") && class.ends_with(['d', 'D', 'e']) => Kind::Same,
            _ => Kind::Unknown,
        }
    }
}

/// One tensor of a network.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Its name in the state: `layer1.0.conv1.weight`.
    pub key: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What its layer is.
    pub kind: Kind,
    /// How it lies, where that differs from the rest of the network.
    pub convention: Option<Convention>,
    /// The tensor's own name, which orders files without keys: `conv2d_0.w_0`.
    pub own_name: String,
    /// Its place in a tensor of an ONNX graph that holds several, where it is one of those.
    pub packed: Option<Packed>,
    /// Its values, where they are known.
    pub tensor: Option<Tensor>,
}

/// Where a recurrent weight lies in `W`, `R` or `B` of an ONNX node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// The direction, and of how many.
    pub direction: (usize, usize),
    /// `B` holds the biases of the input and, after them, those of the state.
    pub half: Option<usize>,
    /// The gates in the order of the graph, by their places in that of PyTorch and Paddle.
    pub gates: &'static [usize],
}

impl Weight {
    /// A weight without values.
    pub fn new(key: impl Into<String>, shape: impl Into<Vec<usize>>, kind: Kind) -> Weight {
        let (key, shape) = (key.into(), shape.into());
        Weight { key, shape, kind, convention: None, own_name: String::new(), packed: None, tensor: None }
    }

    /// A weight with values.
    pub fn of(key: impl Into<String>, tensor: Tensor, kind: Kind) -> Weight {
        Weight { tensor: Some(tensor.clone()), ..Weight::new(key, tensor.shape(), kind) }
    }
}

/// The weights of a network, in order.
#[derive(Clone, Debug)]
pub struct Structure {
    /// What it is called in messages: a path, or the name of a model.
    pub name: String,
    /// How its weights lie; `None` if nothing tells.
    pub convention: Option<Convention>,
    /// Is the order that of the layers? Some formats sort their keys.
    pub ordered: bool,
    /// The weights.
    pub weights: Vec<Weight>,
}

impl Structure {
    /// The weights of a layer, in the order of its fields.
    pub fn of_layer(name: impl Into<String>, layer: &dyn Members) -> Structure {
        struct Collect {
            classes: HashMap<String, &'static str>,
            weights: Vec<Weight>,
        }
        impl Collect {
            fn add(&mut self, path: &Path, tensor: Tensor) {
                let parent = path.as_str().rsplit_once('.').map_or("", |(parent, _)| parent);
                let kind = self.classes.get(parent).map_or(Kind::Unknown, |class| Kind::of_class(class));
                let own_name = tensor.name().to_string();
                self.weights.push(Weight { own_name, ..Weight::of(path.as_str(), tensor, kind) });
            }
        }
        impl Visitor for Collect {
            fn layer(&mut self, path: &Path, layer: LayerRef) {
                self.classes.insert(path.as_str().into(), layer.type_name);
            }
            fn parameter(&mut self, path: &Path, p: &Parameter) {
                self.add(path, p.tensor());
            }
            fn buffer(&mut self, path: &Path, b: &Buffer) {
                if b.persistable {
                    self.add(path, b.tensor());
                }
            }
        }
        let mut found = Collect { classes: HashMap::new(), weights: Vec::new() };
        layer.visit(&Path::default(), &mut found);
        let (convention, ordered) = (Some(Convention::Paddle), true);
        Structure { name: name.into(), convention, ordered, weights: found.weights }
    }

    pub(super) fn convention_of(&self, weight: &Weight) -> Option<Convention> {
        weight.convention.or(self.convention)
    }
}
