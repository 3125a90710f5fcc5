//! The steps of an LSTM, products and gates in one pass. A tile has the four gates of a vector of units for some sequences; what
//! the products leave in registers becomes the new state at once, and preactivations are nowhere in memory.

use super::product::Lanes;
use super::sequence::Walk;
use crate::conv::few_channels::even;
use crate::shared::Shared;
use crate::simd::each;
use crate::vmath::{Real, select};
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};

/// Input, forget, candidate and output gate.
const GATES: usize = 4;
/// Sequences of a tile with 32 vector registers, and with 16.
const ROWS_OF_32: usize = 6;
const ROWS_OF_16: usize = 3;
/// Bytes of the widest vectors.
const WIDEST: usize = 64;
/// Elements that keep the states of two sequences from lying at a power of two apart.
const APART: usize = 16;

/// Elements of a vector on this machine.
fn lanes<T: Lanes>() -> usize {
    struct Ask<T>(std::marker::PhantomData<T>);
    impl<T: Lanes> WithSimd for Ask<T> {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            size_of::<T::Vector<S>>() / size_of::<T>()
        }
    }
    Arch::new().dispatch(Ask(std::marker::PhantomData::<T>))
}

/// A weight `[4 * units, depth]`, packed as `[block of units, depth, gate, unit]`. The last block is filled up with zeros.
pub(crate) struct Gates<T> {
    units: usize,
    depth: usize,
    panels: Buffer,
    element: std::marker::PhantomData<T>,
}

impl<T: Lanes> Gates<T> {
    pub(crate) fn new(weight: &[T], units: usize, depth: usize) -> Gates<T> {
        assert_eq!(weight.len(), GATES * units * depth, "a row for each gate of each unit");
        let lanes = lanes::<T>();
        let panel = (GATES * lanes * depth).max(1);
        let mut panels = Buffer::uninit(units.div_ceil(lanes) * panel * size_of::<T>());
        parallel::for_each_chunk_mut(panels.as_mut_slice::<T>(), panel, 1, |block, panel| {
            let count = lanes.min(units - block * lanes);
            if count < lanes {
                panel.fill(T::ZERO);
            }
            for gate in 0..GATES {
                let lines = &weight[(gate * units + block * lanes) * depth..][..count * depth];
                T::turn(lines, depth, &mut panel[gate * lanes..], GATES * lanes);
            }
        });
        Gates { units, depth, panels, element: std::marker::PhantomData }
    }
}

/// A layer: the weights of its inputs and of its state, and the sum of both biases.
pub(crate) struct Layer<T> {
    pub(crate) input: Gates<T>,
    pub(crate) state: Gates<T>,
    pub(crate) bias: Vec<T>,
}

impl Walk {
    /// Walks a layer from zero states: from `x` `[batch, steps, depth]` to the columns from `first` on of `y`, whose rows have
    /// `pitch` elements.
    pub(crate) fn lstm<T: Lanes>(&self, layer: &Layer<T>, x: &[T], y: &mut [T], pitch: usize, first: usize) {
        let (n, rows, depth, lanes) = (self.units, self.batch * self.steps, layer.input.depth, lanes::<T>());
        assert!(layer.input.units == n && layer.state.units == n && layer.state.depth == n, "recurrent: weights");
        assert!(layer.bias.len() == GATES * n && x.len() == rows * depth, "recurrent: inputs");
        assert!(y.len() == rows * pitch && first + n <= pitch, "recurrent: outputs");
        let blocks = n.div_ceil(lanes);
        let mut bias = vec![T::ZERO; blocks * GATES * lanes];
        for (i, &b) in layer.bias.iter().enumerate() {
            let (gate, unit) = (i / n, i % n);
            bias[(unit / lanes * GATES + gate) * lanes + unit % lanes] = b;
        }
        let y = Shared::new(y);
        let apart = if self.time_major { 1 } else { self.steps };
        let between = n + APART;
        self.groups(|group| {
            let count = group.len();
            let mut h = vec![T::ZERO; 2 * count * between];
            // As tiles read them: `[block, sequence, unit]`.
            let mut c = vec![T::ZERO; blocks * count * lanes];
            let (mut old, mut new) = h.split_at_mut(count * between);
            for i in 0..self.steps {
                let row = self.row(group.start, self.time(i));
                Arch::new().dispatch(Step {
                    count,
                    units: n,
                    layer,
                    bias: &bias,
                    x: &x[row * depth..],
                    line: apart * depth,
                    between,
                    old: &*old,
                    new: &mut *new,
                    c: &mut c,
                    // SAFETY: this row is there, and so many columns of it; those of the sequences of this group are rows that no
                    // other task touches.
                    y: unsafe { y.get().add(row * pitch + first) },
                    y_line: apart * pitch,
                });
                (old, new) = (new, old);
            }
        });
    }
}

