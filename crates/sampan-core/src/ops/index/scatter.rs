//! Writing elements at positions. Of values that meet in one place the last stays, sums go in order.

use crate::Index;
use crate::ops::gather::{along_shapes, as_indices, check_along, outside, split_at};
use crate::ops::prelude::*;
use sampan_kernels::index::{self, Reduce};

fn parse_reduce(word: &str) -> Result<Reduce> {
    Ok(match word {
        "assign" => Reduce::Assign,
        "add" | "sum" => Reduce::Add,
        "mul" | "multiply" | "prod" => Reduce::Mul,
        "mean" => Reduce::Mean,
        "amin" => Reduce::Min,
        "amax" => Reduce::Max,
        other => bail!("reduce must be assign, add, mul, mean, amin or amax, got {other:?}"),
    })
}

/// An operand as a tensor of a dtype and shape.
fn values_as(values: &Operand, like: &Tensor, shape: &[usize]) -> Result<Tensor> {
    match values {
        Operand::Tensor(t) => {
            let common = broadcast(t.shape(), shape)?;
            ensure!(common[..] == *shape, "values of shape {:?} do not broadcast to {shape:?}", t.shape());
            t.fitting(like.dtype())?.try_expand(shape)
        }
        Operand::Scalar(s) => Tensor::full_on(Shape::new(), *s, like.dtype(), like.device()).try_expand(shape),
    }
}

/// `arr` with `values` written at `indices` along `axis`: `out[i][indices[i][j]] = values[i][j]` for `axis` 1. `reduce`
/// is assign, add, mul, mean, amin or amax; without `include_self` the old element takes no part where a value lands.
/// With `broadcast` the indices are matched to `arr` and the values to the indices; without, indices may be shorter.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// let y = x.put_along_axis(&Tensor::new([[2i64], [0]]), 9, 1);
/// assert_eq!(y.to_vec::<i64>(), [1, 2, 9, 9, 5, 6]);
/// ```
#[op(inplace, complex, samples = put_along_axis_samples, alias(x = arr, input = arr, index = indices, src = values, value = values))]
fn put_along_axis(
    arr: &Tensor,
    indices: &Tensor,
    values: Operand,
    axis: i64,
    #[opt("assign")] reduce: &str,
    #[opt(true)] include_self: bool,
    #[opt(true)] broadcast: bool,
) -> Result<Tensor> {
    ensure!(
        arr.ndim() == indices.ndim(),
        "arr has rank {}, indices have rank {}; they must be equal",
        arr.ndim(),
        indices.ndim()
    );
    parse_reduce(reduce)?;
    let axis = resolve_axis(axis, arr.ndim())?;
    if arr.ndim() == 0 {
        let (arr, indices) = (arr.try_reshape_to([1])?, indices.try_reshape_to([1])?);
        let values = values_as(&values, &arr, &[1])?;
        return arr.try_put_along(&indices, &values, 0, reduce, include_self)?.try_squeeze(0);
    }
    let (indices, values) = if broadcast {
        let (a, i) = along_shapes(arr.shape(), indices.shape(), axis)?;
        ensure!(a[..] == *arr.shape(), "indices of shape {:?} reach beyond arr", indices.shape());
        (indices.try_expand(&i)?, values_as(&values, arr, &i)?)
    } else {
        let values = match &values {
            Operand::Tensor(v) => {
                ensure!(v.ndim() == indices.ndim(), "values have rank {}, indices {}", v.ndim(), indices.ndim());
                for (a, (&n, &i)) in v.shape().iter().zip(indices.shape()).enumerate() {
                    ensure!(i <= n, "indices have extent {i} on axis {a}, where values have only {n}");
                }
                let n = indices.ndim();
                v.try_view_slice(vec![0i64; n], indices.shape(), vec![1i64; n])?.fitting(arr.dtype())?
            }
            number => values_as(number, arr, indices.shape())?,
        };
        (indices.clone(), values)
    };
    arr.try_put_along(&indices, &values, axis as i64, reduce, include_self)
}

