//! Convolutions.

use super::{Gpu, Held};
use crate::{Result, Tensor, flags};
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

/// Computes a convolution of two of input, weight and output, in this order, to the third.
pub(crate) fn convolve(gpu: &'static Gpu, c: &Convolution, operands: [&Tensor; 2], out: &Tensor) -> Result<bool> {
    let numbers = |list: &[i64]| list.iter().map(|&n| n as usize).collect::<Vec<_>>();
    let (pad, stride, dilation) = (numbers(c.pad), numbers(c.stride), numbers(c.dilation));
    // How much is needed after each axis.
    let after: Vec<i64> = (0..pad.len())
        .map(|a| {
            let window = dilation[a] * (c.weight[a + 2] - 1) + 1;
            let reach = (c.output[a + 2].saturating_sub(1) * stride[a] + window) as i64;
            reach - (c.input[a + 2] + pad[a]) as i64
        })
        .collect();
    // Other padding at the two ends, given to the library as such, went wrong for one axis, a step of 3 and padding of 1 and 2;
    // why was not found. Where the same at both leaves less than a step that the last window does not reach, it is the same
    // convolution; else the zeros are laid around the input.
    let alike = |a: usize| (0..stride[a] as i64).contains(&(pad[a] as i64 - after[a]));
    if !(0..pad.len()).all(alike) {
        return padded(gpu, c, &after, operands, out);
    }
    let geometry = Geometry {
        input: c.input.to_vec(),
        weight: c.weight.to_vec(),
        output: c.output.to_vec(),
        pad,
        stride,
        dilation,
    };
    let rows = [operands[0].in_rows()?, operands[1].in_rows()?];
    let (a, b, to) = (Held::values(&rows[0], gpu)?, Held::values(&rows[1], gpu)?, Held::to_fill(out)?);
    let repeatable = flags::deterministic();
    Ok(dnn::convolve(gpu, c.direction, out.dtype(), geometry, repeatable, [a.start(), b.start()], to.block())?)
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
