//! Convolutions of few channels, and those of each channel for itself, by kernels of our own: libraries pad such channels
//! to what their products of matrices take.

use crate::device::Device;
use crate::dnn::{Direction, Geometry};
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::spelling::spelt;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/direct.cu");
/// The most products of channels of a group that are computed here.
const MOST: usize = 128;
/// Threads of a block.
const THREADS: usize = 256;
/// Bytes of shared memory that an image and weights may take, as the text has them.
const ROOM: usize = 45056;

/// A convolution over two axes with `ci` and `co` channels in each group.
struct Planes {
    n: usize,
    groups: usize,
    ci: usize,
    co: usize,
    input: [usize; 2],
    output: [usize; 2],
    window: [usize; 2],
    words: Vec<i64>,
}

impl Planes {
    /// The convolution, if it is one of few channels; one spatial axis is seen as two.
    fn of(g: &Geometry) -> Option<Planes> {
        let rank = g.stride.len();
        if rank > 2 || g.weight[0] == 0 || g.weight[1] == 0 {
            return None;
        }
        let pair = |list: &[usize], fill: usize| if rank == 1 { [fill, list[0]] } else { [list[0], list[1]] };
        let groups = g.input[1] / g.weight[1];
        let (ci, co) = (g.weight[1], g.weight[0] / groups.max(1));
        let (input, output, window) = (pair(&g.input[2..], 1), pair(&g.output[2..], 1), pair(&g.weight[2..], 1));
        let (stride, pad, dilation) = (pair(&g.stride, 1), pair(&g.pad, 0), pair(&g.dilation, 1));
        if ci * co > MOST || window[0] * window[1] > 121 || groups == 0 {
            return None;
        }
        let numbers = [&[g.input[0], groups, ci, co], &input[..], &output, &window, &stride, &pad, &dilation].concat();
        let words = numbers.into_iter().map(|n| i32::try_from(n).ok().map(i64::from)).collect::<Option<Vec<i64>>>()?;
        // Places of a plane are counted in as many bits.
        if [input, output].iter().any(|plane| i32::try_from(plane[0] * plane[1]).is_err()) {
            return None;
        }
        Some(Planes { n: g.input[0], groups, ci, co, input, output, window, words })
    }

    /// Is it one whose images are laid into shared memory: without groups, in steps of one, over a square window?
    fn by_image(&self) -> Option<usize> {
        let k = self.window[0];
        let steps = &self.words[10..12];
        let plain = self.groups == 1 && self.window[1] == k && steps == [1, 1] && self.words[14..] == [1, 1];
        // More padding than the window would be columns of nothing.
        let pads = self.words[12..14].iter().all(|&p| p < k as i64);
        (plain && pads && matches!(k, 1 | 3 | 5)).then_some(k)
    }

    /// Is each channel one for itself, over a small square window? Its side and the step.
    fn by_channel(&self) -> Option<(usize, i64)> {
        let (k, step) = (self.window[0], self.words[10]);
        let alike = self.window[1] == k && self.words[11] == step && self.words[14..] == [1, 1];
        let pads = self.words[12..14].iter().all(|&p| p < k as i64);
        (self.ci * self.co == 1 && alike && pads && matches!(k, 3 | 5) && matches!(step, 1 | 2)).then_some((k, step))
    }

    /// The kernel for channels by themselves, its threads, and the arguments before the data.
    fn depthwise(&self, direction: Direction, dtype: DType) -> Option<(String, usize, Vec<Argument>)> {
        let ((k, step), t) = (self.by_channel()?, spelt(dtype));
        let threads = |[rows, columns]: [usize; 2]| self.n * self.groups * rows * columns.div_ceil(4);
        let head = |total: usize, p: &Planes| vec![Argument::Int(total as i64), p.words()];
        let (name, total, p, turned) = match (direction, step) {
            (Direction::ToWeight, _) => return None,
            (Direction::ToData, 2) => {
                let total = threads(self.input);
                return Some((format!("depth_back2<{t}, {k}, {}>", self.words[13] % 2), total, head(total, self)));
            }
            (Direction::ToData, _) => (format!("depth_forward<{t}, {k}, 1>"), threads(self.input), &self.turned(k), 1),
            (Direction::Forward, step) => (format!("depth_forward<{t}, {k}, {step}>"), threads(self.output), self, 0),
        };
        let mut head = head(total, p);
        head.push(Argument::Int(turned));
        Some((name, total, head))
    }

