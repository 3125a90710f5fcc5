//! Reading elements by their positions. Each primitive has its transpose beside it (`un…`), which adds gradients back
//! to where the values came from; the two are each other's gradient.

use crate::gpu;
use crate::ops::prelude::*;
use sampan_cuda::index::Rule;
use sampan_kernels::index::{self, BadIndex};
use sampan_kernels::sort::Axis;

/// An index tensor as contiguous int64, or an error for other dtypes.
pub(crate) fn as_indices(t: &Tensor, name: &str) -> Result<Tensor> {
    if !t.dtype().is_int() {
        return Err(Error::dtype(format!("`{name}` must hold integers, got {}", t.dtype()))
            .hint(format!("{name}.cast(\"int64\"); a boolean mask goes into masked_select or x[mask]")));
    }
    t.detach().try_cast(DType::Int64)?.try_contiguous()
}

/// The error of an index outside its axis.
pub(crate) fn outside(axis: usize, e: BadIndex) -> Error {
    Error::range(format!(
        "index {} at position {} is out of range for axis {axis} of extent {}",
        e.value, e.position, e.limit
    ))
}

/// Extents before, at and after an axis.
pub(crate) fn split_at(shape: &[usize], axis: usize) -> Axis {
    Axis { outer: shape[..axis].iter().product(), n: shape[axis], inner: shape[axis + 1..].iter().product() }
}

/// Negative numbers count from the end.
fn wrapping(op: &'static str) -> Rule {
    Rule { op, wrap: true, skip: None }
}

/// The shape with another extent at an axis.
fn with_extent(shape: &[usize], axis: usize, n: usize) -> Shape {
    let mut out = Shape::from_slice(shape);
    out[axis] = n;
    out
}

/// Rows of `x` along `axis`, one for each entry of the 1-D `index`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.index_select(&Tensor::new([2i64, 0]), 1).to_vec::<i64>(), [3, 1, 6, 4]);
/// ```
#[op(complex, samples = index_select_samples)]
fn index_select(cx: &Cx, x: &Tensor, index: &Tensor, #[default(0)] axis: i64) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "x must have at least one axis to select along");
    ensure!(index.ndim() <= 1, "index must be 1-D, got shape {:?}", index.shape());
    let axis = resolve_axis(axis, x.ndim())?;
    let idx = as_indices(index, "index")?;
    let out = cx.out(with_extent(x.shape(), axis, idx.numel()), x.dtype())?;
    let cpu = || {
        let x = x.contiguous();
        let idx = idx.data::<i64>();
        let (values, along) = (x.values(), split_at(x.shape(), axis));
        index::index_select(values.slice(), along, idx.slice(), true, out.values_mut().slice())
            .map_err(|e| outside(axis, e))
    };
    cx.run(cpu, |gpu| gpu::index::rows(gpu, wrapping("index_select"), x, axis, &idx, &out))?;
    let n = x.shape()[axis] as i64;
    cx.grad(out, &[index], move |g| Ok([Some(g.grad().unselect(g.saved(0), axis as i64, n)), None]))
}

/// Zeros with `n` rows along `axis`, to which the rows of `x` are added at `index`: the transpose of `index_select`.
#[op(
    internal,
    complex,
    samples = unselect_samples,
    peer = "lambda x, i, axis, n: torch.zeros([n if a == axis else e for a, e in \
            enumerate(x.shape)]).index_add(axis, i, x)"
)]
fn unselect(cx: &Cx, x: &Tensor, index: &Tensor, axis: i64, n: i64) -> Result<Tensor> {
    let axis = resolve_axis(axis, x.ndim())?;
    let idx = as_indices(index, "index")?;
    ensure!(n >= 0 && x.ndim() > 0 && x.shape()[axis] == idx.numel(), "x must have one row for each index");
    let out = cx.zeros(with_extent(x.shape(), axis, n as usize), x.dtype())?;
    let cpu = || {
        let x = x.contiguous();
        let idx = idx.data::<i64>();
        let (x, along) = (x.values(), split_at(out.shape(), axis));
        index::index_add(out.values_mut().slice(), along, idx.slice(), true, x.slice(), 1.0)
            .map_err(|e| outside(axis, e))
    };
    cx.run(cpu, |gpu| gpu::index::add_rows(gpu, wrapping("index_select"), x, 1.0, axis, &idx, &out))?;
    cx.grad(out, &[index], move |g| Ok([Some(g.grad().index_select(g.saved(0), axis as i64)), None]))
}

