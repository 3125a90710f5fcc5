//! Loop nests: several strided operands walked together in row-major order.

use crate::View;

/// Most axes that remain after those of length 1 are dropped and adjacent ones are merged. An array with more would
/// have over 2³² elements or a stranger layout than any we make.
pub const MAX_RANK: usize = 32;

/// The merged iteration space of `N` operands. Rank 0 means a single element.
#[derive(Clone, Copy)]
pub struct Nest<const N: usize> {
    /// Axes in use.
    pub rank: usize,
    /// Extents.
    pub shape: [usize; MAX_RANK],
    /// Steps of each operand along each axis.
    pub strides: [[isize; MAX_RANK]; N],
}

impl<const N: usize> Nest<N> {
    /// Drops axes of length 1 and merges neighbours that every operand crosses with one step.
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> Self {
        Self::with_barriers(shape, strides, |_, _| true)
    }

    /// The same, merging axes `i` and `j` only where `may_merge(i, j)`.
    pub fn with_barriers(shape: &[usize], strides: [&[isize]; N], may_merge: impl Fn(usize, usize) -> bool) -> Self {
        let mut nest = Nest { rank: 0, shape: [1; MAX_RANK], strides: [[0; MAX_RANK]; N] };
        let mut last = 0;
        for (axis, &n) in shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let r = nest.rank;
            let merges = r > 0
                && may_merge(last, axis)
                && (0..N).all(|k| nest.strides[k][r - 1] == strides[k][axis] * n as isize);
            last = axis;
            if merges {
                nest.shape[r - 1] *= n;
                for k in 0..N {
                    nest.strides[k][r - 1] = strides[k][axis];
                }
            } else {
                assert!(r < MAX_RANK, "an array of more than {MAX_RANK} axes that do not merge");
                nest.shape[r] = n;
                for k in 0..N {
                    nest.strides[k][r] = strides[k][axis];
                }
                nest.rank += 1;
            }
        }
        nest
    }

    /// Elements of the whole space.
    pub fn len(&self) -> usize {
        self.shape[..self.rank].iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of the innermost axis.
    pub fn inner(&self) -> usize {
        if self.rank == 0 { 1 } else { self.shape[self.rank - 1] }
    }

    /// Step of operand `k` along the innermost axis.
    pub fn inner_stride(&self, k: usize) -> isize {
        if self.rank == 0 { 1 } else { self.strides[k][self.rank - 1] }
    }

    /// Is operand `k` one row, over and over?
    pub fn repeats_row(&self, k: usize) -> bool {
        self.rank > 1 && self.inner_stride(k) == 1 && self.strides[k][..self.rank - 1].iter().all(|&s| s == 0)
    }

    /// The space without its innermost axis.
    pub fn outer(&self) -> Self {
        Nest { rank: self.rank.saturating_sub(1), ..*self }
    }

    /// A walk over the row-major positions `start..end`.
    pub fn walk(&self, base: [usize; N], start: usize, end: usize) -> Walk<'_, N> {
        let mut walk = Walk { nest: self, index: [0; MAX_RANK], offsets: base.map(|b| b as isize), left: end - start };
        let mut rest = start;
        for axis in (0..self.rank).rev() {
            let i = rest % self.shape[axis];
            rest /= self.shape[axis];
            walk.index[axis] = i;
            for k in 0..N {
                walk.offsets[k] += i as isize * self.strides[k][axis];
            }
        }
        walk
    }
}

/// Where a walk stands; see [`Nest::walk`].
pub struct Walk<'n, const N: usize> {
    nest: &'n Nest<N>,
    index: [usize; MAX_RANK],
    offsets: [isize; N],
    left: usize,
}

impl<const N: usize> Walk<'_, N> {
    /// How many elements lie along the innermost axis from here on.
    pub fn run(&self) -> usize {
        let axis = self.nest.rank.saturating_sub(1);
        if self.nest.rank == 0 { 1 } else { self.nest.shape[axis] - self.index[axis] }
    }

    /// The next run along the innermost axis, of at most `limit` elements: its length and where each operand starts.
    #[inline]
    pub fn next_run(&mut self, limit: usize) -> Option<(usize, [isize; N])> {
        if self.left == 0 {
            return None;
        }
        let at = self.offsets;
        let nest = self.nest;
        if nest.rank == 0 {
            self.left = 0;
            return Some((1, at));
        }
        let mut axis = nest.rank - 1;
        let run = (nest.shape[axis] - self.index[axis]).min(limit).min(self.left);
        self.left -= run;
        self.index[axis] += run;
        for k in 0..N {
            self.offsets[k] += run as isize * nest.strides[k][axis];
        }
        while self.index[axis] == nest.shape[axis] && axis > 0 {
            self.index[axis] = 0;
            for k in 0..N {
                self.offsets[k] += nest.strides[k][axis - 1] - nest.shape[axis] as isize * nest.strides[k][axis];
            }
            axis -= 1;
            self.index[axis] += 1;
        }
        Some((run, at))
    }
}

/// Panics unless every element of the view lies inside its data; what the unsafe reads of the kernels rest on.
pub fn check_bounds<T>(v: &View<'_, T>) {
    if let Err(why) = within(v.data.len(), v.shape, v.strides, v.offset) {
        panic!("{why}");
    }
}

/// Are all elements of such a layout inside `0..len`?
pub fn within(len: usize, shape: &[usize], strides: &[isize], offset: usize) -> Result<(), String> {
    assert_eq!(shape.len(), strides.len(), "one stride for each axis");
    let (mut low, mut high) = (offset as isize, offset as isize);
    for (&n, &s) in shape.iter().zip(strides) {
        if n == 0 {
            return Ok(());
        }
        let reach = (n as isize - 1) * s;
        if reach < 0 { low += reach } else { high += reach }
    }
    if low < 0 || high >= len as isize {
        return Err(format!("a view reaches {low}..={high} of {len} elements (shape {shape:?}, strides {strides:?})"));
    }
    Ok(())
}

/// Reads `dst.len()` elements from `data[at]` in steps of `stride`.
///
/// # Safety
/// Every `at + i·stride` for `i < dst.len()` lies inside `data`.
#[inline(always)]
pub unsafe fn gather<T: Copy>(data: &[T], at: isize, stride: isize, dst: &mut [T]) {
    // SAFETY: the caller promises that each index is inside `data`.
    unsafe {
        match stride {
            0 => dst.fill(*data.get_unchecked(at as usize)),
            1 => dst.copy_from_slice(data.get_unchecked(at as usize..at as usize + dst.len())),
            _ => {
                let base = data.as_ptr().offset(at);
                for (i, d) in dst.iter_mut().enumerate() {
                    *d = *base.offset(i as isize * stride);
                }
            }
        }
    }
}
