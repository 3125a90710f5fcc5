//! The profiler: what ran, when, for how long, on which thread, in which layer.
//!
//! [`start`] begins a recording of the whole process and [`stop`] ends it and gives what was noted. Every call notes itself
//! in one place, `dispatch`; gradients in the walk backwards; layers, optimizers and loaders where they begin. While
//! nothing records, each of these places reads one flag.
//!
//! ```
//! use sampan_core::{Tensor, profiler};
//! profiler::start(profiler::Options::default())?;
//! let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
//! x.tanh().sum(()).backward();
//! let recording = profiler::stop().unwrap();
//! let names: Vec<_> = recording.events.iter().map(|e| e.label().to_string()).collect();
//! assert!(names.contains(&"tanh".into()) && names.contains(&"tanh_grad".into()));
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod event;
mod record;

pub use event::{Event, Input, Kind, Memory, Name};
pub(crate) use record::{Origin, allocated, call, gradient, op, origin};
pub use record::{Range, Span, enclosing_layer, layer, range, range_of};

use crate::error::Kind as ErrorKind;
use crate::{Error, Result};
use parking_lot::Mutex;
use record::Sink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

/// What is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Shapes and dtypes of the tensors each call is given.
    pub shapes: bool,
    /// Bytes that each call made and gave back, and those in use after it.
    pub memory: bool,
    /// The most events to keep; what comes later is counted and dropped.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { shapes: false, memory: false, capacity: 1_000_000 }
    }
}

/// What was noted between [`start`] and [`stop`].
#[derive(Clone, Debug)]
pub struct Recording {
    /// The events, by thread and in the order they began.
    pub events: Vec<Event>,
    /// The names of the threads; an event names its thread by the place here. The first is the one that called [`start`].
    pub threads: Vec<String>,
    /// When it began.
    pub started: SystemTime,
    /// Nanoseconds from start to stop.
    pub duration: u64,
    /// Bytes in live tensors at the start.
    pub live_at_start: u64,
    /// Events that found no room.
    pub dropped: usize,
    /// What was asked for.
    pub options: Options,
}

struct Session {
    number: u32,
    options: Options,
    epoch: Instant,
    started: SystemTime,
    live_at_start: u64,
    sinks: Vec<Arc<Sink>>,
}

/// The number of the session that records, zero while nothing does: the one word that every call reads.
static SESSION: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicU32 = AtomicU32::new(0);
/// Events of this session, kept or not.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static STATE: Mutex<Option<Session>> = Mutex::new(None);

/// Is anything being recorded?
#[inline]
pub fn on() -> bool {
    SESSION.load(Ordering::Relaxed) != 0
}

/// Begins to record every thread of the process.
pub fn start(options: Options) -> Result<()> {
    let mut state = STATE.lock();
    if state.is_some() {
        return Err(Error::new(ErrorKind::PreconditionNotMet, "the profiler is recording already")
            .hint("stop the recording that runs first; there is one in a process")
            .in_op("profiler"));
    }
    let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    COUNT.store(0, Ordering::Relaxed);
    *state = Some(Session {
        number,
        options,
        epoch: Instant::now(),
        started: SystemTime::now(),
        live_at_start: sampan_kernels::buffer::bytes_in_use() as u64,
        sinks: vec![],
    });
    SESSION.store(number, Ordering::Release);
    drop(state);
    record::join();
    Ok(())
}

/// Ends the recording; `None` if there was none. What had not ended by now is not in it.
pub fn stop() -> Option<Recording> {
    let mut state = STATE.lock();
    SESSION.store(0, Ordering::Relaxed);
    let session = state.take()?;
    drop(state);
    let duration = record::nanoseconds(session.epoch);
    let mut events = Vec::new();
    let mut threads = Vec::new();
    for sink in &session.sinks {
        let mut own = std::mem::take(&mut *sink.events.lock());
        // They were noted as they ended; what lies around comes first.
        own.sort_by_key(|e| (e.start, e.depth, std::cmp::Reverse(e.duration)));
        events.append(&mut own);
        threads.push(sink.name.clone());
    }
    Some(Recording {
        dropped: COUNT.load(Ordering::Relaxed).saturating_sub(session.options.capacity),
        events,
        threads,
        started: session.started,
        duration,
        live_at_start: session.live_at_start,
        options: session.options,
    })
}

/// Forgets the recording in the child of a `fork`, where nobody will ask for it. Takes no lock, which a thread of the
/// parent may have held.
pub fn after_fork() {
    SESSION.store(0, Ordering::Relaxed);
}
