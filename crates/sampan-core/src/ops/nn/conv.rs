//! Convolutions and transposed convolutions over one, two or three spatial axes.
//!
//! All come down to three primitives over the same geometry: the forward, its transpose by the data and its transpose by
//! the weight. The gradient of each is made of the other two, so gradients of every order exist.

use crate::gpu;
use crate::ops::prelude::*;
use crate::ops::windows::{
    Padding, Sizes, channels_last, lifted, per_axis, spatial, to_channels_first, to_channels_last,
};
use sampan_cuda::dnn::Direction;
use sampan_kernels::conv::{self, ConvShape};

/// The geometry of a convolution, without sizes of batch and channels.
#[derive(Clone)]
struct Geometry {
    stride: Sizes,
    pad: Sizes,
    dilation: Sizes,
    groups: i64,
}

impl Geometry {
    /// Reads the arguments of a primitive.
    fn new(dims: usize, stride: &[i64], pad: &[i64], dilation: &[i64], groups: i64) -> Result<Geometry> {
        ensure!((1..=3).contains(&dims), "one to three spatial axes are needed, got {dims}");
        ensure!(groups > 0, "groups must be at least 1, got {groups}");
        Ok(Geometry {
            stride: per_axis("stride", stride, dims, 1)?,
            pad: per_axis("pad", pad, dims, 0)?,
            dilation: per_axis("dilation", dilation, dims, 1)?,
            groups,
        })
    }

    /// The kernel's description for an input, a weight and an output of these shapes.
    fn shape(&self, x: &[usize], w: &[usize], y: &[usize]) -> Result<ConvShape> {
        let groups = self.groups as usize;
        let rank = x.len();
        ensure!(rank == w.len() && rank == y.len(), "ranks {rank}, {} and {} differ", w.len(), y.len());
        let fits = x[0] == y[0] && x[1] == w[1] * groups && w[0] == y[1] && w[0].is_multiple_of(groups);
        ensure!(fits, "input {x:?}, weight {w:?} and output {y:?} with {groups} groups do not belong together");
        ensure!(w[2..].iter().all(|&k| k > 0), "the kernel has no elements: {w:?}");
        for a in 0..rank - 2 {
            let reach = (y[a + 2] as i128 - 1) * self.stride[a] as i128;
            ensure!(reach < x[a + 2] as i128 + (1 << 32), "the output {y:?} is too large for the input {x:?}");
        }
        let lift = |s: &[usize]| conv::lift(&s[2..], 1);
        Ok(ConvShape {
            batch: x[0],
            in_channels: x[1],
            out_channels: w[0],
            groups,
            input: lift(x),
            kernel: lift(w),
            output: lift(y),
            stride: lifted(&self.stride, 1),
            dilation: lifted(&self.dilation, 1),
            pad_begin: lifted(&self.pad, 0),
        })
    }

    /// The same for a GPU.
    fn on_gpu<'a>(
        &'a self,
        direction: Direction,
        input: &'a [usize],
        weight: &'a [usize],
        output: &'a [usize],
    ) -> gpu::Convolution<'a> {
        // Groups follow from the channels of input and weight.
        let Geometry { stride, pad, dilation, .. } = self;
        gpu::Convolution { direction, input, weight, output, pad, stride, dilation }
    }

    fn forward(&self, x: &Tensor, w: &Tensor, output: &[i64]) -> Tensor {
        x.conv_forward(w, None, &*self.stride, &*self.pad, &*self.dilation, self.groups, output)
    }

    fn backward_data(&self, w: &Tensor, dy: &Tensor, input: &[i64]) -> Tensor {
        dy.conv_backward_data(w, None, &*self.stride, &*self.pad, &*self.dilation, self.groups, input)
    }

    fn backward_weight(&self, x: &Tensor, dy: &Tensor, kernel: &[i64]) -> Tensor {
        dy.conv_backward_weight(x, &*self.stride, &*self.pad, &*self.dilation, self.groups, kernel)
    }
}

/// The float that all operands of a primitive share.
fn shared_float(a: &Tensor, b: &Tensor, bias: Option<&Tensor>) -> Result<DType> {
    let dtype = a.dtype();
    let same = b.dtype() == dtype && bias.is_none_or(|b| b.dtype() == dtype);
    if !dtype.is_float() || !same {
        return Err(Error::dtype("all operands must be floats of one dtype"));
    }
    Ok(dtype)
}

