//! Batch normalisation: statistics of the batch in training, running ones in evaluation.

use super::bound::{Bound, Setting, first, optional};
use super::sync_norm::{Given, SyncNorm};
use super::{Hardswish, ReLU, ReLU6};
use crate::init::Constant;
use crate::joint::{Joint, joint};
use crate::layer::{Of, is_watched, within};
use crate::{Base, Buffer, Layer, Members, ParamAttr, Parameter, layer};
use sampan_core::{DType, Error, Result, Tensor, Value, amp, ensure};
use sampan_macros::class;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every batch norm is made of.
struct Parts {
    base: Base,
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    mean: Buffer,
    variance: Buffer,
    op: Bound,
    /// The op with an activation after it.
    fused: Bound,
}

/// What every batch norm is told.
struct Plan<'a> {
    class: &'static str,
    features: usize,
    momentum: f64,
    epsilon: f64,
    weight_attr: &'a ParamAttr,
    bias_attr: &'a ParamAttr,
    data_format: &'a str,
    /// The layouts that the class knows.
    formats: &'a [&'a str],
    use_global_stats: Option<bool>,
    dtype: Option<DType>,
    /// Names of the running mean and variance.
    names: [Option<&'a str>; 2],
    /// A weight or bias that is not wanted is there all the same, frozen.
    always_affine: bool,
}

impl Plan<'_> {
    fn parts(self) -> Result<Parts> {
        let (format, formats) = (self.data_format, self.formats);
        ensure!(formats.contains(&format), "data_format must be one of {formats:?}, got {format:?}");
        // Statistics in half precision would be worth little.
        let base = Base::of(self.class).placed(&Value::None, self.dtype)?;
        let half = base.dtype() == DType::Float16;
        let base = if half { base.placed(&Value::None, Some(DType::Float32))? } else { base };
        let shape = [self.features];
        let frozen = ParamAttr::new().trainable(false);
        let given = |attr| if self.always_affine && !ParamAttr::is_wanted(attr) { &frozen } else { attr };
        let weight = base.parameter(&shape, given(self.weight_attr), false, &Constant::new(1.0))?;
        let bias = base.bias(&shape, given(self.bias_attr))?;
        let mean = base.buffer(Tensor::zeros(shape, base.dtype()), self.names[0])?;
        let variance = base.buffer(Tensor::ones(shape, base.dtype()), self.names[1])?;
        let settings = [
            ("momentum", self.momentum.into()),
            ("epsilon", self.epsilon.into()),
            ("data_format as _", format.into()),
            ("layout as data_format", if format == "NC" { "NCL" } else { format }.into()),
            ("use_global_stats", self.use_global_stats.keep()),
        ];
        let op = Bound::new("batch_norm", settings.clone())?;
        Ok(Parts { base, weight, bias, mean, variance, op, fused: Bound::new("batch_norm_activation", settings)? })
    }
}

