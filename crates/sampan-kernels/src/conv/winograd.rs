//! Winograd's convolution for 3×3 kernels with unit steps in `f32`: tiles of m×m outputs from (m+2)×(m+2) inputs with one
//! product per input element instead of nine per output, so 2.25 (m = 2) or 4 (m = 4) times fewer.
//!
//! Input tiles and kernels are transformed, multiplied as one small matrix product over the channels for each of the
//! (m+2)² elements, and the sums transformed back. Sums of transformed numbers cancel, so results are a little less exact
//! than direct sums: relative to the largest output about 1e-6 for m = 2 and 1e-5 for m = 4. An infinity or NaN in the
//! input reaches all outputs of its tile.
//!
//! The gradient by the weights uses the same transforms. There an infinity or NaN reaches all weights between its channel
//! and the others.
//!
//! Lanes are channels: images are turned so that a block of channels lies side by side, see [`product::BLOCK`]. Rows of
//! tiles of all images follow each other, and some of them are done at a time.

use crate::conv::ConvShape;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use lines::Step;
use product::BLOCK;
use pulp::Arch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use tiles::{Images, Rows, Spread};

mod forward;
pub(crate) mod lines;
pub(crate) mod product;
mod tiles;
mod weight;

/// Which 3×3 convolutions in `f32` (and half types) may be computed by Winograd's method, which is faster and a little
/// less exact. See [`set_winograd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winograd {
    /// None: every output is a direct sum of products.
    Off,
    /// Only with tiles of 2×2 outputs, whose errors are those of direct sums within a small factor.
    Small,
    /// With tiles of 4×4 or 2×2 outputs, whichever is faster, where they are faster than direct sums. The default; errors
    /// stay below 1e-4 of the largest output.
    Auto,
}

/// The setting plus one; zero before anybody asked.
static SETTING: AtomicU8 = AtomicU8::new(0);

/// Chooses which 3×3 convolutions may use Winograd's method. At start the environment variable `SAMPAN_WINOGRAD` (`off`,
/// `small` or `auto`) decides.
pub fn set_winograd(setting: Winograd) {
    SETTING.store(setting as u8 + 1, Ordering::Relaxed);
}

/// The setting of [`set_winograd`].
pub fn winograd() -> Winograd {
    match SETTING.load(Ordering::Relaxed) {
        0 => {
            set_winograd(match std::env::var("SAMPAN_WINOGRAD").as_deref() {
                Ok("off") => Winograd::Off,
                Ok("small") => Winograd::Small,
                _ => Winograd::Auto,
            });
            winograd()
        }
        1 => Winograd::Off,
        2 => Winograd::Small,
        _ => Winograd::Auto,
    }
}

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// How a convolution is cut into tiles.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Points along an axis, which is also the method's name.
    n: usize,
    /// Extent of a tile's output.
    m: usize,
    /// Tiles across and down an image.
    across: usize,
    down: usize,
}

impl Plan {
    fn new(s: &ConvShape, n: usize) -> Plan {
        let m = lines::outputs(n);
        Plan { n, m, across: s.output[2].div_ceil(m), down: s.output[1].div_ceil(m) }
    }

    fn points(&self) -> usize {
        self.n * self.n
    }

    /// About how many cycles of one core it takes.
    fn cost(&self, s: &ConvShape) -> usize {
        let (ci, co) = (s.in_channels.next_multiple_of(WIDEST), s.out_channels.next_multiple_of(WIDEST));
        let tiles = (s.batch * self.down * self.across).next_multiple_of(product::ROWS);
        let products = self.points() * ci * co * tiles / WIDEST;
        let transforms = self.points() * (ci + co) * tiles / 2;
        products * 9 / 8 + transforms + self.points() * ci * co / 2
    }
}

/// The cheapest plan for that shape, if one is cheaper than direct sums.
fn plan(s: &ConvShape) -> Option<Plan> {
    let planar = s.input[0] == 1 && s.output[0] == 1 && s.kernel == [1, 3, 3] && s.pad_begin[0] == 0;
    if !planar || s.stride != [1; 3] || s.dilation != [1; 3] || s.groups != 1 || s.in_channels < WIDEST {
        return None;
    }
    let direct = s.y_len() * s.k() / WIDEST * 9 / 8;
    let sizes: &[usize] = match winograd() {
        Winograd::Off => return None,
        _ if whole(s) => &[3],
        Winograd::Small => &[4],
        Winograd::Auto => &[6, 4],
    };
    let best = sizes.iter().map(|&n| Plan::new(s, n)).min_by_key(|p| p.cost(s))?;
    (best.cost(s) < direct).then_some(best)
}

