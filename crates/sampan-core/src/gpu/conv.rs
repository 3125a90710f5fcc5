//! Convolutions.

use super::{Gpu, Held};
use crate::shape::Layout;
use crate::{DType, Device, Result, Tensor, flags};
use sampan_cuda::dnn::{self, Direction, Geometry};

/// The geometry of a convolution and which way it goes.
pub(crate) struct Convolution<'a> {
    pub direction: Direction,
    pub input: &'a [usize],
    pub weight: &'a [usize],
    pub output: &'a [usize],
    /// Padding before each axis; what is needed after it follows from the extents.
    pub pad: &'a [i64],
    pub stride: &'a [i64],
    pub dilation: &'a [i64],
}

impl Convolution<'_> {
    /// How much padding is needed after each axis.
    fn after(&self) -> Vec<i64> {
        let after = |a: usize| {
            let window = self.dilation[a] * (self.weight[a + 2] as i64 - 1) + 1;
            let reach = (self.output[a + 2] as i64 - 1).max(0) * self.stride[a] + window;
            reach - (self.input[a + 2] as i64 + self.pad[a])
        };
        (0..self.pad.len()).map(after).collect()
    }

    /// As the library sees it: one that pads both ends of an axis alike. Where the same at both leaves less than a step that the
    /// last window does not reach, it is the same convolution; else there is none.
    fn geometry(&self, after: &[i64]) -> Option<Geometry> {
        let alike = |a: usize| (0..self.stride[a]).contains(&(self.pad[a] - after[a]));
        let numbers = |list: &[i64]| list.iter().map(|&n| n as usize).collect::<Vec<_>>();
        (0..self.pad.len()).all(alike).then(|| Geometry {
            input: self.input.to_vec(),
            weight: self.weight.to_vec(),
            output: self.output.to_vec(),
            pad: numbers(self.pad),
            stride: numbers(self.stride),
            dilation: numbers(self.dilation),
            channels_last: false,
        })
    }

    /// How the images that it makes should lie; row-major where it does not matter.
    pub fn layout(&self, dtype: DType) -> Layout {
        let made = if self.direction == Direction::Forward { self.output } else { self.input };
        match self.geometry(&self.after()) {
            Some(g) if g.likes_channels_last(dtype) => Layout::channels_last(made),
            _ => Layout::contiguous(made),
        }
    }
}

/// The same values in row-major memory, or with the channels side by side.
pub(crate) fn laid(gpu: &'static Gpu, x: &Tensor, channels_last: bool) -> Result<Tensor> {
    if !channels_last {
        return x.in_rows();
    }
    if x.layout().is_channels_last() {
        return Ok(x.clone());
    }
    // `x` may lie elsewhere.
    let device = Device::Cuda(gpu.ordinal() as u8);
    let out = Tensor::uninit_as(Layout::channels_last(x.shape()), x.dtype(), device);
    super::copy(gpu, x, &out)?;
    Ok(out)
}

/// Computes a convolution of two of input, weight and output, in this order, to the third. Images lie as `layout` says.
pub(crate) fn convolve(gpu: &'static Gpu, c: &Convolution, operands: [&Tensor; 2], out: &Tensor) -> Result<bool> {
    let after = c.after();
    // Other padding at the two ends, given to the library as such, went wrong for one axis, a step of 3 and padding of 1 and 2;
    // why was not found. There the zeros are laid around the input.
    let Some(geometry) = c.geometry(&after) else { return padded(gpu, c, &after, operands, out) };
    let channels_last = geometry.likes_channels_last(out.dtype());
    Ok(compute(gpu, c.direction, Geometry { channels_last, ..geometry.clone() }, operands, out)?
        || (channels_last && compute(gpu, c.direction, geometry, operands, out)?))
}

/// Computes a convolution with everything laid as the geometry says; false if the library knows no way for it.
fn compute(
    gpu: &'static Gpu,
    direction: Direction,
    geometry: Geometry,
    operands: [&Tensor; 2],
    out: &Tensor,
) -> Result<bool> {
    let channels_last = geometry.channels_last;
    let given = [laid(gpu, operands[0], channels_last)?, laid(gpu, operands[1], channels_last)?];
    // A weight's gradient is row-major, as weights are.
    let wanted = if channels_last { Layout::channels_last(out.shape()) } else { Layout::contiguous(out.shape()) };
    let fits = if channels_last { out.layout().is_channels_last() } else { out.is_contiguous() };
    let made = if fits { out.clone() } else { Tensor::uninit_as(wanted, out.dtype(), out.device()) };
    let (a, b, to) = (Held::values(&given[0], gpu)?, Held::values(&given[1], gpu)?, Held::to_fill(&made)?);
    let (dtype, repeatable) = (out.dtype(), flags::deterministic());
    let done = dnn::convolve(gpu, direction, dtype, geometry, repeatable, [a.start(), b.start()], to.block())?;
    if done && !made.is_same(out) {
        super::copy(gpu, &made, out)?;
    }
    Ok(done)
}

/// A convolution with other padding at the end of an axis than at its beginning: of an input with zeros around it.
fn padded(gpu: &'static Gpu, c: &Convolution, after: &[i64], operands: [&Tensor; 2], out: &Tensor) -> Result<bool> {
    let lead = |list: &[i64]| [&[0, 0], list].concat();
    let (begin, end) = (lead(c.pad), lead(after));
    let extents = c.input.iter().zip(begin.iter().zip(&end)).map(|(&n, (b, a))| (n as i64 + b + a) as usize);
    let input: Vec<usize> = extents.collect();
    let none = vec![0; after.len()];
    let c = Convolution { input: &input, pad: &none, ..*c };
    if c.direction == Direction::ToData {
        let whole = Tensor::uninit(&input, out.dtype(), out.device());
        let back = |list: &[i64]| list.iter().map(|n| -n).collect::<Vec<_>>();
        return Ok(convolve(gpu, &c, operands, &whole)? && {
            super::copy(gpu, &whole.try_pad_around(back(&begin), back(&end), 0)?, out)?;
            true
        });
    }
    let x = operands[0].try_pad_around(begin, end, 0)?;
    convolve(gpu, &c, [&x, operands[1]], out)
}