/// What users give, brought to one float dtype; integers cannot be convolved.
fn unify(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<(Tensor, Tensor, Option<Tensor>)> {
    let dtype = promote_tensors(x, weight);
    for (name, t) in [("x", Some(x)), ("weight", Some(weight)), ("bias", bias)] {
        if let Some(t) = t.filter(|t| !t.dtype().is_float()) {
            let message = format!("{name} must be a float tensor, got {}", t.dtype());
            return Err(Error::dtype(message).hint("cast(\"float32\") first"));
        }
    }
    let cast = |t: &Tensor| if t.dtype() == dtype { Ok(t.clone()) } else { t.try_cast(dtype) };
    Ok((cast(x)?, cast(weight)?, bias.map(cast).transpose()?))
}

fn full_shape(batch: usize, channels: usize, extents: &[i64]) -> Result<Shape> {
    let mut shape = Shape::from_slice(&[batch, channels]);
    shape.extend(crate::ops::shape::checked_shape(extents)?);
    Ok(shape)
}

/// The gradient of a bias that was added to each channel.
fn bias_grad(g: &Tensor) -> Tensor {
    g.sum((0..g.ndim() as i64).filter(|&a| a != 1).collect::<Vec<_>>())
}

/// A bias has one number for each channel.
fn check_bias(bias: Option<&Tensor>, channels: usize) -> Result<()> {
    match bias {
        Some(b) if b.shape() != [channels] => {
            Err(Error::invalid(format!("bias must have the shape [{channels}], one element an output channel")))
        }
        _ => Ok(()),
    }
}

/// The images that a convolution makes of two operands, and a bias for each channel. On a GPU they may lie with the channels side
/// by side; if that refuses, `cpu` fills rows.
fn images(
    cx: &Cx,
    on_gpu: &gpu::Convolution,
    operands: [&Tensor; 2],
    bias: Option<&Tensor>,
    shape: &[usize],
    dtype: DType,
    cpu: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    if let Some(gpu) = cx.gpu()? {
        let out = cx.out_as(on_gpu.layout(dtype), dtype)?;
        if gpu::convolve(gpu, on_gpu, operands, &out)? && gpu::add_along(gpu, &out, bias, 1)? {
            return Ok(out);
        }
    }
    let out = cx.out(shape, dtype)?;
    cx.cpu(|| cpu(&out))?;
    Ok(out)
}

/// Convolution of `[batch, in, …]` with `[out, in / groups, …]` to the spatial extents `output`; `pad` is the padding
/// before each axis. `conv1d`, `conv2d` and `conv3d` come down to it.
#[op(internal, module = "nn.functional", samples = forward_samples, peer = "torch_conv", work = crate::ops::work::conv, flops = crate::ops::work::conv_flops)]
fn conv_forward(
    cx: &Cx,
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[default(1)] stride: &[i64],
    #[default(0)] pad: &[i64],
    #[default(1)] dilation: &[i64],
    #[default(1)] groups: i64,
    output: &[i64],
) -> Result<Tensor> {
    ensure!(x.ndim() >= 3 && x.ndim() == weight.ndim(), "x and weight must have the same rank, at least 3");
    let geometry = Geometry::new(x.ndim() - 2, stride, pad, dilation, groups)?;
    let dtype = shared_float(x, weight, bias)?;
    let out_shape = full_shape(x.shape()[0], weight.shape()[0], output)?;
    let s = geometry.shape(x.shape(), weight.shape(), &out_shape)?;
    check_bias(bias, s.out_channels)?;
    let on_gpu = geometry.on_gpu(Direction::Forward, x.shape(), weight.shape(), &out_shape);
    let out = images(cx, &on_gpu, [x, weight], bias, &out_shape, dtype, |out| {
        let (x, w, b) = (x.in_rows()?, weight.in_rows()?, bias.map(Tensor::in_rows).transpose()?);
        let (x, w, b) = (x.values(), w.values(), b.as_ref().map(|b| b.values()));
        conv::conv_forward(&s, x.slice(), w.slice(), b.as_ref().map(|b| b.slice()), out.values_mut().slice());
        Ok(())
    })?;
    let has_bias = bias.is_some();
    cx.grad(out, &[x, weight], move |g| {
        let (x, w) = (g.saved(0), g.saved(1));
        let mut grads = vec![
            g.if_needed(0, || geometry.backward_data(w, &g.grad(), &spatial(x))),
            g.if_needed(1, || geometry.backward_weight(x, &g.grad(), &spatial(w))),
        ];
        if has_bias {
            grads.push(g.if_needed(2, || bias_grad(&g.grad())));
        }
        Ok(grads)
    })
}

/// The transpose of `conv_forward` by its data, to the spatial extents `input`: its gradient, and transposed convolution.
#[op(
    internal,
    module = "nn.functional",
    samples = data_samples,
    peer = "lambda y, w, b, s, p, d, g, n: torch_pull( \
            lambda x: torch_conv(x, w, None, s, p, d, g, y.shape[2:]), \
            torch.zeros(len(y), w.shape[1] * g, *np.atleast_1d(n)), \
            y) + (0 if b is None else b.reshape(-1, *[1] * (y.ndim - 2)))",
    work = crate::ops::work::conv_data
)]
fn conv_backward_data(
    cx: &Cx,
    y: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[default(1)] stride: &[i64],
    #[default(0)] pad: &[i64],
    #[default(1)] dilation: &[i64],
    #[default(1)] groups: i64,
    input: &[i64],
) -> Result<Tensor> {
    ensure!(y.ndim() >= 3 && y.ndim() == weight.ndim(), "y and weight must have the same rank, at least 3");
    let geometry = Geometry::new(y.ndim() - 2, stride, pad, dilation, groups)?;
    let dtype = shared_float(y, weight, bias)?;
    let out_shape = full_shape(y.shape()[0], weight.shape()[1] * groups as usize, input)?;
    let s = geometry.shape(&out_shape, weight.shape(), y.shape())?;
    check_bias(bias, s.in_channels)?;
    let on_gpu = geometry.on_gpu(Direction::ToData, &out_shape, weight.shape(), y.shape());
    let out = images(cx, &on_gpu, [weight, y], bias, &out_shape, dtype, |out| {
        let (y, w, b) = (y.contiguous(), weight.contiguous(), bias.map(Tensor::contiguous));
        let (y, w, mut out) = (y.values(), w.values(), out.values_mut());
        conv::conv_backward_data(&s, w.slice(), y.slice(), out.slice());
        if let Some(b) = b {
            conv::add_bias(&s, b.values().slice(), out.slice());
        }
        Ok(())
    })?;
    let has_bias = bias.is_some();
    cx.grad(out, &[y, weight], move |g| {
        let (y, w) = (g.saved(0), g.saved(1));
        let mut grads = vec![
            g.if_needed(0, || geometry.forward(&g.grad(), w, &spatial(y))),
            g.if_needed(1, || geometry.backward_weight(&g.grad(), y, &spatial(w))),
        ];
        if has_bias {
            grads.push(g.if_needed(2, || bias_grad(&g.grad())));
        }
        Ok(grads)
    })
}

