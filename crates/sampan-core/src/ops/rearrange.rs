//! Repeating, reversing, padding, triangles and diagonals.

use super::prelude::*;
use sampan_kernels::{arrange, copy};

/// The elements in reverse order along the named axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).flip(1).to_vec::<i64>(), [2, 1, 4, 3]);
/// ```
#[op(samples = flip_samples, also("reverse"))]
fn flip(cx: &Cx, x: &Tensor, axis: &[i64]) -> Result<Tensor> {
    let mut layout = x.layout().clone();
    let mut turned = Shape::new();
    for &a in axis {
        let a = resolve_axis(a, x.ndim())?;
        ensure!(!turned.contains(&a), "axis {axis:?} names axis {a} twice");
        turned.push(a);
        if let Some(&n) = x.shape().get(a).filter(|&&n| n > 0) {
            layout.offset = (layout.offset as isize + (n as isize - 1) * layout.strides[a]) as usize;
            layout.strides[a] = -layout.strides[a];
        }
    }
    // A copy: nobody expects a write into the result to change the input.
    let out = x.view(layout).try_clone_data()?;
    let axis = axis.to_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().flip(axis.as_slice())))
}

/// The tensor repeated `repeat_times[i]` times along each axis; the shorter of the two lists gets leading ones.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).tile([2, 2]).to_vec::<i64>(), [1, 2, 1, 2, 1, 2, 1, 2]);
/// ```
#[op(samples = tile_samples, onnx = "Tile", also("Tensor.repeat"), alias(dims = repeat_times, repeats = repeat_times))]
fn tile(x: &Tensor, repeat_times: &[i64]) -> Result<Tensor> {
    ensure!(repeat_times.iter().all(|&r| r >= 0), "repeat_times cannot be negative, got {repeat_times:?}");
    let rank = x.ndim().max(repeat_times.len());
    let extent = |i: usize| if i + x.ndim() >= rank { x.shape()[i + x.ndim() - rank] as i64 } else { 1 };
    let times = |i: usize| if i + repeat_times.len() >= rank { repeat_times[i + repeat_times.len() - rank] } else { 1 };
    let (mut apart, mut wide, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rank {
        let (n, r) = (extent(i), times(i));
        apart.extend([1, n]);
        wide.extend([r, n]);
        out.push(n.checked_mul(r).ok_or_else(|| Error::invalid("the result is too large for this machine"))?);
    }
    // One copy, made by the last reshape.
    x.try_reshape_to(apart)?.try_expand(wide)?.try_reshape_to(out)
}

/// `x` with `before[i]` and `after[i]` more elements around each axis, all `value`. Negative numbers crop.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).pad_around([1], [-1], 9).to_vec::<i64>(), [9, 1]);
/// ```
#[op(samples = pad_around_samples, peer = "none: internal form of pad")]
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
    cx.cpu(|| {
        let seen = x.try_view_slice(starts.as_slice(), lens.as_slice(), steps.as_slice())?.contiguous();
        let inner = Layout::contiguous(&shape);
        let offset: isize = at.iter().zip(&inner.strides).map(|(&a, &s)| a as isize * s).sum();
        match_dtype!(x.dtype(), T => {
            let mut data = out.data_mut::<T>();
            arrange::fill(data.slice(), value.to::<T>());
            if seen.numel() > 0 {
                copy::scatter_strided(seen.data::<T>().slice(), data.slice(), seen.shape(), &inner.strides, offset as usize);
            }
        });
        Ok(())
    })?;
    let from = x.shape_vec();
    cx.grad(out, &[], move |g| {
        let seen = g.grad().view_slice(at.as_slice(), lens.as_slice(), steps.as_slice());
        Ok(if seen.shape() == from.as_slice() { seen } else { seen.unslice(&from, starts.as_slice(), steps.as_slice()) })
    })
}

/// The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).tril(0).to_vec::<i64>(), [1, 0, 3, 4]);
/// ```
#[op(inplace, samples = triangle_samples, onnx = "Trilu")]
fn tril(cx: &Cx, x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    let out = triangle(cx, x, diagonal, true)?;
    cx.grad(out, &[], move |g| Ok(g.grad().tril(diagonal)))
}

/// The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).triu(0).to_vec::<i64>(), [1, 2, 0, 4]);
/// ```
#[op(inplace, samples = triangle_samples, onnx = "Trilu")]
fn triu(cx: &Cx, x: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    let out = triangle(cx, x, diagonal, false)?;
    cx.grad(out, &[], move |g| Ok(g.grad().triu(diagonal)))
}

fn triangle(cx: &Cx, x: &Tensor, diagonal: i64, lower: bool) -> Result<Tensor> {
    ensure!(x.ndim() >= 2, "needs at least 2 axes");
    let (rows, cols) = (x.dim(-2), x.dim(-1));
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        match_dtype!(x.dtype(), T => {
            arrange::triangle(x.data::<T>().slice(), out.data_mut::<T>().slice(), rows, cols, diagonal, lower)
        });
        Ok(())
    })?;
    Ok(out)
}

fn flip_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 0],
        sample![randn([2, 3, 2]), [0, -1]],
        sample![randn([0, 3]), [0]],
        sample![randn([2]), Vec::<i64>::new()].no_peer("Paddle refuses an empty list"),
    ]
}
fn tile_samples() -> Vec<Sample> {
    vec![
        sample![randn([2]), [2, 3]],
        sample![randn([2, 3]), [2]],
        sample![randn([2, 1]), [1, 4]],
        sample![randn([]), [3]],
        sample![randn([2]), [0]].no_peer("Paddle refuses zero"),
    ]
}
fn pad_around_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), [1, 0], [0, 2], 1.5],
        sample![randn([2, 3]), [-1, 1], [1, -2], 0.5],
        sample![randn([2]), [3], [-4]],
        sample![randn([0, 2]), [1, 1], [1, 0]],
        sample![randn([]), Vec::<i64>::new(), Vec::<i64>::new()],
    ]
}
fn triangle_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 3])],
        sample![randn([2, 3, 4]), 1],
        sample![randn([4, 2]), -1],
        sample![randn([2, 3]), 7],
        sample![randn([0, 3])],
    ]
}
