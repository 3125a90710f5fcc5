//! Spread, order statistics, correlation, and sums under a curve.

use crate::ops::prelude::*;
use crate::ops::reduction::{MeanOpts, Plan, SumOpts};
use sampan_cuda::reduce::Reduction;
use sampan_kernels::reduce;

/// The variance over `axis` (all axes by default): the sum of squared distances from the mean over `n - correction`.
/// `unbiased` sets the correction to 1 or 0. Integers give the default float.
///
/// ```
/// # use sampan_core::{Tensor, ops::statistics::VarOpts};
/// let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0]);
/// assert_eq!(x.var_with((), VarOpts::new().unbiased(false)).to_f64(), 1.25);
/// ```
#[op(samples = var_samples, amp = "black")]
fn var(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(None)] unbiased: Option<bool>,
    #[opt(false)] keepdim: bool,
    #[opt(1.0)] correction: f64,
) -> Result<Tensor> {
    let correction = unbiased.map_or(correction, |u| u as u8 as f64);
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = variance(cx, x, &plan, correction, false)?;
    cx.grad(out, &[x], move |g| {
        let deviation = deviation(g.saved(0), &plan);
        Ok(deviation * (g.grad().reshape_to(&plan.kept) * (2.0 / freedom(&plan, correction))))
    })
}

/// The standard deviation over `axis` (all axes by default): the root of `var`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 3.0, 5.0]]).std(1).to_vec::<f32>(), [2.0]);
/// ```
#[op(samples = std_samples, amp = "black")]
fn std(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(true)] unbiased: bool,
    #[opt(false)] keepdim: bool,
) -> Result<Tensor> {
    let correction = unbiased as u8 as f64;
    let plan = Plan::new(x, &axis, keepdim)?;
    let out = variance(cx, x, &plan, correction, true)?;
    cx.grad_from_output(out, &[x], move |g| {
        let (slope, out) = (g.grad() / freedom(&plan, correction), g.output(0).reshape_to(&plan.kept));
        // Equal elements have no deviation, and no slope here.
        Ok(deviation(g.saved(0), &plan) / crate::ops::cross_entropy::or_one(&out) * slope.reshape_to(&plan.kept))
    })
}

/// What a sum of squares is divided by; zero where the correction leaves nothing.
fn freedom(plan: &Plan, correction: f64) -> f64 {
    (plan.count as f64 - correction).max(0.0)
}

/// The distances from the mean.
fn deviation(x: &Tensor, plan: &Plan) -> Tensor {
    x - x.mean_with(plan.axes(), MeanOpts::new().keepdim(true))
}

/// The variance, or its root.
fn variance(cx: &Cx, x: &Tensor, plan: &Plan, correction: f64, root: bool) -> Result<Tensor> {
    let dtype = to_float(x.dtype());
    let (out, freedom) = (cx.out(&plan.out, dtype)?, freedom(plan, correction));
    if let Some(gpu) = cx.gpu()? {
        // The squares of what is left of each element, which no rounding takes from a large mean. Distances may be larger than
        // every element, and a half has no room for them.
        let x = x.in_dtype(if dtype.is_half() { DType::Float32 } else { dtype })?;
        let distances = deviation(&x, plan);
        let kind = if root { Reduction::RootOver(freedom) } else { Reduction::SquaresOver(freedom) };
        if crate::gpu::reduce(gpu, kind, &distances, &plan.mask, &out)? {
            return Ok(out);
        }
    }
    cx.cpu(|| {
        let x = x.in_dtype(dtype)?;
        reduce::variance(x.values().view(), &plan.mask, freedom, root, out.values_mut().slice());
        Ok(())
    })?;
    Ok(out)
}

/// The elements that meet in each result as the last axis.
fn lines(x: &Tensor, plan: &Plan) -> Result<Tensor> {
    let mut perm: Vec<i64> = (0..x.ndim()).filter(|&i| !plan.mask[i]).map(|i| i as i64).collect();
    let mut shape: Shape = perm.iter().map(|&i| x.shape()[i as usize]).collect();
    perm.extend(plan.axes());
    shape.push(plan.count);
    x.try_transpose(perm)?.try_reshape_to(shape)
}

