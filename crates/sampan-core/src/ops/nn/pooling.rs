//! Pooling over sliding windows of sequences, images and volumes.

use crate::ops::pool_core::{Laid, need_float};
use crate::ops::prelude::*;
use crate::ops::windows::{Padding, Sizes, channels_last, per_axis, spatial, to_channels_first, to_channels_last};
use sampan_kernels::pool;

/// A pooling as users ask for it, ready for a primitive.
pub(super) struct Ready {
    pub x: Tensor,
    pub last: bool,
    pub windows: Laid,
    pub output: Sizes,
}

/// Reads the arguments of a sliding pooling over `dims` axes.
fn sliding(
    x: &Tensor,
    dims: usize,
    kernel: &[i64],
    stride: Option<&[i64]>,
    padding: &Value,
    ceil_mode: bool,
    data_format: &str,
) -> Result<Ready> {
    let last = channels_last(x, data_format, dims)?;
    need_float(x)?;
    let kernel = per_axis("kernel_size", kernel, dims, 1)?;
    let stride = stride.map_or(Ok(kernel.clone()), |s| per_axis("stride", s, dims, 1))?;
    let x = to_channels_first(x, last)?;
    let input = spatial(&x);
    let pads = Padding::read(padding, dims, last)?.resolve(&x.shape()[2..], &kernel, &stride);
    let mut output = Sizes::new();
    for a in 0..dims {
        let [before, after] = pads[a];
        ensure!(
            before < kernel[a] && after < kernel[a],
            "padding {before} and {after} of spatial axis {a} must be smaller than kernel_size {}",
            kernel[a]
        );
        let size = |n: i64| n as usize;
        let n =
            pool::pooled_len(size(input[a]), size(kernel[a]), size(stride[a]), size(before), size(after), ceil_mode);
        let Some(n) = n else {
            let message = format!(
                "kernel_size {} exceeds spatial axis {a}, which has {} elements with padding",
                kernel[a],
                input[a] + before + after
            );
            return Err(Error::invalid(message).hint("use a larger input, more padding or a smaller kernel_size"));
        };
        // A last window that begins beyond the input would have nothing to pool.
        let beyond = ceil_mode && (n as i64 - 1) * stride[a] >= input[a] + before && n > 1;
        output.push(n as i64 - beyond as i64);
    }
    let pad = pads.iter().map(|p| p[0]).chain(pads.iter().map(|p| p[1])).collect();
    Ok(Ready { x, last, windows: Laid { kernel, stride, pad, shift: None }, output })
}

impl Ready {
    pub fn max(&self, return_mask: bool) -> Result<Varying> {
        let Laid { kernel, stride, pad, shift } = &self.windows;
        let out = self.x.try_max_pool(&**kernel, &**stride, &**pad, &*self.output, return_mask, *shift)?;
        // Paddle's mask is int32.
        let narrow = |t: Tensor| if t.dtype() == DType::Int64 { t.try_cast(DType::Int32) } else { Ok(t) };
        let finish = |t: Tensor| to_channels_last(narrow(t)?, self.last);
        Ok(Varying(out.0.into_iter().map(finish).collect::<Result<_>>()?))
    }

    /// `(Σ x^p)^(1/p)` of each window.
    fn power(mut self, p: f64) -> Result<Tensor> {
        ensure!(p > 0.0, "norm_type must be positive, got {p}");
        if p == f64::INFINITY {
            return self.max(false).map(Tensor::from);
        }
        if p == 1.0 {
            return self.avg(true, Some(1.0));
        }
        self.x = self.x.try_pow(p)?;
        let sum = self.avg(true, Some(1.0))?;
        // The root has no slope at 0; there the gradient is 0.
        let empty = sum.equal(0.0);
        Ok(empty.where_cond(1.0, &sum).pow(1.0 / p).masked_fill(&empty, 0.0))
    }

    pub fn avg(&self, exclusive: bool, divisor: Option<f64>) -> Result<Tensor> {
        let Laid { kernel, stride, pad, .. } = &self.windows;
        let out = self.x.try_avg_pool(&**kernel, &**stride, &**pad, &*self.output, exclusive, divisor)?;
        to_channels_last(out, self.last)
    }
}

