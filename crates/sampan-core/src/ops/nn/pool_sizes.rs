//! Pooling to a given size: adaptive windows, fractional steps, and the way back from max pooling.

use crate::ops::pool_core::{Laid, check_index, index_like, need_elements, need_float, planes, resized};
use crate::ops::pooling::Ready;
use crate::ops::prelude::*;
use crate::ops::windows::{Padding, Sizes, channels_last, per_axis, spatial, to_channels_first, to_channels_last};
use sampan_kernels::pool;

/// Reads the arguments of an adaptive pooling over `dims` axes; `None` among the extents keeps the input's.
fn adaptive(x: &Tensor, dims: usize, output_size: &Value, data_format: &str) -> Result<Ready> {
    let last = channels_last(x, data_format, dims)?;
    need_float(x)?;
    let x = to_channels_first(x, last)?;
    let input = spatial(&x);
    let refuse = || Error::invalid(format!("output_size must be one int or {dims} (or None), got {output_size:?}"));
    let one = |v: &Value, a: usize| match v {
        Value::None => Ok(input[a]),
        Value::Int(n) => Ok(*n),
        _ => Err(refuse()),
    };
    let output: Sizes = match output_size {
        Value::Ints(list) if list.len() == dims => list.clone(),
        Value::Ints(list) if list.len() == 1 => Sizes::from_elem(list[0], dims),
        Value::List(list) if list.len() == dims => {
            list.iter().enumerate().map(|(a, v)| one(v, a)).collect::<Result<_>>()?
        }
        Value::Ints(_) | Value::List(_) => return Err(refuse()),
        other => (0..dims).map(|a| one(other, a)).collect::<Result<_>>()?,
    };
    ensure!(output.iter().all(|&n| (0..1 << 31).contains(&n)), "output_size cannot be {output:?}");
    need_elements(&x, &output)?;
    Ok(Ready { x, last, windows: Laid::adaptive(), output })
}

/// Averages over windows that divide an image into `output_size` parts, as evenly as possible. `None` keeps an extent.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.adaptive_avg_pool2d(1).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = adaptive2d_samples, flops = crate::ops::work::adaptive_pool_flops)]
fn adaptive_avg_pool2d(x: &Tensor, output_size: &Value, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    adaptive(x, 2, output_size, data_format)?.avg(true, None)
}

/// Averages over windows that divide a sequence `[batch, channels, length]` into `output_size` parts; see `adaptive_avg_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0, 4.0, 3.0]]]);
/// assert_eq!(x.adaptive_avg_pool1d(1).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = adaptive1d_samples, also("adaptive_avg_pool1d", "adaptive_avg_pool1d"), flops = crate::ops::work::adaptive_pool_flops)]
fn adaptive_avg_pool1d(x: &Tensor, output_size: &Value) -> Result<Tensor> {
    adaptive(x, 1, output_size, "NCL")?.avg(true, None)
}

/// Averages over windows that divide a volume into `output_size` parts; see `adaptive_avg_pool2d`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[[1.0f32, 2.0], [4.0, 3.0]]]]]);
/// assert_eq!(x.adaptive_avg_pool3d(1).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = adaptive3d_samples, flops = crate::ops::work::adaptive_pool_flops)]
fn adaptive_avg_pool3d(x: &Tensor, output_size: &Value, #[opt("NCDHW")] data_format: &str) -> Result<Tensor> {
    adaptive(x, 3, output_size, data_format)?.avg(true, None)
}

/// The largest element of each of `output_size` windows that divide a sequence, as evenly as possible. With `return_mask`
/// also its flat place in its plane.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 2.0, 4.0, 3.0]]]);
/// assert_eq!(x.adaptive_max_pool1d(1).to_vec::<f32>(), [4.0]);
/// ```
#[op(module = "nn.functional", samples = adaptive_max1d_samples, alias(return_indices = return_mask), results("out", "indices"))]
fn adaptive_max_pool1d(x: &Tensor, output_size: &Value, #[opt(false)] return_mask: bool) -> Result<Varying> {
    adaptive(x, 1, output_size, "NCL")?.max(return_mask)
}

/// The largest element of each of `output_size` windows that divide an image, as evenly as possible. With `return_mask`
/// also its flat place in its plane.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.adaptive_max_pool2d(1).to_vec::<f32>(), [4.0]);
/// ```
#[op(module = "nn.functional", samples = adaptive_max2d_samples, alias(return_indices = return_mask), results("out", "indices"))]
fn adaptive_max_pool2d(x: &Tensor, output_size: &Value, #[opt(false)] return_mask: bool) -> Result<Varying> {
    adaptive(x, 2, output_size, "NCHW")?.max(return_mask)
}

