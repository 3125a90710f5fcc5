//! Running sums and products along an axis.

use crate::ops::prelude::*;
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

/// What a scan works on: without an axis all elements in a row; a 0-d tensor is one of them.
struct Line {
    /// The input seen with an axis to run along.
    shape: Shape,
    at: usize,
    /// Extents at and after that axis.
    n: usize,
    inner: usize,
    out: Shape,
}

impl Line {
    fn new(x: &Tensor, axis: Option<i64>) -> Result<Line> {
        let flat = Shape::from_slice(&[x.numel()]);
        let (shape, at, out) = match axis {
            None => (flat.clone(), 0, flat),
            Some(a) if x.ndim() == 0 => (flat, resolve_axis(a, 0)?, x.shape_vec()),
            Some(a) => (x.shape_vec(), resolve_axis(a, x.ndim())?, x.shape_vec()),
        };
        let axis = Axis::of(&shape, at);
        Ok(Line { shape, at, n: axis.n, inner: axis.inner, out })
    }

    /// A gradient formula, written for a tensor with the axis, under the shapes of output and input.
    fn back(&self, x: &[usize], g: &Tensor, formula: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        formula(&g.reshape_to(&self.shape)).reshape_to(x)
    }
}

/// The dtype of running sums and products: bool and, where `widen`, small integers are kept in int64.
fn wide(dtype: Option<DType>, x: &Tensor, widen: bool) -> Result<DType> {
    match dtype {
        Some(DType::Bool) => Err(Error::dtype("cannot add up in bool").hint("leave dtype out to add up in int64")),
        Some(d) => Ok(d),
        None if x.dtype() == DType::Bool || (widen && x.dtype().is_int()) => Ok(DType::Int64),
        None => Ok(x.dtype()),
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
#[op(inplace, complex, samples = cumsum_samples, amp = "black")]
fn cumsum(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let (line, dtype) = (Line::new(x, axis)?, wide(dtype, x, true)?);
    let out = cx.out(&line.out, dtype)?;
    // Complex numbers add up part by part.
    let ready = || Ok::<_, Error>((x.in_dtype(dtype)?.in_rows()?.parts(), out.parts(), line.inner * dtype.parts()));
    cx.run(
        || {
            let (x, out, inner) = ready()?;
            scan::cumsum(x.values().slice(), out.values_mut().slice(), line.n, inner);
            Ok(())
        },
        |gpu| {
            let (x, out, inner) = ready()?;
            crate::gpu::running(gpu, false, &x, line.n, inner, &out)
        },
    )?;
    let (shape, from) = (x.shape_vec(), x.dtype());
    cx.grad(out, &[], move |g| {
        let at = line.at;
        Ok(line.back(&shape, &g.grad().cast(from), |g| g.reversed(at).cumsum(at as i64).reversed(at)))
    })
}

/// The running product along `dim`; without one, of all elements in a row. Its gradient is exact at zeros too.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0, 3.0]).cumprod(0).to_vec::<f32>(), [1.0, 2.0, 6.0]);
/// ```
#[op(inplace, complex, samples = cumprod_samples, amp = "black", alias(axis = dim))]
fn cumprod(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] dim: Option<i64>,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let (line, dtype) = (Line::new(x, dim)?, wide(dtype, x, false)?);
    let out = cx.out(&line.out, dtype)?;
    cx.run(
        || {
            let x = x.in_dtype(dtype)?.in_rows()?;
            let product = if dtype.is_complex() { scan::cumprod_complex } else { scan::cumprod };
            product(x.values().slice(), out.values_mut().slice(), line.n, line.inner);
            Ok(())
        },
        |gpu| {
            let x = x.in_dtype(dtype)?.in_rows()?;
            Ok(!dtype.is_complex() && crate::gpu::running(gpu, true, &x, line.n, line.inner, &out)?)
        },
    )?;
    cx.grad(out, &[x], move |g| {
        let (x, g) = (g.saved(0), g.grad().cast(g.saved(0).dtype()));
        Ok(line.back(x.shape(), &g, |g| {
            // Behind each element: r[k] = g[k] + x[k + 1] * r[k + 1]; the product before it is the rest.
            let (x, at) = (x.conjugate().reshape_to(&line.shape), line.at);
            let r = delayed(&x.reversed(at), at).linear_recurrence(&g.reversed(at), at as i64).reversed(at);
            r * product_before(&x, at, false)
        }))
    })
}

/// The running `ln Σ eˣ` along `axis`; without one, of all elements in a row.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1000.0f32, -5.0]).logcumsumexp(0).to_vec::<f32>(), [1000.0, 1000.0]);
/// ```
#[op(samples = along_samples, amp = "black")]
fn logcumsumexp(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(to_float(x.dtype()));
    if !dtype.is_float() {
        return Err(Error::dtype(format!("a logarithm is no {dtype}")).hint("leave dtype out, or pass a float"));
    }
    let line = Line::new(x, axis)?;
    let out = cx.out(&line.out, dtype)?;
    cx.cpu(|| {
        let x = x.in_dtype(dtype)?.in_rows()?;
        scan::logcumsumexp(x.values().slice(), out.values_mut().slice(), line.n, line.inner);
        Ok(())
    })?;
    cx.grad(out, &[x], move |g| {
        let x = g.saved(0).cast(dtype);
        let dx = line.back(x.shape(), &g.grad(), |g| {
            // With m the largest so far and s the sum of e^(x - m) so far, dx[k] = Σ g[j] e^(x[k] - m[j]) / s[j] over
            // j ≥ k. All of these stay in range, and are as exact for large x as for small ones. The result does not
            // depend on m, which may be a constant.
            let (at, last) = (line.at, line.n.max(1) - 1);
            let x = x.reshape_to(&line.shape);
            let m = x.detach().cummax(at as i64).0;
            let part = |from: usize| crate::error::unwrap(m.try_narrow(at as i64, from, last));
            // e^(m[k - 1] - m[k]), at most one.
            let fall = if line.n == 0 { m.clone() } else { (part(0) - part(1)).exp() };
            let above = (&x - &m).exp();
            let forward = if line.n == 0 { m.clone() } else { delayed_into(&fall, &line.shape, at) };
            let s = forward.linear_recurrence(&above, at as i64);
            let back = if line.n == 0 { m.clone() } else { delayed_into(&fall.reversed(at), &line.shape, at) };
            back.linear_recurrence(&(g / s).reversed(at), at as i64).reversed(at) * above
        });
        Ok(dx.cast(g.saved(0).dtype()))
    })
}

/// Cummax and cummin: values, and where they were met last.
macro_rules! running_extreme {
    ($cx:ident, $x:ident, $axis:ident, $dtype:ident, $kernel:ident) => {{
        if !matches!($dtype, DType::Int32 | DType::Int64) {
            return Err(Error::dtype(format!("a position is int32 or int64, not {}", $dtype)));
        }
        if $x.dtype() == DType::Bool {
            return Err(Error::dtype("truth values have no order here").hint("cast to uint8 first"));
        }
        let line = Line::new($x, $axis)?;
        let (values, indices) = ($cx.out(&line.out, $x.dtype())?, $cx.out(&line.out, DType::Int64)?);
        $cx.cpu(|| {
            let x = $x.contiguous();
            let (mut out, mut at) = (values.values_mut(), indices.data_mut());
            scan::$kernel(x.values().slice(), out.slice(), at.slice(), line.n, line.inner);
            Ok(())
        })?;
        let indices = indices.try_cast($dtype)?;
        let shape = $x.shape_vec();
        $cx.grad_from_outputs((values, indices), &[1], &[], move |g| {
            let indices = g.output(1).reshape_to(&line.shape);
            let back = line.back(&shape, &g.grad(), |d| d.untake_along(&indices, line.at as i64, &line.shape));
            Ok(back)
        })
    }};
}

/// The running maximum along `axis` (without one, of all elements in a row) and where it was met last.
///
/// ```
/// # use sampan_core::Tensor;
/// let (values, indices) = Tensor::new([1.0f32, 3.0, 2.0]).cummax(0);
/// assert_eq!(values.to_vec::<f32>(), [1.0, 3.0, 3.0]);
/// assert_eq!(indices.to_vec::<i64>(), [0, 1, 1]);
/// ```
#[op(samples = extreme_samples, results("out", "indices"))]
fn cummax(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<(Tensor, Tensor)> {
    running_extreme!(cx, x, axis, dtype, cummax)
}

/// The running minimum along `axis` (without one, of all elements in a row) and where it was met last.
///
/// ```
/// # use sampan_core::Tensor;
/// let (values, indices) = Tensor::new([2.0f32, 3.0, 1.0]).cummin(0);
/// assert_eq!(values.to_vec::<f32>(), [2.0, 2.0, 1.0]);
/// assert_eq!(indices.to_vec::<i64>(), [0, 0, 2]);
/// ```
#[op(samples = extreme_samples, results("out", "indices"))]
fn cummin(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Option<i64>,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<(Tensor, Tensor)> {
    running_extreme!(cx, x, axis, dtype, cummin)
}

/// The `n`-th differences of neighbours along `axis`, with `prepend` and `append` joined on before. Truth values give
/// where they change.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 4, 9, 16]).diff(2).to_vec::<i64>(), [2, 2]);
/// ```
#[op(complex, samples = diff_samples)]
fn diff(
    x: &Tensor,
    #[default(1)] n: i64,
    #[opt(-1)] axis: i64,
    #[opt(None)] prepend: Option<&Tensor>,
    #[opt(None)] append: Option<&Tensor>,
) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no neighbours");
    ensure!(n >= 1, "n must be at least 1, got {n}");
    let axis = resolve_axis(axis, x.ndim())?;
    let parts: Vec<Tensor> = [prepend, Some(x), append].into_iter().flatten().cloned().collect();
    let mut out = if parts.len() == 1 { x.clone() } else { crate::ops::joining::try_concat(&parts, axis as i64)? };
    for _ in 0..n {
        let last = out.shape()[axis].max(1) - 1;
        let step = |from: usize| out.try_narrow(axis as i64, from.min(out.shape()[axis]), last);
        // Truth values differ or not, as in NumPy.
        out = match out.dtype() {
            DType::Bool => step(1)?.try_logical_xor(&step(0)?)?,
            _ => step(1)?.try_subtract(step(0)?)?,
        };
        if last == 0 {
            break;
        }
    }
    Ok(out)
}

/// `s[k] = a[k] * s[k - 1] + b[k]` along one axis, from `s = 0`: discounted sums, and what gradients of running products
/// are made of.
#[op(
    internal,
    complex,
    samples = recurrence_samples,
    peer = "lambda a, b, axis: ( \
            s := [torch.zeros(())], \
            [s.append(x * s[-1] + y) for x, y in zip(a.unbind(axis), b.unbind(axis))], \
            torch.stack(s[1:], axis) if s[1:] else a * b)[-1]",
    amp = "black"
)]
fn linear_recurrence(cx: &Cx, a: &Tensor, b: &Tensor, axis: i64) -> Result<Tensor> {
    ensure!(a.shape() == b.shape() && a.ndim() > 0, "a and b must have one shape with an axis");
    let axis = resolve_axis(axis, a.ndim())?;
    let dtype = to_float(promote_tensors(a, b));
    let out = cx.out(a.shape(), dtype)?;
    cx.cpu(|| {
        let line = Axis::of(a.shape(), axis);
        let (a, b) = (a.in_dtype(dtype)?.in_rows()?, b.in_dtype(dtype)?.in_rows()?);
        let run = if dtype.is_complex() { scan::linear_recurrence_complex } else { scan::linear_recurrence };
        run(a.values().slice(), b.values().slice(), out.values_mut().slice(), line.n, line.inner);
        Ok(())
    })?;
    cx.grad_from_output(out, &[a], move |g| {
        // What reaches b runs backwards: r[k] = g[k] + a[k + 1] * r[k + 1].
        let along = axis as i64;
        let back = delayed(&g.saved(0).conjugate().reversed(axis), axis);
        let r = back.linear_recurrence(&g.grad().reversed(axis), along).reversed(axis);
        Ok([g.if_needed(0, || &r * delayed(&g.output(0).conjugate(), axis)), g.if_needed(1, || r.clone())])
    })
}