/// The transpose of `conv_forward` by its weight, whose spatial extents are `kernel`: its gradient.
#[op(
    internal,
    module = "nn.functional",
    samples = weight_samples,
    peer = "lambda y, x, s, p, d, g, n: torch_pull( \
            lambda w: torch_conv(x, w, None, s, p, d, g, y.shape[2:]), \
            torch.zeros(y.shape[1], x.shape[1] // g, *np.atleast_1d(n)), y)",
    work = crate::ops::work::conv_weight
)]
fn conv_backward_weight(
    cx: &Cx,
    y: &Tensor,
    x: &Tensor,
    #[default(1)] stride: &[i64],
    #[default(0)] pad: &[i64],
    #[default(1)] dilation: &[i64],
    #[default(1)] groups: i64,
    kernel: &[i64],
) -> Result<Tensor> {
    ensure!(y.ndim() >= 3 && y.ndim() == x.ndim(), "y and x must have the same rank, at least 3");
    let geometry = Geometry::new(y.ndim() - 2, stride, pad, dilation, groups)?;
    let dtype = shared_float(x, y, None)?;
    let out_shape = full_shape(y.shape()[1], x.shape()[1] / groups as usize, kernel)?;
    let s = geometry.shape(x.shape(), &out_shape, y.shape())?;
    let out = cx.out(&out_shape, dtype)?;
    cx.run(
        || {
            let (y, x) = (y.contiguous(), x.contiguous());
            conv::conv_backward_weight(&s, x.values().slice(), y.values().slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let c = geometry.on_gpu(Direction::ToWeight, x.shape(), &out_shape, y.shape());
            gpu::convolve(gpu, &c, [x, y], &out)
        },
    )?;
    cx.grad(out, &[y, x], move |g| {
        let (y, x) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || geometry.forward(x, &g.grad(), &spatial(y))),
            g.if_needed(1, || geometry.backward_data(&g.grad(), y, &spatial(x))),
        ])
    })
}

