//! Convolutions that are less than they seem. Deep in a network the image may be smaller than the kernel: then some
//! kernel elements meet padding only, and what is left may see the whole image at once, which is a plain product.

use crate::conv::ConvShape;
use crate::float::Float;
use crate::gemm::{Gemm, Mat, MatMut, matmul};
use crate::{Buffer, Element, parallel};

/// A convolution without the kernel elements that never meet the input.
pub(crate) struct Trim {
    /// The smaller convolution.
    pub shape: ConvShape,
    /// The kernel element that became the first, on each axis.
    first: [usize; 3],
}

impl Trim {
    /// `None` where every kernel element is of use.
    pub fn of(s: &ConvShape) -> Option<Trim> {
        let (mut shape, mut first) = (*s, [0; 3]);
        if s.input.contains(&0) {
            return None;
        }
        for a in 0..3 {
            let (d, pad) = (s.dilation[a], s.pad_begin[a]);
            // Element k of the window of output o reads input o * stride + k * d - pad.
            let low = pad.saturating_sub(s.output[a].checked_sub(1)? * s.stride[a]).div_ceil(d);
            let high = (s.input[a] + pad).div_ceil(d).min(s.kernel[a]);
            // An input that is skipped at the front would be negative padding.
            if low < high && low * d <= pad {
                (first[a], shape.kernel[a], shape.pad_begin[a]) = (low, high - low, pad - low * d);
            }
        }
        (shape.kernel != s.kernel).then_some(Trim { shape, first })
    }

    /// Calls `f(place in the small kernel, place in the whole kernel, len)` for each row of the small one.
    fn rows(&self, s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
        let ([d, h, w], [fd, fh, fw]) = (self.shape.kernel, self.first);
        for i in 0..d {
            for j in 0..h {
                f((i * h + j) * w, ((i + fd) * s.kernel[1] + j + fh) * s.kernel[2] + fw, w);
            }
        }
    }

    /// The weights of the smaller convolution.
    pub fn weights<T: Element>(&self, s: &ConvShape, w: &[T]) -> Buffer {
        let (small, whole) = (self.shape.taps(), s.taps());
        let mut out = Buffer::uninit(std::mem::size_of_val(w) / whole * small);
        let each = s.group_in();
        parallel::for_each_chunk_mut(out.as_mut_slice::<T>(), each * small, 4, |i, out| {
            for (out, w) in out.chunks_exact_mut(small).zip(w[i * each * whole..].chunks_exact(whole)) {
                self.rows(s, |to, from, n| out[to..to + n].copy_from_slice(&w[from..from + n]));
            }
        });
        out
    }

    /// The gradient by the whole weights, from that by the smaller: zero for the elements that were left out.
    pub fn spread<T: Element>(&self, s: &ConvShape, small: &[T], dw: &mut [T]) {
        let (taps, whole) = (self.shape.taps(), s.taps());
        let each = s.group_in();
        parallel::for_each_chunk_mut(dw, each * whole, 1, |i, dw| {
            dw.fill(T::default());
            for (dw, small) in dw.chunks_exact_mut(whole).zip(small[i * each * taps..].chunks_exact(taps)) {
                self.rows(s, |from, to, n| dw[to..to + n].copy_from_slice(&small[from..from + n]));
            }
        });
    }
}

/// Does the only window of each image see all of it?
pub(crate) fn is_whole(s: &ConvShape) -> bool {
    s.groups == 1 && s.output == [1; 3] && s.kernel == s.input && s.pad_begin == [0; 3] && s.dilation == [1; 3]
}

/// `y = x · wᵀ + bias`.
pub(crate) fn forward<T: Float + Gemm>(s: &ConvShape, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    if let Some(bias) = bias {
        y.chunks_exact_mut(s.out_channels).for_each(|row| row.copy_from_slice(bias));
    }
    let c = MatMut::rows(y, s.out_channels);
    matmul(s.batch, s.out_channels, s.k(), Mat::rows(x, s.k()), Mat::rows(w, s.k()).t(), c, bias.is_some());
}

/// `dx = dy · w`.
pub(crate) fn backward_data<T: Float + Gemm>(s: &ConvShape, w: &[T], dy: &[T], dx: &mut [T]) {
    let (a, b) = (Mat::rows(dy, s.out_channels), Mat::rows(w, s.k()));
    matmul(s.batch, s.k(), s.out_channels, a, b, MatMut::rows(dx, s.k()), false);
}

/// `dw = dyᵀ · x`.
pub(crate) fn backward_weight<T: Float + Gemm>(s: &ConvShape, x: &[T], dy: &[T], dw: &mut [T]) {
    let (a, b) = (Mat::rows(dy, s.out_channels).t(), Mat::rows(x, s.k()));
    matmul(s.out_channels, s.k(), s.batch, a, b, MatMut::rows(dw, s.k()), false);
}