/// `put_along_axis` without broadcasting: `indices` and `values` have one shape.
#[op(
    internal,
    complex,
    samples = put_along_samples,
    onnx = "ScatterElements",
    peer = "lambda x, i, v, axis, reduce, own: torch.scatter_reduce(x, axis, i, v, 'sum', include_self=own)"
)]
fn put_along(
    cx: &Cx,
    x: &Tensor,
    indices: &Tensor,
    values: &Tensor,
    axis: i64,
    reduce: &str,
    include_self: bool,
) -> Result<Tensor> {
    let how = parse_reduce(reduce)?;
    let axis = resolve_axis(axis, x.ndim())?;
    ensure!(x.ndim() > 0 && x.ndim() == indices.ndim(), "x and indices must have the same rank, at least 1");
    ensure!(indices.shape() == values.shape(), "indices and values must have one shape");
    if values.dtype() != x.dtype() {
        return Err(Error::dtype(format!("x is {}, values are {}", x.dtype(), values.dtype())));
    }
    if x.is_complex() && !matches!(how, Reduce::Assign | Reduce::Add | Reduce::Mean) {
        return Err(Error::dtype(format!("complex numbers are assigned, added or averaged, not reduced by {reduce}")));
    }
    check_along(x.shape(), indices.shape(), axis)?;
    let idx = as_indices(indices, "indices")?;
    let out = match cx.device() {
        Device::Cpu | Device::Cuda(_) => x.try_clone_data()?,
        _ => cx.out(x.shape(), x.dtype())?,
    };
    cx.cpu(|| {
        let values = values.contiguous();
        let data = idx.data::<i64>();
        let (from, mut to) = (values.values(), out.values_mut());
        index::put_along_axis(
            to.slice(),
            x.shape(),
            axis,
            data.slice(),
            idx.shape(),
            true,
            from.slice(),
            how,
            include_self,
        )
        .map_err(|e| outside(axis, e))
    })?;
    let axis = axis as i64;
    match how {
        Reduce::Assign => cx.grad(out, &[indices], move |g| {
            let (i, d) = (g.saved(0), g.grad());
            let dv = g.if_needed(2, || last_written(i, d.shape(), axis).where_cond(d.take_along(i, axis), 0.0));
            Ok([g.if_needed(0, || &d * untouched(&d, i, axis)), None, dv])
        }),
        Reduce::Add => cx.grad(out, &[indices], move |g| {
            let (i, d) = (g.saved(0), g.grad());
            let dx = g.if_needed(0, || if include_self { d.clone() } else { &d * untouched(&d, i, axis) });
            Ok([dx, None, g.if_needed(2, || d.take_along(i, axis))])
        }),
        Reduce::Mean => cx.grad(out, &[indices], move |g| {
            let (i, d) = (g.saved(0), g.grad());
            let ones = Tensor::full_on(i.shape(), 1.0, d.dtype(), d.device());
            let count = ones.untake_along(i, axis, d.shape()) + if include_self { 1.0 } else { 0.0 };
            let dx = g.if_needed(0, || if include_self { &d / &count } else { &d * untouched(&d, i, axis) });
            Ok([dx, None, g.if_needed(2, || d.take_along(i, axis) / count.take_along(i, axis))])
        }),
        Reduce::Mul => cx.grad(out, &[x, indices, values], move |g| {
            let (x, i, v, d) = (g.saved(0), g.saved(1), g.saved(2), g.grad());
            let dx = g.if_needed(0, || {
                let ones = Tensor::full_like_scalar(&d, 1.0);
                &d * if include_self { ones.put_along(i, v, axis, "mul", true) } else { untouched(&d, i, axis) }
            });
            let dv = g.if_needed(2, || {
                // The product of the others: without zeros by division, and zero if one of the others is.
                let zero = v.cast(DType::Bool).where_cond(0.0, 1.0).cast(v.dtype());
                let others = zero.untake_along(i, axis, d.shape()).take_along(i, axis) - &zero;
                let safe = zero.cast(DType::Bool).where_cond(1.0, v);
                let product = x.put_along(i, &safe, axis, "mul", include_self).take_along(i, axis) / safe;
                d.take_along(i, axis) * others.cast(DType::Bool).where_cond(0.0, product)
            });
            Ok([dx, None, dv])
        }),
        Reduce::Min | Reduce::Max => cx.grad_from_output(out, &[x, indices, values], move |g| {
            // Those that equal the result share the gradient.
            let (x, i, v, d, out) = (g.saved(0), g.saved(1), g.saved(2), g.grad(), g.output(0).detach());
            let won = |a: &Tensor, b: &Tensor| a.detach().not_equal(b).where_cond(0.0, 1.0).cast(d.dtype());
            let x_won = if include_self { won(x, &out) } else { untouched(&d, i, axis) };
            let v_won = won(v, &out.take_along(i, axis));
            let share = &d / (&x_won + v_won.untake_along(i, axis, d.shape()));
            Ok([g.if_needed(0, || &share * x_won), None, g.if_needed(2, || share.take_along(i, axis) * v_won)])
        }),
    }
}