/// One step of `count` sequences.
struct Step<'a, T> {
    count: usize,
    units: usize,
    layer: &'a Layer<T>,
    bias: &'a [T],
    /// The input of the first sequence, and how far it is from one to the next.
    x: &'a [T],
    line: usize,
    /// The same for the outputs of the step before, and for those of this one.
    between: usize,
    old: &'a [T],
    new: &'a mut [T],
    c: &'a mut [T],
    y: *mut T,
    y_line: usize,
}

/// A tile: its preactivations `[gate, sequence, unit]`, and the new outputs.
#[repr(align(64))]
struct Tile<T> {
    z: [T; GATES * ROWS_OF_32 * WIDEST / 4],
    h: [T; ROWS_OF_32 * WIDEST / 4],
}

impl<T: Lanes> WithSimd for Step<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let vector = size_of::<T::Vector<S>>();
        let most = if vector == WIDEST { ROWS_OF_32 } else { ROWS_OF_16 };
        let mut tile = Tile { z: [T::ZERO; _], h: [T::ZERO; _] };
        for block in 0..self.units.div_ceil(vector / size_of::<T>()) {
            for piece in even(self.count, most) {
                match piece.len() {
                    0 => {}
                    1 => self.multiply::<S, 1>(simd, block, piece.start, &mut tile),
                    2 => self.multiply::<S, 2>(simd, block, piece.start, &mut tile),
                    3 => self.multiply::<S, 3>(simd, block, piece.start, &mut tile),
                    4 => self.multiply::<S, 4>(simd, block, piece.start, &mut tile),
                    5 => self.multiply::<S, 5>(simd, block, piece.start, &mut tile),
                    _ => self.multiply::<S, 6>(simd, block, piece.start, &mut tile),
                }
                self.finish::<S>(block, piece.start, piece.len(), &mut tile);
            }
        }
    }
}

impl<T: Lanes> Step<'_, T> {
    /// The preactivations of `R` sequences.
    #[inline(always)]
    fn multiply<S: Simd, const R: usize>(&self, simd: S, block: usize, first: usize, tile: &mut Tile<T>) {
        const { assert!(R <= ROWS_OF_32) };
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let bias = &self.bias[block * GATES * lanes..][..GATES * lanes];
        // SAFETY: the slice holds the vectors of all gates, one after the other.
        let vector = |g: usize| unsafe { bias.as_ptr().add(g * lanes).cast::<T::Vector<S>>().read_unaligned() };
        let bias: [T::Vector<S>; GATES] = each!(g => vector(g));
        let mut sums: [[T::Vector<S>; R]; GATES] = each!(g => [bias[g]; R]);
        let (input, state) = (&self.layer.input, &self.layer.state);
        add::<T, S, R>(simd, &self.x[first * self.line..], self.line, input, block, &mut sums);
        add::<T, S, R>(simd, &self.old[first * self.between..], self.between, state, block, &mut sums);
        // All at once and first to memory: sums that are looked at one by one would not stay in registers above.
        // SAFETY: there is room for so many vectors of the widest kind.
        unsafe { tile.z.as_mut_ptr().cast::<[[T::Vector<S>; R]; GATES]>().write_unaligned(sums) };
    }

    /// From the preactivations of `rows` sequences to their new states.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, block: usize, first: usize, rows: usize, tile: &mut Tile<T>) {
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let (unit, len) = (block * lanes, rows * lanes);
        let real = lanes.min(self.units - unit);
        let c = &mut self.c[(block * self.count + first) * lanes..][..len];
        activate(&tile.z[..GATES * len], c, &mut tile.h[..len]);
        for r in 0..rows {
            let h = &tile.h[r * lanes..][..lanes];
            let new = &mut self.new[(first + r) * self.between + unit..][..real];
            // SAFETY: just found, and promised by whoever made this: the rows of these sequences are there and ours.
            unsafe {
                put::<T, S>(h, new.as_mut_ptr(), real);
                put::<T, S>(h, self.y.add((first + r) * self.y_line + unit), real);
            }
        }
    }
}

