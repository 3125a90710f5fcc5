//! Many elements to one.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::{spelt, wide};
use crate::view::View;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/reduce.cu");
/// Threads of a block, as the text has them.
const THREADS: usize = 256;

/// What becomes of the elements that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their sum divided by their number.
    Mean,
    /// Their product.
    Prod,
    /// The largest, or NaN.
    Max,
    /// The smallest, or NaN.
    Min,
    /// Is one of them not zero?
    Any,
    /// Is none of them zero?
    All,
    /// How many are not zero.
    Count,
    /// `(Σ |x|^p)^(1/p)`; how many are not zero for 0.
    Norm(f64),
    /// The sum of their squares.
    Squares,
    /// The sum of their squares divided by a number.
    SquaresOver(f64),
    /// The root of that.
    RootOver(f64),
}

impl Reduction {
    /// How results are joined, what is done to an element first and to a result last, and with which numbers.
    fn steps(self, count: usize) -> (&'static str, &'static str, &'static str, f64, f64) {
        match self {
            Reduction::Sum => ("to_sum", "as_it_is", "unchanged", 0.0, 0.0),
            Reduction::Mean => ("to_sum", "as_it_is", "divided", 0.0, count as f64),
            Reduction::Prod => ("to_prod", "as_it_is", "unchanged", 0.0, 0.0),
            Reduction::Max => ("to_max", "as_it_is", "unchanged", 0.0, 0.0),
            Reduction::Min => ("to_min", "as_it_is", "unchanged", 0.0, 0.0),
            Reduction::Any => ("to_any", "not_zero", "unchanged", 0.0, 0.0),
            Reduction::All => ("to_all", "not_zero", "unchanged", 0.0, 0.0),
            Reduction::Count | Reduction::Norm(0.0) => ("to_sum", "not_zero", "unchanged", 0.0, 0.0),
            Reduction::Norm(1.0) => ("to_sum", "magnitude", "unchanged", 0.0, 0.0),
            Reduction::Norm(2.0) => ("to_sum", "square", "rooted", 0.0, 2.0),
            Reduction::Norm(p) => ("to_sum", "power", "rooted", p, p),
            Reduction::Squares => ("to_sum", "square", "unchanged", 0.0, 0.0),
            Reduction::SquaresOver(n) => ("to_sum", "square", "divided", 0.0, n),
            Reduction::RootOver(n) => ("to_sum", "square", "divided_rooted", 0.0, n),
        }
    }

    /// The type that results are joined in: wider than the elements where errors would add up.
    fn accumulator(self, from: DType, to: DType) -> &'static str {
        match self {
            Reduction::Max | Reduction::Min => wide(from),
            Reduction::Any | Reduction::All | Reduction::Count => "i64",
            _ if from.is_float() || to.is_float() => "double",
            _ => "i64",
        }
    }
}

