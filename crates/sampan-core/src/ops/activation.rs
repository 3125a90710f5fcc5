//! Smooth activation functions, with their gradients in one pass.

use super::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// 1 / sqrt(2 pi), the height of the normal density.
const DENSITY: f64 = 0.398_942_280_401_432_7;
/// Constants of the tanh form of gelu.
const GELU_CUBIC: f64 = 0.044715;

fn gelu_scale() -> f64 {
    (2.0 / PI).sqrt()
}

/// Far enough out for every smooth activation to have reached its limit, and still finite: what is multiplied with a
/// vanishing factor is held inside of it, since zero times infinity would be NaN.
const FAR: f64 = 1e4;

/// `x` inside of ±[`FAR`].
#[inline(always)]
fn near<T: sampan_kernels::Real>(x: T) -> T {
    x.max(T::of(-FAR)).min(T::of(FAR))
}

/// A smooth activation: its value by `f`, its gradient by [`Tensor::activation_grad`].
fn smooth(
    cx: &Cx,
    x: &Tensor,
    kind: &'static str,
    p: [f64; 2],
    f: impl sampan_kernels::elementwise::RealFn1,
) -> Result<Tensor> {
    let out = cx.unary(x, f)?;
    cx.grad(out, &[x], move |g| Ok(g.saved(0).activation_grad(&g.grad(), kind, p)))
}

/// The gradient of a smooth activation, `grad * f'(x)`, in one pass. `kind` names the function, `params` are its two
/// parameters.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([0.0f32]);
/// assert_eq!(x.activation_grad(&Tensor::new([4.0f32]), "silu", [0.0, 0.0]).to_vec::<f32>(), [2.0]);
/// ```
#[op(
    module = "nn.functional",
    samples = activation_grad_samples,
    peer = "lambda x, g, kind, p: torch_pull({ \
            'gelu_tanh': lambda x: F.gelu(x, approximate='tanh'), \
            'softplus': lambda x: F.softplus(x, *p), \
            'elu': lambda x: F.elu(x, p[0]) * p[1], \
            'elu_output': lambda x: torch.where(x > 0, p[0] * x, x * x / 2 + p[1] * x), \
            'celu': lambda x: F.celu(x, p[0]), \
            'log_sigmoid': F.logsigmoid}.get(kind) or getattr(torch.nn.functional, kind), x, g)"
)]
fn activation_grad(cx: &Cx, x: &Tensor, grad: &Tensor, kind: &str, params: &[f64]) -> Result<Tensor> {
    let &[a, b] = params else { bail!("needs two parameters, got {}", params.len()) };
    ensure!(x.shape() == grad.shape(), "x and grad must have one shape");
    let y = Operand::Tensor(grad.clone());
    let kind = Kind::from_name(kind)?;
    let out = match kind {
        Kind::Gelu => cx.binary(
            x,
            &y,
            real_fn!(|x, g| {
                let x = near(x);
                let cdf = T::of(0.5) * (T::ONE + (x * T::of(FRAC_1_SQRT_2)).erf());
                g * (cdf + x * T::of(DENSITY) * (T::of(-0.5) * x * x).exp())
            }),
        )?,
        Kind::GeluTanh => {
            let c = gelu_scale();
            cx.binary(
                x,
                &y,
                real_fn!([c: f64] |x, g| {
                    let (x, c, k) = (near(x), T::of(2.0 * c), T::of(GELU_CUBIC));
                    let s = (c * (x + k * x * x * x)).sigmoid();
                    let slope = c * (T::ONE + T::of(3.0) * k * x * x);
                    g * s * (T::ONE + x * (T::ONE - s) * slope)
                }),
            )?
        }
        Kind::Silu => cx.binary(
            x,
            &y,
            real_fn!(|x, g| {
                let (x, s) = (near(x), x.sigmoid());
                g * s * (T::ONE + x * (T::ONE - s))
            }),
        )?,
        Kind::Mish => cx.binary(
            x,
            &y,
            real_fn!(|x, g| {
                let x = near(x);
                let t = x.softplus().tanh();
                g * (t + x * (T::ONE - t * t) * x.sigmoid())
            }),
        )?,
        Kind::Softplus => cx.binary(
            x,
            &y,
            real_fn!([a: f64, b: f64] |x, g| {
                let z = x * T::of(a);
                g * select(z > T::of(b), T::ONE, z.sigmoid())
            }),
        )?,
        Kind::Elu => cx.binary(
            x,
            &y,
            real_fn!([a: f64, b: f64] |x, g| {
                g * T::of(b) * select(x > T::ZERO, T::ONE, T::of(a) * x.exp())
            }),
        )?,
        Kind::EluOutput => {
            cx.binary(x, &y, real_fn!([a: f64, b: f64] |y, g| g * select(y > T::ZERO, T::of(a), y + T::of(b))))?
        }
        Kind::Celu => cx.binary(
            x,
            &y,
            real_fn!([a: f64] |x, g| {
                g * select(x > T::ZERO, T::ONE, (x * T::of(1.0 / a)).exp())
            }),
        )?,
        Kind::Hardswish => cx.binary(
            x,
            &y,
            real_fn!(|x, g| {
                let inside = (T::of(2.0) * x + T::of(3.0)) * T::of(1.0 / 6.0);
                g * select(x <= T::of(-3.0), T::ZERO, select(x >= T::of(3.0), T::ONE, inside))
            }),
        )?,
        Kind::Softsign => cx.binary(x, &y, real_fn!(|x, g| g * (T::ONE + x.abs()).square().recip()))?,
        Kind::LogSigmoid => cx.binary(x, &y, real_fn!(|x, g| g * (-x).sigmoid()))?,
    };
    cx.grad(out, &[x, grad], move |g| {
        let (x, inner) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || g.grad() * inner * kind.second(x, a, b)),
            g.if_needed(1, || x.activation_grad(&g.grad(), kind.name(), [a, b])),
        ])
    })
}

