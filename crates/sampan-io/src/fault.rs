//! What goes wrong inside a format, before it is said which file it was.

use sampan_core::Error;
use sampan_core::error::Kind;
use std::path::Path;

/// `Result` of everything that reads or writes one format.
pub(crate) type Parse<T> = Result<T, Fault>;

/// A cause, where it was met and what to do.
#[derive(Debug)]
pub(crate) struct Fault {
    kind: Kind,
    message: String,
    hint: String,
    offset: Option<usize>,
}

impl Fault {
    fn new(kind: Kind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into(), hint: String::new(), offset: None }
    }

    /// The bytes are not what the format says they should be.
    pub fn damaged(message: impl Into<String>) -> Fault {
        Fault::new(Kind::InvalidArgument, message)
    }

    /// The bytes are in order, but sampan has nothing to make of them.
    pub fn unsupported(message: impl Into<String>) -> Fault {
        Fault::new(Kind::Unimplemented, message)
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }

    /// Adds the place, unless a more exact one is known already.
    pub fn at(mut self, offset: usize) -> Fault {
        self.offset = self.offset.or(Some(offset));
        self
    }

    /// Puts the name of a part of the file in front.
    pub fn inside(mut self, part: &str) -> Fault {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// The error users see: file, format, offset, cause.
    pub fn into_error(self, op: &str, format: &str, path: Option<&Path>) -> Error {
        let file = path.map(|p| format!("{}: ", p.display())).unwrap_or_default();
        let place = self.offset.map(|o| format!(", byte {o}")).unwrap_or_default();
        Error::new(self.kind, format!("{file}{format}{place}: {}", self.message)).hint(self.hint).in_op(op)
    }
}

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault::new(e.kind(), e.message())
    }
}

impl From<std::io::Error> for Fault {
    fn from(e: std::io::Error) -> Fault {
        let fault = Fault::new(Kind::External, e.to_string());
        match e.kind() {
            std::io::ErrorKind::StorageFull => fault.hint("make room on the disk; what was there before is untouched"),
            std::io::ErrorKind::NotFound => fault.hint("check the path"),
            _ => fault,
        }
    }
}
