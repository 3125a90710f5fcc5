//! The innermost loop of dense layers: outputs of some places (rows) and a panel of channels, summed in registers.

use super::{After, BLOCK};
use crate::conv::few_channels::even;
use crate::simd::each;
use pulp::{Simd, WithSimd};

/// Rows of a tile with 32 vector registers, and with 16.
const ROWS_OF_32: usize = 12;
const ROWS_OF_16: usize = 6;
/// Vectors in a row of a tile, as many as a panel of weights is wide.
const VECTORS: usize = 2;
/// Elements of the largest tile.
const LARGEST: usize = ROWS_OF_32 * VECTORS * BLOCK;

/// Where a run of products begins in the input, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) offset: usize,
    pub(super) depth: usize,
}

/// How rows lie: in lines of `count`, `x_line` and `y_line` apart, and `x_row` and `y_row` within them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) lines: usize,
    pub(super) count: usize,
    pub(super) x_line: usize,
    pub(super) x_row: usize,
    pub(super) y_line: usize,
    pub(super) y_row: usize,
}

/// How the channels of an output lie: in blocks of [`BLOCK`], so far apart; or side by side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Channels {
    Blocks(usize),
    Row,
}

/// Outputs of all rows and some panels of channels.
pub(super) struct Tiles<'a> {
    pub(super) rows: Rows,
    pub(super) reads: &'a [Read],
    /// Products of an output: the sum of all depths.
    pub(super) depth: usize,
    /// The channels: from the first of a panel to the end.
    pub(super) first: usize,
    pub(super) end: usize,
    /// All channels of the layer.
    pub(super) all: usize,
    /// What all rows read, and the weights of the first panel: `[panel, product, channel]`.
    pub(super) x: *const f32,
    pub(super) w: *const f32,
    /// By channel, from the first of the layer on; filled up to whole vectors.
    pub(super) bias: Option<&'a [f32]>,
    /// Added to the outputs; lies as they do.
    pub(super) add: Option<*const f32>,
    pub(super) after: After,
    pub(super) channels: Channels,
    /// The first output of channel 0.
    pub(super) y: *mut f32,
}

/// Channels of a panel on this machine.
pub(super) fn panel() -> usize {
    struct Ask;
    impl WithSimd for Ask {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            VECTORS * S::F32_LANES
        }
    }
    pulp::Arch::new().dispatch(Ask)
}

/// Elements of packed weights for so many channels and products of each.
pub(super) fn packed_len(channels: usize, depth: usize) -> usize {
    channels.next_multiple_of(panel() / VECTORS) * depth
}

/// Packs weights, of which `at(channel, product)` is one, as [`Tiles`] reads them.
pub(super) fn pack(channels: usize, depth: usize, at: impl Fn(usize, usize) -> f32 + Sync, out: &mut [f32]) {
    let (panel, lanes) = (panel(), panel() / VECTORS);
    assert!(out.len() >= packed_len(channels, depth));
    crate::parallel::for_each_chunk_mut(&mut out[..packed_len(channels, depth)], panel * depth, 1, |p, out| {
        let width = (channels - p * panel).next_multiple_of(lanes).min(panel);
        for (k, row) in out.chunks_exact_mut(width).enumerate() {
            for (j, to) in row.iter_mut().enumerate() {
                let channel = p * panel + j;
                *to = if channel < channels { at(channel, k) } else { 0.0 };
            }
        }
    });
}

impl WithSimd for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (lanes, panel) = (S::F32_LANES, VECTORS * S::F32_LANES);
        let most = if lanes >= 16 { ROWS_OF_32 } else { ROWS_OF_16 };
        let mut sums = Sums([0.0; LARGEST]);
        for c in (self.first..self.end).step_by(panel) {
            let wide = (self.all - c).min(panel) > lanes;
            // SAFETY: the panels before this one are whole.
            let w = unsafe { self.w.add((c - self.first) * self.depth) };
            for line in 0..self.rows.lines {
                for piece in even(self.rows.count, most) {
                    let x = line * self.rows.x_line + piece.start * self.rows.x_row;
                    let y = line * self.rows.y_line + piece.start * self.rows.y_row;
                    if wide {
                        self.pick::<S, VECTORS>(simd, x, w, piece.len(), &mut sums);
                        self.finish::<S, VECTORS>(simd, c, y, piece.len(), &sums);
                    } else {
                        self.pick::<S, 1>(simd, x, w, piece.len(), &mut sums);
                        self.finish::<S, 1>(simd, c, y, piece.len(), &sums);
                    }
                }
            }
        }
    }
}

/// A tile on its way from the registers to its place.
#[repr(align(64))]
struct Sums([f32; LARGEST]);

