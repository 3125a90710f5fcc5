//! Convolutions without groups, and products with a matrix, of codes.

use super::finish::{Add, AddAt, Channels, Out, OutAt, Tile};
use super::tile::{Machine, PANEL, PANELS, QUAD, Read, Source, Sums, tile};
use super::{BLOCK, image_len, lane, row_pitch};
use crate::conv::ConvShape;
use crate::conv::few_channels::even;
use crate::planned::After;
use crate::planned::dense::Cut;
use crate::planned::tile::Rows;
use crate::{Buffer, parallel};
use std::sync::Arc;

/// The weights of a layer as its loops read them: `[panel, quad, channel, product]`.
pub struct Packed {
    data: Buffer,
    outputs: usize,
    /// Products of an output, whole quads of each run.
    depth: usize,
    /// The sum of each output's weights.
    sums: Vec<i32>,
}

impl Packed {
    /// `at(output, i)` is the weight of product `i`, or `None` where nothing is.
    fn new(outputs: usize, depth: usize, at: impl Fn(usize, usize) -> Option<i8> + Sync) -> Packed {
        let mut data = Buffer::zeroed(outputs.next_multiple_of(PANEL) * depth);
        parallel::for_each_chunk_mut(data.as_mut_slice::<i8>(), (PANEL * depth).max(1), 1, |p, out| {
            for (i, to) in out.iter_mut().enumerate() {
                let (quad, rest) = (i / (PANEL * QUAD), i % (PANEL * QUAD));
                let channel = p * PANEL + rest / QUAD;
                if channel < outputs {
                    *to = at(channel, quad * QUAD + rest % QUAD).unwrap_or(0);
                }
            }
        });
        let sum = |o: usize| (0..depth).filter_map(|i| at(o, i)).fold(0i32, |s, w| s.wrapping_add(i32::from(w)));
        Packed { outputs, depth, sums: (0..outputs).map(sum).collect(), data }
    }

    /// The kernels `[out, in, kernel…]` of a convolution.
    pub fn conv(s: &ConvShape, w: &[i8]) -> Packed {
        assert_eq!(w.len(), s.w_len(), "the weights of {s:?}");
        let (taps, k, inputs) = (s.taps(), s.k(), s.in_channels);
        // Which weight each product is with: `[block of inputs, kernel element, input]`, in quads.
        let mut places: Vec<Option<usize>> = Vec::new();
        for block in blocks(inputs) {
            for t in 0..taps {
                let end = block.start + block.len().next_multiple_of(QUAD);
                places.extend((block.start..end).map(|c| (c < inputs).then_some(c * taps + t)));
            }
        }
        Packed::new(s.out_channels, places.len(), |o, i| places[i].map(|at| w[o * k + at]))
    }

    /// A matrix, of which `at(input, output)` is an element.
    pub fn matrix(inputs: usize, outputs: usize, at: impl Fn(usize, usize) -> i8 + Sync) -> Packed {
        Packed::new(outputs, row_pitch(inputs), |o, i| (i < inputs).then(|| at(i, o)))
    }

    fn channels(&self, zero: u8, steps: &[f32], bias: Option<&[f32]>, after: After) -> Channels {
        assert!(
            steps.len() == self.outputs && bias.is_none_or(|b| b.len() == self.outputs),
            "a number for each output"
        );
        let room = self.outputs.next_multiple_of(PANELS * PANEL);
        let filled = |v: &[f32]| {
            let mut all = v.to_vec();
            all.resize(room, 0.0);
            all
        };
        let mut shift: Vec<i32> = self.sums.iter().map(|s| s.wrapping_mul(-i32::from(zero))).collect();
        shift.resize(room, 0);
        Channels { shift, steps: filled(steps), bias: filled(bias.unwrap_or(&[])), after }
    }
}

/// Channels block by block.
fn blocks(channels: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let lane = lane(channels);
    (0..channels).step_by(lane).map(move |c| c..channels.min(c + lane))
}

