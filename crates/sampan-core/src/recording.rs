//! What is noted while a function of tensors is recorded, so that all of it can be done again as a whole: the part that GPU
//! and CPU have in common.
//!
//! On a GPU, recorded work sees the addresses and numbers of the call that was recorded. What must be different when it is done
//! again goes through *words*: places on the device that the host writes before each time ([`Live`]). On the CPU it is a
//! [tape](crate::captured) of calls, made while they are done; what is no call but belongs to the step, such as that of an
//! optimizer, is an [`act`]. What the host itself does in a step is noted too, to be done again ([`afterwards`]), and so is what
//! must still hold ([`guard`]).

use crate::captured::tape::Builder;
use crate::dispatch;
use crate::storage::{Storage, WeakStorage};
use crate::tensor::Slot;
use crate::{Error, Result, Tensor, random};
use sampan_cuda::Block;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Numbers of recorded work that change from time to time.
pub trait Live: Send {
    /// Can the work be done again as it was recorded? Nothing is changed yet.
    fn still_fits(&mut self) -> Result<bool> {
        Ok(true)
    }
    /// Moves on, and gives the numbers of the next time.
    fn next(&mut self, words: &mut [u64]) -> Result<()>;
    /// The time that `next` was for was left out by the gate: goes back.
    fn undo(&mut self) {}
}

/// A condition under which recorded work may be done again.
type Guard = Box<dyn Fn() -> bool + Send>;
/// Something that the host does each time.
type Action = Box<dyn FnMut(bool) -> Result<()> + Send>;

/// Memory that recorded work reads or writes.
#[derive(Clone)]
pub(crate) struct Touched {
    pub storage: WeakStorage,
    pub written: bool,
    /// Was it made by this work?
    pub own: bool,
}

/// What is noted while work is recorded.
pub(crate) struct Notes {
    pub work: Work,
    pub guards: Vec<Guard>,
    /// Whom the guards that stand for all of their kind belong to.
    guarded: HashSet<usize>,
    /// Leaves whose gradients are used or changed, and where these were before.
    pub leaves: Vec<(Tensor, Slot)>,
    /// Where the stream of random numbers was before.
    pub random: (u64, u64),
    pub refused: Option<String>,
}

/// What is recorded.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Work {
    Gpu(OnGpu),
    Cpu(Builder),
}

/// What is noted of a GPU's work.
pub(crate) struct OnGpu {
    /// The first words are the gate: not zero where steps of optimizers are left out.
    pub words: Vec<u64>,
    pub block: Arc<Block>,
    pub live: Vec<(std::ops::Range<usize>, Box<dyn Live>)>,
    /// Memory that the work reads or writes.
    pub touched: HashMap<usize, Touched>,
    /// Memory that was there before, kept from being used for something else.
    pub held: HashMap<u64, Arc<Block>>,
    pub actions: Vec<Action>,
    pub gated: bool,
}

/// Words that recorded work can have.
const WORDS: usize = 1 << 15;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Off,
    Gpu,
    /// On the CPU, outside of the calls that are recorded.
    Cpu,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Off) };
    /// Is there a tape, inside of recorded calls too?
    static TAPING: Cell<bool> = const { Cell::new(false) };
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// Is work of this thread being recorded? Inside of a call that the CPU records as one nothing else is.
#[inline]
pub fn on() -> bool {
    MODE.get() != Mode::Off
}

/// Is work of the CPU being recorded, outside of the calls that are?
#[inline]
pub fn on_cpu() -> bool {
    MODE.get() == Mode::Cpu
}

/// Does this thread record work of the CPU, here or around here?
#[inline]
pub fn taping() -> bool {
    TAPING.get()
}

fn begin(work: Work, mode: Mode) {
    let notes = Notes {
        work,
        guards: Vec::new(),
        guarded: HashSet::new(),
        leaves: Vec::new(),
        random: random::state(),
        refused: None,
    };
    NOTES.set(Some(notes));
    TAPING.set(mode == Mode::Cpu);
    MODE.set(mode);
}

/// The bytes that words need at most.
pub(crate) const BYTES_OF_WORDS: usize = WORDS * 8;

