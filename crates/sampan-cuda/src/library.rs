//! Shared libraries found at run time.

use crate::fault::Missing;
use libloading::Library;
use parking_lot::Mutex;
use std::path::PathBuf;

/// Folders in which libraries are looked for first.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Looks for libraries in these folders before the system's.
pub fn look_in(folders: Vec<PathBuf>) {
    *FOLDERS.lock() = folders;
}

/// Opens the first library of that name that there is.
pub(crate) fn open(names: &[&str], what: &str, hint: &str) -> Result<Library, Missing> {
    let folders = FOLDERS.lock().clone();
    let inside = |name: &&str| {
        let name = *name;
        folders.iter().map(move |f| f.join(name)).filter(|f| f.exists()).collect::<Vec<_>>()
    };
    for name in names.iter().flat_map(inside).chain(names.iter().map(PathBuf::from)) {
        // SAFETY: these are NVIDIA's libraries, whose initialisers may be run at any time.
        if let Ok(library) = unsafe { Library::new(&name) } {
            return Ok(library);
        }
    }
    Err(Missing(format!("{what} was not found (looked for {}): {hint}", names.join(", "))))
}

/// A table of functions of a library: a struct with one field for each, and `load`, which looks all of them up.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $symbol:literal: fn($($arg:ty),* $(,)?);)* }) => {
        $(#[$doc])*
        pub(crate) struct $table {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> i32,)*
        }

        impl $table {
            /// Functions that do nothing and say that all is well, for tests.
            #[cfg(test)]
            #[allow(dead_code)]
            pub(crate) fn stand_in() -> $table {
                $table {
                    $($field: {
                        unsafe extern "C" fn nothing($(_: $arg),*) -> i32 {
                            0
                        }
                        nothing
                    },)*
                }
            }

            /// Looks the functions up; the library stays open for the rest of the process.
            pub(crate) fn load(library: libloading::Library) -> std::result::Result<$table, $crate::fault::Missing> {
                let library: &'static libloading::Library = Box::leak(Box::new(library));
                Ok($table {
                    $($field: {
                        // SAFETY: the signature is the one of the library's header.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> i32>($symbol.as_bytes()) };
                        *symbol.map_err(|_| $crate::fault::Missing(format!(
                            "the installed NVIDIA library has no function {}: it is too old", $symbol
                        )))?
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;
