//! Activations: the mathematics is in `sampan-core`, a layer holds the arguments.

use super::bound::{first, op_layers};
use crate::init::Constant;
use crate::layer::{Of, is_watched, within};
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::{Error, Result, Tensor, Value, amp, dispatch, ensure, op};
use sampan_macros::class;

op_layers! {
    /// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    CELU = "celu" (#[opt(1.0)] alpha: f64) show "alpha";
    /// `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere.
    ELU = "elu" (#[opt(1.0)] alpha: f64) show "alpha";
    /// `x` times the normal distribution function of `x`; with `approximate` (`true` or `"tanh"`), by a formula in `tanh`.
    GELU = "gelu" (#[opt(false)] approximate: &Value) show "approximate";
    /// The first half of an axis times the sigmoid of the second half.
    #[class(alias(dim = axis))]
    GLU = "glu" (#[opt(-1)] axis: i64) show "axis";
    /// `x` where `|x| > threshold`, zero elsewhere.
    #[class(alias(lambd = threshold))]
    Hardshrink = "hardshrink" (#[opt(0.5)] threshold: f64) show "threshold";
    /// `x / 6 + 0.5`, kept between 0 and 1.
    Hardsigmoid = "hardsigmoid" ();
    /// `x * clip(x + 3, 0, 6) / 6`.
    Hardswish = "hardswish" ();
    /// `x` kept between `min` and `max`.
    Hardtanh = "hardtanh" (#[opt(-1.0)] min: f64, #[opt(1.0)] max: f64) show "min, max";
    /// `x` where it is positive, `negative_slope * x` elsewhere.
    LeakyReLU = "leaky_relu" (#[opt(0.01)] negative_slope: f64) show "negative_slope";
    /// `log(sigmoid(x))`.
    LogSigmoid = "log_sigmoid" ();
    /// The logarithm of the softmax along an axis.
    LogSoftmax = "log_softmax" (#[opt(-1)] axis: i64) show "axis";
    /// The largest of each group of `groups` neighbouring channels.
    Maxout = "maxout" (groups: i64, #[opt(1)] axis: i64) show "groups, axis";
    /// `x * tanh(softplus(x))`.
    Mish = "mish" ();
    /// `max(x, 0)`.
    ReLU = "relu" ();
    /// `x` kept between 0 and 6.
    ReLU6 = "relu6" ();
    /// `scale * x` where it is positive, `scale * alpha * (exp(x) - 1)` elsewhere; the defaults keep mean 0 and variance 1.
    SELU = "selu" (#[opt(1.050_700_987_355_480_5)] scale: f64, #[opt(1.673_263_242_354_377_2)] alpha: f64) show "scale, alpha";
    /// `1 / (1 + exp(-x))`.
    Sigmoid = "sigmoid" ();
    /// `x * sigmoid(x)`. `inplace` is accepted and changes nothing.
    #[class(also("nn.SiLU"))]
    Silu = "silu" (#[opt(false)] inplace as _: bool) show "inplace";
    /// Positive numbers along an axis that add up to 1.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, Softmax};
    /// let y = Softmax::with(|o| o.axis(0)).call(&Tensor::new([[1.0f32], [1.0]]))?;
    /// assert_eq!(y.to_vec::<f32>(), [0.5, 0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Softmax = "softmax" (#[opt(-1)] axis: i64) show "axis";
    /// `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x > threshold`.
    Softplus = "softplus" (#[opt(1.0)] beta: f64, #[opt(20.0)] threshold: f64) show "beta, threshold";
    /// `x` moved towards zero by `threshold`, zero where it does not go that far.
    #[class(alias(lambd = threshold))]
    Softshrink = "softshrink" (#[opt(0.5)] threshold: f64) show "threshold";
    /// `x / (1 + |x|)`.
    Softsign = "softsign" ();
    /// `x * sigmoid(x)`.
    Swish = "silu" ();
    /// The hyperbolic tangent.
    Tanh = "tanh" ();
    /// `x - tanh(x)`.
    Tanhshrink = "tanhshrink" ();
    /// `x` where it exceeds `threshold`, `value` elsewhere.
    ThresholdedReLU = "thresholded_relu" (#[opt(1.0)] threshold: f64, #[opt(0.0)] value: f64) show "threshold, value";
}

/// The softmax over channels.
#[derive(Layer)]
pub struct Softmax2D {
    base: Base,
}

#[class(module = "nn", object = layer::object)]
impl Softmax2D {
    /// The softmax over the channels of images `[n, channels, height, width]`, or of one image without the first axis.
    fn build() -> Result<Softmax2D> {
        Ok(Softmax2D { base: Base::of("Softmax2D") })
    }
}

impl Layer for Softmax2D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ensure!(matches!(x.ndim(), 3 | 4), "x must have 3 or 4 axes, got shape {:?}", x.shape());
        x.try_softmax(-3)
    }
}

impl ReLU {
    /// The activation of a sum, as residual blocks end: in one pass, if nobody watches this layer or the calls.
    pub fn call_on_sum(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let alike = x.shape() == y.shape() && x.dtype() == y.dtype() && !dispatch::listening();
        match alike && !is_watched(Some(&self.base)) && amp::leaves(&["add", "relu"]) {
            true => within(&Of(self), || {
                let op = op::find("add_relu").ok_or_else(|| Error::invalid("there is no op add_relu"))?;
                first(dispatch::dispatch(op, [x.into(), y.into()].into_iter().collect())?)
            }),
            false => self.call(&x.try_add(y)?),
        }
    }
}

/// A leaky ReLU whose negative slopes are learned.
#[derive(Layer)]
pub struct PReLU {
    base: Base,
    /// `[num_parameters]`.
    #[layer(name = "_weight")]
    pub weight: Parameter,
    init: f64,
    data_format: String,
}

#[class(module = "nn", object = layer::object)]
impl PReLU {
    /// A leaky ReLU whose negative slopes are learned: one for all, or one for each channel.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, PReLU};
    /// let y = PReLU::new().call(&Tensor::new([-4.0f32, 2.0]))?;
    /// assert_eq!(y.to_vec::<f32>(), [-1.0, 2.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1)] num_parameters: usize,
        #[opt(0.25)] init: f64,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt("NCHW")] data_format: &str,
    ) -> Result<PReLU> {
        let base = Base::new("p_re_lu");
        let weight = base.weight(&[num_parameters], &weight_attr, &Constant::new(init))?;
        Ok(PReLU { base, weight, init, data_format: data_format.into() })
    }
}

impl Layer for PReLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_prelu(&self.weight.value()?, &self.data_format)
    }
    fn extra_repr(&self) -> String {
        let (n, init, dtype) = (self.weight.numel(), self.init, self.base.dtype());
        format!("num_parameters={n}, data_format={}, init={init}, dtype={dtype}", self.data_format)
    }
}

/// A leaky ReLU with random slopes.
#[derive(Layer)]
pub struct RReLU {
    base: Base,
    lower: f64,
    upper: f64,
}

#[class(module = "nn", object = layer::object)]
impl RReLU {
    /// A leaky ReLU whose negative slopes are drawn from `[lower, upper)` for each element in training, and are the middle of
    /// the two in evaluation.
    fn build(#[opt(0.125)] lower: f64, #[opt(1.0 / 3.0)] upper: f64) -> Result<RReLU> {
        ensure!(
            0.0 <= lower && lower <= upper && upper <= 1.0,
            "0 <= lower <= upper <= 1 is needed, got lower {lower}, upper {upper}"
        );
        Ok(RReLU { base: Base::of("RReLU"), lower, upper })
    }
}

impl Layer for RReLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_rrelu(self.lower, self.upper, self.base.training())
    }
    fn extra_repr(&self) -> String {
        let training = if self.base.training() { "True" } else { "False" };
        format!("lower={}, upper={}, training={training}, dtype={}", self.lower, self.upper, self.base.dtype())
    }
}