/// The arguments of a convolution as users give them.
struct Options<'a> {
    stride: &'a [i64],
    padding: &'a Value,
    dilation: &'a [i64],
    groups: i64,
    data_format: &'a str,
}

/// Convolution over `dims` axes in any layout.
fn convolve(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, dims: usize, o: Options) -> Result<Tensor> {
    let last = channels_last(x, o.data_format, dims)?;
    ensure!(weight.ndim() == dims + 2, "weight must have {} axes [out, in / groups, kernel…]", dims + 2);
    ensure!(o.groups > 0, "groups must be at least 1, got {}", o.groups);
    let (x, weight, bias) = unify(x, weight, bias)?;
    let x = to_channels_first(&x, last)?;
    let (groups, channels) = (o.groups as usize, x.shape()[1]);
    let (out_channels, expected) = (weight.shape()[0], weight.shape()[1] * groups);
    if channels != expected {
        let message = if groups == 1 {
            format!("x has {channels} channels, weight takes {expected}")
        } else {
            format!("x has {channels} channels, weight takes {} × {groups} groups = {expected}", weight.shape()[1])
        };
        let hint = if last || x.shape()[dims + 1] != expected {
            format!("set in_channels={channels}, or check groups and data_format=\"{}\"", o.data_format)
        } else {
            "the last axis has that many: is data_format channels-last?".into()
        };
        return Err(Error::invalid(message).hint(hint));
    }
    ensure!(
        out_channels.is_multiple_of(groups),
        "weight has {out_channels} filters, which {groups} groups do not divide"
    );
    check_bias(bias.as_ref(), out_channels)?;
    let stride = per_axis("stride", o.stride, dims, 1)?;
    let (padding, dilation) = padding_and_dilation(&o, dims, last)?;
    let input = &x.shape()[2..];
    let window: Sizes = (0..dims).map(|a| dilation[a] * (weight.shape()[a + 2] as i64 - 1) + 1).collect();
    let pads = padding.resolve(input, &window, &stride);
    let mut output = Sizes::new();
    for a in 0..dims {
        let padded = input[a] as i64 + pads[a][0] + pads[a][1];
        if weight.shape()[a + 2] == 0 || padded < window[a] {
            let message =
                format!("the kernel spans {} elements of spatial axis {a}, which has {padded} with padding", window[a]);
            return Err(
                Error::invalid(message).hint("use a larger input, more padding, or a smaller kernel or dilation")
            );
        }
        output.push((padded - window[a]) / stride[a] + 1);
    }
    let pad: Sizes = pads.iter().map(|p| p[0]).collect();
    let y = x.try_conv_forward(&weight, bias.as_ref(), stride, pad, dilation, o.groups, output)?;
    to_channels_last(y, last)
}

/// Padding and dilation as they are used: `"SAME"` resets the dilation, as in Paddle.
fn padding_and_dilation(o: &Options, dims: usize, last: bool) -> Result<(Padding, Sizes)> {
    let padding = Padding::read(o.padding, dims, last)?;
    let dilation = per_axis("dilation", o.dilation, dims, 1)?;
    let dilation = if matches!(padding, Padding::Same) { Sizes::from_elem(1, dims) } else { dilation };
    Ok((padding, dilation))
}