/// One where no value lands, zero elsewhere.
fn untouched(like: &Tensor, indices: &Tensor, axis: i64) -> Tensor {
    let zeros = Tensor::zeros_on(indices.shape(), like.dtype(), like.device());
    Tensor::full_like_scalar(like, 1.0).put_along(indices, &zeros, axis, "assign", true)
}

/// Which values stay; false for those overwritten by a later one in the same place.
fn last_written(indices: &Tensor, shape: &[usize], axis: i64) -> Tensor {
    let numbers = Tensor::from_vec((0..indices.numel() as i64).collect::<Vec<_>>(), indices.shape());
    let board = Tensor::zeros(shape, DType::Int64);
    board.put_along(indices, &numbers, axis, "assign", true).take_along(indices, axis).equal(numbers)
}

/// `x` with `src` added at `index` along `axis`, as `put_along_axis` with "add" and without broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3]);
/// let y = x.scatter_add(0, &Tensor::new([0i64, 0, 2]), &Tensor::new([10i64, 20, 30]));
/// assert_eq!(y.to_vec::<i64>(), [31, 2, 33]);
/// ```
#[op(inplace, complex, samples = scatter_add_samples)]
fn scatter_add(x: &Tensor, axis: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let opts = PutAlongAxisOpts::new().reduce("add").broadcast(false);
    x.try_put_along_axis_with(index, src, axis, opts)
}

/// `x` combined with `src` at `index` along `axis`: `reduce` is sum, prod, mean, amin or amax. Without `include_self`
/// the old element takes no part where a value lands.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3]);
/// let y = x.scatter_reduce(0, &Tensor::new([0i64, 0, 2]), &Tensor::new([10i64, 20, 1]), "amax");
/// assert_eq!(y.to_vec::<i64>(), [20, 2, 3]);
/// ```
#[op(inplace, samples = scatter_reduce_samples)]
fn scatter_reduce(
    x: &Tensor,
    axis: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    #[opt(true)] include_self: bool,
) -> Result<Tensor> {
    let opts = PutAlongAxisOpts::new().reduce(reduce).include_self(include_self).broadcast(false);
    x.try_put_along_axis_with(index, src, axis, opts)
}

/// `x` with rows of `updates` written at the rows `index`. Without `overwrite` those rows are cleared first and rows
/// that meet are added.
///
/// ```
/// # use sampan_core::{ops::scatter::ScatterOpts, Tensor};
/// let x = Tensor::new([[1i64], [1], [1]]);
/// let (i, u) = (Tensor::new([2i64, 0, 0]), Tensor::new([[5i64], [6], [7]]));
/// assert_eq!(x.scatter(&i, &u).to_vec::<i64>(), [7, 1, 5]);
/// assert_eq!(x.scatter_with(&i, &u, ScatterOpts::new().overwrite(false)).to_vec::<i64>(), [13, 1, 5]);
/// ```
#[op(inplace, complex, samples = scatter_samples, amp = "black_o2")]
fn scatter(x: &Tensor, index: &Tensor, updates: &Tensor, #[opt(true)] overwrite: bool) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "x must have rows");
    let column = index.ndim() == 2 && index.shape()[1] == 1;
    ensure!(index.ndim() <= 1 || column, "index must be 0-D, 1-D or [N, 1], got shape {:?}", index.shape());
    let n = index.numel();
    let rows: Shape = [&[n], &x.shape()[1..]].concat().into();
    let single = index.ndim() == 0 && updates.shape() == &x.shape()[1..];
    ensure!(
        updates.shape() == &rows[..] || single,
        "updates must hold {n} rows of x, shape {rows:?}, got {:?}",
        updates.shape()
    );
    let (index, updates) = (index.try_reshape_to([n].as_slice())?, updates.fitting(x.dtype())?.try_reshape_to(&rows)?);
    if overwrite {
        return x.try_setitem(&index, updates);
    }
    x.try_index_fill(&index, 0, 0.0)?.try_index_add(&index, 0, &updates)
}

