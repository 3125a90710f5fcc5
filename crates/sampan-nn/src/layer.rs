//! What a layer is, and what happens around its `forward`.

use crate::members::LayerId;
use crate::{Base, LayerRef, Members, Path, Visitor, invoke, profiled};
use sampan_core::{Error, Object, Result, Tensor, Value, profiler};
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A part of a network: maps tensors to tensors and owns parameters, buffers and other layers.
///
/// Implement [`forward`](Layer::forward); use a layer through [`call`](Layer::call) or [`Apply::apply`], which run its
/// hooks and add to an error where in the network it arose.
pub trait Layer: Members + Any + Send + Sync {
    /// Computes the output of one input.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;

    /// Computes the outputs of several inputs; a layer with one of each need not implement it.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        match inputs {
            [x] => Ok(vec![self.forward(x)?]),
            _ => Err(one_input(inputs, short_name::<Self>())),
        }
    }

    /// `forward` with all that belongs around it.
    fn call(&self, x: &Tensor) -> Result<Tensor> {
        call(&Of(self), x)
    }

    /// `forward_all` with all that belongs around it.
    fn call_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        call_all(&Of(self), inputs)
    }

    /// `forward_all` with what belongs around it, but for hooks: what a front runs that has hooks of its own.
    fn call_unhooked(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let layer = &Of(self);
        watched(layer, inputs, &mut || layer.forward_all(inputs))
    }

    /// The names of the inputs, for those who name them.
    fn input_names(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    /// `call_unhooked` with arguments as another language gives them. A layer whose `forward` knows more than tensors
    /// implements it.
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        invoke(&Of(self), positional, named)
    }

    /// What the layer was told or decided, by Paddle's names.
    fn settings(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Settings worth a line in a summary: `3, 16, kernel_size=[3, 3]`.
    fn extra_repr(&self) -> String {
        String::new()
    }
}

fn one_input(inputs: &[Tensor], layer: &'static str) -> Error {
    Error::invalid(format!("takes one input, got {}", inputs.len())).in_op(layer)
}

/// A layer whose type is forgotten, also where it has no size of its own: what happens around a layer's work is compiled
/// once, not for each type.
pub(crate) trait Erased {
    fn id(&self) -> LayerId;
    fn name(&self) -> &'static str;
    fn base(&self) -> Option<&Base>;
    fn visit(&self, visitor: &mut dyn Visitor);
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
    fn call_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
    fn call_unhooked(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
    fn input_names(&self) -> Vec<&'static str>;
}

/// A layer to forget the type of.
pub(crate) struct Of<'a, L: ?Sized>(pub &'a L);

impl<L: Layer + ?Sized> Erased for Of<'_, L> {
    fn id(&self) -> LayerId {
        LayerId((self.0 as *const L).addr(), TypeId::of::<L>())
    }
    fn name(&self) -> &'static str {
        short_name::<L>()
    }
    fn base(&self) -> Option<&Base> {
        self.0.base()
    }
    fn visit(&self, visitor: &mut dyn Visitor) {
        self.0.visit(&Path::default(), visitor);
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward(x)
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.0.forward_all(inputs)
    }
    fn call_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.0.call_all(inputs)
    }
    fn call_unhooked(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.0.call_unhooked(inputs)
    }
    fn input_names(&self) -> Vec<&'static str> {
        self.0.input_names()
    }
}

fn call(layer: &dyn Erased, x: &Tensor) -> Result<Tensor> {
    if !is_watched(layer.base()) {
        return within(layer, || layer.forward(x));
    }
    let first = layer.call_all(std::slice::from_ref(x))?.into_iter().next();
    first.ok_or_else(|| Error::invalid("gives no output; a hook may have replaced it by none").in_op(layer.name()))
}

fn call_all(layer: &dyn Erased, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    call_with(layer, inputs, &mut |inputs| layer.forward_all(inputs))
}

fn invoke(layer: &dyn Erased, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
    let inputs = invoke::inputs(layer.name(), &layer.input_names(), positional, named)?;
    layer.call_unhooked(&inputs).map(invoke::outputs)
}

/// Runs `forward`, which may know more than the inputs, with all that belongs around a layer's: hooks, observers and the
/// path in an error.
pub(crate) fn call_with(
    layer: &dyn Erased,
    inputs: &[Tensor],
    forward: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    watched(layer, inputs, &mut || match layer.base().filter(|b| b.has_hooks()) {
        Some(base) => base.around(inputs, forward),
        None => forward(inputs),
    })
}

/// Runs `f` as the layer's work: observers see it, and an error learns its path.
pub(crate) fn watched(
    layer: &dyn Erased,
    inputs: &[Tensor],
    f: &mut dyn FnMut() -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    within(layer, || {
        let (id, name) = (layer.id(), layer.name());
        let observers = OBSERVERS.with_borrow(Clone::clone);
        observers.iter().for_each(|o| o.enter(id, name));
        let outputs = f()?;
        observers.iter().for_each(|o| o.exit(id, name, inputs, &outputs));
        Ok(outputs)
    })
}

