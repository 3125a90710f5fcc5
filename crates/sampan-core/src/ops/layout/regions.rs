//! Named regions of a tensor: slices, windows, strided views, and writes into them.

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;
use crate::ops::slicing::region;
use sampan_kernels::{arrange, copy};

/// Where a slice `start:end:step` of an axis begins and how many elements it has, by Python's rules.
pub(crate) fn slice_bounds(n: usize, start: i64, end: i64, step: i64) -> (i64, i64) {
    let n = n as i64;
    let wrap = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let (start, end) = (wrap(start).clamp(low, high), wrap(end).clamp(low, high));
    let span = if step > 0 { end - start } else { start - end };
    let step = step.unsigned_abs() as i128;
    let len = ((span.max(0) as i128 + step - 1) / step) as i64;
    (if len == 0 { 0 } else { start }, len)
}

/// Starts, lengths and steps of all axes, where some are sliced.
type Region = (Vec<i64>, Vec<i64>, Vec<i64>);
fn named_region(x: &Tensor, axes: &[i64], starts: &[i64], ends: &[i64], strides: &[i64]) -> Result<Region> {
    let n = axes.len();
    ensure!(
        starts.len() == n && ends.len() == n && strides.len() == n,
        "axes, starts, ends and strides must be of one length, got {n}, {}, {} and {}",
        starts.len(),
        ends.len(),
        strides.len()
    );
    let mut at = vec![0; x.ndim()];
    let mut lens: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    let mut steps = vec![1; x.ndim()];
    let mut seen = Shape::new();
    for i in 0..n {
        ensure!(x.ndim() > 0, "a 0-d tensor has no axis to slice");
        let a = resolve_axis(axes[i], x.ndim())?;
        ensure!(!seen.contains(&a), "axes {axes:?} name axis {a} twice");
        ensure!(strides[i] != 0, "a stride cannot be 0");
        seen.push(a);
        (at[a], lens[a]) = slice_bounds(x.shape()[a], starts[i], ends[i], strides[i]);
        steps[a] = if lens[a] > 1 { strides[i] } else { 1 };
    }
    Ok((at, lens, steps))
}

/// A view on `starts[i]:ends[i]` of each named axis. Negative positions count from the end, those beyond it are cut.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).slice([0], [1], [-1]).to_vec::<i64>(), [2, 3]);
/// ```
#[op(complex, samples = slice_samples, onnx = "Slice")]
fn slice(input: &Tensor, axes: &[i64], starts: &[i64], ends: &[i64]) -> Result<Tensor> {
    let (at, lens, steps) = named_region(input, axes, starts, ends, &vec![1; axes.len()])?;
    input.try_view_slice(at, lens, steps)
}

/// A view on `starts[i]:ends[i]:strides[i]` of each named axis; strides may be negative.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).strided_slice([0], [3], [0], [-2]).to_vec::<i64>(), [4, 2]);
/// ```
#[op(complex, samples = strided_slice_samples, onnx = "Slice")]
fn strided_slice(x: &Tensor, axes: &[i64], starts: &[i64], ends: &[i64], strides: &[i64]) -> Result<Tensor> {
    let (at, lens, steps) = named_region(x, axes, starts, ends, strides)?;
    x.try_view_slice(at, lens, steps)
}

/// A view on `length` elements of one axis from `start`, which may count from the end.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).narrow(0, 1, 2).to_vec::<i64>(), [2, 3]);
/// ```
#[op(complex, samples = narrow_samples)]
fn narrow(x: &Tensor, axis: i64, start: &Value, length: &Value) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to narrow");
    let axis = resolve_axis(axis, x.ndim())?;
    let n = x.shape()[axis] as i64;
    let int = |v: &Value, name: &str| match v {
        Value::Int(i) => Ok(*i),
        Value::Tensor(t) if t.numel() == 1 => Ok(t.try_to_ints()?[0]),
        other => Err(Error::dtype(format!("{name} must be an int, got {}", other.type_name()))),
    };
    let (start, length) = (int(start, "start")?, int(length, "length")?);
    let from = if start < 0 { start + n } else { start };
    ensure!(
        from >= 0 && length >= 0 && length <= n - from,
        "{length} elements from {start} leave axis {axis} of extent {n}"
    );
    let mut at = vec![0; x.ndim()];
    let mut lens: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    (at[axis], lens[axis]) = (from, length);
    x.try_view_slice(at, lens, vec![1i64; x.ndim()])
}