/// The largest element of each of `output_size` windows that divide a volume, as evenly as possible. With `return_mask`
/// also its flat place in its plane.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[[1.0f32, 2.0], [4.0, 3.0]]]]]);
/// assert_eq!(x.adaptive_max_pool3d(1).to_vec::<f32>(), [4.0]);
/// ```
#[op(module = "nn.functional", samples = adaptive_max3d_samples, alias(return_indices = return_mask), results("out", "indices"))]
fn adaptive_max_pool3d(x: &Tensor, output_size: &Value, #[opt(false)] return_mask: bool) -> Result<Varying> {
    adaptive(x, 3, output_size, "NCDHW")?.max(return_mask)
}

/// Reads the arguments of a fractional pooling.
fn fractional(
    x: &Tensor,
    dims: usize,
    output_size: &Value,
    kernel: Option<&[i64]>,
    random_u: Option<f64>,
) -> Result<Ready> {
    let mut ready = adaptive(x, dims, output_size, ["NCL", "NCHW", "NCDHW"][dims - 1])?;
    let kernel = kernel.map_or(Ok(Sizes::new()), |k| per_axis("kernel_size", k, dims, 1))?;
    let input = spatial(&ready.x);
    for a in 0..dims {
        let (n, out) = (input[a], ready.output[a]);
        ensure!((1..=n).contains(&out), "output_size {out} of spatial axis {a} must lie between 1 and {n}");
        if let Some(&k) = kernel.get(a) {
            ensure!(
                k + out - 1 <= n,
                "kernel_size {k} is too large for {out} windows over the {n} elements of axis {a}"
            );
        }
    }
    if let Some(u) = random_u {
        ensure!(u > 0.0 && u < 1.0, "random_u must lie between 0 and 1, got {u}");
    }
    let u = match random_u {
        Some(u) => u,
        // The host chooses the windows, wherever the data is.
        None => crate::device::with(Device::Cpu, || crate::ops::random::rand([1])).item().to_f64().max(f64::EPSILON),
    };
    ready.windows = Laid { kernel, shift: Some(u), ..Laid::adaptive() };
    Ok(ready)
}

/// Max pooling of an image to `output_size` with windows at fractional steps: side by side, or overlapping where
/// `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
///
/// ```
/// # use sampan_core::{Tensor, ops::pool_sizes::FractionalMaxPool2dOpts};
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// let y = x.fractional_max_pool2d_with(1, FractionalMaxPool2dOpts::new().random_u(0.3));
/// assert_eq!(y.to_vec::<f32>(), [4.0]);
/// ```
#[op(random, module = "nn.functional", samples = fractional2d_samples, results("out", "indices"))]
fn fractional_max_pool2d(
    x: &Tensor,
    output_size: &Value,
    #[opt(None)] kernel_size: Option<&[i64]>,
    #[opt(None)] random_u: Option<f64>,
    #[opt(false)] return_mask: bool,
) -> Result<Varying> {
    fractional(x, 2, output_size, kernel_size, random_u)?.max(return_mask)
}

/// Max pooling of a volume to `output_size` with windows at fractional steps: side by side, or overlapping where
/// `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
///
/// ```
/// # use sampan_core::{Tensor, ops::pool_sizes::FractionalMaxPool3dOpts};
/// let x = Tensor::new([[[[[1.0f32, 2.0], [4.0, 3.0]]]]]);
/// let y = x.fractional_max_pool3d_with(1, FractionalMaxPool3dOpts::new().random_u(0.3));
/// assert_eq!(y.to_vec::<f32>(), [4.0]);
/// ```
#[op(random, module = "nn.functional", samples = fractional3d_samples, results("out", "indices"))]
fn fractional_max_pool3d(
    x: &Tensor,
    output_size: &Value,
    #[opt(None)] kernel_size: Option<&[i64]>,
    #[opt(None)] random_u: Option<f64>,
    #[opt(false)] return_mask: bool,
) -> Result<Varying> {
    fractional(x, 3, output_size, kernel_size, random_u)?.max(return_mask)
}

