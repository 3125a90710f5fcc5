//! The one road of every call: AMP cast, then the op's body (inference first, then its kernel), NaN check, the node of
//! the gradient, the listener; the profiler sees it from end to end.

use crate::autograd::{self, Grad, GradFn, Grads, Keeps, Node, grad_enabled};
use crate::captured::tape;
use crate::gpu::Gpu;
use crate::op::{OpDef, OutputSet, Outputs};
use crate::shape::{Layout, Shape, checked_numel};
use crate::value::Args;
use crate::{DType, Device, Error, Result, Tensor, Value, device, flags, profiler, recording};
use sampan_formula::Bound;
use sampan_kernels::any::Refused;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an op's body sees of its call.
pub struct Cx<'a> {
    op: &'static OpDef,
    args: &'a [Value],
    device: Device,
    track: bool,
    recorded: Cell<bool>,
    /// Is the call done again from a tape?
    again: bool,
    /// Where a call from a tape puts what it saves for its gradient.
    kept: Option<&'a Kept>,
}

/// What a call saves for its gradient.
pub(crate) type Kept = RefCell<smallvec::SmallVec<[Tensor; 2]>>;

/// A kernel that fills a tensor from others, and depends on nothing but them and what it captured.
pub(crate) type Kernel = Box<dyn Fn(&[&Tensor], &Tensor) -> Result<()> + Send>;