/// The smooth activations whose gradient is fused.
#[derive(Clone, Copy)]
enum Kind {
    Gelu,
    GeluTanh,
    Silu,
    Mish,
    Softplus,
    Elu,
    /// From the output: the slope above zero and what is added to the output below.
    EluOutput,
    Celu,
    Hardswish,
    Softsign,
    LogSigmoid,
}

impl Kind {
    const ALL: [(Kind, &'static str); 11] = [
        (Kind::Gelu, "gelu"),
        (Kind::GeluTanh, "gelu_tanh"),
        (Kind::Silu, "silu"),
        (Kind::Mish, "mish"),
        (Kind::Softplus, "softplus"),
        (Kind::Elu, "elu"),
        (Kind::EluOutput, "elu_output"),
        (Kind::Celu, "celu"),
        (Kind::Hardswish, "hardswish"),
        (Kind::Softsign, "softsign"),
        (Kind::LogSigmoid, "log_sigmoid"),
    ];

    fn from_name(name: &str) -> Result<Kind> {
        let found = Kind::ALL.iter().find(|(_, n)| *n == name).map(|(k, _)| *k);
        found.ok_or_else(|| Error::invalid(format!("there is no activation `{name}`")))
    }

    fn name(self) -> &'static str {
        Kind::ALL[self as usize].1
    }

    /// The second derivative at `x`, in differentiable ops.
    fn second(self, x: &Tensor, a: f64, b: f64) -> Tensor {
        let bump = |z: &Tensor| {
            let s = z.sigmoid();
            &s * (1.0 - &s)
        };
        // Zero outside of (lo, hi).
        let within = |t: &Tensor, lo: f64, hi: f64| x.piecewise_grad(t, [lo, hi], [0.0, 1.0, 0.0], false);
        // The exponential is only read where x is negative; elsewhere it must not overflow.
        let decay = |z: &Tensor| (-(-z).relu()).exp();
        // Far out they all vanish, and so that they do, powers must not overflow.
        let held = matches!(self, Kind::Gelu | Kind::GeluTanh | Kind::Silu | Kind::Mish).then(|| x.clip(-FAR, FAR));
        let x = held.as_ref().unwrap_or(x);
        match self {
            Kind::Gelu => (x * x * -0.5).exp() * DENSITY * (2.0 - x * x),
            Kind::GeluTanh => {
                let (c, k) = (gelu_scale(), GELU_CUBIC);
                let t = ((x + x * x * x * k) * c).tanh();
                let slope = (x * x * (3.0 * k) + 1.0) * c;
                let around = 1.0 - &t * &t;
                let bend = x * (6.0 * k * c) - &t * &slope * &slope * 2.0;
                &around * (slope + x * bend * 0.5)
            }
            Kind::Silu => {
                let s = x.sigmoid();
                bump(x) * (2.0 + x * (1.0 - s * 2.0))
            }
            Kind::Mish => {
                let s = x.sigmoid();
                let t = x.softplus(1.0, 20.0).tanh();
                let around = 1.0 - &t * &t;
                &around * (&s * 2.0 + x * (bump(x) - &t * &s * &s * 2.0))
            }
            Kind::Softplus => within(&(bump(&(x * a)) * a), f64::NEG_INFINITY, b / a),
            Kind::Elu => within(&(decay(x) * (a * b)), f64::NEG_INFINITY, 0.0),
            Kind::EluOutput => within(&Tensor::full_like_scalar(&x.detach(), 1.0), f64::NEG_INFINITY, 0.0),
            Kind::Celu => within(&(decay(&(x / a)) / a), f64::NEG_INFINITY, 0.0),
            Kind::Hardswish => within(&(x * 0.0 + 1.0 / 3.0), -3.0, 3.0),
            Kind::Softsign => {
                let r = (x.abs() + 1.0).reciprocal();
                r.pow(3) * x.sign() * -2.0
            }
            Kind::LogSigmoid => -bump(x),
        }
    }
}

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
        let c = gelu_scale();
        smooth(
            cx,
            x,
            "gelu_tanh",
            [0.0; 2],
            real_fn!([c: f64] |x| {
                // (1 + tanh z) / 2 is the logistic function of 2z, which does not cancel.
                x.max(T::of(-FAR)) * (T::of(2.0 * c) * (x + T::of(GELU_CUBIC) * x * x * x)).sigmoid()
            }),
        )
    } else {
        let f = real_fn!(|x| T::of(0.5) * x.max(T::of(-FAR)) * (T::ONE + (x * T::of(FRAC_1_SQRT_2)).erf()));
        smooth(cx, x, "gelu", [0.0; 2], f)
    }
}