/// Sorted lines, and where to look in each: one position for all, or one for each line where NaNs are left out.
struct Sorted {
    values: Tensor,
    indices: Tensor,
    /// Numbers in each line, where they differ.
    counts: Option<Tensor>,
}

impl Sorted {
    fn new(x: &Tensor, plan: &Plan, ignore_nan: bool) -> Result<Sorted> {
        let x = lines(x, plan)?;
        let counts = if ignore_nan && x.dtype().is_float() {
            Some(x.try_number_mask()?.try_cast(DType::Float64)?.try_sum_with(-1, SumOpts::new().keepdim(true))?)
        } else {
            None
        };
        let (values, indices) = x.try_sort_pairs(-1, false)?;
        Ok(Sorted { values, indices, counts })
    }

    /// A number for each line from its count, of shape `[…, 1]`.
    fn each(&self, dtype: DType, f: impl Fn(f64) -> f64) -> Result<Tensor> {
        let n = self.values.dim(-1) as f64;
        match &self.counts {
            None => Tensor::new(f(n)).cast(dtype).try_reshape_to(vec![1i64; self.values.ndim()]),
            Some(c) if c.device() == Device::Meta => Ok(Tensor::meta(c.shape(), dtype)),
            Some(c) => Tensor::from_vec(c.to_vec::<f64>().into_iter().map(f).collect(), c.shape()).try_cast(dtype),
        }
    }

    /// The elements of `t` at a position that depends on each line's count; no shape but the lines' own.
    fn at(&self, t: &Tensor, position: impl Fn(f64) -> f64) -> Result<Tensor> {
        let n = self.values.dim(-1) as f64;
        let position = |count: f64| position(count).clamp(0.0, n - 1.0);
        match &self.counts {
            None => t.try_narrow(-1, position(n) as usize, 1),
            Some(_) => t.try_take_along(&self.each(DType::Int64, position)?, -1),
        }
    }

    /// `out`, but NaN in lines with a NaN, which is sorted to their end.
    fn spread_nan(&self, out: Tensor) -> Result<Tensor> {
        if self.counts.is_some() || !self.values.dtype().is_float() {
            return Ok(out);
        }
        let last = self.values.try_narrow(-1, self.values.dim(-1) - 1, 1)?;
        last.detach().try_number_mask()?.try_cast(DType::Bool)?.try_where_cond(out, last)
    }

    /// The quantile `q` of each line, `[…, 1]`.
    fn quantile(&self, q: f64, how: &str) -> Result<Tensor> {
        let position = |count: f64| q * (count - 1.0).max(0.0);
        let low = |c: f64| position(c).floor();
        let high = |c: f64| position(c).ceil();
        let at = |f: &dyn Fn(f64) -> f64| self.at(&self.values, f);
        let between = |part: Tensor| Ok::<_, Error>(at(&low)? * (1.0 - &part) + at(&high)? * part);
        self.spread_nan(match how {
            "lower" => at(&low)?,
            "higher" => at(&high)?,
            "nearest" => at(&|c| position(c).round_ties_even())?,
            "midpoint" => (at(&low)? + at(&high)?) * 0.5,
            "linear"
                if self.counts.is_none() && low(self.values.dim(-1) as f64) == high(self.values.dim(-1) as f64) =>
            {
                at(&low)?
            }
            "linear" => between(self.each(self.values.dtype(), |c| position(c) - low(c))?)?,
            other => bail!("interpolation must be linear, lower, higher, midpoint or nearest, got {other}"),
        })
    }
}

/// `x` as floats, and NaN in the shape of a result over no elements.
fn float(x: &Tensor) -> Result<Tensor> {
    x.try_cast(to_float(x.dtype()))
}
fn nothing(x: &Tensor, plan: &Plan) -> Tensor {
    Tensor::zeros_on(&plan.out, x.dtype(), x.device()) + f64::NAN
}