/// Rows of `x` along `axis` (the first by default) at `index`, which is 1-D; a 0-d index takes the axis away.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4], [5, 6]]);
/// assert_eq!(x.gather(&Tensor::new([2i64, 0]), None).to_vec::<i64>(), [5, 6, 1, 2]);
/// ```
#[op(complex, samples = gather_samples, onnx = "Gather")]
fn gather(x: &Tensor, index: &Tensor, #[default(None)] axis: Option<i64>) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "x must have at least one axis to gather along");
    let axis = resolve_axis(axis.unwrap_or(0), x.ndim())?;
    let column = index.ndim() == 2 && index.shape()[1] == 1;
    ensure!(index.ndim() <= 1 || column, "index must be 0-D, 1-D or [N, 1], got shape {:?}", index.shape());
    let out = x.try_index_select(&index.try_reshape_to([index.numel()].as_slice())?, axis as i64)?;
    if index.ndim() == 0 { out.try_squeeze(axis as i64) } else { Ok(out) }
}

/// Slices of `x` at index tuples: the last axis of `index` runs over the first axes of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.gather_nd(&Tensor::new([[1i64, 0], [0, 1]])).to_vec::<i64>(), [3, 2]);
/// assert_eq!(x.gather_nd(&Tensor::new([[1i64]])).to_vec::<i64>(), [3, 4]);
/// ```
#[op(complex, samples = gather_nd_samples, onnx = "GatherND")]
fn gather_nd(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    let depth = nd_depth(index, x.shape())?;
    let (lead, row) = x.shape().split_at(depth);
    let rows = index.try_nd_rows(x.shape())?;
    let flat = x.try_reshape_to([lead.iter().product(), row.iter().product::<usize>()].as_slice())?;
    flat.try_index_select(&rows, 0)?.try_reshape_to([&index.shape()[..index.ndim() - 1], row].concat())
}

/// The length of index tuples, checked against the shape they go into.
pub(crate) fn nd_depth(index: &Tensor, shape: &[usize]) -> Result<usize> {
    let depth = *index.shape().last().ok_or_else(|| Error::invalid("index must have a last axis, the tuples"))?;
    ensure!(depth <= shape.len(), "index tuples have {depth} entries, more than the {} axes of x", shape.len());
    Ok(depth)
}

/// Index tuples over the first axes of `shape` as numbers of rows.
#[op(
    internal,
    non_diff, complex,
    samples = nd_rows_samples,
    peer = "lambda i, shape: np.reshape(np.ravel_multi_index(tuple(np.moveaxis(i, -1, 0)), shape[:i.shape[-1]], \
            mode='wrap'), -1)"
)]
fn nd_rows(cx: &Cx, index: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    let depth = nd_depth(index, &shape)?;
    let idx = as_indices(index, "index")?;
    let count: usize = index.shape()[..index.ndim() - 1].iter().product();
    let out = cx.out([count], DType::Int64)?;
    let cpu = || {
        let rows = index::flatten_nd(idx.data::<i64>().slice(), &shape, depth, count, true)
            .map_err(|e| outside(e.position % depth.max(1), e))?;
        out.data_mut::<i64>().slice().copy_from_slice(&rows);
        Ok(())
    };
    cx.run(cpu, |gpu| {
        if depth == 0 {
            return Ok(false);
        }
        let last = |k: usize| idx.try_narrow(-1, k, 1)?.try_squeeze(-1);
        let parts = (0..depth).map(last).collect::<Result<Vec<_>>>()?;
        gpu::copy(gpu, &gpu::index::flat(gpu, wrapping("gather_nd"), &parts, &shape[..depth])?, &out)?;
        Ok(true)
    })?;
    Ok(out)
}

/// The index shape under broadcasting with `arr` along all axes but one, and `arr`'s.
pub(crate) fn along_shapes(arr: &[usize], indices: &[usize], axis: usize) -> Result<(Shape, Shape)> {
    let common = broadcast(&with_extent(arr, axis, 1), &with_extent(indices, axis, 1))?;
    Ok((with_extent(&common, axis, arr[axis]), with_extent(&common, axis, indices[axis])))
}

/// Checks an index that is not broadcast: along all axes but one it stays within `arr`.
pub(crate) fn check_along(arr: &[usize], indices: &[usize], axis: usize) -> Result<()> {
    for (a, (&n, &i)) in arr.iter().zip(indices).enumerate() {
        ensure!(a == axis || i <= n, "indices have extent {i} on axis {a}, where arr has only {n}");
    }
    Ok(())
}