/// The block of the given shape that begins at `offsets`. An extent of -1 reaches to the end.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.crop(Some(&[2, -1]), Some(&[0, 1])).to_vec::<i64>(), [2, 3, 5, 6]);
/// ```
#[op(complex, samples = crop_samples)]
fn crop(
    x: &Tensor,
    #[default(None)] shape: Option<&[i64]>,
    #[default(None)] offsets: Option<&[i64]>,
) -> Result<Tensor> {
    let rank = x.ndim();
    let at = offsets.map_or_else(|| vec![0; rank], <[i64]>::to_vec);
    let lens = shape.map_or_else(|| vec![-1; rank], <[i64]>::to_vec);
    ensure!(at.len() == rank && lens.len() == rank, "shape and offsets need a number for each of the {rank} axes");
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        let n = x.shape()[i] as i64;
        let rest = n.saturating_sub(at[i]);
        let len = if lens[i] == -1 { rest } else { lens[i] };
        ensure!(at[i] >= 0 && (0..=rest).contains(&len), "{len} elements from {} leave axis {i} of extent {n}", at[i]);
        out.push(len);
    }
    x.try_view_slice(at, out, vec![1i64; rank])?.try_assign()
}

/// `x` with the region of `lens[i]` elements from `starts[i]` in steps of `steps[i]` replaced by `value`, which is
/// broadcast to it.
#[op(
    internal,
    complex,
    samples = write_slice_samples,
    peer = "lambda x, v, starts, lens, steps: torch_write(x, [torch_region(starts, lens, steps)], [v])"
)]
fn write_slice(cx: &Cx, x: &Tensor, value: &Tensor, starts: &[i64], lens: &[i64], steps: &[i64]) -> Result<Tensor> {
    let target = region(&Layout::contiguous(x.shape()), starts, lens, steps)?;
    let fits = broadcast(value.shape(), &target.shape).is_ok_and(|s| s == target.shape);
    ensure!(fits, "values of shape {:?} do not fit into a region of shape {:?}", value.shape(), target.shape);
    let out = cx.out(x.shape(), x.dtype())?;
    let cpu = || {
        let value = value.fitting(x.dtype())?.try_expand(&target.shape)?.contiguous();
        let mut data = out.values_mut();
        copy::copy_strided(x.values().view(), data.slice());
        if value.numel() > 0 {
            let source = value.values();
            copy::scatter_strided(source.slice(), data.slice(), &target.shape, &target.strides, target.offset);
        }
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let value = value.fitting(x.dtype())?.try_expand(&target.shape)?;
        crate::gpu::copy(gpu, x, &out)?;
        crate::gpu::copy_into(gpu, &value, &out, target.clone()).map(|()| true)
    })?;
    let (from, dtype) = (value.shape_vec(), value.dtype());
    let (starts, lens, steps) = (starts.to_vec(), lens.to_vec(), steps.to_vec());
    cx.grad(out, &[], move |g| {
        let zero = || Tensor::zeros([], g.grad().dtype());
        Ok([
            g.if_needed(0, || g.grad().write_slice(&zero(), starts.as_slice(), lens.as_slice(), steps.as_slice())),
            g.if_needed(1, || {
                let seen = g.grad().view_slice(starts.as_slice(), lens.as_slice(), steps.as_slice());
                sum_to(&seen, &from).cast(dtype)
            }),
        ])
    })
}