fn quantiles(x: &Tensor, q: &Value, axis: Axes, keepdim: bool, how: &str, ignore_nan: bool) -> Result<Tensor> {
    let qs = match q {
        Value::Float(q) => vec![*q],
        Value::Int(q) => vec![*q as f64],
        Value::Floats(qs) => qs.clone(),
        Value::Ints(qs) => qs.iter().map(|&q| q as f64).collect(),
        Value::Tensor(t) if t.device() == Device::Meta => {
            bail!("the result depends on the values of q, which a meta tensor lacks")
        }
        Value::Tensor(t) => {
            ensure!(t.ndim() <= 1, "q must be a number or 1-D, got {:?}", t.shape());
            t.to_f64_vec()
        }
        other => {
            return Err(Error::dtype(format!("q must be a number, numbers or a Tensor, got {}", other.type_name())));
        }
    };
    ensure!(!qs.is_empty(), "q must hold at least one number");
    ensure!(qs.iter().all(|q| (0.0..=1.0).contains(q)), "q must lie in [0, 1], got {qs:?}");
    let plan = Plan::new(x, &axis, keepdim)?;
    let x = float(x)?;
    let parts: Vec<Tensor> = if plan.count == 0 {
        vec![nothing(&x, &plan); qs.len()]
    } else {
        let sorted = Sorted::new(&x, &plan, ignore_nan)?;
        qs.iter().map(|&q| sorted.quantile(q, how)?.try_reshape_to(&plan.out)).collect::<Result<_>>()?
    };
    if parts.len() == 1 { Ok(parts[0].clone()) } else { crate::ops::joining::try_stack(&parts, 0) }
}

/// The value below which the share `q` of the elements over `axis` (all axes by default) lies. Several `q` give results
/// along a new first axis. Between two elements `interpolation` decides: linear, lower, higher, midpoint, nearest. NaN
/// where there is one.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([4.0f32, 1.0, 3.0, 2.0]);
/// assert_eq!(x.quantile(0.5, ()).to_f64(), 2.5);
/// assert_eq!(x.quantile([0.0, 1.0], ()).to_vec::<f32>(), [1.0, 4.0]);
/// ```
#[op(samples = quantile_samples, amp = "black")]
fn quantile(
    x: &Tensor,
    q: &Value,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt("linear")] interpolation: &str,
) -> Result<Tensor> {
    quantiles(x, q, axis, keepdim, interpolation, false)
}

/// `quantile` of what is not NaN; NaN where there is nothing else.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4.0f32, f32::NAN, 3.0]).nanquantile(0.5, ()).to_f64(), 3.5);
/// ```
#[op(samples = nanquantile_samples, amp = "black")]
fn nanquantile(
    x: &Tensor,
    q: &Value,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt("linear")] interpolation: &str,
) -> Result<Tensor> {
    quantiles(x, q, axis, keepdim, interpolation, true)
}

fn medians(x: &Tensor, axis: Axes, keepdim: bool, mode: &str, ignore_nan: bool) -> Result<Varying> {
    let plan = Plan::new(x, &axis, keepdim)?;
    if mode == "avg" {
        let x = float(x)?;
        // Paddle's median is a float32 at least; its nanmedian stays half.
        let x = if x.dtype().is_half() && !ignore_nan { x.cast(DType::Float32) } else { x };
        if plan.count == 0 {
            return Ok(Varying(vec![nothing(&x, &plan)]));
        }
        let middle = Sorted::new(&x, &plan, ignore_nan)?.quantile(0.5, "linear")?;
        return Ok(Varying(vec![middle.try_reshape_to(&plan.out)?]));
    }
    ensure!(mode == "min", "mode must be avg or min, got {mode}");
    plan.nonempty(x)?;
    let indexed = axis.0.is_some_and(|a| a.len() == 1);
    if plan.count == 0 {
        let empty = |dtype| Tensor::zeros_on(&plan.out, dtype, x.device());
        let value = empty(x.dtype());
        return Ok(Varying(if indexed { vec![value, empty(DType::Int64)] } else { vec![value] }));
    }
    let sorted = Sorted::new(x, &plan, true)?;
    let n = plan.count as f64;
    // A NaN that is not to be left out is the result, with the position of the first.
    let place = move |c: f64| if c < n && !ignore_nan { c } else { ((c - 1.0) / 2.0).floor() };
    // Of nothing but NaNs the median is a NaN that has no place and no gradient.
    let some = sorted.counts.as_ref().filter(|_| ignore_nan).map(|c| c.greater_than(0.0));
    let chosen = |t: &Tensor, none: f64| -> Result<Tensor> {
        let found = sorted.at(t, place)?;
        let found = match &some {
            Some(some) => some.try_where_cond(&found, Tensor::full_like_scalar(&found, none))?,
            None => found,
        };
        found.try_reshape_to(&plan.out)
    };
    let value = chosen(&sorted.values, f64::NAN)?;
    if !indexed {
        return Ok(Varying(vec![value]));
    }
    Ok(Varying(vec![value, chosen(&sorted.indices, -1.0)?]))
}

