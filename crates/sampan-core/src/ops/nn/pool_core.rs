//! The primitives that all pooling comes down to, on channels-first data with one, two or three spatial axes.
//!
//! An empty `kernel` means adaptive windows, which divide the input as evenly as possible; `shift` means windows at
//! fractional steps. Max pooling is a gather by index; the gradient of a gather is a scatter and
//! the other way round, and averages and their gradients are each other's transposes, so every order exists.

use crate::gpu;
use crate::ops::prelude::*;
use crate::ops::windows::{Sizes, lifted, per_axis, spatial};
use sampan_kernels::pool::{self, Divisor, PoolShape, Windows};

/// Windows over an image, as the primitives take them.
#[derive(Clone)]
pub(super) struct Laid {
    pub kernel: Sizes,
    pub stride: Sizes,
    /// Before each axis, then after each.
    pub pad: Sizes,
    /// The shift of fractional windows.
    pub shift: Option<f64>,
}

impl Laid {
    /// Reads the arguments of a primitive.
    fn new(dims: usize, kernel: &[i64], stride: &[i64], pad: &[i64], shift: Option<f64>) -> Result<Laid> {
        ensure!((1..=3).contains(&dims), "x must have three to five axes");
        if kernel.is_empty() {
            return Ok(Laid { shift, ..Laid::adaptive() });
        }
        if shift.is_some() {
            return Ok(Laid { kernel: per_axis("kernel", kernel, dims, 1)?, shift, ..Laid::adaptive() });
        }
        ensure!(pad.len() == 2 * dims && pad.iter().all(|&p| p >= 0), "pad needs {} numbers, got {pad:?}", 2 * dims);
        let (kernel, stride) = (per_axis("kernel", kernel, dims, 1)?, per_axis("stride", stride, dims, 1)?);
        Ok(Laid { kernel, stride, pad: Sizes::from_slice(pad), shift: None })
    }

    /// As evenly as possible.
    pub fn adaptive() -> Laid {
        Laid { kernel: Sizes::new(), stride: Sizes::new(), pad: Sizes::new(), shift: None }
    }