/// Reduces the flagged axes of `x` into `y`, whose elements are of the type `to`, in row-major order. False, with nothing
/// done, where there are too many axes.
pub fn reduce(
    device: &'static Device,
    kind: Reduction,
    x: View<'_>,
    mask: &[bool],
    y: &Block,
    to: DType,
) -> Result<bool> {
    let extents = |reduced: bool| x.shape.iter().zip(mask).filter(move |&(_, &m)| m == reduced).map(|(&n, _)| n);
    let (results, count) = (extents(false).product::<usize>(), extents(true).product::<usize>());
    if results == 0 {
        return Ok(true);
    }
    x.check();
    assert!(results * to.size() <= y.len(), "the result has room for all elements");
    let (Some(kept), Some(reduced)) = (x.axes(|a| !mask[a]), x.axes(|a| mask[a])) else { return Ok(false) };
    let (join, first, last, p, q) = kind.steps(count);
    let accumulator = kind.accumulator(x.dtype, to);
    // Threads that share a result read what lies side by side.
    let along = reduced.are_dense() || !kept.are_dense();
    let lanes = count.div_ceil(4).next_power_of_two().clamp(1, if along { THREADS } else { 16 });
    let each = THREADS / lanes;
    let blocks = results.div_ceil(each);
    // Few results of many elements are made of parts, so that the whole device works.
    let room = device.info().multiprocessors.max(1) as usize * 4;
    let parts = if blocks < room { (room / blocks).min(count / (lanes * 8)).clamp(1, 512) } else { 1 };
    let name = format!("reduce<{}, {accumulator}, {}, {join}, {first}, {last}>", spelt(x.dtype), spelt(to));
    let kernel = device.template(TEXT, &name)?;
    let grid = Grid { parts: parts as u32, ..Grid::blocks(blocks, device, THREADS) };
    let partial = device.alloc(if parts > 1 { parts * results * 8 } else { 0 })?;
    let counters = device.counters(if parts > 1 { grid.blocks as usize } else { 0 });
    let mut arguments: Vec<Argument> = [results, count].map(|n| Argument::Int(n as i64)).into();
    arguments.extend([kept.into(), reduced.into()]);
    arguments.extend([lanes as i64, along as i64].map(Argument::Int));
    arguments.extend([Argument::Float(p), Argument::Float(q)]);
    arguments.extend([Argument::Address(x.address()), y.into(), (&partial).into(), counters]);
    // SAFETY: these are the arguments of `reduce`; the view was found inside its block, `y` has room for the results, and each of
    // the parts has a row of the block that was made for them.
    unsafe { device.launch(kernel, grid, &mut arguments)? };
    Ok(true)
}

/// The place of the largest (or smallest) element along the flagged axes, as int64. False where there are too many axes.
pub fn arg_extreme(device: &Device, largest: bool, x: View<'_>, mask: &[bool], y: &Block) -> Result<bool> {
    let extents = |reduced: bool| x.shape.iter().zip(mask).filter(move |&(_, &m)| m == reduced).map(|(&n, _)| n);
    let (results, count) = (extents(false).product::<usize>(), extents(true).product::<usize>());
    if results == 0 {
        return Ok(true);
    }
    x.check();
    assert!(results * 8 <= y.len(), "the result has room for all elements");
    let (Some(kept), Some(reduced)) = (x.axes(|a| !mask[a]), x.axes(|a| mask[a])) else { return Ok(false) };
    let sign = if largest { 1 } else { -1 };
    let kernel = device.template(TEXT, &format!("arg_extreme<{}, {sign}>", spelt(x.dtype)))?;
    let mut arguments: Vec<Argument> = [results, count].map(|n| Argument::Int(n as i64)).into();
    arguments.extend([kept.into(), reduced.into(), Argument::Address(x.address()), y.into()]);
    // SAFETY: these are the arguments of `arg_extreme`; the view was found inside its block, `y` has room for the results.
    unsafe { device.launch(kernel, Grid::blocks(results, device, THREADS), &mut arguments)? };
    Ok(true)
}

/// Running sums (or products) along lines `[outer, n, inner]` of contiguous elements.
pub fn running(
    device: &Device,
    product: bool,
    dtype: DType,
    lines: [usize; 3],
    x: (&Block, usize),
    y: &Block,
) -> Result<()> {
    let [outer, n, inner] = lines;
    let total = outer * n * inner;
    if total == 0 {
        return Ok(());
    }
    let (block, offset) = x;
    let size = dtype.size();
    assert!((offset + total) * size <= block.len() && total * size <= y.len(), "lines of these extents");
    let accumulator = if dtype.is_float() { "double" } else { "i64" };
    let join = if product { "to_prod" } else { "to_sum" };
    let kernel = device.template(TEXT, &format!("running<{}, {accumulator}, {join}>", spelt(dtype)))?;
    let mut arguments: Vec<Argument> = [outer * inner, n, inner].map(|n| Argument::Int(n as i64)).into();
    arguments.extend([Argument::Address(block.address() + (offset * size) as u64), y.into()]);
    // SAFETY: these are the kernel's arguments, and both blocks were found long enough.
    unsafe { device.launch(kernel, Grid::blocks(outer * inner, device, THREADS), &mut arguments) }
}