/// The middle element over `axis` (all axes by default), NaN where there is one. Between two middle elements: their mean,
/// or with `mode = "min"` the smaller, and then over one axis also its position. The mean of half floats is a float32.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4.0f32, 1.0, 3.0, 2.0]).median(()).to_f64(), 2.5);
/// ```
#[op(samples = median_samples, amp = "black", results("values", "indices"))]
fn median(
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt("avg")] mode: &str,
) -> Result<Varying> {
    medians(x, axis, keepdim, mode, false)
}

/// `median` of what is not NaN; NaN where there is nothing else.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4.0f32, f32::NAN, 3.0]).nanmedian(()).to_f64(), 3.5);
/// ```
#[op(samples = nanmedian_samples, amp = "black", results("values", "indices"))]
fn nanmedian(
    x: &Tensor,
    #[default(None)] axis: Axes,
    #[opt(false)] keepdim: bool,
    #[opt("avg")] mode: &str,
) -> Result<Varying> {
    medians(x, axis, keepdim, mode, true)
}

/// Variables in the rows of a matrix, and whether there was just one.
fn variables(x: &Tensor, rowvar: bool) -> Result<(Tensor, bool)> {
    ensure!((1..=2).contains(&x.ndim()), "x must have one or two axes, got {:?}", x.shape());
    let x = float(x)?;
    Ok(match x.ndim() {
        1 => (x.try_unsqueeze(0)?, true),
        _ if rowvar => (x, false),
        _ => (x.try_t()?, false),
    })
}

/// The covariance matrix of variables in the rows of `x` (in its columns without `rowvar`), one observation in each
/// column. `ddof` divides by one less than the observations; `fweights` says how often each occurred, `aweights` how
/// much it counts.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 3.0], [5.0, 1.0]]);
/// assert_eq!(x.cov().to_vec::<f32>(), [2.0, -4.0, -4.0, 8.0]);
/// ```
#[op(module = "linalg", samples = cov_samples, amp = "black")]
fn cov(
    x: &Tensor,
    #[opt(true)] rowvar: bool,
    #[opt(true)] ddof: bool,
    #[opt(None)] fweights: Option<&Tensor>,
    #[opt(None)] aweights: Option<&Tensor>,
) -> Result<Tensor> {
    let (x, single) = variables(x, rowvar)?;
    let n = x.shape()[1];
    for (name, w) in [("fweights", fweights), ("aweights", aweights)] {
        ensure!(w.is_none_or(|w| w.shape() == [n]), "{name} must hold one number for each of the {n} observations");
    }
    let of = |w: &Tensor| w.try_cast(x.dtype());
    let ddof = ddof as u8 as f64;
    let keep = || MeanOpts::new().keepdim(true);
    let out = match (fweights, aweights) {
        (None, None) => {
            let d = &x - x.mean_with(1, keep());
            d.matmul(&d.t()) / (n as f64 - ddof).max(0.0)
        }
        _ => {
            let both = |a: Tensor, b: Option<&Tensor>| b.map_or(Ok(a.clone()), |b| of(b).map(|b| a * b));
            let w = both(both(Tensor::zeros_on([n], x.dtype(), x.device()) + 1.0, fweights)?, aweights)?;
            let total = w.sum(());
            let d = &x - (&x * &w).sum_with(1, SumOpts::new().keepdim(true)) / &total;
            let lost = match aweights {
                Some(a) => (&w * of(a)?).sum(()) / &total * ddof,
                None => Tensor::zeros_on([], x.dtype(), x.device()) + ddof,
            };
            (&d * w).matmul(&d.t()) / (total - lost)
        }
    };
    if single { out.try_reshape_to([0usize; 0].as_slice()) } else { Ok(out) }
}

