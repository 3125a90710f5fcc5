//! Sampling images and volumes at the places of a grid, and grids of affine maps.

use crate::GradOptions;
use crate::autograd::{enable_grad, grad, grad_enabled};
use crate::ops::joining::stack;
use crate::ops::pool_core::{need_float, planes};
use crate::ops::prelude::*;
use crate::ops::windows::spatial;
use sampan_kernels::grid_sample::{self as kernel, GridMode, GridShape, Outside};

/// How to sample, as words.
#[derive(Clone)]
struct How {
    mode: String,
    padding_mode: String,
    align_corners: bool,
}

impl How {
    fn new(mode: &str, padding_mode: &str, align_corners: bool) -> How {
        How { mode: mode.into(), padding_mode: padding_mode.into(), align_corners }
    }

    /// The kernel's description for an image of shape `x` and a grid.
    fn shape(&self, x: &[usize], grid: &Tensor) -> Result<GridShape> {
        let axes = x.len().wrapping_sub(2);
        let g = grid.shape();
        ensure!((2..=3).contains(&axes), "x must have 4 or 5 axes, it has {}", x.len());
        if g.len() != x.len() || g[0] != x[0] || g[g.len() - 1] != axes {
            let want = if axes == 2 { "[batch, height, width, 2]" } else { "[batch, depth, height, width, 3]" };
            return Err(Error::invalid(format!("grid must have the shape {want} with the batch of x, {}", x[0])));
        }
        let mode = match self.mode.as_str() {
            "bilinear" => GridMode::Linear,
            "nearest" => GridMode::Nearest,
            other => bail!("mode must be bilinear or nearest, got {other:?}"),
        };
        let outside = match self.padding_mode.as_str() {
            "zeros" => Outside::Zeros,
            "border" => Outside::Border,
            "reflection" => Outside::Reflection,
            other => bail!("padding_mode must be zeros, border or reflection, got {other:?}"),
        };
        let points = g[1..g.len() - 1].iter().product();
        ensure!(points == 0 || x[2..].iter().all(|&n| n > 0), "x has no elements to sample");
        let mut input = [1; 3];
        input[3 - axes..].copy_from_slice(&x[2..]);
        let align_corners = self.align_corners;
        Ok(GridShape { batch: x[0], channels: x[1], axes, input, points, mode, outside, align_corners })
    }

    fn sample(&self, x: &Tensor, grid: &Tensor) -> Tensor {
        let options = GridSampleOpts::new().mode(&self.mode).padding_mode(&self.padding_mode);
        x.grid_sample_with(grid, options.align_corners(self.align_corners))
    }

    fn scatter(&self, y: &Tensor, grid: &Tensor, input: &[i64]) -> Tensor {
        y.grid_scatter(grid, input, &self.mode, &self.padding_mode, self.align_corners)
    }

    fn slope(&self, y: &Tensor, x: &Tensor, grid: &Tensor) -> Tensor {
        y.grid_slope(x, grid, &self.mode, &self.padding_mode, self.align_corners)
    }
}

/// Both in the dtype they share, row-major.
fn ready(dtype: DType, t: &Tensor) -> Result<Tensor> {
    t.try_cast(dtype)?.try_contiguous()
}

fn shared_float(x: &Tensor, grid: &Tensor) -> Result<DType> {
    need_float(x)?;
    need_float(grid)?;
    Ok(promote_tensors(x, grid))
}

/// The image at the places of a grid whose last axis holds (x, y) or (x, y, z) from −1 to 1: between pixels by distance
/// (`bilinear`, also for volumes) or from the nearest one. Outside lie zeros, the border, or the image mirrored. With
/// `align_corners` −1 and 1 are the centres of the corner pixels, else their outer edges.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[[1.0f32, 3.0]]]]);
/// let grid = Tensor::new([[[[0.0f32, 0.0], [1.0, 0.0]]]]);
/// assert_eq!(x.grid_sample(&grid).to_vec::<f32>(), [2.0, 3.0]);
/// ```
#[op(module = "nn.functional", samples = sample_samples, onnx = "GridSample")]
fn grid_sample(
    cx: &Cx,
    x: &Tensor,
    grid: &Tensor,
    #[opt("bilinear")] mode: &str,
    #[opt("zeros")] padding_mode: &str,
    #[opt(true)] align_corners: bool,
) -> Result<Tensor> {
    let how = How::new(mode, padding_mode, align_corners);
    let s = how.shape(x.shape(), grid)?;
    let dtype = shared_float(x, grid)?;
    let mut shape = Shape::from_slice(&x.shape()[..2]);
    shape.extend_from_slice(&grid.shape()[1..grid.ndim() - 1]);
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let (x, grid) = (ready(dtype, x)?, ready(dtype, grid)?);
        kernel::grid_sample(&s, x.values().slice(), grid.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[x, grid], move |g| {
        let (x, grid) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || how.scatter(&g.grad(), grid, &spatial(x)).cast(x.dtype())),
            g.if_needed(1, || how.slope(&g.grad(), x, grid).cast(grid.dtype())),
        ])
    })
}