/// The largest element of each window of an image; the stride is the window's size unless given. With `return_mask` also
/// the flat place of each maximum in its plane.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.max_pool2d(2).to_vec::<f32>(), [4.0]);
/// ```
#[op(module = "nn.functional", samples = max2d_samples, onnx = "MaxPool", results("out", "indices"))]
fn max_pool2d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] return_mask: bool,
    #[opt(false)] ceil_mode: bool,
    #[opt("NCHW")] data_format: &str,
) -> Result<Varying> {
    sliding(x, 2, kernel_size, stride, padding, ceil_mode, data_format)?.max(return_mask)
}

/// The largest element of each window of a sequence `[batch, channels, length]`; see `max_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0, 4.0, 3.0]]]);
/// assert_eq!(x.max_pool1d(2).to_vec::<f32>(), [2.0, 4.0]);
/// ```
#[op(module = "nn.functional", samples = max1d_samples, onnx = "MaxPool", results("out", "indices"))]
fn max_pool1d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] return_mask: bool,
    #[opt(false)] ceil_mode: bool,
) -> Result<Varying> {
    sliding(x, 1, kernel_size, stride, padding, ceil_mode, "NCL")?.max(return_mask)
}

/// The largest element of each window of a volume; see `max_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[[1.0f32, 2.0], [4.0, 3.0]], [[0.0, 5.0], [0.0, 0.0]]]]]);
/// assert_eq!(x.max_pool3d(2).to_vec::<f32>(), [5.0]);
/// ```
#[op(module = "nn.functional", samples = max3d_samples, onnx = "MaxPool", results("out", "indices"))]
fn max_pool3d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] return_mask: bool,
    #[opt(false)] ceil_mode: bool,
    #[opt("NCDHW")] data_format: &str,
) -> Result<Varying> {
    sliding(x, 3, kernel_size, stride, padding, ceil_mode, data_format)?.max(return_mask)
}

/// The average of each window of an image; the stride is the window's size unless given. Padding does not count unless
/// `exclusive` is false; `divisor_override` replaces the count.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.avg_pool2d(2).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = avg2d_samples, onnx = "AveragePool", flops = crate::ops::work::pool_flops)]
fn avg_pool2d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] ceil_mode: bool,
    #[opt(true)] exclusive: bool,
    #[opt(None)] divisor_override: Option<f64>,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    sliding(x, 2, kernel_size, stride, padding, ceil_mode, data_format)?.avg(exclusive, divisor_override)
}

/// The average of each window of a sequence `[batch, channels, length]`; see `avg_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0, 4.0, 3.0]]]);
/// assert_eq!(x.avg_pool1d(2).to_vec::<f32>(), [1.5, 3.5]);
/// ```
#[op(module = "nn.functional", samples = avg1d_samples, onnx = "AveragePool", flops = crate::ops::work::pool_flops)]
fn avg_pool1d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(true)] exclusive: bool,
    #[opt(false)] ceil_mode: bool,
) -> Result<Tensor> {
    sliding(x, 1, kernel_size, stride, padding, ceil_mode, "NCL")?.avg(exclusive, None)
}

/// The average of each window of a volume; see `avg_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[[1.0f32, 2.0], [4.0, 3.0]], [[0.0, 6.0], [0.0, 0.0]]]]]);
/// assert_eq!(x.avg_pool3d(2).to_vec::<f32>(), [2.0]);
/// ```
#[op(module = "nn.functional", samples = avg3d_samples, onnx = "AveragePool", flops = crate::ops::work::pool_flops)]
fn avg_pool3d(
    x: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] ceil_mode: bool,
    #[opt(true)] exclusive: bool,
    #[opt(None)] divisor_override: Option<f64>,
    #[opt("NCDHW")] data_format: &str,
) -> Result<Tensor> {
    sliding(x, 3, kernel_size, stride, padding, ceil_mode, data_format)?.avg(exclusive, divisor_override)
}

/// The power average of each window of an image: the sum of `x^norm_type` to the power `1 / norm_type`. An infinite
/// `norm_type` is max pooling.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[[[3.0f32], [4.0]]]]).lp_pool2d(2.0, [2, 1]).to_vec::<f32>(), [5.0]);
/// ```
#[op(module = "nn.functional", samples = lp2d_samples, onnx = "LpPool")]
fn lp_pool2d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] ceil_mode: bool,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    sliding(x, 2, kernel_size, stride, padding, ceil_mode, data_format)?.power(norm_type)
}