/// `x` with `starts[i]:ends[i]:strides[i]` of each named axis replaced by `value`, which is broadcast to the slice.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3, 4]);
/// let y = x.slice_scatter(&Tensor::new([8i64, 9]), [0], [0], [4], [2]);
/// assert_eq!(y.to_vec::<i64>(), [8, 2, 9, 4]);
/// ```
#[op(complex, samples = slice_scatter_samples)]
fn slice_scatter(
    x: &Tensor,
    value: &Tensor,
    axes: &[i64],
    starts: &[i64],
    ends: &[i64],
    strides: &[i64],
) -> Result<Tensor> {
    let (at, lens, steps) = named_region(x, axes, starts, ends, strides)?;
    x.try_write_slice(value, at, lens, steps)
}

/// `x` with one position of an axis replaced by `values`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(x.select_scatter(&Tensor::new([8i64, 9]), 0, 1).to_vec::<i64>(), [1, 2, 8, 9]);
/// ```
#[op(complex, samples = select_scatter_samples)]
fn select_scatter(x: &Tensor, values: &Tensor, axis: i64, index: i64) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to select from");
    let a = resolve_axis(axis, x.ndim())?;
    let n = x.shape()[a] as i64;
    ensure!((-n..n).contains(&index), "index {index} lies outside axis {a} of extent {n}");
    let mut rest = x.shape_vec();
    rest.remove(a);
    ensure!(values.shape() == rest.as_slice(), "values must have shape {rest:?}");
    let mut at = vec![0; x.ndim()];
    let mut lens: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    (at[a], lens[a]) = (index.rem_euclid(n), 1);
    x.try_write_slice(&values.try_unsqueeze(a as i64)?, at, lens, vec![1i64; x.ndim()])
}

/// A view on all windows of `size` elements of an axis, `step` apart; the window becomes the last axis.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 2, 3, 4]).sliding_window(0, 2, 1).to_vec::<i64>(), [1, 2, 2, 3, 3, 4]);
/// ```
#[op(
    module = "_C_ops",
    complex,
    samples = sliding_window_samples,
    peer = "lambda x, axis, size, step: paddle.unfold(x, axis, size, step)",
    also("unfold"),
    alias(dimension = axis)
)]
fn sliding_window(cx: &Cx, x: &Tensor, axis: i64, size: i64, step: i64) -> Result<Tensor> {
    ensure!(x.ndim() > 0, "a 0-d tensor has no axis to slide along");
    let axis = resolve_axis(axis, x.ndim())?;
    let n = x.shape()[axis] as i64;
    ensure!(step > 0, "step must be positive, got {step}");
    ensure!((0..=n).contains(&size), "a window of {size} does not fit axis {axis} of extent {n}");
    // A longer step leaves one window too.
    let step = step.min(n.max(1));
    let windows = |layout: &Layout| {
        let mut out = layout.clone();
        out.shape[axis] = ((n - size) / step + 1) as usize;
        out.strides[axis] *= step as isize;
        out.shape.push(size as usize);
        out.strides.push(layout.strides[axis]);
        out
    };
    let out = x.view(windows(x.layout()));
    let shape = x.shape_vec();
    let strides: Vec<i64> = windows(&Layout::contiguous(&shape)).strides.iter().map(|&s| s as i64).collect();
    cx.grad(out, &[], move |g| Ok(g.grad().strided_sum(&shape, strides.as_slice(), 0)))
}

/// The elements of `x`, counted in row-major order, under any shape and strides (in elements); `offset` is in bytes, as
/// in Paddle. A view on `x` where its memory is row-major. Elements may be seen more than once.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1i64, 2, 3, 4]);
/// assert_eq!(x.as_strided([2, 2], [1, 1], 8).to_vec::<i64>(), [2, 3, 3, 4]);
/// ```
#[op(
    complex,
    samples = as_strided_samples,
    peer = "lambda x, shape, stride, offset=0: paddle.as_strided(x, shape, stride, offset * x.element_size() // 4)"
)]
fn as_strided(x: &Tensor, shape: &[i64], stride: &[i64], #[default(0)] offset: i64) -> Result<Tensor> {
    let size = x.dtype().size() as i64;
    ensure!(
        offset >= 0 && offset % size == 0,
        "offset must be a multiple of the {size} bytes of an element, got {offset}"
    );
    x.try_strided_view(shape, stride, offset / size)
}