/// Watches this thread: tracers, profilers, debuggers. Every method has an empty default.
///
/// A call is `enter`, then the calls it makes itself, then either `exit` or `failed`. What a tracer needs besides the calls
/// are the places where values change or leave without one: writes into memory, and reads on the host.
pub trait Listener {
    /// A call begins. Composites call other ops, so calls nest.
    fn enter(&self, _op: &'static OpDef, _args: &[Value]) {}
    /// A call ended with these outputs.
    fn exit(&self, _op: &'static OpDef, _args: &[Value], _outputs: &[Tensor]) {}
    /// A call ended with an error.
    fn failed(&self, _op: &'static OpDef, _args: &[Value], _error: &Error) {}
    /// Memory was written. `before` is the handle that was written through and `after` the one that stands in its place:
    /// another tensor, with another [`id`](Tensor::id), if autograd recorded the write, and else the same one.
    fn wrote(&self, _before: &Tensor, _after: &Tensor, _write: &Write) {}
    /// Values left for the host: `what` is who asked for them, such as `item` or `numpy`. Ops read through their kernels,
    /// which does not count.
    fn read(&self, _tensor: &Tensor, _what: &'static str) {}
    /// A call is this formula over these tensors, computed in a dtype.
    fn formula(&self, _formula: &Bound, _dtype: DType, _tensors: &[&Tensor], _output: &Tensor) {}
}

/// How memory was written.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// By the in-place form of an op; `values` are what its call gave, just before.
    Op {
        /// The name of the op or of its in-place form.
        name: &'a str,
        /// The result of the call.
        values: &'a Tensor,
    },
    /// By `x[index] = value`; `values` are the result of the call of `setitem` just before: all of `x` as it is now.
    Index {
        /// The result of the call.
        values: &'a Tensor,
    },
    /// By `set_value`; `values` are the result of the call of `assign` just before.
    Value {
        /// The result of the call.
        values: &'a Tensor,
    },
    /// By a kernel that computes in the memory itself, such as the step of an optimizer; there is no call.
    Update,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static CALLER: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
    static LISTENERS: RefCell<Vec<Rc<dyn Listener>>> = const { RefCell::new(Vec::new()) };
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    static COMPOSITES: Cell<bool> = const { Cell::new(false) };
    static READING: Cell<bool> = const { Cell::new(false) };
}

static HIDE_CALLERS: AtomicBool = AtomicBool::new(false);

/// Is an op running on this thread?
pub(crate) fn inside() -> bool {
    DEPTH.get() > 0
}

/// Does anybody watch the calls of this thread?
pub fn listening() -> bool {
    LISTENING.get()
}

/// Tells everybody who watches this thread.
#[cold]
fn tell(f: impl Fn(&dyn Listener)) {
    for l in LISTENERS.with_borrow(|l| l.clone()) {
        f(&*l);
    }
}

/// Tells those who watch of a write.
#[inline]
pub(crate) fn wrote(before: &Tensor, after: &Tensor, write: Write) {
    if LISTENING.get() {
        tell(|l| l.wrote(before, after, &write));
    }
}

/// Tells those who watch which formula a call is.
#[inline]
pub(crate) fn is_formula(formula: &Bound, dtype: DType, tensors: &[&Tensor], output: &Tensor) {
    if LISTENING.get() {
        tell(|l| l.formula(formula, dtype, tensors, output));
    }
}

/// Reads values on the host with `f`; those who watch learn of it under the name of the outermost reader.
///
/// ```
/// # use sampan_core::{Tensor, dispatch};
/// let x = Tensor::new([2.5f32]);
/// assert_eq!(dispatch::reading(&x, "bool", || x.item().to_f64() != 0.0), true);
/// ```
#[inline]
pub fn reading<R>(tensor: &Tensor, what: &'static str, f: impl FnOnce() -> R) -> R {
    if !LISTENING.get() || READING.get() || inside() {
        if recording::taping() {
            tape::peeked();
        }
        return f();
    }
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            READING.set(false);
        }
    }
    tell(|l| l.read(tensor, what));
    READING.set(true);
    let _done = Done;
    f()
}

/// The user's line whose call is running.
pub(crate) fn caller() -> Option<&'static Location<'static>> {
    CALLER.get()
}

/// Runs `f` with a listener on every call of this thread.
pub fn listen<R>(listener: Rc<dyn Listener>, f: impl FnOnce() -> R) -> R {
    struct Remove(Rc<dyn Listener>);
    impl Drop for Remove {
        fn drop(&mut self) {
            remove_listener(&self.0);
        }
    }
    add_listener(listener.clone());
    let _remove = Remove(listener);
    f()
}

/// Lets a listener watch every call of this thread, until [`remove_listener`].
pub fn add_listener(listener: Rc<dyn Listener>) {
    LISTENERS.with_borrow_mut(|l| l.push(listener));
    LISTENING.set(true);
}

/// Ends what [`add_listener`] began; false if the listener did not watch.
pub fn remove_listener(listener: &Rc<dyn Listener>) -> bool {
    LISTENERS.with_borrow_mut(|l| {
        let found = l.iter().rposition(|other| Rc::ptr_eq(other, listener));
        found.map(|at| l.remove(at));
        LISTENING.set(!l.is_empty());
        found.is_some()
    })
}

/// From now on no error names the line of Rust that made a call: for a front in another language, where all calls come
/// from the same few lines.
pub fn hide_callers() {
    HIDE_CALLERS.store(true, Ordering::Relaxed);
}

/// Runs `f` with every fused kernel replaced by the composite it stands for. Tests compare the two.
pub fn with_composites<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            COMPOSITES.set(self.0);
        }
    }
    let _restore = Restore(COMPOSITES.replace(true));
    f()
}

/// Enters a region where errors of panicking ops unwind silently, and turns such an unwinding back into a `Result` at
/// its outermost edge.
#[track_caller]
pub(crate) fn outermost<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    let leave = Leave;
    if depth > 0 {
        return f();
    }
    CALLER.set(if HIDE_CALLERS.load(Ordering::Relaxed) { None } else { Some(Location::caller()) });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    drop(leave);
    result.unwrap_or_else(|payload| match payload.downcast::<Error>() {
        Ok(error) => Err(*error),
        Err(other) => match other.downcast::<sampan_kernels::buffer::OutOfMemory>() {
            Ok(full) => Err((*full).into()),
            Err(other) => match other.downcast::<Refused>() {
                Ok(refused) => Err(not_taken(*refused)),
                Err(other) => std::panic::resume_unwind(other),
            },
        },
    })
}