/// The elements of `arr` at `indices` along `axis`: `out[i][j] = arr[i][indices[i][j]]` for `axis` 1. With `broadcast`
/// the other axes of both are matched by broadcasting; without, `indices` may be shorter there.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.take_along_axis(&Tensor::new([[2i64], [-3]]), 1).to_vec::<i64>(), [3, 4]);
/// ```
#[op(complex, samples = take_along_axis_samples, onnx = "GatherElements", also("take_along_dim"), alias(x = arr, input = arr, index = indices))]
fn take_along_axis(arr: &Tensor, indices: &Tensor, axis: i64, #[opt(true)] broadcast: bool) -> Result<Tensor> {
    ensure!(
        arr.ndim() == indices.ndim(),
        "arr has rank {}, indices have rank {}; they must be equal",
        arr.ndim(),
        indices.ndim()
    );
    let axis = resolve_axis(axis, arr.ndim())?;
    if arr.ndim() == 0 {
        return arr.try_reshape_to([1])?.try_take_along(&indices.try_reshape_to([1])?, 0)?.try_squeeze(0);
    }
    if !broadcast {
        return arr.try_take_along(indices, axis as i64);
    }
    let (a, i) = along_shapes(arr.shape(), indices.shape(), axis)?;
    arr.try_expand(&a)?.try_take_along(&indices.try_expand(&i)?, axis as i64)
}

/// `take_along_axis` without broadcasting.
#[op(internal, complex, samples = take_along_samples, peer = "lambda x, i, axis: paddle.take_along_axis(x, i, axis, False)")]
fn take_along(cx: &Cx, x: &Tensor, indices: &Tensor, axis: i64) -> Result<Tensor> {
    ensure!(x.ndim() == indices.ndim() && x.ndim() > 0, "x and indices must have the same rank, at least 1");
    let axis = resolve_axis(axis, x.ndim())?;
    let idx = as_indices(indices, "indices")?;
    check_along(x.shape(), idx.shape(), axis)?;
    let out = cx.out(idx.shape(), x.dtype())?;
    let cpu = || {
        let x = x.contiguous();
        let (data, shape) = (idx.data::<i64>(), idx.shape());
        let (values, mut out) = (x.values(), out.values_mut());
        index::take_along_axis(values.slice(), x.shape(), axis, data.slice(), shape, true, out.slice())
            .map_err(|e| outside(axis, e))
    };
    cx.run(cpu, |gpu| gpu::index::along(gpu, wrapping("take_along_axis"), x, axis, &idx, &out))?;
    let shape = x.shape_vec();
    cx.grad(out, &[indices], move |g| Ok([Some(g.grad().untake_along(g.saved(0), axis as i64, &shape)), None]))
}

/// Zeros of `shape`, to which `x` is added at `indices` along `axis`: the transpose of `take_along`.
#[op(internal, complex, samples = untake_along_samples, peer = "lambda x, i, axis, shape: torch.zeros(shape).scatter_add(axis, i, x)")]
fn untake_along(cx: &Cx, x: &Tensor, indices: &Tensor, axis: i64, shape: &[i64]) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    let axis = resolve_axis(axis, shape.len())?;
    ensure!(x.shape() == indices.shape() && x.ndim() == shape.len(), "x and indices must have one shape");
    let idx = as_indices(indices, "indices")?;
    check_along(&shape, idx.shape(), axis)?;
    let out = cx.zeros(&shape, x.dtype())?;
    let cpu = || {
        let x = x.contiguous();
        let data = idx.data::<i64>();
        let (values, how) = (x.values(), index::Reduce::Add);
        let mut out = out.values_mut();
        index::put_along_axis(out.slice(), &shape, axis, data.slice(), idx.shape(), true, values.slice(), how, true)
            .map_err(|e| outside(axis, e))
    };
    cx.run(cpu, |gpu| gpu::index::add_along(gpu, wrapping("take_along_axis"), x, axis, &idx, &out))?;
    cx.grad(out, &[indices], move |g| Ok([Some(g.grad().take_along(g.saved(0), axis as i64)), None]))
}

/// For each row of `x`, its elements at the columns in the same row of `index`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.index_sample(&Tensor::new([[0i64, 2], [1, 1]])).to_vec::<i64>(), [1, 3, 5, 5]);
/// ```
#[op(complex, samples = index_sample_samples)]
fn index_sample(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    ensure!(x.ndim() == 2 && index.ndim() == 2, "x and index must be 2-D");
    ensure!(x.shape()[0] == index.shape()[0], "x has {} rows, index has {}", x.shape()[0], index.shape()[0]);
    x.try_take_along(index, 1)
}