    /// The same convolution seen from its output: what brings gradients back to the data.
    fn turned(&self, k: usize) -> Planes {
        let mut words = self.words.clone();
        words.swap(2, 3);
        words.swap(4, 6);
        words.swap(5, 7);
        (words[12], words[13]) = (k as i64 - 1 - words[12], k as i64 - 1 - words[13]);
        Planes { ci: self.co, co: self.ci, input: self.output, output: self.input, words, ..*self }
    }

    /// How many output channels a block takes, if an image and their weights fit into its memory.
    fn chunk(&self, device: &Device, dtype: DType, k: usize) -> Option<usize> {
        let multiprocessors = device.info().multiprocessors.max(1) as usize;
        let width = self.output[1].next_multiple_of(4) + (k - 1).next_multiple_of(4);
        let image = self.ci * (self.output[0] + k - 1) * width;
        let fits = |chunk: &usize| (image + self.ci * k * k * chunk) * wide_size(dtype) <= ROOM;
        let all = self.co.next_multiple_of(4);
        let wanted =
            if self.n >= 2 * multiprocessors { all } else { (all * self.n / multiprocessors).next_multiple_of(4) };
        (1..=wanted.clamp(4, all) / 4).rev().map(|fours| 4 * fours).find(fits)
    }

    /// How many output channels a thread takes for the weights' gradient, and how many rows a block takes at a time.
    fn bands(&self, dtype: DType, k: usize) -> Option<(usize, usize)> {
        let each = dividing(self.co, 4);
        let across = self.output[1].next_multiple_of(4);
        let width = across + (k - 1).next_multiple_of(4);
        let fits =
            |rows: &usize| (self.co * rows * across + self.ci * (rows + k - 1) * width) * wide_size(dtype) <= ROOM;
        let rows = (1..=self.output[0]).rev().find(fits)?;
        (self.co / each * self.ci * k <= THREADS).then_some((each, rows))
    }

    fn words(&self) -> Argument {
        Argument::Words(self.words.clone())
    }
}

/// The size of a number of the type that is computed in.
fn wide_size(dtype: DType) -> usize {
    if dtype == DType::Float64 { 8 } else { 4 }
}

/// The largest of some numbers that divides.
fn dividing(n: usize, most: usize) -> usize {
    [8, 4, 2, 1].into_iter().find(|&b| b <= most && n.is_multiple_of(b)).expect("one divides all")
}

/// Computes a convolution of contiguous data, of the geometry's extents, that is one of few channels; false, with nothing done,
/// if it is not.
pub(crate) fn convolve(
    device: &'static Device,
    direction: Direction,
    dtype: DType,
    geometry: &Geometry,
    addresses: [u64; 3],
) -> Result<bool> {
    let Some(p) = Planes::of(geometry) else { return Ok(false) };
    let [a, b, result] = addresses.map(Argument::Address);
    let t = spelt(dtype);
    if direction != Direction::ToWeight
        && let Some(k) = p.by_image()
    {
        let to_data = direction == Direction::ToData;
        let p = if to_data { p.turned(k) } else { Planes { words: p.words.clone(), ..p } };
        if let Some(chunk) = p.chunk(device, dtype, k) {
            // Where there is little to do, more threads do less each.
            let items = chunk / 4 * p.output[0] * p.output[1].div_ceil(4);
            let each = if items < THREADS / 2 { 2 } else { 4 };
            let kernel = device.template(TEXT, &format!("image_forward<{t}, {k}, {each}>"))?;
            // The image comes before the weight among the kernel's arguments.
            let [x, weight] = if to_data { [b, a] } else { [a, b] };
            let mut arguments =
                [p.words(), Argument::Int(chunk as i64), Argument::Int(to_data as i64), x, weight, result];
            let images = p.n.min(device.info().multiprocessors.max(1) as usize * 4);
            let grid = Grid { blocks: images as u32, parts: p.co.div_ceil(chunk) as u32, threads: THREADS as u32 };
            // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says.
            unsafe { device.launch(kernel, grid, &mut arguments)? };
            return Ok(true);
        }
    }
    if let Some((name, total, mut arguments)) = p.depthwise(direction, dtype) {
        // Seen from its output, the gradient comes before the weight.
        let turned = direction == Direction::ToData && name.starts_with("depth_forward");
        let [first, second] = if turned { [b, a] } else { [a, b] };
        arguments.extend([first, second, result]);
        let kernel = device.template(TEXT, &name)?;
        // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says.
        unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments)? };
        return Ok(true);
    }
    let (name, total) = match direction {
        Direction::Forward => {
            let each = dividing(p.co, 8);
            (format!("direct_forward<{t}, {each}>"), p.n * p.groups * (p.co / each) * p.output[0] * p.output[1])
        }
        Direction::ToData => {
            let each = dividing(p.ci, 8);
            (format!("direct_to_data<{t}, {each}>"), p.n * p.groups * (p.ci / each) * p.input[0] * p.input[1])
        }
        Direction::ToWeight => return to_weight(device, dtype, &p, [a, b, result]),
    };
    let kernel = device.template(TEXT, &name)?;
    let mut arguments = [Argument::Int(total as i64), p.words(), a, b, result];
    let grid = Grid::of(total, device);
    // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says.
    unsafe { device.launch(kernel, grid, &mut arguments)? };
    Ok(true)
}

