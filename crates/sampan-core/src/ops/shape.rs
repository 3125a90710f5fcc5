//! Shapes, views and dtype casts.

use super::prelude::*;

/// A shape without negative extents, or an error.
pub(crate) fn checked_shape(shape: &[i64]) -> Result<Shape> {
    shape
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| Error::invalid(format!("a shape cannot hold {n}: {shape:?}"))))
        .collect()
}

/// The values in another dtype. Floats become integers by dropping the fraction; a nonzero number is true.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::new([1.7f32, -1.7]).cast(DType::Int64).to_vec::<i64>(), [1, -1]);
/// ```
#[op(inplace, samples = cast_samples, onnx = "Cast", also("Tensor.astype"))]
fn cast(cx: &Cx, x: &Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype {
        return cx.grad(x.clone(), &[], |g| Ok(g.grad()));
    }
    let out = cx.out(x.shape(), dtype)?;
    cx.cpu(|| {
        match_dtype!(x.dtype(), A => match_dtype!(dtype, B => {
            sampan_kernels::copy::cast::<A, B>(x.data::<A>().view(), out.data_mut::<B>().slice())
        }));
        Ok(())
    })?;
    let from = x.dtype();
    cx.grad(out, &[], move |g| Ok(g.grad().cast(from)))
}

/// The same values in row-major memory; the tensor itself if it is so already.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([[1i64, 2], [3, 4]]).t().contiguous().is_contiguous());
/// ```
#[op(samples = view_samples)]
fn contiguous(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = if x.is_contiguous() { x.clone() } else { x.try_clone_data()? };
    cx.grad(out, &[], |g| Ok(g.grad()))
}

/// The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).reshape([2, -1]).shape(), [2, 2]);
/// ```
#[op(inplace, samples = reshape_samples, onnx = "Reshape")]
fn reshape(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.try_reshape_to(reshape_target(x.shape(), shape)?)
}

/// The same values under exactly this shape, in which a zero is a zero; a view wherever the memory allows.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([0, 3], DType::Float32).reshape_to([3, 0]).shape(), [3, 0]);
/// ```
#[op(samples = reshape_to_samples, peer = "none: Paddle's reshape reads 0 as keep")]
fn reshape_to(cx: &Cx, x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    let (have, want) = (x.numel(), crate::shape::checked_numel(&shape)?);
    ensure!(have == want, "{have} elements cannot be arranged as {shape:?}, which has {want}");
    let out = match x.layout().reshape(&shape) {
        Some(layout) => x.view(layout),
        None => x.try_clone_data()?.view(Layout::contiguous(&shape)),
    };
    let from = x.shape_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().reshape_to(&from)))
}

/// The extents a reshape asks for, with -1 and 0 worked out.
fn reshape_target(from: &[usize], to: &[i64]) -> Result<Shape> {
    let numel: usize = from.iter().product();
    let mut shape = Shape::new();
    let mut free = None;
    for (i, &n) in to.iter().enumerate() {
        shape.push(match n {
            -1 if free.is_some() => bail!("only one extent may be -1, got {to:?}"),
            -1 => {
                free = Some(i);
                1
            }
            0 if i < from.len() => from[i],
            0 if numel == 0 => 0,
            0 => {
                bail!("extent 0 at position {i} keeps the input's extent there, but the input has rank {}", from.len())
            }
            n if n < 0 => bail!("a shape cannot hold {n}: {to:?}"),
            n => n as usize,
        });
    }
    let known: usize = shape.iter().product();
    if let Some(i) = free {
        ensure!(known > 0 && numel % known == 0, "{numel} elements cannot be arranged as {to:?}");
        shape[i] = numel / known;
    }
    let have: usize = shape.iter().product();
    ensure!(have == numel, "{numel} elements cannot be arranged as {to:?}, which has {have}");
    Ok(shape)
}

