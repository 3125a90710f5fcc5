//! What a side looks like: its layers, and the calls of one run in the order of execution.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Settings of a layer or arguments of a function by name, as the side itself calls them.
pub type Config = Map<String, Value>;

/// The version of `structure.json` that this crate writes.
pub const FORMAT: u32 = 1;

/// One side: a network as a tree of layers, and what it called when it ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Structure {
    /// Version of the file.
    pub format: u32,
    /// `torch`, `paddle`, `sampan`, `onnxruntime`, or anything else.
    pub side: String,
    /// Version of the library.
    #[serde(default)]
    pub version: String,
    /// Layers in the order of definition; the root has an empty name.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// Calls of layers and functions in the order in which they began.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The optimizer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Optimizer>,
    /// What the model gave, part by part, tensors or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<Output>,
    /// The order of the training, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The step of the training whose tensors these are.
    #[serde(default)]
    pub step: usize,
    /// What went wrong while the side ran, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A layer of the tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Layer {
    /// Its way from the root: `features.0.conv`.
    pub name: String,
    /// Its class as the side calls it: `Conv2d`, `Conv2D`. Empty if it is known from a file of weights only.
    #[serde(default)]
    pub class: String,
    /// Settings as the side calls them.
    #[serde(default)]
    pub config: Config,
    /// Was it in training mode?
    #[serde(default)]
    pub training: bool,
    /// Its own parameters and buffers, not those of the layers in it.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
}

/// A parameter or buffer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameter {
    /// Its way from the root: `features.0.conv.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its dtype as a word: `float32`.
    #[serde(default)]
    pub dtype: String,
    /// A buffer, which no optimizer changes?
    #[serde(default)]
    pub buffer: bool,
    /// Does it take part in training?
    #[serde(default = "yes")]
    pub trainable: bool,
    /// The name of the parameter that it is the same as, where weights are shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<String>,
}

fn yes() -> bool {
    true
}

fn is_false(value: &bool) -> bool {
    !value
}

/// One call of a layer or of a function between layers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Call {
    /// Its name in the files: `conv1`, `conv1@2` for the second call, `layer1.0/add` for a function called in `layer1.0`.
    pub key: String,
    /// The layer that is called, or the one that calls the function.
    pub layer: String,
    /// Class of the layer, or name of the function.
    pub op: String,
    /// Is it the call of a function?
    #[serde(default)]
    pub function: bool,
    /// Are calls within it recorded on their own?
    #[serde(default)]
    pub container: bool,
    /// Settings of the layer or arguments of the function that are no tensors.
    #[serde(default)]
    pub config: Config,
    /// Keys of its inputs in `forward.npy`; empty for one that was not recorded.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Keys of its outputs in `forward.npy`.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Shapes of the outputs.
    #[serde(default)]
    pub shapes: Vec<Vec<usize>>,
    /// Mean, deviation, least and greatest value of the first output: two calls that gave the same values are a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<[f64; 4]>,
    /// Line of the user's program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Is it made of constants of the program alone, as a mask is? Where its values arrive is where they are judged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub constant: bool,
    /// Was it tried, with everything before it right, that what differs here makes no difference a few calls later?
    #[serde(default, skip_serializing_if = "is_false")]
    pub heals: bool,
    /// Which of `inputs` are parameters, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
}

/// A part of what a model gave.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// Where it is: `['logits'][0]`; empty if it is all.
    pub place: String,
    /// Its class as the side calls it.
    pub class: String,
    /// Its key in `forward.npy`, if it is a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its value, if it is a number, a truth value, a text, or nothing at all.
    #[serde(default)]
    pub value: Value,
    /// Is it any of these, so that it can be compared?
    #[serde(default)]
    pub known: bool,
}

/// What happened between one step of the optimizer and the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Step {
    /// For each way back, whether gradients were there already.
    #[serde(default)]
    pub backwards: Vec<bool>,
    /// Did the optimizer step at the end? After the last one it need not.
    #[serde(default)]
    pub stepped: bool,
    /// Norm of the gradient that the step is made from, where it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Norm of the update, where it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<f64>,
    /// Parameters that somebody wrote to since the step before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
}

/// An optimizer as the side calls it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Optimizer {
    /// Its class.
    pub class: String,
    /// Settings of all parameters.
    #[serde(default)]
    pub config: Config,
    /// Groups of parameters with settings of their own.
    #[serde(default)]
    pub groups: Vec<Group>,
}

/// A group of parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// What differs from the optimizer's settings.
    #[serde(default)]
    pub config: Config,
    /// Names of the parameters.
    #[serde(default)]
    pub parameters: Vec<String>,
}

impl Structure {
    /// The layer of a name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|l| l.name == name)
    }

    /// All parameters and buffers in order.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.layers.iter().flat_map(|l| &l.parameters)
    }

    /// The layers that the names of parameters tell of, where only a file of weights is known.
    ///
    /// ```
    /// use sampan_align::Structure;
    /// let weights = [("fc.weight".to_string(), vec![10, 84]), ("fc.bias".to_string(), vec![10])];
    /// let side = Structure::from_weights("torch", &weights);
    /// assert_eq!((side.layers[0].name.as_str(), side.layers[0].parameters.len()), ("fc", 2));
    /// ```
    pub fn from_weights(side: &str, weights: &[(String, Vec<usize>)]) -> Structure {
        let mut layers: Vec<Layer> = Vec::new();
        for (name, shape) in weights {
            let owner = name.rsplit_once('.').map_or("", |(owner, _)| owner);
            let at = layers.iter().position(|l| l.name == owner).unwrap_or_else(|| {
                layers.push(Layer { name: owner.to_string(), ..Layer::default() });
                layers.len() - 1
            });
            let last = name.rsplit('.').next().unwrap_or(name);
            let buffer = matches!(last, "running_mean" | "running_var" | "num_batches_tracked" | "_mean" | "_variance");
            let parameter = Parameter { name: name.clone(), shape: shape.clone(), buffer, ..Parameter::default() };
            layers[at].parameters.push(Parameter { trainable: !buffer, ..parameter });
        }
        Structure { format: FORMAT, side: side.to_string(), layers, ..Structure::default() }
    }
}
