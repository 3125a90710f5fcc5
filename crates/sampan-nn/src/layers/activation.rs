//! Activations: the mathematics is in `sampan-core`, a layer holds the arguments.

use crate::init::Constant;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::{Result, Tensor, Value, ensure};
use sampan_macros::class;

/// Layers without parameters: documentation, name, prefix of the full name, arguments as `build` takes them, the op. What
/// follows the arguments goes into `#[class]`.
macro_rules! activations {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $prefix:literal ($($(#[$presence:meta])? $arg:ident: $ty:ident),*)
        $([$($class:tt)*])? |$x:ident| $body:expr;
    )*) => {$(
        $(#[doc = $doc])+
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            $($arg: $ty,)*
        }

        #[class(module = "nn", object = layer::object, $($($class)*)?)]
        impl $name {
            $(#[doc = $doc])+
            fn build($($(#[$presence])? $arg: $ty),*) -> Result<$name> {
                Ok($name { base: Base::new($prefix), $($arg),* })
            }
        }

        impl Layer for $name {
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                $(let $arg = self.$arg;)*
                $body
            }
            fn extra_repr(&self) -> String {
                let parts: Vec<String> = vec![$(format!("{}={:?}", stringify!($arg), self.$arg)),*];
                parts.join(", ")
            }
        }
    )*};
}

activations! {
    /// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    CELU "celu" (#[opt(1.0)] alpha: f64) |x| x.try_celu(alpha);
    /// `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere.
    ELU "elu" (#[opt(1.0)] alpha: f64) |x| x.try_elu(alpha);
    /// The first half of an axis times the sigmoid of the second half.
    GLU "glu" (#[opt(-1)] axis: i64) [alias(dim = axis)] |x| x.try_glu(axis);
    /// `x` where `|x| > threshold`, zero elsewhere.
    Hardshrink "hardshrink" (#[opt(0.5)] threshold: f64) [alias(lambd = threshold)] |x| x.try_hardshrink(threshold);
    /// `x / 6 + 0.5`, kept between 0 and 1.
    Hardsigmoid "hardsigmoid" () |x| x.try_hardsigmoid(0.1666667, 0.5);
    /// `x * clip(x + 3, 0, 6) / 6`.
    Hardswish "hardswish" () |x| x.try_hardswish();
    /// `x` kept between `min` and `max`.
    Hardtanh "hardtanh" (#[opt(-1.0)] min: f64, #[opt(1.0)] max: f64) |x| x.try_hardtanh(min, max);
    /// `x` where it is positive, `negative_slope * x` elsewhere.
    LeakyReLU "leaky_re_lu" (#[opt(0.01)] negative_slope: f64) |x| x.try_leaky_relu(negative_slope);
    /// `log(sigmoid(x))`.
    LogSigmoid "log_sigmoid" () |x| x.try_log_sigmoid();
    /// The logarithm of the softmax along an axis.
    LogSoftmax "log_softmax" (#[opt(-1)] axis: i64) |x| x.try_log_softmax(axis);
    /// The largest of each group of `groups` neighbouring channels.
    Maxout "maxout" (groups: i64, #[opt(1)] axis: i64) |x| x.try_maxout(groups, axis);
    /// `x * tanh(softplus(x))`.
    Mish "mish" () |x| x.try_mish();
    /// `max(x, 0)`.
    ReLU "re_lu" () |x| x.try_relu();
    /// `x` kept between 0 and 6.
    ReLU6 "re_lu6" () |x| x.try_relu6();
    /// `scale * x` where it is positive, `scale * alpha * (exp(x) - 1)` elsewhere; the defaults keep mean 0 and variance 1.
    SELU "selu" (#[opt(1.050_700_987_355_480_5)] scale: f64, #[opt(1.673_263_242_354_377_2)] alpha: f64)
        |x| x.try_selu(scale, alpha);
    /// `1 / (1 + exp(-x))`.
    Sigmoid "sigmoid" () |x| x.try_sigmoid();
    /// `x * sigmoid(x)`. `inplace` is accepted and changes nothing: an activation that trains needs its input again.
    Silu "silu" (#[opt(false)] inplace: bool) [also("nn.SiLU")] |x| {
        let _ = inplace;
        x.try_silu()
    };
    /// Positive numbers along an axis that add up to 1.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, Softmax};
    /// let y = Softmax::with(|o| o.axis(0)).call(&Tensor::new([[1.0f32], [1.0]]))?;
    /// assert_eq!(y.to_vec::<f32>(), [0.5, 0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Softmax "softmax" (#[opt(-1)] axis: i64) |x| x.try_softmax(axis);
    /// The softmax over the channels of images `[n, channels, height, width]` or of one image without the first axis.
    Softmax2D "softmax2d" () |x| {
        ensure!(matches!(x.ndim(), 3 | 4), "x must have 3 or 4 axes, got shape {:?}", x.shape());
        x.try_softmax(-3)
    };
    /// `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x > threshold`.
    Softplus "softplus" (#[opt(1.0)] beta: f64, #[opt(20.0)] threshold: f64) |x| x.try_softplus(beta, threshold);
    /// `x` moved towards zero by `threshold`, zero where it does not go that far.
    Softshrink "softshrink" (#[opt(0.5)] threshold: f64) [alias(lambd = threshold)] |x| x.try_softshrink(threshold);
    /// `x / (1 + |x|)`.
    Softsign "softsign" () |x| x.try_softsign();
    /// `x * sigmoid(x)`.
    Swish "swish" () |x| x.try_silu();
    /// The hyperbolic tangent.
    Tanh "tanh" () |x| x.try_tanh();
    /// `x - tanh(x)`.
    Tanhshrink "tanhshrink" () |x| x.try_tanhshrink();
    /// `x` where it exceeds `threshold`, `value` elsewhere.
    ThresholdedReLU "thresholded_re_lu" (#[opt(1.0)] threshold: f64, #[opt(0.0)] value: f64)
        |x| x.try_thresholded_relu(threshold, value);
}

/// `x` times the normal distribution function of `x`.
#[derive(Layer)]
pub struct GELU {
    base: Base,
    approximate: Value,
}

#[class(module = "nn", object = layer::object)]
impl GELU {
    /// `x` times the normal distribution function of `x`; with `approximate` (`true` or `"tanh"`), by a formula in `tanh`.
    fn build(#[opt(false)] approximate: &Value) -> Result<GELU> {
        Ok(GELU { base: Base::new("gelu"), approximate: approximate.clone() })
    }
}

impl Layer for GELU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_gelu(self.approximate.clone())
    }
    fn extra_repr(&self) -> String {
        format!("approximate={:?}", self.approximate)
    }
}

/// A leaky ReLU whose negative slopes are learned.
#[derive(Layer)]
pub struct PReLU {
    base: Base,
    /// `[num_parameters]`.
    #[layer(name = "_weight")]
    pub weight: Parameter,
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
        Ok(PReLU { base, weight, data_format: data_format.into() })
    }
}

impl Layer for PReLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_prelu(&self.weight.value()?, &self.data_format)
    }
    fn extra_repr(&self) -> String {
        format!("num_parameters={}", self.weight.numel())
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
    /// A leaky ReLU whose negative slopes are drawn from `[lower, upper)` for each element while it trains, and are the
    /// middle of the two while it evaluates.
    fn build(#[opt(0.125)] lower: f64, #[opt(1.0 / 3.0)] upper: f64) -> Result<RReLU> {
        ensure!(
            (0.0..=1.0).contains(&lower) && lower <= upper && upper <= 1.0,
            "0 <= lower <= upper <= 1 is needed, got lower {lower}, upper {upper}"
        );
        Ok(RReLU { base: Base::new("r_re_lu"), lower, upper })
    }
}

impl Layer for RReLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_rrelu(self.lower, self.upper, self.base.training())
    }
    fn extra_repr(&self) -> String {
        format!("lower={}, upper={}", self.lower, self.upper)
    }
}
