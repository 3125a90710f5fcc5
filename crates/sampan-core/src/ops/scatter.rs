//! Writing elements at positions. Of values that meet in one place the last stays, sums go in order.

use super::gather::{along_shapes, as_indices, check_along, outside};
use super::prelude::*;
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
            t.try_cast(like.dtype())?.try_expand(shape)
        }
        Operand::Scalar(s) => {
            let one = Tensor::uninit(Shape::new(), like.dtype(), like.device());
            Tensor::full_like_scalar_value(&one, *s).try_expand(shape)
        }
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
#[op(inplace, samples = put_along_axis_samples, alias(x = arr, input = arr, index = indices, src = values, value = values))]
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
                v.try_view_slice(vec![0i64; n], indices.shape(), vec![1i64; n])?.try_cast(arr.dtype())?
            }
            number => values_as(number, arr, indices.shape())?,
        };
        (indices.clone(), values)
    };
    arr.try_put_along(&indices, &values, axis as i64, reduce, include_self)
}

/// `put_along_axis` without broadcasting: `indices` and `values` have one shape.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i, v) = (Tensor::new([1i64, 2, 3]), Tensor::new([0i64, 0]), Tensor::new([5i64, 6]));
/// assert_eq!(x.put_along(&i, &v, 0, "add", true).to_vec::<i64>(), [12, 2, 3]);
/// ```
#[op(samples = put_along_samples, onnx = "ScatterElements", peer = "none: internal form of put_along_axis")]
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
    check_along(x.shape(), indices.shape(), axis)?;
    let idx = as_indices(indices, "indices")?;
    let out = match cx.device() {
        Device::Cpu => x.try_clone_data()?,
        _ => cx.out(x.shape(), x.dtype())?,
    };
    cx.cpu(|| {
        let values = values.contiguous();
        let data = idx.data::<i64>();
        match_dtype!(x.dtype(), T => {
            let from = values.data::<T>();
            index::put_along_axis(
                out.data_mut::<T>().slice(), x.shape(), axis, data.slice(), idx.shape(), true, from.slice(), how,
                include_self,
            )
        })
        .map_err(|e| outside(axis, e))
    })?;
    let axis = axis as i64;
    match how {
        Reduce::Assign => cx.grad(out, &[indices], move |g| {
            let (i, d) = (g.saved(0), g.grad());
            let dx = g.if_needed(0, || d.multiply(untouched(&d, i, axis)));
            Ok([dx, None, g.if_needed(2, || d.take_along(i, axis) * last_written(&d, i, axis))])
        }),
        Reduce::Add => cx.grad(out, &[indices], move |g| {
            let (i, d) = (g.saved(0), g.grad());
            let dx = g.if_needed(0, || if include_self { d.clone() } else { d.multiply(untouched(&d, i, axis)) });
            Ok([dx, None, g.if_needed(2, || d.take_along(i, axis))])
        }),
        _ => Ok(out),
    }
}

/// One where no value lands, zero elsewhere.
fn untouched(like: &Tensor, indices: &Tensor, axis: i64) -> Tensor {
    let zeros = Tensor::zeroed(indices.shape(), like.dtype(), like.device());
    Tensor::full_like_scalar(like, 1.0).put_along(indices, &zeros, axis, "assign", true)
}

/// One for the values that stay, zero for those overwritten by a later one of the same place.
fn last_written(like: &Tensor, indices: &Tensor, axis: i64) -> Tensor {
    let n = indices.numel();
    let number = Tensor::from_vec((0..n as i64).collect::<Vec<_>>(), indices.shape());
    let board = Tensor::zeroed(like.shape(), DType::Int64, like.device());
    let stays = board.put_along(indices, &number, axis, "assign", true).take_along(indices, axis);
    let mut kept = (stays - number).cast(DType::Bool);
    kept = kept.where_cond(0.0, 1.0);
    kept.cast(like.dtype())
}

fn put_along_axis_samples() -> Vec<Sample> {
    let i = || values([2i64, 0, 1, 1], [2, 2]);
    vec![
        sample![randn([2, 3]), i(), randn([2, 2]), 1],
        sample![randn([2, 3]), values([1i64], [1, 1]), 1.5, 1],
        sample![randn([3, 2]), values([2i64, 0, 2, 1], [2, 2]), randn([2, 2]), 0; reduce = "add"],
        sample![randn([2, 3]), i(), randn([1]), 1; reduce = "add", include_self = false],
        sample![randn([2, 3]), values([2i64, 0], [1, 2]), randn([2, 2]), 1; broadcast = false],
    ]
}
fn put_along_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([2i64, 0, 1, 1], [2, 2]), randn([2, 2]), 1, "assign", true],
        sample![randn([3, 2]), values([2i64, 0], [1, 2]), randn([1, 2]), 0, "add", true],
        sample![randn([3]), values(Vec::<i64>::new(), [0]), randn([0]), 0, "add", false],
    ]
}
