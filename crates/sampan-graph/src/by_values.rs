//! What programs do by values: arrays of tensors, which a loop fills, and slices whose bounds are computed. An array is the
//! tensors, of one shape, along a first axis of their own.

use crate::ssa::{own, param};
use sampan_core::dispatch::Cx;
use sampan_core::error::Kind as ErrorKind;
use sampan_core::op::{Kind, OpDef, Outputs};
use sampan_core::value::Arg as _;
use sampan_core::{Device, Error, Result, Tensor, Value};

/// An array with a tensor at a place: `array_write(array, x, index)`; without an index behind the last one.
pub static WRITE: OpDef = own(
    "array_write",
    "An array with a tensor at a place.",
    &[param("array", Kind::Tensor), param("x", Kind::Tensor), param("index", Kind::Operand)],
    write,
);

/// A part of a tensor, between bounds that may be tensors: `slice_between(input, axes, starts, ends)`.
pub static SLICE: OpDef = own(
    "slice_between",
    "A part of a tensor, between bounds that may be computed.",
    &[
        param("input", Kind::Tensor),
        param("axes", Kind::Operand),
        param("starts", Kind::Operand),
        param("ends", Kind::Operand),
    ],
    slice,
);

fn without_values(what: &str) -> Error {
    Error::new(ErrorKind::Unimplemented, format!("{what} is known only when the program runs"))
}

/// Whole numbers: plain, or in tensors.
fn numbers(value: &Value) -> Result<Vec<i64>> {
    let of = |t: &Tensor| match t.device() {
        Device::Meta => Err(without_values("where a slice begins and ends")),
        _ => Ok(t.to_f64_vec().into_iter().map(|n| n as i64).collect::<Vec<_>>()),
    };
    Ok(match value {
        Value::Int(n) => vec![*n],
        Value::Ints(all) => all.to_vec(),
        Value::Tensor(t) => of(t)?,
        Value::Tensors(all) => all.iter().map(of).collect::<Result<Vec<_>>>()?.concat(),
        _ => return Err(Error::invalid("the bounds of a slice are whole numbers")),
    })
}

fn slice(cx: &Cx) -> Result<Outputs> {
    let [axes, starts, ends] = [1, 2, 3].map(|i| numbers(&cx.args()[i]));
    <&Tensor>::get(&cx.args()[0], "input")?.try_slice(axes?, starts?, ends?).map(|t| Outputs::from_iter([t]))
}

fn write(cx: &Cx) -> Result<Outputs> {
    let (array, x) = (<&Tensor>::get(&cx.args()[0], "array")?, <&Tensor>::get(&cx.args()[1], "x")?);
    if array.device() == Device::Meta || x.device() == Device::Meta {
        return Err(without_values("how long an array of tensors gets"));
    }
    let len = array.shape().first().copied().unwrap_or(0);
    let at = match &cx.args()[2] {
        Value::Tensor(index) => index.try_item()?.to_f64(),
        _ => len as f64,
    };
    let row = x.try_unsqueeze([0i64])?;
    // What the tensors of an empty array are like is known from the first one.
    if len == 0 && at == 0.0 {
        return Ok(Outputs::from_iter([row]));
    }
    if array.shape()[1..] != *x.shape() {
        let (first, now) = (&array.shape()[1..], x.shape());
        let message = format!("an array of tensors of shape {first:?} is given one of shape {now:?}");
        return Err(Error::new(ErrorKind::Unimplemented, message).hint("pad them to one shape"));
    }
    if !(0.0..=len as f64).contains(&at) {
        return Err(Error::range(format!("place {at} of an array of {len} tensors is written")));
    }
    let at = at as usize;
    let part = |from: usize, to: usize| array.try_slice([0i64], [from as i64], [to as i64]);
    let mut parts = Vec::with_capacity(3);
    if at > 0 {
        parts.push(part(0, at)?);
    }
    parts.push(row);
    if at + 1 < len {
        parts.push(part(at + 1, len)?);
    }
    Ok(Outputs::from_iter([sampan_core::ops::joining::try_concat(&parts, 0)?]))
}
