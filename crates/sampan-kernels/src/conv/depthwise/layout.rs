//! How bands of a channel are packed for a depthwise convolution: where phases, rows and kernel elements lie.

use super::{COLUMN, WIDEST};
use crate::conv::ConvShape;
use std::ops::Range;

/// Elements of a packed band, so that it stays in the first-level cache beside what is made of it.
const BAND: usize = 5 << 10;

/// Places on an axis dealt out by `step`: index `i` of phase `a` is element `i * step + a - pad`.
#[derive(Clone, Copy)]
pub(super) struct Lattice {
    pub len: usize,
    pub step: usize,
    pub pad: usize,
}

impl Lattice {
    /// The indices of a phase that are elements.
    pub fn indices(&self, phase: usize) -> Range<usize> {
        let from = |place: usize| (place + self.pad).saturating_sub(phase).div_ceil(self.step);
        from(0)..from(self.len)
    }

    /// The element at an index of a phase.
    fn element(&self, phase: usize, index: usize) -> Option<usize> {
        (index * self.step + phase).checked_sub(self.pad).filter(|&e| e < self.len)
    }

    /// The largest index that is an element, plus one.
    fn end(&self) -> usize {
        (0..self.step).map(|a| self.indices(a).end).max().unwrap_or(0)
    }
}

/// A kernel element on one axis: which one, the phase of the source it reads, and how many indices further.
type Tap = (usize, usize, usize);

/// One axis: how source and destination are dealt out, and what each phase of the destination sums.
pub(super) struct Axis {
    pub from: Lattice,
    pub to: Lattice,
    taps: Vec<Vec<Tap>>,
    /// The farthest a tap reads.
    reach: usize,
}

impl Axis {
    fn new(from: Lattice, to: Lattice, taps: Vec<Vec<Tap>>) -> Axis {
        let reach = taps.iter().flatten().map(|t| t.2).max().unwrap_or(0);
        Axis { from, to, taps, reach }
    }

    pub fn forward(s: &ConvShape, a: usize) -> Axis {
        let step = s.stride[a];
        let taps = (0..s.kernel[a]).map(|k| k * s.dilation[a]).enumerate().map(|(k, at)| (k, at % step, at / step));
        let from = Lattice { len: s.input[a], step, pad: s.pad_begin[a] };
        Axis::new(from, Lattice { len: s.output[a], step: 1, pad: 0 }, vec![taps.collect()])
    }

    /// An input at `q * stride + phase` was read by the outputs `q - m` through the kernel elements at `m * stride + phase`.
    pub fn backward(s: &ConvShape, a: usize) -> Axis {
        let step = s.stride[a];
        let far = (s.kernel[a] - 1) * s.dilation[a] / step;
        let places = || (0..s.kernel[a]).map(|k| k * s.dilation[a]).enumerate();
        let of_phase = |phase: usize| places().filter(move |&(_, at)| at % step == phase);
        let taps = (0..step).map(|phase| of_phase(phase).map(|(k, at)| (k, 0, far - at / step)).collect()).collect();
        let from = Lattice { len: s.output[a], step: 1, pad: far };
        Axis::new(from, Lattice { len: s.input[a], step, pad: s.pad_begin[a] }, taps)
    }
}

/// Sizes of a packed band, which is `[depth of the kernel, row phase, column phase, row, column]` of the source.
pub(super) struct Layout {
    pub axes: [Axis; 3],
    pub kernel: [usize; 3],
    /// Indices of a band of destination rows, and packed rows they read.
    pub band: usize,
    rows: usize,
    /// From one row to the next. The zeros after a row are those before the next one.
    pub pitch: usize,
    /// Of one phase.
    plane: usize,
}

/// Everything that one phase of a destination sums.
pub(super) struct Sum {
    pub row_phase: usize,
    pub column_phase: usize,
    pub columns: Vec<Column>,
}

/// Kernel elements that read rows below each other, of which the first lies at `offset`.
pub(super) struct Column {
    pub offset: usize,
    pub taps: Vec<usize>,
}

