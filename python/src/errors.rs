//! Errors as native Python exceptions, and back.

use pyo3::exceptions::{
    PyFloatingPointError, PyIndexError, PyKeyError, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError,
    PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use sampan_core::Error;
use sampan_core::error::Kind;
use std::cell::RefCell;

/// What an error says that stands for a Python exception on its way through Rust.
const PASSING: &str = "a Python function raised an exception";

thread_local! {
    /// The exception that is passing through Rust on this thread.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception that an error becomes.
pub fn raise(error: Error) -> PyErr {
    if error.message() == PASSING
        && let Some(exception) = PENDING.take()
    {
        return exception;
    }
    let text = without_root(error.to_string());
    if error.message().starts_with("out of memory") {
        return PyMemoryError::new_err(text);
    }
    match error.kind() {
        Kind::InvalidArgument => PyValueError::new_err(text),
        Kind::InvalidType => PyTypeError::new_err(text),
        Kind::OutOfRange => PyIndexError::new_err(text),
        Kind::NotFound => PyKeyError::new_err(text),
        Kind::PreconditionNotMet | Kind::Unavailable => PyRuntimeError::new_err(text),
        Kind::Unimplemented => PyNotImplementedError::new_err(text),
        Kind::NotFinite => PyFloatingPointError::new_err(text),
        Kind::External => PyOSError::new_err(text),
    }
}

/// The text without the layer it ends with, where that is the very layer that Python called and will name itself.
fn without_root(mut text: String) -> String {
    if let Some(at) = text.rfind(" In: ") {
        let words: Vec<&str> = text[at + 5..].trim_end_matches('.').split(' ').collect();
        if let [name, kind] = words[..]
            && kind.trim_matches(['(', ')']) == name
        {
            text.truncate(at);
        }
    }
    text
}

/// The error that a Python exception travels as until [`raise`] gives it back unchanged.
pub fn passing(exception: PyErr) -> Error {
    PENDING.set(Some(exception));
    Error::new(Kind::PreconditionNotMet, PASSING)
}

/// Runs Rust code without the interpreter's lock. A panic is a mistake of ours; it becomes an exception that says so.
pub fn run<T: Send>(py: Python<'_>, f: impl FnOnce() -> sampan_core::Result<T> + Send) -> PyResult<T> {
    py.detach(|| guarded(f)).and_then(|result| result.map_err(raise))
}

/// Like [`run`], with the lock.
pub fn run_here<T>(f: impl FnOnce() -> sampan_core::Result<T>) -> PyResult<T> {
    guarded(f).and_then(|result| result.map_err(raise))
}

/// Like [`run_here`], for what is Python's already.
pub fn guard<T>(f: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    guarded(f).and_then(|result| result)
}

fn guarded<T>(f: impl FnOnce() -> T) -> PyResult<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        // The panicking form of a call, where it is not inside another call, says the error it stands for.
        let own = text.to_string();
        match text.split_once(") ") {
            Some(("(Unavailable", rest)) if rest.starts_with("out of memory") => PyMemoryError::new_err(own),
            Some(("(InvalidArgument", _)) => PyValueError::new_err(own),
            Some(("(InvalidType", _)) => PyTypeError::new_err(own),
            Some(("(OutOfRange", _)) => PyIndexError::new_err(own),
            _ => PyRuntimeError::new_err(format!("(Internal) sampan made a mistake, please report it: {own}")),
        }
    })
}
