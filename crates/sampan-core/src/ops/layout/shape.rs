//! Shapes, views and dtype casts.

use crate::ops::prelude::*;

/// A shape without negative extents, or an error.
pub(crate) fn checked_shape(shape: &[i64]) -> Result<Shape> {
    let one = |&n| usize::try_from(n).map_err(|_| Error::invalid(format!("a shape cannot hold {n}: {shape:?}")));
    let shape: Shape = shape.iter().map(one).collect::<Result<_>>()?;
    crate::shape::checked_numel(&shape)?;
    Ok(shape)
}

/// The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
/// become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
/// wrap around. A nonzero number is true. Of a complex number real types take the real part.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::new([1.7f32, -1.7]).cast(DType::Int64).to_vec::<i64>(), [1, -1]);
/// assert_eq!(Tensor::new([f32::INFINITY, -1e30]).cast(DType::Int32).to_vec::<i32>(), [i32::MAX, i32::MIN]);
/// ```
#[op(inplace, complex, samples = cast_samples, onnx = "Cast", also("Tensor.astype"), amp = "keep")]
fn cast(cx: &Cx, x: &Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype {
        return cx.grad(x.lazy_copy(x.layout().clone())?, &[], |g| Ok(g.grad()));
    }
    let out = if x.ndim() > 3 { cx.out_like(&[x], x.shape(), dtype)? } else { cx.out(x.shape(), dtype)? };
    cx.run(
        || {
            sampan_kernels::cast::cast(x.values().view(), out.values_mut().slice());
            Ok(())
        },
        |gpu| crate::gpu::cast(gpu, x, &out).map(|()| true),
    )?;
    let from = x.dtype();
    cx.grad(out, &[], move |g| Ok(g.grad().cast(from)))
}

/// The same values in row-major memory; the tensor itself if it is so already.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([[1i64, 2], [3, 4]]).t().contiguous().is_contiguous());
/// ```
#[op(complex, samples = view_samples)]
fn contiguous(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = if x.is_contiguous() { x.clone() } else { x.try_clone_data()? };
    cx.grad(out, &[], |g| Ok(g.grad()))
}

/// The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent, but in
/// the shape of an empty tensor it is a zero, and -1 beside it takes up the input's other extents.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).reshape([2, -1]).shape(), [2, 2]);
/// ```
#[op(inplace, complex, samples = reshape_samples, onnx = "Reshape")]
fn reshape(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.try_reshape_to(reshape_target(x.shape(), shape)?)
}

/// The same values under exactly this shape, in which a zero is a zero; a view wherever the memory allows.
#[op(internal, complex, samples = reshape_to_samples, peer = "torch.reshape")]
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
pub(crate) fn reshape_target(from: &[usize], to: &[i64]) -> Result<Shape> {
    let numel: usize = from.iter().product();
    let mut shape = Shape::new();
    let mut free = None;
    if numel == 0 && to.contains(&0) {
        let product = |extents: &mut dyn Iterator<Item = i64>| extents.filter(|&n| n > 0).try_fold(1, i64::checked_mul);
        let (all, named) = (product(&mut from.iter().map(|&n| n as i64)), product(&mut to.iter().copied()));
        let rest = all.zip(named).filter(|(all, named)| all % named == 0).map(|(all, named)| all / named);
        for (i, &n) in to.iter().enumerate() {
            shape.push(match n {
                -1 if free.replace(i).is_some() => bail!("only one extent may be -1, got {to:?}"),
                -1 => rest.ok_or_else(|| Error::invalid(format!("{from:?} cannot be arranged as {to:?}")))? as usize,
                n if n < 0 => bail!("a shape cannot hold {n}: {to:?}"),
                n => n as usize,
            });
        }
        return Ok(shape);
    }
    for (i, &n) in to.iter().enumerate() {
        shape.push(match n {
            -1 if free.is_some() => bail!("only one extent may be -1, got {to:?}"),
            -1 => {
                free = Some(i);
                1
            }
            0 if i < from.len() => from[i],
            0 => {
                bail!("extent 0 at position {i} keeps the input's extent there, but the input has rank {}", from.len())
            }
            n if n < 0 => bail!("a shape cannot hold {n}: {to:?}"),
            n => n as usize,
        });
    }
    let known = crate::shape::checked_numel(&shape)?;
    if let Some(i) = free {
        ensure!(known > 0 && numel.is_multiple_of(known), "{numel} elements cannot be arranged as {to:?}");
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
#[op(inplace, complex, samples = transpose_samples, onnx = "Transpose", also("permute"), alias(dims = perm))]
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
    let mut back = smallvec::SmallVec::<[i64; 4]>::from_elem(0, order.len());
    order.iter().enumerate().for_each(|(i, &a)| back[a] = i as i64);
    cx.grad(out, &[], move |g| Ok(g.grad().transpose(&back)))
}

impl Tensor {
    /// The last two axes swapped, as a view.
    pub(crate) fn transpose_last(&self) -> Tensor {
        let n = self.ndim();
        let mut perm: smallvec::SmallVec<[i64; 4]> = (0..n as i64).collect();
        perm.swap(n - 1, n - 2);
        self.transpose(perm)
    }
}

/// The transpose of a tensor of at most two axes.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).t().to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(inplace, complex, samples = t_samples)]
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
#[op(complex, samples = expand_samples, onnx = "Expand", also("broadcast_to"))]
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
    crate::shape::checked_numel(&target)?;
    let out = x.lazy_copy(x.layout().broadcast_to(&target))?;
    let from = x.shape_vec();
    cx.grad(out, &[], move |g| Ok(crate::ops::elementwise::sum_to(&g.grad(), &from)))
}