/// The last word of a type's path.
pub(crate) fn short_name<T: ?Sized>() -> &'static str {
    last_word(std::any::type_name::<T>())
}

fn last_word(full: &'static str) -> &'static str {
    let head = full.split('<').next().unwrap_or(full);
    head.rsplit("::").next().unwrap_or(head)
}

thread_local! {
    /// Layers that are running on this thread, innermost last.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The innermost layer in which an error arose, until the outermost one names it.
    static FAILED: Cell<Option<(LayerId, &'static str)>> = const { Cell::new(None) };
    static OBSERVERS: RefCell<Vec<Rc<dyn Observer>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` as a part of `layer`: an error learns the path from the outermost layer to the one it arose in.
pub(crate) fn within<R>(layer: &dyn Erased, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let work = Work::begin(layer);
    let result = f();
    let depth = work.depth;
    drop(work);
    result.map_err(|e| failed(layer, depth, e))
}

/// A layer that is running.
struct Work {
    /// How many others run around it.
    depth: usize,
    _span: Option<profiler::Span>,
}

impl Work {
    fn begin(layer: &dyn Erased) -> Work {
        let depth = DEPTH.get();
        let _span = if profiler::on() { profiled::enter(layer, depth) } else { None };
        DEPTH.set(depth + 1);
        if depth == 0 {
            FAILED.set(None);
        }
        Work { depth, _span }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        DEPTH.set(self.depth);
    }
}

/// The error of a layer inside `depth` others: the outermost one says where it arose.
#[cold]
fn failed(layer: &dyn Erased, depth: usize, e: Error) -> Error {
    let (inner, inner_name) = FAILED.get().unwrap_or((layer.id(), layer.name()));
    if depth > 0 {
        FAILED.set(Some((inner, inner_name)));
        return e;
    }
    FAILED.set(None);
    let path = path_to(layer, inner).unwrap_or_default();
    e.in_layer(format!("{} ({inner_name})", Path::default().join(layer.name()).join(path.as_str()).as_str()))
}

/// The way from a layer to one inside it.
fn path_to(layer: &dyn Erased, wanted: LayerId) -> Option<Path> {
    struct Find(LayerId, Option<Path>);
    impl Visitor for Find {
        fn layer(&mut self, path: &Path, layer: LayerRef) {
            if layer.id() == self.0 {
                self.1 = Some(path.clone());
            }
        }
    }
    let mut find = Find(wanted, None);
    layer.visit(&mut find);
    find.1
}

/// Watches the layers that run on this thread: summaries, profilers and alignment tools are observers.
pub trait Observer {
    /// A layer begins.
    fn enter(&self, _layer: LayerId, _type_name: &'static str) {}
    /// A layer is done.
    fn exit(&self, layer: LayerId, type_name: &'static str, inputs: &[Tensor], outputs: &[Tensor]);
}

/// Runs `f` while `observer` watches the layers of this thread.
pub fn observe<R>(observer: Rc<dyn Observer>, f: impl FnOnce() -> R) -> R {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            OBSERVERS.with_borrow_mut(|o| o.pop());
        }
    }
    OBSERVERS.with_borrow_mut(|o| o.push(observer));
    let _pop = Pop;
    f()
}

fn observed() -> bool {
    OBSERVERS.with_borrow(|o| !o.is_empty())
}

/// Does anybody see what goes into a layer and what comes out, or stand in for it?
pub(crate) fn is_watched(base: Option<&Base>) -> bool {
    observed() || base.is_some_and(Base::has_hooks)
}

/// Applies layers to a tensor in the order they are read: `x.apply(&self.fc1)?.tanh().apply(&self.fc2)?`.
pub trait Apply {
    /// The layer's output for this tensor.
    fn apply<L: Layer + ?Sized>(&self, layer: &L) -> Result<Tensor>;
}

impl Apply for Tensor {
    fn apply<L: Layer + ?Sized>(&self, layer: &L) -> Result<Tensor> {
        layer.call(self)
    }
}

macro_rules! delegate {
    ($($holder:ident),*) => {$(
        impl<L: Layer + ?Sized> Layer for $holder<L> {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                (**self).forward(x)
            }
            fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                (**self).forward_all(inputs)
            }
            fn call(&self, x: &Tensor) -> Result<Tensor> {
                (**self).call(x)
            }
            fn call_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                (**self).call_all(inputs)
            }
            fn call_unhooked(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                (**self).call_unhooked(inputs)
            }
            fn input_names(&self) -> Vec<&'static str> {
                (**self).input_names()
            }
            fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
                (**self).invoke(positional, named)
            }
            fn settings(&self) -> Vec<(&'static str, Value)> {
                (**self).settings()
            }
            fn extra_repr(&self) -> String {
                (**self).extra_repr()
            }
        }
    )*};
}
delegate!(Box, Arc);

/// A layer for those who build by name.
pub fn object<L: Layer>(layer: L) -> Object {
    Object::new(Arc::new(layer) as Arc<dyn Layer>)
}