/// The correlation coefficients of variables in the rows of `x` (in its columns without `rowvar`).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 3.0], [5.0, 1.0]]);
/// assert!((x.corrcoef().to_f64_vec()[1] + 1.0).abs() < 1e-6);
/// ```
#[op(module = "linalg", samples = corrcoef_samples, amp = "black", tol = 1e-4)]
fn corrcoef(x: &Tensor, #[opt(true)] rowvar: bool) -> Result<Tensor> {
    let (x, single) = variables(x, rowvar)?;
    let d = &x - x.mean_with(1, MeanOpts::new().keepdim(true));
    let length = (&d * &d).sum_with(1, SumOpts::new().keepdim(true)).sqrt();
    let rows = d / length;
    let out = rows.matmul(&rows.t()).clip(-1.0, 1.0);
    if single { out.try_reshape_to([0usize; 0].as_slice()) } else { Ok(out) }
}

/// The areas of the trapezoids between neighbours along `axis`.
fn trapezoids(y: &Tensor, x: Option<&Tensor>, dx: Option<f64>, axis: i64) -> Result<(Tensor, usize)> {
    ensure!(y.ndim() > 0, "y must have an axis to integrate along");
    ensure!(x.is_none() || dx.is_none(), "x and dx exclude each other");
    let axis = resolve_axis(axis, y.ndim())?;
    let n = y.shape()[axis];
    let y = float(y)?;
    let part = |t: &Tensor, a: usize, from: usize| t.try_narrow(a as i64, from.min(n), n.max(1) - 1);
    let sums = part(&y, axis, 0)? + part(&y, axis, 1)?;
    let widths = match x {
        None => return Ok((sums * (dx.unwrap_or(1.0) * 0.5), axis)),
        Some(x) if x.ndim() == 1 => {
            ensure!(x.shape()[0] == n, "x has {} points, y has {n} along axis {axis}", x.shape()[0]);
            let mut shape = vec![1; y.ndim()];
            shape[axis] = n.max(1) - 1;
            (part(x, 0, 1)? - part(x, 0, 0)?).try_reshape_to(shape.as_slice())?
        }
        Some(x) => {
            ensure!(x.shape() == y.shape(), "x must be 1-D or have the shape of y");
            part(x, axis, 1)? - part(x, axis, 0)?
        }
    };
    Ok((sums * widths * 0.5, axis))
}

/// The integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0, 3.0]).trapezoid(None).to_f64(), 4.0);
/// ```
#[op(samples = trapezoid_samples)]
fn trapezoid(
    y: &Tensor,
    #[default(None)] x: Option<&Tensor>,
    #[opt(None)] dx: Option<f64>,
    #[opt(-1)] axis: i64,
) -> Result<Tensor> {
    let (areas, axis) = trapezoids(y, x, dx, axis)?;
    areas.try_sum(axis)
}

/// The running integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0, 3.0]).cumulative_trapezoid(None).to_vec::<f32>(), [1.5, 4.0]);
/// ```
#[op(samples = trapezoid_samples)]
fn cumulative_trapezoid(
    y: &Tensor,
    #[default(None)] x: Option<&Tensor>,
    #[opt(None)] dx: Option<f64>,
    #[opt(-1)] axis: i64,
) -> Result<Tensor> {
    let (areas, axis) = trapezoids(y, x, dx, axis)?;
    areas.try_cumsum(axis as i64)
}

/// The sum of `x` over the axes along which it is broadcast from `target`, in the shape of `target`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.reduce_as(&Tensor::new([0.0f32, 0.0])).to_vec::<f32>(), [4.0, 6.0]);
/// ```
#[op(complex, samples = reduce_as_samples)]
fn reduce_as(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let fits = target.ndim() <= x.ndim() && broadcast(x.shape(), target.shape())?.as_slice() == x.shape();
    ensure!(fits, "target must broadcast to the shape of x");
    Ok(crate::ops::elementwise::sum_to(x, target.shape()))
}

