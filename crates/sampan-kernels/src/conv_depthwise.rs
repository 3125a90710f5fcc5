//! Depthwise convolution in `f32` over up to three spatial axes, forward and both gradients, for any stride, padding and
//! dilation.
//!
//! A band of rows of one channel is copied into a small buffer with its padding, and dealt out by stride into phases. There
//! every kernel element lies at a fixed distance, so all strides and dilations are one loop. Several rows are summed at
//! once: what one loads, its neighbours use too. The gradient by the data is the same sum with the phases on the other
//! side.

use crate::conv::ConvShape;
use crate::float::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Elements of a packed band, so that it stays in the first-level cache beside what is made of it.
const BAND: usize = 5 << 10;
/// Elements of the widest vector.
const WIDEST: usize = 16;
/// Vectors of output summed at once: enough sums in flight to hide the latency of each.
const BLOCK: usize = 8;
/// Most kernel elements of a column that are summed at once: their weights stay in registers.
const COLUMN: usize = 5;
/// Operations of one task, so that handing it over is cheap.
const TASK: usize = 1 << 18;

pub(crate) fn is_depthwise(s: &ConvShape) -> bool {
    s.group_in() == 1 && s.group_out() == 1
}

/// Places on an axis dealt out by `step`: index `i` of phase `a` is element `i * step + a - pad`.
#[derive(Clone, Copy)]
struct Lattice {
    len: usize,
    step: usize,
    pad: usize,
}