/// What an output reads of an image of so many rows and columns.
fn reads_of(s: &ConvShape, rows: usize, columns: usize) -> Vec<Read> {
    let ([_, kh, kw], lane) = (s.kernel, lane(s.in_channels));
    let mut reads: Vec<Read> = Vec::new();
    for (b, block) in blocks(s.in_channels).enumerate() {
        let depth = block.len().next_multiple_of(QUAD);
        for h in 0..kh {
            for w in 0..kw {
                let offset = ((b * rows + h * s.dilation[1]) * columns + w * s.dilation[2]) * lane;
                match reads.last_mut() {
                    // Neighbours are one run.
                    Some(last) if last.offset + last.depth == offset => last.depth += depth,
                    _ => reads.push(Read { offset, depth }),
                }
            }
        }
    }
    reads
}

/// Some rows of outputs, for some panels of channels.
struct Part<'a> {
    machine: Machine,
    rows: Rows,
    reads: &'a [Read],
    x: *const u8,
    packed: &'a Packed,
    channels: &'a Channels,
    step: f32,
    first: usize,
    end: usize,
    block: Option<usize>,
    add: AddAt,
    out: OutAt,
}

impl Part<'_> {
    /// # Safety
    /// All reads of all rows are valid, and so are outputs of these channels and what is added to them; the outputs are the
    /// caller's alone.
    unsafe fn run(&self) {
        let panel = PANEL * self.packed.depth;
        let mut sums = Sums([0; _]);
        for c in (self.first..self.end).step_by(PANELS * PANEL) {
            let panels = (self.end - c).div_ceil(PANEL).min(PANELS);
            // SAFETY: panels are whole, and the rest is the caller's.
            unsafe {
                let w = self.packed.data.as_slice::<i8>().as_ptr().add(c / PANEL * panel);
                for line in 0..self.rows.lines {
                    for piece in even(self.rows.count, self.machine.rows()) {
                        let x = self.x.add(line * self.rows.x_line + piece.start * self.rows.x_row);
                        let from = Source { x, row: self.rows.x_row, reads: self.reads };
                        tile(self.machine, from, piece.len(), w, panel, panels, &mut sums);
                        let y = line * self.rows.y_line + piece.start * self.rows.y_row;
                        let done = Tile {
                            channels: self.channels,
                            all: self.end,
                            first: c,
                            rows: piece.len(),
                            panels,
                            step: self.step,
                            row: self.rows.y_row,
                            block: self.block,
                            add: self.add.at(y),
                            out: self.out.at(y),
                        };
                        done.finish(self.machine, &sums);
                    }
                }
            }
        }
    }
}

/// A convolution of one shape, ready to run.
pub struct Conv {
    s: ConvShape,
    packed: Arc<Packed>,
    channels: Channels,
    zero: u8,
    reads: Vec<Read>,
    /// Rows and columns of a padded image that bands are copied to; `None` where the image is read as it lies.
    padded: Option<(usize, usize)>,
    flat: bool,
    cut: Cut,
    pub(super) machine: Machine,
}

