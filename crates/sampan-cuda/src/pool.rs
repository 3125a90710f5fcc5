//! Pooling over planes of up to three axes.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/pool.cu");

/// Planes and the windows over them, which lie on the device; see `pool.cu` for the table.
pub struct Pool<'a> {
    /// Batch times channels.
    pub planes: usize,
    /// Extents of a plane of the input.
    pub input: [usize; 3],
    /// Extents of a plane of the output.
    pub output: [usize; 3],
    /// The windows.
    pub table: &'a Block,
    /// The longest side of a window.
    pub window: usize,
}

/// What an average divides by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Over {
    /// The elements inside the input.
    Inside,
    /// The elements of the window with padding.
    Window,
    /// A number.
    Fixed(f64),
}

/// A block and the number of its first element.
pub type At<'a> = (&'a Block, usize);

impl Pool<'_> {
    fn counts(&self) -> (usize, usize) {
        let volume = |n: [usize; 3]| n.iter().product::<usize>();
        (self.planes * volume(self.input), self.planes * volume(self.output))
    }

    fn head(&self, total: usize) -> Vec<Argument> {
        let axes: usize = (0..3).map(|a| 3 * self.output[a] + 2 * self.input[a]).sum();
        assert!(self.table.len() >= 4 * axes, "a table for these extents");
        let extents = self.input.iter().chain(&self.output).map(|&n| n as i64).collect();
        vec![Argument::Int(total as i64), Argument::Words(extents), self.table.into()]
    }

    /// Checks the length of the data and gives its address.
    fn data(at: At<'_>, dtype: DType, n: usize) -> Argument {
        let (block, offset) = at;
        assert!((offset + n) * dtype.size() <= block.len(), "data of the pool's extents");
        Argument::Address(block.address() + (offset * dtype.size()) as u64)
    }

    fn launch(&self, device: &Device, instance: &str, total: usize, mut arguments: Vec<Argument>) -> Result<()> {
        if total == 0 {
            return Ok(());
        }
        let kernel = device.template(TEXT, instance)?;
        // SAFETY: these are the kernel's arguments; `data` and `head` compared every block with the extents.
        unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments) }
    }

    /// Has it small windows over two axes?
    fn is_small(&self) -> bool {
        let planes = self.input[0] == 1 && self.output[0] == 1 && self.input[1] * self.input[2] <= i32::MAX as usize;
        planes && matches!(self.window, 1..=3)
    }

    /// The largest of each small window, or its place as 32 bits.
    fn small(&self, device: &Device, dtype: DType, x: At<'_>, y: Option<&Block>, index: Option<&Block>) -> Result<()> {
        let (input, output) = self.counts();
        let mut arguments = self.head(output);
        arguments.push(Self::data(x, dtype, input));
        let result = |block: Option<&Block>, dtype| match block {
            Some(block) => Self::data((block, 0), dtype, output),
            None => Argument::Address(0),
        };
        arguments.extend([result(y, dtype), result(index, DType::Int32)]);
        let side = self.window.max(2);
        self.launch(device, &format!("max_small<{}, {side}>", spelt(dtype)), output, arguments)
    }

    /// The largest of each window, its place, or both.
    pub fn max(
        &self,
        device: &Device,
        dtype: DType,
        x: At<'_>,
        y: Option<&Block>,
        index: Option<&Block>,
    ) -> Result<()> {
        let (input, output) = self.counts();
        if let (Some(y), None, true) = (y, index, self.is_small()) {
            return self.small(device, dtype, x, Some(y), None);
        }
        let mut arguments = self.head(output);
        arguments.push(Self::data(x, dtype, input));
        let result = |block: Option<&Block>, dtype| match block {
            Some(block) => Self::data((block, 0), dtype, output),
            None => Argument::Address(0),
        };
        arguments.extend([result(y, dtype), result(index, DType::Int64)]);
        self.launch(device, &format!("max_pool<{}>", spelt(dtype)), output, arguments)
    }

    /// Brings each output's gradient to the place of the largest input of its window, which is looked for.
    pub fn max_gradient(&self, device: &'static Device, dtype: DType, x: At<'_>, dy: At<'_>, dx: &Block) -> Result<()> {
        let (input, output) = self.counts();
        let small = self.input[1] * self.input[2] <= i32::MAX as usize;
        if self.input[0] != 1 || self.output[0] != 1 || !small {
            let index = device.alloc(output * 8)?;
            self.max(device, dtype, x, None, Some(&index))?;
            return self.max_back(device, dtype, &index, dy, dx);
        }
        let index = device.alloc(output * 4)?;
        let places = Self::data((&index, 0), DType::Int32, output);
        if self.is_small() {
            self.small(device, dtype, x, None, Some(&index))?;
        } else {
            let mut arguments = self.head(output);
            arguments.extend([Self::data(x, dtype, input), places.clone()]);
            self.launch(device, &format!("max_places<{}>", spelt(dtype)), output, arguments)?;
        }
        let mut arguments = self.head(input);
        arguments.extend([places, Self::data(dy, dtype, output), Self::data((dx, 0), dtype, input)]);
        let fours = self.input[2].is_multiple_of(4);
        let name = if fours { "max_back4" } else { "max_back" };
        self.launch(device, &format!("{name}<{}>", spelt(dtype)), input, arguments)
    }

    /// Brings each output's gradient to the place of its largest input.
    fn max_back(&self, device: &Device, dtype: DType, index: &Block, dy: At<'_>, dx: &Block) -> Result<()> {
        let (input, output) = self.counts();
        let mut arguments = self.head(input);
        arguments.push(Self::data((index, 0), DType::Int64, output));
        arguments.extend([Self::data(dy, dtype, output), Self::data((dx, 0), dtype, input)]);
        self.launch(device, &format!("max_unpool_windows<{}>", spelt(dtype)), input, arguments)
    }

    /// The average of each window, or back: each output's share to all of its window.
    pub fn average(
        &self,
        device: &Device,
        dtype: DType,
        over: Over,
        back: bool,
        from: At<'_>,
        to: &Block,
    ) -> Result<()> {
        let (input, output) = self.counts();
        let (read, written, name) = if back { (output, input, "avg_unpool") } else { (input, output, "avg_pool") };
        let (kind, fixed) = match over {
            Over::Inside => (0, 0.0),
            Over::Window => (1, 0.0),
            Over::Fixed(number) => (2, number),
        };
        let mut arguments = self.head(written);
        arguments.extend([Argument::Int(kind), Argument::Float(fixed)]);
        arguments.extend([Self::data(from, dtype, read), Self::data((to, 0), dtype, written)]);
        self.launch(device, &format!("{name}<{}>", spelt(dtype)), written, arguments)
    }
}