/// Zeros of the spatial extents `input` with each element of `y` added where `grid_sample` would have read it, in the same
/// shares: the gradient of `grid_sample` by its image.
#[op(
    internal,
    module = "nn.functional",
    samples = scatter_samples,
    peer = "lambda y, grid, n: torch_pull(lambda x: F.grid_sample(x, grid, align_corners=True), \
            torch.zeros(*y.shape[:2], *n), y)"
)]
fn grid_scatter(
    cx: &Cx,
    y: &Tensor,
    grid: &Tensor,
    input: &[i64],
    #[default("bilinear")] mode: &str,
    #[default("zeros")] padding_mode: &str,
    #[default(true)] align_corners: bool,
) -> Result<Tensor> {
    ensure!(y.ndim() == input.len() + 2, "{} spatial extents for y of rank {}", input.len(), y.ndim());
    let mut shape = Shape::from_slice(&y.shape()[..2]);
    shape.extend(crate::ops::shape::checked_shape(input)?);
    let how = How::new(mode, padding_mode, align_corners);
    let s = how.shape(&shape, grid)?;
    ensure!(y.shape()[2..] == grid.shape()[1..grid.ndim() - 1], "y and grid have different places");
    let dtype = shared_float(y, grid)?;
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let (y, grid) = (ready(dtype, y)?, ready(dtype, grid)?);
        let (dy, grid) = (y.values(), grid.values());
        kernel::grid_sample_backward_x(&s, grid.slice(), dy.slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[y, grid], move |g| {
        let (y, grid) = (g.saved(0), g.saved(1));
        Ok([
            g.if_needed(0, || how.sample(&g.grad(), grid).cast(y.dtype())),
            g.if_needed(1, || how.slope(y, &g.grad(), grid).cast(grid.dtype())),
        ])
    })
}

/// How the sum over channels of `y` times the sample of `x` grows with each number of the grid: the gradient of
/// `grid_sample` by its grid.
#[op(
    internal,
    module = "nn.functional",
    samples = slope_samples,
    peer = "lambda y, x, grid, mode='bilinear', padding='zeros', corners=True: \
            torch_pull(lambda z: F.grid_sample(x, z, mode, padding, corners), grid, y)",
    reference = slope_composite
)]
fn grid_slope(
    cx: &Cx,
    y: &Tensor,
    x: &Tensor,
    grid: &Tensor,
    #[default("bilinear")] mode: &str,
    #[default("zeros")] padding_mode: &str,
    #[default(true)] align_corners: bool,
) -> Result<Tensor> {
    let how = How::new(mode, padding_mode, align_corners);
    let s = how.shape(x.shape(), grid)?;
    let fits = y.ndim() == x.ndim() && y.shape()[..2] == x.shape()[..2];
    ensure!(fits && y.shape()[2..] == grid.shape()[1..grid.ndim() - 1], "y, x and grid do not belong together");
    let dtype = shared_float(x, grid)?;
    let out = cx.out(grid.shape(), dtype)?;
    cx.cpu(|| {
        let (y, x, grid) = (ready(dtype, y)?, ready(dtype, x)?, ready(dtype, grid)?);
        let (dy, x, grid) = (y.values(), x.values(), grid.values());
        let mut out = out.values_mut();
        kernel::grid_sample_backward_grid(&s, x.slice(), grid.slice(), dy.slice(), out.slice());
        Ok(())
    })?;
    // Third and higher orders are rare: they come from the composite that this kernel stands for.
    cx.grad(out, &[y, x, grid], move |g| {
        let composite =
            |t: &[Tensor]| slope_composite(&t[0], &t[1], &t[2], &how.mode, &how.padding_mode, how.align_corners);
        vector_jacobian(composite, &[g.saved(0), g.saved(1), g.saved(2)], g.grad())
    })
}

/// The gradient of `f` at `inputs`, recorded itself where the walk is.
pub(crate) fn vector_jacobian(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    g: Tensor,
) -> Result<Vec<Option<Tensor>>> {
    let create_graph = grad_enabled();
    enable_grad(|| {
        // Fresh handles keep the inner walk from running on into the history of the inputs.
        let fresh = |t: &&Tensor| match create_graph {
            true => t.try_reshape_to(t.shape()),
            false => Ok(t.detach().requires_grad_()),
        };
        let inputs = inputs.iter().map(fresh).collect::<Result<Vec<_>>>()?;
        let options = GradOptions { create_graph, allow_unused: true, ..Default::default() };
        let out = f(&inputs)?;
        if !out.requires_grad() {
            return Ok(vec![None; inputs.len()]);
        }
        grad(&[out], &inputs, &[Some(g)], options)
    })
}

