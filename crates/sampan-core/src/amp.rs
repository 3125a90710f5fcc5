//! Automatic mixed precision: casts inputs by the list an op is on.

use crate::op::{Amp, OpDef};
use crate::value::Args;
use crate::{DType, Result};
use std::cell::Cell;

thread_local! {
    static LEVEL: Cell<Option<DType>> = const { Cell::new(None) };
}

/// Is it on for this thread?
pub fn enabled() -> bool {
    LEVEL.get().is_some()
}

/// The low precision of this thread, if it is on.
pub fn level() -> Option<DType> {
    LEVEL.get()
}

/// Runs `f` with white-listed ops in `dtype` (float16 or bfloat16) and black-listed ones in float32.
pub fn auto_cast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    with_level(Some(dtype), f)
}

/// Runs `f` with mixed precision on or off.
pub fn with_level<R>(level: Option<DType>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<DType>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEVEL.set(self.0);
        }
    }
    let _restore = Restore(LEVEL.replace(level));
    f()
}

pub(crate) fn cast_inputs(op: &'static OpDef, args: &mut Args) -> Result<()> {
    let Some(low) = LEVEL.get() else { return Ok(()) };
    let target = match op.amp {
        Amp::White => low,
        Amp::Black => DType::Float32,
        Amp::Follow => return Ok(()),
    };
    // The casts themselves are ordinary ops and must not be cast again.
    with_level(None, || {
        args.iter_mut().try_for_each(|v| {
            v.map_tensors(&mut |t| {
                let cast = t.dtype().is_float() && t.dtype() != target && t.dtype() != DType::Float64;
                if cast { t.try_cast(target) } else { Ok(t.clone()) }
            })
        })
    })
}
