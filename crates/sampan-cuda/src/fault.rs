//! What can go wrong on a device.

use std::fmt;

/// Why there is no GPU to work on: one sentence for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call on the device that failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A number that names a row or a class lies outside its limit.
    Index {
        /// The op that was given it.
        op: &'static str,
        /// Where it stands.
        position: i64,
        /// The number.
        value: i64,
        /// One more than the largest that is allowed.
        limit: i64,
    },
    /// There is no device, or a library is absent.
    Missing(Missing),
    /// The memory is full, caches released.
    OutOfMemory {
        /// The bytes that were asked for.
        wanted: usize,
        /// The bytes that are free on the device.
        free: usize,
        /// The bytes the device has.
        total: usize,
    },
    /// Work is being recorded, of which nothing has been done yet: values cannot be asked for.
    Recording {
        /// What was asked for.
        what: &'static str,
    },
    /// A function of the driver or a library said no.
    Call {
        /// The function.
        function: &'static str,
        /// What it said.
        said: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing(why) => write!(f, "{why}"),
            Fault::OutOfMemory { wanted, free, total } => {
                let mib = |bytes: &usize| bytes.div_ceil(1 << 20);
                write!(
                    f,
                    "the GPU's memory is full: {} MiB were asked for, {} of {} MiB are free",
                    mib(wanted),
                    mib(free),
                    mib(total)
                )
            }
            Fault::Index { op, position, value, limit } => {
                write!(f, "index {value} at position {position} of {op} lies outside [0, {limit})")
            }
            Fault::Recording { what } => {
                write!(f, "work for the GPU is being recorded, and nothing of it has been done yet: {what} must wait")
            }
            Fault::Call { function, said } => write!(f, "the GPU failed in {function}: {said}"),
        }
    }
}

impl From<Missing> for Fault {
    fn from(why: Missing) -> Fault {
        Fault::Missing(why)
    }
}

/// What calls on the device return.
pub type Result<T> = std::result::Result<T, Fault>;
