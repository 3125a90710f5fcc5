//! Reading files, with errors that name them.

use sampan_core::Error;
use sampan_core::Result;
use sampan_core::error::Kind;
use std::path::Path;

/// A whole file; errors name it.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    // A device or a pipe might never end.
    if !std::fs::metadata(path).map_err(|e| file_error(path, e))?.is_file() {
        return Err(Error::invalid(format!("{}: there is no regular file at this path", path.display())));
    }
    std::fs::read(path).map_err(|e| file_error(path, e))
}

/// What the operating system says about a file.
pub(crate) fn file_error(path: &Path, e: std::io::Error) -> Error {
    let kind = if e.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::External };
    Error::new(kind, format!("{}: {e}", path.display()))
}
