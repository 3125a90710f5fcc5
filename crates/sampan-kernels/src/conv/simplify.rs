//! Convolutions that are smaller ones in truth: those whose outer kernel elements meet nothing but padding, and the
//! gradients by data of strided ones, which fall apart into a dense convolution for each residue of the stride.

use crate::conv::ConvShape;
use crate::vmath::Real;
use crate::{Buffer, parallel};
use std::mem::size_of;
use std::ops::Range;

/// Kernel elements along one axis, in the order in which a smaller convolution takes them.
type Taps = Vec<usize>;

/// `s` without the kernel elements at the ends that no window has inside the input, and those that are left along each
/// axis. `None` where all are needed.
pub(crate) fn trimmed(s: &ConvShape) -> Option<(ConvShape, [Range<usize>; 3])> {
    let mut small = *s;
    let mut kept = [const { 0..0 }; 3];
    for a in 0..3 {
        let meets = |&t: &usize| {
            let first = s.pad_begin[a].saturating_sub(t * s.dilation[a]).div_ceil(s.stride[a]);
            first < s.output[a] && first * s.stride[a] + t * s.dilation[a] < s.input[a] + s.pad_begin[a]
        };
        let (low, high) = ((0..s.kernel[a]).find(meets)?, (0..s.kernel[a]).rfind(meets)? + 1);
        small.kernel[a] = high - low;
        small.pad_begin[a] = s.pad_begin[a].checked_sub(low * s.dilation[a])?;
        kept[a] = low..high;
    }
    (small.kernel != s.kernel).then_some((small, kept))
}

/// The places of chosen kernel elements among all.
fn places(kernel: [usize; 3], taps: [impl Iterator<Item = usize> + Clone; 3]) -> Vec<usize> {
    let [d, h, w] = taps;
    let mut out = Vec::new();
    for d in d {
        for h in h.clone() {
            out.extend(w.clone().map(|w| (d * kernel[1] + h) * kernel[2] + w));
        }
    }
    out
}

/// The weights of a trimmed convolution.
pub(crate) fn trim_weights<T: Real>(s: &ConvShape, kept: &[Range<usize>; 3], w: &[T]) -> Buffer {
    let (places, taps) = (places(s.kernel, kept.clone()), s.taps());
    let mut out = Buffer::uninit(w.len() / taps * places.len() * size_of::<T>());
    parallel::for_each_chunk_mut(out.as_mut_slice::<T>(), 1024 * places.len(), 4, |i, out| {
        for (out, w) in out.chunks_exact_mut(places.len()).zip(w[1024 * taps * i..].chunks_exact(taps)) {
            out.iter_mut().zip(&places).for_each(|(o, &t)| *o = w[t]);
        }
    });
    out
}

/// Puts the gradient by trimmed weights into place; what met only padding has none.
pub(crate) fn untrim_weights<T: Real>(s: &ConvShape, kept: &[Range<usize>; 3], small: &[T], dw: &mut [T]) {
    let (places, taps) = (places(s.kernel, kept.clone()), s.taps());
    parallel::for_each_chunk_mut(dw, 1024 * taps, 2, |i, dw| {
        dw.fill(T::ZERO);
        let small = small[1024 * places.len() * i..].chunks_exact(places.len());
        for (dw, small) in dw.chunks_exact_mut(taps).zip(small) {
            places.iter().zip(small).for_each(|(&t, v)| dw[t] = *v);
        }
    });
}

/// The elements of an axis of the input whose place is `first` plus a multiple of the stride.
#[derive(Clone)]
struct Residue {
    first: usize,
    count: usize,
    taps: Taps,
    dilation: usize,
    pad: usize,
}