impl Conv {
    /// With the code of zero of the input, and the steps of the weights of each output; `None` for a shape that is not
    /// computed here.
    pub fn new(
        s: &ConvShape,
        packed: Arc<Packed>,
        zero: u8,
        steps: &[f32],
        bias: Option<&[f32]>,
        after: After,
    ) -> Option<Conv> {
        let level = s.input[0] == 1 && s.kernel[0] == 1 && s.output[0] == 1 && s.pad_begin[0] == 0;
        // So that sums of 32 bits hold all products.
        if s.groups != 1 || !level || s.y_len() == 0 || s.k() == 0 || s.k() > 1 << 16 {
            return None;
        }
        assert!(packed.outputs == s.out_channels, "weights of another shape than {s:?}");
        let [_, oh, ow] = s.output;
        let flat = s.is_pointwise();
        let reach = |a: usize| (s.output[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
        let inside = s.pad_begin == [0; 3] && reach(1) <= s.input[1] && reach(2) <= s.input[2];
        let bytes = image_len(1, s.in_channels, s.x_plane());
        let products = s.y_len() * s.k() / QUAD;
        let (units, least) = if flat { (oh * ow, 24) } else { (oh, 2) };
        let cut = Cut::new(units, least, bytes, s.out_channels, packed.depth / QUAD, products, s.batch);
        let most = s.output[1].div_ceil(cut.bands);
        let height = (most - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
        let padded = (!inside).then(|| (height, reach(2)));
        let (rows, columns) = padded.unwrap_or((s.input[1], s.input[2]));
        let reads = reads_of(s, rows, columns);
        assert_eq!(reads.iter().map(|r| r.depth).sum::<usize>(), packed.depth, "weights of another shape than {s:?}");
        let channels = packed.channels(zero, steps, bias, after);
        Some(Conv { s: *s, packed, channels, zero, reads, padded, flat, cut, machine: Machine::best() })
    }

    /// `y = after(x ⋆ w + bias + add)`; `x` has one step, or one for each image; `y` and `add` lie in blocks.
    pub fn run(&self, x: &[u8], steps: &[f32], add: Add, y: Out) {
        let s = &self.s;
        let (plane, lane) = (s.y_plane(), lane(s.in_channels));
        let y_image = s.out_channels.next_multiple_of(BLOCK) * plane;
        let x_image = image_len(1, s.in_channels, s.x_plane());
        assert!(x.len() == s.batch * x_image && y.len() == s.batch * y_image, "images of {s:?}");
        assert!(matches!(steps.len(), n if n == 1 || n == s.batch), "the steps of {} images", s.batch);
        let added = match add {
            Add::Nothing => y.len(),
            Add::Numbers(a) => a.len(),
            Add::Codes(a, _) => a.len(),
        };
        assert!(added == y.len(), "what is added to the outputs of {s:?}");
        let (add, out) = (AddAt::new(add), OutAt::new(y));
        let Cut { bands, group, groups } = self.cut;
        let units = if self.flat { plane } else { s.output[1] };
        let tasks = s.batch * bands * groups;
        let cost = s.y_len() * s.k() / tasks / 64;
        parallel::for_each_range(tasks, 1, cost, |task| {
            let (at, g) = (task.start / groups, task.start % groups);
            let (image, band) = (at / bands, self.cut.band(at % bands, units));
            if band.is_empty() {
                return;
            }
            let x = &x[image * x_image..][..x_image];
            let mut room;
            let (rows, x) = if self.flat {
                let rows = Rows { lines: 1, count: band.len(), x_line: 0, x_row: lane, y_line: 0, y_row: BLOCK };
                (rows, &x[band.start * lane..])
            } else {
                let columns = self.padded.map_or(s.input[2], |(_, columns)| columns);
                let rows = Rows {
                    lines: band.len(),
                    count: s.output[2],
                    x_line: s.stride[1] * columns * lane,
                    x_row: s.stride[2] * lane,
                    y_line: s.output[2] * BLOCK,
                    y_row: BLOCK,
                };
                if let Some((height, columns)) = self.padded {
                    room = Buffer::uninit(s.in_channels.div_ceil(lane) * height * columns * lane);
                    let first = (band.start * s.stride[1]) as isize - s.pad_begin[1] as isize;
                    self.pad(x, first, height, columns, lane, room.as_mut_slice());
                    (rows, room.as_slice())
                } else {
                    (rows, &x[band.start * s.stride[1] * columns * lane..])
                }
            };
            let reach = self.reads.iter().map(|r| r.offset + r.depth).max().unwrap_or(0)
                + (rows.lines - 1) * rows.x_line
                + (rows.count - 1) * rows.x_row;
            assert!(reach <= x.len() && rows.count > 0);
            let start = image * y_image + band.start * if self.flat { BLOCK } else { s.output[2] * BLOCK };
            let first = g * group;
            // SAFETY: rows read no further than was just checked; the outputs of this band and these channels are this
            // task's alone and lie inside an image of `y`, whose length was checked, as was that of what is added.
            unsafe {
                Part {
                    machine: self.machine,
                    rows,
                    reads: &self.reads,
                    x: x.as_ptr(),
                    packed: &self.packed,
                    channels: &self.channels,
                    step: steps[if steps.len() == 1 { 0 } else { image }],
                    first,
                    end: s.out_channels.min(first + group),
                    block: Some(plane * BLOCK),
                    add: add.at(start),
                    out: out.at(start),
                }
                .run();
            }
        });
    }

    /// Copies `height` rows from row `first` on, with the code of zero around the image.
    fn pad(&self, x: &[u8], first: isize, height: usize, columns: usize, lane: usize, out: &mut [u8]) {
        let [_, ih, iw] = self.s.input;
        let left = self.s.pad_begin[2].min(columns);
        let real = iw.min(columns - left);
        for (i, line) in out.chunks_exact_mut(columns * lane).enumerate() {
            let (block, row) = (i / height, first + (i % height) as isize);
            let Some(row) = usize::try_from(row).ok().filter(|&r| r < ih) else {
                line.fill(self.zero);
                continue;
            };
            let (before, rest) = line.split_at_mut(left * lane);
            let (middle, after) = rest.split_at_mut(real * lane);
            before.fill(self.zero);
            middle.copy_from_slice(&x[(block * ih + row) * iw * lane..][..real * lane]);
            after.fill(self.zero);
        }
    }
}

/// A product with a matrix, ready to run for any number of rows.
pub struct Linear {
    packed: Arc<Packed>,
    inputs: usize,
    channels: Channels,
    pub(super) machine: Machine,
}

impl Linear {
    /// With the code of zero of the input, and the steps of the weights of each output; `None` for too many inputs.
    pub fn new(
        inputs: usize,
        packed: Arc<Packed>,
        zero: u8,
        steps: &[f32],
        bias: Option<&[f32]>,
        after: After,
    ) -> Option<Linear> {
        assert_eq!(row_pitch(inputs), packed.depth, "weights for other inputs");
        let channels = packed.channels(zero, steps, bias, after);
        (inputs <= 1 << 16).then(|| Linear { inputs, channels, machine: Machine::best(), packed })
    }

    /// `y = after(x · w + bias + add)` for rows of codes, a pitch apart; with one step, or one for so many rows each. Rows of
    /// outputs that are codes lie a pitch apart too.
    pub fn run(&self, count: usize, x: &[u8], steps: &[f32], add: Add, y: Out) {
        let (pitch, outputs) = (row_pitch(self.inputs), self.packed.outputs);
        let y_row = if matches!(y, Out::Codes(..)) { row_pitch(outputs) } else { outputs };
        assert!(x.len() == count * pitch && y.len() == count * y_row, "rows of {} and {outputs}", self.inputs);
        if y.is_empty() || steps.is_empty() {
            return;
        }
        assert!(count.is_multiple_of(steps.len()), "{} steps for {count} rows", steps.len());
        // What is added is numbers in rows as wide as the outputs.
        let added = match add {
            Add::Nothing => true,
            Add::Numbers(a) => a.len() == count * outputs && y_row == outputs,
            Add::Codes(..) => false,
        };
        assert!(added, "what is added to the outputs");
        let per = count / steps.len();
        let cut = Cut::new(per, 24, per * pitch, outputs, pitch / QUAD, count * outputs * pitch / QUAD, steps.len());
        let (add, out) = (AddAt::new(add), OutAt::new(y));
        let tasks = steps.len() * cut.bands * cut.groups;
        parallel::for_each_range(tasks, 1, count * outputs * pitch / tasks / 64, |task| {
            let (at, first) = (task.start / cut.groups, task.start % cut.groups * cut.group);
            let (sample, band) = (at / cut.bands, cut.band(at % cut.bands, per));
            if band.is_empty() {
                return;
            }
            let start = sample * per + band.start;
            let x = &x[start * pitch..][..band.len() * pitch];
            let rows = Rows { lines: 1, count: band.len(), x_line: 0, x_row: pitch, y_line: 0, y_row };
            // SAFETY: so many rows of `x`; the rows of this band and the columns of this group are this task's alone and
            // lie inside `y`, whose length was checked.
            unsafe {
                Part {
                    machine: self.machine,
                    rows,
                    reads: &[Read { offset: 0, depth: pitch }],
                    x: x.as_ptr(),
                    packed: &self.packed,
                    channels: &self.channels,
                    step: steps[sample],
                    first,
                    end: outputs.min(first + cut.group),
                    block: None,
                    add: add.at(start * y_row),
                    out: out.at(start * y_row),
                }
                .run();
            }
        });
    }
}
