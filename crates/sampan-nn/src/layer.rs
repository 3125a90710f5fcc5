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
            _ => Err(Error::invalid(format!("takes one input, got {}", inputs.len())).in_op(short_name::<Self>())),
        }
    }

    /// `forward` with all that belongs around it.
    fn call(&self, x: &Tensor) -> Result<Tensor> {
        if is_watched(self) {
            let first = self.call_all(std::slice::from_ref(x))?.into_iter().next();
            return first.ok_or_else(|| {
                Error::invalid("gives no output; a hook may have replaced it by none").in_op(short_name::<Self>())
            });
        }
        within(self, short_name::<Self>, || self.forward(x))
    }

    /// `forward_all` with all that belongs around it.
    fn call_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        call_with(self, inputs, |inputs| self.forward_all(inputs))
    }

    /// `forward_all` with what belongs around it, but for hooks: what a front runs that has hooks of its own.
    fn call_unhooked(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        watched(self, inputs, || self.forward_all(inputs))
    }

    /// The names of the inputs, for those who name them.
    fn input_names(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    /// `call_unhooked` with arguments as another language gives them. A layer whose `forward` knows more than tensors
    /// implements it.
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        let (layer, names) = (short_name::<Self>(), self.input_names());
        let values = invoke::bind(layer, &names, 1, positional, named)?;
        let inputs = invoke::tensors(layer, &names, values)?;
        self.call_unhooked(&inputs).map(invoke::outputs)
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

/// Runs `forward`, which may know more than the inputs, with all that belongs around a layer's: hooks, observers and the
/// path in an error.
pub(crate) fn call_with<L: Layer + ?Sized>(
    layer: &L,
    inputs: &[Tensor],
    forward: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    watched(layer, inputs, || match layer.base().filter(|b| b.has_hooks()) {
        Some(base) => base.around(inputs, forward),
        None => forward(inputs),
    })
}

/// Runs `f` as the layer's work: observers see it, and an error learns its path.
pub(crate) fn watched<L: Layer + ?Sized>(
    layer: &L,
    inputs: &[Tensor],
    f: impl FnOnce() -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    within(layer, short_name::<L>, || {
        let (id, name) = (id_of(layer), short_name::<L>());
        let observers = OBSERVERS.with_borrow(Clone::clone);
        observers.iter().for_each(|o| o.enter(id, name));
        let outputs = f()?;
        observers.iter().for_each(|o| o.exit(id, name, inputs, &outputs));
        Ok(outputs)
    })
}

/// The last word of a type's path.
pub(crate) fn short_name<T: ?Sized>() -> &'static str {
    let full = std::any::type_name::<T>();
    let head = full.split('<').next().unwrap_or(full);
    head.rsplit("::").next().unwrap_or(head)
}

pub(crate) fn id_of<L: Layer + ?Sized>(layer: &L) -> LayerId {
    LayerId((layer as *const L).addr(), TypeId::of::<L>())
}

thread_local! {
    /// Layers that are running on this thread, innermost last.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The innermost layer in which an error arose, until the outermost one names it.
    static FAILED: Cell<Option<(LayerId, &'static str)>> = const { Cell::new(None) };
    static OBSERVERS: RefCell<Vec<Rc<dyn Observer>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` as a part of `layer`: an error learns the path from the outermost layer to the one it arose in. The layer's
/// `name` is worked out for errors and the profiler alone.
pub(crate) fn within<L: Layer + ?Sized, R>(
    layer: &L,
    name: fn() -> &'static str,
    f: impl FnOnce() -> Result<R>,
) -> Result<R> {
    struct Leave(usize);
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(self.0);
        }
    }
    let depth = DEPTH.get();
    let _span = profiler::on().then(|| profiled::enter(layer, name(), depth));
    let leave = Leave(depth);
    DEPTH.set(depth + 1);
    if depth == 0 {
        FAILED.set(None);
    }
    let result = f();
    drop(leave);
    result.map_err(|e| {
        let (inner, inner_name) = FAILED.get().unwrap_or((id_of(layer), name()));
        if depth > 0 {
            FAILED.set(Some((inner, inner_name)));
            return e;
        }
        FAILED.set(None);
        let path = path_to(layer, inner).unwrap_or_default();
        e.in_layer(format!("{} ({inner_name})", Path::default().join(name()).join(path.as_str()).as_str()))
    })
}

/// The way from a layer to one inside it.
fn path_to(layer: &(impl Members + ?Sized), wanted: LayerId) -> Option<Path> {
    struct Find(LayerId, Option<Path>);
    impl Visitor for Find {
        fn layer(&mut self, path: &Path, layer: LayerRef) {
            if layer.id() == self.0 {
                self.1 = Some(path.clone());
            }
        }
    }
    let mut find = Find(wanted, None);
    layer.visit(&Path::default(), &mut find);
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
pub(crate) fn is_watched<L: Layer + ?Sized>(layer: &L) -> bool {
    observed() || layer.base().is_some_and(Base::has_hooks)
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
