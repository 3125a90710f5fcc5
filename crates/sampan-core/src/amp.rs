//! Automatic mixed precision: casts inputs by the list an op is on.

use crate::op::{Amp, OpDef};
use crate::value::Args;
use crate::{DType, Result};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

/// How much is computed in the low precision: Paddle's levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// White-listed ops in the low precision, black-listed ones in float32, others follow their inputs.
    #[default]
    O1,
    /// All but a few black-listed ops in the low precision.
    O2,
    /// White-listed ops in the low precision, all others in float32.
    OD,
}

/// Which ops are computed in which precision.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The low precision: float16 or bfloat16.
    pub dtype: DType,
    /// How much is computed in it.
    pub level: Level,
    /// Ops that are computed in it besides those of the level.
    pub white: HashSet<String>,
    /// Ops that are computed in float32 besides those of the level.
    pub black: HashSet<String>,
    /// At level O2: does an op with a float32 input stay in float32?
    pub use_promote: bool,
}

impl Policy {
    /// The same text for policies that do the same.
    pub(crate) fn describe(&self) -> String {
        let sorted = |names: &HashSet<String>| {
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.sort_unstable();
            names.join(" ")
        };
        let (white, black) = (sorted(&self.white), sorted(&self.black));
        format!("{} {:?} {} {white} {black}", self.dtype, self.level, self.use_promote)
    }

    /// Level O1 without lists of its own.
    pub fn new(dtype: DType) -> Policy {
        Policy { dtype, level: Level::O1, white: HashSet::new(), black: HashSet::new(), use_promote: true }
    }

    /// Where the arguments of a call go: white, black or as they come.
    fn list(&self, op: &OpDef) -> Amp {
        match op.amp {
            _ if self.black.contains(op.name) => Amp::Black,
            _ if self.white.contains(op.name) => Amp::White,
            Amp::White => Amp::White,
            amp => match (self.level, amp) {
                (Level::O1, Amp::Black | Amp::BlackData) => Amp::Black,
                (Level::O1, _) => Amp::Follow,
                // What an op is made of has the precision that the op chose.
                _ if crate::dispatch::inside() => Amp::Follow,
                (Level::OD, _) | (Level::O2, Amp::BlackO2) => Amp::Black,
                (Level::O2, _) if self.use_promote => Amp::Follow,
                (Level::O2, _) => Amp::White,
            },
        }
    }
}

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static POLICY: RefCell<Option<Arc<Policy>>> = const { RefCell::new(None) };
}

/// Is it on for this thread?
pub fn enabled() -> bool {
    ON.get()
}

/// The policy of this thread, if it is on.
pub fn level() -> Option<Arc<Policy>> {
    POLICY.with_borrow(Clone::clone)
}

/// Are calls of these ops computed in the precision of their data, mixed precision or not?
pub fn leaves(ops: &[&str]) -> bool {
    let follows = |policy: &Policy, name: &&str| crate::op::find(name).is_some_and(|op| policy.list(op) == Amp::Follow);
    level().is_none_or(|policy| ops.iter().all(|name| follows(&policy, name)))
}

/// Switches mixed precision of this thread on or off, and gives back what was there before.
pub fn set_level(policy: Option<Arc<Policy>>) -> Option<Arc<Policy>> {
    ON.set(policy.is_some());
    POLICY.replace(policy)
}

/// Runs `f` with white-listed ops in `dtype` (float16 or bfloat16) and black-listed ones in float32.
pub fn auto_cast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    with_level(Some(Arc::new(Policy::new(dtype))), f)
}

/// Runs `f` with mixed precision on or off.
pub fn with_level<R>(policy: Option<Arc<Policy>>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<Policy>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_level(self.0.take());
        }
    }
    let _restore = Restore(set_level(policy));
    f()
}

/// Casts the arguments of a call; true if what the op calls itself is to be left alone.
pub(crate) fn cast_inputs(op: &'static OpDef, args: &mut Args) -> Result<bool> {
    let Some(policy) = level().filter(|_| op.amp != Amp::Keep) else { return Ok(false) };
    let list = policy.list(op);
    let target = match list {
        Amp::White => policy.dtype,
        Amp::Black => DType::Float32,
        _ => match widest(op, args) {
            Some(widest) => widest,
            None => return Ok(false),
        },
    };
    let count = if op.amp == Amp::Data { 1 } else { args.len() };
    // The casts themselves are ordinary ops and must not be cast again.
    with_level(None, || {
        args.iter_mut().take(count).try_for_each(|v| {
            v.map_tensors(&mut |t| {
                let cast = t.dtype().is_float() && t.dtype() != target && t.dtype() != DType::Float64;
                if cast { t.try_cast(target) } else { Ok(t.clone()) }
            })
        })
    })?;
    // What a black-listed op is made of is computed in float32 too.
    Ok(list == Amp::Black)
}

/// The arguments of a call with half precision ones in float32, if there are any: for an op that has no half precision.
pub(crate) fn widened(args: &Args) -> Option<Args> {
    let mut args = args.clone();
    let mut any = false;
    let cast = |v: &mut crate::Value| {
        v.map_tensors(&mut |t| {
            let half = matches!(t.dtype(), DType::Float16 | DType::BFloat16);
            any |= half;
            if half { t.try_cast(DType::Float32) } else { Ok(t.clone()) }
        })
    };
    let cast = with_level(None, || args.iter_mut().try_for_each(cast));
    (cast.is_ok() && any).then_some(args)
}

/// What the arguments of a call go to if they are mixed. Inside other ops nothing is mixed without a purpose.
fn widest(op: &OpDef, args: &Args) -> Option<DType> {
    if crate::dispatch::inside() || matches!(op.amp, Amp::Data | Amp::BlackData) {
        return None;
    }
    let (mut single, mut half) = (false, false);
    for v in args.iter() {
        v.for_each_tensor(&mut |t| match t.dtype() {
            DType::Float32 => single = true,
            DType::Float16 | DType::BFloat16 => half = true,
            _ => {}
        });
    }
    (single && half).then_some(DType::Float32)
}
