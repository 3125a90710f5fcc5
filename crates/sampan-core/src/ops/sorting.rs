//! Order along an axis: sorting, selecting, searching.

use super::prelude::*;
use sampan_kernels::{index, reduce, sort};

/// The axis an op along one axis works on; a 0-d tensor is a line of one element.
fn along(x: &Tensor, axis: i64) -> Result<(usize, sort::Axis)> {
    let at = resolve_axis(axis, x.ndim())?;
    Ok((at, if x.ndim() == 0 { sort::Axis { outer: 1, n: 1, inner: 1 } } else { sort::Axis::of(x.shape(), at) }))
}

/// The shape with `n` elements along an axis; a 0-d tensor stays one.
fn with_extent(x: &Tensor, axis: usize, n: usize) -> Shape {
    let mut shape = x.shape_vec();
    if let Some(extent) = shape.get_mut(axis) {
        *extent = n;
    }
    shape
}

/// The elements at positions `index` along one axis, where each line has its own; the index has the rank of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.pick_along(&Tensor::new([[1i64], [0]]), 1).to_vec::<i64>(), [2, 3]);
/// ```
#[op(samples = pick_samples, peer = "lambda x, index, axis: paddle.take_along_axis(x, index, axis, False)")]
fn pick_along(cx: &Cx, x: &Tensor, index: &Tensor, axis: i64) -> Result<Tensor> {
    let axis = resolve_axis(axis, x.ndim())?;
    ensure!(index.ndim() == x.ndim() && x.ndim() > 0, "the index must have the rank of x");
    let out = cx.out(index.shape(), x.dtype())?;
    cx.cpu(|| {
        let (x, index) = (x.contiguous(), index.contiguous());
        match_dtype!(x.dtype(), T => index::take_along_axis(
            x.data::<T>().slice(), x.shape(), axis, index.data::<i64>().slice(), index.shape(), true,
            out.data_mut::<T>().slice(),
        ))
        .map_err(|e| Error::range(format!("position {} is outside of the axis of extent {}", e.value, e.limit)))
    })?;
    let n = x.shape()[axis];
    cx.grad(out, &[index], move |g| Ok([Some(g.grad().place_along(g.saved(0), axis as i64, n as i64)), None]))
}

/// Zeros with the elements of `x` added at positions `index` along one axis of extent `n`: the transpose of
/// `pick_along`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[5i64], [6]]);
/// assert_eq!(x.place_along(&Tensor::new([[1i64], [0]]), 1, 2).to_vec::<i64>(), [0, 5, 6, 0]);
/// ```
#[op(samples = place_samples, peer = "none: internal gradient of selecting")]
fn place_along(cx: &Cx, x: &Tensor, index: &Tensor, axis: i64, n: i64) -> Result<Tensor> {
    let axis = resolve_axis(axis, x.ndim())?;
    ensure!(index.shape() == x.shape() && x.ndim() > 0, "the index must have the shape of x");
    let out = cx.zeros(with_extent(x, axis, n as usize), x.dtype())?;
    cx.cpu(|| {
        let (x, index) = (x.contiguous(), index.contiguous());
        match_dtype!(x.dtype(), T in number => index::put_along_axis(
            out.data_mut::<T>().slice(), out.shape(), axis, index.data::<i64>().slice(), index.shape(), true,
            x.data::<T>().slice(), index::Reduce::Add, true,
        ), else => Ok(()))
        .map_err(|e| Error::range(format!("position {} is outside of the axis of extent {}", e.value, e.limit)))
    })?;
    cx.grad(out, &[index], move |g| Ok([Some(g.grad().pick_along(g.saved(0), axis as i64)), None]))
}

/// The gradient of elements that were selected along an axis: back to where they came from. `index` as it was returned.
fn scatter_back(g: &Tensor, index: &Tensor, shape: &[usize], axis: usize) -> Tensor {
    if shape.is_empty() {
        return g.clone();
    }
    let mut picked = Shape::from_slice(shape);
    picked[axis] = g.numel() / (shape.iter().product::<usize>() / shape[axis].max(1)).max(1);
    if shape.contains(&0) {
        return Tensor::zeros(shape, g.dtype());
    }
    let index = index.cast(DType::Int64).reshape_to(&picked);
    g.reshape_to(&picked).place_along(&index, axis as i64, shape[axis] as i64)
}

/// The `k` largest (or smallest) elements along `axis` (the last by default), best first, and their positions. Of equal
/// elements the first comes first.
///
/// ```
/// # use sampan_core::Tensor;
/// let (values, indices) = Tensor::new([1.0f32, 9.0, 5.0]).topk(2);
/// assert_eq!(values.to_vec::<f32>(), [9.0, 5.0]);
/// assert_eq!(indices.to_vec::<i64>(), [1, 2]);
/// ```
#[op(samples = topk_samples)]
fn topk(
    cx: &Cx,
    x: &Tensor,
    k: i64,
    #[opt(None)] axis: Option<i64>,
    #[opt(true)] largest: bool,
    #[opt(true)] sorted: bool,
) -> Result<(Tensor, Tensor)> {
    // The order is always the sorted one, which `sorted = false` allows too.
    let _ = sorted;
    let (at, line) = along(x, axis.unwrap_or(-1))?;
    ensure!(k >= 1 && k as usize <= line.n, "k must lie in [1, {}], the extent of axis {at}, got {k}", line.n);
    let shape = with_extent(x, at, k as usize);
    let (values, indices) = (cx.out(&shape, x.dtype())?, cx.out(&shape, DType::Int64)?);
    cx.cpu(|| {
        let x = x.contiguous();
        match_dtype!(x.dtype(), T => sort::topk(
            x.data::<T>().slice(), line, k as usize, largest, values.data_mut::<T>().slice(), indices.data_mut().slice(),
        ));
        Ok(())
    })?;
    let shape = x.shape_vec();
    cx.grad_from_output((values, indices), &[], move |g| Ok(scatter_back(&g.grad(), g.output(1), &shape, at)))
}