impl Layout {
    pub fn new(s: &ConvShape, axis: fn(&ConvShape, usize) -> Axis) -> Layout {
        let axes: [Axis; 3] = std::array::from_fn(|a| axis(s, a));
        let [_, rows, columns] = &axes;
        let need = columns.to.end() + columns.reach;
        let phases = || (0..columns.from.step).map(|a| columns.from.indices(a));
        let pitch = phases().map(|i| i.end.max(need.saturating_sub(i.start))).max().unwrap_or(0);
        let pitch = pitch.max(columns.to.end());
        let row = pitch * s.kernel[0] * rows.from.step * columns.from.step;
        let band = (BAND / row.max(1)).saturating_sub(rows.reach).clamp(1, rows.to.end().max(1));
        // Bands of nearly equal size.
        let band = rows.to.end().div_ceil(rows.to.end().div_ceil(band).max(1)).max(1);
        let packed = band + rows.reach;
        let lead = phases().map(|i| i.start).max().unwrap_or(0);
        Layout { axes, kernel: s.kernel, band, rows: packed, pitch, plane: packed * pitch + lead }
    }

    /// With what vectors touch past the end.
    pub fn len(&self) -> usize {
        self.place(self.kernel[0], 0, 0) + self.axes[2].reach + WIDEST
    }

    /// Elements of a band of one phase of the destination, at the pitch of the source.
    pub fn flat(&self) -> usize {
        (self.band * self.pitch).next_multiple_of(WIDEST)
    }

    pub fn bands(&self) -> usize {
        self.axes[1].to.end().div_ceil(self.band)
    }

    fn place(&self, depth: usize, row_phase: usize, column_phase: usize) -> usize {
        ((depth * self.axes[1].from.step + row_phase) * self.axes[2].from.step + column_phase) * self.plane
    }

    /// What each phase of a plane of the destination sums.
    pub fn sums(&self) -> Vec<Sum> {
        let [_, rows, columns] = &self.axes;
        let mut sums = Vec::new();
        for (row_phase, row_taps) in rows.taps.iter().enumerate() {
            // By phase and row, so that what can be summed together comes together.
            let mut row_taps = row_taps.clone();
            row_taps.sort_by_key(|&(_, phase, down)| (phase, down));
            for (column_phase, column_taps) in columns.taps.iter().enumerate() {
                let mut list: Vec<Column> = Vec::new();
                for d in 0..self.kernel[0] {
                    for &(w, column, right) in column_taps {
                        let start = list.len();
                        for &(h, row, down) in &row_taps {
                            let tap = (d * self.kernel[1] + h) * self.kernel[2] + w;
                            let offset = self.place(d, row, column) + down * self.pitch + right;
                            match list[start..].last_mut() {
                                Some(c) if c.offset + c.taps.len() * self.pitch == offset && c.taps.len() < COLUMN => {
                                    c.taps.push(tap);
                                }
                                _ => list.push(Column { offset, taps: vec![tap] }),
                            }
                        }
                    }
                }
                sums.push(Sum { row_phase, column_phase, columns: list });
            }
        }
        sums
    }

    /// The plane of the source that kernel depth `k` reads for plane `d` of the destination.
    fn source_plane(&self, k: usize, d: usize) -> Option<usize> {
        let Axis { from, to, taps, .. } = &self.axes[0];
        let (phase, index) = ((d + to.pad) % to.step, (d + to.pad) / to.step);
        let &(_, source, further) = taps[phase].iter().find(|t| t.0 == k)?;
        from.element(source, index + further)
    }

