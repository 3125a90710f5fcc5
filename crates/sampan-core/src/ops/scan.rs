//! Running sums and products along an axis.

use super::prelude::*;
use sampan_kernels::{scan, sort::Axis};

impl Tensor {
    /// A view with one axis in reverse.
    pub(crate) fn reversed(&self, axis: usize) -> Tensor {
        let lens: Vec<i64> = self.shape().iter().map(|&n| n as i64).collect();
        let (mut starts, mut steps) = (vec![0i64; lens.len()], vec![1i64; lens.len()]);
        starts[axis] = (lens[axis] - 1).max(0);
        steps[axis] = -1;
        self.view_slice(starts, lens, steps)
    }
}

/// The tensor and axis a scan works on: without an axis all elements in a row, and a 0-d tensor as one of them.
fn line_up(x: &Tensor, axis: Option<i64>) -> Result<(Tensor, usize)> {
    match axis {
        None => Ok((x.try_reshape_to([x.numel()])?, 0)),
        Some(a) => {
            let a = resolve_axis(a, x.ndim())?;
            Ok((if x.ndim() == 0 { x.try_reshape_to([1])? } else { x.clone() }, a))
        }
    }
}

/// The dtype that sums and products of small integers are kept in.
fn wide(dtype: Option<DType>, x: &Tensor) -> Result<DType> {
    match dtype {
        Some(DType::Bool) => Err(Error::dtype("cannot add up in bool").hint("leave dtype out to add up in int64")),
        Some(d) => Ok(d),
        None if x.dtype().is_float() => Ok(x.dtype()),
        None => Ok(DType::Int64),
    }
}

/// The running sum along `axis`; without one, of all elements in a row. Integers and truth values add up in int64.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.cumsum(0).to_vec::<f32>(), [1.0, 2.0, 4.0, 6.0]);
/// assert_eq!(x.cumsum(None).to_vec::<f32>(), [1.0, 3.0, 6.0, 10.0]);
/// ```
#[op(inplace, samples = cumsum_samples, amp = "black")]
fn cumsum(x: &Tensor, #[default(None)] axis: Option<i64>, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let (line, axis_at) = line_up(x, axis)?;
    let out = line.try_cast(wide(dtype, x)?)?.try_running_sum(axis_at as i64)?;
    if axis.is_some() { out.try_reshape_to(x.shape()) } else { Ok(out) }
}

/// The running sum along one axis; `cumsum` comes down to it.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3]).running_sum(0).to_vec::<i64>(), [1, 3, 6]);
/// ```
#[op(samples = along_samples, peer = "lambda x, axis: paddle.cumsum(x, axis)", amp = "black")]
fn running_sum(cx: &Cx, x: &Tensor, axis: i64) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to run along");
    let axis = resolve_axis(axis, x.ndim())?;
    if x.dtype() == DType::Bool {
        return Err(Error::dtype("cannot add up in bool"));
    }
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let (x, line) = (x.contiguous(), Axis::of(x.shape(), axis));
        match_dtype!(x.dtype(), T in number => {
            scan::cumsum(x.data::<T>().slice(), out.data_mut::<T>().slice(), line.n, line.inner)
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[], move |g| Ok(g.grad().reversed(axis).running_sum(axis as i64).reversed(axis)))
}

/// `s[k] = a[k] * s[k - 1] + b[k]` along one axis, from `s = 0`: discounted sums, and what gradients of running products
/// are made of.
///
/// ```
/// # use sampan_core::Tensor;
/// let (a, b) = (Tensor::new([0.0f32, 2.0, 3.0]), Tensor::new([1.0f32, 1.0, 1.0]));
/// assert_eq!(a.linear_recurrence(&b, 0).to_vec::<f32>(), [1.0, 3.0, 10.0]);
/// ```
#[op(samples = recurrence_samples, peer = "none: Paddle has no such op", amp = "black")]
fn linear_recurrence(cx: &Cx, a: &Tensor, b: &Tensor, axis: i64) -> Result<Tensor> {
    ensure!(a.shape() == b.shape() && a.ndim() > 0, "a and b must have one shape with an axis");
    let axis = resolve_axis(axis, a.ndim())?;
    let dtype = to_float(promote_tensors(a, b));
    let out = cx.out(a.shape(), dtype)?;
    cx.cpu(|| {
        let line = Axis::of(a.shape(), axis);
        let (a, b) = (a.try_cast(dtype)?.contiguous(), b.try_cast(dtype)?.contiguous());
        match_dtype!(dtype, T in float => scan::linear_recurrence(
            a.data::<T>().slice(), b.data::<T>().slice(), out.data_mut::<T>().slice(), line.n, line.inner,
        ), else => {});
        Ok(())
    })?;
    cx.grad_from_output(out, &[a], move |g| {
        // What reaches b runs backwards: r[k] = g[k] + a[k + 1] * r[k + 1].
        let along = axis as i64;
        let back = delayed(&g.saved(0).reversed(axis), axis);
        let r = back.linear_recurrence(&g.grad().reversed(axis), along).reversed(axis);
        Ok([g.if_needed(0, || &r * delayed(g.output(0), axis)), g.if_needed(1, || r.clone())])
    })
}

/// Every element one place later along an axis, a zero in front.
fn delayed(x: &Tensor, axis: usize) -> Tensor {
    let n = x.shape()[axis];
    if n == 0 {
        return x.clone();
    }
    let mut starts = vec![0i64; x.ndim()];
    starts[axis] = 1;
    let kept = crate::error::unwrap(x.try_narrow(axis as i64, 0, n - 1));
    kept.unslice(x.shape(), starts, vec![1i64; x.ndim()])
}

/// For each element the product of those before it along `axis` (behind it, with `reverse`); 1 for the first.
pub(super) fn product_before(x: &Tensor, axis: i64, reverse: bool) -> Tensor {
    let axis = crate::error::unwrap(resolve_axis(axis, x.ndim()));
    let turn = |t: &Tensor| if reverse { t.reversed(axis) } else { t.clone() };
    if x.numel() == 0 {
        return x.clone();
    }
    let mut first = x.shape_vec();
    first[axis] = 1;
    let one = Tensor::zeros(&first, x.dtype()) + 1.0;
    let (start, step) = (vec![0i64; x.ndim()], vec![1i64; x.ndim()]);
    let start = one.unslice(x.shape(), start, step);
    turn(&delayed(&turn(x), axis).linear_recurrence(&start, axis as i64))
}

fn along_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 0], sample![randn([2, 3, 2]), 1], sample![randn([4]), -1], sample![randn([0, 2]), 0]]
}
fn cumsum_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 2]), 1],
        sample![randn([2, 3]), -1],
        sample![ints([2, 3], 0, 9), 0],
        sample![randn([])],
        sample![randn([]), 0],
        sample![randn([0, 2]), 1],
        sample![randn([3]), 0; dtype = DType::Float64],
    ]
}
fn recurrence_samples() -> Vec<Sample> {
    vec![
        sample![randn([4]), uniform([4], -1.0, 1.0), 0],
        sample![randn([2, 3, 2]), uniform([2, 3, 2], -1.0, 1.0), 1],
        sample![randn([2, 0]), randn([2, 0]), 1],
    ]
}
