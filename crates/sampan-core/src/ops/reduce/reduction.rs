//! Reductions over axes.

use crate::gpu;
use crate::ops::elementwise::apply;
use crate::ops::prelude::*;
use sampan_cuda::reduce::Reduction;
use sampan_kernels::reduce;
use smallvec::SmallVec;

/// Which axes go, and the shapes that result with and without them.
pub(super) struct Plan {
    pub mask: SmallVec<[bool; 5]>,
    pub kept: Shape,
    pub out: Shape,
    /// Elements that meet in one result.
    pub count: usize,
}

impl Plan {
    pub fn new(x: &Tensor, axis: &Axes, keepdim: bool) -> Result<Plan> {
        let mask = axis.mask(x.ndim())?;
        let kept = Cx::reduced_shape(x.shape(), &mask, true);
        let out = Cx::reduced_shape(x.shape(), &mask, keepdim);
        let count = x.shape().iter().zip(&mask).filter(|&(_, &m)| m).map(|(&n, _)| n).product();
        Ok(Plan { mask, kept, out, count })
    }

    /// The reduced axes, for another reduction over the same.
    pub fn axes(&self) -> Vec<i64> {
        (0..self.mask.len()).filter(|&i| self.mask[i]).map(|i| i as i64).collect()
    }

    /// The flags of the axes of a complex tensor seen as real numbers, whose last axis stays.
    fn mask_of_parts(&self, dtype: DType) -> SmallVec<[bool; 5]> {
        let mut mask = self.mask.clone();
        mask.extend(dtype.is_complex().then_some(false));
        mask
    }

    /// Refuses to pick one of no elements, unless no result asks for it.
    pub fn nonempty(&self, x: &Tensor) -> Result<()> {
        let results: usize = self.out.iter().product();
        ensure!(self.count > 0 || results == 0, "has no value over an empty axis, x is {:?}", x.shape());
        Ok(())
    }
}

/// A sum or a mean of what was cast to `dtype`; complex numbers add up part by part.
fn on_gpu(
    gpu: &'static gpu::Gpu,
    kind: Reduction,
    x: &Tensor,
    dtype: DType,
    plan: &Plan,
    out: &Tensor,
) -> Result<bool> {
    let to_int = dtype == DType::Int64 && !x.dtype().is_inexact();
    let x = if to_int { x.clone() } else { x.in_dtype(dtype)?.parts() };
    gpu::reduce(gpu, kind, &x, &plan.mask_of_parts(dtype), &out.parts())
}

/// The sum over `axis` (all axes by default). bool and int32 add up in int64.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.sum(()).to_f64(), 10.0);
/// assert_eq!(x.sum(0).to_vec::<f32>(), [4.0, 6.0]);
/// ```
#[op(complex, samples = sum_samples, onnx = "ReduceSum", amp = "black")]
fn sum(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(None)] dtype: Option<DType>,
    #[opt(false)] keepdim: bool,
) -> Result<Tensor> {
    let widen = matches!(x.dtype(), DType::Bool | DType::Int32);
    let dtype = dtype.unwrap_or(if widen { DType::Int64 } else { x.dtype() });
    if dtype == DType::Bool {
        return Err(Error::dtype("cannot add up in bool").hint("leave dtype out to add up in int64"));
    }
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = cx.out(&plan.out, dtype)?;
    let (mask, of_parts) = (plan.mask.clone(), plan.mask_of_parts(dtype));
    let cpu = move |t: &[&Tensor], out: &Tensor| {
        if dtype == DType::Int64 && t[0].dtype() != dtype && !t[0].dtype().is_float() {
            reduce::sum_i64(t[0].values().view(), &mask, out.data_mut().slice());
            return Ok(());
        }
        // Complex numbers add up part by part.
        reduce::sum(t[0].as_dtype(dtype)?.as_parts().values().view(), &of_parts, out.as_parts().values_mut().slice());
        Ok(())
    };
    cx.kernels(&[x], &out, cpu, |gpu| on_gpu(gpu, Reduction::Sum, x, dtype, &plan, &out))?;
    let (shape, from) = (x.shape_vec(), x.dtype());
    cx.grad(out, &[], move |g| Ok(g.grad().cast(from).reshape_to(&plan.kept).expand(&shape)))
}