impl Lattice {
    /// The indices of a phase that are elements.
    fn indices(&self, phase: usize) -> Range<usize> {
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
struct Axis {
    from: Lattice,
    to: Lattice,
    taps: Vec<Vec<Tap>>,
    /// The farthest a tap reads.
    reach: usize,
}

impl Axis {
    fn new(from: Lattice, to: Lattice, taps: Vec<Vec<Tap>>) -> Axis {
        let reach = taps.iter().flatten().map(|t| t.2).max().unwrap_or(0);
        Axis { from, to, taps, reach }
    }

    fn forward(s: &ConvShape, a: usize) -> Axis {
        let step = s.stride[a];
        let taps = (0..s.kernel[a]).map(|k| k * s.dilation[a]).enumerate().map(|(k, at)| (k, at % step, at / step));
        let from = Lattice { len: s.input[a], step, pad: s.pad_begin[a] };
        Axis::new(from, Lattice { len: s.output[a], step: 1, pad: 0 }, vec![taps.collect()])
    }

    /// An input at `q * stride + phase` was read by the outputs `q - m` through the kernel elements at `m * stride + phase`.
    fn backward(s: &ConvShape, a: usize) -> Axis {
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
struct Layout {
    axes: [Axis; 3],
    kernel: [usize; 3],
    /// Indices of a band of destination rows, and packed rows they read.
    band: usize,
    rows: usize,
    /// From one row to the next. The zeros after a row are those before the next one.
    pitch: usize,
    /// Of one phase.
    plane: usize,
}

/// Everything that one phase of a destination sums.
struct Sum {
    row_phase: usize,
    column_phase: usize,
    columns: Vec<Column>,
}

/// Kernel elements that read rows below each other, of which the first lies at `offset`.
struct Column {
    offset: usize,
    taps: Vec<usize>,
}

impl Layout {
    fn new(s: &ConvShape, axis: fn(&ConvShape, usize) -> Axis) -> Layout {
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
    fn len(&self) -> usize {
        self.place(self.kernel[0], 0, 0) + self.axes[2].reach + WIDEST
    }

    /// Elements of a band of one phase of the destination, at the pitch of the source.
    fn flat(&self) -> usize {
        (self.band * self.pitch).next_multiple_of(WIDEST)
    }

    fn bands(&self) -> usize {
        self.axes[1].to.end().div_ceil(self.band)
    }

    fn place(&self, depth: usize, row_phase: usize, column_phase: usize) -> usize {
        ((depth * self.axes[1].from.step + row_phase) * self.axes[2].from.step + column_phase) * self.plane
    }

    /// What each phase of a plane of the destination sums.
    fn sums(&self) -> Vec<Sum> {
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
    fn pack(&self, source: &[f32], d: usize, band: usize, out: &mut [f32]) {
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
fn collect(from: &Lattice, flat: &[f32], at: usize, apart: usize, x: &mut [f32]) {
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
fn copy(from: &[f32], to: &mut [f32]) {
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

#[inline(always)]
fn load<S: Simd>(x: &[f32], at: usize) -> S::f32s {
    debug_assert!(at + S::F32_LANES <= x.len());
    // SAFETY: callers read inside a packed buffer or its slack.
    unsafe { x.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
}

/// Sums of `R` rows and `N` vectors of each. Rows and vectors are so far `apart` in the packed band.
#[inline(always)]
fn block<S: Simd, const R: usize, const N: usize>(
    simd: S,
    x: &[f32],
    apart: [usize; 2],
    columns: &[Column],
    w: &[f32],
    start: f32,
) -> [[S::f32s; N]; R] {
    let mut sums = [[simd.splat_f32s(start); N]; R];
    for column in columns {
        let x = &x[column.offset..];
        match column.taps[..] {
            [a] => add_column(simd, x, apart, [w[a]], &mut sums),
            [a, b] => add_column(simd, x, apart, [w[a], w[b]], &mut sums),
            [a, b, c] => add_column(simd, x, apart, [w[a], w[b], w[c]], &mut sums),
            [a, b, c, d] => add_column(simd, x, apart, [w[a], w[b], w[c], w[d]], &mut sums),
            [a, b, c, d, e] => add_column(simd, x, apart, [w[a], w[b], w[c], w[d], w[e]], &mut sums),
            _ => unreachable!("a column has one to {COLUMN} kernel elements"),
        }
    }
    sums
}

/// `sums[r] += Σ w[m] · x[row r + m]`; a row is loaded once for all sums that it takes part in.
#[inline(always)]
fn add_column<S: Simd, const R: usize, const N: usize, const M: usize>(
    simd: S,
    x: &[f32],
    [row, vector]: [usize; 2],
    w: [f32; M],
    sums: &mut [[S::f32s; N]; R],
) {
    assert!((R + M - 2) * row + (N - 1) * vector + S::F32_LANES <= x.len());
    let w = w.map(|w| simd.splat_f32s(w));
    for m in 0..M {
        for r in 0..R {
            for n in 0..N {
                sums[r][n] = simd.mul_add_e_f32s(w[m], load::<S>(x, (r + m) * row + n * vector), sums[r][n]);
            }
        }
    }
}

/// Rows of results, `step` apart.
struct Rows {
    place: *mut f32,
    step: usize,
    count: usize,
    width: usize,
}

impl Rows {
    /// Writes sums of rows from `row` on, the vectors of each at columns `at`.
    #[inline(always)]
    fn store<S: Simd, const R: usize, const N: usize>(
        &self,
        simd: S,
        row: usize,
        at: [usize; 2],
        sums: [[S::f32s; N]; R],
    ) {
        let end = (self.count - 1) * self.step + self.width;
        for r in 0..R {
            for n in 0..N {
                let place = (row + r) * self.step + at[n];
                // SAFETY: up to `end` all belongs to whoever made this value.
                unsafe {
                    if place + S::F32_LANES <= end {
                        // What goes past the end of a short row lies in later ones, which are written after it.
                        self.place.add(place).cast::<S::f32s>().write_unaligned(sums[r][n]);
                    } else {
                        let rest = std::slice::from_raw_parts_mut(self.place.add(place), end - place);
                        simd.partial_store_f32s(rest, sums[r][n]);
                    }
                }
            }
        }
    }

    /// Sums all rows.
    #[inline(always)]
    fn fill<S: Simd>(&self, simd: S, x: &[f32], pitch: usize, columns: &[Column], w: &[f32], start: f32) {
        // The last vector of a row overlaps the one before it, so as not to go past the end.
        let last = self.width.saturating_sub(S::F32_LANES);
        let mut column = 0;
        while column < self.width {
            let two = self.width - column > S::F32_LANES;
            let at = if two { [column, last.min(column + S::F32_LANES)] } else { [last.min(column); 2] };
            let apart = [pitch, at[1] - at[0]];
            let most = if two { BLOCK / 2 } else { BLOCK };
            for row in (0..self.count).step_by(most) {
                let x = &x[row * pitch + at[0]..];
                macro_rules! sizes {
                    ($vectors:literal, $($n:literal)*) => {
                        match most.min(self.count - row) {
                            $($n => {
                                let sums = block::<S, $n, $vectors>(simd, x, apart, columns, w, start);
                                self.store(simd, row, at, sums);
                            })*
                            _ => unreachable!("a block has at most {BLOCK} vectors"),
                        }
                    };
                }
                if two {
                    sizes!(2, 1 2 3 4);
                } else {
                    sizes!(1, 1 2 3 4 5 6 7 8);
                }
            }
            column += if two { 2 * S::F32_LANES } else { S::F32_LANES };
        }
    }
}

/// Some bands of a forward convolution or of the gradient by the data.
struct Bands<'a> {
    layout: &'a Layout,
    sums: &'a [Sum],
    /// `[channels, kernel]`.
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    source: &'a [f32],
    dest: Shared<f32>,
    /// Counted through images, channels, planes and bands.
    tasks: Range<usize>,
}

impl WithSimd for Bands<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Bands { layout, sums, w, bias, source, dest, tasks } = self;
        let [depth, rows, columns] = &layout.axes;
        let (bands, width) = (layout.bands(), columns.to.len);
        let taps = layout.kernel.iter().product::<usize>();
        let channels = w.len() / taps;
        let source_len = depth.from.len * rows.from.len * columns.from.len;
        let dest_len = depth.to.len * rows.to.len * width;
        // Phases of a row of the destination, before they are collected.
        let phases = if columns.to.step > 1 || rows.to.step > 1 { columns.to.step } else { 0 };
        let flat_len = layout.flat();
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::uninit(4 * phases * flat_len);
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        for task in tasks {
            let (at, band) = (task / bands, task % bands);
            let (plane, d) = (at / depth.to.len, at % depth.to.len);
            let (channel, first) = (plane % channels, band * layout.band);
            let (w, start) = (&w[channel * taps..][..taps], bias.map_or(0.0, |b| b[channel]));
            layout.pack(&source[plane * source_len..][..source_len], d, band, packed);
            for sum in sums {
                let inside = rows.to.indices(sum.row_phase);
                let inside = inside.start.max(first)..inside.end.min(first + layout.band);
                if inside.is_empty() {
                    continue;
                }
                let row_of = |index: usize| index * rows.to.step + sum.row_phase - rows.to.pad;
                let place = |index: usize| plane * dest_len + (d * rows.to.len + row_of(index)) * width;
                let x = &packed[(inside.start - first) * layout.pitch..];
                if phases == 0 {
                    let x = &x[columns.to.pad..];
                    // SAFETY: rows of plane `d` of an image's channel, inside the destination, whose length was checked;
                    // no other task has them.
                    let place = unsafe { dest.get().add(place(inside.start)) };
                    let out = Rows { place, step: width, count: inside.len(), width };
                    out.fill(simd, x, layout.pitch, &sum.columns, w, start);
                    continue;
                }
                let out = &mut flat[sum.column_phase * flat_len..][..flat_len];
                let (step, width_here) = (layout.pitch, columns.to.indices(sum.column_phase).end);
                let out = Rows { place: out.as_mut_ptr(), step, count: inside.len(), width: width_here };
                out.fill(simd, x, layout.pitch, &sum.columns, w, start);
                if sum.column_phase + 1 < columns.to.step {
                    continue;
                }
                for (i, index) in inside.enumerate() {
                    // SAFETY: as above, one row.
                    let out = unsafe { std::slice::from_raw_parts_mut(dest.get().add(place(index)), width) };
                    collect(&columns.to, flat, i * layout.pitch, flat_len, out);
                }
            }
        }
    }
}

fn run(s: &ConvShape, layout: &Layout, source: &[f32], w: &[f32], bias: Option<&[f32]>, dest: &mut [f32]) {
    let sums = layout.sums();
    let cost = (2 * s.taps() + 4) * layout.band * layout.pitch * layout.axes[1].to.step * layout.axes[2].to.step;
    let count = s.batch * s.groups * layout.axes[0].to.len * layout.bands();
    let dest = Shared::new(dest);
    parallel::for_each_range(count, (TASK / cost.max(1)).max(1), cost, |tasks| {
        Arch::new().dispatch(Bands { layout, sums: &sums, w, bias, source, dest, tasks });
    });
}

/// `y = x ⋆ w + bias`.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    run(s, &Layout::new(s, Axis::forward), x, w, bias, y);
}

/// The gradient by the data.
pub(crate) fn backward_data(s: &ConvShape, w: &[f32], dy: &[f32], dx: &mut [f32]) {
    run(s, &Layout::new(s, Axis::backward), dy, w, None, dx);
}

/// The gradient by the weights of some channels, each over `per_part` images.
struct WeightSums<'a> {
    s: &'a ConvShape,
    layout: &'a Layout,
    runs: &'a [Run],
    x: &'a [f32],
    dy: &'a [f32],
    per_part: usize,
    /// Counted through parts and channels, the first of which `dw` begins with.
    tasks: Range<usize>,
    dw: &'a mut [f32],
}

impl WithSimd for WeightSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let WeightSums { s, layout, runs, x, dy, per_part, tasks, dw } = self;
        let (bands, height, width) = (layout.bands(), s.output[1], s.output[2]);
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::zeroed(4 * layout.flat());
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        let mut sums = vec![simd.splat_f32s(0.0); s.taps()];
        for (task, dw) in tasks.zip(dw.chunks_exact_mut(s.taps())) {
            let (part, channel) = (task / s.groups, task % s.groups);
            sums.fill(simd.splat_f32s(0.0));
            for image in part * per_part..((part + 1) * per_part).min(s.batch) {
                let plane = image * s.groups + channel;
                let (x, dy) = (&x[plane * s.x_plane()..][..s.x_plane()], &dy[plane * s.y_plane()..][..s.y_plane()]);
                for i in 0..s.output[0] * bands {
                    let (d, band) = (i / bands, i % bands);
                    layout.pack(x, d, band, packed);
                    let first = band * layout.band;
                    let count = layout.band.min(height - first);
                    for row in 0..count {
                        let dy = &dy[(d * height + first + row) * width..][..width];
                        copy(dy, &mut flat[row * layout.pitch..][..width]);
                    }
                    let end = (count - 1) * layout.pitch + width;
                    let len = end.next_multiple_of(S::F32_LANES);
                    // What a longer band before this one may have left.
                    flat[end..len].fill(0.0);
                    add_products(simd, packed, &flat[..len], runs, &mut sums);
                }
            }
            dw.iter_mut().zip(&sums).for_each(|(dw, &sum)| *dw = simd.reduce_sum_f32s(sum));
        }
    }
}

/// Kernel elements that read columns beside each other: the first of them, the offset that it reads at, how many.
#[derive(Clone, Copy)]
struct Run {
    tap: usize,
    offset: usize,
    /// From one element to the next.
    step: usize,
    len: usize,
}

/// Runs of a forward convolution, those of one length together.
fn runs(layout: &Layout) -> Vec<Run> {
    let mut taps: Vec<(usize, usize)> = Vec::new();
    for column in layout.sums().iter().flat_map(|sum| &sum.columns) {
        let offset = |i: usize| column.offset + i * layout.pitch;
        taps.extend(column.taps.iter().enumerate().map(|(i, &tap)| (offset(i), tap)));
    }
    taps.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (offset, tap) in taps {
        match runs.last_mut() {
            Some(run)
                if run.len < COLUMN
                    && offset == run.offset + run.len
                    && (run.len == 1 || tap == run.tap + run.len * run.step) =>
            {
                run.step = if run.len == 1 { tap - run.tap } else { run.step };
                run.len += 1;
            }
            _ => runs.push(Run { tap, offset, step: 0, len: 1 }),
        }
    }
    runs.sort_by_key(|run| run.len);
    runs
}

/// Adds `Σ dy[p] · x[p + offset]` to the sum of each kernel element, lane by lane. Between rows `dy` is zero.
#[inline(always)]
fn add_products<S: Simd>(simd: S, x: &[f32], dy: &[f32], runs: &[Run], sums: &mut [S::f32s]) {
    let mut runs = runs;
    while let Some(first) = runs.first() {
        let alike = runs.iter().take_while(|run| run.len == first.len).count();
        // As many sums at once as there are registers.
        let most = if S::F32_LANES == WIDEST { 25 } else { 10 } / first.len;
        let n = match alike.min(most) {
            5.. => 5,
            3.. => 3,
            2 => 2,
            _ => 1,
        };
        macro_rules! sizes {
            ($($n:literal)*) => {
                match (n, first.len) {
                    $(
                        ($n, 1) => products::<S, $n, 1>(simd, x, dy, runs, sums),
                        ($n, 2) => products::<S, $n, 2>(simd, x, dy, runs, sums),
                        ($n, 3) => products::<S, $n, 3>(simd, x, dy, runs, sums),
                        ($n, 4) => products::<S, $n, 4>(simd, x, dy, runs, sums),
                        ($n, 5) => products::<S, $n, 5>(simd, x, dy, runs, sums),
                    )*
                    _ => unreachable!("at most five runs of at most {COLUMN}"),
                }
            };
        }
        sizes!(1 2 3 5);
        runs = &runs[n..];
    }
}

#[inline(always)]
fn products<S: Simd, const N: usize, const L: usize>(
    simd: S,
    x: &[f32],
    dy: &[f32],
    runs: &[Run],
    sums: &mut [S::f32s],
) {
    let runs: [Run; N] = std::array::from_fn(|n| runs[n]);
    let place = |n: usize, l: usize| runs[n].tap + l * runs[n].step;
    let mut sum: [[S::f32s; L]; N] = std::array::from_fn(|n| std::array::from_fn(|l| sums[place(n, l)]));
    let far = runs.map(|run| run.offset).into_iter().max().unwrap_or(0);
    assert!(dy.len().is_multiple_of(S::F32_LANES) && far + L - 1 + dy.len() <= x.len());
    let x = runs.map(|run| &x[run.offset..]);
    for at in (0..dy.len()).step_by(S::F32_LANES) {
        let g = load::<S>(dy, at);
        for n in 0..N {
            for l in 0..L {
                sum[n][l] = simd.mul_add_e_f32s(g, load::<S>(x[n], at + l), sum[n][l]);
            }
        }
    }
    for n in 0..N {
        for l in 0..L {
            sums[place(n, l)] = sum[n][l];
        }
    }
}

/// Gradient by the weights. An infinite `x` may make it NaN where a window does not contain it, since zeros that stand
/// between the rows of `dy` meet it.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let layout = Layout::new(s, Axis::forward);
    let runs = runs(&layout);
    let taps = s.taps();
    // Few channels: also cut by images, into sums that are added up in order at the end.
    let per_part = s.batch.div_ceil(16usize.div_ceil(s.groups).min(s.batch));
    let parts = s.batch.div_ceil(per_part);
    let mut sums = Buffer::uninit(parts * std::mem::size_of_val(dw));
    let out = Shared::new(sums.as_mut_slice::<f32>());
    let cost = 2 * taps * per_part * s.output[0] * s.output[1] * layout.pitch;
    parallel::for_each_range(parts * s.groups, (TASK / cost.max(1)).max(1), cost, |tasks| {
        let place = tasks.start * taps;
        // SAFETY: the weights of these channels in the sums of these parts; no other task has them.
        let dw = unsafe { std::slice::from_raw_parts_mut(out.get().add(place), tasks.len() * taps) };
        Arch::new().dispatch(WeightSums { s, layout: &layout, runs: &runs, x, dy, per_part, tasks, dw });
    });
    let (first, rest) = sums.as_slice::<f32>().split_at(dw.len());
    dw.copy_from_slice(first);
    for part in rest.chunks_exact(dw.len()) {
        dw.iter_mut().zip(part).for_each(|(o, v)| *o += *v);
    }
}