/// Zeros of `shape`, to which `updates` are added at index tuples (the last axis of `index`).
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[1i64], [1]]).scatter_nd(&Tensor::new([3.0f32, 4.0]), [3]);
/// assert_eq!(y.to_vec::<f32>(), [0.0, 7.0, 0.0]);
/// ```
#[op(complex, samples = scatter_nd_samples)]
fn scatter_nd(index: &Tensor, updates: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    let [n, width] = nd_extents(index, updates, &shape)?;
    let rows = index.try_nd_rows(&shape)?;
    updates.try_reshape_to([rows.numel(), width].as_slice())?.try_unselect(&rows, 0, n as i64)?.try_reshape_to(shape)
}

/// How many rows index tuples address, and how long each is; checks the shape of what goes there.
fn nd_extents(index: &Tensor, updates: &Tensor, shape: &[usize]) -> Result<[usize; 2]> {
    let depth = crate::ops::gather::nd_depth(index, shape)?;
    let expected = [&index.shape()[..index.ndim() - 1], &shape[depth..]].concat();
    ensure!(updates.shape() == expected, "updates must have shape {expected:?}, got {:?}", updates.shape());
    crate::shape::checked_numel(shape)?;
    Ok([shape[..depth].iter().product(), shape[depth..].iter().product()])
}

/// `x` with `updates` added at index tuples (the last axis of `index`).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// let y = x.scatter_nd_add(&Tensor::new([[1i64, 0], [1, 0]]), &Tensor::new([10i64, 20]));
/// assert_eq!(y.to_vec::<i64>(), [1, 2, 33, 4]);
/// ```
#[op(complex, samples = scatter_nd_add_samples)]
fn scatter_nd_add(x: &Tensor, index: &Tensor, updates: &Tensor) -> Result<Tensor> {
    let [n, width] = nd_extents(index, updates, x.shape())?;
    let rows = index.try_nd_rows(x.shape())?;
    let updates = updates.try_reshape_to([rows.numel(), width].as_slice())?;
    x.try_reshape_to([n, width].as_slice())?.try_index_add(&rows, 0, &updates)?.try_reshape_to(x.shape())
}

/// `x` with `alpha` times the rows of `value` added at `index` along `axis`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3]);
/// assert_eq!(x.index_add(&Tensor::new([2i64, 2]), 0, &Tensor::new([10i64, 20])).to_vec::<i64>(), [1, 2, 33]);
/// ```
#[op(inplace, complex, samples = index_add_samples, alias(source = value))]
fn index_add(cx: &Cx, x: &Tensor, index: &Tensor, axis: i64, value: &Tensor, #[opt(1.0)] alpha: f64) -> Result<Tensor> {
    ensure!(x.ndim() > 0 && index.ndim() <= 1, "x must have axes and index must be 1-D, got {:?}", index.shape());
    let axis = resolve_axis(axis, x.ndim())?;
    let mut rows = x.shape_vec();
    rows[axis] = index.numel();
    ensure!(value.shape() == &rows[..], "value must have shape {rows:?}, got {:?}", value.shape());
    let idx = as_indices(index, "index")?;
    let out = match cx.device() {
        Device::Cpu | Device::Cuda(_) => x.try_clone_data()?,
        _ => cx.out(x.shape(), x.dtype())?,
    };
    let cpu = || {
        let value = value.fitting(x.dtype())?.contiguous();
        let (data, along) = (idx.data::<i64>(), split_at(x.shape(), axis));
        let (from, mut to) = (value.values(), out.values_mut());
        index::index_add(to.slice(), along, data.slice(), true, from.slice(), alpha).map_err(|e| outside(axis, e))
    };
    cx.run(cpu, |gpu| {
        let rule = sampan_cuda::index::Rule { op: "index_add", wrap: true, skip: None };
        crate::gpu::index::add_rows(gpu, rule, &value.fitting(x.dtype())?, alpha, axis, &idx, &out)
    })?;
    cx.grad(out, &[index], move |g| {
        let dv = g.if_needed(2, || g.grad().index_select(g.saved(0), axis as i64) * alpha);
        Ok([Some(g.grad()), None, dv])
    })
}