/// Begins to take notes of a GPU's work, whose words lie in this block.
pub(crate) fn begin_gpu(words: Arc<Block>) {
    assert!(words.len() >= BYTES_OF_WORDS, "room for all words");
    let on_gpu = OnGpu {
        words: vec![0],
        block: words,
        live: Vec::new(),
        touched: HashMap::new(),
        held: HashMap::new(),
        actions: Vec::new(),
        gated: false,
    };
    begin(Work::Gpu(on_gpu), Mode::Gpu);
}

/// Begins to take notes of the CPU's work.
pub(crate) fn begin_cpu(tape: Builder) {
    begin(Work::Cpu(tape), Mode::Cpu);
}

/// Ends taking notes.
pub(crate) fn end() -> Option<Notes> {
    MODE.set(Mode::Off);
    TAPING.set(false);
    NOTES.take()
}

fn with<R>(f: impl FnOnce(&mut Notes) -> R) -> Option<R> {
    if !on() {
        return None;
    }
    NOTES.with_borrow_mut(|notes| notes.as_mut().map(f))
}

fn with_gpu<R>(f: impl FnOnce(&mut OnGpu) -> R) -> Option<R> {
    with(|notes| if let Work::Gpu(gpu) = &mut notes.work { Some(f(gpu)) } else { None }).flatten()
}

/// The tape, where there is one: also inside of recorded calls.
pub(crate) fn with_tape<R>(f: impl FnOnce(&mut Builder) -> R) -> Option<R> {
    if !taping() {
        return None;
    }
    NOTES.with_borrow_mut(|notes| match notes.as_mut() {
        Some(Notes { work: Work::Cpu(tape), .. }) => Some(f(tape)),
        _ => None,
    })
}

/// A call that is recorded as one begins or ends: what it does inside is its own affair.
pub(crate) fn inside_call(inside: bool) {
    MODE.set(if inside { Mode::Off } else { Mode::Cpu });
}

/// Does something of the CPU's that the tape has another step for.
pub(crate) fn aside<R>(f: impl FnOnce() -> R) -> R {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            let outermost = with_tape(|tape| {
                tape.depth -= 1;
                tape.depth == 0
            });
            if outermost == Some(true) {
                inside_call(false);
            }
        }
    }
    with_tape(|tape| tape.depth += 1);
    inside_call(true);
    let _back = Back;
    f()
}

/// Says that what runs cannot be done again from a record, and why.
pub fn refuse(why: impl FnOnce() -> String) {
    let line = with(|notes| match &notes.work {
        _ if notes.refused.is_some() => None,
        Work::Cpu(tape) => Some(tape.line.clone()),
        Work::Gpu(_) => Some(None),
    });
    let Some(Some(line)) = line else { return };
    let at = line.and_then(|line| line()).map(|at| format!(" at {at}")).unwrap_or_default();
    let why = why() + &at;
    with(|notes| notes.refused.get_or_insert(why).len());
}

/// Notes a condition under which the work may be done again.
pub fn guard(condition: impl Fn() -> bool + Send + 'static) {
    with(|notes| notes.guards.push(Box::new(condition)));
}

/// Notes a condition once for all that `whose` does; `condition` is asked for it the first time.
pub fn guard_once<F: Fn() -> bool + Send + 'static>(whose: usize, condition: impl FnOnce() -> F) {
    if with(|notes| notes.guarded.insert(whose)) == Some(true) {
        guard(condition());
    }
}

/// Notes something that the host does after each time; it is told whether the gate was shut. On a GPU it is not done now, on
/// the CPU it is, as it will be: in its turn.
pub fn afterwards(mut action: impl FnMut(bool) -> Result<()> + Send + 'static) -> Result<()> {
    if on_cpu() {
        return act(&[], move |_, gate| action(gate.load(Ordering::Relaxed)).map(|()| Vec::new())).map(|_| ());
    }
    with_gpu(|gpu| gpu.actions.push(Box::new(action)));
    Ok(())
}

/// Does the host do something afterwards?
pub fn has_actions() -> bool {
    with_gpu(|gpu| !gpu.actions.is_empty()).unwrap_or(false)
}

