//! Padding in every mode and layout.

use crate::ops::joining::try_concat;
use crate::ops::prelude::*;
use sampan_kernels::{arrange, copy};

/// More elements around the borders. `pad` holds pairs (before, after):
/// * one pair for each axis: from the first axis, or from the last one without `pad_from_left_axis`;
/// * one pair for each spatial axis, or fewer: from the last (spatial) axis backwards, `data_format` telling where the
///   spatial axes are. Only this form exists for the modes other than `constant` and for a `pad` that is a tensor.
///
/// `mode` is `constant` (the new elements are `value`), `reflect`, `replicate` or `circular`. Negative numbers crop.
///
/// ```
/// # use sampan_core::{Tensor, ops::padding::PadOpts};
/// let x = Tensor::new([[[1i64, 2, 3]]]);
/// assert_eq!(x.pad([1, 2]).to_vec::<i64>(), [0, 1, 2, 3, 0, 0]);
/// assert_eq!(x.pad_with([2, 1], PadOpts::new().mode("reflect")).to_vec::<i64>(), [3, 2, 1, 2, 3, 2]);
/// ```
#[op(complex, module = "nn.functional", samples = pad_samples, onnx = "Pad")]
fn pad(
    x: &Tensor,
    pad: &Value,
    #[opt("constant")] mode: &str,
    #[opt(0.0)] value: Scalar,
    #[opt(None)] data_format: Option<&str>,
    #[opt(true)] pad_from_left_axis: bool,
) -> Result<Tensor> {
    let rank = x.ndim();
    let pairs = pairs(pad, rank)?;
    let constant = mode == "constant";
    ensure!(
        ["constant", "reflect", "replicate", "circular"].contains(&mode),
        "mode must be constant, reflect, replicate or circular, got {mode:?}"
    );
    ensure!(pairs.len() <= rank, "pad has {} pairs, x has {rank} axes", pairs.len());
    let spatial = !constant || matches!(pad, Value::Tensor(_)) || (rank > 2 && pairs.len() == rank - 2);
    let axes: Vec<usize> = if spatial {
        let axes = spatial_axes(rank, data_format)?;
        ensure!(pairs.len() <= axes.len(), "pad has {} pairs, x has {} spatial axes", pairs.len(), axes.len());
        axes.rev().collect()
    } else if pairs.len() == rank && pad_from_left_axis {
        (0..rank).collect()
    } else {
        (0..rank).rev().collect()
    };
    if constant {
        let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
        for (&(b, a), &axis) in pairs.iter().zip(&axes) {
            (before[axis], after[axis]) = (b, a);
        }
        return x.try_pad_around(before, after, value);
    }
    let each = pairs.iter().zip(axes).filter(|(p, _)| **p != (0, 0));
    each.into_iter().try_fold(x.clone(), |x, (&(b, a), axis)| extend(&x, axis, b, a, mode))
}

/// Zeros around the last two spatial axes: `padding` is (left, right, top, bottom).
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::ones([1, 1, 2, 2], DType::Float32).zeropad2d([1, 0, 0, 2]).shape(), [1, 1, 4, 3]);
/// ```
#[op(complex, module = "nn.functional", samples = zeropad_samples)]
fn zeropad2d(x: &Tensor, padding: &Value, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    ensure!(x.ndim() == 4, "needs 4 axes");
    x.try_pad_with(padding.clone(), PadOpts::new().data_format(data_format))
}

/// `x` with `before[i]` and `after[i]` more elements around each axis, all `value`. Negative numbers crop.
#[op(
    internal,
    complex,
    samples = pad_around_samples,
    peer = "lambda x, before, after, value=0: torch.nn.functional.pad(x, \
            [n for pair in reversed(list(zip(before, after))) for n in pair], value=value)"
)]
fn pad_around(cx: &Cx, x: &Tensor, before: &[i64], after: &[i64], #[default(0)] value: Scalar) -> Result<Tensor> {
    let rank = x.ndim();
    ensure!(before.len() == rank && after.len() == rank, "every axis needs its two numbers");
    // What of x is seen, where it lands, and how large the result is.
    let (mut starts, mut lens, mut at, mut shape) = (vec![], vec![], vec![], Shape::new());
    for i in 0..rank {
        let (n, b, a) = (x.shape()[i] as i64, before[i], after[i]);
        let all = n.checked_add(b).and_then(|s| s.checked_add(a)).filter(|&s| s >= 0);
        let Some(all) = all else { bail!("axis {i} of extent {n} padded by {b} and {a} has no valid extent") };
        let len = (n + b.min(0) + a.min(0)).max(0);
        starts.push(if len == 0 { 0 } else { (-b).max(0) });
        lens.push(len);
        at.push(if len == 0 { 0 } else { b.max(0) });
        shape.push(all as usize);
    }
    let steps = vec![1i64; rank];
    let out = cx.out(&shape, x.dtype())?;
    let inner = Layout::contiguous(&shape);
    let offset: isize = at.iter().zip(&inner.strides).map(|(&a, &s)| a as isize * s).sum();
    let cpu = || {
        let seen = x.try_view_slice(starts.as_slice(), lens.as_slice(), steps.as_slice())?.contiguous();
        let mut data = out.values_mut();
        arrange::fill(data.slice(), value);
        if seen.numel() > 0 {
            let seen_values = seen.values();
            copy::scatter_strided(seen_values.slice(), data.slice(), seen.shape(), &inner.strides, offset as usize);
        }
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let seen = x.try_view_slice(starts.as_slice(), lens.as_slice(), steps.as_slice())?;
        let place = Layout { shape: seen.shape_vec(), strides: inner.strides.clone(), offset: offset as usize };
        crate::gpu::fill(gpu, value, &out, out.layout().clone())?;
        crate::gpu::copy_into(gpu, &seen, &out, place).map(|()| true)
    })?;
    let from = x.shape_vec();
    cx.grad(out, &[], move |g| {
        let seen = g.grad().view_slice(at.as_slice(), lens.as_slice(), steps.as_slice());
        Ok(if seen.shape() == from.as_slice() {
            seen
        } else {
            seen.unslice(&from, starts.as_slice(), steps.as_slice())
        })
    })
}