    /// Copies what band `band` of plane `d` of the destination reads of `source`, one channel. `out` was zero when it was
    /// new, and what is padding in every band stays so.
    #[inline(always)]
    pub fn pack(&self, source: &[f32], d: usize, band: usize, out: &mut [f32]) {
        let [depth, rows, columns] = &self.axes;
        let (height, width) = (rows.from.len, columns.from.len);
        let always = depth.to.len == 1 && self.kernel[0] == 1 && self.bands() == 1;
        let first = band * self.band;
        for k in 0..self.kernel[0] {
            let plane = self.source_plane(k, d);
            for phase in 0..rows.from.step {
                let inside = rows.from.indices(phase);
                let inside = inside.start.max(first)..inside.end.min(first + self.rows);
                let inside = if plane.is_some() { inside } else { first..first };
                let place = self.place(k, phase, 0);
                if !always {
                    let ends = [first..inside.start.max(first), inside.end.max(first)..first + self.rows];
                    for row in ends.into_iter().flatten() {
                        for column in 0..columns.from.step {
                            out[place + column * self.plane + (row - first) * self.pitch..][..self.pitch].fill(0.0);
                        }
                    }
                }
                for row in inside {
                    let h = plane.unwrap_or(0) * height + row * rows.from.step + phase - rows.from.pad;
                    let to = place + (row - first) * self.pitch;
                    deal(&columns.from, &source[h * width..][..width], out, to, self.plane);
                }
            }
        }
    }
}

/// Deals out a row into phases of a packed band, the first at `at` and the others `apart`.
#[inline(always)]
fn deal(to: &Lattice, x: &[f32], out: &mut [f32], at: usize, apart: usize) {
    match to.step {
        1 => copy(x, &mut out[at + to.pad..][..x.len()]),
        2 => {
            // Even elements go to one phase, odd ones to the other.
            let start = |i: usize| at + (to.pad + i) % 2 * apart + (to.pad + i) / 2;
            let (low, high) = out.split_at_mut(start(0).max(start(1)));
            let swapped = start(0) > start(1);
            let (even, odd) = if swapped { (high, &mut low[start(1)..]) } else { (&mut low[start(0)..], high) };
            let pairs = x.len() / 2;
            for ((even, odd), pair) in even[..pairs].iter_mut().zip(&mut odd[..pairs]).zip(x.chunks_exact(2)) {
                (*even, *odd) = (pair[0], pair[1]);
            }
            if x.len() % 2 == 1 {
                even[pairs] = x[2 * pairs];
            }
        }
        step => {
            for phase in 0..step {
                let columns = to.indices(phase);
                let first = to.element(phase, columns.start).unwrap_or(x.len());
                let out = &mut out[at + phase * apart..][columns];
                out.iter_mut().zip(x[first..].iter().step_by(step)).for_each(|(o, v)| *o = *v);
            }
        }
    }
}

/// The inverse of [`deal`] for one row: collects it from its phases in `flat`.
#[inline(always)]
pub(super) fn collect(from: &Lattice, flat: &[f32], at: usize, apart: usize, x: &mut [f32]) {
    if from.step == 2 {
        let start = |i: usize| at + (from.pad + i) % 2 * apart + (from.pad + i) / 2;
        let pairs = x.len() / 2;
        let (even, odd) = (&flat[start(0)..], &flat[start(1)..]);
        for ((even, odd), pair) in even[..pairs].iter().zip(&odd[..pairs]).zip(x.chunks_exact_mut(2)) {
            (pair[0], pair[1]) = (*even, *odd);
        }
        if x.len() % 2 == 1 {
            x[2 * pairs] = even[pairs];
        }
    } else {
        let place = |i: usize| at + (from.pad + i) % from.step * apart + (from.pad + i) / from.step;
        x.iter_mut().enumerate().for_each(|(i, x)| *x = flat[place(i)]);
    }
}

/// `to = from`, for rows too short to be worth a call: in pieces of fixed sizes, the last of which overlaps.
#[inline(always)]
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    #[inline(always)]
    fn pieces<const N: usize>(from: &[f32], to: &mut [f32]) {
        let n = from.len();
        for i in (0..n - N).step_by(N).chain([n - N]) {
            to[i..i + N].copy_from_slice(&from[i..i + N]);
        }
    }
    let to = &mut to[..from.len()];
    match from.len() {
        16.. => pieces::<16>(from, to),
        8.. => pieces::<8>(from, to),
        4.. => pieces::<4>(from, to),
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}