/// The residues along one axis; `None` where the gradient has elements before the first that is asked for.
fn residues(s: &ConvShape, a: usize) -> Option<Vec<Residue>> {
    let (stride, dilation, pad) = (s.stride[a], s.dilation[a], s.pad_begin[a]);
    let one = |first: usize| {
        let count = (s.input[a] - first).div_ceil(stride);
        let meets = |t: &usize| (t * dilation) % stride == (first + pad) % stride;
        // From the last to the first: the output that reads an element moves backwards as the kernel element moves on.
        let taps: Taps = (0..s.kernel[a]).rev().filter(meets).collect();
        let (Some(&last), Some(&next)) = (taps.first(), taps.get(1).or(taps.first())) else {
            return Some(Residue { first, count, taps, dilation: 1, pad: 0 });
        };
        // The first element is read by output (first + pad - last * dilation) / stride and those after it.
        let begin = (last * dilation).checked_sub(first + pad)? / stride;
        let dilation = ((last - next) * dilation / stride).max(1);
        Some(Residue { first, count, taps, dilation, pad: begin })
    };
    (0..stride.min(s.input[a])).map(one).collect()
}

/// The weights `[in, out / groups, taps]` of a convolution that is the backward by data of `s`, or a part of it.
pub(crate) fn transpose_weights<T: Real>(s: &ConvShape, w: &[T], taps: &[usize]) -> Buffer {
    let (gi, go) = (s.group_in(), s.group_out());
    let mut out = Buffer::uninit(s.in_channels * go * taps.len() * size_of::<T>());
    parallel::for_each_chunk_mut(out.as_mut_slice::<T>(), go * taps.len(), 4, |i, out| {
        let (group, i) = (i / gi, i % gi);
        for (o, out) in out.chunks_exact_mut(taps.len()).enumerate() {
            let from = &w[((group * go + o) * gi + i) * s.taps()..][..s.taps()];
            out.iter_mut().zip(taps).for_each(|(o, &t)| *o = from[t]);
        }
    });
    out
}

/// The gradient by data of a strided convolution, as convolutions with unit strides: calls `forward(shape, taps, dx)` for
/// each, with the kernel elements that it uses, and puts the results into place. Says whether it could.
pub(crate) fn by_residues<T: Real>(
    s: &ConvShape,
    dx: &mut [T],
    forward: impl Fn(&ConvShape, &[usize], &mut [T]),
) -> bool {
    let (Some(deep), Some(high), Some(wide)) = (residues(s, 0), residues(s, 1), residues(s, 2)) else {
        return false;
    };
    if [&deep, &high, &wide].iter().any(|axis| axis.iter().any(|r| r.taps.is_empty())) {
        parallel::for_each_chunk_mut(dx, 1 << 14, 1, |_, dx| dx.fill(T::ZERO));
    }
    for i in 0..deep.len() * high.len() * wide.len() {
        let (row, column) = (i / wide.len(), i % wide.len());
        let axes = [&deep[row / high.len()], &high[row % high.len()], &wide[column]];
        if axes.iter().any(|r| r.taps.is_empty()) {
            continue;
        }
        let shape = ConvShape {
            in_channels: s.out_channels,
            out_channels: s.in_channels,
            input: s.output,
            output: axes.map(|r| r.count),
            kernel: axes.map(|r| r.taps.len()),
            stride: [1; 3],
            dilation: axes.map(|r| r.dilation),
            pad_begin: axes.map(|r| r.pad),
            ..*s
        };
        let taps = places(s.kernel, axes.map(|r| r.taps.iter().copied()));
        let mut part = Buffer::uninit(shape.y_len() * size_of::<T>());
        forward(&shape, &taps, part.as_mut_slice());
        let part = part.as_slice::<T>();
        let plane = shape.y_plane();
        parallel::for_each_chunk_mut(dx, s.x_plane(), 1, |i, dx| {
            for (row, from) in part[i * plane..][..plane].chunks_exact(shape.output[2]).enumerate() {
                let d = axes[0].first + row / shape.output[1] * s.stride[0];
                let h = axes[1].first + row % shape.output[1] * s.stride[1];
                let to = &mut dx[(d * s.input[1] + h) * s.input[2] + axes[2].first..];
                to.iter_mut().step_by(s.stride[2]).zip(from).for_each(|(o, v)| *o = *v);
            }
        });
    }
    true
}