/// For each place of a grid: flat indices of the corners around it `[batch, corners, places]`, 1 or 0 where they lie
/// inside, how far it lies above the lower pixel on each axis, and how fast that grows with the grid.
#[op(
    internal,
    module = "nn.functional",
    samples = corner_samples,
    peer = "none: covered by grid_slope, whose composite is made of it",
    results("corners", "inside", "above", "slope")
)]
fn grid_corners(
    cx: &Cx,
    grid: &Tensor,
    input: &[i64],
    #[default("zeros")] padding_mode: &str,
    #[default(true)] align_corners: bool,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    need_float(grid)?;
    ensure!(grid.ndim() == input.len() + 2, "{} spatial extents for a grid of rank {}", input.len(), grid.ndim());
    let mut image = Shape::from_slice(&[grid.shape()[0], 1]);
    image.extend(crate::ops::shape::checked_shape(input)?);
    let s = How::new("bilinear", padding_mode, align_corners).shape(&image, grid)?;
    let corners = [s.batch, 1 << s.axes, s.points];
    let dtype = grid.dtype();
    let (index, inside) = (cx.out(corners, DType::Int64)?, cx.out(corners, dtype)?);
    let (above, slope) = (cx.out(grid.shape(), dtype)?, cx.out(grid.shape(), dtype)?);
    cx.cpu(|| {
        let grid = grid.try_contiguous()?;
        let (mut index, mut inside) = (index.data_mut::<i64>(), inside.values_mut());
        let (mut above, mut slope) = (above.values_mut(), slope.values_mut());
        let grid = grid.values();
        kernel::grid_corners(&s, grid.slice(), index.slice(), inside.slice(), above.slice(), slope.slice());
        Ok(())
    })?;
    // Indices, and the slope, are constant between the kinks.
    cx.grad_from_output((index, inside, above, slope), &[], |g| Ok(g.grad_of(2) * g.output(3).detach()))
}

/// What `grid_slope` computes, from gathers and products.
fn slope_composite(
    y: &Tensor,
    x: &Tensor,
    grid: &Tensor,
    mode: &str,
    padding_mode: &str,
    align_corners: bool,
) -> Result<Tensor> {
    if mode == "nearest" {
        return Ok(grid * 0.0);
    }
    let (n, c, axes) = (x.shape()[0], x.shape()[1], x.ndim() - 2);
    let (index, inside, above, slope) = grid.try_grid_corners(spatial(x), padding_mode, align_corners)?;
    let points = index.shape()[2];
    let above = above.reshape_to([n, points, axes]);
    let (y, x) = (y.reshape_to([n, c, points]), x.reshape_to([n, c, planes_of(x)]));
    // Corner by corner: what lies there, weighted by the other axes, with the sign of this one.
    let mut sums: Vec<Option<Tensor>> = vec![None; axes];
    for corner in 0..1usize << axes {
        let at = index.try_select(1, corner)?.unsqueeze(1).expand([n, c, points]);
        let along = (y.clone() * x.gather_planes(&at)).sum(1) * inside.try_select(1, corner)?;
        for (axis, sum) in sums.iter_mut().enumerate() {
            let mut part = if corner >> axis & 1 == 1 { along.clone() } else { -along.clone() };
            for other in (0..axes).filter(|&o| o != axis) {
                let w = above.try_select(2, other)?;
                part = part * if corner >> other & 1 == 1 { w } else { 1.0 - w };
            }
            *sum = Some(match sum.take() {
                Some(s) => s + part,
                None => part,
            });
        }
    }
    let sums: Vec<Tensor> = sums.into_iter().flatten().collect();
    Ok(stack(&sums, 2).reshape_to(grid.shape()) * slope)
}

fn planes_of(x: &Tensor) -> usize {
    x.numel().checked_div(planes(x)).unwrap_or(0)
}

