//! Powers, exponentials, logarithms and other elementwise functions of one argument.

use crate::ops::prelude::*;

/// The exponential of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32, 1.0]).exp().to_vec::<f32>(), [1.0, std::f32::consts::E]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Exp", amp = "black")]
fn exp(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.exp()), x)
}

/// `exp(x) - 1`, exact near zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1e-10f64]).expm1().to_vec::<f64>(), [1e-10f64.exp_m1()]);
/// ```
#[op(inplace, complex, samples = any_line, amp = "black")]
fn expm1(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.expm1()), x)
}

/// The natural logarithm of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).log().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_right_half, onnx = "Log", amp = "black")]
fn log(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.ln()), x)
}

/// The logarithm to base 2 of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([8.0f32, 0.5]).log2().to_vec::<f32>(), [3.0, -1.0]);
/// ```
#[op(inplace, complex, samples = any_right_half, amp = "black")]
fn log2(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.log2()), x)
}

/// The logarithm to base 10 of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([100.0f64]).log10().to_vec::<f64>(), [2.0]);
/// ```
#[op(inplace, complex, samples = any_right_half, amp = "black")]
fn log10(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.log10()), x)
}

/// `log(1 + x)`, exact near zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1e-10f64]).log1p().to_vec::<f64>(), [1e-10f64.ln_1p()]);
/// ```
#[op(inplace, complex, samples = any_right_half, amp = "black")]
fn log1p(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.log1p()), x)
}

/// The square root of each element; NaN for negative real ones.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4i64, 9]).sqrt().to_vec::<f32>(), [2.0, 3.0]);
/// ```
#[op(inplace, complex, samples = any_right_half, onnx = "Sqrt")]
fn sqrt(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.sqrt()), x)
}

/// `1 / sqrt(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4.0f32, 0.25]).rsqrt().to_vec::<f32>(), [0.5, 2.0]);
/// ```
#[op(inplace, complex, samples = rsqrt_samples, amp = "black")]
fn rsqrt(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.rsqrt()), x)
}

/// `x * x`; keeps integers.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-3i64, 2]).square().to_vec::<i64>(), [9, 4]);
/// ```
#[op(inplace, complex, samples = any_line, amp = "black")]
fn square(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| x * x), x)
}

/// The absolute value of each element; of a complex number the length, a real number.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-3i64, 2]).abs().to_vec::<i64>(), [3, 2]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Abs")]
fn abs(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return cx.number(formula!(|x| x.abs()), x);
    }
    let out = cx.part(formula!(|z| z.abs()), x)?;
    cx.grad(out, &[x], |g| Ok(g.grad() * g.saved(0).sign()))
}

/// -1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-2.5f32, 0.0, 7.0]).sign().to_vec::<f32>(), [-1.0, 0.0, 1.0]);
/// ```
#[op(inplace, complex, samples = sign_samples, onnx = "Sign", also("sgn"))]
fn sign(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        let out = cx.number_values(formula!(|z| z.sign()), x)?;
        return cx.grad_from_output(out, &[x], |g| {
            // Only what stands across the number turns it; the length divides it.
            let (y, size) = (g.output(0), g.saved(0).abs());
            let across = g.grad() - y * (y.conj() * g.grad()).real();
            Ok(across / (&size + size.equal(0.0)))
        });
    }
    cx.number(formula!(|x| x.sign()), x)
}

/// The logistic function `1 / (1 + exp(-x))`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sigmoid().to_vec::<f32>(), [0.5]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Sigmoid", also("nn.functional.sigmoid"))]
fn sigmoid(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.sigmoid()), x)
}

/// `scale_b * tanh(scale_a * x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).stanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(samples = stanh_samples)]
fn stanh(x: &Tensor, #[opt(0.67)] scale_a: f64, #[opt(1.7159)] scale_b: f64) -> Result<Tensor> {
    Ok((x * scale_a).tanh() * scale_b)
}

/// The inverse of `sigmoid`, `log(x / (1 - x))`, after holding `x` inside `[eps, 1 - eps]` if `eps` is given.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.5f32]).logit(None).to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = logit_samples, amp = "black")]
fn logit(x: &Tensor, #[default(None)] eps: Option<f64>) -> Result<Tensor> {
    let x = match eps {
        None => x.clone(),
        Some(eps) => {
            ensure!((0.0..=0.5).contains(&eps), "eps must lie in [0, 0.5], got {eps}");
            x.try_clip(eps, 1.0 - eps)?
        }
    };
    Ok(x.log() - (-x).log1p())
}