/// Does what is no call but belongs to the work of the CPU that is recorded, such as the step of an optimizer, now and each
/// time: from tensors to tensors. `f` is given the gate as well: true where steps of optimizers are left out.
pub fn act(
    inputs: &[&Tensor],
    mut f: impl FnMut(&[Tensor], &AtomicBool) -> Result<Vec<Tensor>> + Send + 'static,
) -> Result<Vec<Tensor>> {
    let given: Vec<Tensor> = inputs.iter().map(|t| t.detach()).collect();
    let gate = with_tape(|tape| tape.gate.clone()).unwrap_or_default();
    let outputs = aside(|| f(&given, &gate))?;
    let refused = with_tape(|tape| tape.act(inputs, &outputs, Box::new(f))).flatten();
    refused.into_iter().for_each(|why| refuse(|| why));
    Ok(outputs)
}

/// Words on the device with these numbers, which change as `live` says: the address of the first.
pub fn words(numbers: &[u64], live: impl Live + 'static) -> Result<u64> {
    let placed = with_gpu(|gpu| {
        let first = gpu.words.len();
        if first + numbers.len() > WORDS {
            return Err(Error::invalid("recorded work has too many numbers that change"));
        }
        gpu.words.extend_from_slice(numbers);
        gpu.live.push((first..gpu.words.len(), Box::new(live)));
        Ok(gpu.block.address() + first as u64 * 8)
    });
    placed.unwrap_or_else(|| Err(Error::invalid("nothing is recorded")))
}

/// The address of the word that shuts the gate; steps of optimizers that are recorded from now on depend on it.
pub fn gate() -> Option<u64> {
    with_gpu(|gpu| {
        gpu.gated = true;
        gpu.block.address()
    })
}

/// The gate, if something can shut it.
pub(crate) fn gate_in_use() -> Option<u64> {
    with_gpu(|gpu| gpu.gated.then(|| gpu.block.address())).flatten()
}

/// Notes that the work depends on whether this leaf is frozen and where its gradient is.
pub fn watch(t: &Tensor) {
    leaf(t);
}

/// Notes that the gradient of a leaf is used or changed.
#[inline]
pub(crate) fn leaf(t: &Tensor) {
    if on() {
        with(|notes| {
            if !notes.leaves.iter().any(|(known, _)| known.is_same(t)) {
                let before = t.grad_slot();
                if let (Work::Cpu(tape), Slot::Held(grad)) = (&mut notes.work, &before) {
                    tape.gradient(notes.leaves.len(), grad);
                }
                notes.leaves.push((t.clone(), before));
            }
        });
    }
}

/// Notes that memory of a GPU is read or written.
pub(crate) fn touched(storage: &Storage, block: &Arc<Block>, written: bool) {
    with_gpu(|gpu| {
        let new = || Touched { storage: storage.downgrade(), written: false, own: block.is_private() };
        gpu.touched.entry(storage.address()).or_insert_with(new).written |= written;
        if !block.is_private() {
            gpu.held.insert(block.address(), block.clone());
        }
    });
}

/// Keeps memory that a GPU's work reads and that no tensor holds.
pub(crate) fn hold(block: &Arc<Block>) {
    with_gpu(|gpu| gpu.held.insert(block.address(), block.clone()));
}

/// Notes memory that is made while the CPU's work is recorded.
#[cold]
pub(crate) fn made(storage: &Storage) {
    let place = match MODE.get() {
        Mode::Off => crate::captured::tape::Made::InCall,
        _ if dispatch::inside() => crate::captured::tape::Made::ByOps,
        _ => crate::captured::tape::Made::ByHost,
    };
    with_tape(|tape| tape.made(storage, place));
}

/// Values are used by what is neither a call nor an act: that cannot be done again.
#[cold]
pub(crate) fn stray() {
    let op = with_tape(|tape| tape.composites.last().copied()).flatten();
    refuse(|| match op {
        Some(op) => format!("{op} uses values on the host"),
        None => "values are used on the host".into(),
    });
}

/// Notes that `to` is a copy of `from`, made outside of a call.
#[cold]
pub(crate) fn copied(from: &Tensor, to: &Tensor, lazily: bool) {
    let refused = with_tape(|tape| tape.copied(from, to, lazily)).flatten();
    refused.into_iter().for_each(|why| refuse(|| why));
}

/// Notes that the values of one tensor are written into the memory of another, outside of a call.
#[cold]
pub(crate) fn wrote(target: &Tensor, values: &Tensor) {
    let refused = with_tape(|tape| tape.wrote(target, values)).flatten();
    refused.into_iter().for_each(|why| refuse(|| why));
}
