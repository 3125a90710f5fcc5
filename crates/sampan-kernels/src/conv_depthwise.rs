//! Depthwise convolution in `f32` over up to three spatial axes, forward and both gradients, for any stride, padding and
//! dilation.
//!
//! A band of rows of one channel is copied into a small buffer with its padding, and dealt out by stride into phases. There
//! every kernel element lies at a fixed distance, so a whole band is one long sum `y[p] = Σ w[t] · x[p + offset[t]]`
//! without rows, and narrow images fill the vectors as well as wide ones. What is computed between two rows is
//! not copied out. The gradient by the data is the same sum with the phases on the other side.

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

/// Everything that one phase of a destination sums: kernel elements and their distances.
struct Sum {
    row_phase: usize,
    column_phase: usize,
    taps: Vec<(usize, usize)>,
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
            for (column_phase, column_taps) in columns.taps.iter().enumerate() {
                let mut taps = Vec::new();
                for d in 0..self.kernel[0] {
                    for &(h, row, down) in row_taps {
                        for &(w, column, right) in column_taps {
                            let tap = (d * self.kernel[1] + h) * self.kernel[2] + w;
                            taps.push((tap, self.place(d, row, column) + down * self.pitch + right));
                        }
                    }
                }
                sums.push(Sum { row_phase, column_phase, taps });
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

    /// Copies what band `band` of plane `d` of the destination reads of `source`, one channel.
    #[inline(always)]
    fn pack<S: Simd>(&self, simd: S, source: &[f32], d: usize, band: usize, out: &mut [f32]) {
        let [_, rows, columns] = &self.axes;
        let (height, width) = (rows.from.len, columns.from.len);
        for k in 0..self.kernel[0] {
            let plane = self.source_plane(k, d).map(|d| &source[d * height * width..][..height * width]);
            for phase in 0..rows.from.step {
                for row in 0..self.rows {
                    let x = plane.zip(rows.from.element(phase, band * self.band + row));
                    let x = x.map(|(plane, h)| &plane[h * width..][..width]);
                    deal(simd, &columns.from, x, out, self.place(k, phase, 0) + row * self.pitch, self.plane);
                }
            }
        }
    }
}

/// Deals out a row into phases of a packed band, the first at `at` and the others `apart`; zeros where there is no row.
/// Columns of padding are left as they are.
#[inline(always)]
fn deal<S: Simd>(simd: S, to: &Lattice, x: Option<&[f32]>, out: &mut [f32], at: usize, apart: usize) {
    match (x, to.step) {
        (None, step) => {
            for phase in 0..step {
                let columns = to.indices(phase);
                out[at + phase * apart..][columns].fill(0.0);
            }
        }
        (Some(x), 1) => copy(simd, x, &mut out[at + to.pad..][..x.len()]),
        (Some(x), 2) => {
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
        (Some(x), step) => {
            for phase in 0..step {
                let columns = to.indices(phase);
                let first = to.element(phase, columns.start).unwrap_or(x.len()).min(x.len());
                let out = &mut out[at + phase * apart..][columns];
                out.iter_mut().zip(x[first..].iter().step_by(step)).for_each(|(o, v)| *o = *v);
            }
        }
    }
}

/// The inverse of [`deal`] for one row: collects it from its phases in `flat`.
#[inline(always)]
fn collect<S: Simd>(simd: S, from: &Lattice, flat: &[f32], at: usize, apart: usize, x: &mut [f32]) {
    let start = |i: usize| at + (from.pad + i) % from.step * apart + (from.pad + i) / from.step;
    match from.step {
        1 => copy(simd, &flat[start(0)..][..x.len()], x),
        2 => {
            let pairs = x.len() / 2;
            let (even, odd) = (&flat[start(0)..], &flat[start(1)..]);
            for ((even, odd), pair) in even[..pairs].iter().zip(&odd[..pairs]).zip(x.chunks_exact_mut(2)) {
                (pair[0], pair[1]) = (*even, *odd);
            }
            if x.len() % 2 == 1 {
                x[2 * pairs] = even[pairs];
            }
        }
        _ => x.iter_mut().enumerate().for_each(|(i, x)| *x = flat[start(i)]),
    }
}

/// `to = from`, for rows too short to be worth a call.
#[inline(always)]
fn copy<S: Simd>(simd: S, from: &[f32], to: &mut [f32]) {
    let (from, to) = (from.chunks(S::F32_LANES), to.chunks_mut(S::F32_LANES));
    for (from, to) in from.zip(to) {
        simd.partial_store_f32s(to, simd.partial_load_f32s(from));
    }
}

#[inline(always)]
fn load<S: Simd>(x: &[f32], at: usize) -> S::f32s {
    debug_assert!(at + S::F32_LANES <= x.len());
    // SAFETY: callers read inside a packed buffer or its slack.
    unsafe { x.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
}

/// `y[p] = start + Σ w · x[p + offset]` for `p < len`, rounded up to whole vectors.
#[inline(always)]
fn flat_sums<S: Simd>(simd: S, x: &[f32], taps: &[(f32, usize)], start: f32, len: usize, y: &mut [f32]) {
    let far = taps.iter().map(|t| t.1).max().unwrap_or(0);
    let vectors = len.div_ceil(S::F32_LANES);
    assert!(far + vectors * S::F32_LANES <= x.len() && vectors * S::F32_LANES <= y.len());
    let mut v = 0;
    while v < vectors {
        let (n, at) = (BLOCK.min(vectors - v), v * S::F32_LANES);
        macro_rules! sizes {
            ($($n:literal),*) => {
                match n {
                    $($n => block::<S, $n>(simd, x, taps, start, at, y),)*
                    _ => unreachable!("a block has at most {BLOCK} vectors"),
                }
            };
        }
        sizes!(1, 2, 3, 4, 5, 6, 7, 8);
        v += n;
    }
}

#[inline(always)]
fn block<S: Simd, const N: usize>(simd: S, x: &[f32], taps: &[(f32, usize)], start: f32, at: usize, y: &mut [f32]) {
    let mut sum = [simd.splat_f32s(start); N];
    for &(w, offset) in taps {
        let w = simd.splat_f32s(w);
        for n in 0..N {
            sum[n] = simd.mul_add_e_f32s(w, load::<S>(x, at + offset + n * S::F32_LANES), sum[n]);
        }
    }
    for n in 0..N {
        let y = &mut y[at + n * S::F32_LANES..][..S::F32_LANES];
        // SAFETY: as many elements as a vector has.
        unsafe { y.as_mut_ptr().cast::<S::f32s>().write_unaligned(sum[n]) };
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
        let flat_len = layout.flat();
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::uninit(4 * columns.to.step * flat_len);
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        let mut weighted: Vec<(f32, usize)> = Vec::with_capacity(taps);
        for task in tasks {
            let (at, band) = (task / bands, task % bands);
            let (plane, d) = (at / depth.to.len, at % depth.to.len);
            let channel = plane % channels;
            let (w, start) = (&w[channel * taps..][..taps], bias.map_or(0.0, |b| b[channel]));
            layout.pack(simd, &source[plane * source_len..][..source_len], d, band, packed);
            for (i, sum) in sums.iter().enumerate() {
                weighted.clear();
                weighted.extend(sum.taps.iter().map(|&(tap, offset)| (w[tap], offset)));
                let out = &mut flat[i % columns.to.step * flat_len..][..flat_len];
                flat_sums(simd, packed, &weighted, start, layout.band * layout.pitch, out);
                if sum.column_phase + 1 < columns.to.step {
                    continue;
                }
                for row in 0..layout.band {
                    let Some(h) = rows.to.element(sum.row_phase, band * layout.band + row) else { continue };
                    // SAFETY: row `h` of plane `d` of an image's channel, inside the destination, whose length was
                    // checked; no other task has it.
                    let out = unsafe {
                        let place = plane * dest_len + (d * rows.to.len + h) * width;
                        std::slice::from_raw_parts_mut(dest.get().add(place), width)
                    };
                    collect(simd, &columns.to, flat, row * layout.pitch, flat_len, out);
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
    offsets: &'a [usize],
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
        let WeightSums { s, layout, offsets, x, dy, per_part, tasks, dw } = self;
        let (bands, height, width) = (layout.bands(), s.output[1], s.output[2]);
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::zeroed(4 * layout.flat());
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        let mut sums = vec![simd.splat_f32s(0.0); offsets.len()];
        for (task, dw) in tasks.zip(dw.chunks_exact_mut(offsets.len())) {
            let (part, channel) = (task / s.groups, task % s.groups);
            sums.fill(simd.splat_f32s(0.0));
            for image in part * per_part..((part + 1) * per_part).min(s.batch) {
                let plane = image * s.groups + channel;
                let (x, dy) = (&x[plane * s.x_plane()..][..s.x_plane()], &dy[plane * s.y_plane()..][..s.y_plane()]);
                for i in 0..s.output[0] * bands {
                    let (d, band) = (i / bands, i % bands);
                    layout.pack(simd, x, d, band, packed);
                    let first = band * layout.band;
                    let count = layout.band.min(height - first);
                    for row in 0..count {
                        let dy = &dy[(d * height + first + row) * width..][..width];
                        copy(simd, dy, &mut flat[row * layout.pitch..][..width]);
                    }
                    let end = (count - 1) * layout.pitch + width;
                    let len = end.next_multiple_of(S::F32_LANES);
                    // What a longer band before this one may have left.
                    flat[end..len].fill(0.0);
                    add_products(simd, packed, &flat[..len], offsets, &mut sums);
                }
            }
            dw.iter_mut().zip(&sums).for_each(|(dw, &sum)| *dw = simd.reduce_sum_f32s(sum));
        }
    }
}

/// `sums[t] += Σ dy[p] · x[p + offsets[t]]`, lane by lane. Between rows `dy` is zero.
#[inline(always)]
fn add_products<S: Simd>(simd: S, x: &[f32], dy: &[f32], offsets: &[usize], sums: &mut [S::f32s]) {
    // As many sums as registers hold.
    let most = if S::F32_LANES == WIDEST { 25 } else { 9 };
    let (mut offsets, mut sums) = (offsets, sums);
    while !offsets.is_empty() {
        let n = match offsets.len() {
            25.. if most == 25 => 25,
            9.. => 9,
            5.. => 5,
            3.. => 3,
            _ => 1,
        };
        let (some, more) = offsets.split_at(n);
        let (some_sums, more_sums) = sums.split_at_mut(n);
        match n {
            25 => products::<S, 25>(simd, x, dy, some, some_sums),
            9 => products::<S, 9>(simd, x, dy, some, some_sums),
            5 => products::<S, 5>(simd, x, dy, some, some_sums),
            3 => products::<S, 3>(simd, x, dy, some, some_sums),
            _ => products::<S, 1>(simd, x, dy, some, some_sums),
        }
        (offsets, sums) = (more, more_sums);
    }
}

#[inline(always)]
fn products<S: Simd, const N: usize>(simd: S, x: &[f32], dy: &[f32], offsets: &[usize], sums: &mut [S::f32s]) {
    let offsets: [usize; N] = std::array::from_fn(|n| offsets[n]);
    let mut sum: [S::f32s; N] = std::array::from_fn(|n| sums[n]);
    let far = offsets.iter().max().unwrap_or(&0);
    assert!(dy.len().is_multiple_of(S::F32_LANES) && far + dy.len() <= x.len());
    for at in (0..dy.len()).step_by(S::F32_LANES) {
        let g = load::<S>(dy, at);
        for n in 0..N {
            sum[n] = simd.mul_add_e_f32s(g, load::<S>(x, at + offsets[n]), sum[n]);
        }
    }
    sums.copy_from_slice(&sum);
}

/// Gradient by the weights. An infinite `x` may make it NaN where a window does not contain it, since zeros that stand
/// between the rows of `dy` meet it.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let layout = Layout::new(s, Axis::forward);
    let offsets: Vec<usize> = layout.sums().iter().flat_map(|sum| sum.taps.iter().map(|t| t.1)).collect();
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
        Arch::new().dispatch(WeightSums { s, layout: &layout, offsets: &offsets, x, dy, per_part, tasks, dw });
    });
    let (first, rest) = sums.as_slice::<f32>().split_at(dw.len());
    dw.copy_from_slice(first);
    for part in rest.chunks_exact(dw.len()) {
        dw.iter_mut().zip(part).for_each(|(o, v)| *o += *v);
    }
}
