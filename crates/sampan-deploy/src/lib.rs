//! What runs saved networks from the command line: parts of the `sampan` command, and a small program of their own.

mod infer;
mod info;
mod serve;

pub use infer::Infer;
pub use info::{Info, More};
pub use serve::Serve;

use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::io::Write;

/// Writes a line to standard output. Whoever reads it may have left, as in `| head -1`: that is no error.
pub fn print_line(line: impl std::fmt::Display) -> std::io::Result<()> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(()),
    }
}

/// Writes a line of the answer to standard output.
pub fn say(line: impl std::fmt::Display) -> Result<()> {
    print_line(line)
        .map_err(|e| Error::new(Kind::External, format!("cannot write to standard output: {e}")).in_op("sampan"))
}
