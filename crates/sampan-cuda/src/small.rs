//! Products of small matrices by a kernel of our own: the library's wait longer for their tiles than they compute.

use crate::blas::{Extents, Matrices};
use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::precision;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/small.cu");
/// The sides of a tile, and the threads that make it, as the text has them.
const TILE: usize = 32;
const THREADS: u32 = 128;

/// Is a product small enough, by what was measured on an H200?
fn is_small(dtype: DType, e: Extents) -> bool {
    let Extents { count, m, n, k } = e;
    let exact = dtype == DType::Float32 && !precision::products_may_round();
    exact && count == 1 && m.min(n) >= 8 && m * n <= 48 << 10 && m * n * k <= 1 << 25
}

/// `y = a · b + bias` for one pair of float32 matrices, `y` row-major and the bias a number for each column; false, with nothing
/// done, if they are not small.
pub fn product(
    device: &'static Device,
    dtype: DType,
    e: Extents,
    [a, b]: [Matrices; 2],
    bias: Option<(&Block, usize)>,
    y: &Block,
) -> Result<bool> {
    let Extents { m, n, k, .. } = e;
    if !is_small(dtype, e) || k == 0 {
        return Ok(false);
    }
    let line = |row: usize, column: usize| (column == 1, if column == 1 { row } else { column });
    let ((a_line, a_step), (b_line, b_step)) = (line(a.row, a.column), line(b.row, b.column));
    if (!a_line && a.row != 1) || (!b_line && b.row != 1) {
        return Ok(false);
    }
    a.check(1, m, k, 4);
    b.check(1, k, n, 4);
    assert!(m * n * 4 <= y.len(), "the result has room for all elements");
    assert!(bias.is_none_or(|(block, offset)| (offset + n) * 4 <= block.len()), "a number for each column");
    let extents = [a_step, b_step, if a_line { k } else { m }, if b_line { n } else { k }];
    let aligned = [a.address(4), b.address(4)].iter().all(|at| at.is_multiple_of(16));
    let vectors = aligned && extents.iter().all(|n| n.is_multiple_of(4));
    let name = format!("small_product<{}, {}, {}>", a_line as u8, b_line as u8, vectors as u8);
    let tiles = m.div_ceil(TILE) * n.div_ceil(TILE);
    let room = device.info().multiprocessors.max(1) as usize * 5 / 4;
    let wanted = (room / tiles).min(k / 48).max(1);
    // A power of two, the largest that is not above it.
    let parts = 1usize << wanted.ilog2();
    let chunk = k.div_ceil(parts).next_multiple_of(TILE);
    let partial = device.alloc(if parts > 1 { tiles * parts * TILE * TILE * 4 } else { 0 })?;
    let kernel = device.template(TEXT, &name)?;
    let operand = |x: &Matrices| Argument::Words(vec![x.address(4) as i64, x.row as i64, x.column as i64]);
    let mut arguments: Vec<Argument> = [m, n, k, parts, chunk].map(|n| Argument::Int(n as i64)).into();
    arguments.extend([operand(&a), operand(&b)]);
    arguments.push(Argument::Address(bias.map_or(0, |(block, offset)| block.address() + offset as u64 * 4)));
    arguments.extend([y.into(), (&partial).into(), device.counters(tiles)]);
    let grid = Grid { blocks: tiles as u32, parts: parts as u32, threads: THREADS };
    // SAFETY: these are the kernel's arguments; every element of the operands was found inside its block, the result and the bias
    // are as long as they must be, and there is a tile for each part.
    unsafe { device.launch(kernel, grid, &mut arguments)? };
    Ok(true)
}