/// The mean over `axis` (all axes by default), NaN over no elements. Integers and truth values give the default float.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.mean(()).to_f64(), 2.5);
/// assert_eq!(x.mean(1).to_vec::<f32>(), [1.5, 3.5]);
/// ```
#[op(complex, samples = mean_samples, onnx = "ReduceMean", amp = "black")]
fn mean(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(to_float(x.dtype()));
    if !dtype.is_inexact() {
        return Err(Error::dtype(format!("a mean is no {dtype}")).hint("leave dtype out, or pass a float"));
    }
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = cx.out(&plan.out, dtype)?;
    let of_parts = plan.mask_of_parts(dtype);
    let cpu = move |t: &[&Tensor], out: &Tensor| {
        reduce::mean(t[0].as_dtype(dtype)?.as_parts().values().view(), &of_parts, out.as_parts().values_mut().slice());
        Ok(())
    };
    cx.kernels(&[x], &out, cpu, |gpu| on_gpu(gpu, Reduction::Mean, x, dtype, &plan, &out))?;
    let (shape, from) = (x.shape_vec(), x.dtype());
    cx.grad(out, &[], move |g| {
        let share = g.grad().cast(from) / plan.count.max(1) as f64;
        Ok(share.reshape_to(&plan.kept).expand(&shape))
    })
}

/// 1 where two tensors are equal (NaN equals NaN here) and 0 elsewhere, as floats: where a maximum was taken from.
#[op(internal, non_diff, samples = tie_samples, peer = "lambda x, y: (x == y).astype(x.dtype)")]
fn tie_mask(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.float_values(formula!(|x, y| x.equals(y).or(x.is_nan().and(y.is_nan()))), (x, y))
}

/// Max and min: the kernel, and a gradient that equal extremes share evenly.
macro_rules! extreme {
    ($cx:ident, $x:ident, $axis:ident, $keepdim:ident, $kernel:ident, $bools:ident, $on_gpu:ident) => {{
        let plan = Plan::new($x, &$axis, $keepdim)?;
        plan.nonempty($x)?;
        let out = $cx.out(&plan.out, $x.dtype())?;
        $cx.run(
            || {
                match $x.dtype() {
                    DType::Bool => reduce::$bools($x.data().view(), &plan.mask, out.data_mut().slice()),
                    _ => reduce::$kernel($x.values().view(), &plan.mask, out.values_mut().slice()),
                }
                Ok(())
            },
            |gpu| gpu::reduce(gpu, Reduction::$on_gpu, $x, &plan.mask, &out),
        )?;
        $cx.grad_from_output(out, &[$x], move |g| {
            let mask = g.saved(0).tie_mask(&g.output(0).reshape_to(&plan.kept));
            let ties = mask.sum_with(plan.axes(), SumOpts::new().keepdim(true));
            Ok(mask * (g.grad().reshape_to(&plan.kept) / ties))
        })
    }};
}

/// The largest over `axis` (all axes by default); NaN where there is one. Equal maxima share the gradient evenly.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 5.0], [3.0, 4.0]]);
/// assert_eq!(x.max(()).to_f64(), 5.0);
/// assert_eq!(x.max(0).to_vec::<f32>(), [3.0, 5.0]);
/// ```
#[op(samples = extreme_samples, onnx = "ReduceMax", also("amax"))]
fn max(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    extreme!(cx, x, axis, keepdim, max, any, Max)
}

/// The smallest over `axis` (all axes by default); NaN where there is one. Equal minima share the gradient evenly.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 5.0], [3.0, 4.0]]);
/// assert_eq!(x.min(1).to_vec::<f32>(), [1.0, 3.0]);
/// ```
#[op(samples = extreme_samples, onnx = "ReduceMin", also("amin"))]
fn min(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    extreme!(cx, x, axis, keepdim, min, all, Min)
}

