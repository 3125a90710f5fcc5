//! The graph: what an eager program did, as data.

use sampan_core::op::OpDef;
use sampan_core::{DType, Tensor, Value};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The number of a value in a graph; every value is given once.
pub type Id = usize;

/// The calls of a program, from its inputs and weights to its outputs.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// What it is called with.
    pub inputs: Vec<Input>,
    /// The tensors that are there before: parameters, buffers and constants.
    pub weights: Vec<Weight>,
    /// What is computed, in order.
    pub calls: Vec<Call>,
    /// What it gives.
    pub outputs: Vec<Id>,
    /// Inputs and weights that end with other values: the target, and the value it holds at the end.
    pub writes: Vec<(Id, Id)>,
    /// What is known of each value.
    pub values: Vec<Known>,
    /// Are inputs compared with the extents that are known of them? A trace may have made numbers of these.
    pub strict: bool,
    pub(crate) last_uses: OnceLock<Vec<usize>>,
}

/// One thing that a graph is called with.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name that callers and files know it by.
    pub name: String,
    /// Its value.
    pub value: Id,
}

/// A tensor that is there before the graph runs.
#[derive(Clone, Debug)]
pub struct Weight {
    /// The name that files know it by.
    pub name: String,
    /// Its value.
    pub value: Id,
    /// What it holds.
    pub tensor: Tensor,
    /// Is it a tensor of the program, which somebody else may write or train? If not, it is a number among the calls.
    pub shared: bool,
}

/// What is known of a value before there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The extents.
    pub dims: Vec<Dim>,
    /// The type of its elements.
    pub dtype: DType,
    /// Is it left out of gradients?
    pub stop_gradient: bool,
}

/// What is known of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// It is this number.
    Fixed(usize),
    /// It follows the inputs; two of the same number are always equal.
    Free(usize),
}

impl Dim {
    /// The number, if it is known.
    pub fn fixed(self) -> Option<usize> {
        match self {
            Dim::Fixed(n) => Some(n),
            Dim::Free(_) => None,
        }
    }
}

/// One call of an op.
#[derive(Clone)]
pub struct Call {
    /// The op.
    pub op: &'static OpDef,
    /// The arguments in the order of its signature.
    pub args: Vec<Arg>,
    /// The values it gives.
    pub outputs: Vec<Id>,
    /// Was it made with gradients switched off?
    pub no_grad: bool,
    /// The line of the program that made it, where that is known.
    pub source: Option<String>,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A plain value, without tensors.
    Plain(Value),
    /// A value of the graph.
    Tensor(Id),
    /// Several of them.
    Tensors(Vec<Id>),
    /// A number that follows the extents.
    Size(Size),
    /// Numbers, some of which follow the extents.
    Sizes(Vec<Size>),
    /// Anything nested.
    List(Vec<Arg>),
    /// What a branch or the step of a loop computes: a graph that sees nothing but its inputs.
    Block(Arc<Graph>),
}

/// A whole number that follows extents: `(times · extent · … + plus) / over`, rounded down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The extents that are multiplied, each an axis of a value.
    pub extents: Vec<(Id, usize)>,
    /// The factor.
    pub times: i64,
    /// What is added.
    pub plus: i64,
    /// What it is divided by.
    pub over: i64,
}

impl Size {
    /// A number that stays the same.
    pub fn fixed(value: i64) -> Size {
        Size { extents: Vec::new(), times: 0, plus: value, over: 1 }
    }

    /// The extent of an axis.
    pub fn extent(value: Id, axis: usize) -> Size {
        Size { extents: vec![(value, axis)], times: 1, plus: 0, over: 1 }
    }

    /// The number, if it stays the same.
    pub fn as_fixed(&self) -> Option<i64> {
        self.extents.is_empty().then_some(self.plus)
    }

    /// The axis of the value, if it is nothing but an extent.
    pub fn as_extent(&self) -> Option<(Id, usize)> {
        let alone = self.extents.len() == 1 && (self.times, self.plus, self.over) == (1, 0, 1);
        alone.then(|| self.extents[0])
    }

    /// The number for given extents; `None` where it leaves 64 bits.
    pub fn eval(&self, extent: impl Fn(Id, usize) -> Option<i64>) -> Option<i64> {
        if self.extents.is_empty() {
            return Some(self.plus);
        }
        let product = self.extents.iter().try_fold(self.times, |n, &(v, a)| n.checked_mul(extent(v, a)?))?;
        product.checked_add(self.plus)?.checked_div_euclid(self.over)
    }
}

impl Arg {
    /// Calls `f` for each value of the graph that the argument reads, the extents of sizes included.
    pub fn for_each_id(&self, f: &mut impl FnMut(Id)) {
        match self {
            Arg::Plain(_) | Arg::Block(_) => {}
            Arg::Tensor(id) => f(*id),
            Arg::Tensors(ids) => ids.iter().copied().for_each(f),
            Arg::Size(s) => s.extents.iter().for_each(|&(id, _)| f(id)),
            Arg::Sizes(all) => all.iter().flat_map(|s| &s.extents).for_each(|&(id, _)| f(id)),
            Arg::List(parts) => parts.iter().for_each(|p| p.for_each_id(f)),
        }
    }

    /// Is it left out?
    pub fn is_none(&self) -> bool {
        matches!(self, Arg::Plain(Value::None))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} = {}{:?}", self.outputs, self.op.name, self.args)
    }
}

impl Call {
    /// The argument of a parameter's name.
    pub fn arg(&self, name: &str) -> Option<&Arg> {
        self.args.get(self.op.position(name)?)
    }
}

impl Graph {
    /// A new value.
    pub fn add_value(&mut self, known: Known) -> Id {
        self.values.push(known);
        self.values.len() - 1
    }

    /// The weight of a value.
    pub fn weight_of(&self, id: Id) -> Option<&Weight> {
        self.weights.iter().find(|w| w.value == id)
    }

    /// What the outputs are called where they have to have names; files of Paddle have none for them.
    pub fn output_names(&self) -> Vec<String> {
        (0..self.outputs.len()).map(|i| format!("output_{i}")).collect()
    }

    /// Names the weights that are tensors of a list, such as a layer's parameters.
    pub fn name_weights<'a>(&mut self, named: impl IntoIterator<Item = (String, &'a Tensor)>) {
        for (name, tensor) in named {
            let found = self.weights.iter_mut().find(|w| w.tensor.id() == tensor.id());
            if let Some(w) = found {
                w.name = name;
            }
        }
    }

    /// Forgets calls whose results nobody reads. One that draws random numbers or writes is kept.
    pub fn prune(&mut self) {
        let mut needed = vec![false; self.values.len()];
        self.outputs.iter().chain(self.writes.iter().map(|(_, v)| v)).for_each(|&id| needed[id] = true);
        let mut kept = Vec::new();
        for call in std::mem::take(&mut self.calls).into_iter().rev() {
            if call.op.random || writes_inside(&call) || call.outputs.iter().any(|&id| needed[id]) {
                call.args.iter().for_each(|a| a.for_each_id(&mut |id| needed[id] = true));
                kept.push(call);
            }
        }
        kept.reverse();
        self.calls = kept;
        self.weights.retain(|w| w.shared || needed[w.value]);
        self.last_uses = OnceLock::new();
    }
}

/// Does the call change the memory of an argument? Normalisation by a batch updates its running statistics.
fn writes_inside(call: &Call) -> bool {
    let training = matches!(call.arg("training"), Some(Arg::Plain(Value::Bool(true))));
    call.op.name.starts_with("batch_norm") && training
}