/// `x` with a number (or 0-d tensor) written at the rows `index` along `axis`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.index_fill(&Tensor::new([0i64, 2]), 1, 9).to_vec::<i64>(), [9, 2, 9, 9, 5, 9]);
/// ```
#[op(inplace, complex, samples = index_fill_samples)]
fn index_fill(x: &Tensor, index: &Tensor, axis: i64, value: Operand) -> Result<Tensor> {
    ensure!(x.ndim() > 0 && index.ndim() <= 1, "x must have axes and index must be 1-D, got {:?}", index.shape());
    let axis = resolve_axis(axis, x.ndim())?;
    if let Operand::Tensor(v) = &value {
        ensure!(v.numel() == 1, "value must be a number or a 0-d tensor, got shape {:?}", v.shape());
    }
    let index = as_indices(index, "index")?;
    let mut parts = vec![Index::ALL; axis];
    parts.push(Index::Tensor(index.try_reshape_to([index.numel()].as_slice())?));
    x.try_setitem(parts, value)
}

/// `x` with `value` written at `x[indices]`, where `indices` are integer tensors or masks for the first axes; with
/// `accumulate` it is added, and each of several values for one place counts.
///
/// ```
/// # use sampan_core::{ops::scatter::IndexPutOpts, Tensor};
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// let (i, v) = (Tensor::new([1i64, 1]), Tensor::new([5i64, 6]));
/// assert_eq!(x.index_put(&[i.clone(), i.clone()], &v).to_vec::<i64>(), [1, 2, 3, 6]);
/// let sum = x.index_put_with(&[i.clone(), i], &v, IndexPutOpts::new().accumulate(true));
/// assert_eq!(sum.to_vec::<i64>(), [1, 2, 3, 15]);
/// ```
#[op(inplace, complex, samples = index_put_samples)]
fn index_put(x: &Tensor, indices: &[Tensor], value: Operand, #[opt(false)] accumulate: bool) -> Result<Tensor> {
    let opts = crate::ops::indexing::SetitemOpts::new().accumulate(accumulate);
    x.try_setitem_with(indices.to_vec(), value, opts)
}

/// `x` with successive elements of `value` written where `mask` is true.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// let y = x.masked_scatter(&Tensor::new([true, false]), &Tensor::new([8i64, 9, 10]));
/// assert_eq!(y.to_vec::<i64>(), [8, 2, 9, 4]);
/// ```
#[op(inplace, complex, samples = masked_scatter_samples)]
fn masked_scatter(x: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    let mask = crate::ops::masking::as_mask(mask, "mask")?;
    let common = broadcast(x.shape(), mask.shape())?;
    ensure!(common[..] == *x.shape(), "mask of shape {:?} does not broadcast to x", mask.shape());
    let mask = mask.try_expand(&common)?;
    let count = mask.try_argwhere()?.shape()[0];
    ensure!(value.numel() >= count, "value has {} elements, the mask takes {count}", value.numel());
    let first = value.try_reshape_to([value.numel()].as_slice())?.try_narrow(0, 0, count)?;
    x.try_setitem(&mask, first)
}