/// The axes in another order.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2, 3]]).transpose([1, 0]).shape(), [3, 1]);
/// ```
#[op(inplace, samples = transpose_samples, onnx = "Transpose")]
fn transpose(cx: &Cx, x: &Tensor, perm: &[i64]) -> Result<Tensor> {
    ensure!(perm.len() == x.ndim(), "perm {perm:?} must name all {} axes once", x.ndim());
    let mut order = Shape::new();
    for &p in perm {
        let a = resolve_axis(p, x.ndim())?;
        ensure!(!order.contains(&a), "perm {perm:?} names axis {a} twice");
        order.push(a);
    }
    let l = x.layout();
    let out = x.view(Layout {
        shape: order.iter().map(|&a| l.shape[a]).collect(),
        strides: order.iter().map(|&a| l.strides[a]).collect(),
        offset: l.offset,
    });
    let mut back = vec![0i64; order.len()];
    order.iter().enumerate().for_each(|(i, &a)| back[a] = i as i64);
    cx.grad(out, &[], move |g| Ok(g.grad().transpose(back.as_slice())))
}

impl Tensor {
    /// The last two axes swapped, as a view.
    pub(crate) fn transpose_last(&self) -> Tensor {
        let n = self.ndim() as i64;
        let mut perm: Vec<i64> = (0..n).collect();
        perm.swap(n as usize - 1, n as usize - 2);
        self.transpose(perm)
    }
}

/// The transpose of a tensor of at most two axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).t().to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(inplace, samples = t_samples)]
fn t(x: &Tensor) -> Result<Tensor> {
    match x.ndim() {
        0 | 1 => Ok(x.clone()),
        2 => x.try_transpose([1, 0]),
        n => bail!("x has rank {n}; t() takes at most 2, use transpose with perm"),
    }
}

/// A view that repeats axes of extent 1 (and new leading axes) without copying. -1 keeps an extent.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64], [2]]).expand([2, 3]).to_vec::<i64>(), [1, 1, 1, 2, 2, 2]);
/// ```
#[op(samples = expand_samples, onnx = "Expand", also("broadcast_to"))]
fn expand(cx: &Cx, x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    ensure!(shape.len() >= x.ndim(), "shape {shape:?} has fewer axes than x");
    let lead = shape.len() - x.ndim();
    let mut target = Shape::new();
    for (i, &n) in shape.iter().enumerate() {
        let have = if i < lead { 1 } else { x.shape()[i - lead] };
        let want = match n {
            -1 if i >= lead => have,
            n if n < 0 => bail!("a new axis needs an extent, got {n} in {shape:?}"),
            n => n as usize,
        };
        ensure!(have == want || have == 1, "axis {i} has extent {have} and cannot be expanded to {want}");
        target.push(want);
    }
    let out = x.view(x.layout().broadcast_to(&target));
    let from = x.shape_vec();
    cx.grad(out, &[], move |g| Ok(super::elementwise::sum_to(&g.grad(), &from)))
}

/// Drops axes of extent 1: all of them, or those named (others among the named stay).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[[1i64, 2]]]).squeeze(0).shape(), [1, 2]);
/// ```
#[op(inplace, samples = squeeze_samples, onnx = "Squeeze")]
fn squeeze(x: &Tensor, #[default(None)] axis: Axes) -> Result<Tensor> {
    let mask = axis.mask(x.ndim())?;
    let shape: Shape = x.shape().iter().zip(&mask).filter(|&(&n, &m)| n != 1 || !m).map(|(&n, _)| n).collect();
    x.try_reshape_to(shape)
}

/// Inserts axes of extent 1 at the named places of the result.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2]).unsqueeze([0, 2]).shape(), [1, 2, 1]);
/// ```
#[op(inplace, samples = unsqueeze_samples, onnx = "Unsqueeze")]
fn unsqueeze(x: &Tensor, axis: &[i64]) -> Result<Tensor> {
    let mut shape = x.shape_vec();
    for &a in axis {
        let a = resolve_axis(a, shape.len() + 1)?;
        shape.insert(a, 1);
    }
    x.try_reshape_to(shape)
}

