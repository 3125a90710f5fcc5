//! Errors as numbers, with a sentence that is kept for the thread.

use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What went wrong: the kinds of errors, in their order.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Status {
    Ok = 0,
    InvalidArgument = 1,
    InvalidType = 2,
    OutOfRange = 3,
    NotFound = 4,
    Precondition = 5,
    Unimplemented = 6,
    Unavailable = 7,
    NotFinite = 8,
    External = 9,
    Internal = 10,
}

impl From<Kind> for Status {
    fn from(kind: Kind) -> Status {
        match kind {
            Kind::InvalidArgument => Status::InvalidArgument,
            Kind::InvalidType => Status::InvalidType,
            Kind::OutOfRange => Status::OutOfRange,
            Kind::NotFound => Status::NotFound,
            Kind::PreconditionNotMet => Status::Precondition,
            Kind::Unimplemented => Status::Unimplemented,
            Kind::Unavailable => Status::Unavailable,
            Kind::NotFinite => Status::NotFinite,
            Kind::External => Status::External,
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn note(message: &str) {
    let text = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    // A thread that is ending has no such place any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// Runs what may fail; the error is kept as a sentence.
pub(crate) fn status(f: impl FnOnce() -> Result<()>) -> Status {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(e)) => {
            note(&e.to_string());
            e.kind().into()
        }
        Err(panic) => {
            // An op that is called in its panicking form unwinds with its error.
            let error = panic.downcast_ref::<Error>().map(|e| (e.to_string(), e.kind().into()));
            let (text, status) = error.unwrap_or_else(|| {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                (format!("a mistake in sampan: {said}"), Status::Internal)
            });
            note(&text);
            // What the panic carries may panic once more when it goes; it is small, and stays.
            std::mem::forget(panic);
            status
        }
    }
}

/// Runs what cannot fail; should it panic, its type's default is the answer.
pub(crate) fn or_default<T: Default>(f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_default()
}

/// What the last failure of this thread was.
#[unsafe(no_mangle)]
pub extern "C" fn sampan_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