/// Transposed convolution over `dims` axes in any layout.
fn convolve_transposed(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    dims: usize,
    output_padding: &[i64],
    output_size: Option<&[i64]>,
    o: Options,
) -> Result<Tensor> {
    let last = channels_last(x, o.data_format, dims)?;
    ensure!(weight.ndim() == dims + 2, "weight must have {} axes [in, out / groups, kernel…]", dims + 2);
    ensure!(o.groups > 0, "groups must be at least 1, got {}", o.groups);
    let (x, weight, bias) = unify(x, weight, bias)?;
    let x = to_channels_first(&x, last)?;
    let (groups, channels, expected) = (o.groups as usize, x.shape()[1], weight.shape()[0]);
    if channels != expected {
        let hint = format!("set in_channels={channels}, or check data_format=\"{}\"", o.data_format);
        return Err(Error::invalid(format!("x has {channels} channels, weight takes {expected}")).hint(hint));
    }
    ensure!(channels.is_multiple_of(groups), "x has {channels} channels, which {groups} groups do not divide");
    let stride = per_axis("stride", o.stride, dims, 1)?;
    let (padding, dilation) = padding_and_dilation(&o, dims, last)?;
    check_bias(bias.as_ref(), weight.shape()[1] * groups)?;
    let extra = per_axis("output_padding", output_padding, dims, 0)?;
    let sizes = output_size.map(|s| per_axis("output_size", s, dims, 0)).transpose()?;
    if sizes.is_some() && extra.iter().any(|&e| e != 0) {
        bail!("output_padding and output_size exclude each other");
    }
    let kernel = spatial(&weight);
    ensure!(kernel.iter().all(|&k| k > 0), "the kernel has no elements");
    let window: Sizes = (0..dims).map(|a| dilation[a] * (kernel[a] - 1) + 1).collect();
    let pads = padding.resolve(&x.shape()[2..], &window, &stride);
    let mut output = Sizes::new();
    for a in 0..dims {
        ensure!(
            extra[a] == 0 || extra[a] < stride[a].max(dilation[a]),
            "output_padding {} of spatial axis {a} must be smaller than its stride or dilation",
            extra[a]
        );
        let least = (x.shape()[a + 2] as i64 - 1) * stride[a] + window[a] - pads[a][0] - pads[a][1];
        let size = sizes.as_ref().map_or(least + extra[a], |s| s[a]);
        if sizes.is_some() && !(least..least + stride[a]).contains(&size) {
            let most = least + stride[a] - 1;
            bail!("output_size {size} of spatial axis {a} must lie between {least} and {most}");
        }
        ensure!(size > 0, "the output of spatial axis {a} would have {size} elements; use less padding");
        output.push(size);
    }
    let pad: Sizes = pads.iter().map(|p| p[0]).collect();
    let y = x.try_conv_backward_data(&weight, bias.as_ref(), stride, pad, dilation, o.groups, output)?;
    to_channels_last(y, last)
}

/// Convolution of images `[batch, in, height, width]` with filters `[out, in / groups, height, width]`, as layers
/// compute it: filters are not flipped. `padding` is a number, a list, pairs, `"SAME"` (output `⌈input / stride⌉`) or
/// `"VALID"`. With `"SAME"` the dilation is 1, whatever was asked for: so it is in Paddle, and models that were trained
/// there depend on it. For a dilated convolution give the padding in numbers.
///
/// ```
/// # use sampan_core::{Tensor, ops::conv::Conv2dOpts};
/// let x = Tensor::new([[[[1.0f32, 2.0], [3.0, 4.0]]]]);
/// let w = Tensor::new([[[[1.0f32, 1.0], [1.0, 1.0]]]]);
/// assert_eq!(x.conv2d(&w, None).to_vec::<f32>(), [10.0]);
/// assert_eq!(x.conv2d_with(&w, None, Conv2dOpts::new().padding("SAME")).to_vec::<f32>(), [10.0, 6.0, 7.0, 4.0]);
/// ```
#[op(module = "nn.functional", samples = conv2d_samples, onnx = "Conv", amp = "white", also("conv2d"))]
fn conv2d(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(1)] dilation: &[i64],
    #[opt(1)] groups: i64,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    convolve(x, weight, bias, 2, Options { stride, padding, dilation, groups, data_format })
}

/// Convolution of sequences `[batch, in, length]` with filters `[out, in / groups, length]`; see `conv2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, w) = (Tensor::new([[[1.0f32, 2.0, 4.0]]]), Tensor::new([[[-1.0f32, 1.0]]]));
/// assert_eq!(x.conv1d(&w, None).to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(module = "nn.functional", samples = conv1d_samples, onnx = "Conv", amp = "white", also("conv1d"))]
fn conv1d(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(1)] dilation: &[i64],
    #[opt(1)] groups: i64,
    #[opt("NCL")] data_format: &str,
) -> Result<Tensor> {
    convolve(x, weight, bias, 1, Options { stride, padding, dilation, groups, data_format })
}