/// What is said of a dtype that a kernel was not made for.
#[cold]
fn not_taken(refused: Refused) -> Error {
    match refused {
        Refused::DType(dtype) if dtype.is_complex() => no_complex(dtype),
        Refused::DType(dtype) => Error::dtype(format!("does not work on {dtype}")).hint("cast it first"),
        Refused::Complex(z, dtype) => {
            Error::dtype(format!("the complex number {z} does not fit into a {dtype} tensor"))
                .hint("take its real part, or cast the tensor to complex64")
        }
    }
}

/// What ops that know real numbers only say of others.
#[cold]
fn no_complex(dtype: DType) -> Error {
    Error::dtype(format!("works on real numbers only, got {dtype}"))
        .hint("take real(), imag() or abs(), or as_real() for both parts as a last axis of 2")
}

/// Calls an op. Every call of every front goes through here.
#[track_caller]
pub fn dispatch(op: &'static OpDef, mut args: Args) -> Result<Outputs> {
    if crate::amp::enabled() && crate::amp::cast_inputs(op, &mut args)? {
        return crate::amp::with_level(None, || dispatch(op, args));
    }
    let span = profiler::op(op, &args);
    let result = outermost(|| call(op, &args)).map_err(|e| e.in_op(op.name).received_args(op, &args));
    if let Ok(outputs) = &result {
        span.done(op, &args, outputs);
    }
    drop(span);
    if let Err(error) = &result
        && error.kind() == crate::error::Kind::InvalidType
        && crate::amp::enabled()
        && let Some(wide) = crate::amp::widened(&args)
        && let Ok(outputs) = crate::amp::with_level(None, || dispatch(op, wide))
    {
        return Ok(outputs);
    }
    result
}

/// Calls an op and writes its result into its first argument, whose new handle it returns.
#[track_caller]
pub fn dispatch_inplace(op: &'static OpDef, args: Args) -> Result<Tensor> {
    let Some(Value::Tensor(target)) = args.first() else {
        return Err(Error::dtype("the first argument of an in-place op must be a Tensor").in_op(op.name));
    };
    let mut target = target.clone();
    target.replaced_by(op.name, |_| Ok(dispatch(op, args)?.remove(0)))?;
    Ok(target)
}

fn call(op: &'static OpDef, args: &[Value]) -> Result<Outputs> {
    let mut found = None;
    let mut wants_grad = false;
    let recording = grad_enabled() && !op.non_diff;
    let mut stale = false;
    let mut complex = None;
    for value in args {
        match value {
            Value::DType(d) if d.is_complex() => complex = Some(*d),
            Value::Complex(_) => complex = Some(DType::Complex128),
            _ => {}
        }
        value.for_each_tensor(&mut |t| {
            if t.dtype().is_complex() {
                complex = Some(t.dtype());
            }
            stale |= t.is_stale();
            // A tensor without values makes the result one; one on a GPU takes the others there.
            found = Some(match (found, t.device()) {
                (Some(Device::Meta), _) => Device::Meta,
                (Some(gpu @ Device::Cuda(_)), Device::Cpu) => gpu,
                (_, device) => device,
            });
            wants_grad |= t.is_tracked();
        });
    }
    if stale && recording {
        // Aliases changed them: they take part with the history of what was written.
        let mut args = Args::from(args);
        args.iter_mut().try_for_each(|v| v.map_tensors(&mut |t| t.current()))?;
        return call(op, &args);
    }
    // What is made from nothing on the way belongs where the inputs are.
    let device = found.unwrap_or_else(device::current);
    let _stay = device::Stay::on(device);
    let track = wants_grad && recording;
    let cx = Cx { op, args, device, track, recorded: Cell::new(false), again: false, kept: None };
    let complex = complex.filter(|_| !op.complex);
    if LISTENING.get() { watched(&cx, complex) } else { run(&cx, complex) }
}

