//! The products of transformed tiles, for each point a small matrix product in registers.

use pulp::Simd;

/// Channels that lie side by side everywhere here: `[block of channels, point, tile, channel]`.
pub(crate) const BLOCK: usize = 32;
/// Rows of a product are filled up to a multiple of it; so many are summed at once where there are 32 registers.
pub(crate) const ROWS: usize = 8;
/// The same for 16 registers.
const FEW_ROWS: usize = 4;
/// Vectors summed at once in each row.
const VECTORS: usize = 2;

/// `to = a · b`, or `to += a · b`: the rows of `b` and of the result are [`BLOCK`] apart.
pub(super) struct Product {
    /// A multiple of [`ROWS`].
    pub(super) rows: usize,
    /// Whole vectors, at most a block.
    pub(super) cols: usize,
    pub(super) depth: usize,
    pub(super) a: *const f32,
    /// From one block of `a`'s columns to the next, where these lie in blocks.
    pub(super) a_block: usize,
    pub(super) b: *const f32,
    pub(super) to: *mut f32,
    pub(super) add: bool,
}

impl Product {
    /// The rows of `a` are `ROW` apart, its columns `COLUMN`; those with `COLUMN` 1 lie in blocks of [`BLOCK`].
    ///
    /// # Safety
    /// The elements are valid to read and those of `to` to write.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd, const ROW: usize, const COLUMN: usize>(&self, simd: S) {
        let rows = if S::F32_LANES >= 16 { ROWS } else { FEW_ROWS };
        for row in (0..self.rows).step_by(rows) {
            for col in (0..self.cols).step_by(VECTORS * S::F32_LANES) {
                // SAFETY: promised by the caller.
                unsafe {
                    match (S::F32_LANES >= 16, self.cols - col > S::F32_LANES) {
                        (true, true) => self.tile::<S, ROW, COLUMN, ROWS, VECTORS>(simd, row, col),
                        (true, false) => self.tile::<S, ROW, COLUMN, ROWS, 1>(simd, row, col),
                        (false, true) => self.tile::<S, ROW, COLUMN, FEW_ROWS, VECTORS>(simd, row, col),
                        (false, false) => self.tile::<S, ROW, COLUMN, FEW_ROWS, 1>(simd, row, col),
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    #[inline(always)]
    unsafe fn tile<S: Simd, const ROW: usize, const COLUMN: usize, const R: usize, const V: usize>(
        &self,
        simd: S,
        row: usize,
        col: usize,
    ) {
        let in_blocks = COLUMN == 1;
        let mut sum = [[simd.splat_f32s(0.0); V]; R];
        // SAFETY: promised by the caller.
        unsafe {
            let to = self.to.add(row * BLOCK + col);
            if self.add {
                for r in 0..R {
                    for v in 0..V {
                        sum[r][v] = to.add(r * BLOCK + v * S::F32_LANES).cast::<S::f32s>().read_unaligned();
                    }
                }
            }
            let mut b = self.b.add(col);
            let mut done = 0;
            while done < self.depth {
                let blocks = if in_blocks { done / BLOCK * self.a_block } else { 0 };
                let mut a = self.a.add(row * ROW + blocks);
                let len = if in_blocks { BLOCK.min(self.depth - done) } else { self.depth };
                for _ in 0..len {
                    let mut bv = [simd.splat_f32s(0.0); V];
                    for v in 0..V {
                        bv[v] = b.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned();
                    }
                    for r in 0..R {
                        let av = simd.splat_f32s(*a.add(r * ROW));
                        for v in 0..V {
                            sum[r][v] = simd.mul_add_e_f32s(av, bv[v], sum[r][v]);
                        }
                    }
                    (a, b) = (a.add(COLUMN), b.add(BLOCK));
                }
                done += len;
            }
            for r in 0..R {
                for v in 0..V {
                    to.add(r * BLOCK + v * S::F32_LANES).cast::<S::f32s>().write_unaligned(sum[r][v]);
                }
            }
        }
    }
}