/// The product over `axis` (all axes by default); its gradient is exact at zeros too. bool multiplies in int64.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).prod(1).to_vec::<f32>(), [2.0, 12.0]);
/// ```
#[op(complex, samples = prod_samples, onnx = "ReduceProd", amp = "black")]
fn prod(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(if x.dtype() == DType::Bool { DType::Int64 } else { x.dtype() });
    if dtype == DType::Bool {
        return Err(Error::dtype("cannot multiply in bool").hint("leave dtype out, or use all()"));
    }
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = cx.out(&plan.out, dtype)?;
    cx.run(
        || {
            let x = x.in_dtype(dtype)?;
            if dtype.is_complex() {
                let lines = reduced_last(&x, &plan).0.contiguous();
                reduce::prod_complex(lines.values().slice(), plan.count, out.values_mut().slice());
            } else {
                reduce::prod(x.values().view(), &plan.mask, out.values_mut().slice());
            }
            Ok(())
        },
        |gpu| Ok(!dtype.is_complex() && gpu::reduce(gpu, Reduction::Prod, &x.in_dtype(dtype)?, &plan.mask, &out)?),
    )?;
    cx.grad(out, &[x], move |g| {
        let (x, g) = (g.saved(0), g.grad());
        Ok(g.cast(x.dtype()).reshape_to(&plan.kept) * product_of_others(x, &plan).conjugate())
    })
}

/// For each element the product of the others that meet in its result, without division.
fn product_of_others(x: &Tensor, plan: &Plan) -> Tensor {
    let (lines, perm) = reduced_last(x, plan);
    let last = lines.ndim() - 1;
    let others =
        crate::ops::scan::product_before(&lines, last, false) * crate::ops::scan::product_before(&lines, last, true);
    let turned: Vec<usize> = perm.iter().map(|&a| x.shape()[a as usize]).collect();
    let mut back = vec![0i64; perm.len()];
    perm.iter().enumerate().for_each(|(i, &a)| back[a as usize] = i as i64);
    others.reshape_to(turned).transpose(back)
}

/// The reduced axes as one, at the end, and the order that the axes were brought into before they became one.
fn reduced_last(x: &Tensor, plan: &Plan) -> (Tensor, Vec<i64>) {
    let rank = x.ndim() as i64;
    let mut perm: Vec<i64> = (0..rank).filter(|&i| !plan.mask[i as usize]).collect();
    perm.extend(plan.axes());
    let turned = x.transpose(perm.as_slice());
    let mut flat: Shape = turned.shape()[..x.ndim() - plan.axes().len()].into();
    flat.push(plan.count);
    (turned.reshape_to(&flat), perm)
}

macro_rules! truth {
    ($cx:ident, $x:ident, $axis:ident, $keepdim:ident, $kernel:ident, $on_gpu:ident) => {{
        let plan = Plan::new($x, &$axis, $keepdim)?;
        let out = $cx.out(&plan.out, DType::Bool)?;
        $cx.run(
            || {
                let x = $x.try_cast(DType::Bool)?;
                reduce::$kernel(x.data().view(), &plan.mask, out.data_mut().slice());
                Ok(())
            },
            |gpu| gpu::reduce(gpu, Reduction::$on_gpu, &$x.try_cast(DType::Bool)?, &plan.mask, &out),
        )?;
        Ok(out)
    }};
}

/// Is any element over `axis` (all axes by default) true or nonzero?
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[true, false], [false, false]]);
/// assert_eq!(x.any(1).to_f64_vec(), [1.0, 0.0]);
/// ```
#[op(non_diff, complex, samples = truth_samples)]
fn any(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    truth!(cx, x, axis, keepdim, any, Any)
}

/// Are all elements over `axis` (all axes by default) true or nonzero?
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[true, true], [true, false]]);
/// assert_eq!(x.all(1).to_f64_vec(), [1.0, 0.0]);
/// ```
#[op(non_diff, complex, samples = truth_samples)]
fn all(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    truth!(cx, x, axis, keepdim, all, All)
}

/// How many elements over `axis` (all axes by default) are true or nonzero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 0.0], [3.0, 4.0]]).count_nonzero(0).to_vec::<i64>(), [2, 1]);
/// ```
#[op(non_diff, complex, samples = count_samples)]
fn count_nonzero(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = cx.out(&plan.out, DType::Int64)?;
    let x = &if x.is_complex() { x.try_cast(DType::Bool)? } else { x.clone() };
    cx.run(
        || {
            reduce::count_nonzero(x.values().view(), &plan.mask, out.data_mut().slice());
            Ok(())
        },
        |gpu| gpu::reduce(gpu, Reduction::Count, x, &plan.mask, &out),
    )?;
    Ok(out)
}

