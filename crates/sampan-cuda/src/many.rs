//! Many arrays in few kernels, whatever their number: norms of gradients, and scales taken off them.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/many.cu");
/// Arrays that one kernel takes, and elements of a chunk, as the text has them.
const MOST: usize = 48;
const CHUNK: usize = 4096;

/// Elements that lie side by side.
#[derive(Clone, Copy)]
pub struct Array<'a> {
    /// The memory.
    pub block: &'a Block,
    /// The first element.
    pub offset: usize,
    /// How many elements.
    pub len: usize,
}

/// The text's struct: of each array where its chunks (or sums) begin, its length and its address.
fn arrays(each: impl ExactSizeIterator<Item = (i64, i64, u64)> + Clone) -> Argument {
    let mut words = vec![each.len() as i64];
    let rest = MOST - each.len();
    words.extend(each.clone().map(|e| e.0).chain(std::iter::repeat_n(i64::MAX, rest)));
    words.extend(each.clone().map(|e| e.1).chain(std::iter::repeat_n(0, rest)));
    words.extend(each.map(|e| e.2 as i64).chain(std::iter::repeat_n(0, rest)));
    Argument::Words(words)
}

/// Calls `go` for each group of arrays with the struct, the number of its chunks and of those before.
fn in_groups(arrays_: &[Array], size: usize, mut go: impl FnMut(Argument, usize, usize) -> Result<()>) -> Result<()> {
    let mut before = 0;
    for group in arrays_.chunks(MOST) {
        let mut chunks = 0;
        let mut each = Vec::with_capacity(group.len());
        for a in group {
            assert!((a.offset + a.len) * size <= a.block.len(), "an array lies inside its block");
            each.push((chunks as i64, a.len as i64, a.block.address() + (a.offset * size) as u64));
            chunks += a.len.div_ceil(CHUNK);
        }
        if chunks > 0 {
            go(arrays(each.into_iter()), chunks, before)?;
        }
        before += chunks;
    }
    Ok(())
}

/// By what arrays of floats are to be multiplied so that their norm is at most `limit`: all together, which is one float64
/// number, or each for itself, one each.
pub fn clip_factors(
    device: &'static Device,
    dtype: DType,
    arrays_: &[Array],
    limit: f64,
    together: bool,
    y: &Block,
) -> Result<()> {
    let chunks: Vec<usize> = arrays_.iter().map(|a| a.len.div_ceil(CHUNK)).collect();
    let all: usize = chunks.iter().sum();
    let results = if together { 1 } else { arrays_.len() };
    assert!(results * 8 <= y.len(), "a place for each factor");
    let sums = device.alloc(all.max(1) * 8)?;
    let squares = device.template(TEXT, &format!("squares<{}>", spelt(dtype)))?;
    in_groups(arrays_, dtype.size(), |group, chunks, before| {
        let to = Argument::Address(sums.address() + before as u64 * 8);
        let grid = Grid { blocks: chunks as u32, parts: 1, threads: 256 };
        // SAFETY: these are the arguments of the kernel; the arrays lie inside their blocks, and there is a sum for each chunk.
        unsafe { device.launch(squares, grid, &mut [group, to]) }
    })?;
    let factors = device.template(TEXT, "factors")?;
    let ranges: Vec<(i64, i64, u64)> = match together {
        true => vec![(0, all as i64, 0)],
        false => chunks
            .iter()
            .scan(0, |first, &n| {
                *first += n as i64;
                Some((*first - n as i64, n as i64, 0))
            })
            .collect(),
    };
    for (i, group) in ranges.chunks(MOST).enumerate() {
        let to = Argument::Address(y.address() + (i * MOST) as u64 * 8);
        let grid = Grid { blocks: group.len() as u32, parts: 1, threads: 256 };
        let mut given = [arrays(group.iter().copied()), Argument::Float(limit), (&sums).into(), to];
        // SAFETY: these are the arguments of the kernel; its ranges lie among the sums, and there is room for each result.
        unsafe { device.launch(factors, grid, &mut given)? };
    }
    Ok(())
}

/// Divides arrays of floats by a float32 number on the device; where one is then not finite, the word at `found` becomes 1.
pub fn unscale(device: &'static Device, dtype: DType, arrays_: &[Array], scale: &Block, found: u64) -> Result<()> {
    assert!(scale.len() >= 4, "the scale is a float32 number");
    let kernel = device.template(TEXT, &format!("unscale<{}>", spelt(dtype)))?;
    in_groups(arrays_, dtype.size(), |group, chunks, _| {
        let grid = Grid { blocks: chunks as u32, parts: 1, threads: 256 };
        let mut given = [group, scale.into(), Argument::Address(found)];
        // SAFETY: these are the arguments of the kernel; the arrays lie inside their blocks.
        unsafe { device.launch(kernel, grid, &mut given) }
    })
}
