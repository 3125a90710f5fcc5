//! Softmax, losses and normalisation.

use super::{Gpu, Held};
use crate::{Result, Tensor};
use sampan_cuda::recurrent::{self, Cell};
use sampan_cuda::rows::{self, At, Channels, Classes, RowNorm};

fn start(held: &Option<Held>) -> Option<At<'_>> {
    held.as_ref().map(Held::start)
}

fn optional(t: Option<&Tensor>, gpu: &'static Gpu) -> Result<Option<Held>> {
    t.map(|t| Held::values(t, gpu)).transpose()
}

/// Softmax, or its logarithm, of a contiguous tensor of the result's dtype.
pub(crate) fn softmax(
    gpu: &'static Gpu,
    x: &Tensor,
    n: usize,
    inner: usize,
    logarithm: bool,
    out: &Tensor,
) -> Result<bool> {
    let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
    let outer = x.numel() / (n * inner).max(1);
    rows::softmax(gpu, x.dtype(), [outer, n, inner], logarithm, from.start(), to.block())?;
    Ok(true)
}

/// The gradient of softmax, or of its logarithm, from its result.
pub(crate) fn softmax_back(
    gpu: &'static Gpu,
    [y, grad]: [&Tensor; 2],
    n: usize,
    inner: usize,
    logarithm: bool,
    out: &Tensor,
) -> Result<bool> {
    let (y_held, g, to) = (Held::values(y, gpu)?, Held::values(grad, gpu)?, Held::to_fill(out)?);
    let lines = [y.numel() / (n * inner).max(1), n, inner];
    rows::softmax_back(gpu, y.dtype(), lines, logarithm, y_held.start(), g.start(), to.block())?;
    Ok(true)
}

/// What is asked of rows with a class each; labels are contiguous int64.
pub(crate) struct Labelled<'a> {
    pub op: &'static str,
    pub rows: usize,
    pub classes: usize,
    pub ignore: i64,
    pub labels: &'a Tensor,
}

impl Labelled<'_> {
    fn with<R>(&self, gpu: &'static Gpu, f: impl FnOnce(Classes<'_>) -> Result<R>) -> Result<R> {
        let labels = Held::values(self.labels, gpu)?;
        let extents = [self.rows, self.classes];
        f(Classes { op: self.op, extents, ignore: self.ignore, labels: labels.start() })
    }

    /// The loss of each row, its largest logit and the rest.
    pub fn cross_entropy(&self, gpu: &'static Gpu, x: &Tensor, out: [&Tensor; 3]) -> Result<bool> {
        let from = Held::values(x, gpu)?;
        let [loss, peak, rest] = [Held::to_fill(out[0])?, Held::to_fill(out[1])?, Held::to_fill(out[2])?];
        let blocks = [loss.block(), peak.block(), rest.block()];
        self.with(gpu, |c| Ok(c.cross_entropy(gpu, x.dtype(), from.start(), blocks)?))?;
        Ok(true)
    }

    /// The gradient of the logits; all tensors are contiguous.
    pub fn cross_entropy_back(
        &self,
        gpu: &'static Gpu,
        x: &Tensor,
        with: [&Tensor; 3],
        hot: bool,
        out: &Tensor,
    ) -> Result<bool> {
        let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
        let held = [Held::values(with[0], gpu)?, Held::values(with[1], gpu)?, Held::values(with[2], gpu)?];
        let starts = [held[0].start(), held[1].start(), held[2].start()];
        self.with(gpu, |c| Ok(c.cross_entropy_back(gpu, x.dtype(), hot, from.start(), starts, to.block())?))?;
        Ok(true)
    }

    /// The element of each row at its class, or back.
    pub fn pick(&self, gpu: &'static Gpu, x: &Tensor, back: bool, out: &Tensor) -> Result<bool> {
        let (from, to) = (Held::values(x, gpu)?, Held::to_fill(out)?);
        self.with(gpu, |c| Ok(c.pick(gpu, x.dtype(), back, from.start(), to.block())?))?;
        Ok(true)
    }
}

/// One step of a recurrent layer: contiguous tensors of one dtype, then the results. The third has the shape of the state.
pub(crate) fn recurrent(gpu: &'static Gpu, cell: Cell, read: &[&Tensor], written: &[&Tensor]) -> Result<bool> {
    let &[rows, units] = read[2].shape() else { return Ok(false) };
    let values = read.iter().map(|t| Held::values(t, gpu));
    let held: Vec<Held> = values.chain(written.iter().map(|t| Held::to_fill(t))).collect::<Result<_>>()?;
    let data: Vec<At> = held.iter().map(Held::start).collect();
    recurrent::step(gpu, cell, read[2].dtype(), rows, units, &data)?;
    Ok(true)
}