/// 1 where `x` is a number and 0 where it is NaN, as floats.
#[op(internal, non_diff, samples = nan_line, peer = "lambda x: 1 - paddle.isnan(x).astype(x.dtype)")]
fn number_mask(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float_values(formula!(|x| !x.is_nan()), x)
}

/// `x` with a number in place of each NaN, whose gradient is zero there.
#[op(internal, samples = fill_samples, peer = "lambda x, v: paddle.nan_to_num(x, v)")]
fn fill_nan(cx: &Cx, x: &Tensor, value: f64) -> Result<Tensor> {
    cx.float(formula!(|x; value| select(x.is_nan(), value, x)), x)
}

/// The sum over `axis` (all axes by default) of what is not NaN.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, f32::NAN, 2.0]).nansum(()).to_f64(), 3.0);
/// ```
#[op(samples = nansum_samples, amp = "black")]
fn nansum(
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(None)] dtype: Option<DType>,
    #[opt(false)] keepdim: bool,
) -> Result<Tensor> {
    let x = if x.dtype().is_float() { x.try_fill_nan(0.0)? } else { x.clone() };
    let opts = SumOpts::new().keepdim(keepdim);
    x.try_sum_with(axis, if let Some(d) = dtype { opts.dtype(d) } else { opts })
}

/// The mean over `axis` (all axes by default) of what is not NaN; NaN where there is nothing else.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, f32::NAN, 2.0]).nanmean(()).to_f64(), 1.5);
/// ```
#[op(samples = nan_samples, amp = "black")]
fn nanmean(x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return x.try_mean_with(axis, MeanOpts::new().keepdim(keepdim));
    }
    let opts = || SumOpts::new().keepdim(keepdim);
    let count = x.try_number_mask()?.try_sum_with(&axis, opts())?;
    // Where nothing is left, a division by one keeps the gradient at zero.
    let some = count.try_cast(DType::Bool)?;
    let divisor = &count + count.try_tie_mask(&Tensor::zeros_on([], count.dtype(), count.device()))?;
    some.try_where_cond(x.try_fill_nan(0.0)?.try_sum_with(&axis, opts())? / divisor, f64::NAN)
}