/// The body, and what belongs around every body.
fn run(cx: &Cx, complex: Option<DType>) -> Result<Outputs> {
    let Cx { op, args, track, .. } = *cx;
    if let Some(dtype) = complex {
        return Err(no_complex(dtype));
    }
    let (body, primitive) = match op.reference {
        // A GPU computes what it has no fused kernel for by the parts.
        Some(reference) if COMPOSITES.get() || (!op.fused_on_gpu && matches!(cx.device, Device::Cuda(_))) => {
            (reference, false)
        }
        _ => (op.run, op.primitive),
    };
    // A primitive states its own gradient; what it calls on the way is not recorded.
    let outputs = if primitive { autograd::no_grad(|| body(cx))? } else { body(cx)? };
    if primitive && track && !cx.recorded.get() && outputs.iter().any(|t| t.dtype().is_inexact()) {
        return Err(Error::new(
            crate::error::Kind::Unimplemented,
            "has no gradient for these arguments, and one was asked for",
        )
        .hint("wrap the call in no_grad or set stop_gradient on its inputs"));
    }
    if flags::check_nan_inf() {
        crate::debug::check_finite(op, args, &outputs)?;
    }
    Ok(outputs)
}

/// [`run`] before listeners, who hear of the end of every call they saw begin, whichever way it ends.
#[cold]
fn watched(cx: &Cx, complex: Option<DType>) -> Result<Outputs> {
    let (op, args) = (cx.op, cx.args);
    tell(|l| l.enter(op, args));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cx, complex)));
    match &result {
        Ok(Ok(outputs)) => tell(|l| l.exit(op, args, outputs)),
        Ok(Err(error)) => tell(|l| l.failed(op, args, error)),
        // An inner call's error on its way to the outermost one, or a panic.
        Err(panic) => {
            let other = || Error::new(crate::error::Kind::PreconditionNotMet, "the call did not end").in_op(op.name);
            match panic.downcast_ref::<Error>() {
                Some(error) => tell(|l| l.failed(op, args, error)),
                None => tell(|l| l.failed(op, args, &other())),
            }
        }
    }
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Error {
    /// Shapes and dtypes of the tensors that the failed call was given.
    fn received_args(self, op: &OpDef, args: &[Value]) -> Error {
        if self.op() != op.name {
            return self;
        }
        let mut parts = Vec::new();
        for (p, v) in op.params.iter().zip(args) {
            match v {
                Value::Tensor(t) => parts.push(format!("{}={:?} {}", p.name, t.shape(), t.dtype())),
                Value::Tensors(ts) => {
                    let each: Vec<_> = ts.iter().take(8).map(|t| format!("{:?} {}", t.shape(), t.dtype())).collect();
                    let more = if ts.len() > 8 { ", …" } else { "" };
                    parts.push(format!("{}=({}{more})", p.name, each.join(", ")));
                }
                _ => {}
            }
        }
        if parts.is_empty() { self } else { self.received(parts.join(", ")) }
    }
}

