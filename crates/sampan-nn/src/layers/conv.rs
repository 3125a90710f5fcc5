//! Convolutions of one, two and three spatial axes, and their transposes.

use super::bound::{Bound, Setting, Shown, first, optional, sizes};
use crate::init::{Initializer, KaimingNormal, XavierUniform};
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::{DType, Error, Ints, Result, Tensor, Value, bail, ensure};
use sampan_macros::class;

/// What all six are told.
struct Plan<'a> {
    class: &'static str,
    op: &'static str,
    dims: usize,
    channels: (usize, usize),
    kernel_size: &'a [i64],
    padding: &'a Value,
    padding_mode: &'a str,
    groups: usize,
    data_format: &'a str,
    device: &'a Value,
    dtype: Option<DType>,
    weight_attr: ParamAttr,
    bias_attr: ParamAttr,
    /// Settings that go to the op as they are.
    settings: Vec<(&'static str, Value)>,
}

/// What all six are made of.
struct Parts {
    base: Base,
    weight: Parameter,
    bias: Option<Parameter>,
    op: Bound,
    /// Pads beforehand where the padding is not of zeros.
    pad: Option<Bound>,
    repr: String,
}

impl Plan<'_> {
    /// One extent for each spatial axis.
    fn kernel(&self) -> Result<Vec<usize>> {
        let list = match self.kernel_size {
            [one] => vec![*one; self.dims],
            list if list.len() == self.dims => list.to_vec(),
            list => bail!("kernel_size must be an int or a list of {}, got {list:?}", self.dims),
        };
        ensure!(list.iter().all(|k| *k > 0), "kernel_size must be positive, got {list:?}");
        Ok(list.into_iter().map(|k| k as usize).collect())
    }

    /// The padding that goes before the convolution, for the modes that it does not know itself.
    fn pad(&self) -> Result<Option<Bound>> {
        const MODES: [&str; 4] = ["zeros", "reflect", "replicate", "circular"];
        let mode = self.padding_mode;
        ensure!(MODES.contains(&mode), "padding_mode must be one of {MODES:?}, got {mode:?}");
        if mode == "zeros" {
            return Ok(None);
        }
        let Value::Int(n) = self.padding else {
            let got = self.padding.type_name();
            return Err(Error::dtype(format!("with padding_mode={mode:?} the padding must be an int, got {got}")));
        };
        let around = Value::from(vec![*n; 2 * self.dims]);
        Bound::new("pad", [("pad", around), ("mode", mode.into()), ("data_format", self.data_format.into())]).map(Some)
    }

    /// Channels and kernel, then what is not the default, as Paddle prints it.
    fn describe(&self, kernel: &[usize]) -> String {
        let setting = |name: &str| self.settings.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let axes = |name: &str| match setting(name) {
            Some(Value::Ints(v)) if v.iter().any(|&n| n != 1) => {
                let all = if let [one] = v[..] { vec![one; self.dims] } else { v.to_vec() };
                Some(format!("{name}={all:?}"))
            }
            _ => None,
        };
        let unless = |hidden: &str, name: &str, value: Option<Value>| {
            let text = value.map(|v| Shown(&v).to_string()).filter(|text| text != hidden);
            text.map(|text| format!("{name}={text}"))
        };
        let parts = [
            Some(format!("{}, {}, kernel_size={kernel:?}", self.channels.0, self.channels.1)),
            axes("stride"),
            unless("0", "padding", Some(self.padding.clone())),
            unless("zeros", "padding_mode", Some(self.padding_mode.into())),
            unless("0", "output_padding", setting("output_padding")),
            axes("dilation"),
            unless("1", "groups", Some(self.groups.into())),
            Some(format!("data_format={}", self.data_format)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn parts(mut self, transposed: bool) -> Result<Parts> {
        let (input, output) = self.channels;
        let groups = self.groups;
        ensure!(groups > 0, "groups must be positive");
        ensure!(input.is_multiple_of(groups), "in_channels {input} must be a multiple of groups {groups}");
        ensure!(output.is_multiple_of(groups), "out_channels {output} must be a multiple of groups {groups}");
        let formats = [["NCL", "NLC"], ["NCHW", "NHWC"], ["NCDHW", "NDHWC"]][self.dims - 1];
        let format = self.data_format;
        ensure!(formats.contains(&format), "data_format must be one of {formats:?}, got {format:?}");
        let kernel = self.kernel()?;
        let pad = self.pad()?;
        let repr = self.describe(&kernel);
        let padding = if pad.is_some() { Value::Int(0) } else { self.padding.clone() };
        let rest = [("padding", padding), ("groups", groups.into()), ("data_format", format.into())];
        self.settings.extend(rest);
        let ends = if transposed { [input, output / groups] } else { [output, input / groups] };
        let shape = [&ends[..], &kernel].concat();
        // Sizes beyond memory are refused where the weight is made.
        let fan = kernel.iter().fold(input as f64, |fan, &k| fan * k as f64);
        let default: &dyn Initializer =
            if transposed { &XavierUniform::new() } else { &KaimingNormal::with(|o| o.fan_in(fan)) };
        let base = Base::of(self.class).placed(self.device, self.dtype)?;
        let weight = base.weight(&shape, &self.weight_attr, default)?;
        let bias = base.bias(&[output], &self.bias_attr)?;
        Ok(Parts { base, weight, bias, op: Bound::new(self.op, self.settings)?, pad, repr })
    }
}

/// `x`, weight and bias: the first arguments of every convolution.
fn tensors(x: &Tensor, weight: &Parameter, bias: &Option<Parameter>) -> Result<[Value; 3]> {
    Ok([x.into(), weight.value()?.into(), optional(bias)?])
}

/// The op's settings, and the channels and kernel that the weight tells.
fn settings(op: &Bound, weight: &Parameter, transposed: bool) -> Vec<(&'static str, Value)> {
    let mut settings = op.settings();
    let groups =
        settings.iter().find(|(n, _)| *n == "groups").map_or(1, |(_, v)| if let Value::Int(g) = v { *g } else { 1 });
    let shape: Vec<i64> = weight.shape().iter().map(|&n| n as i64).collect();
    let (input, output) = if transposed { (shape[0], shape[1] * groups) } else { (shape[1] * groups, shape[0]) };
    settings.extend([("in_channels", input.into()), ("out_channels", output.into())]);
    settings.push(("kernel_size", shape[2..].into()));
    settings
}

macro_rules! conv_layers {
    ($(#[doc = $summary:tt] $(#[doc = $more:tt])* $name:ident = $op:tt $dims:tt $format:tt $also:tt;)*) => {$(
        #[doc = $summary]
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            /// `[out_channels, in_channels / groups, …kernel]`.
            pub weight: Parameter,
            /// `[out_channels]`.
            pub bias: Option<Parameter>,
            op: Bound,
            pad: Option<Bound>,
            repr: String,
        }
        #[class(module = "nn", object = layer::object, also($also))]
        impl $name {
            #[doc = $summary]
            $(#[doc = $more])*
            fn build(
                in_channels: usize,
                out_channels: usize,
                kernel_size: &[i64],
                #[opt(1)] stride: &[i64],
                #[opt(0)] padding: &Value,
                #[opt(1)] dilation: &[i64],
                #[opt(1)] groups: usize,
                #[opt(true)] bias: bool,
                #[opt("zeros")] padding_mode: &str,
                #[opt(None)] device: &Value,
                #[opt(None)] dtype: Option<DType>,
                #[opt(None)] weight_attr: ParamAttr,
                #[opt(None)] bias_attr: ParamAttr,
                #[opt($format)] data_format: &str,
            ) -> Result<$name> {
                let plan = Plan {
                    class: stringify!($name), op: $op, dims: $dims, channels: (in_channels, out_channels), kernel_size,
                    padding, padding_mode, groups, data_format, device, dtype, weight_attr,
                    bias_attr: if bias { bias_attr } else { false.into() },
                    settings: vec![("stride", stride.keep()), ("dilation", dilation.keep())],
                };
                let Parts { base, weight, bias, op, pad, repr } = plan.parts(false)?;
                Ok($name { base, weight, bias, op, pad, repr })
            }
        }
        impl Layer for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let padded = self.pad.as_ref().map(|pad| pad.one(&self.base, x)).transpose()?;
                let x = padded.as_ref().unwrap_or(x);
                self.op.first(&self.base, tensors(x, &self.weight, &self.bias)?)
            }
            fn settings(&self) -> Vec<(&'static str, Value)> {
                settings(&self.op, &self.weight, stringify!($name).ends_with("Transpose"))
            }
            fn extra_repr(&self) -> String {
                self.repr.clone()
            }
        }
    )*};
}