fn var_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 4]), 1; unbiased = false],
        sample![randn([2, 3, 4]), [0, -1]; keepdim = true],
        sample![randn([5]), 0; correction = 2.0],
        sample![randn([0, 3]), 1],
    ]
}
fn std_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 4]), 1; unbiased = false],
        sample![randn([2, 3, 4]), [0, -1]; keepdim = true],
        sample![randn([0, 3]), 1],
    ]
}
fn quantile_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 4]), 0.5],
        sample![distinct([2, 4]), [0.1, 0.5], 1],
        sample![distinct([2, 3, 2]), [0.3, 0.9], [0, 2]; keepdim = true],
        sample![distinct([2, 5]), values(vec![0.4f32], [1]), 1; interpolation = "nearest"],
        sample![distinct([4]), 0.4, 0; interpolation = "midpoint"],
        sample![distinct([4]), 0.4, 0; interpolation = "lower"],
        sample![distinct([4]), 0.4, 0; interpolation = "higher"],
        sample![values(vec![1.0f32, f32::NAN, 2.0, 4.0], [2, 2]), 0.5, 1].no_grad("differences of NaN"),
    ]
}
fn nanquantile_samples() -> Vec<Sample> {
    let x = || values(vec![1.0f32, f32::NAN, 2.0, 4.0, f32::NAN, f32::NAN], [2, 3]);
    vec![
        sample![distinct([2, 4]), 0.5],
        sample![distinct([2, 4]), [0.1, 0.5], 1],
        sample![x(), 0.3, 1].no_grad("differences of NaN"),
        sample![x(), 0.3].no_grad("differences of NaN"),
        sample![x(), 0.3, 0; interpolation = "higher"].no_grad("differences of NaN"),
    ]
}
fn median_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 3])],
        sample![distinct([2, 4]), 1],
        sample![distinct([3, 2]), 0; keepdim = true],
        sample![distinct([2, 4]), 1; mode = "min"],
        sample![distinct([2, 4]), 1; mode = "min", keepdim = true],
        sample![distinct([2, 3]); mode = "min"],
        sample![values(vec![1.0f32, f32::NAN, 2.0, 4.0], [2, 2]), 1; mode = "min"].no_grad("differences of NaN"),
        sample![ints([2, 4], 0, 9), 0],
        sample![distinct([])],
    ]
}
fn nanmedian_samples() -> Vec<Sample> {
    let x = || values(vec![1.0f32, f32::NAN, 2.0, 4.0, 3.0, f32::NAN], [2, 3]);
    vec![
        sample![distinct([2, 3])],
        sample![distinct([2, 3, 2]), [0, 2]; keepdim = true],
        sample![distinct([2, 4]), 1; mode = "min"],
        sample![x(), 1].no_grad("differences of NaN"),
        sample![x(), 1; mode = "min"].no_grad("differences of NaN"),
        sample![values(vec![f32::NAN, f32::NAN, f32::NAN, 2.0], [2, 2]), 1; mode = "min"].no_grad("differences of NaN"),
    ]
}
fn cov_samples() -> Vec<Sample> {
    let times = || values(vec![1i64, 2, 1, 3], [4]);
    vec![
        sample![randn([3, 4])],
        sample![randn([4, 2]); rowvar = false, ddof = false],
        sample![randn([5])],
        sample![randn([2, 4]); fweights = times()],
        sample![randn([2, 4]); fweights = times(), aweights = positive([4])],
        sample![randn([2, 4]); aweights = positive([4]), ddof = false],
    ]
}
fn corrcoef_samples() -> Vec<Sample> {
    vec![sample![randn([3, 4])], sample![randn([4, 2]); rowvar = false], sample![randn([5])]]
}
fn trapezoid_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4])],
        sample![randn([2, 4]), distinct([4])],
        sample![randn([3, 2]); dx = 0.5, axis = 0],
        sample![randn([2, 3]), distinct([2, 3])],
        sample![randn([3, 2]), distinct([3]); axis = 0],
    ]
}
fn reduce_as_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), positive([3])],
        sample![randn([2, 3, 2]), positive([3, 1])],
        sample![randn([2, 3]), positive([])],
    ]
}