/// Elements of `x` as if it were flat, in the shape of `index`. An index outside is an error with `mode` "raise"; it is
/// taken modulo the size with "wrap" and moved to the nearest end with "clip".
///
/// ```
/// # use sampan_core::{ops::gather::TakeOpts, Tensor};
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.take(&Tensor::new([3i64, -4])).to_vec::<i64>(), [4, 1]);
/// assert_eq!(x.take_with(&Tensor::new([9i64, -1]), TakeOpts::new().mode("clip")).to_vec::<i64>(), [4, 1]);
/// ```
#[op(complex, samples = take_samples)]
fn take(x: &Tensor, index: &Tensor, #[opt("raise")] mode: &str) -> Result<Tensor> {
    ensure!(matches!(mode, "raise" | "wrap" | "clip"), "mode must be raise, wrap or clip, got {mode:?}");
    let n = x.numel() as i64;
    ensure!(n > 0 || index.numel() == 0, "x has no elements to take");
    let index = as_indices(index, "index")?;
    let inside = match mode {
        "wrap" if n > 0 => index.try_remainder(n)?,
        "clip" => index.try_clip(0, n - 1)?,
        _ => index.clone(),
    };
    let rows = inside.try_reshape_to([index.numel()].as_slice())?;
    x.try_reshape_to([n])?.try_index_select(&rows, 0)?.try_reshape_to(index.shape())
}

fn index_select_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), values([2i64, 0, 2], [3])],
        sample![randn([2, 3, 2]), values([2i32, 0, 1, 1], [4]), 1],
        sample![randn([3]), values([0i64, 2], [2]), -1],
        sample![randn([3]), values([0i64, -1], [2])].peer("lambda x, i: torch.index_select(x, 0, i % len(x))"),
        sample![randn([3, 2]), values(Vec::<i64>::new(), [0])],
    ]
}
fn unselect_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), values([2i64, 0, 2], [3]), 0, 4],
        sample![randn([2, 3]), values([1i64, 0, 1], [3]), 1, 2],
        sample![randn([0, 2]), values(Vec::<i64>::new(), [0]), 0, 3],
    ]
}
fn gather_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), values([2i64, 0], [2])],
        sample![randn([3, 4]), values([3i64, 0, 3], [3]), 1],
        sample![randn([3, 4]), values([1i64], []), 1],
        sample![randn([3, 2]), values([1i32, 1], [2, 1]), 0],
    ]
}
fn gather_nd_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 2]), values([1i64, 2, 0, 0, 1, 2], [3, 2])],
        sample![randn([2, 3]), values([1i64, 0, 1], [3, 1])],
        sample![randn([2, 3]), values([1i64, 2, 0, 0], [2, 1, 2])],
        sample![randn([3]), values(Vec::<i64>::new(), [2, 0])].peer("lambda x, i: torch.stack([x] * len(i))"),
    ]
}
fn nd_rows_samples() -> Vec<Sample> {
    vec![sample![values([1i64, 2, 0, -1], [2, 2]), [2, 3, 4]], sample![values([1i32], [1]), [2]]]
}
fn take_along_axis_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0, 1, 1, 2, 2], [2, 3]), 1],
        sample![randn([2, 3]), values([1i64], [1, 1]), 1],
        sample![randn([1, 3]), values([2i64, 0, 1, 1], [2, 2]), -1],
        sample![randn([2, 3, 2]), values([1i32, 0], [1, 1, 2]), 0],
        sample![randn([2, 3]), values([2i64, 0], [1, 2]), 1; broadcast = false],
        sample![randn([]), values([0i64], []), 0].peer("lambda x, i, axis: torch.gather(x, axis, i)"),
    ]
}
fn take_along_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0], [1, 2]), 1],
        sample![randn([3, 2]), values([2i64, 0, 2, 1], [2, 2]), 0],
        sample![randn([2, 0]), values(Vec::<i64>::new(), [2, 0]), 1],
    ]
}
fn untake_along_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2]), values([2i64, 0], [1, 2]), 1, [2, 3]],
        sample![randn([2, 2]), values([2i64, 0, 2, 1], [2, 2]), 0, [3, 2]],
    ]
}
fn index_sample_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0, 1, 1], [2, 2])],
        sample![randn([2, 3]), values(Vec::<i32>::new(), [2, 0])].peer("lambda x, i: torch.gather(x, 1, i.long())"),
    ]
}
fn take_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([5i64, -1, 0, 0], [2, 2])],
        sample![randn([2, 3]), values([8i64, -7], [2]); mode = "wrap"],
        sample![randn([2, 3]), values([8i64, -7], [2]); mode = "clip"],
        sample![randn([]), values([0i64], [])],
    ]
}