/// `ln Σ eˣ` over `axis` (all axes by default), without overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1000.0f32, -5.0]).logsumexp(()).to_f64(), 1000.0);
/// ```
#[op(samples = axis_samples, onnx = "ReduceLogSumExp", amp = "black")]
fn logsumexp(cx: &Cx, x: &Tensor, #[default(None)] axis: Axes, #[opt(false)] keepdim: bool) -> Result<Tensor> {
    let dtype = to_float(x.dtype());
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = cx.out(&plan.out, dtype)?;
    cx.run(
        || {
            let x = x.in_dtype(dtype)?;
            reduce::logsumexp(x.values().view(), &plan.mask, out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            // Sums of powers of what is left below the peak, which an infinite one cannot be taken from.
            let x = x.in_dtype(dtype)?;
            let (peak, sums) = (cx.out(&plan.kept, dtype)?, cx.out(&plan.kept, dtype)?);
            if x.numel() == 0 || !gpu::reduce(gpu, Reduction::Max, &x, &plan.mask, &peak)? {
                return Ok(false);
            }
            let level = apply(&formula!(|p| select(p.is_finite(), p, 0.0)), vec![peak.clone()])?;
            let powers = apply(&formula!(|x, l| (x - l).exp()), vec![x, level.clone()])?;
            let done = gpu::reduce(gpu, Reduction::Sum, &powers, &plan.mask, &sums)?;
            let total = apply(&formula!(|s, l| s.ln() + l), vec![sums, level])?;
            gpu::copy(gpu, &total.try_reshape_to(&plan.out)?, &out)?;
            Ok(done)
        },
    )?;
    cx.grad(out, &[x], move |g| {
        // Not from the result: beside a large peak it has no room for the logarithm of the sum.
        let x = g.saved(0).cast(dtype);
        let shares = match plan.axes()[..] {
            [axis] => x.softmax(axis),
            _ if plan.axes().len() == x.ndim() => x.reshape_to([x.numel()]).softmax(0).reshape_to(x.shape()),
            _ => {
                let (axes, peak) = (plan.axes(), MaxOpts::new().keepdim(true));
                let e = (&x - x.detach().max_with(axes.clone(), peak)).exp();
                &e / e.sum_with(axes, SumOpts::new().keepdim(true))
            }
        };
        Ok((shares * g.grad().reshape_to(&plan.kept)).cast(g.saved(0).dtype()))
    })
}

/// Reductions over one axis, several, all; kept and not; with empty and 0-d inputs.
pub(crate) fn axis_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 4]), 1],
        sample![randn([2, 3, 4]), [0, -1]],
        sample![randn([2, 3]), -1; keepdim = true],
        sample![randn([])],
        sample![randn([0, 3]), 0],
    ]
}
fn sum_samples() -> Vec<Sample> {
    let mut samples = axis_samples();
    samples.push(sample![complexes([2, 3]), 0]);
    samples.push(sample![complexes([2, 3, 2]), [0, 2]; keepdim = true]);
    samples
}
fn mean_samples() -> Vec<Sample> {
    let mut samples = axis_samples();
    samples.push(sample![complexes([2, 3]), 1]);
    samples.push(sample![ints([2, 3], 0, 9), 0].peer("np.mean"));
    samples.push(sample![randn([2, 3]), 0; dtype = DType::Float64]);
    samples
}
fn tie_samples() -> Vec<Sample> {
    vec![sample![values(vec![1.0f32, 2.0, 2.0, 3.0], [2, 2]), values(vec![2.0f32, 3.0], [2, 1])]]
}
fn extreme_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 3])],
        sample![distinct([2, 3, 4]), 1],
        sample![distinct([2, 3, 4]), [0, -1]; keepdim = true],
        sample![distinct([])],
        sample![distinct([0, 3]), 1],
        sample![ints([2, 3], -9, 9), 0],
        sample![values(vec![1.0f32, 3.0, 3.0, 2.0, 2.0, 2.0], [2, 3]), 1].no_grad("a kink where values are equal"),
    ]
}
fn prod_samples() -> Vec<Sample> {
    let mut samples = axis_samples();
    samples.push(sample![values(vec![1.5f32, 0.0, 2.0, 0.0, 0.0, 3.0], [2, 3]), 1].peer("torch.prod"));
    samples.push(sample![ints([2, 3], 1, 4), 0]);
    // Paddle does not conjugate.
    samples.push(sample![complexes([2, 3]), 1].grad_peer("torch.prod"));
    samples
}
pub(crate) fn truth_samples() -> Vec<Sample> {
    vec![
        sample![bools([2, 3])],
        sample![bools([2, 3, 4]), [0, -1]; keepdim = true],
        sample![ints([2, 3], 0, 2), 1],
        sample![bools([])],
        sample![bools([0, 3]), 0],
    ]
}
fn count_samples() -> Vec<Sample> {
    let mut samples = truth_samples();
    samples.push(sample![values(vec![1.0f32, 0.0, f32::NAN, -2.0], [2, 2]), 0]);
    samples
}
fn nans() -> Tensor {
    values(vec![1.5f32, f32::NAN, -0.5, 2.0, f32::NAN, f32::NAN], [2, 3])
}
fn nan_line() -> Vec<Sample> {
    vec![sample![nans()], sample![randn([])]]
}
fn fill_samples() -> Vec<Sample> {
    vec![sample![nans(), 3.0].no_grad("differences of NaN"), sample![randn([2]), 0.0]]
}
fn nan_samples() -> Vec<Sample> {
    vec![
        sample![nans()].no_grad("differences of NaN"),
        sample![nans(), 0].no_grad("differences of NaN"),
        sample![randn([2, 3, 2]), [0, -1]; keepdim = true],
        sample![randn([])],
    ]
}
fn nansum_samples() -> Vec<Sample> {
    let mut samples = nan_samples();
    samples.push(sample![ints([2, 3], 0, 9), 1]);
    samples.push(sample![randn([2, 3]), 1; dtype = DType::Float64]);
    samples
}