fn cast_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), DType::Float64],
        sample![randn([2, 3]), DType::Int32],
        sample![ints([3], -2, 3), DType::Bool],
    ]
}
fn view_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([])]]
}
fn reshape_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 6]), [3, -1]],
        sample![randn([2, 6]), [0, 2, 3]],
        sample![randn([]), [1, 1]],
        sample![randn([0, 3]), [0, 6]],
    ]
}
fn reshape_to_samples() -> Vec<Sample> {
    vec![sample![randn([2, 6]), [3, 4]], sample![randn([0, 3]), [3, 0]]]
}
fn transpose_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 4]), [2, 0, 1]], sample![randn([]), Vec::<i64>::new()]]
}
fn t_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([3])], sample![randn([])]]
}
fn expand_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 1]), [2, 3]],
        sample![randn([3]), [2, -1]],
        sample![randn([]), [2]],
        sample![randn([1, 3]), [0, 3]],
    ]
}
fn squeeze_samples() -> Vec<Sample> {
    vec![sample![randn([1, 2, 1])], sample![randn([1, 2, 1]), [0, 1]], sample![randn([1, 0])]]
}
fn unsqueeze_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), [0, 2]], sample![randn([]), 0], sample![randn([0, 3]), -1]]
}

/// The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([2, 3, 4], DType::Float32).flatten(1, -1).shape(), [2, 12]);
/// ```
#[op(inplace, samples = flatten_samples, alias(start_dim = start_axis, end_dim = stop_axis))]
fn flatten(x: &Tensor, #[default(0)] start_axis: i64, #[default(-1)] stop_axis: i64) -> Result<Tensor> {
    let (start, stop) = (resolve_axis(start_axis, x.ndim())?, resolve_axis(stop_axis, x.ndim())?);
    ensure!(start <= stop, "start_axis {start_axis} lies after stop_axis {stop_axis}");
    let shape = x.shape();
    let merged = shape.get(start..=stop).map_or(1, |s| s.iter().product());
    let tail = shape.get(stop + 1..).unwrap_or_default();
    x.try_reshape_to([&shape[..start], &[merged], tail].concat())
}

/// Axes moved to other places; the others keep their order.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([2, 3, 4], DType::Float32).moveaxis(0, 2).shape(), [3, 4, 2]);
/// ```
#[op(samples = moveaxis_samples, also("movedim"))]
fn moveaxis(x: &Tensor, source: &[i64], destination: &[i64]) -> Result<Tensor> {
    ensure!(source.len() == destination.len(), "source {source:?} and destination {destination:?} differ in length");
    let rank = x.ndim();
    let mut perm: Vec<Option<i64>> = vec![None; rank];
    let mut left: Vec<i64> = (0..rank as i64).collect();
    for (&s, &d) in source.iter().zip(destination) {
        let (s, d) = (resolve_axis(s, rank)? as i64, resolve_axis(d, rank)?);
        if rank == 0 {
            continue;
        }
        ensure!(left.contains(&s), "source {source:?} names axis {s} twice");
        ensure!(perm[d].is_none(), "destination {destination:?} names axis {d} twice");
        left.retain(|&a| a != s);
        perm[d] = Some(s);
    }
    let mut left = left.into_iter();
    x.try_transpose(perm.into_iter().map(|p| p.or_else(|| left.next()).unwrap_or_default()).collect::<Vec<i64>>())
}

fn flatten_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 4])],
        sample![randn([2, 3, 4]), 1],
        sample![randn([2, 3, 4]), 0, 1],
        sample![randn([])],
        sample![randn([0, 3])],
    ]
}
fn moveaxis_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 4]), 0, -1], sample![randn([2, 3, 4]), [0, 2], [1, 0]], sample![randn([2, 3]), [0], [1]]]
}
