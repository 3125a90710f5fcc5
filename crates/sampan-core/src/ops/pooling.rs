//! Pooling over one, two or three spatial axes.
//!
//! Everything comes down to a few primitives on channels-first data. An empty `kernel` means adaptive windows, which
//! divide the input as evenly as possible. Max pooling is a gather by index; the gradient of a gather is a scatter and
//! the other way round, and averages and their gradients are each other's transposes, so every order exists.

use super::prelude::*;
use super::windows::{Padding, channels_last, lifted, per_axis, spatial, to_channels_first, to_channels_last};
use sampan_kernels::pool::{self, Divisor, PoolShape, Windows};

/// Windows over an image, as the primitives take them.
#[derive(Clone)]
struct Laid {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    /// Before each axis, then after each.
    pad: Vec<i64>,
}

impl Laid {
    /// Reads the arguments of a primitive.
    fn new(dims: usize, kernel: &[i64], stride: &[i64], pad: &[i64]) -> Result<Laid> {
        ensure!((1..=3).contains(&dims), "x must have three to five axes");
        if kernel.is_empty() {
            return Ok(Laid { kernel: vec![], stride: vec![], pad: vec![] });
        }
        ensure!(pad.len() == 2 * dims && pad.iter().all(|&p| p >= 0), "pad needs {} numbers, got {pad:?}", 2 * dims);
        let (kernel, stride) = (per_axis("kernel", kernel, dims, 1)?, per_axis("stride", stride, dims, 1)?);
        Ok(Laid { kernel, stride, pad: pad.to_vec() })
    }

    fn shape(&self, planes: usize, input: &[i64], output: &[i64]) -> PoolShape {
        let dims = input.len();
        let windows = if self.kernel.is_empty() {
            Windows::Adaptive
        } else {
            Windows::Sliding {
                kernel: lifted(&self.kernel, 1),
                stride: lifted(&self.stride, 1),
                pad: lifted(&self.pad[..dims], 0),
                pad_end: lifted(&self.pad[dims..], 0),
            }
        };
        PoolShape { planes, input: lifted(input, 1), output: lifted(output, 1), windows }
    }
}

fn planes(x: &Tensor) -> usize {
    x.shape()[0] * x.shape()[1]
}

/// The shape of `x` with other spatial extents.
fn resized(x: &Tensor, extents: &[i64]) -> Result<Shape> {
    ensure!(x.ndim() == extents.len() + 2, "{} spatial extents for x of rank {}", extents.len(), x.ndim());
    let mut shape = Shape::from_slice(&x.shape()[..2]);
    shape.extend(super::shape::checked_shape(extents)?);
    Ok(shape)
}

fn need_float(x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!("x must be a float tensor, got {}", x.dtype())).hint("cast(\"float32\") first"))
}

/// An adaptive window or a maximum needs elements to choose from.
fn need_elements(x: &Tensor, output: &[i64]) -> Result<()> {
    let empty = x.shape()[2..].contains(&0) && !output.contains(&0);
    ensure!(!empty, "x has no elements to pool");
    Ok(())
}

/// Places of the largest element of each window in its flattened input plane, int64; of equals the first.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 5.0, 7.0, 2.0]]]);
/// assert_eq!(x.max_pool_index(2, 2, [0, 0], 2).to_vec::<i64>(), [1, 2]);
/// ```
#[op(non_diff, module = "nn.functional", samples = index_samples, peer = "none: internal form of max pooling")]
fn max_pool_index(cx: &Cx, x: &Tensor, kernel: &[i64], stride: &[i64], pad: &[i64], output: &[i64]) -> Result<Tensor> {
    let shape = resized(x, output)?;
    need_float(x)?;
    need_elements(x, output)?;
    let s = Laid::new(output.len(), kernel, stride, pad)?.shape(planes(x), &spatial(x), output);
    let out = cx.out(&shape, DType::Int64)?;
    cx.cpu(|| {
        let x = x.try_contiguous()?;
        match_dtype!(x.dtype(), T in float => {
            pool::max_index(&s, x.data::<T>().slice(), out.data_mut::<i64>().slice())
        }, else => {});
        Ok(())
    })?;
    Ok(out)
}