/// Convolution of volumes `[batch, in, depth, height, width]`; see `conv2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, w) = (Tensor::new([[[[[1.0f32, 2.0, 4.0]]]]]), Tensor::new([[[[[-1.0f32, 1.0]]]]]));
/// assert_eq!(x.conv3d(&w, None).to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(module = "nn.functional", samples = conv3d_samples, onnx = "Conv", amp = "white", also("conv3d"))]
fn conv3d(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(1)] dilation: &[i64],
    #[opt(1)] groups: i64,
    #[opt("NCDHW")] data_format: &str,
) -> Result<Tensor> {
    convolve(x, weight, bias, 3, Options { stride, padding, dilation, groups, data_format })
}

/// Transposed convolution of images with filters `[in, out / groups, height, width]`: the transpose of the `conv2d` that
/// maps its output's shape to its input's. `output_padding` or `output_size` choose among the output extents that such a
/// convolution would map to the same input. With `padding="SAME"` the dilation is 1, as in `conv2d`.
///
/// ```
/// # use sampan_core::{Tensor, ops::conv::Conv2dTransposeOpts};
/// let (x, w) = (Tensor::new([[[[1.0f32, 2.0]]]]), Tensor::new([[[[1.0f32, 10.0]]]]));
/// assert_eq!(x.conv2d_transpose(&w, None).to_vec::<f32>(), [1.0, 12.0, 20.0]);
/// let apart = Conv2dTransposeOpts::new().stride([1, 2]);
/// assert_eq!(x.conv2d_transpose_with(&w, None, apart).to_vec::<f32>(), [1.0, 10.0, 2.0, 20.0]);
/// ```
#[op(module = "nn.functional", samples = conv2d_transpose_samples, onnx = "ConvTranspose", amp = "white")]
fn conv2d_transpose(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(0)] output_padding: &[i64],
    #[opt(1)] dilation: &[i64],
    #[opt(1)] groups: i64,
    #[opt(None)] output_size: Option<&[i64]>,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    let options = Options { stride, padding, dilation, groups, data_format };
    convolve_transposed(x, weight, bias, 2, output_padding, output_size, options)
}

/// Transposed convolution of sequences with filters `[in, out / groups, length]`; see `conv2d_transpose`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, w) = (Tensor::new([[[1.0f32, 2.0]]]), Tensor::new([[[1.0f32, 10.0]]]));
/// assert_eq!(x.conv1d_transpose(&w, None).to_vec::<f32>(), [1.0, 12.0, 20.0]);
/// ```
#[op(module = "nn.functional", samples = conv1d_transpose_samples, onnx = "ConvTranspose", amp = "white")]
fn conv1d_transpose(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(0)] output_padding: &[i64],
    #[opt(1)] groups: i64,
    #[opt(1)] dilation: &[i64],
    #[opt(None)] output_size: Option<&[i64]>,
    #[opt("NCL")] data_format: &str,
) -> Result<Tensor> {
    let options = Options { stride, padding, dilation, groups, data_format };
    convolve_transposed(x, weight, bias, 1, output_padding, output_size, options)
}

/// Transposed convolution of volumes with filters `[in, out / groups, depth, height, width]`; see `conv2d_transpose`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, w) = (Tensor::new([[[[[1.0f32, 2.0]]]]]), Tensor::new([[[[[1.0f32, 10.0]]]]]));
/// assert_eq!(x.conv3d_transpose(&w, None).to_vec::<f32>(), [1.0, 12.0, 20.0]);
/// ```
#[op(module = "nn.functional", samples = conv3d_transpose_samples, onnx = "ConvTranspose", amp = "white")]
fn conv3d_transpose(
    x: &Tensor,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(1)] stride: &[i64],
    #[opt(0)] padding: &Value,
    #[opt(0)] output_padding: &[i64],
    #[opt(1)] groups: i64,
    #[opt(1)] dilation: &[i64],
    #[opt(None)] output_size: Option<&[i64]>,
    #[opt("NCDHW")] data_format: &str,
) -> Result<Tensor> {
    let options = Options { stride, padding, dilation, groups, data_format };
    convolve_transposed(x, weight, bias, 3, output_padding, output_size, options)
}

fn pairs(list: &[[i64; 2]]) -> Value {
    Value::List(list.iter().map(|p| Value::from(*p)).collect())
}

