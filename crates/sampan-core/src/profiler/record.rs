//! Noting events, each thread in its own list.

use super::event::{Event, Input, Kind, Memory, Name};
use super::{COUNT, Options, SESSION, STATE};
use crate::op::OpDef;
use crate::{Tensor, Value};
use parking_lot::Mutex;
use sampan_kernels::buffer::bytes_in_use;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The events of one thread.
pub(super) struct Sink {
    pub name: String,
    pub events: Mutex<Vec<Event>>,
}

/// The call of the user's that a node of the gradient came from.
pub(crate) struct Origin {
    name: Name,
    call: u64,
    layer: Option<Arc<str>>,
}

/// A call or a layer that has not ended.
struct Frame {
    kind: Kind,
    name: Name,
    start: u64,
    call: u64,
    layer: Option<Arc<str>>,
    inputs: Option<Box<[Input]>>,
    multiply_adds: u64,
    /// Bytes in use and bytes this thread had made, at the start.
    memory: (u64, u64),
    /// Where the outermost of the calls around this one lies.
    outermost: usize,
    origin: Option<Arc<Origin>>,
}

/// What this thread knows of the session it takes part in.
struct Local {
    session: u32,
    options: Options,
    epoch: Instant,
    thread: u32,
    sink: Arc<Sink>,
    stack: Vec<Frame>,
    allocated: u64,
    calls: u64,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// Nanoseconds since then.
pub(super) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Runs `f` with this thread's part of the session that records; nothing happens where none does.
fn with_local<R>(f: impl FnOnce(&mut Local) -> R) -> Option<R> {
    let session = SESSION.load(Ordering::Acquire);
    if session == 0 {
        return None;
    }
    // A thread that is ending has no list any more.
    LOCAL
        .try_with(|local| {
            let mut local = local.try_borrow_mut().ok()?;
            if local.as_ref().is_none_or(|l| l.session != session) {
                *local = Local::join(session);
            }
            local.as_mut().map(f)
        })
        .ok()
        .flatten()
}

/// Takes part in the session: the thread that starts it comes first.
pub(super) fn join() {
    with_local(|_| ());
}

impl Local {
    fn join(number: u32) -> Option<Local> {
        let mut state = STATE.lock();
        let session = state.as_mut().filter(|s| s.number == number)?;
        let thread = session.sinks.len() as u32;
        let name = match std::thread::current().name() {
            Some(name) => name.to_string(),
            None if thread == 0 => "main".to_string(),
            None => format!("thread {thread}"),
        };
        let sink = Arc::new(Sink { name, events: Mutex::default() });
        session.sinks.push(sink.clone());
        let (options, epoch) = (session.options, session.epoch);
        Some(Local { session: number, options, epoch, thread, sink, stack: vec![], allocated: 0, calls: 0 })
    }

    fn now(&self) -> u64 {
        nanoseconds(self.epoch)
    }

    fn memory(&self) -> (u64, u64) {
        if self.options.memory { (bytes_in_use() as u64, self.allocated) } else { (0, 0) }
    }

    fn memory_since(&self, (in_use, allocated): (u64, u64)) -> Option<Memory> {
        self.options.memory.then(|| {
            let live = bytes_in_use() as u64;
            let allocated = self.allocated - allocated;
            Memory { allocated, freed: (in_use + allocated).saturating_sub(live), live }
        })
    }

    fn keep(&self, event: Event) {
        if COUNT.fetch_add(1, Ordering::Relaxed) < self.options.capacity {
            self.sink.events.lock().push(event);
        }
    }

    /// A number that no other call has.
    fn new_call(&mut self) -> u64 {
        self.calls += 1;
        u64::from(self.thread) << 40 | self.calls
    }

