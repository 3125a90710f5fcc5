//! Softmax, losses and normalisation of rows and channels.

use crate::device::{COUNTERS, Device};
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/rows.cu");

/// A block and the number of its first element.
pub type At<'a> = (&'a Block, usize);

/// The most parts that the sums of a channel or column are cut into.
const PARTS: usize = 64;

/// Threads of a block for channels that lie side by side.
const SIDE: usize = 512;

/// Data of a kernel: a block, how many elements it must hold, and their type.
struct Data<'a>(Option<At<'a>>, usize, DType);

impl Data<'_> {
    /// Its address, once it was found long enough.
    fn argument(&self, name: &str) -> Argument {
        let Data(Some((block, offset)), n, dtype) = self else { return Argument::Address(0) };
        assert!((offset + n) * dtype.size() <= block.len(), "{name}: {n} elements from {offset} of {block:?}");
        Argument::Address(block.address() + (offset * dtype.size()) as u64)
    }
}

fn wide(dtype: DType) -> DType {
    if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 }
}

/// Starts a kernel of this file with numbers first and data after them.
fn run(device: &Device, name: &str, dtype: DType, grid: Grid, head: Vec<Argument>, data: &[Data<'_>]) -> Result<()> {
    start(device, &format!("{name}<{}>", spelt(dtype)), grid, head, data)
}

/// Starts an instance of a kernel of this file.
fn start(device: &Device, name: &str, grid: Grid, head: Vec<Argument>, data: &[Data<'_>]) -> Result<()> {
    let kernel = device.template(TEXT, name)?;
    let mut arguments = head;
    arguments.extend(data.iter().map(|data| data.argument(name)));
    // SAFETY: these are the kernel's arguments, and every block was compared with what it reads and writes.
    unsafe { device.launch(kernel, grid, &mut arguments) }
}

fn ints<const N: usize>(numbers: [usize; N]) -> Vec<Argument> {
    numbers.map(|n| Argument::Int(n as i64)).into()
}

/// A warp for each line.
fn warps(lines: usize, device: &Device) -> Grid {
    Grid::blocks(lines.div_ceil(4), device, 128)
}

/// Softmax, or its logarithm, of lines of `n` elements that lie `inner` apart.
pub fn softmax(device: &Device, dtype: DType, lines: [usize; 3], logarithm: bool, x: At<'_>, y: &Block) -> Result<()> {
    let [outer, n, inner] = lines;
    let (count, total) = (outer * inner, outer * n * inner);
    if total == 0 {
        return Ok(());
    }
    let mut head = ints([count, n, inner]);
    head.push(Argument::Int(logarithm as i64));
    let data = [Data(Some(x), total, dtype), Data(Some((y, 0)), total, dtype)];
    run(device, "softmax", dtype, warps(count, device), head, &data)
}

/// The gradient of [`softmax`] from its result.
pub fn softmax_back(
    device: &Device,
    dtype: DType,
    lines: [usize; 3],
    logarithm: bool,
    y: At<'_>,
    g: At<'_>,
    dx: &Block,
) -> Result<()> {
    let [outer, n, inner] = lines;
    let (count, total) = (outer * inner, outer * n * inner);
    if total == 0 {
        return Ok(());
    }
    let mut head = ints([count, n, inner]);
    head.push(Argument::Int(logarithm as i64));
    let data = [Data(Some(y), total, dtype), Data(Some(g), total, dtype), Data(Some((dx, 0)), total, dtype)];
    run(device, "softmax_back", dtype, warps(count, device), head, &data)
}

/// Rows of logits with a class each.
pub struct Classes<'a> {
    /// The op that asks.
    pub op: &'static str,
    /// Rows and classes.
    pub extents: [usize; 2],
    /// The label that stands for no class.
    pub ignore: i64,
    /// The label of each row, int64.
    pub labels: At<'a>,
}

impl Classes<'_> {
    fn head(&self, device: &Device, first: usize, more: &[i64]) -> Vec<Argument> {
        let mut head = ints([first, self.extents[1]]);
        head.push(Argument::Int(self.ignore));
        head.extend(more.iter().map(|&n| Argument::Int(n)));
        head.extend(device.alarm(self.op));
        head
    }

    /// The loss of each row, its largest logit, and the logarithm of the sum of the others relative to it.
    pub fn cross_entropy(&self, device: &Device, dtype: DType, x: At<'_>, out: [&Block; 3]) -> Result<()> {
        let [rows, n] = self.extents;
        if rows == 0 {
            return Ok(());
        }
        let [loss, peak, rest] = out.map(|b| Some((b, 0)));
        let data = [
            Data(Some(x), rows * n, dtype),
            Data(Some(self.labels), rows, DType::Int64),
            Data(loss, rows, dtype),
            Data(peak, rows, wide(dtype)),
            Data(rest, rows, wide(dtype)),
        ];
        run(device, "cross_entropy", dtype, warps(rows, device), self.head(device, rows, &[]), &data)
    }

    /// The gradient of [`cross_entropy`](Self::cross_entropy): softmax, less one at the class if `hot`, times the gradient.
    pub fn cross_entropy_back(
        &self,
        device: &Device,
        dtype: DType,
        hot: bool,
        x: At<'_>,
        [peak, rest, grad]: [At<'_>; 3],
        dx: &Block,
    ) -> Result<()> {
        let [rows, n] = self.extents;
        let total = rows * n;
        if total == 0 {
            return Ok(());
        }
        let data = [
            Data(Some(x), total, dtype),
            Data(Some(self.labels), rows, DType::Int64),
            Data(Some(peak), rows, wide(dtype)),
            Data(Some(rest), rows, wide(dtype)),
            Data(Some(grad), rows, dtype),
            Data(Some((dx, 0)), total, dtype),
        ];
        run(
            device,
            "cross_entropy_back",
            dtype,
            Grid::of(total, device),
            self.head(device, total, &[hot as i64]),
            &data,
        )
    }

    /// The element of each row at its class, or back: each element at its class of a row of zeros.
    pub fn pick(&self, device: &Device, dtype: DType, back: bool, x: At<'_>, y: &Block) -> Result<()> {
        let [rows, n] = self.extents;
        let (read, written) = if back { (rows, rows * n) } else { (rows * n, rows) };
        if written == 0 {
            return Ok(());
        }
        let data = [
            Data(Some(x), read, dtype),
            Data(Some(self.labels), rows, DType::Int64),
            Data(Some((y, 0)), written, dtype),
        ];
        run(device, "pick", dtype, Grid::of(written, device), self.head(device, written, &[back as i64]), &data)
    }
}

/// Rows normalised by their mean and deviation, or by the root of their mean square.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct RowNorm {
    pub rows: usize,
    pub n: usize,
    pub rms: bool,
}