/// Zeros of the spatial extents `output` with each element of `x` written at its index in the flattened plane; of equal
/// indices the last stays.
#[op(
    internal,
    module = "nn.functional",
    samples = unpool_planes_samples,
    peer = "lambda x, i, n: torch.zeros(*x.shape[:2], n).scatter(2, i, x)"
)]
fn unpool_planes(cx: &Cx, x: &Tensor, index: &Tensor, output: &[i64]) -> Result<Tensor> {
    index_like(x, index)?;
    need_float(x)?;
    ensure!(x.shape() == index.shape(), "x and indices must have the same shape");
    let shape = resized(x, output)?;
    let out = cx.out(&shape, x.dtype())?;
    cx.cpu(|| {
        check_index(index, shape[2..].iter().product())?;
        let (x, index) = (x.try_contiguous()?, index.try_contiguous()?);
        let (x_data, index) = (x.values(), index.data::<i64>());
        pool::max_unpool(planes(&x), x_data.slice(), index.slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[index], |g| Ok([Some(g.grad().gather_planes(g.saved(0))), None]))
}

/// Max unpooling over `dims` axes in any layout.
#[allow(clippy::too_many_arguments)]
fn unpool(
    x: &Tensor,
    indices: &Tensor,
    dims: usize,
    kernel: &[i64],
    stride: Option<&[i64]>,
    padding: &Value,
    data_format: &str,
    output_size: Option<&[i64]>,
) -> Result<Tensor> {
    let last = channels_last(x, data_format, dims)?;
    need_float(x)?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(format!("indices must be integers, got {}", indices.dtype())));
    }
    ensure!(x.shape() == indices.shape(), "x and indices must have the same shape");
    let kernel = per_axis("kernel_size", kernel, dims, 1)?;
    let stride = stride.map_or(Ok(kernel.clone()), |s| per_axis("stride", s, dims, 1))?;
    let (x, indices) = (to_channels_first(x, last)?, to_channels_first(indices, last)?.try_cast(DType::Int64)?);
    let pads = Padding::read(padding, dims, last)?.resolve(&x.shape()[2..], &kernel, &stride);
    let wanted = match output_size {
        Some(s) if s.len() == dims + 2 => Some(if last { &s[1..=dims] } else { &s[2..] }),
        Some(s) => {
            ensure!(s.len() == dims, "output_size must have {dims} extents, or {} with batch and channels", dims + 2);
            Some(s)
        }
        None => None,
    };
    let mut output = Vec::with_capacity(dims);
    for a in 0..dims {
        let usual = (x.shape()[a + 2] as i64 - 1) * stride[a] - pads[a][0] - pads[a][1] + kernel[a];
        let size = wanted.map_or(usual, |w| w[a]);
        let near = size.abs_diff(usual) < stride[a].max(1) as u64;
        ensure!(
            size > 0 && (wanted.is_none() || near),
            "output_size {size} of spatial axis {a} must lie within {} of {usual}",
            stride[a]
        );
        output.push(size);
    }
    to_channels_last(x.try_unpool_planes(&indices, output)?, last)
}

/// The inverse of `max_pool1d`: zeros with each element of `x` put back at its place in `indices`, the mask that
/// `max_pool1d` returned. `output_size` settles the extents where several pool to the same.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i) = (Tensor::new([[[2.0f32, 4.0]]]), Tensor::new([[[1i64, 2]]]));
/// assert_eq!(x.max_unpool1d(&i, 2).to_vec::<f32>(), [0.0, 2.0, 4.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = unpool1d_samples)]
fn max_unpool1d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt("NCL")] data_format: &str,
    #[opt(None)] output_size: Option<&[i64]>,
) -> Result<Tensor> {
    unpool(x, indices, 1, kernel_size, stride, padding, data_format, output_size)
}

/// The inverse of `max_pool2d`: zeros with each element of `x` put back at its place in `indices`, the mask that
/// `max_pool2d` returned. `output_size` settles the extents where several pool to the same.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i) = (Tensor::new([[[[4.0f32]]]]), Tensor::new([[[[2i64]]]]));
/// assert_eq!(x.max_unpool2d(&i, 2).to_vec::<f32>(), [0.0, 0.0, 4.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = unpool2d_samples)]
fn max_unpool2d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt("NCHW")] data_format: &str,
    #[opt(None)] output_size: Option<&[i64]>,
) -> Result<Tensor> {
    unpool(x, indices, 2, kernel_size, stride, padding, data_format, output_size)
}

