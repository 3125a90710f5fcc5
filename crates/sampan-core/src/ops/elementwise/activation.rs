//! Smooth activation functions. Each is one formula; its gradients of every order follow from it.

use crate::ops::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `x` times the normal distribution function; with `approximate`, its form in tanh.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).gelu(false).to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = gelu_samples)]
fn gelu(cx: &Cx, x: &Tensor, #[default(false)] approximate: &Value) -> Result<Tensor> {
    let tanh = match approximate {
        Value::Bool(b) => *b,
        Value::Str(s) if &**s == "tanh" => true,
        Value::Str(s) if &**s == "none" => false,
        other => return Err(Error::dtype(format!("approximate must be a bool, \"none\" or \"tanh\", got {other:?}"))),
    };
    if tanh {
        // (1 + tanh z) / 2 is the logistic function of 2z, which does not cancel.
        let twice = 2.0 * (2.0 / PI).sqrt();
        return cx.float(formula!(|x; twice| x.times((twice * x * (1.0 + 0.044715 * x * x)).sigmoid())), x);
    }
    cx.float(formula!(|x| (0.5 * x).times(1.0 + (x * FRAC_1_SQRT_2).erf())), x)
}

/// `x * sigmoid(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).silu().to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, also("nn.functional.swish"))]
fn silu(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.times(x.sigmoid())), x)
}

/// `ln(1 + e^(beta x)) / beta`, or `x` where `beta x` is above `threshold`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([30.0f32]).softplus(1.0, 20.0).to_vec::<f32>(), [30.0]);
/// ```
#[op(module = "nn.functional", samples = softplus_samples, amp = "black")]
fn softplus(cx: &Cx, x: &Tensor, #[default(1.0)] beta: f64, #[default(20.0)] threshold: f64) -> Result<Tensor> {
    ensure!(beta != 0.0, "beta must not be 0");
    let inverse = 1.0 / beta;
    let f = formula!(|x; beta, inverse, threshold| {
        let z = x * beta;
        select(z.gt(threshold), x, z.softplus() * inverse)
    });
    cx.float(f, x)
}

/// `x * tanh(softplus(x))`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).mish().to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, onnx = "Mish")]
fn mish(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.times(x.softplus().tanh())), x)
}

/// `scale * x` above zero, `scale * alpha * (e^x - 1)` below.
fn elu_like(cx: &Cx, x: &Tensor, alpha: f64, scale: f64) -> Result<Tensor> {
    let f = formula!(|x; alpha, scale| scale * select(x.gt(0.0), x, alpha * x.expm1()));
    let below = scale * alpha;
    let back = formula!(|y, g; scale, below| g * select(y.gt(0.0), scale, y + below));
    // With alpha >= 0 the slope follows from the result, which costs no exponential.
    if alpha >= 0.0 { cx.by_result(f, back, x, false) } else { cx.float(f, x) }
}

/// `x` above zero, `alpha * (e^x - 1)` below.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2.0f32, 0.0]).elu(1.0).to_vec::<f32>(), [2.0, 0.0]);
/// ```
#[op(inplace, module = "nn.functional", samples = elu_samples)]
fn elu(cx: &Cx, x: &Tensor, #[default(1.0)] alpha: f64) -> Result<Tensor> {
    elu_like(cx, x, alpha, 1.0)
}

/// `scale * x` above zero, `scale * alpha * (e^x - 1)` below; the defaults keep mean 0 and deviation 1 from layer to layer.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).selu(1.5, 1.0).to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = selu_samples)]
fn selu(
    cx: &Cx,
    x: &Tensor,
    #[default(1.050_700_987_355_480_5)] scale: f64,
    #[default(1.673_263_242_354_377_2)] alpha: f64,
) -> Result<Tensor> {
    ensure!(scale > 1.0, "scale must be above 1, got {scale}");
    ensure!(alpha >= 0.0, "alpha must not be negative, got {alpha}");
    elu_like(cx, x, alpha, scale)
}

/// `max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2.0f32, 0.0]).celu(0.5).to_vec::<f32>(), [2.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = elu_samples)]
fn celu(cx: &Cx, x: &Tensor, #[default(1.0)] alpha: f64) -> Result<Tensor> {
    ensure!(alpha != 0.0, "alpha must not be 0");
    cx.float(formula!(|x; alpha| select(x.gt(0.0), x, alpha * (x * (1.0 / alpha)).expm1())), x)
}

/// `x * min(max(x + 3, 0), 6) / 6`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-4.0f32, 4.0]).hardswish().to_vec::<f32>(), [0.0, 4.0]);
/// ```
#[op(module = "nn.functional", samples = wide_line, onnx = "HardSwish")]
fn hardswish(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.times((x + 3.0).max(0.0).min(6.0) * (1.0 / 6.0))), x)
}

/// `x / (1 + |x|)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, -1.0]).softsign().to_vec::<f32>(), [0.5, -0.5]);
/// ```
#[op(module = "nn.functional", samples = real_line, onnx = "Softsign")]
fn softsign(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    const LARGEST: f64 = f32::MAX as f64;
    let f = formula!(|x| {
        let x = x.max(-LARGEST).min(LARGEST);
        x / (1.0 + x.abs())
    });
    // Written by hand: the two parts of the quotient's derivative cancel far out.
    cx.by_input(f, formula!(|x, g| g / (1.0 + x.abs()).square()), x)
}

/// `ln(sigmoid(x))`, without overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1000.0f32]).log_sigmoid().to_vec::<f32>(), [-1000.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, also("nn.functional.logsigmoid"))]
fn log_sigmoid(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| -(-x).softplus()), x)
}

/// `x - tanh(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tanhshrink().to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = real_line)]
fn tanhshrink(x: &Tensor) -> Result<Tensor> {
    Ok(x - x.tanh())
}

fn elu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 0.6], sample![randn([])], sample![randn([0, 2])]]
}

fn selu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), 1.2, 0.5], sample![randn([])]]
}

/// Values on both sides of the edges at -3 and 3.
fn wide_line() -> Vec<Sample> {
    vec![sample![values([-4.0f32, -2.9, -1.0, 0.5, 2.5, 3.5], [2, 3])], sample![randn([])], sample![randn([0, 2])]]
}

fn gelu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), true], sample![randn([])], sample![randn([0, 2])]]
}

fn softplus_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([6]), 2.0, 1.5], sample![randn([]), 0.5], sample![randn([0, 2])]]
}