macro_rules! batch_norms {
    ($(
        #[doc = $summary:tt]
        $(#[doc = $more:tt])*
        $name:ident [$($rank:tt),*] [$($format:tt),*] ($($stats:tt)*) $given:expr;
    )*) => {$(
        #[doc = $summary]
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            /// `[num_features]`.
            pub weight: Option<Parameter>,
            /// `[num_features]`.
            pub bias: Option<Parameter>,
            /// The running mean.
            #[layer(name = "_mean")]
            pub mean: Buffer,
            /// The running variance.
            #[layer(name = "_variance")]
            pub variance: Buffer,
            op: Bound,
            fused: Bound,
            sync: AtomicBool,
        }
        #[class(module = "nn", object = layer::object)]
        impl $name {
            #[doc = $summary]
            $(#[doc = $more])*
            fn build(
                num_features: usize,
                #[opt(0.9)] momentum: f64,
                #[opt(1e-5)] epsilon: f64,
                #[opt(None)] weight_attr: ParamAttr,
                #[opt(None)] bias_attr: ParamAttr,
                $($stats)*
            ) -> Result<$name> {
                let (data_format, use_global_stats, sync): (&str, Option<bool>, bool) = $given;
                let plan = Plan {
                    class: stringify!($name), features: num_features, momentum, epsilon, weight_attr: &weight_attr,
                    bias_attr: &bias_attr, data_format, formats: &[$($format),*], use_global_stats, dtype: None,
                    names: [None; 2], always_affine: sync,
                };
                let Parts { base, weight, bias, mean, variance, op, fused } = plan.parts()?;
                Ok($name { base, weight, bias, mean, variance, op, fused, sync: AtomicBool::new(sync) })
            }

            /// Are the statistics those of all processes?
            pub fn is_sync(&self) -> bool {
                self.sync.load(Ordering::Relaxed)
            }

            /// Calls this layer and then an activation. If that is a ReLU, ReLU6 or Hardswish and nobody watches either
            /// layer (a hook, an observer, a layer in its place) both are one pass, and what lies between them is never
            /// stored.
            pub fn call_then(&self, x: &Tensor, activation: &dyn Layer) -> Result<Tensor> {
                let apart = self.is_sync() || is_watched(self.base()) || is_watched(activation.base());
                match activation_name(activation) {
                    // In half precision the hardswish of what was rounded is another one.
                    Some(name) if !apart && (!amp::enabled() || name != "hardswish" && amp::leaves(&["batch_norm", name])) => within(&Of(self), || {
                        check_rank(x, &[$($rank),*])?;
                        let running = [&self.mean, &self.variance];
                        let tensors = arguments(x, running, [&self.weight, &self.bias])?;
                        first(self.fused.call_with(&self.base, tensors, [("activation", name.into())])?)
                    }),
                    _ => activation.call(&self.call(x)?),
                }
            }
        }
        impl Layer for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                check_rank(x, &[$($rank),*])?;
                let (running, affine) = ([&self.mean, &self.variance], [&self.weight, &self.bias]);
                match joint().filter(|_| self.is_sync() && self.base.training() && !global_stats(&self.op)) {
                    Some(joint) => synchronised(joint, &self.op, x, running, affine),
                    None => forward(&self.op, &self.base, x, running, affine),
                }
            }
            fn settings(&self) -> Vec<(&'static str, Value)> {
                let features = self.mean.tensor().numel();
                [self.op.settings(), vec![("num_features", features.into())]].concat()
            }
            fn extra_repr(&self) -> String {
                describe(&self.mean, &self.op)
            }
        }
    )*};
}

/// The name of an activation that a normalisation can include.
fn activation_name(layer: &dyn Layer) -> Option<&'static str> {
    let layer: &dyn Any = layer;
    let names = [layer.is::<ReLU>().then_some("relu"), layer.is::<ReLU6>().then_some("relu6")];
    names.into_iter().flatten().next().or(layer.is::<Hardswish>().then_some("hardswish"))
}

pub(super) fn check_rank(x: &Tensor, ranks: &[usize]) -> Result<()> {
    let wanted: Vec<String> = ranks.iter().map(usize::to_string).collect();
    let rank = x.ndim();
    ensure!(
        ranks.contains(&rank),
        "needs an input of {} axes, got {rank} (shape {:?})",
        wanted.join(" or "),
        x.shape()
    );
    Ok(())
}

fn forward(
    op: &Bound,
    base: &Base,
    x: &Tensor,
    running: [&Buffer; 2],
    affine: [&Option<Parameter>; 2],
) -> Result<Tensor> {
    first(op.call(base, arguments(x, running, affine)?)?)
}

/// Are the running statistics used even in training?
fn global_stats(op: &Bound) -> bool {
    op.settings().iter().any(|(name, value)| *name == "use_global_stats" && matches!(value, Value::Bool(true)))
}

/// By the statistics of all processes.
fn synchronised(
    joint: Arc<dyn Joint>,
    op: &Bound,
    x: &Tensor,
    running: [&Buffer; 2],
    affine: [&Option<Parameter>; 2],
) -> Result<Tensor> {
    let told = op.settings();
    let find = |name: &str| told.iter().find(|(n, _)| *n == name).map_or(Value::None, |(_, v)| v.clone());
    let number = |name: &str| match find(name) {
        Value::Float(v) => v,
        Value::Int(v) => v as f64,
        _ => 0.0,
    };
    let last = matches!(find("data_format"), Value::Str(f) if f.len() > 2 && f.ends_with('C'));
    let norm = SyncNorm { joint, epsilon: number("epsilon"), momentum: number("momentum"), last };
    let [weight, bias] = affine.map(|p| p.as_ref().map(Parameter::value).transpose());
    let (weight, bias) = (weight?, bias?);
    let given = Given { running: running.map(Buffer::tensor), affine: [weight.as_ref(), bias.as_ref()] };
    norm.run(x, given)
}