/// The inverse of `max_pool3d`: zeros with each element of `x` put back at its place in `indices`, the mask that
/// `max_pool3d` returned. `output_size` settles the extents where several pool to the same.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i) = (Tensor::new([[[[[4.0f32]]]]]), Tensor::new([[[[[2i64]]]]]));
/// assert_eq!(x.max_unpool3d(&i, 2).to_vec::<f32>(), [0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
/// ```
#[op(module = "nn.functional", samples = unpool3d_samples)]
fn max_unpool3d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: &[i64],
    #[opt(None)] stride: Option<&[i64]>,
    #[opt(0)] padding: &Value,
    #[opt("NCDHW")] data_format: &str,
    #[opt(None)] output_size: Option<&[i64]>,
) -> Result<Tensor> {
    unpool(x, indices, 3, kernel_size, stride, padding, data_format, output_size)
}

fn adaptive2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4, 3]), 1],
        sample![randn([1, 2, 5, 4]), [3, 2]],
        sample![randn([1, 2, 3, 4]), Value::List(vec![Value::None, Value::Int(2)])],
        sample![randn([1, 5, 4, 2]), [2, 3]; data_format = "NHWC"],
    ]
}
fn adaptive1d_samples() -> Vec<Sample> {
    vec![sample![randn([2, 2, 5]), 3], sample![randn([2, 7]).unsqueeze(0), 7], sample![randn([2, 2, 3]), 5]]
}
fn adaptive3d_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2, 3, 2]), 2],
        sample![randn([1, 2, 3, 2, 2]), Value::List(vec![Value::Int(2), Value::None, Value::Int(1)])],
        sample![randn([1, 3, 2, 2, 2]), [2, 1, 2]; data_format = "NDHWC"],
    ]
}
fn adaptive_max1d_samples() -> Vec<Sample> {
    vec![sample![distinct([2, 2, 5]), 3], sample![distinct([1, 2, 7]), 3, true]]
}
fn adaptive_max2d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 2, 4, 3]), 1],
        sample![distinct([1, 2, 5, 3]), [3, 2]; return_mask = true],
        sample![distinct([1, 2, 3, 4]), Value::List(vec![Value::None, Value::Int(2)])],
    ]
}
fn adaptive_max3d_samples() -> Vec<Sample> {
    vec![sample![distinct([1, 2, 2, 3, 2]), 2], sample![distinct([1, 1, 3, 2, 4]), [2, 2, 3]; return_mask = true]]
}
fn fractional2d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([1, 2, 5, 4]), [3, 2]; random_u = 0.3],
        sample![distinct([1, 1, 5, 6]), 3, 2, 0.7, true],
        sample![distinct([1, 1, 4, 4]), 2].peer("none: random"),
    ]
}
fn fractional3d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([1, 1, 3, 4, 3]), [2, 3, 1]; random_u = 0.6],
        sample![distinct([1, 1, 3, 4, 3]), 2, 2, 0.4, true],
    ]
}
fn places<const N: usize>(list: [i64; N], shape: impl AsRef<[usize]>) -> Tensor {
    values(list, shape)
}
fn unpool_planes_samples() -> Vec<Sample> {
    vec![sample![randn([1, 2, 3]), places([5, 0, 2, 1, 3, 4], [1, 2, 3]), 6]]
}
fn unpool1d_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2]), places([1, 2, 0, 3], [1, 2, 2]), 2],
        sample![randn([1, 2, 2]), places([1, 4, 0, 3], [1, 2, 2]), 2; output_size = [5]]
            .peer("torch.nn.functional.max_unpool1d"),
    ]
}
fn unpool2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 1, 2, 2]), places([1, 7, 8, 15], [1, 1, 2, 2]), 2],
        sample![randn([1, 1, 2, 2]), places([1, 3, 18, 24], [1, 1, 2, 2]), 3, 2; output_size = [1, 1, 5, 5]],
        sample![randn([1, 1, 2, 2]), places([1, 2, 4, 8], [1, 1, 2, 2]), 3, 2, 1],
        sample![randn([1, 2, 2, 1]), places([1, 7, 8, 15], [1, 2, 2, 1]), 2; data_format = "NHWC"].peer(
            "lambda x, i, k, data_format: F.max_unpool2d(torch.movedim(x, 3, 1), i.movedim(3, 1), k).movedim(1, 3)",
        ),
    ]
}
fn unpool3d_samples() -> Vec<Sample> {
    vec![sample![randn([1, 1, 1, 2, 2]), places([1, 7, 8, 31], [1, 1, 1, 2, 2]), 2]]
}
