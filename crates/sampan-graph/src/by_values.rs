//! What programs do by values: arrays of tensors, which a loop fills, and slices whose bounds are computed. An array is the
//! tensors, of one shape, along a first axis of their own.

use crate::index::OPEN;
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

/// A part of a tensor, between bounds that may be tensors: `slice_between(input, axes, starts, ends, gone)`. Of the axes that
/// are gone it has one place, and that must be there.
pub static SLICE: OpDef = own(
    "slice_between",
    "A part of a tensor, between bounds that may be computed.",
    &[
        param("input", Kind::Tensor),
        param("axes", Kind::Operand),
        param("starts", Kind::Operand),
        param("ends", Kind::Operand),
        param("gone", Kind::Operand),
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
    let input = <&Tensor>::get(&cx.args()[0], "input")?;
    let [axes, starts, ends, gone] = [1, 2, 3, 4].map(|i| numbers(&cx.args()[i]));
    let (axes, starts, mut ends, gone) = (axes?, starts?, ends?, gone?);
    for ((axis, start), end) in axes.iter().zip(&starts).zip(&mut ends) {
        // Who computes a place and the next one knows nothing of the last one's -1.
        if gone.contains(axis) && (*start, *end) == (-1, 0) {
            *end = OPEN;
        }
    }
    let part = input.try_slice(axes, starts, ends)?;
    if gone.is_empty() {
        return Ok(Outputs::from_iter([part]));
    }
    let extent = |a: i64| {
        let at = if a < 0 { a.saturating_add(part.ndim() as i64) } else { a };
        usize::try_from(at).ok().and_then(|at| part.shape().get(at))
    };
    if let Some(axis) = gone.iter().find(|a| extent(**a) != Some(&1)) {
        let (from, got) = (input.shape(), part.shape());
        return Err(Error::range(format!(
            "one place of axis {axis} of {from:?} is read, and it is not there: {got:?}"
        )));
    }
    Ok(Outputs::from_iter([part.try_squeeze(gone)?]))
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
    let first = array.shape().get(1..).ok_or_else(|| Error::invalid("an array of tensors has an axis for them"))?;
    if first != x.shape() {
        let now = x.shape();
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

#[cfg(test)]
mod tests {
    use super::*;
    use sampan_core::dispatch::dispatch;

    #[test]
    fn what_a_strangers_program_asks_for_is_answered() {
        let says = |op: &'static OpDef, args: Vec<Value>, words: &str| {
            let error = dispatch(op, args.into()).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        };
        let (x, zero, one) = (Tensor::new([1.0f32, 2.0]), Tensor::new(0.0f32), Tensor::new(1i64));
        says(&WRITE, vec![zero.into(), x.clone().into(), one.into()], "has an axis for them");
        let read = |place: i64, axes: Vec<i64>, gone: Vec<i64>| -> Vec<Value> {
            vec![x.clone().into(), axes.into(), vec![place].into(), vec![place + 1].into(), gone.into()]
        };
        let last = dispatch(&SLICE, read(-1, vec![0], vec![0]).into()).unwrap().into_vec().remove(0);
        assert_eq!((last.shape(), last.to_vec::<f32>()), (&[][..], vec![2.0]));
        says(&SLICE, read(2, vec![0], vec![0]), "not there");
        says(&SLICE, read(0, vec![0], vec![5]), "not there");
        says(&SLICE, read(0, vec![0], vec![i64::MIN]), "not there");
        assert!(dispatch(&SLICE, read(0, vec![0, 1], vec![]).into()).is_err());
    }
}
