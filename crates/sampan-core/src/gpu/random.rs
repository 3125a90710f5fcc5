//! Random numbers.

use super::{Gpu, Held};
use crate::random::Start;
use crate::{Result, Tensor};
use sampan_cuda::random::{self, Draw};

/// Fills a new tensor from a place in the stream of a seed.
pub(crate) fn draw(gpu: &'static Gpu, draw: Draw, start: Start, out: &Tensor) -> Result<bool> {
    let to = Held::to_fill(out)?;
    random::fill(gpu, draw, out.dtype(), out.numel(), start.for_gpu()?, to.block())?;
    Ok(true)
}

/// 1 with the probability in each element of `p`, which is of the same dtype.
pub(crate) fn draw_by(gpu: &'static Gpu, p: &Tensor, start: Start, out: &Tensor) -> Result<bool> {
    let from = Held::values(p, gpu)?;
    let (probabilities, offset) = from.start();
    draw(gpu, Draw::BernoulliBy { probabilities, offset }, start, out)
}