/// The numbers of `pad` two by two; one number stands for both sides of every spatial axis.
fn pairs(pad: &Value, rank: usize) -> Result<Vec<(i64, i64)>> {
    let flat: Vec<i64> = match pad {
        Value::Int(n) => vec![*n; 2 * rank.saturating_sub(2)],
        Value::Ints(list) => list.to_vec(),
        Value::Tensor(t) => t.try_to_ints()?,
        other => bail!("pad must be a list of ints, an int or a Tensor, got {}", other.type_name()),
    };
    ensure!(flat.len().is_multiple_of(2), "pad must hold pairs, got {flat:?}");
    Ok(flat.chunks(2).map(|p| (p[0], p[1])).collect())
}

/// The axes between batch and channel that a layout names.
fn spatial_axes(rank: usize, data_format: Option<&str>) -> Result<std::ops::Range<usize>> {
    ensure!((3..=5).contains(&rank), "padding of spatial axes needs 3, 4 or 5 axes, x has {rank}");
    let (first, last) = [("NCL", "NLC"), ("NCHW", "NHWC"), ("NCDHW", "NDHWC")][rank - 3];
    match data_format.map(str::to_uppercase).as_deref() {
        None => Ok(2..rank),
        Some(f) if f == first => Ok(2..rank),
        Some(f) if f == last => Ok(1..rank - 1),
        Some(f) => bail!("data_format of {rank} axes must be {first} or {last}, got {f}"),
    }
}

/// Pads one axis by elements of `x` itself.
fn extend(x: &Tensor, axis: usize, before: i64, after: i64, mode: &str) -> Result<Tensor> {
    let n = x.shape()[axis] as i64;
    let most = match mode {
        "reflect" => n - 1,
        "circular" => n,
        _ => i64::MAX,
    };
    ensure!(n > 0, "axis {axis} is empty and has nothing to pad with");
    ensure!(
        before <= most && after <= most,
        "{mode} takes at most {most} on axis {axis} of extent {n}, got ({before}, {after})"
    );
    ensure!(
        n + before.min(0) + after.min(0) >= 0,
        "axis {axis} of extent {n} cannot be cropped by ({before}, {after})"
    );
    let a = axis as i64;
    let part = |start: i64, len: i64| x.try_narrow(a, start as usize, len as usize);
    let edge = |at: i64, len: i64| {
        let mut shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
        shape[axis] = len;
        part(at, 1)?.try_expand(shape)
    };
    let mut parts = Vec::with_capacity(3);
    if before > 0 {
        parts.push(match mode {
            "reflect" => part(1, before)?.try_flip(a)?,
            "circular" => part(n - before, before)?,
            _ => edge(0, before)?,
        });
    }
    let start = (-before).max(0);
    parts.push(part(start, n - start + after.min(0))?);
    if after > 0 {
        parts.push(match mode {
            "reflect" => part(n - 1 - after, after)?.try_flip(a)?,
            "circular" => part(0, after)?,
            _ => edge(n - 1, after)?,
        });
    }
    try_concat(&parts, a)
}

fn pad_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), [1, 0, 0, 2]],
        sample![randn([2, 3]), [1, 0, 0, 2]; value = 1.5, pad_from_left_axis = false],
        sample![randn([1, 2, 3]), [1, 1]],
        sample![randn([1, 2, 3]), [1, 1, 0, 1]; value = -1.0],
        sample![randn([1, 2, 3, 1]), [1, 1, 0, 2]; data_format = "NHWC"],
        sample![randn([1, 1, 2, 3]), [2, 1, 1, 0]; mode = "reflect"],
        sample![randn([1, 2, 3]), [2, 1]; mode = "replicate", data_format = "NLC"],
        sample![randn([1, 1, 2, 2, 2]), [1, 1, 0, 2, 1, 0]; mode = "circular"],
        sample![randn([1, 1, 3]), values([1i32, 2], [2])],
        sample![randn([1, 1, 3]), [-1, 2]; mode = "constant"],
        sample![complexes([1, 2, 3]), [1, 1]],
    ]
}
fn zeropad_samples() -> Vec<Sample> {
    vec![sample![randn([1, 1, 2, 2]), [1, 0, 0, 2]], sample![randn([1, 2, 2, 1]), [1, 0, 0, 2]; data_format = "NHWC"]]
}
fn pad_around_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), [1, 0], [0, 2], 1.5],
        sample![randn([2, 3]), [-1, 1], [1, -2], 0.5],
        sample![randn([2]), [3], [-4]].peer("lambda x, *_: torch.zeros(1)"),
        sample![randn([0, 2]), [1, 1], [1, 0]],
        sample![randn([]), Vec::<i64>::new(), Vec::<i64>::new()],
    ]
}