/// Every element one place later along an axis, a zero in front.
fn delayed(x: &Tensor, axis: usize) -> Tensor {
    match x.shape()[axis] {
        0 => x.clone(),
        n => delayed_into(&crate::error::unwrap(x.try_narrow(axis as i64, 0, n - 1)), x.shape(), axis),
    }
}

/// Elements one place later along an axis of a tensor of `shape`, which is one longer there; a zero in front.
fn delayed_into(x: &Tensor, shape: &[usize], axis: usize) -> Tensor {
    let mut starts = vec![0i64; shape.len()];
    starts[axis] = 1;
    x.unslice(shape, starts, vec![1i64; shape.len()])
}

/// For each element the product of those before it along `axis` (behind it, with `reverse`); 1 for the first.
pub(super) fn product_before(x: &Tensor, axis: usize, reverse: bool) -> Tensor {
    if x.numel() == 0 {
        return x.clone();
    }
    let turn = |t: &Tensor| if reverse { t.reversed(axis) } else { t.clone() };
    let mut first = x.shape_vec();
    first[axis] = 1;
    let one = Tensor::zeros_on(&first, x.dtype(), x.device()) + 1.0;
    let start = one.unslice(x.shape(), vec![0i64; x.ndim()], vec![1i64; x.ndim()]);
    turn(&delayed(&turn(x), axis).linear_recurrence(&start, axis as i64))
}

