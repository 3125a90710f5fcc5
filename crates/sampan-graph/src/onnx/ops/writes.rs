//! Values written at places, and views.

use crate::given::Given;
use crate::graph::{Id, Size};
use crate::index::{Bounds, OPEN};
use crate::onnx::export::Writer;
use sampan_core::Result;
use sampan_io::onnx::model::Attr;

/// One axis of a part: from where to where.
type Range = (i64, Size, Size);

/// The tensor with another part: what lies before, the new part, what lies behind, axis by axis.
fn replaced(w: &mut Writer, x: &str, ranges: &[Range], value: &str) -> Result<String> {
    let Some(((axis, from, to), rest)) = ranges.split_first() else {
        let shape = w.op("Shape", &[x]);
        return Ok(w.op("Expand", &[value, &shape]));
    };
    let at = w.ints(&[*axis])?;
    let (begin, end) = (w.ints(&[0])?, w.ints(&[i64::MAX])?);
    let (start, stop) = (w.size(from)?, w.size(to)?);
    let part = w.op("Slice", &[x, &start, &stop, &at]);
    let mut parts = Vec::new();
    if from.as_fixed() != Some(0) {
        parts.push(w.op("Slice", &[x, &begin, &start, &at]));
    }
    parts.push(replaced(w, &part, rest, value)?);
    if to.as_fixed() != Some(OPEN) {
        parts.push(w.op("Slice", &[x, &stop, &end, &at]));
    }
    if parts.len() == 1 {
        return Ok(parts.swap_remove(0));
    }
    Ok(w.node("Concat", parts, vec![("axis", Attr::Int(*axis))]))
}

fn set_item(w: &mut Writer, call: &Given, id: Id) -> Result<Option<String>> {
    let known = w.known(id).clone();
    let rank = known.dims.len();
    let Some(b) = Bounds::of(call, rank) else { return Ok(None) };
    let plain = b.picks.is_empty() && b.new.is_empty() && b.steps.iter().all(|s| *s == 1);
    if call.bool("accumulate") || !plain {
        return Ok(None);
    }
    let value = match (call.id("value"), call.float("value")) {
        (Some(v), _) => {
            let mut value = w.cast_id(v, known.dtype)?;
            let own = w.known(v).dims.len();
            if own > 0 && !b.gone.is_empty() {
                // As many axes as there are, with ones where an index took one away.
                let lead = (rank - b.gone.len()).saturating_sub(own);
                if lead > 0 {
                    let axes = w.ints(&(0..lead as i64).collect::<Vec<_>>())?;
                    value = w.op("Unsqueeze", &[&value, &axes]);
                }
                let axes = w.ints(&b.gone)?;
                value = w.op("Unsqueeze", &[&value, &axes]);
            }
            value
        }
        (None, Some(number)) => w.number(number, known.dtype)?,
        _ => return Ok(None),
    };
    let ranges = (0..b.axes.len()).map(|i| (b.axes[i], b.starts[i].clone(), b.ends[i].clone())).collect::<Vec<_>>();
    let x = w.name(id)?;
    replaced(w, &x, &ranges, &value).map(Some)
}

/// A view by starts, lengths and steps.
fn view(w: &mut Writer, call: &Given, id: Id) -> Result<Option<String>> {
    let (Some(starts), Some(lens), Some(steps)) = (call.sizes("starts"), call.sizes("lens"), call.ints("steps")) else {
        return Ok(None);
    };
    let mut ends = Vec::new();
    for ((start, len), step) in starts.iter().zip(&lens).zip(&steps) {
        ends.push(match (start.as_fixed(), len.as_fixed(), *step) {
            (Some(start), Some(len), step) => {
                let end = start + len * step;
                Size::fixed(if end < 0 { i64::MIN } else { end })
            }
            (Some(start), None, 1) => Size { plus: len.plus + start * len.over, ..len.clone() },
            _ => return Ok(None),
        });
    }
    let axes = w.ints(&(0..starts.len() as i64).collect::<Vec<_>>())?;
    let (x, starts, ends, steps) = (w.name(id)?, w.sizes(&starts)?, w.sizes(&ends)?, w.ints(&steps)?);
    Ok(Some(w.op("Slice", &[&x, &starts, &ends, &axes, &steps])))
}

fn put(w: &mut Writer, call: &Given) -> Result<Option<String>> {
    let ids = (call.id("arr"), call.id("indices"), call.id("values"), call.int("axis"));
    let (Some(x), Some(index), Some(values), Some(axis)) = ids else { return Ok(None) };
    let (word, since) = match call.text("reduce").unwrap_or("assign") {
        "assign" => ("none", 13),
        "add" => ("add", 16),
        "mul" | "multiply" => ("mul", 16),
        "amax" => ("max", 18),
        "amin" => ("min", 18),
        _ => return Ok(None),
    };
    let (own, other) = (&w.known(x).dims, &w.known(index).dims);
    let at = if axis < 0 { axis + own.len() as i64 } else { axis } as usize;
    let alike = own.len() == other.len() && (0..own.len()).all(|i| i == at || own[i] == other[i]);
    let whole = word == "none" || call.arg("include_self").is_none() || call.bool("include_self");
    if w.opset() < since || !alike || !whole || w.known(values).dims != *other {
        return Ok(None);
    }
    let dtype = w.known(x).dtype;
    let inputs = vec![w.name(x)?, w.name(index)?, w.cast_id(values, dtype)?];
    let mut attrs = vec![("axis", Attr::Int(axis))];
    if word != "none" {
        attrs.push(("reduction", Attr::Text(word.into())));
    }
    Ok(Some(w.node("ScatterElements", inputs, attrs)))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let y = match (call.name(), call.id("x")) {
        ("setitem", Some(id)) => set_item(w, call, id)?,
        ("view_slice", Some(id)) => view(w, call, id)?,
        ("put_along_axis", _) => put(w, call)?,
        _ => None,
    };
    match y {
        Some(y) => w.bind(call.out(), y),
        None => return Ok(false),
    }
    Ok(true)
}