/// Are the images 2×2 with padding all around?
fn whole(s: &ConvShape) -> bool {
    s.input == [1, 2, 2] && s.output == [1, 2, 2] && s.pad_begin == [0, 1, 1]
}

/// Is [`forward`] the fastest path for that shape?
pub(crate) fn suits(s: &ConvShape) -> bool {
    plan(s).is_some()
}

/// Is [`backward_weight`] the fastest path for that shape?
pub(crate) fn suits_weight(s: &ConvShape) -> bool {
    plan(s).is_some()
}

/// The input as tiles see it.
fn input_images<'a>(s: &ConvShape, plan: &Plan, data: &'a [f32]) -> Images<'a> {
    let pad = if plan.n == 3 { [0; 2] } else { [s.pad_begin[1], s.pad_begin[2]] };
    Images { data, channels: s.in_channels, extent: [s.input[1], s.input[2]], pad }
}

/// Transforms tiles of all channels: `[block of channels, point, tile, channel]`. Each task has about as many tiles as it
/// says; without that, this thread does them all.
fn spread<T: Step>(images: Images, plan: &Plan, rows: &Rows, tiles: Option<usize>, out: &mut [f32]) {
    let per_block = T::TO * T::TO * rows.step(plan);
    assert!(out.len() >= images.blocks() * per_block);
    let out = Shared::new(out);
    let one = |block: usize, part: std::ops::Range<usize>| {
        let mut scratch = Buffer::uninit(4 * Spread::<T>::scratch(images, plan, part.len()));
        // SAFETY: the block's part of `out`, which has room for all; parts are disjoint.
        let spread = unsafe {
            let out = out.get().add(block * per_block);
            Spread::<T>::new(images, plan, block, rows, part, scratch.as_mut_slice(), out)
        };
        Arch::new().dispatch(spread);
    };
    let Some(tiles) = tiles else { return (0..images.blocks()).for_each(|block| one(block, rows.0.clone())) };
    let each = (tiles / plan.across).max(1);
    let parts = rows.0.len().div_ceil(each);
    parallel::for_each_range(images.blocks() * parts, 1, T::TO * T::TO * each * plan.across * BLOCK / 8, |task| {
        let (block, start) = (task.start / parts, rows.0.start + task.start % parts * each);
        one(block, start..rows.0.end.min(start + each));
    });
}

/// Something all threads need: made by all of them together, or by every thread for itself when it needs it.
struct Own<F> {
    make: F,
    /// One for each thread, or one for all.
    made: Vec<OnceLock<Buffer>>,
}

impl<F: Fn() -> Buffer> Own<F> {
    fn new(own: bool, make: F) -> Own<F> {
        let count = if own { parallel::num_threads() } else { 1 };
        let made: Vec<OnceLock<Buffer>> = (0..count).map(|_| OnceLock::new()).collect();
        if count == 1 {
            made[0].get_or_init(&make);
        }
        Own { make, made }
    }

    fn get(&self) -> &Buffer {
        self.made[parallel::place() % self.made.len()].get_or_init(&self.make)
    }
}

/// `y = x ⋆ w + bias`, for shapes that [`suits`] likes; with `mirrored` weights, the gradient by data of the convolution
/// that `s` mirrors.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], mirrored: bool, bias: Option<&[f32]>, y: &mut [f32]) {
    let plan = plan(s).expect("the caller asked whether it suits");
    run(s, &plan, x, forward::Weights { w, mirrored }, bias, y);
}

fn run(s: &ConvShape, plan: &Plan, x: &[f32], weights: forward::Weights, bias: Option<&[f32]>, y: &mut [f32]) {
    match plan.n {
        3 => forward::run::<3>(s, plan, x, weights, bias, y),
        4 => forward::run::<4>(s, plan, x, weights, bias, y),
        _ => forward::run::<6>(s, plan, x, weights, bias, y),
    }
}

/// The gradient by the weights, for shapes that [`suits_weight`] likes.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let plan = plan(s).expect("the caller asked whether it suits");
    run_weight(s, &plan, x, dy, dw);
}

fn run_weight(s: &ConvShape, plan: &Plan, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    match plan.n {
        3 => weight::run::<3>(s, plan, x, dy, dw),
        4 => weight::run::<4>(s, plan, x, dy, dw),
        _ => weight::run::<6>(s, plan, x, dy, dw),
    }
}

#[cfg(test)]
mod tests;