impl<'a> Cx<'a> {
    /// The arguments in the order of the signature.
    pub fn args(&self) -> &'a [Value] {
        self.args
    }

    /// The op that runs.
    pub fn op(&self) -> &'static OpDef {
        self.op
    }

    /// Does a call again that was made before, with arguments that fit: the body alone.
    pub(crate) fn again(op: &'static OpDef, args: &[Value], track: bool, kept: Option<&Kept>) -> Result<Outputs> {
        let cx = Cx { op, args, device: Device::Cpu, track, recorded: Cell::new(false), again: true, kept };
        (op.run)(&cx).map_err(|e| e.in_op(op.name).received_args(op, args))
    }

    /// Will the call become a node?
    pub(crate) fn records(&self) -> bool {
        self.track && !self.again
    }

    /// Will a gradient be asked for?
    pub fn tracks(&self) -> bool {
        self.track
    }

    /// The device of the inputs.
    pub fn device(&self) -> Device {
        self.device
    }

    /// A new tensor on the device of the inputs, values unspecified. Every check comes before this.
    pub fn out(&self, shape: impl AsRef<[usize]>, dtype: DType) -> Result<Tensor> {
        checked_numel(shape.as_ref())?;
        Ok(Tensor::uninit(shape, dtype, self.device))
    }

    /// The same with the channels side by side if one of these tensors, which lie on a GPU and have its shape, lies so.
    pub(crate) fn out_like(&self, tensors: &[&Tensor], shape: &[usize], dtype: DType) -> Result<Tensor> {
        let there = |t: &Tensor| matches!(t.device(), Device::Cuda(_)) && t.shape() == shape;
        let last = |t: &&Tensor| there(t) && !t.is_contiguous() && t.layout().is_channels_last();
        match self.device {
            Device::Cuda(_) if tensors.iter().any(last) => self.out_as(Layout::channels_last(shape), dtype),
            _ => self.out(shape, dtype),
        }
    }

    /// The same in a layout without gaps.
    pub(crate) fn out_as(&self, layout: Layout, dtype: DType) -> Result<Tensor> {
        checked_numel(&layout.shape)?;
        Ok(Tensor::uninit_as(layout, dtype, self.device))
    }

    /// A new tensor of zeros on the device of the inputs.
    pub fn zeros(&self, shape: impl AsRef<[usize]>, dtype: DType) -> Result<Tensor> {
        checked_numel(shape.as_ref())?;
        Ok(Tensor::zeroed(shape, dtype, self.device))
    }

    /// Runs the CPU kernel; a meta tensor needs none. On a GPU it stands in for a kernel there: the values come to the host
    /// and go back, which is said once for each op.
    pub fn cpu(&self, kernel: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.device {
            Device::Cpu => kernel(),
            Device::Cuda(_) => {
                crate::gpu::stood_in(self.op);
                kernel()
            }
            Device::Meta => Ok(()),
        }
    }

    /// Runs the CPU kernel that the whole call comes down to once its arguments were looked at. A tape keeps it, and runs it
    /// alone on other tensors of the same shapes, steps and dtypes: it reads these tensors and what it captured, which must
    /// not depend on values of tensors.
    pub(crate) fn kernel(
        &self,
        tensors: &[&Tensor],
        out: &Tensor,
        kernel: impl Fn(&[&Tensor], &Tensor) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.cpu(|| kernel(tensors, out))?;
        self.keeps(tensors, out, || kernel);
        Ok(())
    }

    /// Says that the call came down to a kernel, which a tape keeps; see [`kernel`](Self::kernel).
    pub(crate) fn keeps<K: Fn(&[&Tensor], &Tensor) -> Result<()> + Send + 'static>(
        &self,
        tensors: &[&Tensor],
        out: &Tensor,
        kernel: impl FnOnce() -> K,
    ) {
        if recording::taping() {
            tape::kernel(tensors, out, || Box::new(kernel()));
        }
    }

    /// Runs the kernel of the device that the call is on; see [`kernel`](Self::kernel) and [`run`](Self::run).
    pub(crate) fn kernels(
        &self,
        tensors: &[&Tensor],
        out: &Tensor,
        cpu: impl Fn(&[&Tensor], &Tensor) -> Result<()> + Send + 'static,
        gpu: impl FnOnce(&'static Gpu) -> Result<bool>,
    ) -> Result<()> {
        match self.gpu()? {
            Some(device) if gpu(device)? => Ok(()),
            _ => self.kernel(tensors, out, cpu),
        }
    }

    /// Runs the kernel of the device that the call is on. One for the GPU that returns false cannot do what is asked, and the
    /// CPU's stands in.
    pub(crate) fn run(
        &self,
        cpu: impl FnOnce() -> Result<()>,
        gpu: impl FnOnce(&'static Gpu) -> Result<bool>,
    ) -> Result<()> {
        match self.gpu()? {
            Some(device) if gpu(device)? => Ok(()),
            _ => self.cpu(cpu),
        }
    }

    /// The GPU that the call is on.
    pub(crate) fn gpu(&self) -> Result<Option<&'static Gpu>> {
        match self.device {
            Device::Cuda(number) => crate::gpu::gpu(number).map(Some),
            _ => Ok(None),
        }
    }

    /// For ops whose result's shape depends on values: refuses meta tensors.
    pub fn needs_values(&self) -> Result<()> {
        if recording::taping() {
            tape::by_values();
        }
        match self.device {
            Device::Meta => Err(Error::invalid("the result's shape depends on the values, which a meta tensor lacks")),
            _ => Ok(()),
        }
    }

    /// States the gradient and gives the outputs back. `saved` are the inputs whose values the formula reads, as
    /// `g.saved(i)`; shapes and numbers are captured. The formula is written in differentiable ops and returns one
    /// gradient for each tensor among the arguments, in their order.
    pub fn grad<O: OutputSet, R: Into<Grads>>(
        &self,
        outputs: O,
        saved: &[&Tensor],
        formula: impl Fn(&Grad) -> Result<R> + Send + Sync + 'static,
    ) -> Result<O> {
        self.record(outputs, saved, Keeps::Nothing, formula)
    }

    /// Like [`grad`](Self::grad) for a formula that also reads the outputs' values, as `g.output(i)`.
    pub fn grad_from_output<O: OutputSet, R: Into<Grads>>(
        &self,
        outputs: O,
        saved: &[&Tensor],
        formula: impl Fn(&Grad) -> Result<R> + Send + Sync + 'static,
    ) -> Result<O> {
        self.record(outputs, saved, Keeps::All, formula)
    }

    /// Like [`grad_from_output`](Self::grad_from_output) for a formula that reads some of the outputs: the memory of the
    /// others is not kept.
    pub fn grad_from_outputs<O: OutputSet, R: Into<Grads>>(
        &self,
        outputs: O,
        which: &[usize],
        saved: &[&Tensor],
        formula: impl Fn(&Grad) -> Result<R> + Send + Sync + 'static,
    ) -> Result<O> {
        self.record(outputs, saved, Keeps::These(which), formula)
    }

    fn record<O: OutputSet, R: Into<Grads>>(
        &self,
        outputs: O,
        saved: &[&Tensor],
        keeps: Keeps,
        formula: impl Fn(&Grad) -> Result<R> + Send + Sync + 'static,
    ) -> Result<O> {
        self.recorded.set(true);
        if !self.track || self.only_kept(saved) {
            return Ok(outputs);
        }
        let formula: GradFn = std::sync::Arc::new(move |g| formula(g).map(Into::into));
        Ok(O::from_outputs(self.attach(outputs.into_outputs(), saved, keeps, formula)))
    }

    /// Is the call done again? Then there is no node, and what it saves goes to whoever asked for it.
    fn only_kept(&self, saved: &[&Tensor]) -> bool {
        if let (true, Some(kept)) = (self.again, self.kept) {
            kept.borrow_mut().extend(saved.iter().map(|&t| t.clone()));
        }
        self.again
    }

    fn attach(&self, outputs: Outputs, saved: &[&Tensor], keeps: Keeps, formula: GradFn) -> Outputs {
        if recording::taping() {
            tape::saved(saved);
        }
        let mut inputs = smallvec::SmallVec::<[&Tensor; 4]>::new();
        self.args.iter().for_each(|v| v.for_each_tensor(&mut |t| inputs.push(t)));
        Node::attach(self.op.name, &inputs, outputs, saved, keeps, formula)
    }

    /// The common shape of a result with some axes reduced.
    pub fn reduced_shape(shape: &[usize], reduced: &[bool], keepdim: bool) -> Shape {
        shape
            .iter()
            .zip(reduced)
            .filter_map(|(&n, &r)| match (r, keepdim) {
                (false, _) => Some(n),
                (true, true) => Some(1),
                (true, false) => None,
            })
            .collect()
    }
}