/// The power average of each window of a sequence; see `lp_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[[3.0f32, 4.0]]]).lp_pool1d(2.0, 2).to_vec::<f32>(), [5.0]);
/// ```
#[op(module = "nn.functional", samples = lp1d_samples, onnx = "LpPool")]
fn lp_pool1d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt(false)] ceil_mode: bool,
    #[opt("NCL")] data_format: &str,
) -> Result<Tensor> {
    sliding(x, 1, kernel_size, stride, padding, ceil_mode, data_format)?.power(norm_type)
}

fn max2d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 2, 4, 4]), 2],
        sample![distinct([1, 2, 5, 4]), [3, 2], [2, 1], 1; ceil_mode = true],
        sample![distinct([1, 1, 5, 5]), 3, 2, [0, 1], true],
        sample![distinct([1, 5, 4, 2]), 3, 2, "SAME"; data_format = "NHWC"],
        sample![distinct([0, 2, 4, 4]), 2].peer("torch.nn.functional.max_pool2d"),
    ]
}
fn avg2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4, 4]), 2],
        sample![randn([1, 2, 5, 4]), [3, 2], [2, 1], 1; ceil_mode = true],
        sample![randn([1, 1, 5, 5]), 3, 2, [0, 1, 1, 0]; exclusive = false],
        sample![randn([1, 1, 5, 5]), 3, 2; divisor_override = 4],
        sample![randn([1, 1, 4, 4]), 3, 2, 1; divisor_override = 4].peer("torch.nn.functional.avg_pool2d"),
        sample![randn([1, 5, 4, 2]), 3, 2, "SAME"; data_format = "NHWC"],
    ]
}
fn max1d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 2, 5]), 2],
        sample![distinct([1, 2, 6]), 3, 2, 1; ceil_mode = true],
        sample![distinct([1, 2, 6]), 3, 2, 1; return_mask = true],
        sample![distinct([1, 2, 6]), 3, 2, "SAME"],
        sample![distinct([1, 2, 4]), 2, 3; ceil_mode = true].peer("torch.nn.functional.max_pool1d"),
    ]
}
fn max3d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([1, 2, 2, 2, 4]), 2],
        sample![distinct([1, 1, 3, 2, 4]), [2, 1, 3], [1, 1, 2], [1, 0, 1]; return_mask = true],
        sample![distinct([1, 3, 2, 2, 2]), 2, 1; data_format = "NDHWC"],
    ]
}
fn avg1d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 5]), 2],
        sample![randn([1, 2, 6]), 3, 2, 1; exclusive = false],
        sample![randn([1, 2, 6]), 3, 2, 1; ceil_mode = true],
        sample![randn([1, 2, 6]), 3, 2, [1, 0]],
    ]
}
fn avg3d_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2, 2, 4]), 2],
        sample![randn([1, 1, 3, 2, 4]), [2, 1, 3], [1, 1, 2], [1, 0, 1]; exclusive = false],
        sample![randn([1, 3, 2, 2, 2]), 2, 1; data_format = "NDHWC", divisor_override = 5],
    ]
}
fn lp2d_samples() -> Vec<Sample> {
    vec![
        sample![positive([1, 2, 4, 3]), 2.0, 2],
        sample![positive([1, 1, 4, 3]), 3.0, [3, 2], [2, 1]; ceil_mode = true],
        sample![randn([1, 3, 4, 2]), 1.0, 2; data_format = "NHWC"],
    ]
}
fn lp1d_samples() -> Vec<Sample> {
    vec![
        sample![positive([1, 2, 5]), 2.5, 2],
        sample![randn([1, 2, 5]), 2.0, 3, 2, 1],
        sample![distinct([1, 2, 5]), f64::INFINITY, 2],
        sample![values([0.0f32, 0.0, 1.0, 2.0], [1, 1, 4]), 3.0, 2]
            .no_grad("not smooth at zero")
            .peer("torch.nn.functional.lp_pool1d")
            .grad_peer("none: NaN there"),
    ]
}