/// Drops axes of extent 1: all of them, or those named (others among the named stay).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[[1i64, 2]]]).squeeze(0).shape(), [1, 2]);
/// ```
#[op(inplace, complex, samples = squeeze_samples, onnx = "Squeeze")]
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
#[op(inplace, complex, samples = unsqueeze_samples, onnx = "Unsqueeze")]
fn unsqueeze(x: &Tensor, axis: &[i64]) -> Result<Tensor> {
    let mut shape = x.shape_vec();
    for &a in axis {
        let a = resolve_axis(a, shape.len() + 1)?;
        shape.insert(a, 1);
    }
    x.try_reshape_to(shape)
}

/// The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([2, 3, 4], DType::Float32).flatten(1, -1).shape(), [2, 12]);
/// ```
#[op(inplace, complex, samples = flatten_samples, also("ravel"), alias(start_dim = start_axis, end_dim = stop_axis))]
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
#[op(complex, samples = moveaxis_samples, also("movedim"))]
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

/// One axis taken apart into several, whose product is its extent; one of them may be -1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).unflatten(0, [2, -1]).shape(), [2, 2]);
/// ```
#[op(complex, samples = unflatten_samples, alias(sizes = shape))]
fn unflatten(x: &Tensor, axis: i64, shape: &[i64]) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to take apart");
    let axis = resolve_axis(axis, x.ndim())?;
    let whole = x.shape()[axis];
    ensure!(
        !shape.is_empty() && (whole == 0 || !shape.contains(&0)),
        "shape {shape:?} must hold positive extents, one of them may be -1"
    );
    let parts = reshape_target(&x.shape()[axis..=axis], shape)?;
    x.try_reshape_to([&x.shape()[..axis], &parts, &x.shape()[axis + 1..]].concat())
}

/// Two axes exchanged.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([2, 3, 4], DType::Float32).swapaxes(0, 2).shape(), [4, 3, 2]);
/// ```
#[op(complex, samples = swapaxes_samples, also("swapdims"), alias(dim0 = axis0, dim1 = axis1))]
fn swapaxes(x: &Tensor, axis0: i64, axis1: i64) -> Result<Tensor> {
    let (a, b) = (resolve_axis(axis0, x.ndim())?, resolve_axis(axis1, x.ndim())?);
    let mut perm: Vec<i64> = (0..x.ndim() as i64).collect();
    if a != b {
        perm.swap(a, b);
    }
    x.try_transpose(perm)
}