fn along_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 2]), 1],
        sample![randn([2, 3]), -1],
        sample![randn([])],
        sample![randn([]), 0],
        sample![randn([0, 2]), 1],
        sample![randn([0, 2]), 0],
    ]
}
fn cumsum_samples() -> Vec<Sample> {
    let mut samples = along_samples();
    samples.push(sample![ints([2, 3], 0, 9), 0]);
    samples.push(sample![randn([3]), 0; dtype = DType::Float64]);
    samples.push(sample![complexes([2, 3]), 0]);
    samples
}
fn cumprod_samples() -> Vec<Sample> {
    let mut samples = along_samples();
    samples.push(sample![ints([2, 3], 0, 9), 0]);
    samples.push(sample![values(vec![1.5f32, 0.0, 2.0, 0.0, 3.0, -1.0], [6]), 0]);
    samples.push(sample![complexes([2, 3]), 1]);
    samples
}
fn extreme_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 3])],
        sample![distinct([2, 4, 2]), 1],
        sample![distinct([3, 2]), 0; dtype = DType::Int32],
        sample![distinct([])],
        sample![ints([2, 6], 0, 4), -1],
        sample![distinct([0, 2]), 0].peer("lambda x, axis: getattr(torch, op)(x, axis)"),
    ]
}
fn diff_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4])],
        sample![randn([2, 5]), 2],
        sample![randn([3, 2]), 1; axis = 0],
        sample![randn([2, 3]), 1, -1, randn([2, 1]), randn([2, 2])],
        sample![ints([2, 4], 0, 9)],
        sample![bools([6])],
        sample![randn([2, 3]), 5],
    ]
}
fn recurrence_samples() -> Vec<Sample> {
    vec![
        sample![randn([4]), uniform([4], -1.0, 1.0), 0],
        sample![randn([2, 3, 2]), uniform([2, 3, 2], -1.0, 1.0), 1],
        sample![randn([2, 0]), randn([2, 0]), 1],
    ]
}
