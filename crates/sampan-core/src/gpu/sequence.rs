//! Recurrent layers along sequences.

use super::{Gpu, Held};
use crate::{Result, Tensor};
use sampan_cuda::sequence::{Back, Given, Made, Walk};

/// The tensors of a walk, contiguous and of its dtype: the products of the inputs, weight and bias of the states, the first
/// states; the outputs, the cell states of all steps, and what is kept for the way back.
pub(crate) struct Tensors<'a> {
    pub given: [&'a Tensor; 4],
    pub c: Option<&'a Tensor>,
    pub y: &'a Tensor,
    pub cells: Option<&'a Tensor>,
    pub gates: Option<&'a Tensor>,
}

impl Tensors<'_> {
    fn with<R>(
        &self,
        gpu: &'static Gpu,
        made: impl Fn(&Tensor) -> Result<Held>,
        f: impl FnOnce(Given, Made) -> Result<R>,
    ) -> Result<R> {
        let [x, weight, bias, h] = self.given;
        let held = |t: &Tensor| Held::values(t, gpu);
        let (x, weight, bias, h) = (held(x)?, held(weight)?, held(bias)?, held(h)?);
        let c = self.c.map(held).transpose()?;
        let (y, cells, gates) = (made(self.y)?, self.cells.map(&made).transpose()?, self.gates.map(&made).transpose()?);
        let given = Given {
            x: x.start(),
            weight: weight.start(),
            bias: bias.start(),
            h: h.start(),
            c: c.as_ref().map(Held::start),
        };
        let made =
            Made { y: y.start(), cells: cells.as_ref().map(Held::start), gates: gates.as_ref().map(Held::start) };
        f(given, made)
    }

    /// Computes outputs, cell states and what is kept.
    pub fn forward(&self, gpu: &'static Gpu, walk: Walk) -> Result<bool> {
        self.with(gpu, Held::to_fill, |given, made| Ok(walk.forward(gpu, &given, &made)?))?;
        Ok(true)
    }

    /// Computes gradients: of the products of the inputs into `dx`, of those of the states into `dz` where they differ; `dh`
    /// and `dc` hold those of the last states and then of the first ones.
    pub fn backward(
        &self,
        gpu: &'static Gpu,
        walk: Walk,
        dy: &Tensor,
        [dh, dx]: [&Tensor; 2],
        [dc, dz]: [Option<&Tensor>; 2],
    ) -> Result<()> {
        let change = |t: &Tensor| Held::to_change(t, t.layout().clone());
        let (up, dh, dx) = (Held::values(dy, gpu)?, change(dh)?, Held::to_fill(dx)?);
        let (dc, dz) = (dc.map(change).transpose()?, dz.map(Held::to_fill).transpose()?);
        let (dc, dz) = (dc.as_ref().map(Held::block), dz.as_ref().map(Held::block));
        let back = Back { dh: dh.block(), dc, dx: dx.block(), dz };
        let read = |t: &Tensor| Held::values(t, gpu);
        self.with(gpu, read, |given, made| Ok(walk.backward(gpu, &given, &made, up.start(), &back)?))
    }
}