conv_layers! {
    /// A convolution over `[n, channels, length]`.
    Conv1D = "conv1d" 1 "NCL" "nn.Conv1d";
    /// A convolution over images `[n, channels, height, width]`.
    ///
    /// `padding` is a number, one for each axis, pairs, `"SAME"` (which resets the dilation to 1, as in Paddle) or
    /// `"VALID"`; `padding_mode` is `zeros`, `reflect`, `replicate` or `circular`. Weights are normal with the deviation
    /// `sqrt(2 / (in_channels * kernel))`, the bias is zero.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Conv2D, Layer};
    /// let conv = Conv2D::with(3, 8, 3, |o| o.stride(2).padding("SAME").padding_mode("zeros"));
    /// let y = conv.call(&Tensor::ones([1, 3, 9, 6], DType::Float32))?;
    /// assert_eq!(y.shape(), [1, 8, 5, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Conv2D = "conv2d" 2 "NCHW" "nn.Conv2d";
    /// A convolution over `[n, channels, depth, height, width]`.
    Conv3D = "conv3d" 3 "NCDHW" "nn.Conv3d";
}

macro_rules! conv_transpose_layers {
    ($(
        #[doc = $summary:tt]
        $(#[doc = $more:tt])*
        $name:ident = $op:tt $dims:tt $format:tt $groups:ident $dilation:ident ($($order:tt)*);
    )*) => {$(
        #[doc = $summary]
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            /// `[in_channels, out_channels / groups, …kernel]`.
            pub weight: Parameter,
            /// `[out_channels]`.
            pub bias: Option<Parameter>,
            op: Bound,
            repr: String,
        }
        #[class(module = "nn", object = layer::object)]
        impl $name {
            #[doc = $summary]
            $(#[doc = $more])*
            fn build(
                in_channels: usize,
                out_channels: usize,
                kernel_size: &[i64],
                #[opt(1)] stride: &[i64],
                #[opt(0)] padding: &Value,
                #[opt(0)] output_padding: &[i64],
                $($order)*,
                #[opt(None)] weight_attr: ParamAttr,
                #[opt(None)] bias_attr: ParamAttr,
                #[opt($format)] data_format: &str,
            ) -> Result<$name> {
                let settings = [("stride", stride), ("dilation", $dilation), ("output_padding", output_padding)];
                let plan = Plan {
                    class: stringify!($name), op: $op, dims: $dims, channels: (in_channels, out_channels), kernel_size,
                    padding, padding_mode: "zeros", groups: $groups, data_format, device: &Value::None, dtype: None,
                    weight_attr, bias_attr, settings: settings.map(|(name, list)| (name, list.keep())).into(),
                };
                let Parts { base, weight, bias, op, repr, .. } = plan.parts(true)?;
                Ok($name { base, weight, bias, op, repr })
            }

            /// The output of this size: with a stride above 1 several sizes lead to the same input.
            pub fn call_sized(&self, x: &Tensor, output_size: impl Into<Ints>) -> Result<Tensor> {
                first(self.call_all(&[x.clone(), sizes(output_size.into())])?)
            }
        }
        impl Layer for $name {
            fn input_names(&self) -> Vec<&'static str> {
                vec!["x", "output_size"]
            }
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                self.op.first(&self.base, tensors(x, &self.weight, &self.bias)?)
            }
            fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
                let [x, sizes] = inputs else { return Ok(vec![self.forward(only(inputs)?)?]) };
                let changed = [("output_size", sizes.try_to_ints()?.into()), ("output_padding", 0.into())];
                self.op.call_with(&self.base, tensors(x, &self.weight, &self.bias)?, changed)
            }
            fn settings(&self) -> Vec<(&'static str, Value)> {
                settings(&self.op, &self.weight, stringify!($name).ends_with("Transpose"))
            }
            fn extra_repr(&self) -> String {
                self.repr.clone()
            }
        }
    )*};
}