fn arguments(x: &Tensor, running: [&Buffer; 2], affine: [&Option<Parameter>; 2]) -> Result<[Value; 5]> {
    // Whoever thaws all members of a layer thaws these too; they are counted all the same, not trained.
    let counted = |t: Tensor| if t.stop_gradient() { t } else { t.detach() };
    let [mean, variance] = running.map(|b| Value::from(counted(b.tensor())));
    Ok([x.into(), mean, variance, optional(affine[0])?, optional(affine[1])?])
}

fn describe(mean: &Buffer, op: &Bound) -> String {
    format!("num_features={}, {}", mean.tensor().numel(), op.describe("momentum, epsilon, data_format?"))
}

batch_norms! {
    /// Normalises each channel of `[n, channels]` or `[n, channels, length]` over the batch.
    BatchNorm1D [2, 3] ["NC", "NCL", "NLC", "NCHW", "NHWC"]
        (#[opt("NCL")] data_format: &str, #[opt(None)] use_global_stats: Option<bool>)
        (data_format, use_global_stats, false);
    /// Normalises each channel of `[n, channels, height, width]` over the batch.
    ///
    /// In training by the mean and variance of the batch, which also move the running ones: `momentum` is the share of
    /// the old that is kept. In evaluation, or with `use_global_stats`, by the running ones.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{BatchNorm2D, Layer};
    /// let bn = BatchNorm2D::new(1);
    /// bn.call(&Tensor::new([[[[1.0f32]]], [[[3.0]]]]))?;
    /// assert!((bn.mean.tensor().to_f64() - 0.2).abs() < 1e-6);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    BatchNorm2D [4] ["NCHW", "NHWC"]
        (#[opt("NCHW")] data_format: &str, #[opt(None)] use_global_stats: Option<bool>)
        (data_format, use_global_stats, false);
    /// Normalises each channel of `[n, channels, depth, height, width]` over the batch.
    BatchNorm3D [5] ["NCDHW", "NDHWC", "NCHW", "NHWC"]
        (#[opt("NCDHW")] data_format: &str, #[opt(None)] use_global_stats: Option<bool>)
        (data_format, use_global_stats, false);
    /// Batch normalisation whose statistics are those of all processes; with one process it is [`BatchNorm2D`] for any
    /// number of axes.
    SyncBatchNorm [2, 3, 4, 5] ["NCHW", "NHWC", "NCDHW", "NDHWC", "NC", "NCL", "NLC"]
        (#[opt("NCHW")] data_format: &str) (data_format, None, true);
}

impl SyncBatchNorm {
    /// Makes every [`BatchNorm1D`], [`BatchNorm2D`] and [`BatchNorm3D`] inside a layer take its statistics from all
    /// processes, as [`SyncBatchNorm`] does. Parameters, statistics and names stay as they are.
    ///
    /// ```
    /// use sampan_nn::{BatchNorm2D, Conv2D, Sequential, SyncBatchNorm};
    /// let net = Sequential::new().push(Conv2D::new(3, 4, 3)).push(BatchNorm2D::new(4));
    /// let net = SyncBatchNorm::convert_sync_batchnorm(net);
    /// assert!(net.get::<BatchNorm2D>(1).unwrap().is_sync());
    /// ```
    pub fn convert_sync_batchnorm<L: Members>(layer: L) -> L {
        fn sync(layer: &dyn Any) -> Option<&AtomicBool> {
            layer
                .downcast_ref::<BatchNorm1D>()
                .map(|l| &l.sync)
                .or_else(|| layer.downcast_ref::<BatchNorm2D>().map(|l| &l.sync))
                .or_else(|| layer.downcast_ref::<BatchNorm3D>().map(|l| &l.sync))
        }
        layer.apply(&mut |_, layer| {
            if let Some(flag) = sync(layer) {
                flag.store(true, Ordering::Relaxed);
            }
        });
        layer
    }
}

/// Batch normalisation as Paddle 1 had it, with an activation.
#[derive(Layer)]
pub struct BatchNorm {
    base: Base,
    /// `[num_channels]`.
    pub weight: Option<Parameter>,
    /// `[num_channels]`.
    pub bias: Option<Parameter>,
    /// The running mean.
    #[layer(name = "_mean")]
    pub mean: Buffer,
    /// The running variance.
    #[layer(name = "_variance")]
    pub variance: Buffer,
    op: Bound,
    act: Option<Bound>,
}

#[class(module = "nn", object = layer::object)]
impl BatchNorm {
    /// Batch normalisation as Paddle 1 had it: any number of axes, an activation `act` after it (the name of an op or of
    /// Paddle's kernel, such as `relu` or `hard_swish`), evaluation from the start with `is_test`, batch statistics even in evaluation with
    /// `trainable_statistics`. `in_place` and `do_model_average_for_mean_and_var` are accepted and change nothing.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{BatchNorm, Layer};
    /// let bn = BatchNorm::with(1, |o| o.act("relu"));
    /// assert_eq!(bn.call(&Tensor::new([[1.0f32], [3.0]]))?.to_vec::<f32>()[0], 0.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        num_channels: usize,
        #[opt(None)] act: Option<&str>,
        #[opt(false)] is_test: bool,
        #[opt(0.9)] momentum: f64,
        #[opt(1e-5)] epsilon: f64,
        #[opt(None)] param_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
        #[opt(DType::Float32)] dtype: DType,
        #[opt("NCHW")] data_layout: &str,
        #[opt(false)] in_place: bool,
        #[opt(None)] moving_mean_name: Option<&str>,
        #[opt(None)] moving_variance_name: Option<&str>,
        #[opt(true)] do_model_average_for_mean_and_var: bool,
        #[opt(false)] use_global_stats: bool,
        #[opt(false)] trainable_statistics: bool,
    ) -> Result<BatchNorm> {
        let _ = (in_place, do_model_average_for_mean_and_var);
        let plan = Plan {
            class: "BatchNorm",
            features: num_channels,
            momentum,
            epsilon,
            weight_attr: &param_attr,
            bias_attr: &bias_attr,
            data_format: data_layout,
            formats: &["NCHW", "NHWC"],
            use_global_stats: (use_global_stats || trainable_statistics).then_some(use_global_stats),
            dtype: Some(dtype),
            names: [moving_mean_name, moving_variance_name],
            always_affine: false,
        };
        let Parts { base, weight, bias, mean, variance, op, .. } = plan.parts()?;
        base.set_training(!is_test);
        let act = act.map(activation).transpose()?;
        Ok(BatchNorm { base, weight, bias, mean, variance, op, act })
    }
}

/// An activation by the name of an op, or by that of Paddle's kernel with the settings it has there.
fn activation(name: &str) -> Result<Bound> {
    let (op, settings): (&str, Vec<(&'static str, Value)>) = match name {
        "swish" => ("silu", vec![]),
        "hard_swish" => ("hardswish", vec![]),
        "hard_sigmoid" => ("hardsigmoid", vec![("slope", 0.2.into()), ("offset", 0.5.into())]),
        "hard_shrink" => ("hardshrink", vec![]),
        "tanh_shrink" => ("tanhshrink", vec![]),
        "logsigmoid" => ("log_sigmoid", vec![]),
        "leaky_relu" => ("leaky_relu", vec![("negative_slope", 0.02.into())]),
        "brelu" => ("clip", vec![("min", 0.0.into()), ("max", 24.0.into())]),
        other => (other, vec![]),
    };
    Bound::new(op, settings).map_err(|_| {
        Error::invalid(format!("act {name:?} is unknown")).hint("it is the name of an op: \"relu\", \"hard_swish\" …")
    })
}

impl Layer for BatchNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = forward(&self.op, &self.base, x, [&self.mean, &self.variance], [&self.weight, &self.bias])?;
        self.act.as_ref().map_or(Ok(y.clone()), |act| act.one(&self.base, &y))
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        [self.op.settings(), vec![("num_channels", self.mean.tensor().numel().into())]].concat()
    }
    fn extra_repr(&self) -> String {
        describe(&self.mean, &self.op)
    }
}