fn put_along_axis_samples() -> Vec<Sample> {
    let i = || values([2i64, 0, 1, 1], [2, 2]);
    vec![
        sample![randn([2, 3]), i(), randn([2, 2]), 1],
        sample![randn([2, 3]), values([1i64], [1, 1]), 1.5, 1],
        sample![randn([3, 2]), values([2i64, 0, 2, 1], [2, 2]), randn([2, 2]), 0; reduce = "add"],
        sample![randn([2, 3]), i(), randn([1]), 1; reduce = "add", include_self = false],
        sample![randn([2, 3]), values([2i64, 0], [1, 2]), randn([2, 2]), 1; broadcast = false]
            .peer("lambda x, i, v, axis, broadcast: torch.scatter(x, axis, i, v[:1])"),
        sample![randn([2, 3]), i(), randn([2, 2]), 1; reduce = "mul"],
        sample![randn([2, 3]), i(), randn([2, 2]), 1; reduce = "multiply", include_self = false],
        sample![randn([2, 3]), i(), randn([2, 2]), 1; reduce = "mean"],
        sample![randn([2, 3]), i(), randn([2, 2]), 1; reduce = "mean", include_self = false],
        sample![distinct([2, 3]), i(), distinct([2, 2]), 1; reduce = "amin"],
        sample![distinct([2, 3]), i(), distinct([2, 2]), 1; reduce = "amax", include_self = false],
        sample![randn([]), values([0i64], []), 1.0, 0].peer("lambda x, i, v, axis: torch.scatter(x, axis, i, v)"),
    ]
}
fn put_along_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0, 1, 1], [2, 2]), randn([2, 2]), 1, "assign", true]
            .peer("lambda x, i, v, *_: torch_write(x, [(r, k) for r in (0, 1) for k in i[r]], v.flatten())"),
        sample![randn([3, 2]), values([2i64, 0], [1, 2]), randn([1, 2]), 0, "add", true],
        sample![randn([3]), values(Vec::<i64>::new(), [0]), randn([0]), 0, "add", false],
    ]
}
fn scatter_add_samples() -> Vec<Sample> {
    let i = values([2i64, 0, 1, 1], [2, 2]);
    vec![
        sample![randn([3, 2]), 0, i.clone(), randn([2, 2])],
        sample![randn([2, 3]), -1, i, positive([2, 3])]
            .peer("lambda x, axis, i, v: torch.scatter_add(x, axis, i, v[:, :2])"),
    ]
}
fn scatter_reduce_samples() -> Vec<Sample> {
    let i = || values([2i64, 0, 1, 1], [2, 2]);
    vec![
        sample![randn([2, 3]), 1, i(), randn([2, 2]), "sum"],
        sample![randn([2, 3]), 1, i(), randn([2, 2]), "prod"],
        sample![randn([2, 3]), 1, i(), values([1.5f32, -1.0, 0.0, 2.0], [2, 2]), "prod"; include_self = false]
            .peer("torch.scatter_reduce")
            .no_grad("the second gradient at a zero leaves out mixed terms"),
        sample![randn([2, 3]), 1, i(), randn([2, 2]), "mean"; include_self = false],
        sample![distinct([2, 3]), 1, i(), distinct([2, 2]), "amax"],
        sample![distinct([2, 3]), 1, i(), distinct([2, 2]), "amin"; include_self = false],
    ]
}
fn scatter_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), values([2i64, 0], [2]), randn([2, 2])],
        sample![randn([3, 2]), values([1i64, 1, 0], [3]), positive([3, 2])]
            .peer("lambda x, i, v: torch_write(x, i.tolist(), v)"),
        sample![randn([3, 2]), values([1i32, 1, 0], [3]), positive([3, 2]); overwrite = false],
        sample![randn([3]), values([1i64, 2], [2, 1]), positive([2])],
        sample![randn([3, 2]), values([1i64], []), positive([2])],
    ]
}
fn scatter_nd_samples() -> Vec<Sample> {
    vec![
        sample![values([1i64, 1, 0], [3, 1]), randn([3, 2]), [4, 2]],
        sample![values([1i64, 1, 0, 0], [2, 2]), randn([2]), [2, 3]],
    ]
}
fn scatter_nd_add_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 2]), values([1i64, 1, 0], [3, 1]), randn([3, 2])],
        sample![randn([2, 3]), values([1i64, 1, 1, 1], [2, 2]), randn([2])],
        sample![randn([2, 3]), values([1i64, 0], [1, 2, 1]), randn([1, 2, 3])],
    ]
}
fn index_add_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 2]), values([2i64, 0, 2], [3]), 0, positive([3, 2])],
        sample![randn([2, 3]), values([1i32, 1], [2]), 1, randn([2, 2]); alpha = 0.5]
            .peer("lambda x, i, axis, v, alpha: torch.index_add(x, axis, i, v, alpha=alpha)"),
        sample![randn([3]), values(Vec::<i64>::new(), [0]), 0, randn([0])]
            .peer("lambda x, i, axis, v: torch.index_add(x, axis, i, v)"),
    ]
}
fn index_fill_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0], [2]), 1, 1.5],
        sample![randn([3, 2]), values([1i64, 0], [2]), 0, randn([])],
        sample![randn([3, 2]), values([1i64, 1], [2]), 0, randn([])]
            .peer("lambda x, i, axis, v: torch_write(x, i.tolist(), [v, v])"),
    ]
}
fn index_put_samples() -> Vec<Sample> {
    let i = || values([1i64, 0, 1], [3]);
    vec![
        sample![randn([2, 3]), vec![values([1i64, 0], [2])], randn([2, 3])],
        sample![randn([2, 3]), vec![i(), i()], randn([3]); accumulate = true],
        sample![randn([2, 3]), vec![bools([2, 3])], randn([])],
        sample![randn([2, 3, 2]), vec![i(), i()], randn([3, 1]); accumulate = true],
        sample![randn([2, 3]), vec![i(), i()], randn([3])].peer("lambda x, i, v: torch_write(x, zip(*i), v)"),
    ]
}
fn masked_scatter_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), bools([2, 3]), randn([2, 3])], sample![randn([2, 3]), bools([3]), positive([7])]]
}
