//! Order along an axis: sorting, selecting, searching.

use crate::ops::prelude::*;
use sampan_kernels::{reduce, sort};

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

/// The shape without an axis, or with one element along it.
fn without(x: &Tensor, axis: usize, keepdim: bool) -> Shape {
    let mask: Vec<bool> = (0..x.ndim()).map(|i| i == axis).collect();
    Cx::reduced_shape(x.shape(), &mask, keepdim)
}

/// The gradient of elements that were selected along an axis, brought back to where they came from. `index` has as many
/// elements as `g`, with or without the axis.
fn scatter_back(g: &Tensor, index: &Tensor, shape: &[usize], axis: usize, k: usize) -> Tensor {
    if shape.is_empty() {
        return g.reshape_to(shape);
    }
    let mut picked = Shape::from_slice(shape);
    picked[axis] = k;
    g.reshape_to(&picked).untake_along(&index.reshape_to(&picked), axis as i64, shape)
}

/// Values and positions that a kernel selects along an axis, `k` from each line; `shape` is that of the results.
macro_rules! select {
    ($cx:ident, $x:ident, $at:expr, $k:expr, $shape:expr, |$d:ident, $values:ident, $indices:ident| $kernel:expr) => {{
        let (shape, at, k) = ($shape, $at, $k);
        let (values, indices) = ($cx.out(&shape, $x.dtype())?, $cx.out(&shape, DType::Int64)?);
        $cx.cpu(|| {
            let x = $x.contiguous();
            let (data, mut values, mut indices) = (x.values(), values.values_mut(), indices.data_mut::<i64>());
            let ($d, $values, $indices) = (data.slice(), values.slice(), indices.slice());
            $kernel;
            Ok(())
        })?;
        let from = $x.shape_vec();
        $cx.grad_from_outputs((values, indices), &[1], &[], move |g| {
            Ok(scatter_back(&g.grad(), g.output(1), &from, at, k))
        })
    }};
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
#[op(samples = topk_samples, results("values", "indices"), tuple = "TopKRetType")]
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
    let k = k as usize;
    select!(cx, x, at, k, with_extent(x, at, k), |x, v, i| sort::topk(x, line, k, largest, v, i))
}

/// The elements in order along `axis` and the positions they came from; `sort` comes down to it.
#[op(internal, samples = sort_pairs_samples, peer = "lambda x, a, d: (paddle.sort(x, a, d), paddle.argsort(x, a, d))", results("values", "indices"))]
fn sort_pairs(cx: &Cx, x: &Tensor, axis: i64, descending: bool) -> Result<(Tensor, Tensor)> {
    let (at, line) = along(x, axis)?;
    select!(cx, x, at, line.n, x.shape_vec(), |x, v, i| sort::sort(x, line, descending, v, i))
}

/// The elements in order along `axis`; stable, NaN last (first when descending).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32, 1.0, 2.0]).sort(-1).to_vec::<f32>(), [1.0, 2.0, 3.0]);
/// ```
#[op(samples = sort_samples)]
fn sort(
    x: &Tensor,
    #[default(-1)] axis: i64,
    #[opt(false)] descending: bool,
    #[opt(false)] stable: bool,
) -> Result<Tensor> {
    // Always stable, which `stable = false` allows too.
    let _ = stable;
    Ok(x.try_sort_pairs(axis, descending)?.0)
}

/// The elements in order along the first axis.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[3i64, 1], [2, 4]]).msort().to_vec::<i64>(), [2, 1, 3, 4]);
/// ```
#[op(samples = msort_samples)]
fn msort(input: &Tensor) -> Result<Tensor> {
    input.try_sort(0)
}

/// The `k`-th smallest element along `axis` (the last by default; `k` counts from 1) and its position.
///
/// ```
/// # use sampan_core::Tensor;
/// let (value, index) = Tensor::new([5.0f32, 1.0, 3.0]).kthvalue(2);
/// assert_eq!((value.to_f64(), index.to_f64()), (3.0, 2.0));
/// ```
#[op(samples = kth_samples, results("values", "indices"))]
fn kthvalue(
    cx: &Cx,
    x: &Tensor,
    k: i64,
    #[opt(None)] axis: Option<i64>,
    #[opt(false)] keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    let (at, line) = along(x, axis.unwrap_or(-1))?;
    ensure!(k >= 1 && k as usize <= line.n, "k must lie in [1, {}], the extent of axis {at}, got {k}", line.n);
    select!(cx, x, at, 1, without(x, at, keepdim), |x, v, i| sort::kthvalue(x, line, k as usize, v, i))
}