/// The elements of `x`, counted in row-major order, under any shape, strides and offset (in elements).
#[op(internal, complex, samples = strided_view_samples, peer = "torch.as_strided")]
fn strided_view(cx: &Cx, x: &Tensor, shape: &[i64], stride: &[i64], offset: i64) -> Result<Tensor> {
    let layout = strided_layout(x.numel(), shape, stride, offset)?;
    let x = x.contiguous();
    let out = x.view(Layout { offset: layout.offset + x.layout().offset, ..layout });
    let (from, stride) = (x.shape_vec(), stride.to_vec());
    cx.grad(out, &[], move |g| Ok(g.grad().strided_sum(&from, stride.as_slice(), offset)))
}

/// Zeros of `shape` onto which the elements of `x` are added at the positions that `stride` and `offset` give them: the
/// transpose of `strided_view`.
#[op(
    internal,
    complex,
    samples = strided_sum_samples,
    peer = "lambda x, shape, *a: torch_pull(lambda z: torch.as_strided(z, x.shape, *a), torch.zeros(shape), x)"
)]
fn strided_sum(cx: &Cx, x: &Tensor, shape: &[i64], stride: &[i64], offset: i64) -> Result<Tensor> {
    let shape = crate::ops::shape::checked_shape(shape)?;
    let own: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    let place = strided_layout(crate::shape::checked_numel(&shape)?, &own, stride, offset)?;
    let out = cx.zeros(&shape, x.dtype())?;
    cx.cpu(|| {
        let x = x.contiguous();
        let mut data = out.values_mut();
        arrange::add_strided(x.values().slice(), data.slice(), &place.shape, &place.strides, place.offset);
        Ok(())
    })?;
    let stride = stride.to_vec();
    cx.grad(out, &[], move |g| Ok(g.grad().strided_view(own.as_slice(), stride.as_slice(), offset)))
}

/// A layout over `numel` elements, checked to stay inside them.
fn strided_layout(numel: usize, shape: &[i64], stride: &[i64], offset: i64) -> Result<Layout> {
    ensure!(shape.len() == stride.len(), "shape {shape:?} and stride {stride:?} differ in length");
    let shape = crate::ops::shape::checked_shape(shape)?;
    crate::shape::checked_numel(&shape)?;
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (&n, &s) in shape.iter().zip(stride) {
        let span = (n as i128 - 1) * s as i128;
        (low, high) = (low + span.min(0), high + span.max(0));
    }
    let empty = shape.contains(&0);
    ensure!(empty || (low >= 0 && high < numel as i128), "positions {low} to {high} leave the {numel} elements of x");
    let strides = stride.iter().map(|&s| s as isize).collect();
    Ok(Layout { shape, strides, offset: if empty { 0 } else { offset as usize } })
}

/// The same memory under another shape (no copy is made; an error where one would be needed) or another dtype, whose
/// width changes the last axis. Paddle's `view`.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::new([1.0f32]).reinterpret(DType::Int32).to_vec::<i32>(), [0x3f80_0000]);
/// ```
#[op(
    module = "_C_ops",
    samples = reinterpret_samples,
    peer = "lambda x, to: paddle.view(x, to)",
    also("view"),
    alias(dtype = shape_or_dtype, size = shape_or_dtype)
)]
fn reinterpret(x: &Tensor, shape_or_dtype: &Value) -> Result<Tensor> {
    let dtype = match shape_or_dtype {
        Value::DType(dtype) => *dtype,
        Value::Str(name) => {
            DType::from_name(name).ok_or_else(|| Error::dtype(format!("no dtype is called {name:?}")))?
        }
        Value::Ints(shape) => {
            let target = crate::ops::shape::reshape_target(x.shape(), shape)?;
            ensure!(x.layout().reshape(&target).is_some(), "this memory cannot be seen as {target:?} without a copy");
            return x.try_reshape_to(target);
        }
        other => bail!("shape_or_dtype must be a list of ints or a dtype, got {}", other.type_name()),
    };
    if dtype == x.dtype() {
        return Ok(x.clone());
    }
    x.try_bits_as(dtype)
}

