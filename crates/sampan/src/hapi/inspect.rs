//! One run of a network on tensors without values, with what each layer saw: the ground of `summary` and `flops`.

use sampan_core::dispatch::{self, Listener};
use sampan_core::op::OpDef;
use sampan_core::{DType, Result, Tensor, Value, no_grad};
use sampan_nn::{Base, Layer, LayerId, LayerRef, Observer, Parameter, Path, Visitor, observe};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Shape and dtype of an input that need not exist; `-1` in the batch axis stands for one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Extents of each axis.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: DType,
}

impl InputSpec {
    /// A float32 input of this shape.
    pub fn new(shape: impl AsRef<[usize]>) -> InputSpec {
        InputSpec { shape: shape.as_ref().to_vec(), dtype: DType::Float32 }
    }

    /// The same shape with another dtype, such as int64 for words.
    pub fn dtype(mut self, dtype: DType) -> InputSpec {
        self.dtype = dtype;
        self
    }
}

impl<const N: usize> From<[usize; N]> for InputSpec {
    fn from(shape: [usize; N]) -> InputSpec {
        InputSpec::new(shape)
    }
}

/// One call of a layer.
#[derive(Clone, Debug)]
pub struct LayerCall {
    /// Where it is in the network: `features.0`; empty for the network itself.
    pub path: String,
    /// The name of its type.
    pub type_name: &'static str,
    /// Does it hold other layers?
    pub is_container: bool,
    /// Shapes it was given.
    pub inputs: Vec<Vec<usize>>,
    /// Shapes it gave.
    pub outputs: Vec<Vec<usize>>,
    /// Elements of its own parameters, without those of layers inside.
    pub params: usize,
    /// Multiply-adds of its own ops, counted as Paddle's `flops` counts them.
    pub flops: u64,
}

/// Own parameters and place of each layer, found before the run.
#[derive(Default)]
struct Places {
    known: HashMap<LayerId, (String, usize)>,
    by_path: HashMap<String, LayerId>,
    containers: Vec<String>,
}

impl Visitor for Places {
    fn layer(&mut self, path: &Path, layer: LayerRef) {
        self.known.insert(layer.id(), (path.as_str().into(), 0));
        self.by_path.insert(path.as_str().into(), layer.id());
        if !path.as_str().is_empty() {
            // Whoever holds it is the longest known prefix, since layers come outermost first.
            let mut parent = path.as_str();
            while let Some(dot) = parent.rfind('.') {
                parent = &parent[..dot];
                if self.by_path.contains_key(parent) {
                    break;
                }
            }
            let parent = if self.by_path.contains_key(parent) && parent != path.as_str() { parent } else { "" };
            self.containers.push(parent.to_string());
        }
    }

    fn parameter(&mut self, path: &Path, p: &Parameter) {
        let mut parent = path.as_str();
        loop {
            parent = parent.rfind('.').map_or("", |dot| &parent[..dot]);
            if let Some((_, count)) = self.by_path.get(parent).and_then(|id| self.known.get_mut(id)) {
                *count += p.numel();
                return;
            }
            if parent.is_empty() {
                return;
            }
        }
    }
}

/// Listens to layers and ops at once, so that work is booked on the layer that does it.
struct Watch {
    places: Places,
    running: RefCell<Vec<u64>>,
    calls: RefCell<Vec<LayerCall>>,
    /// How many of the running calls are booked as a whole, by Paddle's formula and not by what they call.
    booked: RefCell<usize>,
}

impl Observer for Watch {
    fn enter(&self, _: LayerId, _: &'static str) {
        self.running.borrow_mut().push(0);
    }

    fn exit(&self, id: LayerId, type_name: &'static str, inputs: &[Tensor], outputs: &[Tensor]) {
        let flops = self.running.borrow_mut().pop().unwrap_or_default();
        let (path, params) = self.places.known.get(&id).cloned().unwrap_or_default();
        let shapes = |ts: &[Tensor]| ts.iter().map(|t| t.shape().to_vec()).collect();
        self.calls.borrow_mut().push(LayerCall {
            is_container: self.places.containers.contains(&path),
            path,
            type_name,
            inputs: shapes(inputs),
            outputs: shapes(outputs),
            params,
            flops,
        });
    }
}

impl Listener for Watch {
    fn enter(&self, op: &'static OpDef, _: &[Value]) {
        *self.booked.borrow_mut() += op.flops.is_some() as usize;
    }

    fn exit(&self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) {
        *self.booked.borrow_mut() -= op.flops.is_some() as usize;
        if *self.booked.borrow() > 0 {
            return;
        }
        let work = op.flops.map_or_else(|| op.multiply_adds(args, outputs), |count| count(args, outputs));
        if let Some(sum) = self.running.borrow_mut().last_mut() {
            *sum += work;
        }
    }
}

struct Modes(Vec<bool>, usize);
impl Visitor for Modes {
    fn base(&mut self, _: &Path, base: &Base) {
        self.0.push(base.training());
    }
}
struct Restore(Modes);
impl Visitor for Restore {
    fn base(&mut self, _: &Path, base: &Base) {
        base.set_training((self.0).0[(self.0).1]);
        (self.0).1 += 1;
    }
}

/// Runs the network in evaluation mode on inputs without values; every call of a layer, in the order they ended.
pub fn run(net: &(impl Layer + ?Sized), inputs: &[InputSpec]) -> Result<Vec<LayerCall>> {
    let mut places = Places::default();
    net.visit(&Path::default(), &mut places);
    let mut modes = Modes(Vec::new(), 0);
    net.visit(&Path::default(), &mut modes);
    net.eval();
    let watch =
        Rc::new(Watch { places, running: RefCell::default(), calls: RefCell::default(), booked: RefCell::default() });
    let inputs: Vec<Tensor> = inputs.iter().map(|i| Tensor::meta(&i.shape, i.dtype)).collect();
    let result = dispatch::listen(watch.clone(), || observe(watch.clone(), || no_grad(|| net.call_all(&inputs))));
    net.visit(&Path::default(), &mut Restore(modes));
    result
        .map_err(|e| e.hint("summary and flops run the network once on inputs of the given shapes; are they right?"))?;
    Ok(watch.calls.take())
}