    fn enter(&mut self, kind: Kind, name: Name, layer: Option<Arc<str>>, call: Option<u64>) -> Span {
        let index = self.stack.len();
        // What a gradient or a layer does is not a part of the call around it.
        let around = self.stack.last().filter(|f| kind == Kind::Op && f.kind != Kind::Layer);
        let outermost = around.map_or(index, |f| f.outermost);
        let call = match call.or_else(|| around.map(|f| f.call)) {
            Some(call) => call,
            None => self.new_call(),
        };
        let memory = self.memory();
        // The clock is read last, so that what was done here counts for the caller.
        let frame = Frame {
            kind,
            name,
            start: 0,
            call,
            layer,
            inputs: None,
            multiply_adds: 0,
            memory,
            outermost,
            origin: None,
        };
        self.stack.push(frame);
        self.stack[index].start = self.now();
        Span { session: self.session, index: index as u32 }
    }

    fn leave(&mut self, index: usize) {
        let end = self.now();
        // A call that unwound may have left others behind.
        self.stack.truncate(index + 1);
        let Some(frame) = self.stack.pop() else { return };
        let memory = self.memory_since(frame.memory);
        self.keep(Event {
            kind: frame.kind,
            name: frame.name,
            start: frame.start,
            duration: end.saturating_sub(frame.start),
            thread: self.thread,
            depth: index as u32,
            call: frame.call,
            layer: frame.layer,
            inputs: frame.inputs,
            memory,
            multiply_adds: frame.multiply_adds,
        });
    }

    fn current_layer(&self) -> Option<Arc<str>> {
        self.stack.last().and_then(|f| f.layer.clone())
    }
}

/// A call or a layer being recorded, until it is dropped. Spans of one thread nest.
#[must_use = "what is not kept ends at once"]
pub struct Span {
    /// Zero where nothing records.
    session: u32,
    index: u32,
}

impl Span {
    const NONE: Span = Span { session: 0, index: 0 };

    /// Notes the arithmetic that a call did.
    #[inline]
    pub(crate) fn done(&self, op: &OpDef, args: &[Value], outputs: &[Tensor]) {
        if self.session != 0 {
            self.count(op.multiply_adds(args, outputs));
        }
    }

    #[cold]
    fn count(&self, multiply_adds: u64) {
        with_local(|local| {
            if local.session == self.session
                && let Some(frame) = local.stack.get_mut(self.index as usize)
            {
                frame.multiply_adds = multiply_adds;
            }
        });
    }

