//! Learning rates that change during training: Paddle's `optimizer.lr`.
//!
//! ```
//! use sampan_nn::lr::StepDecay;
//! use sampan_nn::{Linear, Members, SGD};
//! let net = Linear::new(2, 1);
//! let schedule = StepDecay::new(0.5, 3);
//! let opt = SGD::new(&schedule, net.parameters());
//! (0..3).for_each(|_| schedule.step());
//! assert_eq!(opt.get_lr(), 0.05);
//! ```

mod cosine;
mod cycle;
mod decay;
mod plateau;
mod warmup;

pub use cosine::*;
pub use cycle::*;
pub use decay::*;
pub use plateau::*;
pub use warmup::*;

use sampan_core::error::Kind;
use sampan_core::recording;
use sampan_core::value::Arg;
use sampan_core::{Dict, Error, Object, Result, Value, ensure};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where a schedule stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// The learning rate it began with.
    pub base_lr: f64,
    /// The learning rate of the last step.
    pub last_lr: f64,
    /// Steps taken; the first learning rate has number 0.
    pub last_epoch: i64,
    /// How far into the epoch it was set, from 0 to below 1.
    pub fraction: f64,
    /// Print each new learning rate?
    pub verbose: bool,
}

/// How a learning rate follows the epoch. [`Schedule::new`] makes it usable by an optimizer.
///
/// ```
/// use sampan_core::Result;
/// use sampan_nn::lr::{Clock, LRScheduler, Schedule};
/// struct Halved;
/// impl LRScheduler for Halved {
///     fn get_lr(&self, clock: &Clock) -> Result<f64> {
///         Ok(clock.base_lr * 0.5f64.powi(clock.last_epoch as i32))
///     }
/// }
/// let schedule = Schedule::new(Halved, 0.8, -1, false)?;
/// schedule.step();
/// assert_eq!(schedule.last_lr(), 0.4);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub trait LRScheduler: Send {
    /// The learning rate of `clock.last_epoch`; `clock.last_lr` is still that of the step before.
    fn get_lr(&self, clock: &Clock) -> Result<f64>;

    /// The learning rate of an epoch that was named, where it differs from the one reached step by step.
    fn closed_form_lr(&self, clock: &Clock) -> Result<f64> {
        self.get_lr(clock)
    }

    /// Is it one that follows a measured value? Then it moves by [`Schedule::step_with`].
    fn needs_metric(&self) -> bool {
        false
    }

    /// Takes a measured value into account.
    fn observe(&mut self, _clock: &mut Clock, _metric: f64) {}

    /// Adds what it must remember besides the clock.
    fn save(&self, _state: &mut Dict) {}

    /// Takes over what [`save`](LRScheduler::save) added.
    fn load(&mut self, _state: &Dict) -> Result<()> {
        Ok(())
    }

    /// What a printed line calls it.
    fn name(&self) -> &str {
        crate::layer::short_name::<Self>()
    }
}

/// A scheduler that optimizer and user share: a clone is the same schedule.
#[derive(Clone)]
pub struct Schedule(Source);

#[derive(Clone)]
enum Source {
    Own(Arc<Mutex<State>>),
    Foreign(Arc<dyn ForeignSchedule>),
}

/// A schedule that keeps its own clock, such as one written in another language.
pub trait ForeignSchedule: Send + Sync {
    /// Goes to the next epoch, or to a given one.
    fn step(&self, epoch: Option<f64>) -> Result<()>;

    /// Where it stands.
    fn clock(&self) -> Clock;

    /// What must be kept to go on later.
    fn state_dict(&self) -> Result<Dict>;

    /// Goes on from a kept state.
    fn set_state_dict(&self, state: &Dict) -> Result<()>;
}

struct State {
    clock: Clock,
    scheduler: Box<dyn LRScheduler>,
}

static PRINTER: OnceLock<fn(&str)> = OnceLock::new();

/// Hands the lines of verbose schedules to another printer than the standard output; the first one stays.
pub fn set_printer(print: fn(&str)) {
    let _ = PRINTER.set(print);
}

impl State {
    fn step(&mut self, epoch: Option<f64>) -> Result<()> {
        let State { clock, scheduler } = self;
        if scheduler.needs_metric() {
            return Err(Error::new(Kind::PreconditionNotMet, "follows a measured value")
                .hint("call step_with(value)")
                .in_op(scheduler.name()));
        }
        let before = clock.clone();
        let lr = match epoch {
            None => {
                (clock.last_epoch, clock.fraction) = (clock.last_epoch + 1, 0.0);
                scheduler.get_lr(clock)
            }
            Some(epoch) => {
                (clock.last_epoch, clock.fraction) = (epoch.floor() as i64, epoch - epoch.floor());
                scheduler.closed_form_lr(clock)
            }
        };
        match lr {
            Ok(lr) => clock.last_lr = lr,
            Err(e) => {
                *clock = before;
                return Err(e.in_op(scheduler.name()));
            }
        }
        self.report();
        Ok(())
    }