/// The bits of the elements read as another dtype. No gradient passes.
#[op(internal, non_diff, samples = bits_samples, peer = "torch.Tensor.view")]
fn bits_as(cx: &Cx, x: &Tensor, dtype: DType) -> Result<Tensor> {
    let (old, new) = (x.dtype().size(), dtype.size());
    let x = x.contiguous();
    let mut layout = x.layout().clone();
    if old != new {
        ensure!(x.ndim() > 0, "a 0-d tensor has no axis whose extent could change");
        let last = x.ndim() - 1;
        let bytes = x.shape()[last] * old;
        ensure!(bytes.is_multiple_of(new), "the last axis holds {bytes} bytes, no multiple of the {new} of {dtype}");
        let mut shape = x.shape_vec();
        shape[last] = bytes / new;
        layout = Layout { offset: layout.offset * old / new, ..Layout::contiguous(&shape) };
    }
    if cx.device() == Device::Meta {
        return cx.out(&layout.shape, dtype);
    }
    // A view, unless the bytes begin or end between two elements of the new dtype.
    let x = if (x.layout().offset * old).is_multiple_of(new) && x.storage().read().len().is_multiple_of(new) {
        x
    } else {
        layout.offset = 0;
        x.try_clone_data()?
    };
    Ok(x.view_as_dtype(layout, dtype))
}

fn slice_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 4]), [1, 2], [0, -3], [100, -1]],
        sample![randn([4]), [0], [2], [1]],
        sample![randn([3, 2]), [-1], [1], [2]],
    ]
}
fn strided_slice_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4]), [1], [3], [0], [-2]],
        sample![randn([5, 2]), [0, 1], [0, 1], [5, 2], [2, 1]],
        sample![randn([4]), [0], [-1], [-10], [-1]],
    ]
}
fn narrow_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 1, 1, 2], sample![randn([4]), 0, -2, 2], sample![randn([2, 3]), 0, 2, 0]]
}
fn crop_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 4]), [1, 2, -1], [0, 1, 1]], sample![randn([2, 3]), [1, 2]], sample![randn([2, 3])]]
}
fn write_slice_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 5]), randn([2, 2]), [3, 1], [2, 2], [-2, 3]],
        sample![randn([4]), randn([]), [1], [2], [1]],
        sample![randn([4]), randn([1]), [0], [0], [1]],
    ]
}
fn slice_scatter_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([2, 1]), [1], [1], [3], [2]],
        sample![randn([4, 3]), randn([2, 3]), [0], [1], [3], [1]],
        sample![randn([2, 3]), randn([1, 1]), [1], [1], [3], [2]],
    ]
}
fn select_scatter_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), randn([2]), 1, -1], sample![randn([2, 3, 2]), randn([3, 2]), 0, 1]]
}
fn sliding_window_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 5]), 1, 3, 1].peer("torch.Tensor.unfold"),
        sample![randn([7]), 0, 2, 4],
        sample![randn([4, 2]), 0, 2, 2],
    ]
}
fn as_strided_samples() -> Vec<Sample> {
    vec![sample![randn([2, 6]), [2, 3], [6, 2], 0], sample![randn([6]), [3, 2], [2, 1], 0]]
}
fn strided_view_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4]), [3, 2], [2, 1], 1],
        sample![randn([5]), [3, 3], [1, 1], 0],
        sample![randn([4]), [4], [-1], 3].peer("lambda x, *_: torch.flip(x, [0])"),
        sample![randn([4]), [0, 2], [9, 9], 0],
    ]
}
fn strided_sum_samples() -> Vec<Sample> {
    vec![sample![randn([3, 3]), [5], [1, 1], 0], sample![randn([2]), [2, 2], [2], 1]]
}
fn reinterpret_samples() -> Vec<Sample> {
    vec![sample![randn([2, 6]), [3, 4]], sample![ints([2, 2], -5, 5), DType::Int32]]
}
fn bits_samples() -> Vec<Sample> {
    vec![sample![ints([2, 2], -5, 5), DType::Int16], sample![values([1i16, 2, 3, 4], [1, 4]), DType::Int32]]
}
