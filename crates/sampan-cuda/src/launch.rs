//! Starting kernels.

use crate::compile::Kernel;
use crate::device::Device;
use crate::driver::{Attribute, Launch};
use crate::fault::Result;
use crate::memory::Block;
use std::ffi::c_void;

/// Threads of a block.
const THREADS: u32 = 256;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// An address on the device.
    Address(u64),
    /// A number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A number of two parts.
    Complex([f64; 2]),
    /// A struct, by value, as its 64-bit words.
    Words(Vec<i64>),
}

impl From<&Block> for Argument {
    fn from(block: &Block) -> Argument {
        Argument::Address(block.address())
    }
}

impl Argument {
    /// Where its value lies, for the driver to copy from.
    fn place(&mut self) -> *mut c_void {
        match self {
            Argument::Address(v) => (v as *mut u64).cast(),
            Argument::Int(v) => (v as *mut i64).cast(),
            Argument::Float(v) => (v as *mut f64).cast(),
            Argument::Complex(v) => v.as_mut_ptr().cast(),
            Argument::Words(v) => v.as_mut_ptr().cast(),
        }
    }
}

/// How many threads run, and in which blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Blocks.
    pub blocks: u32,
    /// Rows of blocks.
    pub parts: u32,
    /// Threads of each.
    pub threads: u32,
}

impl Grid {
    /// A thread for each of `n` items; fewer for very many, when each takes several.
    pub fn of(n: usize, device: &Device) -> Grid {
        Grid::blocks(n.div_ceil(THREADS as usize), device, THREADS as usize)
    }

    /// So many blocks; fewer for very many, when each takes the work of several.
    pub fn blocks(n: usize, device: &Device, threads: usize) -> Grid {
        let most = device.info().multiprocessors.max(1) as usize * 32;
        Grid { blocks: n.clamp(1, most) as u32, parts: 1, threads: threads as u32 }
    }
}

impl Device {
    /// Starts a kernel after everything that was begun before.
    ///
    /// # Safety
    /// The arguments are what the kernel takes, and the memory they name is as long as it reads and writes.
    pub unsafe fn launch(&self, kernel: Kernel, grid: Grid, arguments: &mut [Argument]) -> Result<()> {
        self.enter()?;
        self.alarm.look()?;
        let mut places: Vec<*mut c_void> = arguments.iter_mut().map(Argument::place).collect();
        let launch = Launch {
            grid: [grid.blocks, grid.parts, 1],
            block: [grid.threads, 1, 1],
            shared: 0,
            stream: self.stream,
            attributes: &Attribute::WAITS_BY_ITSELF,
            count: self.overlaps as u32,
        };
        // SAFETY: the caller answers for the arguments; the driver copies them before it returns. All kernels wait by themselves.
        let status =
            unsafe { (self.driver.launch)(&launch, kernel.function(), places.as_mut_ptr(), std::ptr::null_mut()) };
        self.driver.check("cuLaunchKernelEx", status)
    }
}

#[cfg(test)]
mod tests {
    /// A launch lets a kernel come while the one before it runs; one that did not wait would read what is not there yet.
    #[test]
    fn every_kernel_waits_for_what_came_before_it() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels");
        let mut kernels = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for kernel in text.split("__global__").skip(1) {
                let (head, body) = kernel.split_once('{').unwrap();
                assert!(body.trim_start().starts_with("begin();"), "{}:{head}", path.display());
                kernels += 1;
            }
        }
        assert!(kernels >= 60, "{kernels} kernels were found");
        use sampan_formula::{DType, Formula, text};
        let formula = Formula::write(1, 0, &|x, _| x[0]);
        let map = text::kernel(&formula, "map", DType::Float32, &[DType::Float32], DType::Float32);
        let step = crate::optim::written(&[formula], DType::Float32, DType::Float32, false);
        for text in [map, step] {
            let (_, kernel) = text.split_once("__global__").unwrap();
            assert!(kernel.contains(") {\n    begin();\n"), "{text}");
        }
    }
}