/// The most frequent element along `axis` (the smallest of several) and its last position.
///
/// ```
/// # use sampan_core::Tensor;
/// let (value, index) = Tensor::new([2.0f32, 5.0, 2.0]).mode(-1);
/// assert_eq!((value.to_f64(), index.to_f64()), (2.0, 2.0));
/// ```
#[op(samples = mode_samples, results("values", "indices"))]
fn mode(cx: &Cx, x: &Tensor, #[default(-1)] axis: i64, #[opt(false)] keepdim: bool) -> Result<(Tensor, Tensor)> {
    let (at, line) = along(x, axis)?;
    ensure!(line.n > 0 || line.lines() == 0, "has no value over an empty axis");
    select!(cx, x, at, 1, without(x, at, keepdim), |x, v, i| sort::mode(x, line, v, i))
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
        sort::argsort(x.values().slice(), line, descending, out.data_mut().slice());
        Ok(())
    })?;
    Ok(out)
}

/// Argmax and argmin: without an axis over all elements in a row.
macro_rules! arg_extreme {
    ($cx:ident, $x:ident, $axis:ident, $keepdim:ident, $dtype:ident, $kernel:ident, $largest:literal) => {{
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
        $cx.run(
            || {
                let x = if $x.dtype() == DType::Bool { $x.try_cast(DType::UInt8)? } else { $x.clone() };
                let x = if flat { x.try_reshape_to([x.numel()])? } else { x };
                reduce::$kernel(x.values().view(), if flat { 0 } else { at }, out.data_mut().slice());
                Ok(())
            },
            |gpu| crate::gpu::arg_extreme(gpu, $largest, $x, &mask, &out),
        )?;
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
    arg_extreme!(cx, x, axis, keepdim, dtype, argmax, true)
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
    arg_extreme!(cx, x, axis, keepdim, dtype, argmin, false)
}

/// Where each of `values` would go in `sorted_sequence`, whose last axis is sorted: 1-D for all values, or with one row
/// for each row of them. `right` (or `side = "right"`): behind equal elements. `sorter` are the positions that sort it.
///
/// ```
/// # use sampan_core::Tensor;
/// let edges = Tensor::new([1.0f32, 2.0, 3.0]);
/// assert_eq!(edges.searchsorted(&Tensor::new([0.5f32, 2.0, 9.0])).to_vec::<i64>(), [0, 1, 3]);
/// ```
#[op(non_diff, samples = search_samples, alias(input = values))]
fn searchsorted(
    cx: &Cx,
    sorted_sequence: &Tensor,
    values: &Tensor,
    #[opt(false)] out_int32: bool,
    #[opt(false)] right: bool,
    #[opt(None)] side: Option<&str>,
    #[opt(None)] sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let rank = sorted_sequence.ndim();
    ensure!(rank > 0, "sorted_sequence must have an axis");
    let right = match side {
        None => right,
        Some("right") => true,
        Some("left") if right => bail!("side is left but right is set"),
        Some("left") => false,
        Some(other) => bail!("side must be left or right, got {other}"),
    };
    let shared = rank == 1;
    let lead = |t: &Tensor| t.shape()[..t.ndim().max(1) - 1].to_vec();
    ensure!(
        shared || (values.ndim() == rank && lead(values) == lead(sorted_sequence)),
        "sorted_sequence must be 1-D or have the shape of values but for the last axis"
    );
    let sequence = match sorter {
        Some(order) => sorted_sequence.try_take_along(order, -1)?,
        None => sorted_sequence.clone(),
    };
    let dtype = crate::promote::promote(sequence.dtype(), values.dtype());
    let out = cx.out(values.shape(), DType::Int64)?;
    cx.cpu(|| {
        let wide = |t: &Tensor| t.in_dtype(dtype)?.widened()?.in_rows();
        let (s, v) = (wide(&sequence)?, wide(values)?);
        let (m, q) = (s.dim(-1), if shared { v.numel() } else { v.dim(-1) });
        sort::searchsorted(s.values().slice(), m, v.values().slice(), q, right, out.data_mut().slice());
        Ok(())
    })?;
    if out_int32 { out.try_cast(DType::Int32) } else { Ok(out) }
}

/// Which interval of the sorted 1-D `sorted_sequence` each element falls into. `right`: an edge belongs to the next one.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[0.5f32, 1.0], [2.5, 9.0]]);
/// assert_eq!(x.bucketize(&Tensor::new([1.0f32, 2.0, 3.0])).to_vec::<i64>(), [0, 0, 2, 3]);
/// ```
#[op(non_diff, samples = bucketize_samples, alias(boundaries = sorted_sequence))]
fn bucketize(
    x: &Tensor,
    sorted_sequence: &Tensor,
    #[opt(false)] out_int32: bool,
    #[opt(false)] right: bool,
) -> Result<Tensor> {
    ensure!(sorted_sequence.ndim() == 1, "sorted_sequence must be 1-D, it has {} axes", sorted_sequence.ndim());
    sorted_sequence.try_searchsorted_with(x, SearchsortedOpts::new().out_int32(out_int32).right(right))
}

/// Equal rows of a matrix in groups, in ascending order of their values (neighbours in their own order with
/// `consecutive`): the first row of each group, the group of each row, the sizes. `unique` comes down to it.
#[op(
    internal,
    non_diff,
    samples = group_samples,
    peer = "lambda x, consecutive: [t.reshape(-1) for t in np.unique(x, True, True, True, 0)[1:]]",
    results("first", "group", "sizes")
)]
fn group_rows(cx: &Cx, x: &Tensor, consecutive: bool) -> Result<(Tensor, Tensor, Tensor)> {
    cx.needs_values()?;
    ensure!(x.ndim() == 2, "x must be a matrix");
    let (rows, width) = (x.shape()[0], x.shape()[1]);
    let x = if consecutive || width != 1 { x.widened()?.in_rows()? } else { x.in_rows()? };
    let groups = match (consecutive, width) {
        (true, _) => sort::unique_consecutive(x.values().slice(), rows, width),
        (false, 1) => sort::unique(x.values().slice()),
        (false, _) => sort::unique_rows(x.values().slice(), rows, width),
    };
    let list = |v: Vec<i64>| Tensor::try_from_slice(&v, [v.len()]);
    Ok((list(groups.first)?, list(groups.inverse)?, list(groups.counts)?))
}