/// The grid for `grid_sample` on which an affine map `theta` (`[batch, 2, 3]` or `[batch, 3, 4]`) sends the places of an
/// image or volume of shape `out_shape`.
///
/// ```
/// # use sampan_core::Tensor;
/// let identity = Tensor::new([[[1.0f32, 0.0, 0.0], [0.0, 1.0, 0.0]]]);
/// let grid = identity.affine_grid([1, 1, 2, 2]);
/// assert_eq!(grid.to_vec::<f32>(), [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0]);
/// ```
#[op(module = "nn.functional", samples = affine_samples)]
fn affine_grid(theta: &Tensor, out_shape: &Value, #[opt(true)] align_corners: bool) -> Result<Tensor> {
    need_float(theta)?;
    let shape: Vec<i64> = match out_shape {
        Value::Ints(v) => v.to_vec(),
        Value::Tensor(t) if t.device() == Device::Meta => {
            bail!("the result's shape depends on the values of out_shape, which a meta tensor lacks")
        }
        Value::Tensor(t) => t.detach().try_cast(DType::Int64)?.try_to_vec()?,
        other => bail!("out_shape must be a list of ints or a Tensor, got {}", other.type_name()),
    };
    let axes = shape.len().wrapping_sub(2);
    ensure!((2..=3).contains(&axes), "out_shape must have 4 or 5 extents, got {shape:?}");
    let extents = crate::ops::shape::checked_shape(&shape)?;
    let want = [extents[0], axes, axes + 1];
    ensure!(theta.shape() == want, "theta must have the shape {want:?} for out_shape {shape:?}");
    let extents = &extents[2..];
    let points = crate::shape::checked_numel(extents)?;
    // Each place in homogeneous coordinates, the fastest axis first.
    let mut places = Vec::with_capacity(points * (axes + 1));
    for p in 0..points {
        let mut rest = p;
        for &n in extents.iter().rev() {
            let i = (rest % n) as f64;
            rest /= n;
            places.push(match (align_corners, n) {
                (true, 1) => 0.0,
                (true, _) => 2.0 * i / (n as f64 - 1.0) - 1.0,
                (false, _) => (2.0 * i + 1.0) / n as f64 - 1.0,
            });
        }
        places.push(1.0);
    }
    let base = Tensor::try_from_slice(&places, [points, axes + 1])?.try_cast(theta.dtype())?;
    let mut out = vec![shape[0]];
    out.extend_from_slice(&shape[2..]);
    out.push(axes as i64);
    base.unsqueeze(0).try_matmul(&theta.transpose_last())?.try_reshape_to(out)
}

/// Places off the kinks of all samples below.
fn places(shape: impl AsRef<[usize]>) -> Tensor {
    let t = uniform(shape, -1.0, 1.0);
    let shape = t.shape().to_vec();
    // Halves of pixels of images with 2 to 4 pixels an axis lie on multiples of 1/12.
    values(t.to_vec::<f32>().iter().map(|v| (v * 12.0).floor() / 12.0 + 0.031).collect::<Vec<_>>(), shape)
}
fn sample_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3, 3]), places([2, 2, 2, 2])],
        sample![randn([1, 1, 3, 4]), places([1, 2, 2, 2]); align_corners = false],
        sample![randn([1, 1, 3, 4]), places([1, 2, 2, 2]) * 1.7; padding_mode = "border"],
        sample![randn([1, 1, 3, 4]), places([1, 2, 2, 2]) * 1.7; padding_mode = "reflection", align_corners = false],
        sample![randn([1, 1, 3, 4]), places([1, 2, 2, 2]) * 1.7; padding_mode = "reflection"],
        sample![randn([1, 2, 3, 4]), places([1, 2, 3, 2]); mode = "nearest", align_corners = false],
        sample![randn([1, 1, 2, 3, 2]), places([1, 1, 2, 2, 3])],
    ]
}
fn scatter_samples() -> Vec<Sample> {
    vec![sample![randn([1, 2, 2, 2]), places([1, 2, 2, 2]), [3, 4]]]
}
fn slope_samples() -> Vec<Sample> {
    vec![
        sample![randn([1, 2, 2, 2]), randn([1, 2, 3, 4]), places([1, 2, 2, 2])],
        sample![
            randn([1, 1, 1, 1, 2]),
            randn([1, 1, 2, 3, 2]),
            places([1, 1, 1, 2, 3]),
            "bilinear",
            "reflection",
            false
        ],
        sample![randn([1, 2, 2, 2]), randn([1, 2, 3, 4]), places([1, 2, 2, 2]), "nearest"],
    ]
}
fn corner_samples() -> Vec<Sample> {
    vec![sample![places([1, 2, 2, 2]), [3, 4]], sample![places([1, 2, 2, 2]), [3, 4], "reflection", false]]
}
fn affine_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 2, 3]), [2, 3, 2, 3]],
        sample![randn([1, 2, 3]), [1, 1, 3, 2]; align_corners = false],
        sample![randn([1, 3, 4]), [1, 1, 2, 2, 3]],
        sample![randn([1, 3, 4]), [1, 1, 1, 2, 3]; align_corners = false],
        sample![randn([1, 2, 3]), values([1i64, 1, 2, 2], [4])],
    ]
}
