//! Sliding blocks of images as columns, and back: what `paddle.nn.functional.unfold` and `fold` compute.

use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Element, parallel};
use sampan_macros::by_dtype;

/// Blocks of a plane. Padding is before and after each axis; the number of blocks per axis is `blocks`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Height and width of a block.
    pub kernel: [usize; 2],
    /// Step between blocks.
    pub stride: [usize; 2],
    /// Step between the elements of a block.
    pub dilation: [usize; 2],
    /// Zeros above and to the left.
    pub pad_begin: [usize; 2],
    /// How many blocks there are vertically and horizontally.
    pub count: [usize; 2],
}

impl Blocks {
    /// Counts the blocks; `None` where none fits.
    pub fn new(
        image: [usize; 2],
        kernel: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
        pad_begin: [usize; 2],
        pad_end: [usize; 2],
    ) -> Option<Blocks> {
        let mut count = [0; 2];
        for a in 0..2 {
            let window = dilation[a] * kernel[a].checked_sub(1)? + 1;
            count[a] = (image[a] + pad_begin[a] + pad_end[a]).checked_sub(window)?.checked_div(stride[a])? + 1;
        }
        Some(Blocks { image, kernel, stride, dilation, pad_begin, count })
    }

    fn plane(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Elements that one plane unfolds to.
    pub fn columns(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.count[0] * self.count[1]
    }

    /// Calls `f(place in the columns, place in the image)` for all elements of all blocks that lie inside the image.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let inside = |block: usize, k: usize, a: usize| {
            (block * self.stride[a] + k * self.dilation[a])
                .checked_sub(self.pad_begin[a])
                .filter(|&i| i < self.image[a])
        };
        for tap in 0..self.kernel[0] * self.kernel[1] {
            let (kh, kw) = (tap / self.kernel[1], tap % self.kernel[1]);
            for h in 0..self.count[0] {
                let Some(y) = inside(h, kh, 0) else { continue };
                for w in 0..self.count[1] {
                    if let Some(x) = inside(w, kw, 1) {
                        f((tap * self.count[0] + h) * self.count[1] + w, y * self.image[1] + x);
                    }
                }
            }
        }
    }
}

/// `x` is `[planes, height, width]`, `cols` is `[planes, kernel elements, blocks]`; with planes = batch × channels this
/// is the layout `[batch, channels × kernel elements, blocks]`.
#[by_dtype(T in bytes)]
pub fn unfold<T: Element>(s: &Blocks, planes: usize, x: &[T], cols: &mut [T]) {
    assert!(x.len() == planes * s.plane() && cols.len() == planes * s.columns(), "unfold: {planes} planes of {s:?}");
    parallel::for_each_chunk_mut(cols, s.columns(), 2, |p, cols| {
        let x = &x[p * s.plane()..(p + 1) * s.plane()];
        cols.fill(T::default());
        s.each(|at, place| cols[at] = x[place]);
    });
}

/// Adds the columns up where [`unfold`] takes them from: its transpose.
#[by_dtype(T in float)]
pub fn fold<T: RealElement>(s: &Blocks, planes: usize, cols: &[T], x: &mut [T]) {
    assert!(x.len() == planes * s.plane() && cols.len() == planes * s.columns(), "fold: {planes} planes of {s:?}");
    parallel::for_each_chunk_mut(x, s.plane(), 2 * s.kernel[0] * s.kernel[1], |p, x| {
        let cols = &cols[p * s.columns()..(p + 1) * s.columns()];
        // Half types add up wide and are rounded once.
        let mut wide = vec![T::Wide::ZERO; x.len()];
        s.each(|at, place| wide[place] += cols[at].wide());
        x.iter_mut().zip(&wide).for_each(|(o, v)| *o = T::narrow(*v));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_columns() {
        let s = Blocks::new([3, 3], [2, 2], [1, 1], [1, 1], [0, 0], [0, 0]).unwrap();
        let x: Vec<f32> = (0..9).map(|v| v as f32).collect();
        let mut cols = vec![9.0; 16];
        unfold_of(&s, 1, &x, &mut cols);
        assert_eq!(cols, [0., 1., 3., 4., 1., 2., 4., 5., 3., 4., 6., 7., 4., 5., 7., 8.]);
        let mut back = vec![9.0; 9];
        fold_of(&s, 1, &cols, &mut back);
        assert_eq!(back, [0., 2., 2., 6., 16., 10., 6., 14., 8.]);
    }

    #[test]
    fn fold_is_the_transpose() {
        let s = Blocks::new([5, 7], [3, 2], [2, 1], [1, 2], [1, 2], [0, 1]).unwrap();
        let x: Vec<f64> = (0..2 * 35).map(|v| (v * 37 % 11) as f64).collect();
        let c: Vec<f64> = (0..2 * s.columns()).map(|v| (v * 53 % 13) as f64).collect();
        let (mut cols, mut back) = (vec![1.0; c.len()], vec![1.0; x.len()]);
        unfold_of(&s, 2, &x, &mut cols);
        fold_of(&s, 2, &c, &mut back);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert_eq!(dot(&cols, &c), dot(&x, &back));
        assert!(Blocks::new([2, 2], [3, 3], [1, 1], [1, 1], [0, 0], [0, 0]).is_none());
    }
}