/// Adds the products of `R` rows, `line` apart, with a block of a weight.
#[inline(always)]
fn add<T: Lanes, S: Simd, const R: usize>(
    simd: S,
    x: &[T],
    line: usize,
    weight: &Gates<T>,
    block: usize,
    sums: &mut [[T::Vector<S>; R]; GATES],
) {
    let (depth, lanes) = (weight.depth, size_of::<T::Vector<S>>() / size_of::<T>());
    let panel = &weight.panels.as_slice::<T>()[block * depth * GATES * lanes..][..depth * GATES * lanes];
    assert!((R - 1) * line + depth <= x.len(), "rows leave their slice");
    let (mut x, mut w) = (x.as_ptr(), panel.as_ptr());
    for _ in 0..depth {
        // SAFETY: the panel has four vectors for each of `depth` steps, and `depth` elements of each row were just found in `x`.
        unsafe {
            let b: [T::Vector<S>; GATES] = each!(g => w.add(g * lanes).cast::<T::Vector<S>>().read_unaligned());
            for r in 0..R {
                let value = T::splat(simd, *x.add(r * line));
                for g in 0..GATES {
                    sums[g][r] = T::fused(simd, value, b[g], sums[g][r]);
                }
            }
            (x, w) = (x.add(1), w.add(GATES * lanes));
        }
    }
}

/// The first `real` elements of a vector to their place.
///
/// # Safety
/// They are valid to write.
#[inline(always)]
unsafe fn put<T: Lanes, S: Simd>(from: &[T], to: *mut T, real: usize) {
    let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
    assert!(real <= lanes && from.len() >= lanes);
    // SAFETY: promised by the caller, and just found.
    unsafe {
        if real == lanes {
            to.cast::<T::Vector<S>>().write_unaligned(from.as_ptr().cast::<T::Vector<S>>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, real);
        }
    }
}

/// From preactivations to the new states.
#[inline(always)]
fn activate<T: Real>(z: &[T], c: &mut [T], h: &mut [T]) {
    let n = h.len();
    let (zi, zf, zg, zo, c) = (&z[..n], &z[n..2 * n], &z[2 * n..3 * n], &z[3 * n..4 * n], &mut c[..n]);
    for j in 0..n {
        (c[j], h[j]) = unit([zi[j], zf[j], zg[j], zo[j]], c[j]);
    }
}

/// The new cell state and output of a unit. All are fractions over common denominators, because divisions take longest: two
/// instead of five. Beyond what they are held to, gates are open or shut for all that floating point can tell.
#[inline(always)]
fn unit<T: Real>([i, f, g, o]: [T; GATES], c: T) -> (T, T) {
    let [i, f, o] = [i, f, o].map(|x| T::ONE + (-held(x, T::of(28.0))).exp_of_few());
    let (g, candidate) = tanh(g);
    let both = i * candidate;
    let new = (c * both + g * f) / (both * f);
    let (t, denominator) = tanh(new);
    (new, t / (denominator * o))
}

/// The numerator and denominator of `tanh`.
#[inline(always)]
fn tanh<T: Real>(x: T) -> (T, T) {
    let m = (T::of(2.0) * held(x, T::of(10.0)).abs()).expm1_of_few();
    (m.copysign(x), m + T::of(2.0))
}

/// `x` between `-most` and `most`, or NaN.
#[inline(always)]
fn held<T: Real>(x: T, most: T) -> T {
    select(x > most, most, select(x < -most, -most, x))
}
