//! Random numbers, the same bits as on the CPU.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/random.cu");

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Draw<'a> {
    /// In `[low, low + width)`, at most `top`.
    Uniform { low: f64, width: f64, top: f64 },
    /// Normal.
    Normal { mean: f64, deviation: f64 },
    /// 1 where a word of 32 bits is at most `last`; never if that is negative.
    Bernoulli { last: i64 },
    /// 1 with the probability in each element of a block of the same dtype.
    BernoulliBy { probabilities: &'a Block, offset: usize },
    /// Whole numbers from `low`, `range` of them.
    Integers { low: i64, range: u64 },
    /// The logarithm of a uniform number times `scale`.
    Exponential { scale: f64 },
}

/// Where in the stream of a seed the numbers start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// At a place of the stream of a seed.
    At(u64, u64),
    /// At the seed and the place that two words of device memory hold when the work is done.
    Kept(u64),
}

/// Fills `n` elements from a place in the stream of a seed.
pub fn fill(device: &Device, draw: Draw, dtype: DType, n: usize, from: Start, y: &Block) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    assert!(n * dtype.size() <= y.len(), "the block has room for all elements");
    let t = spelt(dtype);
    let double = dtype == DType::Float64;
    let (seed, start, kept) = match from {
        Start::At(seed, start) => (seed as i64, start as i64, 0),
        Start::Kept(address) => (0, 0, address),
    };
    let mut arguments =
        vec![Argument::Int(n as i64), Argument::Int(seed), Argument::Int(start), Argument::Address(kept)];
    let float = Argument::Float;
    let instance = match draw {
        Draw::Uniform { low, width, top } => {
            arguments.extend([float(low), float(width), float(top)]);
            format!("uniform<{t}, {}>", if double { "double" } else { "float" })
        }
        Draw::Normal { mean, deviation } => {
            arguments.extend([float(mean), float(deviation)]);
            if double { "normal64".into() } else { format!("normal32<{t}>") }
        }
        Draw::Bernoulli { last } => {
            arguments.push(Argument::Int(last));
            format!("bernoulli<{t}>")
        }
        Draw::BernoulliBy { probabilities, offset } => {
            assert!((offset + n) * dtype.size() <= probabilities.len(), "a probability for each element");
            arguments.push(Argument::Address(probabilities.address() + (offset * dtype.size()) as u64));
            format!("bernoulli_by<{t}>")
        }
        Draw::Integers { low, range } => {
            arguments.extend([Argument::Int(low), Argument::Int(range as i64)]);
            format!("integers<{t}>")
        }
        Draw::Exponential { scale } => {
            arguments.push(float(scale));
            if double { "exponential64".into() } else { format!("exponential32<{t}>") }
        }
    };
    arguments.push(y.into());
    let kernel = device.template(TEXT, &instance)?;
    // SAFETY: these are the arguments of the kernel, and both blocks are as long as it reads and writes.
    unsafe { device.launch(kernel, Grid::of(n, device), &mut arguments) }
}
