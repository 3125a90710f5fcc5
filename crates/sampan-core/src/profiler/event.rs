//! What the profiler notes of one piece of work.

use crate::shape::Shape;
use crate::{DType, Tensor, Value};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// What kind of work it was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A call of an op.
    Op,
    /// The gradient formula of an op, run by a walk backwards.
    Gradient,
    /// A layer's `forward` with all around it.
    Layer,
    /// A walk backwards.
    Backward,
    /// A step of an optimizer.
    Optimizer,
    /// Waiting for a batch.
    Loader,
    /// One step of a training loop.
    Step,
    /// A range of the user's.
    Range,
}

/// A name that is cheap to copy.
#[derive(Clone, Debug)]
pub enum Name {
    /// One of the program's own.
    Static(&'static str),
    /// One made at run time.
    Shared(Arc<str>),
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }
}
impl From<&'static str> for Name {
    fn from(name: &'static str) -> Name {
        Name::Static(name)
    }
}
impl From<String> for Name {
    fn from(name: String) -> Name {
        Name::Shared(name.into())
    }
}
impl From<Arc<str>> for Name {
    fn from(name: Arc<str>) -> Name {
        Name::Shared(name)
    }
}

/// One tensor among the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// The parameter it was given for.
    pub name: Cow<'static, str>,
    /// Its shape.
    pub shape: Shape,
    /// Its element type.
    pub dtype: DType,
}

impl Input {
    /// The tensors among arguments, with the names of their parameters.
    pub(super) fn of(names: impl Iterator<Item = &'static str>, args: &[Value]) -> Box<[Input]> {
        let mut inputs = Vec::new();
        for (name, value) in names.zip(args) {
            value.for_each_tensor(&mut |t: &Tensor| {
                let shape = Shape::from_slice(t.shape());
                inputs.push(Input { name: Cow::Borrowed(name), shape, dtype: t.dtype() });
            });
        }
        inputs.into()
    }
}

/// What a piece of work did to the memory of tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of tensors made by this thread meanwhile.
    pub allocated: u64,
    /// Bytes given back meanwhile, by any thread.
    pub freed: u64,
    /// Bytes that all live tensors held at the end.
    pub live: u64,
}

/// One piece of work. Times are nanoseconds since the recording began.
#[derive(Clone, Debug)]
pub struct Event {
    /// What kind of work it was.
    pub kind: Kind,
    /// The op, the type of the layer, the optimizer or the user's word. A gradient has the name of its forward op; see
    /// [`label`](Event::label).
    pub name: Name,
    /// When it began.
    pub start: u64,
    /// How long it took, with everything inside.
    pub duration: u64,
    /// The thread, by its place in [`Recording::threads`](super::Recording::threads).
    pub thread: u32,
    /// How many calls and layers it lay in.
    pub depth: u32,
    /// The same number for all gradients of what was one call of the user's: a composite is several nodes.
    pub call: u64,
    /// The path of the layer it belongs to, such as `ResNet.layer1.0.conv1`; for a gradient the layer of its forward call.
    pub layer: Option<Arc<str>>,
    /// The tensors it was given, where shapes were asked for.
    pub inputs: Option<Box<[Input]>>,
    /// What it did to memory, where that was asked for.
    pub memory: Option<Memory>,
    /// Multiply-adds of its own kernel, where they are known; without those of calls inside.
    pub multiply_adds: u64,
}

impl Event {
    /// The name to show: `conv2d`, and `conv2d_grad` for its gradient.
    pub fn label(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Gradient => Cow::Owned(format!("{}_grad", &*self.name)),
            _ => Cow::Borrowed(&self.name),
        }
    }

    /// When it ended.
    pub fn end(&self) -> u64 {
        self.start + self.duration
    }
}