    fn report(&self) {
        if self.clock.verbose {
            let Clock { last_epoch, last_lr, .. } = self.clock;
            let line = format!("Epoch {last_epoch}: {} set learning rate to {last_lr:?}.", self.scheduler.name());
            PRINTER.get().map_or_else(|| println!("{line}"), |print| print(&line));
        }
    }
}

impl Schedule {
    /// A schedule that has taken its first step.
    pub fn new(scheduler: impl LRScheduler + 'static, lr: f64, last_epoch: i64, verbose: bool) -> Result<Schedule> {
        let mut state = State::new(scheduler, lr, last_epoch, verbose)?;
        state.step(None)?;
        Ok(Schedule(Source::Own(Arc::new(Mutex::new(state)))))
    }

    /// A schedule that keeps its own clock.
    pub fn foreign(schedule: impl ForeignSchedule + 'static) -> Schedule {
        Schedule(Source::Foreign(Arc::new(schedule)))
    }

    /// A schedule that stands where it is put.
    pub(crate) fn standing(
        scheduler: impl LRScheduler + 'static,
        lr: f64,
        last_epoch: i64,
        verbose: bool,
    ) -> Result<Schedule> {
        Ok(Schedule(Source::Own(Arc::new(Mutex::new(State::new(scheduler, lr, last_epoch, verbose)?)))))
    }

    /// A schedule that is a function of the clock.
    pub(crate) fn of(
        name: &'static str,
        lr: f64,
        last_epoch: i64,
        verbose: bool,
        f: impl Fn(&Clock) -> Result<f64> + Send + 'static,
    ) -> Result<Schedule> {
        struct Function<F>(F, &'static str);
        impl<F: Fn(&Clock) -> Result<f64> + Send> LRScheduler for Function<F> {
            fn get_lr(&self, clock: &Clock) -> Result<f64> {
                (self.0)(clock)
            }
            fn name(&self) -> &str {
                self.1
            }
        }
        Schedule::new(Function(f, name), lr, last_epoch, verbose)
    }

    /// Its own state, or the schedule elsewhere.
    fn source(&self) -> std::result::Result<MutexGuard<'_, State>, &dyn ForeignSchedule> {
        match &self.0 {
            Source::Own(state) => Ok(state.lock().unwrap_or_else(PoisonError::into_inner)),
            Source::Foreign(f) => Err(&**f),
        }
    }

    /// Goes to the next epoch (or batch: whatever it is called after). Panics where [`try_step`](Self::try_step) fails.
    #[track_caller]
    pub fn step(&self) {
        sampan_core::error::unwrap(self.try_step(None))
    }

    /// Goes to an epoch; a fraction of one counts where the schedule is continuous.
    #[track_caller]
    pub fn step_to(&self, epoch: impl Into<f64>) {
        sampan_core::error::unwrap(self.try_step(Some(epoch.into())))
    }

    /// Goes to the next epoch, or to a given one.
    pub fn try_step(&self, epoch: Option<f64>) -> Result<()> {
        if recording::on() {
            let this = self.clone();
            return recording::afterwards(move |_| this.try_step(epoch));
        }
        match self.source() {
            Ok(mut state) => state.step(epoch),
            Err(foreign) => foreign.step(epoch),
        }
    }

    /// Tells a schedule that follows a measured value, such as the validation loss, what it is now.
    pub fn step_with(&self, metric: f64) -> Result<()> {
        self.try_step_with(metric, None)
    }

    /// [`step_with`](Self::step_with) at a given epoch.
    pub fn try_step_with(&self, metric: f64, epoch: Option<i64>) -> Result<()> {
        recording::refuse(|| "a schedule follows a measured value".into());
        let mut state = match self.source() {
            Ok(state) if state.scheduler.needs_metric() => state,
            Ok(mut state) => return state.step(epoch.map(|e| e as f64)),
            Err(foreign) => return foreign.step(epoch.map(|e| e as f64)),
        };
        let before = state.clock.last_lr;
        let State { clock, scheduler } = &mut *state;
        clock.last_epoch = epoch.unwrap_or(clock.last_epoch + 1);
        scheduler.observe(clock, metric);
        if clock.last_lr != before {
            state.report();
        }
        Ok(())
    }

    /// Does it follow a measured value?
    pub fn needs_metric(&self) -> bool {
        self.source().is_ok_and(|state| state.scheduler.needs_metric())
    }

    /// The learning rate now.
    pub fn last_lr(&self) -> f64 {
        self.clock().last_lr
    }

    /// The learning rate now; Paddle's name for it when the schedule is called.
    pub fn get_lr(&self) -> f64 {
        self.last_lr()
    }

    /// The epoch it stands at.
    pub fn last_epoch(&self) -> i64 {
        self.clock().last_epoch
    }

    /// Where it stands.
    pub fn clock(&self) -> Clock {
        match self.source() {
            Ok(state) => state.clock.clone(),
            Err(foreign) => foreign.clock(),
        }
    }