    fn shape(&self, planes: usize, input: &[i64], output: &[i64]) -> PoolShape {
        let dims = input.len();
        let windows = if let Some(u) = self.shift {
            Windows::Fractional { kernel: lifted(&self.kernel, 0), u: u as f32 }
        } else if self.kernel.is_empty() {
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

pub(super) fn planes(x: &Tensor) -> usize {
    x.shape()[0] * x.shape()[1]
}

/// The shape of `x` with other spatial extents.
pub(super) fn resized(x: &Tensor, extents: &[i64]) -> Result<Shape> {
    ensure!(x.ndim() == extents.len() + 2, "{} spatial extents for x of rank {}", extents.len(), x.ndim());
    let mut shape = Shape::from_slice(&x.shape()[..2]);
    shape.extend(crate::ops::shape::checked_shape(extents)?);
    // Windows are listed axis by axis, three numbers each, also where there is no plane to pool.
    crate::shape::check_room(shape[2..].iter().sum::<usize>().saturating_mul(3))?;
    Ok(shape)
}

pub(super) fn need_float(x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!("x must be a float tensor, got {}", x.dtype())).hint("cast(\"float32\") first"))
}

/// An adaptive window or a maximum needs elements to choose from.
pub(super) fn need_elements(x: &Tensor, output: &[i64]) -> Result<()> {
    let empty = x.shape()[2..].contains(&0) && !output.contains(&0);
    ensure!(!empty, "x has no elements to pool");
    Ok(())
}

/// Places of the largest element of each window in its flattened input plane, int64; of equals the first.
#[op(internal, non_diff, module = "nn.functional", samples = index_samples)]
fn max_pool_index(
    cx: &Cx,
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    output: &[i64],
    #[default(None)] shift: Option<f64>,
) -> Result<Tensor> {
    let shape = resized(x, output)?;
    need_float(x)?;
    need_elements(x, output)?;
    let s = Laid::new(output.len(), kernel, stride, pad, shift)?.shape(planes(x), &spatial(x), output);
    let out = cx.out(&shape, DType::Int64)?;
    cx.run(
        || {
            let x = x.in_rows()?;
            pool::max_index(&s, x.values().slice(), out.data_mut::<i64>().slice());
            Ok(())
        },
        |gpu| gpu::pool::max_pool(gpu, &s, x, None, Some(&out)),
    )?;
    Ok(out)
}

/// The largest element of each window, and with `return_mask` its place in the flattened input plane.
#[op(internal, module = "nn.functional", samples = max_samples, results("out", "indices"))]
fn max_pool(
    cx: &Cx,
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    output: &[i64],
    #[default(false)] return_mask: bool,
    #[default(None)] shift: Option<f64>,
) -> Result<Varying> {
    let shape = resized(x, output)?;
    need_float(x)?;
    need_elements(x, output)?;
    let layout = Laid::new(output.len(), kernel, stride, pad, shift)?;
    let (input, output) = (spatial(x), Sizes::from_slice(output));
    let s = layout.shape(planes(x), &input, &output);
    let out = cx.out(&shape, x.dtype())?;
    if return_mask {
        let mask = cx.out(&shape, DType::Int64)?;
        cx.run(
            || {
                let x = x.in_rows()?;
                let mut mask = mask.data_mut::<i64>();
                pool::max_pool_with_index(&s, x.values().slice(), out.values_mut().slice(), mask.slice());
                Ok(())
            },
            |gpu| gpu::pool::max_pool(gpu, &s, x, Some(&out), Some(&mask)),
        )?;
        return cx.grad_from_output(Varying(vec![out, mask]), &[], move |g| {
            Ok(g.grad().scatter_planes(g.output(1), input.as_slice()))
        });
    }
    cx.run(
        || {
            let x = x.in_rows()?;
            pool::max_pool(&s, x.values().slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| gpu::pool::max_pool(gpu, &s, x, Some(&out), None),
    )?;
    // Places are found again rather than kept: `x` is alive anyway, and inference never needs them.
    cx.grad(Varying(vec![out]), &[x], move |g| {
        let Laid { kernel, stride, pad, shift } = &layout;
        Ok(g.grad().max_pool_grad(&g.saved(0).detach(), &**kernel, &**stride, &**pad, *shift))
    })
}

/// Brings each element of `grad` to where the largest element of its window lies in `x`: the gradient of `max_pool`.
#[op(internal, module = "nn.functional", samples = grad_samples, peer = "none: max_pool, whose gradient it is, has one")]
fn max_pool_grad(
    cx: &Cx,
    grad: &Tensor,
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    pad: &[i64],
    #[default(None)] shift: Option<f64>,
) -> Result<Tensor> {
    need_float(x)?;
    ensure!(x.dtype() == grad.dtype(), "x has dtype {}, grad {}", x.dtype(), grad.dtype());
    ensure!(x.ndim() >= 3 && x.ndim() == grad.ndim(), "x and grad must have one rank, of three axes or more");
    ensure!(x.shape()[..2] == grad.shape()[..2], "x and grad differ in batch or channels");
    let output = spatial(grad);
    need_elements(x, &output)?;
    let layout = Laid::new(output.len(), kernel, stride, pad, shift)?;
    let s = layout.shape(planes(x), &spatial(x), &output);
    let out = cx.out(x.shape(), x.dtype())?;
    cx.run(
        || {
            let (x, grad) = (x.in_rows()?, grad.in_rows()?);
            pool::max_pool_grad(&s, x.values().slice(), grad.values().slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| gpu::pool::max_pool_grad(gpu, &s, x, grad, &out),
    )?;
    cx.grad(out, &[x], move |g| {
        let Laid { kernel, stride, pad, shift } = &layout;
        let index = g.saved(0).detach().max_pool_index(&**kernel, &**stride, &**pad, &*output, *shift);
        Ok([Some(g.grad().gather_planes(&index)), None])
    })
}

/// Planes as rows.
fn flat_planes(x: &Tensor) -> Result<Tensor> {
    let elements = x.shape()[2..].iter().product();
    Ok(x.detach().view(Layout { offset: x.layout().offset, ..Layout::contiguous([planes(x), elements]) }))
}

const PLACES: sampan_cuda::index::Rule = sampan_cuda::index::Rule { op: "max_unpool", wrap: false, skip: None };

/// Checks indices into planes of `len` elements.
pub(super) fn check_index(index: &Tensor, len: usize) -> Result<()> {
    let index = index.in_rows()?;
    let data = index.data::<i64>();
    match data.slice().iter().find(|&&i| i < 0 || i >= len as i64) {
        Some(i) => Err(Error::range(format!("index {i} lies outside a plane of {len} elements"))),
        None => Ok(()),
    }
}

pub(super) fn index_like(x: &Tensor, index: &Tensor) -> Result<()> {
    ensure!(x.ndim() >= 3, "x must have at least three axes");
    ensure!(index.dtype() == DType::Int64, "indices must be int64, got {}", index.dtype());
    ensure!(x.shape()[..2] == index.shape()[..2.min(index.ndim())], "x and indices differ in batch or channels");
    Ok(())
}

/// Zeros of the spatial extents `output` with each element of `x` added at its index in the flattened plane: the
/// transpose of `gather_planes`.
#[op(
    internal,
    module = "nn.functional",
    samples = scatter_samples,
    peer = "lambda x, i, n: torch.zeros(*x.shape[:2], np.prod(n)).scatter_add(2, i.flatten(2), x.flatten(2)) \
            .unflatten(2, np.atleast_1d(n).tolist())"
)]
fn scatter_planes(cx: &Cx, x: &Tensor, index: &Tensor, output: &[i64]) -> Result<Tensor> {
    index_like(x, index)?;
    need_float(x)?;
    ensure!(x.shape() == index.shape(), "x and index must have the same shape");
    let shape = resized(x, output)?;
    let out = cx.out(&shape, x.dtype())?;
    cx.run(
        || {
            check_index(index, shape[2..].iter().product())?;
            let (x, index) = (x.in_rows()?, index.in_rows()?);
            let (dy, index) = (x.values(), index.data::<i64>());
            pool::max_pool_backward(planes(&x), dy.slice(), index.slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let (x, index) = (flat_planes(&x.in_rows()?)?, flat_planes(&index.in_rows()?)?);
            gpu::fill(gpu, Scalar::Int(0), &out, out.layout().clone())?;
            gpu::index::add_along(gpu, PLACES, &x, 1, &index, &flat_planes(&out)?)
        },
    )?;
    cx.grad(out, &[index], |g| Ok([Some(g.grad().gather_planes(g.saved(0))), None]))
}

/// The elements of `x` at indices into its flattened planes.
#[op(
    internal,
    module = "nn.functional",
    samples = gather_samples,
    peer = "lambda x, i: torch.gather(x.flatten(2), 2, i.flatten(2)).reshape(i.shape)"
)]
fn gather_planes(cx: &Cx, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    index_like(x, index)?;
    need_float(x)?;
    let out = cx.out(index.shape(), x.dtype())?;
    let input = spatial(x);
    cx.run(
        || {
            check_index(index, x.shape()[2..].iter().product())?;
            let (x, index) = (x.in_rows()?, index.in_rows()?);
            let (x_data, index) = (x.values(), index.data::<i64>());
            pool::gather_by_index(planes(&x), x_data.slice(), index.slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let (x, index) = (flat_planes(&x.in_rows()?)?, flat_planes(&index.in_rows()?)?);
            gpu::index::along(gpu, PLACES, &x, 1, &index, &flat_planes(&out)?)
        },
    )?;
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
#[op(internal, module = "nn.functional", samples = avg_samples, flops = crate::ops::work::pool_flops)]
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
    let layout = Laid::new(output.len(), kernel, stride, pad, None)?;
    let by = divisor(exclusive, divide_by)?;
    let input = spatial(x);
    let s = layout.shape(planes(x), &input, output);
    let out = cx.out(&shape, x.dtype())?;
    cx.run(
        || {
            let x = x.in_rows()?;
            pool::avg_pool(&s, by, x.values().slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| gpu::pool::average(gpu, &s, by, false, x, &out),
    )?;
    cx.grad(out, &[], move |g| {
        let Laid { kernel, stride, pad, .. } = &layout;
        Ok(g.grad().avg_unpool(&**kernel, &**stride, &**pad, &*input, exclusive, divide_by))
    })
}

/// Each element's share given back to all of its window, to the spatial extents `input`: the transpose of `avg_pool`.
#[op(internal, module = "nn.functional", samples = avg_unpool_samples)]
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
    let layout = Laid::new(input.len(), kernel, stride, pad, None)?;
    let by = divisor(exclusive, divide_by)?;
    let output = spatial(y);
    let s = layout.shape(planes(y), input, &output);
    let out = cx.out(&shape, y.dtype())?;
    cx.run(
        || {
            let y = y.try_contiguous()?;
            pool::avg_pool_backward(&s, by, y.values().slice(), out.values_mut().slice());
            Ok(())
        },
        |gpu| gpu::pool::average(gpu, &s, by, true, y, &out),
    )?;
    cx.grad(out, &[], move |g| {
        let Laid { kernel, stride, pad, .. } = &layout;
        Ok(g.grad().avg_pool(&**kernel, &**stride, &**pad, &*output, exclusive, divide_by))
    })
}

// Padding only at the end is asked of the peer as an input with one element more.

fn index_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 1, 5]), 2, 1, [0, 1], 5]
            .peer("lambda x, *_: F.max_pool1d(F.pad(x, (0, 1), value=-torch.inf), 2, 1, return_indices=True)[1]"),
        sample![distinct([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 2]]
            .peer("lambda x, *_: torch.nn.functional.adaptive_max_pool2d(x, 2, True)[1]"),
    ]
}
fn grad_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 5]), distinct([2, 1, 5]), 2, 1, [0, 1]],
        sample![randn([1, 2, 2, 2]), distinct([1, 2, 4, 5]), 2, 2, [0, 0, 0, 0]],
        sample![randn([1, 2, 2, 2]), distinct([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new()],
    ]
}
fn max_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 1, 5]), 2, 1, [0, 1], 5]
            .peer("lambda x, *_: F.max_pool1d(F.pad(x, (0, 1), value=-torch.inf), 2, 1)"),
        sample![distinct([1, 2, 4, 4]), 2, 2, [0, 0, 0, 0], [2, 2]]
            .peer("lambda x, *_: torch.nn.functional.max_pool2d(x, 2)"),
        sample![distinct([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 2], true]
            .peer("lambda x, *_: torch.nn.functional.adaptive_max_pool2d(x, 2, True)"),
        sample![distinct([1, 2, 5]), 2, 1, Vec::<i64>::new(), 3, false, 0.4]
            .peer("lambda x, *_: F.fractional_max_pool2d(x[..., None], [3, 1], [2, 1], 0.4)[..., 0]"),
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
        sample![randn([2, 1, 5]), 2, 1, [0, 1], 5, false]
            .peer("lambda x, *_: torch.nn.functional.avg_pool1d(F.pad(x, (0, 1)), 2, 1)"),
        sample![randn([1, 2, 3, 4]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [2, 3]]
            .peer("lambda x, *_: torch.nn.functional.adaptive_avg_pool2d(x, (2, 3))"),
        sample![randn([1, 1, 3, 2, 2]), 2, 1, [1, 0, 0, 0, 0, 0], [3, 1, 1], true, 3.0].peer(
            "lambda x, *_: torch.nn.functional.avg_pool3d(F.pad(x, (0, 0, 0, 0, 1, 0)), 2, 1, divisor_override=3)",
        ),
    ]
}
fn avg_unpool_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1, 5]), 2, 1, [0, 1], 5, false]
            .peer("lambda y, *_: torch_pull(lambda x: F.avg_pool1d(F.pad(x, (0, 1)), 2, 1), torch.zeros(2, 1, 5), y)"),
        sample![randn([1, 2, 2, 3]), Vec::<i64>::new(), 1, Vec::<i64>::new(), [3, 4]]
            .peer("lambda y, *_: torch_pull(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), torch.zeros(1, 2, 3, 4), y)"),
    ]
}