/// Rows normalised, their means and one over their deviations; all tensors are contiguous.
pub(crate) fn row_norm(
    gpu: &'static Gpu,
    norm: RowNorm,
    epsilon: f64,
    x: &Tensor,
    affine: [Option<&Tensor>; 2],
    out: [&Tensor; 3],
) -> Result<bool> {
    let (from, weight, bias) = (Held::values(x, gpu)?, optional(affine[0], gpu)?, optional(affine[1], gpu)?);
    let [y, mean, scale] = [Held::to_fill(out[0])?, Held::to_fill(out[1])?, Held::to_fill(out[2])?];
    let blocks = [y.block(), mean.block(), scale.block()];
    norm.forward(gpu, x.dtype(), epsilon, from.start(), [start(&weight), start(&bias)], blocks)?;
    Ok(true)
}

/// The gradients of x, weight and bias; all tensors are contiguous.
pub(crate) fn row_norm_back(
    gpu: &'static Gpu,
    norm: RowNorm,
    [x, grad]: [&Tensor; 2],
    weight: Option<&Tensor>,
    stats: [&Tensor; 2],
    out: [&Tensor; 3],
) -> Result<bool> {
    let (from, g, weight) = (Held::values(x, gpu)?, Held::values(grad, gpu)?, optional(weight, gpu)?);
    let (mean, scale) = (Held::values(stats[0], gpu)?, Held::values(stats[1], gpu)?);
    let [dx, dw, db] = [Held::to_fill(out[0])?, Held::to_fill(out[1])?, Held::to_fill(out[2])?];
    let blocks = [dx.block(), dw.block(), db.block()];
    let (data, stats) = ([from.start(), g.start()], [mean.start(), scale.start()]);
    norm.backward(gpu, x.dtype(), data, start(&weight), stats, blocks)?;
    Ok(true)
}

/// Each channel's mean and variance; `x` is contiguous.
pub(crate) fn moments(gpu: &'static Gpu, channels: Channels, x: &Tensor, [mean, var]: [&Tensor; 2]) -> Result<()> {
    let (from, mean, var) = (Held::values(x, gpu)?, Held::to_fill(mean)?, Held::to_fill(var)?);
    Ok(channels.moments(gpu, x.dtype(), from.start(), [mean.block(), var.block()])?)
}

/// Channels normalised by statistics, scaled, shifted and activated; all tensors are contiguous.
pub(crate) fn normalised(
    gpu: &'static Gpu,
    channels: Channels,
    x: &Tensor,
    stats: [&Tensor; 2],
    affine: [Option<&Tensor>; 2],
    y: &Tensor,
) -> Result<bool> {
    let (from, weight, bias) = (Held::values(x, gpu)?, optional(affine[0], gpu)?, optional(affine[1], gpu)?);
    let (mean, var, to) = (Held::values(stats[0], gpu)?, Held::values(stats[1], gpu)?, Held::to_fill(y)?);
    let (stats, affine) = ([mean.start(), var.start()], [start(&weight), start(&bias)]);
    channels.apply(gpu, x.dtype(), from.start(), stats, affine, to.block())?;
    Ok(true)
}

/// The gradients of x, weight and bias; all tensors are contiguous.
pub(crate) fn normalised_back(
    gpu: &'static Gpu,
    channels: Channels,
    [x, grad]: [&Tensor; 2],
    stats: [&Tensor; 2],
    affine: [Option<&Tensor>; 2],
    out: [&Tensor; 3],
) -> Result<bool> {
    let (from, g) = (Held::values(x, gpu)?, Held::values(grad, gpu)?);
    let (weight, bias) = (optional(affine[0], gpu)?, optional(affine[1], gpu)?);
    let (mean, var) = (Held::values(stats[0], gpu)?, Held::values(stats[1], gpu)?);
    let [dx, dw, db] = [Held::to_fill(out[0])?, Held::to_fill(out[1])?, Held::to_fill(out[2])?];
    let blocks = [dx.block(), dw.block(), db.block()];
    let (data, stats) = ([from.start(), g.start()], [mean.start(), var.start()]);
    channels.backward(gpu, x.dtype(), data, stats, [start(&weight), start(&bias)], blocks)?;
    Ok(true)
}
