//! Convolutions without groups, and products with a matrix.

use super::images::blocked_len;
use super::tile::{Channels, Read, Rows, Tiles, pack, packed_len, panel};
use super::{After, BLOCK, winograd};
use crate::conv::ConvShape;
use crate::shared::Shared;
use crate::{Buffer, View, parallel};
use pulp::Arch;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of input that a task reads again and again, so that they stay in the second-level cache.
const BAND: usize = 256 << 10;
/// Tasks that large work is cut into at least, and the products from which on it is large.
const TASKS: usize = 8;
const LARGE: usize = 1 << 20;

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Direct sums over a blocked image.
    Blocked,
    /// Direct sums over an image that lies channel by channel, for few channels.
    Plain,
    /// Winograd's method with so many points along an axis, over a blocked image.
    Winograd(usize),
}

impl Way {
    /// The fastest way for that shape; `None` for one that is not computed here. `plain` says that the image is not in blocks.
    pub fn of(s: &ConvShape, plain: bool) -> Option<Way> {
        let flat = s.input[0] == 1 && s.kernel[0] == 1 && s.output[0] == 1 && s.pad_begin[0] == 0;
        if s.groups != 1 || !flat || s.y_len() == 0 || s.k() == 0 {
            return None;
        }
        if plain {
            return (s.in_channels < BLOCK / 2).then_some(Way::Plain);
        }
        Some(winograd::points(s).map_or(Way::Blocked, Way::Winograd))
    }
}

/// The weights of a layer as its loops read them. They do not depend on the size of images.
pub struct Packed {
    data: Buffer,
    outputs: usize,
    depth: usize,
}

impl Packed {
    /// The kernels `[out, in, kernel…]` of a convolution.
    pub fn conv(s: &ConvShape, way: Way, w: &[f32]) -> Packed {
        let (outputs, k, inputs, taps) = (s.out_channels, s.k(), s.in_channels, s.taps());
        assert_eq!(w.len(), s.w_len(), "the weights of {s:?}");
        if let Way::Winograd(points) = way {
            return Packed { data: winograd::pack(s, points, w), outputs, depth: k };
        }
        let mut data = Buffer::uninit(4 * packed_len(outputs, k));
        let places: Vec<usize> = match way {
            Way::Plain => (0..k).collect(),
            // `[block of inputs, kernel element, input]`.
            _ => (0..inputs)
                .step_by(BLOCK)
                .flat_map(|c| {
                    let block = c..inputs.min(c + BLOCK);
                    (0..taps).flat_map(move |t| block.clone().map(move |c| c * taps + t))
                })
                .collect(),
        };
        pack(outputs, k, |o, i| w[o * k + places[i]], data.as_mut_slice());
        Packed { data, outputs, depth: k }
    }

    /// A matrix `[in, out]`.
    pub fn matrix(w: View<f32>) -> Packed {
        let (&[depth, outputs], &[row, column]) = (w.shape, w.strides) else { panic!("a matrix has two axes") };
        let mut data = Buffer::uninit(4 * packed_len(outputs, depth));
        let place = |o: usize, i: usize| (w.offset as isize + i as isize * row + o as isize * column) as usize;
        pack(outputs, depth, |o, i| w.data[place(o, i)], data.as_mut_slice());
        Packed { data, outputs, depth }
    }
}

/// The bias, filled up to whole vectors.
pub(super) fn filled(bias: Option<&[f32]>, outputs: usize) -> Option<Vec<f32>> {
    bias.map(|bias| {
        assert_eq!(bias.len(), outputs, "one bias for each output");
        let mut all = bias.to_vec();
        all.resize(outputs.next_multiple_of(2 * BLOCK), 0.0);
        all
    })
}

/// How work is cut: bands of places, and groups of channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) bands: usize,
    pub(super) group: usize,
    pub(super) groups: usize,
}

impl Cut {
    /// `units` are lines or places of `bytes` in all; `least` of them make a band that pays.
    pub(super) fn new(
        units: usize,
        least: usize,
        bytes: usize,
        outputs: usize,
        depth: usize,
        products: usize,
        times: usize,
    ) -> Cut {
        let panels = outputs.div_ceil(panel());
        let most = units.div_ceil(least).max(1);
        let mut bands = bytes.div_ceil(BAND).clamp(1, most);
        let mut groups = 1;
        if products >= LARGE {
            let wanted = |have: usize| TASKS.div_ceil(have * times);
            if 4 * outputs * depth > bytes {
                groups = wanted(bands).min(panels);
                bands = bands.max(wanted(groups).min(most));
            } else {
                bands = bands.max(wanted(1).min(most));
                groups = wanted(bands).min(panels);
            }
        }
        let group = panels.div_ceil(groups) * panel();
        Cut { bands, group, groups: outputs.div_ceil(group) }
    }

    pub(super) fn band(&self, i: usize, units: usize) -> Range<usize> {
        i * units / self.bands..(i + 1) * units / self.bands
    }
}

