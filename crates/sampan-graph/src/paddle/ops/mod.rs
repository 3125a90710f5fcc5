//! Our ops as Paddle's and Paddle's as ours: each file has both directions of its ops side by side.

mod args;
mod arrays;
mod flow;
mod layers;
mod losses;
mod numbers;
mod quantised;
mod sequences;
mod shapes;
mod simple;
mod slices;
mod sums;
mod windows;

use super::export::{Exporter, Given};
use super::import::Importer;
use super::program::Op;
use sampan_core::Result;

/// Writes a call; false if its op has no form of its own in Paddle.
pub(crate) fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let families = [
        simple::write,
        numbers::write,
        sums::write,
        slices::write,
        shapes::write,
        windows::write,
        layers::write,
        sequences::write,
        flow::write,
        arrays::write,
        losses::write,
        quantised::write,
    ];
    for family in families {
        if family(w, call)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads an op as calls; false if nothing here is like it.
pub(crate) fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let families = [
        numbers::read,
        sums::read,
        slices::read,
        shapes::read,
        windows::read,
        layers::read,
        sequences::read,
        flow::read,
        arrays::read,
        quantised::read,
        simple::read,
    ];
    for family in families {
        if family(r, op)? {
            return Ok(true);
        }
    }
    Ok(false)
}