fn forward_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3]), randn([4, 1, 2]), randn([4]), 1, 1, 1, 2, 4],
        sample![randn([1, 2, 4, 3]), randn([2, 2, 2, 2]), Value::None, [2, 1], [1, 0], 1, 1, [2, 2]],
    ]
}
fn data_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4, 4]), randn([4, 1, 2]), randn([2]), 1, 1, 1, 2, 3],
        sample![randn([1, 2, 2, 2]), randn([2, 2, 2, 2]), Value::None, [2, 1], [1, 0], 1, 1, [4, 3]],
    ]
}
fn weight_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4, 4]), randn([2, 2, 3]), 1, 1, 1, 2, 2],
        sample![randn([1, 2, 2, 2]), randn([1, 2, 4, 3]), [2, 1], [1, 0], 1, 1, [2, 2]],
    ]
}
fn conv2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4, 3]), randn([3, 2, 2, 2])],
        sample![randn([1, 4, 3, 3]), randn([2, 2, 2, 2]), randn([2]), 1, 1; groups = 2],
        sample![randn([1, 1, 5, 4]), randn([2, 1, 2, 2]), randn([2]); stride = [2, 1], padding = [1, 0, 2, 1], dilation = [2, 1]],
        sample![randn([1, 4, 3, 2]), randn([3, 2, 2, 2]), randn([3]); padding = "SAME", stride = 2, data_format = "NHWC"],
        sample![randn([1, 3, 3, 1]), randn([1, 1, 2, 2]); padding = pairs(&[[0, 0], [1, 0], [0, 1], [0, 0]]), data_format = "NHWC"],
        sample![randn([0, 2, 3, 3]), randn([3, 2, 2, 2]), randn([3])],
    ]
}
fn conv1d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 5]), randn([3, 2, 2]), randn([3])],
        sample![randn([1, 4, 4]), randn([2, 2, 3]); groups = 2, padding = [2, 1], stride = 2],
        sample![randn([1, 6, 2]), randn([2, 2, 3]), randn([2]); padding = "SAME", data_format = "NLC"],
        sample![randn([2, 3, 5]), randn([3, 1, 2]), randn([3]); groups = 3, dilation = 2],
    ]
}
fn conv3d_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 3, 2, 2]), randn([2, 2, 2, 1, 2]), randn([2])],
        sample![randn([1, 2, 3, 2, 2]), randn([2, 1, 2, 2, 1]); groups = 2, padding = [1, 0, 1], stride = [2, 1, 1]],
        sample![randn([1, 3, 2, 2, 1]), randn([2, 1, 2, 2, 2]), randn([2]); padding = "same", data_format = "NDHWC"],
    ]
}
fn conv1d_transpose_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4]), randn([2, 3, 2]), randn([3])],
        sample![randn([1, 4, 3]), randn([4, 1, 3]); groups = 2, padding = 1, stride = 2, output_padding = 1],
        sample![randn([1, 3, 2]), randn([2, 2, 3]), randn([2]); stride = 2, output_size = 8, data_format = "NLC"],
    ]
}
fn conv2d_transpose_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 2, 3]), randn([2, 2, 2, 2]), randn([2])],
        sample![randn([1, 4, 2, 2]), randn([4, 1, 3, 2]), randn([2]); groups = 2, stride = 2, padding = [1, 0, 0, 1]],
        sample![randn([1, 3, 2, 2]), randn([2, 1, 2, 2]); stride = 2, padding = "SAME", data_format = "NHWC"],
        sample![randn([1, 1, 3, 2]), randn([1, 2, 2, 2]); stride = [3, 2], dilation = [1, 2], output_size = [10, 6]],
        sample![randn([1, 1, 3, 2]), randn([1, 2, 2, 2]); stride = [3, 2], output_padding = [2, 1]],
        sample![randn([0, 1, 3, 2]), randn([1, 2, 2, 2]), randn([2])].peer("torch.nn.functional.conv_transpose2d"),
    ]
}
fn conv3d_transpose_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2, 2, 1]), randn([2, 1, 2, 1, 2]), randn([1])],
        sample![randn([1, 2, 2, 1, 2]), randn([2, 1, 1, 2, 2]), randn([2]); groups = 2, stride = 2, padding = [0, 0, 1]],
        sample![randn([1, 2, 2, 1, 2]), randn([2, 1, 2, 2, 1]); stride = 2, data_format = "NDHWC"],
    ]
}
