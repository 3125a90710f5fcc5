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
        Some(Planes { n: g.input[0], groups, ci, co, input, output, window, words })
    }

    /// The kernel that keeps all weights in shared memory, its positions and blocks of channels, if they fit.
    fn few(&self, direction: Direction, dtype: DType) -> Option<(String, usize, u32)> {
        let (name, read, made, plane) = match direction {
            Direction::Forward => ("few_forward", self.ci, self.co, self.output),
            Direction::ToData => ("few_to_data", self.co, self.ci, self.input),
            Direction::ToWeight => return None,
        };
        let k = self.window[0];
        if self.groups != 1 || self.window[1] != k || !matches!(k, 1 | 3 | 5) {
            return None;
        }
        let positions = self.n * plane[0] * plane[1];
        // Few positions are spread over more threads.
        let most = if positions < 1 << 14 { 4 } else { 16 };
        let each = [4, 8, 16].into_iter().find(|&b| b >= made.min(most)).expect("no more than sixteen");
        let room = [512, 2048, 5120].into_iter().find(|&s| s >= read * k * k * each)?;
        let name = format!("{name}<{}, {k}, {each}, {room}>", spelt(dtype));
        Some((name, positions, made.div_ceil(each) as u32))
    }

    fn words(&self) -> Argument {
        Argument::Words(self.words.clone())
    }
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
    let (name, total, parts) = p.few(direction, dtype).unwrap_or((name, total, 1));
    let kernel = device.template(TEXT, &name)?;
    let mut arguments = [Argument::Int(total as i64), p.words(), a, b, result];
    let grid = Grid { parts, ..Grid::of(total, device) };
    // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says.
    unsafe { device.launch(kernel, grid, &mut arguments)? };
    Ok(true)
}

fn to_weight(device: &'static Device, dtype: DType, p: &Planes, [x, y, weight]: [Argument; 3]) -> Result<bool> {
    let k = p.window[0];
    if p.window[1] != k || !matches!(k, 1 | 3 | 5 | 7) {
        return Ok(false);
    }
    let each = dividing(p.co, if k <= 5 { 4 } else { 2 });
    let blocks = p.groups * (p.co / each) * p.ci;
    let positions = p.n * p.output[0] * p.output[1];
    let room = device.info().multiprocessors.max(1) as usize * 8;
    let parts = (room / blocks).min(positions / (THREADS * 4)).clamp(1, 256);
    let all = p.groups * p.co * p.ci * k * k;
    let wide = if dtype == DType::Float64 { 8 } else { 4 };
    let sums = device.alloc(parts * all * wide)?;
    let kernel = device.template(TEXT, &format!("direct_to_weight<{}, {k}, {each}>", spelt(dtype)))?;
    let grid = Grid { blocks: blocks as u32, parts: parts as u32, threads: THREADS as u32 };
    // SAFETY: these are the kernel's arguments; the caller found the data as long as the geometry says, and there is a row of
    // sums for each part.
    unsafe { device.launch(kernel, grid, &mut [p.words(), x, y, (&sums).into()])? };
    let kernel = device.template(TEXT, &format!("direct_joined<{}>", spelt(dtype)))?;
    let mut arguments = [Argument::Int(all as i64), Argument::Int(parts as i64), (&sums).into(), weight];
    // SAFETY: as above.
    unsafe { device.launch(kernel, Grid::of(all, device), &mut arguments)? };
    Ok(true)
}