impl Tiles<'_> {
    #[inline(always)]
    fn pick<S: Simd, const V: usize>(&self, simd: S, x: usize, w: *const f32, rows: usize, sums: &mut Sums) {
        // SAFETY: promised by whoever made this: every row can be read from its place on.
        let x = unsafe { self.x.add(x) };
        macro_rules! rows {
            ($($n:literal),*) => {
                match rows {
                    0 => {}
                    1 => self.single::<S, V>(simd, x, w, sums),
                    $($n => self.tile::<S, $n, V>(simd, x, w, sums),)*
                    _ => unreachable!("a tile has no more rows than that"),
                }
            };
        }
        if S::F32_LANES >= 16 {
            rows!(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        } else {
            rows!(2, 3, 4, 5, 6);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&self, simd: S, x: *const f32, w: *const f32, sums: &mut Sums) {
        const { assert!(R * V * S::F32_LANES <= LARGEST) };
        let (lanes, row) = (S::F32_LANES, self.rows.x_row);
        let mut sum = [[simd.splat_f32s(0.0); V]; R];
        // SAFETY: promised by whoever made this: all reads of all rows, and as many weights, are valid.
        unsafe {
            let mut w = w;
            for read in self.reads {
                let mut x = x.add(read.offset);
                for _ in 0..read.depth {
                    let wv: [S::f32s; V] = each!(v => w.add(v * lanes).cast::<S::f32s>().read_unaligned());
                    for r in 0..R {
                        let xv = simd.splat_f32s(*x.add(r * row));
                        for v in 0..V {
                            sum[r][v] = simd.mul_add_e_f32s(xv, wv[v], sum[r][v]);
                        }
                    }
                    (x, w) = (x.add(1), w.add(V * lanes));
                }
            }
            // All at once and first to memory: sums that are looked at one by one would not stay in registers above.
            sums.0.as_mut_ptr().cast::<[[S::f32s; V]; R]>().write_unaligned(sum);
        }
    }

    /// One row: four sums take turns, so that none waits for the one before.
    #[inline(always)]
    fn single<S: Simd, const V: usize>(&self, simd: S, x: *const f32, w: *const f32, sums: &mut Sums) {
        const TURNS: usize = 4;
        let lanes = S::F32_LANES;
        let mut sum = [[simd.splat_f32s(0.0); V]; TURNS];
        // SAFETY: as for `tile`.
        unsafe {
            let mut w = w;
            for read in self.reads {
                let mut x = x.add(read.offset);
                for _ in 0..read.depth / TURNS {
                    for t in 0..TURNS {
                        let xv = simd.splat_f32s(*x.add(t));
                        for v in 0..V {
                            let wv = w.add((t * V + v) * lanes).cast::<S::f32s>().read_unaligned();
                            sum[t][v] = simd.mul_add_e_f32s(xv, wv, sum[t][v]);
                        }
                    }
                    (x, w) = (x.add(TURNS), w.add(TURNS * V * lanes));
                }
                for _ in 0..read.depth % TURNS {
                    let xv = simd.splat_f32s(*x);
                    for v in 0..V {
                        let wv = w.add(v * lanes).cast::<S::f32s>().read_unaligned();
                        sum[0][v] = simd.mul_add_e_f32s(xv, wv, sum[0][v]);
                    }
                    (x, w) = (x.add(1), w.add(V * lanes));
                }
            }
            for v in 0..V {
                let pair = simd.add_f32s(sum[0][v], sum[1][v]);
                let other = simd.add_f32s(sum[2][v], sum[3][v]);
                let to = sums.0.as_mut_ptr().add(v * lanes).cast::<S::f32s>();
                to.write_unaligned(simd.add_f32s(pair, other));
            }
        }
    }

    /// Bias, sum, activation, and to its place.
    #[inline(always)]
    fn finish<S: Simd, const V: usize>(&self, simd: S, channel: usize, y: usize, rows: usize, sums: &Sums) {
        let lanes = S::F32_LANES;
        for v in 0..V {
            let c = channel + v * lanes;
            if c >= self.all {
                break;
            }
            let bias = match self.bias {
                // SAFETY: the bias is filled up to whole vectors.
                Some(bias) => unsafe { bias.as_ptr().add(c).cast::<S::f32s>().read_unaligned() },
                None => simd.splat_f32s(0.0),
            };
            let (at, real) = match self.channels {
                Channels::Blocks(step) => (y + c / BLOCK * step + c % BLOCK, lanes),
                Channels::Row => (y + c, lanes.min(self.all - c)),
            };
            for r in 0..rows {
                let at = at + r * self.rows.y_row;
                // SAFETY: the outputs of these channels of this row, which are ours; the sums of this tile.
                unsafe {
                    let from = sums.0.as_ptr().add((r * V + v) * lanes).cast::<S::f32s>();
                    let mut value = simd.add_f32s(from.read_unaligned(), bias);
                    if real == lanes {
                        if let Some(add) = self.add {
                            value = simd.add_f32s(value, add.add(at).cast::<S::f32s>().read_unaligned());
                        }
                        self.y.add(at).cast::<S::f32s>().write_unaligned(self.after.of(simd, value));
                    } else {
                        if let Some(add) = self.add {
                            let add = std::slice::from_raw_parts(add.add(at), real);
                            value = simd.add_f32s(value, simd.partial_load_f32s(add));
                        }
                        let to = std::slice::from_raw_parts_mut(self.y.add(at), real);
                        simd.partial_store_f32s(to, self.after.of(simd, value));
                    }
                }
            }
        }
    }
}