    /// Puts it somewhere else. A schedule that lives elsewhere is moved there.
    pub fn set_clock(&self, clock: Clock) {
        if let Ok(mut state) = self.source() {
            state.clock = clock;
        }
    }

    /// The learning rate that the rule gives for where it stands, without moving; `named` if the epoch was set rather than
    /// reached step by step.
    pub fn compute_lr(&self, named: bool) -> Result<f64> {
        match self.source() {
            Ok(state) if named => state.scheduler.closed_form_lr(&state.clock),
            Ok(state) => state.scheduler.get_lr(&state.clock),
            Err(foreign) => Ok(foreign.clock().last_lr),
        }
    }

    /// What must be kept to go on later.
    pub fn try_state_dict(&self) -> Result<Dict> {
        let state = match self.source() {
            Ok(state) => state,
            Err(foreign) => return foreign.state_dict(),
        };
        let mut dict = Dict::new();
        state.scheduler.save(&mut dict);
        dict.insert("last_epoch", state.clock.last_epoch);
        dict.insert("last_lr", state.clock.last_lr);
        Ok(dict)
    }

    /// What must be kept to go on later. Panics where a schedule that lives elsewhere fails to say it.
    #[track_caller]
    pub fn state_dict(&self) -> Dict {
        sampan_core::error::unwrap(self.try_state_dict())
    }

    /// Goes on from a kept state.
    pub fn set_state_dict(&self, dict: &Dict) -> Result<()> {
        let mut state = match self.source() {
            Ok(state) => state,
            Err(foreign) => return foreign.set_state_dict(dict),
        };
        let number = |key: &str| {
            let value = dict.get(key).ok_or_else(|| missing(key))?;
            f64::get(value, key)
        };
        let (epoch, lr) = (number("last_epoch")?, number("last_lr")?);
        state.scheduler.load(dict)?;
        (state.clock.last_epoch, state.clock.fraction, state.clock.last_lr) = (epoch as i64, 0.0, lr);
        Ok(())
    }

    /// Are both the same schedule?
    pub fn is_same(&self, other: &Schedule) -> bool {
        match (&self.0, &other.0) {
            (Source::Own(a), Source::Own(b)) => Arc::ptr_eq(a, b),
            (Source::Foreign(a), Source::Foreign(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

pub(crate) fn missing(key: &str) -> Error {
    Error::new(Kind::NotFound, format!("the schedule's state has no `{key}`"))
        .hint("it was saved by another kind of schedule")
        .in_op("set_state_dict")
}

impl State {
    fn new(scheduler: impl LRScheduler + 'static, lr: f64, last_epoch: i64, verbose: bool) -> Result<State> {
        ensure!(lr >= 0.0, "the learning rate must not be negative, got {lr}");
        let clock = Clock { base_lr: lr, last_lr: lr, last_epoch, fraction: 0.0, verbose };
        Ok(State { clock, scheduler: Box::new(scheduler) })
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clock = self.clock();
        let name = self.source().map_or_else(|_| "a schedule".into(), |s| s.scheduler.name().to_string());
        write!(f, "{name} at epoch {}: {}", clock.last_epoch, clock.last_lr)
    }
}

/// A schedule for those who build by name.
pub fn object(schedule: Schedule) -> Object {
    Object::new(schedule)
}

/// A learning rate: a number or a schedule.
#[derive(Clone, Debug)]
pub enum LearningRate {
    /// Always the same, until it is set.
    Fixed(f64),
    /// Whatever the schedule says.
    Scheduled(Schedule),
}

impl LearningRate {
    /// Its value now.
    pub fn get(&self) -> f64 {
        match self {
            LearningRate::Fixed(lr) => *lr,
            LearningRate::Scheduled(s) => s.last_lr(),
        }
    }
}

impl From<f64> for LearningRate {
    fn from(lr: f64) -> LearningRate {
        LearningRate::Fixed(lr)
    }
}
impl From<Schedule> for LearningRate {
    fn from(s: Schedule) -> LearningRate {
        LearningRate::Scheduled(s)
    }
}
impl From<&Schedule> for LearningRate {
    fn from(s: &Schedule) -> LearningRate {
        LearningRate::Scheduled(s.clone())
    }
}
impl From<LearningRate> for Value {
    fn from(lr: LearningRate) -> Value {
        match lr {
            LearningRate::Fixed(lr) => Value::Float(lr),
            LearningRate::Scheduled(s) => Value::Object(Object::new(s)),
        }
    }
}

impl<'a> Arg<'a> for LearningRate {
    const EXPECTED: &'static str = "a float or an LRScheduler";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::Float(lr) => Some(LearningRate::Fixed(*lr)),
            Value::Int(lr) => Some(LearningRate::Fixed(*lr as f64)),
            Value::Object(o) => o.downcast::<Schedule>().cloned().map(LearningRate::Scheduled),
            _ => None,
        }
    }
}