/// `x` itself; bool is refused.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1i64]).positive().to_vec::<i64>(), [-1]);
/// ```
#[op(complex, samples = any_line)]
fn positive(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::Bool {
        return Err(Error::dtype("x must hold numbers, got bool").hint("cast it to an integer first"));
    }
    Ok(x.clone())
}

/// `x` with NaN replaced by `nan` and infinities by `posinf` and `neginf`, or else by the dtype's largest and smallest
/// number.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([f32::NAN, f32::INFINITY, 1.0]);
/// assert_eq!(x.nan_to_num().to_vec::<f32>(), [0.0, f32::MAX, 1.0]);
/// ```
#[op(inplace, samples = nan_samples)]
fn nan_to_num(
    cx: &Cx,
    x: &Tensor,
    #[opt(0.0)] nan: f64,
    #[opt(None)] posinf: Option<f64>,
    #[opt(None)] neginf: Option<f64>,
) -> Result<Tensor> {
    let largest = match x.dtype() {
        DType::Float16 => sampan_kernels::f16::MAX.to_f64(),
        DType::BFloat16 => sampan_kernels::bf16::MAX.to_f64(),
        DType::Float64 => f64::MAX,
        _ => f32::MAX as f64,
    };
    let (high, low) = (posinf.unwrap_or(largest), neginf.unwrap_or(-largest));
    if !x.dtype().is_float() {
        return cx.number(formula!(|x| x), x);
    }
    let replace = formula!(|x; nan, high, low| {
        let x = select(x.is_nan(), nan, x);
        select(x.equals(f64::INFINITY), high, select(x.equals(f64::NEG_INFINITY), low, x))
    });
    cx.number(replace, x)
}

/// `scale * x + bias`, or `scale * (x + bias)` if not `bias_after_scale`; then the activation named by `act`, if any.
/// Integers keep their dtype: they are exact where `scale` and `bias` are whole numbers, and cut towards zero else.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_core::ops::math::ScaleOpts;
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(x.scale(2.0).to_vec::<f32>(), [2.0, 4.0]);
/// assert_eq!(x.scale_with(2.0, ScaleOpts::new().bias(1.0)).to_vec::<f32>(), [3.0, 5.0]);
/// ```
#[op(inplace, complex, samples = scale_samples)]
fn scale(
    x: &Tensor,
    #[default(1.0)] scale: Operand,
    #[opt(0.0)] bias: f64,
    #[opt(true)] bias_after_scale: bool,
    #[opt(None)] act: Option<&str>,
) -> Result<Tensor> {
    if let Operand::Tensor(scale) = &scale {
        ensure!(scale.numel() == 1, "scale must be a number or a tensor of one element, got shape {:?}", scale.shape());
    }
    let scale = match scale {
        Operand::Scalar(s @ Scalar::Complex(_)) => s.into(),
        Operand::Scalar(s) => whole(x, s.to_f64()).map_or(s, Scalar::Int).into(),
        tensor => tensor,
    };
    let with_bias = |x: &Tensor| x.try_add(whole(x, bias).map_or(Scalar::Float(bias), Scalar::Int));
    let out = match (bias == 0.0, bias_after_scale) {
        (true, _) => x.try_multiply(scale)?,
        (false, true) => with_bias(&x.try_multiply(scale)?)?,
        (false, false) => with_bias(x)?.try_multiply(scale)?,
    };
    let out = out.fitting(x.dtype())?;
    let Some(act) = act else { return Ok(out) };
    let op = crate::op::find(act).ok_or_else(|| Error::invalid(format!("act `{act}` is no op")))?;
    let mut outputs = crate::dispatch::dispatch(op, op.bind(vec![out.into()], vec![])?)?;
    Ok(outputs.remove(0))
}

/// A whole number as an integer, if `x` holds integers: then it need not go through a float.
fn whole(x: &Tensor, v: f64) -> Option<i64> {
    (x.dtype().is_int() && v.fract() == 0.0 && v.abs() < 2f64.powi(63)).then_some(v as i64)
}

/// Adds `value` to the one element of `x`, in place, and gives `x` back. Use it to count steps.
///
/// ```
/// # use sampan_core::Tensor;
/// let step = Tensor::new([1i64]);
/// step.increment(1.0);
/// assert_eq!(step.to_vec::<i64>(), [2]);
/// ```
#[op(complex, samples = increment_samples)]
fn increment(x: &Tensor, #[default(1.0)] value: f64) -> Result<Tensor> {
    ensure!(x.numel() == 1, "x must have one element, got shape {:?}", x.shape());
    let mut target = x.clone();
    target.replaced_by("increment", |x| {
        x.try_add(whole(x, value).map_or(Scalar::Float(value), Scalar::Int))?.try_cast(x.dtype())
    })?;
    Ok(target)
}