/// The groups of equal elements, or of equal slices along an axis, as `unique` and its kin return them.
fn groups(x: &Tensor, axis: Option<i64>, consecutive: bool, wanted: [bool; 3], dtype: DType) -> Result<Varying> {
    if !matches!(dtype, DType::Int32 | DType::Int64) {
        return Err(Error::dtype(format!("positions and counts are int32 or int64, not {dtype}")));
    }
    let axis = axis.map(|a| resolve_axis(a, x.ndim())).transpose()?.filter(|_| x.ndim() > 0);
    // Slices along the axis become the rows of a matrix.
    let turned = match axis {
        None => x.try_reshape_to([x.numel(), 1])?,
        Some(a) => x.try_moveaxis(a as i64, 0)?,
    };
    let width = turned.shape()[1..].iter().product::<usize>();
    let rows = turned.try_reshape_to([turned.shape()[0], width])?;
    let (first, inverse, counts) = rows.detach().try_group_rows(consecutive)?;
    let values = turned.try_index_select(&first, 0)?;
    let values = match axis {
        None => values.try_reshape_to([first.numel()])?,
        Some(a) => values.try_moveaxis(0, a as i64)?,
    };
    let mut out = vec![values];
    for (part, wanted) in [first, inverse, counts].into_iter().zip(wanted) {
        if wanted {
            out.push(part.try_cast(dtype)?);
        }
    }
    Ok(Varying(out))
}

/// The different elements (or slices along `axis`) in ascending order; on demand the position of the first of each, the
/// place of every element among them, and how often each occurs. NaNs are equal here.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3i64, 1, 3]).unique().to_vec::<i64>(), [1, 3]);
/// ```
#[op(samples = unique_samples)]
fn unique(
    x: &Tensor,
    #[opt(false)] return_index: bool,
    #[opt(false)] return_inverse: bool,
    #[opt(false)] return_counts: bool,
    #[opt(None)] axis: Option<i64>,
    #[opt(DType::Int64)] dtype: DType,
    #[opt(true)] sorted: bool,
) -> Result<Varying> {
    // The order is always the sorted one, which `sorted = false` allows too.
    let _ = sorted;
    groups(x, axis, false, [return_index, return_inverse, return_counts], dtype)
}