/// The last two axes exchanged.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).matrix_transpose().to_vec::<i64>(), [1, 3, 2, 4]);
/// ```
#[op(complex, samples = matrix_transpose_samples, also("linalg.matrix_transpose"))]
fn matrix_transpose(x: &Tensor) -> Result<Tensor> {
    ensure!(x.ndim() >= 2, "needs at least 2 axes");
    x.try_swapaxes(-1, -2)
}

/// `x` expanded to the shape of `y`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let y = Tensor::zeros([2, 2], DType::Float32);
/// assert_eq!(Tensor::new([1i64, 2]).expand_as(&y).to_vec::<i64>(), [1, 2, 1, 2]);
/// ```
#[op(complex, samples = expand_as_samples)]
fn expand_as(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x.try_expand(y.shape())
}

/// `x` in the shape of `other`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let y = Tensor::zeros([2, 1], DType::Float32);
/// assert_eq!(Tensor::new([1i64, 2]).view_as(&y).shape(), [2, 1]);
/// ```
#[op(complex, samples = view_as_samples)]
fn view_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    x.try_reshape_to(other.shape())
}

/// The number of axes of `x`, as a 0-d tensor.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 2.0]]).rank().to_vec::<i32>(), [2]);
/// ```
#[op(non_diff, complex, samples = view_samples)]
fn rank(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    crate::ops::creation::filled(cx, &[], Scalar::Int(x.ndim() as i64), DType::Int32)
}

/// The tensors expanded to the shape they broadcast to.
///
/// ```
/// # use sampan_core::{Tensor, ops::shape::broadcast_tensors};
/// let both = broadcast_tensors(&[Tensor::new([[1i64], [2]]), Tensor::new([3i64, 4])]);
/// assert_eq!(both[0].to_vec::<i64>(), [1, 1, 2, 2]);
/// ```
#[op(complex, samples = broadcast_tensors_samples, alias(inputs = input), also("Tensor.broadcast_tensors"))]
fn broadcast_tensors(input: &[Tensor]) -> Result<Vec<Tensor>> {
    ensure!(!input.is_empty(), "needs at least one tensor");
    let shape = input.iter().try_fold(Shape::new(), |shape, t| broadcast(&shape, t.shape()))?;
    input.iter().map(|t| t.try_expand(&shape)).collect()
}

/// The layouts at every position of an axis, which goes away.
fn positions(x: &Tensor, axis: i64) -> Result<(usize, Vec<Layout>)> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to take apart");
    let axis = resolve_axis(axis, x.ndim())?;
    let (n, step) = (x.shape()[axis], x.strides()[axis]);
    let mut first = x.layout().clone();
    first.shape.remove(axis);
    first.strides.remove(axis);
    let at = |i: usize| Layout { offset: first.offset.wrapping_add_signed(i as isize * step), ..first.clone() };
    Ok((axis, (0..n).map(at).collect()))
}

/// The gradient of an axis that was taken apart; positions nobody used have zeros.
fn together(g: &crate::autograd::Grad, axis: usize, count: usize) -> Result<Tensor> {
    crate::ops::joining::try_stack(&(0..count).map(|i| g.grad_of(i)).collect::<Vec<_>>(), axis as i64)
}

/// Views at every position of an axis, which goes away.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).unbind(1)[0].to_vec::<i64>(), [1, 3]);
/// ```
#[op(complex, samples = unbind_samples)]
fn unbind(cx: &Cx, x: &Tensor, #[default(0)] axis: i64) -> Result<Vec<Tensor>> {
    let (axis, layouts) = positions(x, axis)?;
    let count = layouts.len();
    let parts: Vec<Tensor> = layouts.into_iter().map(|layout| x.view(layout)).collect();
    cx.grad(parts, &[], move |g| together(g, axis, count))
}

/// What is at every position of an axis, which goes away; `num`, if given, must be its extent.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).unstack(0, None)[1].to_vec::<i64>(), [3, 4]);
/// ```
#[op(complex, samples = unbind_samples)]
fn unstack(cx: &Cx, x: &Tensor, #[default(0)] axis: i64, #[default(None)] num: Option<i64>) -> Result<Vec<Tensor>> {
    let (axis, layouts) = positions(x, axis)?;
    let count = layouts.len();
    ensure!(num.is_none_or(|n| n == count as i64), "num is {num:?}, axis {axis} has extent {count}");
    let parts = layouts.into_iter().map(|layout| x.lazy_copy(layout)).collect::<Result<Vec<_>>>()?;
    cx.grad(parts, &[], move |g| together(g, axis, count))
}

