//! Losses, which ONNX has for training.

use crate::given::Given;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, many, one, op};
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;

/// The negative logarithms of labels' probabilities, weighed and reduced.
fn negative_log(c: &Call, logs: &Tensor, label: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    let ignored = c.attr("ignore_index").map(|_| c.int("ignore_index", -1));
    let label = op!("cast", label, DType::Int64)?;
    let counts = match ignored {
        Some(i) => op!("not_equal", &label, i)?,
        None => op!("full_like", &label, true, DType::Bool)?,
    };
    let zero = op!("full", [1i64; 0], 0i64, DType::Int64)?;
    let safe = op!("where_cond", &counts, &label, zero)?;
    let picked = op!("take_along_axis", logs, op!("unsqueeze", &safe, 1i64)?, 1i64, false)?;
    let picked = op!("squeeze", picked, 1i64)?;
    let counts = op!("cast", counts, logs.dtype())?;
    let weights = match weight {
        Some(w) => op!("multiply", of_labels(w, &safe)?, &counts)?,
        None => counts,
    };
    let each = op!("multiply", op!("neg", picked)?, &weights)?;
    match c.text("reduction", "mean").as_str() {
        "none" => Ok(each),
        "sum" => op!("sum", each),
        _ => op!("divide", op!("sum", each)?, op!("sum", weights)?),
    }
}

/// The weight of each label.
fn of_labels(weight: &Tensor, label: &Tensor) -> Result<Tensor> {
    let flat = op!("index_select", weight, op!("reshape", label, [-1i64])?)?;
    op!("reshape", flat, crate::onnx::node::shape_of(label))
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    match c.node.op.as_str() {
        "NegativeLogLikelihoodLoss" => one(negative_log(c, c.x(0)?, c.x(1)?, c.maybe(2))?),
        "SoftmaxCrossEntropyLoss" => {
            let logs = op!("log_softmax", c.x(0)?, 1i64)?;
            let loss = negative_log(c, &logs, c.x(1)?, c.maybe(2))?;
            many([loss, logs])
        }
        _ => Ok(None),
    }
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if !matches!(call.name(), "pick" | "unpick") {
        return Ok(false);
    }
    let (Some(x), Some(labels)) = (call.id("x"), call.id("labels")) else { return Ok(false) };
    let (dtype, column) = (w.known(call.out()).dtype, w.ints(&[1])?);
    let (x, labels) = (w.name(x)?, w.cast_id(labels, DType::Int64)?);
    let ignored = w.number(call.int("ignore_index").unwrap_or(-100) as f64, DType::Int64)?;
    let (nothing, first) = (w.number(0.0, dtype)?, w.number(0.0, DType::Int64)?);
    let left_out = w.op("Equal", &[&labels, &ignored]);
    let y = if call.name() == "pick" {
        // The element that each label names, or nothing.
        let safe = w.op("Where", &[&left_out, &first, &labels]);
        let places = w.op("Unsqueeze", &[&safe, &column]);
        let found = w.node("GatherElements", vec![x, places], vec![("axis", Attr::Int(1))]);
        let found = w.op("Squeeze", &[&found, &column]);
        w.op("Where", &[&left_out, &nothing, &found])
    } else {
        // Rows of nothing, with each element at its label.
        let Some(classes) = call.int("classes") else { return Ok(false) };
        let all = Tensor::try_from_slice(&(0..classes).collect::<Vec<_>>(), [classes.max(0) as usize])?;
        let (all, labels) = (w.tensor(&all), w.op("Unsqueeze", &[&labels, &column]));
        let (hit, kept) = (w.op("Equal", &[&labels, &all]), w.op("Not", &[&left_out]));
        let kept = w.op("Unsqueeze", &[&kept, &column]);
        let (hit, x) = (w.op("And", &[&hit, &kept]), w.op("Unsqueeze", &[&x, &column]));
        w.op("Where", &[&hit, &x, &nothing])
    };
    w.bind(call.out(), y);
    Ok(true)
}