/// The elements (or slices along `axis`) without those equal to the one before; on demand the place of every element
/// among them, and the length of each run.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 1, 2, 1]).unique_consecutive().to_vec::<i64>(), [1, 2, 1]);
/// ```
#[op(samples = consecutive_samples)]
fn unique_consecutive(
    x: &Tensor,
    #[opt(false)] return_inverse: bool,
    #[opt(false)] return_counts: bool,
    #[opt(None)] axis: Option<i64>,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Varying> {
    groups(x, axis, true, [false, return_inverse, return_counts], dtype)
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
fn sort_pairs_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 5]), -1, false],
        sample![distinct([2, 4, 3]), 1, true],
        sample![distinct([]), 0, false],
        sample![distinct([0, 3]), 0, false],
    ]
}
fn msort_samples() -> Vec<Sample> {
    vec![sample![distinct([3, 2])], sample![distinct([])]]
}
fn kth_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 5]), 2],
        sample![distinct([2, 4, 3]), 3; axis = 1, keepdim = true],
        sample![distinct([4, 2]), 1; axis = 0],
        sample![distinct([]), 1].peer("torch.kthvalue"),
    ]
}
fn mode_samples() -> Vec<Sample> {
    let x = || values(vec![1.0f32, 3.0, 3.0, 2.0, 2.0, 5.0, 1.0, 1.0], [2, 4]);
    vec![
        sample![x()].no_grad("a mode jumps"),
        sample![x(), 0; keepdim = true].no_grad("a mode jumps"),
        sample![ints([2, 9], 0, 4), 1],
        sample![distinct([])].peer("torch.mode"),
    ]
}
fn search_samples() -> Vec<Sample> {
    let edges = || values(vec![-1.0f32, 0.5, 0.5, 1.5], [4]);
    vec![
        sample![edges(), values(vec![-2.0f32, 0.5, 1.0, 9.0], [2, 2])],
        sample![edges(), values(vec![0.5f32, 1.5], [2]); out_int32 = true, right = true],
        sample![values(vec![1i64, 3, 5, 2, 4, 6], [2, 3]), values(vec![3i64, 6, 3, 6], [2, 2])],
        sample![edges(), values(vec![0.5f32], []); side = "right"],
        sample![values(vec![3.0f32, 1.0, 2.0], [3]), randn([4]); sorter = values(vec![1i64, 2, 0], [3])],
    ]
}
fn bucketize_samples() -> Vec<Sample> {
    let edges = || values(vec![-1.0f32, 0.5, 1.5], [3]);
    vec![
        sample![randn([2, 3]), edges()],
        sample![values(vec![0.5f32, 1.5], [2]), edges(); right = true, out_int32 = true],
        sample![randn([]), edges()],
    ]
}
fn group_samples() -> Vec<Sample> {
    let neighbours = "lambda x, consecutive: \
        (t := torch.unique_consecutive(x, True, True, 0), (t[2].cumsum(0) - t[2], t[1], t[2]))[-1]";
    vec![sample![ints([4, 2], 0, 2), false], sample![ints([4, 2], 0, 2), true].peer(neighbours)]
}
fn unique_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 5], 0, 4)],
        sample![ints([2, 5], 0, 4); return_index = true, return_inverse = true, return_counts = true],
        sample![ints([6, 2], 0, 2); return_counts = true, axis = 0, dtype = DType::Int32],
        sample![distinct([2, 3]); return_inverse = true, axis = 1]
            .grad_peer("lambda x, **_: x[:, torch.argsort(x[0])]"),
        sample![randn([])].grad_peer("torch.atleast_1d"),
        sample![randn([0])],
    ]
}
fn consecutive_samples() -> Vec<Sample> {
    let x = || values(vec![1i64, 1, 2, 2, 1, 3], [6]);
    vec![
        sample![x()],
        sample![x(); return_inverse = true, return_counts = true],
        sample![values(vec![1i64, 1, 1, 1, 2, 1], [3, 2]); return_counts = true, axis = 0],
        sample![distinct([5])].grad_peer("torch.clone"),
    ]
}