/// The mantissa, in ±[½, 1), and the exponent of each element: `x = mantissa * 2^exponent`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (mantissa, exponent) = Tensor::new([8.0f32, -3.0]).frexp();
/// assert_eq!(mantissa.to_vec::<f32>(), [0.5, -0.75]);
/// assert_eq!(exponent.to_vec::<f32>(), [4.0, 2.0]);
/// ```
#[op(samples = real_line, results("mantissa", "exponent"))]
fn frexp(cx: &Cx, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let mantissa = cx.float_values(formula!(|x| x.mantissa()), x)?;
    let exponent = cx.float_values(formula!(|x| x.exponent()), x)?;
    // The exponent is constant between the powers of two.
    cx.grad_from_output((mantissa, exponent), &[], |g| Ok(g.grad_of(0).ldexp(&-g.output(1).detach())))
}

/// `x * 2^y`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.5f32, 3.0]).ldexp(&Tensor::new([2i64, -1])).to_vec::<f32>(), [6.0, 1.5]);
/// ```
#[op(inplace, samples = ldexp_samples)]
fn ldexp(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    // In two steps, so that the power does not overflow where the product is finite.
    let times_power = formula!(|x, y| {
        let half = (y * 0.5).floor();
        x * half.exp2() * (y - half).exp2()
    });
    cx.float(times_power, (x, y))
}

/// The gradient of a function that is constant between its jumps.
pub(crate) fn zeros_like_grad(g: &Grad) -> Tensor {
    let g = g.grad();
    Tensor::zeros_on(g.shape(), g.dtype(), g.device())
}

fn rsqrt_samples() -> Vec<Sample> {
    // Paddle's knows no complex numbers.
    let complex = any_right_half().into_iter().skip(positive_line().len()).map(|s| s.peer("torch.rsqrt"));
    positive_line().into_iter().chain(complex).collect()
}
fn sign_samples() -> Vec<Sample> {
    // Paddle says that the angle of a complex number has no slope.
    let complex = any_line().into_iter().skip(real_line().len()).map(|s| s.grad_peer("torch.sgn"));
    real_line().into_iter().chain(complex).collect()
}
fn stanh_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([]); scale_a = 0.5, scale_b = 2.0], sample![randn([0, 2])]]
}
fn logit_samples() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 0.1, 0.9)],
        sample![uniform([6], 0.0, 1.0), 0.2],
        sample![uniform([], 0.1, 0.9)],
        sample![uniform([0, 2], 0.1, 0.9)],
    ]
}
fn nan_samples() -> Vec<Sample> {
    let odd = || values(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -1.5, 3.0], [2, 3]);
    vec![
        sample![odd(); nan = 2.0, posinf = 10.0, neginf = -10.0].no_grad("NaN has no slope"),
        sample![values([f32::NAN, 1.5], [2])].no_grad("NaN has no slope"),
        sample![randn([2, 3])],
        sample![ints([3], 0, 3)].peer("torch.nan_to_num"),
        sample![randn([])],
        sample![randn([0, 2])],
    ]
}
fn scale_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 2.0],
        sample![randn([3]), 2.0; bias = 0.5],
        sample![randn([3]), 2.0; bias = 0.5, bias_after_scale = false],
        sample![randn([3]), 2.0; act = "tanh"],
        sample![randn([2, 3]), positive([])].grad_peer("torch.mul"),
        sample![ints([3], -3, 4), 2; bias = 1.0],
        sample![randn([]), 3.0],
        sample![randn([0, 2]), 3.0],
    ]
}
fn increment_samples() -> Vec<Sample> {
    let reason = "none: changes its argument";
    vec![
        sample![randn([1])].no_grad(reason).peer("lambda x: torch.add(x, 1)").grad_peer(reason),
        sample![ints([1], 0, 9), 2.0].no_grad(reason),
        sample![randn([]), 0.5].no_grad(reason).peer("torch.add").grad_peer(reason),
    ]
}
fn ldexp_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), ints([2, 3], -4, 5)],
        sample![randn([2, 1]), randn([3])],
        sample![ints([3], -4, 5), ints([3], -3, 3)],
        sample![randn([]), ints([], -4, 5)],
        sample![randn([0, 2]), ints([2], -4, 5)],
    ]
}