/// The positions that would sort `x` along `axis`; stable, NaN last (first when descending).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32, 1.0, 2.0]).argsort(-1).to_vec::<i64>(), [1, 2, 0]);
/// ```
#[op(non_diff, samples = sort_samples)]
fn argsort(
    cx: &Cx,
    x: &Tensor,
    #[default(-1)] axis: i64,
    #[opt(false)] descending: bool,
    #[opt(false)] stable: bool,
) -> Result<Tensor> {
    let _ = stable;
    let (_, line) = along(x, axis)?;
    let out = cx.out(x.shape(), DType::Int64)?;
    cx.cpu(|| {
        let x = x.contiguous();
        match_dtype!(x.dtype(), T => {
            sort::argsort(x.data::<T>().slice(), line, descending, out.data_mut().slice())
        });
        Ok(())
    })?;
    Ok(out)
}

/// Argmax and argmin: without an axis over all elements in a row.
macro_rules! arg_extreme {
    ($cx:ident, $x:ident, $axis:ident, $keepdim:ident, $dtype:ident, $kernel:ident) => {{
        if !matches!($dtype, DType::Int32 | DType::Int64) {
            return Err(Error::dtype(format!("a position is int32 or int64, not {}", $dtype)));
        }
        let flat = $axis.is_none() || $x.ndim() == 0;
        let at = resolve_axis($axis.unwrap_or(0), $x.ndim())?;
        let mask: Vec<bool> = (0..$x.ndim()).map(|i| flat || i == at).collect();
        let shape = Cx::reduced_shape($x.shape(), &mask, $keepdim);
        let results: usize = shape.iter().product();
        ensure!(results == 0 || $x.numel() > 0, "has no position over an empty axis, x is {:?}", $x.shape());
        let out = $cx.out(&shape, DType::Int64)?;
        $cx.cpu(|| {
            let x = if $x.dtype() == DType::Bool { $x.try_cast(DType::UInt8)? } else { $x.clone() };
            let x = if flat { x.try_reshape_to([x.numel()])? } else { x };
            match_dtype!(x.dtype(), T in number => {
                reduce::$kernel(x.data::<T>().view(), if flat { 0 } else { at }, out.data_mut().slice())
            }, else => {});
            Ok(())
        })?;
        out.try_cast($dtype)
    }};
}

/// The position of the largest element along `axis`; without one, in all elements in a row. The first of equals, and the
/// first NaN before any number.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 9.0], [5.0, 2.0]]);
/// assert_eq!(x.argmax(1).to_vec::<i64>(), [1, 0]);
/// assert_eq!(x.argmax(None).to_f64(), 1.0);
/// ```
#[op(non_diff, samples = arg_samples)]
fn argmax(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(false)] keepdim: bool,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Tensor> {
    arg_extreme!(cx, x, axis, keepdim, dtype, argmax)
}

/// The position of the smallest element along `axis`; without one, in all elements in a row. The first of equals, and
/// the first NaN before any number.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 9.0], [5.0, 2.0]]).argmin(1).to_vec::<i64>(), [0, 1]);
/// ```
#[op(non_diff, samples = arg_samples)]
fn argmin(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(false)] keepdim: bool,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Tensor> {
    arg_extreme!(cx, x, axis, keepdim, dtype, argmin)
}

fn pick_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values(vec![2i64, 0, 1, 1], [2, 2]), 1],
        sample![randn([3, 2]), values(vec![2i64, 0], [1, 2]), 0],
    ]
}
fn place_samples() -> Vec<Sample> {
    vec![sample![randn([2, 2]), values(vec![2i64, 0, 1, 1], [2, 2]), 1, 3]]
}
fn topk_samples() -> Vec<Sample> {
    vec![
        sample![distinct([5]), 2],
        sample![distinct([2, 4, 3]), 3; axis = 1],
        sample![distinct([2, 5]), 2; largest = false],
        sample![ints([3, 4], -50, 50), 2; axis = 0],
        sample![distinct([]), 1],
    ]
}
fn sort_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 5])],
        sample![distinct([2, 4, 3]), 1],
        sample![distinct([3, 2]), 0; descending = true],
        sample![ints([3, 4], 0, 3); stable = true],
        sample![distinct([])],
        sample![distinct([0, 3])],
    ]
}
fn arg_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 3])],
        sample![distinct([2, 3]); keepdim = true],
        sample![distinct([2, 4, 3]), 1],
        sample![distinct([2, 4, 3]), -1; keepdim = true, dtype = DType::Int32],
        sample![ints([2, 6], 0, 3), 1],
        sample![distinct([])],
        sample![distinct([0, 3]), 1],
    ]
}