/// `x * sigmoid(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).silu().to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, also("nn.functional.swish"))]
fn silu(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    smooth(cx, x, "silu", [0.0; 2], real_fn!(|x| x.max(T::of(-FAR)) * x.sigmoid()))
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
    let f = real_fn!([beta: f64, threshold: f64] |x| {
        let z = x * T::of(beta);
        select(z > T::of(threshold), x, z.softplus() * T::of(1.0 / beta))
    });
    smooth(cx, x, "softplus", [beta, threshold], f)
}

/// `x * tanh(softplus(x))`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).mish().to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, onnx = "Mish")]
fn mish(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    smooth(cx, x, "mish", [0.0; 2], real_fn!(|x| x.max(T::of(-FAR)) * x.softplus().tanh()))
}

/// `scale * x` above zero, `scale * alpha * (e^x - 1)` below.
fn elu_like(cx: &Cx, x: &Tensor, alpha: f64, scale: f64) -> Result<Tensor> {
    let f = real_fn!([alpha: f64, scale: f64] |x| {
        T::of(scale) * select(x > T::ZERO, x, T::of(alpha) * x.expm1())
    });
    if alpha < 0.0 {
        return smooth(cx, x, "elu", [alpha, scale], f);
    }
    // With alpha >= 0 the slope follows from the result, so the input may be overwritten.
    let out = cx.unary(x, f)?;
    let below = scale * alpha;
    cx.grad_from_output(out, &[], move |g| Ok(g.output(0).activation_grad(&g.grad(), "elu_output", [scale, below])))
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
    let f = real_fn!([alpha: f64] |x| select(x > T::ZERO, x, T::of(alpha) * (x * T::of(1.0 / alpha)).expm1()));
    smooth(cx, x, "celu", [alpha, 0.0], f)
}

/// `x * min(max(x + 3, 0), 6) / 6`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-4.0f32, 4.0]).hardswish().to_vec::<f32>(), [0.0, 4.0]);
/// ```
#[op(module = "nn.functional", samples = wide_line, onnx = "HardSwish")]
fn hardswish(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let f = real_fn!(|x| x.max(T::of(-FAR)) * ((x + T::of(3.0)).max(T::ZERO).min(T::of(6.0)) * T::of(1.0 / 6.0)));
    smooth(cx, x, "hardswish", [0.0; 2], f)
}

/// `x / (1 + |x|)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, -1.0]).softsign().to_vec::<f32>(), [0.5, -0.5]);
/// ```
#[op(module = "nn.functional", samples = real_line, onnx = "Softsign")]
fn softsign(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let f = real_fn!(|x| {
        let x = x.max(T::of(-f32::MAX as f64)).min(T::of(f32::MAX as f64));
        x / (T::ONE + x.abs())
    });
    smooth(cx, x, "softsign", [0.0; 2], f)
}

/// `ln(sigmoid(x))`, without overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1000.0f32]).log_sigmoid().to_vec::<f32>(), [-1000.0]);
/// ```
#[op(module = "nn.functional", samples = real_line, also("nn.functional.logsigmoid"))]
fn log_sigmoid(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    smooth(cx, x, "log_sigmoid", [0.0; 2], real_fn!(|x| -(-x).softplus()))
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

fn activation_grad_samples() -> Vec<Sample> {
    let params = |k: Kind| match k {
        Kind::Softplus => [1.5, 2.0],
        Kind::Elu => [0.7, 1.1],
        Kind::EluOutput => [1.1, 0.7],
        Kind::Celu => [0.7, 0.0],
        _ => [0.0, 0.0],
    };
    Kind::ALL.iter().map(|&(k, name)| sample![randn([2, 3]) * 1.9, randn([2, 3]), name, params(k)]).collect()
}

fn gelu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([5]), true], sample![randn([])], sample![randn([0, 2])]]
}

fn softplus_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([6]), 2.0, 1.5], sample![randn([]), 0.5], sample![randn([0, 2])]]
}