fn only(inputs: &[Tensor]) -> Result<&Tensor> {
    match inputs {
        [x] => Ok(x),
        _ => Err(Error::invalid(format!("takes x and an output size, got {} inputs", inputs.len()))),
    }
}

conv_transpose_layers! {
    /// The transpose of a convolution over `[n, channels, length]`.
    Conv1DTranspose = "conv1d_transpose" 1 "NCL" groups dilation
        (#[opt(1)] groups: usize, #[opt(1)] dilation: &[i64]);
    /// The transpose of a convolution over images: the map from its outputs' gradients to its inputs', which enlarges.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Conv2DTranspose, Layer};
    /// let up = Conv2DTranspose::with(4, 2, 3, |o| o.stride(2).padding(1));
    /// let x = Tensor::ones([1, 4, 5, 5], DType::Float32);
    /// assert_eq!(up.call(&x)?.shape(), [1, 2, 9, 9]);
    /// assert_eq!(up.call_sized(&x, [10, 10])?.shape(), [1, 2, 10, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    Conv2DTranspose = "conv2d_transpose" 2 "NCHW" groups dilation
        (#[opt(1)] dilation: &[i64], #[opt(1)] groups: usize);
    /// The transpose of a convolution over `[n, channels, depth, height, width]`.
    Conv3DTranspose = "conv3d_transpose" 3 "NCDHW" groups dilation
        (#[opt(1)] dilation: &[i64], #[opt(1)] groups: usize);
}