fn to_weight(device: &'static Device, dtype: DType, p: &Planes, [x, y, weight]: [Argument; 3]) -> Result<bool> {
    let k = p.window[0];
    if p.window[1] != k || !matches!(k, 1 | 3 | 5 | 7) {
        return Ok(false);
    }
    let multiprocessors = device.info().multiprocessors.max(1) as usize;
    let by_image = p.by_image().and_then(|k| p.bands(dtype, k));
    let (name, grid, first) = match by_image {
        Some((each, rows)) => {
            let blocks = (p.n * p.output[0].div_ceil(rows)).min(multiprocessors * 2);
            let grid = Grid { blocks: blocks as u32, parts: 1, threads: THREADS as u32 };
            (format!("image_to_weight<{}, {k}, {each}>", spelt(dtype)), grid, Some(Argument::Int(rows as i64)))
        }
        None => {
            let each = dividing(p.co, if k <= 5 { 4 } else { 2 });
            let blocks = p.groups * (p.co / each) * p.ci;
            let positions = p.n * p.output[0] * p.output[1];
            let parts = (multiprocessors * 8 / blocks).min(positions / (THREADS * 4)).clamp(1, 256);
            let grid = Grid { blocks: blocks as u32, parts: parts as u32, threads: THREADS as u32 };
            (format!("direct_to_weight<{}, {k}, {each}>", spelt(dtype)), grid, None)
        }
    };
    let parts = if by_image.is_some() { grid.blocks } else { grid.parts } as usize;
    let all = p.groups * p.co * p.ci * k * k;
    let sums = device.alloc(parts * all * wide_size(dtype))?;
    let kernel = device.template(TEXT, &name)?;
    let mut arguments: Vec<Argument> = [p.words()].into_iter().chain(first).chain([x, y, (&sums).into()]).collect();
    // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says, and there is a row of
    // sums for each part.
    unsafe { device.launch(kernel, grid, &mut arguments)? };
    let kernel = device.template(TEXT, &format!("direct_joined<{}>", spelt(dtype)))?;
    let mut arguments = [Argument::Int(all as i64), Argument::Int(parts as i64), (&sums).into(), weight];
    // SAFETY: as above.
    unsafe { device.launch(kernel, Grid::blocks(all.div_ceil(32), device, THREADS), &mut arguments)? };
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_of_more_places_than_are_counted_are_left_to_others() {
        let of = |input: [usize; 2], output: [usize; 2]| {
            let shape = |plane: [usize; 2]| vec![1, 1, plane[0], plane[1]];
            let (input, weight, output) = (shape(input), shape([1, 1]), shape(output));
            let (pad, stride, dilation) = (vec![0; 2], vec![1; 2], vec![1; 2]);
            Planes::of(&Geometry { input, weight, output, pad, stride, dilation, channels_last: false }).is_some()
        };
        let (most, more) = ([1 << 16, (1 << 15) - 1], [1 << 16, 1 << 15]);
        assert!(of(most, most) && !of(more, most) && !of(most, more));
    }
}