    #[cold]
    fn close(&self) {
        with_local(|local| {
            // Another session may have begun meanwhile.
            if local.session == self.session && (self.index as usize) < local.stack.len() {
                local.leave(self.index as usize);
            }
        });
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.session != 0 {
            self.close();
        }
    }
}

/// A call of an op begins.
#[inline]
pub(crate) fn op(op: &'static OpDef, args: &[Value]) -> Span {
    if super::on() { enter_op(op, args) } else { Span::NONE }
}

#[cold]
fn enter_op(op: &'static OpDef, args: &[Value]) -> Span {
    with_local(|local| {
        let inputs = local.options.shapes.then(|| Input::of(op.params.iter().map(|p| p.name), args));
        let span = local.enter(Kind::Op, op.name.into(), local.current_layer(), None);
        if let Some(frame) = local.stack.last_mut() {
            frame.inputs = inputs;
        }
        span
    })
    .unwrap_or(Span::NONE)
}

/// A computation begins that is no call of an op.
#[inline]
pub(crate) fn call(name: &'static str) -> Span {
    if super::on() { enter_call(name) } else { Span::NONE }
}

#[cold]
fn enter_call(name: &'static str) -> Span {
    with_local(|local| local.enter(Kind::Op, name.into(), local.current_layer(), None)).unwrap_or(Span::NONE)
}

/// The gradient of a recorded call begins.
#[inline]
pub(crate) fn gradient(node: &'static str, origin: Option<&Arc<Origin>>, grads: &[Option<Tensor>]) -> Span {
    if super::on() { enter_gradient(node, origin, grads) } else { Span::NONE }
}

#[cold]
fn enter_gradient(node: &'static str, origin: Option<&Arc<Origin>>, grads: &[Option<Tensor>]) -> Span {
    with_local(|local| {
        let (name, layer, call) = match origin {
            Some(o) => (o.name.clone(), o.layer.clone(), Some(o.call)),
            None => (node.into(), None, Some(local.new_call())),
        };
        let inputs = local.options.shapes.then(|| {
            let grads: Vec<Value> = grads.iter().flatten().cloned().map(Value::Tensor).collect();
            Input::of(std::iter::repeat("grad"), &grads)
        });
        let span = local.enter(Kind::Gradient, name, layer, call);
        if let Some(frame) = local.stack.last_mut() {
            frame.inputs = inputs;
        }
        span
    })
    .unwrap_or(Span::NONE)
}

/// Where a node that is made now comes from: the outermost of the calls that run, and its layer.
#[inline]
pub(crate) fn origin() -> Option<Arc<Origin>> {
    if super::on() { current_origin() } else { None }
}

#[cold]
fn current_origin() -> Option<Arc<Origin>> {
    with_local(|local| {
        let at = local.stack.last().filter(|f| f.kind != Kind::Layer)?.outermost;
        let frame = &mut local.stack[at];
        let make = || {
            let name = match frame.kind {
                Kind::Gradient => format!("{}_grad", &*frame.name).into(),
                _ => frame.name.clone(),
            };
            Arc::new(Origin { name, call: frame.call, layer: frame.layer.clone() })
        };
        Some(match &frame.origin {
            Some(origin) => origin.clone(),
            None => frame.origin.insert(make()).clone(),
        })
    })
    .flatten()
}

/// A tensor's memory was made.
#[cold]
pub(crate) fn allocated(bytes: usize) {
    with_local(|local| local.allocated += bytes as u64);
}

/// A layer begins, at this path from the outermost one. Spans of one thread nest.
///
/// ```
/// # use sampan_core::{Tensor, profiler};
/// profiler::start(profiler::Options::default())?;
/// {
///     let _layer = profiler::layer("Linear", "Net.fc1".into());
///     let _ = Tensor::new([1.0f32]).exp();
/// }
/// let recording = profiler::stop().unwrap();
/// let exp = recording.events.iter().find(|e| &*e.name == "exp").unwrap();
/// assert_eq!(exp.layer.as_deref(), Some("Net.fc1"));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn layer(type_name: impl Into<Name>, path: Arc<str>) -> Span {
    with_local(|local| local.enter(Kind::Layer, type_name.into(), Some(path), None)).unwrap_or(Span::NONE)
}

/// The path of the layer that runs on this thread, while something records.
pub fn enclosing_layer() -> Option<Arc<str>> {
    with_local(|local| local.current_layer()).flatten()
}

/// A range of the user's, from now until it is dropped. Ranges may overlap as they like.
///
/// ```
/// # use sampan_core::profiler;
/// profiler::start(profiler::Options::default())?;
/// let range = profiler::range("preparation");
/// drop(range);
/// assert_eq!(&*profiler::stop().unwrap().events[0].name, "preparation");
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn range(name: impl Into<Name>) -> Range {
    range_of(Kind::Range, name)
}

/// A range of another kind: a step, the wait for a batch, an optimizer's step.
pub fn range_of(kind: Kind, name: impl Into<Name>) -> Range {
    Range(with_local(|local| Open {
        session: local.session,
        kind,
        name: name.into(),
        start: local.now(),
        depth: local.stack.len(),
        memory: local.memory(),
    }))
}

/// What [`range`] gives; ends when it is dropped.
#[must_use = "a range that is not kept ends at once"]
pub struct Range(Option<Open>);

struct Open {
    session: u32,
    kind: Kind,
    name: Name,
    start: u64,
    depth: usize,
    memory: (u64, u64),
}

impl Drop for Range {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        with_local(|local| {
            if local.session != open.session {
                return;
            }
            let end = local.now();
            // Ended by another thread, it says nothing of that one's memory.
            let memory = if local.allocated < open.memory.1 { None } else { local.memory_since(open.memory) };
            let call = local.new_call();
            local.keep(Event {
                kind: open.kind,
                name: open.name,
                start: open.start,
                duration: end.saturating_sub(open.start),
                thread: local.thread,
                depth: open.depth as u32,
                call,
                layer: local.current_layer(),
                inputs: None,
                memory,
                multiply_adds: 0,
            });
        });
    }
}
