//! ONNX's operators as our calls, and ours as ONNX's: each file has both directions of its ops side by side.

mod attention;
mod elementwise;
mod flow;
mod formulas;
mod layers;
mod losses;
mod made;
mod order;
mod padding;
mod pools;
mod products;
mod quantised;
mod recurrent;
mod reduce;
mod regions;
mod resize;
mod select;
mod shapes;
mod signal;
mod simple;
mod windows;
mod writes;

use super::eval::Item;
use super::export::Writer;
use super::node::Call;
use crate::given::Given;
use sampan_core::Result;

/// Evaluates a node; `None` if its operator is not known.
pub(super) fn read(call: &Call) -> Result<Option<Vec<Item>>> {
    if !call.node.domain.is_empty() {
        return Ok(None);
    }
    let families = [
        simple::read,
        elementwise::read,
        made::read,
        shapes::read,
        padding::read,
        select::read,
        order::read,
        reduce::read,
        products::read,
        layers::read,
        windows::read,
        pools::read,
        resize::read,
        recurrent::read,
        quantised::read,
        losses::read,
        signal::read,
        regions::read,
        flow::read,
    ];
    for family in families {
        if let Some(found) = family(call)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Writes a call; false if its op has no form of its own in ONNX.
pub(super) fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let families = [
        simple::write,
        elementwise::write,
        made::write,
        shapes::write,
        padding::write,
        select::write,
        writes::write,
        order::write,
        reduce::write,
        products::write,
        layers::write,
        windows::write,
        pools::write,
        resize::write,
        recurrent::write,
        attention::write,
        quantised::write,
        losses::write,
        regions::write,
        flow::write,
    ];
    for family in families {
        if family(w, call)? {
            return Ok(true);
        }
    }
    Ok(false)
}