impl RowNorm {
    fn grid(self, device: &Device) -> Grid {
        let threads = if self.n <= 128 {
            32
        } else if self.n <= 1024 {
            128
        } else {
            256
        };
        Grid::blocks(self.rows, device, threads)
    }

    /// Blocks for 32 columns each, and a row of them for each part of the rows; very many columns are work enough in one part.
    fn columns(self) -> Grid {
        let blocks = self.n.div_ceil(32);
        let parts = if blocks > COUNTERS { 1 } else { self.rows.div_ceil(64).clamp(1, PARTS) };
        Grid { blocks: blocks as u32, parts: parts as u32, threads: 256 }
    }

    /// The normalised rows, scaled and shifted; their means and one over their deviations.
    pub fn forward(
        self,
        device: &Device,
        dtype: DType,
        epsilon: f64,
        x: At<'_>,
        [weight, bias]: [Option<At<'_>>; 2],
        [y, mean, scale]: [&Block; 3],
    ) -> Result<()> {
        let RowNorm { rows, n, rms } = self;
        if rows == 0 {
            return Ok(());
        }
        let mut head = ints([rows, n]);
        head.extend([Argument::Int(rms as i64), Argument::Float(epsilon)]);
        let data = [
            Data(Some(x), rows * n, dtype),
            Data(weight, n, dtype),
            Data(bias, n, dtype),
            Data(Some((y, 0)), rows * n, dtype),
            Data(Some((mean, 0)), rows, wide(dtype)),
            Data(Some((scale, 0)), rows, wide(dtype)),
        ];
        run(device, "row_norm", dtype, self.grid(device), head, &data)
    }

    /// The gradients of x, weight and bias.
    pub fn backward(
        self,
        device: &'static Device,
        dtype: DType,
        [x, g]: [At<'_>; 2],
        weight: Option<At<'_>>,
        [mean, scale]: [At<'_>; 2],
        [dx, dw, db]: [&Block; 3],
    ) -> Result<()> {
        let RowNorm { rows, n, rms } = self;
        let mut head = ints([rows, n]);
        head.push(Argument::Int(rms as i64));
        let stats = [Data(Some(mean), rows, wide(dtype)), Data(Some(scale), rows, wide(dtype))];
        let [means, scales] = stats;
        if rows > 0 && n > 0 {
            let data = [
                Data(Some(x), rows * n, dtype),
                Data(Some(g), rows * n, dtype),
                Data(weight, n, dtype),
                Data(means.0, rows, wide(dtype)),
                Data(scales.0, rows, wide(dtype)),
                Data(Some((dx, 0)), rows * n, dtype),
            ];
            run(device, "row_norm_back", dtype, self.grid(device), head.clone(), &data)?;
        }
        if n == 0 {
            return Ok(());
        }
        let grid = self.columns();
        let sums = device.alloc(2 * grid.parts as usize * n * 8)?;
        let data = [
            Data(Some(x), rows * n, dtype),
            Data(Some(g), rows * n, dtype),
            Data(means.0, rows, wide(dtype)),
            Data(scales.0, rows, wide(dtype)),
        ];
        let name = format!("row_norm_columns<{}>", spelt(dtype));
        start_joining(device, &name, dtype, grid, head, &data, (&sums, n), [dw, db])
    }
}

/// Starts a kernel that makes parts of two sums for each of `n` columns, and joins them into two results.
fn start_joining(
    device: &Device,
    name: &str,
    dtype: DType,
    grid: Grid,
    head: Vec<Argument>,
    data: &[Data<'_>],
    (sums, n): (&Block, usize),
    results: [&Block; 2],
) -> Result<()> {
    let kernel = device.template(TEXT, name)?;
    let mut arguments = head;
    arguments.extend(data.iter().map(|data| data.argument(name)));
    let parts = Data(Some((sums, 0)), 2 * grid.parts as usize * n, DType::Float64);
    arguments.extend([parts.argument(name), device.counters(if grid.parts > 1 { grid.blocks as usize } else { 0 })]);
    arguments.extend(results.map(|block| Data(Some((block, 0)), n, wide(dtype)).argument(name)));
    // SAFETY: these are the kernel's arguments, and every block was compared with what it reads and writes.
    unsafe { device.launch(kernel, grid, &mut arguments) }
}

/// Channels of `[batch, channels, inner]`; the activation is 0 for none, 1 relu, 2 relu6, 3 hardswish.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Channels {
    pub batch: usize,
    pub channels: usize,
    pub inner: usize,
    pub epsilon: f64,
    pub activation: u8,
    /// The channels of a place lie side by side: `[batch, inner, channels]` in memory.
    pub last: bool,
}

/// How threads share channels that lie side by side: packs of elements across, rows of threads down.
struct Side {
    pack: usize,
    across: usize,
    grid: Grid,
}

impl Channels {
    fn total(self) -> usize {
        self.batch * self.channels * self.inner
    }

    /// A thread for each pack of elements.
    fn packs(self, device: &Device, dtype: DType) -> Grid {
        let most = 16 / dtype.size();
        Grid::of(self.total().div_ceil(if self.inner.is_multiple_of(most) { most } else { 1 }), device)
    }

    /// The places of all images.
    fn places(self) -> usize {
        self.batch * self.inner
    }

    /// Threads for channels that lie side by side, each of which takes at least `each` places, in about so many blocks for each
    /// multiprocessor.
    fn side(self, device: &Device, dtype: DType, data: &[At<'_>], each: usize, blocks_each: usize) -> Side {
        let most = 16 / dtype.size();
        let aligned = |(block, offset): &At<'_>| (block.address() + (offset * dtype.size()) as u64).is_multiple_of(16);
        let pack = if self.channels.is_multiple_of(most) && data.iter().all(aligned) { most } else { 1 };
        let packs = self.channels / pack;
        // Lines of 128 bytes are read whole.
        let across = packs.next_power_of_two().min(if pack == 1 { 32 } else { 8 });
        let blocks = packs.div_ceil(across);
        let room = device.info().multiprocessors.max(1) as usize * blocks_each;
        let parts = (room / blocks).min(self.places() / (SIDE / across * each)).clamp(1, 65535);
        Side { pack, across, grid: Grid { blocks: blocks as u32, parts: parts as u32, threads: SIDE as u32 } }
    }

    /// The first arguments of a kernel for channels that lie side by side.
    fn side_shape(self, side: &Side) -> Vec<Argument> {
        ints([self.places(), self.channels, side.across])
    }

    /// Blocks for each channel, and a row of them for each part.
    fn grid(self, device: &Device) -> Grid {
        let room = device.info().multiprocessors.max(1) as usize * 8;
        let parts = (room / self.channels.max(1)).min(self.batch * self.inner / 2048).clamp(1, PARTS);
        Grid { blocks: self.channels as u32, parts: parts as u32, threads: 256 }
    }

    /// The instance of a kernel that reads as many elements at a time as lie in a plane without a rest.
    fn instance(self, name: &str, dtype: DType, data: &[At<'_>]) -> String {
        let most = 16 / dtype.size();
        let aligned = |(block, offset): &At<'_>| (block.address() + (offset * dtype.size()) as u64).is_multiple_of(16);
        let whole = self.inner.is_multiple_of(most) && data.iter().all(aligned);
        format!("{name}<{}, {}>", spelt(dtype), if whole { most } else { 1 })
    }

    fn shape(self) -> Vec<Argument> {
        ints([self.batch, self.channels, self.inner])
    }

    fn settings(self) -> [Argument; 2] {
        [Argument::Float(self.epsilon), Argument::Int(self.activation as i64)]
    }

    /// Each channel's mean and biased variance.
    pub fn moments(self, device: &'static Device, dtype: DType, x: At<'_>, [mean, var]: [&Block; 2]) -> Result<()> {
        let c = self.channels;
        if c == 0 {
            return Ok(());
        }
        let side = self.last.then(|| self.side(device, dtype, &[x], 8, 2));
        let grid = side.as_ref().map_or_else(|| self.grid(device), |s| s.grid);
        let parts = grid.parts as usize;
        let sums = device.alloc(2 * parts * c * 8)?;
        let data = [Data(Some(x), self.total(), dtype)];
        let (name, head) = match &side {
            Some(s) => (format!("side_sums<{}, {}>", spelt(dtype), s.pack), self.side_shape(s)),
            None => (self.instance("channel_sums", dtype, &[x]), self.shape()),
        };
        start_joining(device, &name, dtype, grid, head, &data, (&sums, c), [mean, var])
    }

    /// Normalises by statistics, scales, shifts and activates.
    pub fn apply(
        self,
        device: &Device,
        dtype: DType,
        x: At<'_>,
        [mean, var]: [At<'_>; 2],
        [weight, bias]: [Option<At<'_>>; 2],
        y: &Block,
    ) -> Result<()> {
        let (total, c, w) = (self.total(), self.channels, wide(dtype));
        if total == 0 {
            return Ok(());
        }
        let side = self.last.then(|| self.side(device, dtype, &[x, (y, 0)], 4, 16));
        let (name, grid, mut head) = match &side {
            Some(s) => (format!("side_apply<{}, {}>", spelt(dtype), s.pack), s.grid, self.side_shape(s)),
            None => {
                let name = self.instance("channel_apply", dtype, &[x, (y, 0)]);
                (name, self.packs(device, dtype), ints([total, c, self.inner]))
            }
        };
        head.extend(self.settings());
        let data = [
            Data(Some(x), total, dtype),
            Data(Some(mean), c, w),
            Data(Some(var), c, w),
            Data(weight, c, w),
            Data(bias, c, w),
            Data(Some((y, 0)), total, dtype),
        ];
        start(device, &name, grid, head, &data)
    }

    /// The gradients of x, weight and bias.
    pub fn backward(
        self,
        device: &'static Device,
        dtype: DType,
        [x, g]: [At<'_>; 2],
        [mean, var]: [At<'_>; 2],
        [weight, bias]: [Option<At<'_>>; 2],
        [dx, dw, db]: [&Block; 3],
    ) -> Result<()> {
        let (total, c, w) = (self.total(), self.channels, wide(dtype));
        if c == 0 {
            return Ok(());
        }
        let side = self.last.then(|| self.side(device, dtype, &[x, g], 8, 2));
        let grid = side.as_ref().map_or_else(|| self.grid(device), |s| s.grid);
        let parts = grid.parts as usize;
        let sums = device.alloc(2 * parts * c * 8)?;
        let (name, mut head) = match &side {
            Some(s) => (format!("side_back_sums<{}, {}>", spelt(dtype), s.pack), self.side_shape(s)),
            None => (self.instance("channel_back_sums", dtype, &[x, g]), self.shape()),
        };
        head.extend(self.settings());
        let given = || {
            vec![
                Data(Some(x), total, dtype),
                Data(Some(g), total, dtype),
                Data(Some(mean), c, w),
                Data(Some(var), c, w),
                Data(weight, c, w),
                Data(bias, c, w),
            ]
        };
        start_joining(device, &name, dtype, grid, head, &given(), (&sums, c), [dw, db])?;
        if total == 0 {
            return Ok(());
        }
        let side = self.last.then(|| self.side(device, dtype, &[x, g, (dx, 0)], 4, 16));
        let (name, grid, mut head) = match &side {
            Some(s) => (format!("side_back<{}, {}>", spelt(dtype), s.pack), s.grid, self.side_shape(s)),
            None => {
                let name = self.instance("channel_back", dtype, &[x, g, (dx, 0)]);
                (name, self.packs(device, dtype), ints([total, c, self.inner]))
            }
        };
        head.push(Argument::Float(self.places() as f64));
        head.extend(self.settings());
        let mut data = given();
        data.extend([Data(Some((dw, 0)), c, w), Data(Some((db, 0)), c, w), Data(Some((dx, 0)), total, dtype)]);
        start(device, &name, grid, head, &data)
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTERS, RowNorm};

    #[test]
    fn columns_are_cut_into_parts_where_there_are_counters() {
        for (rows, n, parts) in
            [(64, 100, 1), (65, 100, 2), (1 << 20, 100, 64), (65, 1 << 21, 2), (65, (1 << 21) + 1, 1)]
        {
            let grid = RowNorm { rows, n, rms: false }.columns();
            assert_eq!(grid.parts, parts, "{rows} rows of {n}");
            assert!(grid.parts == 1 || grid.blocks as usize <= COUNTERS);
        }
    }
}