/// The largest element of each window, and with `return_mask` its place in the flattened input plane.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 5.0, 7.0, 2.0]]]);
/// assert_eq!(x.max_pool(2, 2, [0, 0], 2, false).to_vec::<f32>(), [5.0, 7.0]);
/// ```
#[op(module = "nn.functional", samples = max_samples, peer = "none: internal form of max pooling")]
fn max_pool(
    cx: &Cx,
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    output: &[i64],
    #[default(false)] return_mask: bool,
) -> Result<Varying> {
    let shape = resized(x, output)?;
    need_float(x)?;
    need_elements(x, output)?;
    let layout = Laid::new(output.len(), kernel, stride, pad)?;
    let (input, output) = (spatial(x), output.to_vec());
    let s = layout.shape(planes(x), &input, &output);
    let out = cx.out(&shape, x.dtype())?;
    if return_mask {
        let mask = cx.out(&shape, DType::Int64)?;
        cx.cpu(|| {
            let x = x.try_contiguous()?;
            match_dtype!(x.dtype(), T in float => {
                let mut mask = mask.data_mut::<i64>();
                pool::max_pool_with_index(&s, x.data::<T>().slice(), out.data_mut::<T>().slice(), mask.slice())
            }, else => {});
            Ok(())
        })?;
        return cx.grad_from_output(Varying(vec![out, mask]), &[], move |g| {
            Ok(g.grad().scatter_planes(g.output(1), input.as_slice()))
        });
    }
    cx.cpu(|| {
        let x = x.try_contiguous()?;
        match_dtype!(x.dtype(), T in float => {
            pool::max_pool(&s, x.data::<T>().slice(), out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    // Places are found again rather than kept: `x` is alive anyway, and inference never needs them.
    cx.grad(Varying(vec![out]), &[x], move |g| {
        let index = g.saved(0).detach().max_pool_index(&*layout.kernel, &*layout.stride, &*layout.pad, &*output);
        Ok(g.grad().scatter_planes(&index, input.as_slice()))
    })
}

/// Checks indices into planes of `len` elements.
fn check_index(index: &Tensor, len: usize) -> Result<()> {
    let index = index.try_contiguous()?;
    let data = index.data::<i64>();
    match data.slice().iter().find(|&&i| i < 0 || i >= len as i64) {
        Some(i) => Err(Error::range(format!("index {i} lies outside a plane of {len} elements"))),
        None => Ok(()),
    }
}

fn index_like(x: &Tensor, index: &Tensor) -> Result<()> {
    ensure!(x.ndim() >= 3, "x must have at least three axes");
    ensure!(index.dtype() == DType::Int64, "indices must be int64, got {}", index.dtype());
    ensure!(x.shape()[..2] == index.shape()[..2.min(index.ndim())], "x and indices differ in batch or channels");
    Ok(())
}

/// Zeros of the spatial extents `output` with each element of `x` added at its index in the flattened plane: the
/// transpose of `gather_planes`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i) = (Tensor::new([[[1.0f32, 2.0, 3.0]]]), Tensor::new([[[3i64, 0, 3]]]));
/// assert_eq!(x.scatter_planes(&i, 4).to_vec::<f32>(), [2.0, 0.0, 0.0, 4.0]);
/// ```
#[op(module = "nn.functional", samples = scatter_samples, peer = "none: internal gradient of max pooling")]
fn scatter_planes(cx: &Cx, x: &Tensor, index: &Tensor, output: &[i64]) -> Result<Tensor> {
    index_like(x, index)?;
    need_float(x)?;
    ensure!(x.shape() == index.shape(), "x and index must have the same shape");
    let shape = resized(x, output)?;
    let out = cx.out(&shape, x.dtype())?;
    cx.cpu(|| {
        check_index(index, shape[2..].iter().product())?;
        let (x, index) = (x.try_contiguous()?, index.try_contiguous()?);
        match_dtype!(x.dtype(), T in float => {
            let (dy, index) = (x.data::<T>(), index.data::<i64>());
            pool::max_pool_backward(planes(&x), dy.slice(), index.slice(), out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[index], |g| Ok([Some(g.grad().gather_planes(g.saved(0))), None]))
}

/// The elements of `x` at indices into its flattened planes.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, i) = (Tensor::new([[[1.0f32, 2.0, 3.0]]]), Tensor::new([[[2i64, 0]]]));
/// assert_eq!(x.gather_planes(&i).to_vec::<f32>(), [3.0, 1.0]);
/// ```
#[op(module = "nn.functional", samples = gather_samples, peer = "none: internal form of max pooling")]
fn gather_planes(cx: &Cx, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    index_like(x, index)?;
    need_float(x)?;
    let out = cx.out(index.shape(), x.dtype())?;
    let input = spatial(x);
    cx.cpu(|| {
        check_index(index, x.shape()[2..].iter().product())?;
        let (x, index) = (x.try_contiguous()?, index.try_contiguous()?);
        match_dtype!(x.dtype(), T in float => {
            let (x_data, index) = (x.data::<T>(), index.data::<i64>());
            pool::gather_by_index(planes(&x), x_data.slice(), index.slice(), out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[index], move |g| Ok([Some(g.grad().scatter_planes(g.saved(0), input.as_slice())), None]))
}

/// What an average divides by: a number, or by `exclusive` the elements without or with padding.
fn divisor(exclusive: bool, fixed: Option<f64>) -> Result<Divisor> {
    match fixed {
        Some(d) => {
            ensure!(d != 0.0 && d.is_finite(), "divisor_override cannot be {d}");
            Ok(Divisor::Fixed(d))
        }
        None => Ok(if exclusive { Divisor::Inside } else { Divisor::Window }),
    }
}

/// The average of each window: over its elements inside the input (`exclusive`), over all with padding, or the sum over
/// a fixed divisor.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[1.0f32, 5.0, 7.0, 2.0]]]);
/// assert_eq!(x.avg_pool(2, 2, [0, 0], 2, true, None).to_vec::<f32>(), [3.0, 4.5]);
/// ```
#[op(module = "nn.functional", samples = avg_samples, peer = "none: internal form of average pooling")]
fn avg_pool(
    cx: &Cx,
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    output: &[i64],
    #[default(true)] exclusive: bool,
    #[default(None)] divide_by: Option<f64>,
) -> Result<Tensor> {
    let shape = resized(x, output)?;
    need_float(x)?;
    let layout = Laid::new(output.len(), kernel, stride, pad)?;
    let by = divisor(exclusive, divide_by)?;
    let input = spatial(x);
    let s = layout.shape(planes(x), &input, output);
    let out = cx.out(&shape, x.dtype())?;
    cx.cpu(|| {
        let x = x.try_contiguous()?;
        match_dtype!(x.dtype(), T in float => {
            pool::avg_pool(&s, by, x.data::<T>().slice(), out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[], move |g| {
        let Laid { kernel, stride, pad } = &layout;
        Ok(g.grad().avg_unpool(&**kernel, &**stride, &**pad, &*input, exclusive, divide_by))
    })
}

/// Each element's share given back to all of its window, to the spatial extents `input`: the transpose of `avg_pool`.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[[2.0f32, 4.0]]]);
/// assert_eq!(y.avg_unpool(2, 2, [0, 0], 4, true, None).to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0]);
/// ```
#[op(module = "nn.functional", samples = avg_unpool_samples, peer = "none: internal gradient of average pooling")]
fn avg_unpool(
    cx: &Cx,
    y: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    input: &[i64],
    #[default(true)] exclusive: bool,
    #[default(None)] divide_by: Option<f64>,
) -> Result<Tensor> {
    let shape = resized(y, input)?;
    need_float(y)?;
    let layout = Laid::new(input.len(), kernel, stride, pad)?;
    let by = divisor(exclusive, divide_by)?;
    let output = spatial(y);
    let s = layout.shape(planes(y), input, &output);
    let out = cx.out(&shape, y.dtype())?;
    cx.cpu(|| {
        let y = y.try_contiguous()?;
        match_dtype!(y.dtype(), T in float => {
            pool::avg_pool_backward(&s, by, y.data::<T>().slice(), out.data_mut::<T>().slice())
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[], move |g| {
        let Laid { kernel, stride, pad } = &layout;
        Ok(g.grad().avg_pool(&**kernel, &**stride, &**pad, &*output, exclusive, divide_by))
    })
}

/// A pooling as users ask for it, ready for a primitive.
struct Ready {
    x: Tensor,
    last: bool,
    windows: Laid,
    output: Vec<i64>,
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
    let kernel = per_axis("kernel_size", kernel, dims, 1)?;
    let stride = stride.map_or(Ok(kernel.clone()), |s| per_axis("stride", s, dims, 1))?;
    let x = to_channels_first(x, last)?;
    let input = spatial(&x);
    let pads = Padding::read(padding, dims, last)?.resolve(&x.shape()[2..], &kernel, &stride);
    let mut output = Vec::with_capacity(dims);
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
    Ok(Ready { x, last, windows: Laid { kernel, stride, pad }, output })
}

/// Reads the arguments of an adaptive pooling over `dims` axes; `None` among the extents keeps the input's.
fn adaptive(x: &Tensor, dims: usize, output_size: &Value, data_format: &str) -> Result<Ready> {
    let last = channels_last(x, data_format, dims)?;
    let x = to_channels_first(x, last)?;
    let input = spatial(&x);
    let refuse = || Error::invalid(format!("output_size must be one int or {dims} (or None), got {output_size:?}"));
    let one = |v: &Value, a: usize| match v {
        Value::None => Ok(input[a]),
        Value::Int(n) => Ok(*n),
        _ => Err(refuse()),
    };
    let output: Vec<i64> = match output_size {
        Value::Ints(list) if list.len() == dims => list.to_vec(),
        Value::Ints(list) if list.len() == 1 => vec![list[0]; dims],
        Value::List(list) if list.len() == dims => {
            list.iter().enumerate().map(|(a, v)| one(v, a)).collect::<Result<_>>()?
        }
        Value::Ints(_) | Value::List(_) => return Err(refuse()),
        other => (0..dims).map(|a| one(other, a)).collect::<Result<_>>()?,
    };
    ensure!(output.iter().all(|&n| (0..1 << 31).contains(&n)), "output_size cannot be {output:?}");
    need_elements(&x, &output)?;
    Ok(Ready { x, last, windows: Laid { kernel: vec![], stride: vec![], pad: vec![] }, output })
}

impl Ready {
    fn max(&self, return_mask: bool) -> Result<Varying> {
        let Laid { kernel, stride, pad } = &self.windows;
        let out = self.x.try_max_pool(&**kernel, &**stride, &**pad, &*self.output, return_mask)?;
        // Paddle's mask is int32.
        let narrow = |t: Tensor| if t.dtype() == DType::Int64 { t.try_cast(DType::Int32) } else { Ok(t) };
        let finish = |t: Tensor| to_channels_last(narrow(t)?, self.last);
        Ok(Varying(out.0.into_iter().map(finish).collect::<Result<_>>()?))
    }

    fn avg(&self, exclusive: bool, divisor: Option<f64>) -> Result<Tensor> {
        let Laid { kernel, stride, pad } = &self.windows;
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
#[op(module = "nn.functional", samples = max2d_samples, onnx = "MaxPool")]
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

/// The average of each window of an image; the stride is the window's size unless given. Padding does not count unless
/// `exclusive` is false; `divisor_override` replaces the count.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.avg_pool2d(2).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = avg2d_samples, onnx = "AveragePool")]
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

/// Averages over windows that divide an image into `output_size` parts, as evenly as possible. `None` keeps an extent.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 2.0], [4.0, 3.0]]]]);
/// assert_eq!(x.adaptive_avg_pool2d(1).to_vec::<f32>(), [2.5]);
/// ```
#[op(module = "nn.functional", samples = adaptive2d_samples)]
fn adaptive_avg_pool2d(x: &Tensor, output_size: &Value, #[opt("NCHW")] data_format: &str) -> Result<Tensor> {
    adaptive(x, 2, output_size, data_format)?.avg(true, None)
}

fn index_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 1, 5]), 2, 1, [0, 1], 5],
        sample![distinct([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 2]],
    ]
}
fn max_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 1, 5]), 2, 1, [0, 1], 5],
        sample![distinct([1, 2, 4, 4]), 2, 2, [0, 0, 0, 0], [2, 2]],
        sample![distinct([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 2], true],
    ]
}
fn scatter_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 3, 2]), ints([2, 1, 3, 2], 0, 8), [4, 2]],
        sample![randn([2, 2, 3]), ints([2, 2, 3], 0, 2), 2],
    ]
}
fn gather_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 4, 2]), ints([2, 1, 3, 2], 0, 8)],
        sample![randn([2, 2, 3]), ints([2, 2, 5], 0, 3)],
        sample![randn([0, 2, 3]), ints([0, 2, 5], 0, 3)],
    ]
}
fn avg_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 5]), 2, 1, [0, 1], 5, false],
        sample![randn([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 3]],
        sample![randn([1, 1, 3, 2, 2]), 2, 1, [1, 0, 0, 0, 0, 0], [3, 1, 1], true, 3.0],
    ]
}
fn avg_unpool_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 5]), 2, 1, [0, 1], 5, false],
        sample![randn([1, 2, 2, 3]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [3, 4]],
    ]
}
fn max2d_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 2, 4, 4]), 2],
        sample![distinct([1, 2, 5, 4]), [3, 2], [2, 1], 1; ceil_mode = true],
        sample![distinct([1, 1, 5, 5]), 3, 2, [0, 1], true],
        sample![distinct([1, 5, 4, 2]), 3, 2, "SAME"; data_format = "NHWC"],
        sample![distinct([0, 2, 4, 4]), 2].no_peer("Paddle fails on empty batches"),
    ]
}
fn avg2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4, 4]), 2],
        sample![randn([1, 2, 5, 4]), [3, 2], [2, 1], 1; ceil_mode = true],
        sample![randn([1, 1, 5, 5]), 3, 2, [0, 1, 1, 0]; exclusive = false],
        sample![randn([1, 1, 5, 5]), 3, 2; divisor_override = 4],
        sample![randn([1, 1, 4, 4]), 3, 2, 1; divisor_override = 4]
            .no_peer("Paddle scales the exclusive average instead"),
        sample![randn([1, 5, 4, 2]), 3, 2, "SAME"; data_format = "NHWC"],
    ]
}
fn adaptive2d_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 4, 3]), 1],
        sample![randn([1, 2, 5, 4]), [3, 2]],
        sample![randn([1, 2, 3, 4]), Value::List(vec![Value::None, Value::Int(2)])],
        sample![randn([1, 5, 4, 2]), [2, 3]; data_format = "NHWC"],
    ]
}
