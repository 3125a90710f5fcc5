//! Rows and elements by their numbers.

use super::{Gpu, Held};
use crate::shape::Layout;
use crate::{DType, Result, Tensor};
use sampan_cuda::index::{self, Axis, Rule};

/// An axis of a contiguous shape.
fn axis_of(shape: &[usize], axis: usize) -> Axis {
    Axis { outer: shape[..axis].iter().product(), n: shape[axis], inner: shape[axis + 1..].iter().product() }
}

/// `out` is the rows of `x` along an axis with these numbers.
pub(crate) fn rows(
    gpu: &'static Gpu,
    rule: Rule,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
    out: &Tensor,
) -> Result<bool> {
    let (x, index) = (x.in_rows()?, index.in_rows()?);
    let (from, numbers, to) = (Held::values(&x, gpu)?, Held::values(&index, gpu)?, Held::to_fill(out)?);
    let along = axis_of(x.shape(), axis);
    index::rows(gpu, rule, x.dtype(), along, (numbers.start(), index.numel()), from.start(), to.block())?;
    Ok(true)
}

/// Adds `alpha` times the rows of `x` to those of `out` along an axis with these numbers.
pub(crate) fn add_rows(
    gpu: &'static Gpu,
    rule: Rule,
    x: &Tensor,
    alpha: f64,
    axis: usize,
    index: &Tensor,
    out: &Tensor,
) -> Result<bool> {
    if out.is_complex() || out.dtype() == DType::Bool || index.numel() > u32::MAX as usize {
        return Ok(false);
    }
    let (x, index) = (x.in_rows()?, index.in_rows()?);
    let (from, numbers) = (Held::values(&x, gpu)?, Held::values(&index, gpu)?);
    let to = Held::to_change(out, out.layout().clone())?;
    let along = axis_of(out.shape(), axis);
    let numbers = (numbers.start(), index.numel());
    index::add_rows(gpu, rule, out.dtype(), along, alpha, numbers, from.start(), to.block())?;
    Ok(true)
}

/// A contiguous shape seen by an index of another extent along one axis, which stands still.
fn seen_by(shape: &[usize], index: &[usize], axis: usize, offset: usize) -> (Layout, usize) {
    let mut strides = Layout::contiguous(shape).strides;
    let step = std::mem::take(&mut strides[axis]).unsigned_abs();
    (Layout { shape: index.into(), strides, offset }, step)
}

/// `out[e]` is the element of `x` at the place of `e` with `index[e]` along an axis.
pub(crate) fn along(
    gpu: &'static Gpu,
    rule: Rule,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
    out: &Tensor,
) -> Result<bool> {
    let (x, index) = (x.in_rows()?, index.in_rows()?);
    let (seen, step) = seen_by(x.shape(), index.shape(), axis, x.layout().offset);
    let (from, numbers, to) = (Held::seen(&x, gpu, seen)?, Held::values(&index, gpu)?, Held::to_fill(out)?);
    Ok(index::along(gpu, rule, from.view(), x.shape()[axis], step, numbers.start(), to.block())?)
}

/// Adds each element of `x` to the element of `out` at its place with `index[e]` along an axis.
pub(crate) fn add_along(
    gpu: &'static Gpu,
    rule: Rule,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
    out: &Tensor,
) -> Result<bool> {
    if out.is_complex() || out.dtype() == DType::Bool || index.numel() > u32::MAX as usize {
        return Ok(false);
    }
    let (x, index) = (x.in_rows()?, index.in_rows()?);
    let (seen, step) = seen_by(out.shape(), index.shape(), axis, 0);
    let (from, numbers) = (Held::values(&x, gpu)?, Held::values(&index, gpu)?);
    let to = Held::to_change(out, seen)?;
    let places = index::places(gpu, rule, to.view(), out.shape()[axis], step, numbers.start())?;
    let Some(places) = places else { return Ok(false) };
    let all = Axis { outer: 1, n: out.numel(), inner: 1 };
    let places = ((&places, 0), index.numel());
    let checked = Rule { wrap: false, skip: None, ..rule };
    index::add_rows(gpu, checked, out.dtype(), all, 1.0, places, from.start(), to.block())?;
    Ok(true)
}

/// Numbers of rows over several axes of these extents, from a number for each, which are checked.
pub(crate) fn flat(gpu: &'static Gpu, rule: Rule, indices: &[Tensor], extents: &[usize]) -> Result<Tensor> {
    let mut rows: Option<Tensor> = None;
    for (index, &n) in indices.iter().zip(extents) {
        let index = index.detach().try_cast(DType::Int64)?.in_rows()?;
        let out = Tensor::uninit(index.shape(), DType::Int64, crate::Device::Cuda(gpu.ordinal() as u8));
        let (numbers, to) = (Held::values(&index, gpu)?, Held::to_fill(&out)?);
        index::checked(gpu, rule, n, (numbers.start(), index.numel()), to.block())?;
        rows = Some(match rows {
            Some(rows) => rows.try_multiply(n as i64)?.try_add(out)?,
            None => out,
        });
    }
    rows.ok_or_else(|| crate::Error::invalid("needs at least one index"))?.try_flatten(0, -1)
}

/// One at each label.
pub(crate) fn one_hot(gpu: &'static Gpu, labels: &Tensor, classes: usize, out: &Tensor) -> Result<bool> {
    let labels = labels.in_rows()?;
    let (numbers, to) = (Held::values(&labels, gpu)?, Held::to_fill(out)?);
    index::one_hot(gpu, "one_hot", out.dtype(), (numbers.start(), labels.numel()), classes, to.block())?;
    Ok(true)
}

/// What lies on or below (above) a diagonal of contiguous matrices.
pub(crate) fn triangle(gpu: &'static Gpu, x: &Tensor, diagonal: i64, lower: bool, out: &Tensor) -> Result<bool> {
    let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
    let (rows, columns) = (x.dim(-2), x.dim(-1));
    let extents = [x.numel() / (rows * columns).max(1), rows, columns];
    index::triangle(gpu, x.dtype(), extents, diagonal, lower, from.start(), to.block())?;
    Ok(true)
}