/// Each tensor with at least one axis.
///
/// ```
/// # use sampan_core::{Tensor, ops::shape::atleast_1d};
/// assert_eq!(atleast_1d(&[Tensor::new(3i64)]).0[0].shape(), [1]);
/// ```
#[op(complex, samples = atleast_samples, results("outputs..."), also("Tensor.atleast_1d"))]
fn atleast_1d(inputs: &[Tensor]) -> Result<Varying> {
    at_least(inputs, |s| if s.is_empty() { vec![1] } else { s.to_vec() })
}

/// Each tensor with at least two axes; a vector becomes a row.
///
/// ```
/// # use sampan_core::{Tensor, ops::shape::atleast_2d};
/// assert_eq!(atleast_2d(&[Tensor::new([3i64, 4])]).0[0].shape(), [1, 2]);
/// ```
#[op(complex, samples = atleast_samples, results("outputs..."), also("Tensor.atleast_2d"))]
fn atleast_2d(inputs: &[Tensor]) -> Result<Varying> {
    at_least(inputs, |s| match s {
        [] => vec![1, 1],
        &[n] => vec![1, n],
        s => s.to_vec(),
    })
}

/// Each tensor with at least three axes; a vector of n elements becomes `[1, n, 1]`, a matrix `[m, n, 1]`.
///
/// ```
/// # use sampan_core::{Tensor, ops::shape::atleast_3d};
/// assert_eq!(atleast_3d(&[Tensor::new([3i64, 4])]).0[0].shape(), [1, 2, 1]);
/// ```
#[op(complex, samples = atleast_samples, results("outputs..."), also("Tensor.atleast_3d"))]
fn atleast_3d(inputs: &[Tensor]) -> Result<Varying> {
    at_least(inputs, |s| match s {
        [] => vec![1, 1, 1],
        &[n] => vec![1, n, 1],
        &[m, n] => vec![m, n, 1],
        s => s.to_vec(),
    })
}

fn at_least(inputs: &[Tensor], shape: impl Fn(&[usize]) -> Vec<usize>) -> Result<Varying> {
    Ok(Varying(inputs.iter().map(|t| t.try_reshape_to(shape(t.shape()))).collect::<Result<_>>()?))
}

fn cast_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), DType::Float64],
        sample![randn([2, 3]), DType::Int32],
        sample![ints([3], -2, 3), DType::Bool],
        sample![complexes([3]), DType::Float64],
        sample![randn([3]), DType::Complex128],
        sample![complexes([3]), DType::Int32],
        sample![complexes([3]), DType::Complex128],
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
fn unflatten_samples() -> Vec<Sample> {
    vec![sample![randn([2, 6]), 1, [3, -1]], sample![randn([4, 2]), -2, [2, 2]]]
}
fn swapaxes_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 4]), 0, -1], sample![randn([2, 3]), 1, 1]]
}
fn matrix_transpose_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 4])], sample![randn([0, 3])]]
}
fn view_as_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([3, 1, 2])], sample![randn([1]), randn([])]]
}
fn expand_as_samples() -> Vec<Sample> {
    vec![sample![randn([3]), randn([2, 3])], sample![randn([]), randn([2])]]
}
fn broadcast_tensors_samples() -> Vec<Sample> {
    vec![sample![vec![randn([2, 1]), randn([3])]], sample![vec![randn([]), randn([2]), randn([2, 1])]]]
}
fn unbind_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([2, 3]), -1]]
}
fn atleast_samples() -> Vec<Sample> {
    vec![
        sample![randn([])],
        sample![randn([3])],
        sample![randn([2, 3])],
        sample![vec![randn([]), randn([2])]].grad_peer("lambda xs: getattr(torch, op)(*xs)"),
    ]
}