/// What an output reads of an image of so many rows and columns.
fn reads_of(s: &ConvShape, rows: usize, columns: usize, lane: usize) -> Vec<Read> {
    let [_, kh, kw] = s.kernel;
    let blocks = s.in_channels.div_ceil(lane);
    let mut reads = Vec::with_capacity(blocks * kh * kw);
    for b in 0..blocks {
        let depth = (s.in_channels - b * lane).min(lane);
        for h in 0..kh {
            for w in 0..kw {
                let place = (b * rows + h * s.dilation[1]) * columns + w * s.dilation[2];
                reads.push(Read { offset: place * lane, depth });
            }
        }
    }
    reads
}

/// A convolution of one shape, ready to run.
pub struct Conv {
    s: ConvShape,
    way: Way,
    packed: Arc<Packed>,
    bias: Option<Vec<f32>>,
    after: After,
    reads: Vec<Read>,
    /// Rows and columns of a padded image that bands are copied to; `None` where the image is read as it lies.
    padded: Option<(usize, usize)>,
    flat: bool,
    cut: Cut,
}

impl Conv {
    /// A convolution with weights that were packed for this way.
    pub fn new(s: &ConvShape, way: Way, packed: Arc<Packed>, bias: Option<&[f32]>, after: After) -> Conv {
        assert!(packed.outputs == s.out_channels && packed.depth == s.k(), "weights of another shape than {s:?}");
        let [_, oh, ow] = s.output;
        let lane = if way == Way::Plain { 1 } else { BLOCK };
        let flat = s.is_pointwise() && way == Way::Blocked;
        let reach = |a: usize| (s.output[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
        let inside = s.pad_begin == [0; 3] && reach(1) <= s.input[1] && reach(2) <= s.input[2];
        let padded = (!inside && !matches!(way, Way::Winograd(_))).then_some(reach(2));
        let x_bytes = 4 * s.in_channels * s.x_plane();
        let products = s.y_len() * s.k();
        let (units, least) = if flat { (oh * ow, 24) } else { (oh, 2) };
        let cut = Cut::new(units, least, x_bytes, s.out_channels, s.k(), products, s.batch);
        // Bands that are copied have as many rows each as the largest, so that all of them are read alike.
        let most = s.output[1].div_ceil(cut.bands);
        let height = (most - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
        let padded = padded.map(|columns| (height, columns));
        let (rows, columns) = padded.unwrap_or((s.input[1], s.input[2]));
        let reads = reads_of(s, rows, columns, lane);
        Conv { s: *s, way, packed, bias: filled(bias, s.out_channels), after, reads, padded, flat, cut }
    }

    /// `y = after(x ⋆ w + bias + add)`; `y` and `add` are blocked.
    pub fn run(&self, x: &[f32], add: Option<&[f32]>, y: &mut [f32]) {
        let s = &self.s;
        let plane = s.y_plane();
        let y_image = blocked_len(1, s.out_channels, plane);
        let x_image = match self.way {
            Way::Plain => s.in_channels * s.x_plane(),
            _ => blocked_len(1, s.in_channels, s.x_plane()),
        };
        assert!(x.len() == s.batch * x_image && y.len() == s.batch * y_image, "images of {s:?}");
        assert!(add.is_none_or(|a| a.len() == y.len()), "what is added to the outputs of {s:?}");
        if let Way::Winograd(points) = self.way {
            let bias = self.bias.as_deref();
            let weights = self.packed.data.as_slice::<f32>();
            return winograd::run(s, points, x, weights, bias, add, self.after, y);
        }
        let lane = if self.way == Way::Plain { 1 } else { BLOCK };
        let (y, add) = (Shared::new(y), add.map(|a| Shared::new_const(a.as_ptr())));
        let Cut { bands, group, groups } = self.cut;
        let units = if self.flat { plane } else { s.output[1] };
        let tasks = s.batch * bands * groups;
        let cost = s.y_len() * s.k() / tasks / 16;
        let w = self.packed.data.as_slice::<f32>();
        parallel::for_each_range(tasks, 1, cost, |task| {
            let (at, g) = (task.start / groups, task.start % groups);
            let (image, band) = (at / bands, self.cut.band(at % bands, units));
            let x = &x[image * x_image..][..x_image];
            let mut room;
            let reads = &self.reads;
            let (rows, x) = if self.flat {
                let rows = Rows { lines: 1, count: band.len(), x_line: 0, x_row: BLOCK, y_line: 0, y_row: BLOCK };
                (rows, &x[band.start * BLOCK..])
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
                    room = Buffer::uninit(4 * s.in_channels.div_ceil(lane) * height * columns * lane);
                    let first = (band.start * s.stride[1]) as isize - s.pad_begin[1] as isize;
                    self.pad(x, first, height, columns, lane, room.as_mut_slice());
                    (rows, room.as_slice())
                } else {
                    (rows, &x[band.start * s.stride[1] * columns * lane..])
                }
            };
            let reach = reads.last().map_or(0, |r| r.offset + r.depth)
                + (rows.lines - 1) * rows.x_line
                + (rows.count - 1) * rows.x_row;
            assert!(reach <= x.len() && rows.count > 0);
            let start = image * y_image + band.start * if self.flat { BLOCK } else { s.output[2] * BLOCK };
            let first = g * group;
            // SAFETY: rows read no further than was just checked; the outputs of this band and these channels are this
            // task's alone and lie inside an image of `y`, whose length was checked; the panels before the group are whole.
            unsafe {
                Arch::new().dispatch(Tiles {
                    rows,
                    reads,
                    depth: s.k(),
                    first,
                    end: s.out_channels.min(first + group),
                    all: s.out_channels,
                    x: x.as_ptr(),
                    w: w.as_ptr().add(first * s.k()),
                    bias: self.bias.as_deref(),
                    add: add.map(|a| a.get().cast_const().add(start)),
                    after: self.after,
                    channels: Channels::Blocks(plane * BLOCK),
                    y: y.get().add(start),
                });
            }
        });
    }

    /// Copies `height` rows from row `first` on, with zeros around the image.
    fn pad(&self, x: &[f32], first: isize, height: usize, columns: usize, lane: usize, out: &mut [f32]) {
        let [_, ih, iw] = self.s.input;
        let left = self.s.pad_begin[2].min(columns);
        let real = iw.min(columns - left);
        for (i, line) in out.chunks_exact_mut(columns * lane).enumerate() {
            let (block, row) = (i / height, first + (i % height) as isize);
            let Some(row) = usize::try_from(row).ok().filter(|&r| r < ih) else {
                line.fill(0.0);
                continue;
            };
            let (before, rest) = line.split_at_mut(left * lane);
            let (middle, after) = rest.split_at_mut(real * lane);
            before.fill(0.0);
            middle.copy_from_slice(&x[(block * ih + row) * iw * lane..][..real * lane]);
            after.fill(0.0);
        }
    }
}

/// A product with a matrix, ready to run for any number of rows.
pub struct Linear {
    packed: Arc<Packed>,
    bias: Option<Vec<f32>>,
    after: After,
}

impl Linear {
    /// A layer with a packed matrix.
    pub fn new(packed: Arc<Packed>, bias: Option<&[f32]>, after: After) -> Linear {
        let bias = filled(bias, packed.outputs);
        Linear { packed, bias, after }
    }

    /// `y = after(x · w + bias + add)` for rows side by side.
    pub fn run(&self, x: &[f32], add: Option<&[f32]>, y: &mut [f32]) {
        let (depth, outputs) = (self.packed.depth, self.packed.outputs);
        if y.is_empty() {
            return;
        }
        let count = y.len() / outputs;
        assert!(y.len() == count * outputs && x.len() == count * depth, "rows of {depth} and {outputs}");
        assert!(add.is_none_or(|a| a.len() == y.len()), "what is added to the outputs");
        let cut = Cut::new(count, 24, 4 * x.len(), outputs, depth, y.len() * depth, 1);
        let (y, add) = (Shared::new(y), add.map(|a| Shared::new_const(a.as_ptr())));
        let w = self.packed.data.as_slice::<f32>();
        let tasks = cut.bands * cut.groups;
        // Rows at a distance that is a power of two share cache lines.
        let apart = (depth >= 512 && depth.is_multiple_of(512) && count > 4).then_some(depth + BLOCK);
        parallel::for_each_range(tasks, 1, count * outputs * depth / tasks / 16, |task| {
            let (band, first) = (cut.band(task.start / cut.groups, count), task.start % cut.groups * cut.group);
            let mut x = &x[band.start * depth..band.end * depth];
            let mut room;
            if let Some(pitch) = apart {
                room = Buffer::uninit(4 * band.len() * pitch);
                for (to, from) in room.as_mut_slice::<f32>().chunks_exact_mut(pitch).zip(x.chunks_exact(depth)) {
                    to[..depth].copy_from_slice(from);
                }
                x = room.as_slice();
            }
            let x_row = apart.unwrap_or(depth);
            let rows = Rows { lines: 1, count: band.len(), x_line: 0, x_row, y_line: 0, y_row: outputs };
            // SAFETY: so many rows of `x`; the rows of this band and the columns of this group are this task's alone and
            // lie inside `y`, whose length was checked; the panels before the group are whole.
            unsafe {
                Arch::new().dispatch(Tiles {
                    rows,
                    reads: &[Read { offset: 0, depth }],
                    depth,
                    first,
                    end: outputs.min(first + cut.group),
                    all: outputs,
                    x: x.as_ptr(),
                    w: w.as_ptr().add(first * depth),
                    bias: self.bias.as_deref(),
                    add: add.map(|a| a.get().cast_const().add(band.start * outputs)),
                    after: self.after,
                    channels: Channels::Row,
                    y: y.get().add(band.start * outputs),
                });
            }
        });
    }
}
