//! Errors that say which op, what it expected, what it got and what to do.

use std::fmt;

/// `Result` with sampan's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of mistake it was; each maps to one native Python exception.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// An argument has a wrong value or shape (`ValueError`).
    InvalidArgument,
    /// An argument has a wrong type or dtype (`TypeError`).
    InvalidType,
    /// An index or axis lies outside (`IndexError`).
    OutOfRange,
    /// A name or key does not exist (`KeyError`).
    NotFound,
    /// The call is not allowed in this state (`RuntimeError`).
    PreconditionNotMet,
    /// This combination is not supported (`NotImplementedError`).
    Unimplemented,
    /// The device or a library is missing (`RuntimeError`).
    Unavailable,
    /// A value became NaN or infinite while that was watched for (`FloatingPointError`).
    NotFinite,
    /// The operating system said no (`OSError`).
    External,
}

impl Kind {
    /// Paddle's name of the code, printed in front of every message.
    pub fn name(self) -> &'static str {
        match self {
            Kind::InvalidArgument => "InvalidArgument",
            Kind::InvalidType => "InvalidType",
            Kind::OutOfRange => "OutOfRange",
            Kind::NotFound => "NotFound",
            Kind::PreconditionNotMet => "PreconditionNotMet",
            Kind::Unimplemented => "Unimplemented",
            Kind::Unavailable => "Unavailable",
            Kind::NotFinite => "NotFinite",
            Kind::External => "External",
        }
    }
}

/// An error of an op, a layer, a file: `(Kind) op: message. Received …. Hint: …. In: layer.path`.
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    kind: Kind,
    op: String,
    message: String,
    received: String,
    hint: String,
    path: Vec<String>,
}

impl Error {
    /// An error of a kind with what was expected.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Parts {
            kind,
            op: String::new(),
            message: message.into(),
            received: String::new(),
            hint: String::new(),
            path: Vec::new(),
        }))
    }

    /// A wrong value or shape.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Kind::InvalidArgument, message)
    }

    /// A wrong type or dtype.
    pub fn dtype(message: impl Into<String>) -> Error {
        Error::new(Kind::InvalidType, message)
    }

    /// An index or axis outside.
    pub fn range(message: impl Into<String>) -> Error {
        Error::new(Kind::OutOfRange, message)
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = hint.into();
        self
    }

    /// Adds what was received, unless that is said already.
    pub fn received(mut self, received: impl Into<String>) -> Error {
        if self.0.received.is_empty() {
            self.0.received = received.into();
        }
        self
    }

    /// Names the op, unless an inner one is named already.
    pub fn in_op(mut self, op: &str) -> Error {
        if self.0.op.is_empty() {
            self.0.op = op.into();
        }
        self
    }

    /// Adds the layer that was running, from the inside out.
    pub fn in_layer(mut self, layer: impl Into<String>) -> Error {
        self.0.path.push(layer.into());
        self
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The op it arose in, or an empty string.
    pub fn op(&self) -> &str {
        &self.0.op
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        write!(f, "({}) ", e.kind.name())?;
        if !e.op.is_empty() {
            write!(f, "{}: ", e.op)?;
        }
        f.write_str(e.message.trim_end_matches('.'))?;
        f.write_str(".")?;
        if !e.received.is_empty() {
            write!(f, " Received {}.", e.received)?;
        }
        if !e.hint.is_empty() {
            write!(f, " Hint: {}.", e.hint.trim_end_matches('.'))?;
        }
        if !e.path.is_empty() {
            let path: Vec<_> = e.path.iter().rev().map(String::as_str).collect();
            write!(f, " In: {}", path.join(" > "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        Error::new(Kind::External, e.to_string())
    }
}

/// The panicking form of every op. Inside another op the error travels on as an unwinding [`Error`] that the outermost
/// call turns back into a `Result` (see `dispatch::outermost`); so composites and gradient formulas read like
/// mathematics and still never lose an error.
#[track_caller]
#[doc(hidden)]
pub fn unwrap<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) if crate::dispatch::inside() => std::panic::resume_unwind(Box::new(error)),
        Err(error) => panic!("{error}"),
    }
}

impl From<sampan_kernels::buffer::OutOfMemory> for Error {
    fn from(full: sampan_kernels::buffer::OutOfMemory) -> Error {
        Error::new(Kind::Unavailable, full.to_string())
    }
}

/// Shorthand for a wrong argument: `bail!("x has {} columns", n)`.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)*) => { return Err($crate::Error::invalid(format!($($arg)*))) };
}

/// Shorthand for a checked condition on arguments: `ensure!(a == b, "expected {a}, got {b}")`.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $($arg:tt)*) => { if $cond {} else { $crate::bail!($($arg)*) } };
}
