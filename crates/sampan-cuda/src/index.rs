//! Rows and elements by their numbers. A number outside its limit is told by the next call that waits for the device.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::spelt;
use crate::view::View;
use sampan_formula::DType;

const TEXT: &str = include_str!("kernels/index.cu");

/// A block and the number of its first element.
pub type At<'a> = (&'a Block, usize);

/// An axis of contiguous data: what lies before it, its extent, what lies after it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Axis {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

/// What is said of a number: by which op, whether negative ones count from the end, and which one stands for nothing.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Rule {
    pub op: &'static str,
    pub wrap: bool,
    pub skip: Option<i64>,
}

impl Rule {
    fn skipped(&self) -> i64 {
        self.skip.unwrap_or(i64::MIN)
    }
}

/// Checks the length of data and gives its address.
fn data((block, offset): At<'_>, size: usize, n: usize) -> Argument {
    assert!((offset + n) * size <= block.len(), "{n} elements from {offset} of {block:?}");
    Argument::Address(block.address() + (offset * size) as u64)
}

fn ints<const N: usize>(numbers: [usize; N]) -> [Argument; N] {
    numbers.map(|n| Argument::Int(n as i64))
}

/// `y[o, j, i] = x[o, index[j], i]`.
pub fn rows(
    device: &Device,
    rule: Rule,
    dtype: DType,
    axis: Axis,
    index: (At<'_>, usize),
    x: At<'_>,
    y: &Block,
) -> Result<()> {
    let (index, k) = index;
    let Axis { outer, n, inner } = axis;
    let total = outer * k * inner;
    if total == 0 {
        return Ok(());
    }
    let kernel = device.template(TEXT, &format!("pick_rows<{}>", spelt(dtype)))?;
    let mut arguments: Vec<Argument> = ints([total, n, k, inner]).into();
    arguments.extend([Argument::Int(rule.wrap as i64), Argument::Int(rule.skipped())]);
    arguments.extend(device.alarm(rule.op));
    arguments.extend([data(index, 8, k), data(x, dtype.size(), outer * n * inner), data((y, 0), dtype.size(), total)]);
    // SAFETY: these are the kernel's arguments, and `data` compared every block with the extents.
    unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments) }
}

/// `y[e] = x[…, index[e], …]` along one axis; `x` is seen with the shape of the index and a step of zero along that axis.
pub fn along(
    device: &Device,
    rule: Rule,
    x: View<'_>,
    n: usize,
    step: usize,
    index: At<'_>,
    y: &Block,
) -> Result<bool> {
    let total = x.numel();
    if total == 0 {
        return Ok(true);
    }
    x.check();
    let Some(rest) = x.axes(|_| true) else { return Ok(false) };
    let size = x.dtype.size();
    assert!(x.offset + n.saturating_sub(1) * step < x.block.len() / size, "the axis lies inside the block");
    let kernel = device.template(TEXT, &format!("pick_along<{}>", spelt(x.dtype)))?;
    let mut arguments: Vec<Argument> = ints([total, n, step]).into();
    arguments.push(rest.into());
    arguments.extend(device.alarm(rule.op));
    arguments.extend([data(index, 8, total), Argument::Address(x.address()), data((y, 0), size, total)]);
    // SAFETY: these are the kernel's arguments; what the view and the axis reach was found inside the block.
    unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments)? };
    Ok(true)
}

/// Where each element of an index goes in contiguous memory: `rest` is the target seen with the shape of the index and a step of
/// zero along the axis.
pub fn places(
    device: &'static Device,
    rule: Rule,
    rest: View<'_>,
    n: usize,
    step: usize,
    index: At<'_>,
) -> Result<Option<Block>> {
    let total = rest.numel();
    let Some(axes) = rest.axes(|_| true) else { return Ok(None) };
    let y = device.alloc(total * 8)?;
    if total > 0 {
        let kernel = device.template(TEXT, "places_along")?;
        let mut arguments: Vec<Argument> = ints([total, n, step]).into();
        arguments.push(axes.into());
        arguments.extend(device.alarm(rule.op));
        arguments.extend([data(index, 8, total), (&y).into()]);
        // SAFETY: these are the kernel's arguments, and `data` compared every block with the extents.
        unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments)? };
    }
    Ok(Some(y))
}

/// Numbers checked and made positive.
pub fn checked(device: &Device, rule: Rule, n: usize, index: (At<'_>, usize), y: &Block) -> Result<()> {
    let (index, k) = index;
    if k == 0 {
        return Ok(());
    }
    let kernel = device.template(TEXT, "checked")?;
    let mut arguments: Vec<Argument> = ints([k, n]).into();
    arguments.extend([Argument::Int(rule.wrap as i64), Argument::Int(rule.skipped())]);
    arguments.extend(device.alarm(rule.op));
    arguments.extend([data(index, 8, k), data((y, 0), 8, k)]);
    // SAFETY: these are the kernel's arguments, and `data` compared both blocks with the extent.
    unsafe { device.launch(kernel, Grid::of(k, device), &mut arguments) }
}

/// `y[o, index[j], i] += alpha * x[o, j, i]`, the terms of each sum in the order of `j`.
pub fn add_rows(
    device: &'static Device,
    rule: Rule,
    dtype: DType,
    axis: Axis,
    alpha: f64,
    index: (At<'_>, usize),
    x: At<'_>,
    y: &Block,
) -> Result<()> {
    let (index, k) = index;
    let Axis { outer, n, inner } = axis;
    let total = outer * n * inner;
    if total == 0 || k == 0 {
        return Ok(());
    }
    assert!(k <= u32::MAX as usize, "positions are of 32 bits");
    let numbers = device.alloc(k * 8)?;
    let (counts, used, starts, order) =
        (device.alloc(n * 4)?, device.alloc(n * 4)?, device.alloc((n + 1) * 4)?, device.alloc(k * 4)?);
    device.zero(&counts)?;
    device.zero(&used)?;
    let (by_position, by_row) = (Grid::of(k, device), Grid::of(n, device));
    let one_block = Grid { blocks: 1, parts: 1, threads: 1024 };
    let mut check: Vec<Argument> = ints([k, n]).into();
    check.extend([Argument::Int(rule.wrap as i64), Argument::Int(rule.skipped())]);
    check.extend(device.alarm(rule.op));
    check.extend([data(index, 8, k), (&numbers).into()]);
    let count = ints([k]).into_iter().chain([&numbers, &counts].map(Argument::from)).collect();
    let begin = ints([n]).into_iter().chain([&counts, &starts].map(Argument::from)).collect();
    let place = ints([k]).into_iter().chain([&numbers, &starts, &used, &order].map(Argument::from)).collect();
    let sort = ints([n]).into_iter().chain([&starts, &order].map(Argument::from)).collect();
    let mut add: Vec<Argument> = ints([total, n, k, inner]).into();
    add.push(Argument::Float(alpha));
    add.extend([&starts, &order].map(Argument::from));
    add.extend([data(x, dtype.size(), outer * k * inner), data((y, 0), dtype.size(), total)]);
    let sums = format!("add_rows<{}>", spelt(dtype));
    let steps: [(&str, Grid, Vec<Argument>); 6] = [
        ("checked", by_position, check),
        ("count_rows", by_position, count),
        ("run_starts", one_block, begin),
        ("place_positions", by_position, place),
        ("sort_positions", by_row, sort),
        (&sums, Grid::of(total, device), add),
    ];
    for (name, grid, mut arguments) in steps {
        let kernel = device.template(TEXT, name)?;
        // SAFETY: these are the arguments of the kernel of that name; the blocks were made for `n` rows and `k` positions, and
        // `data` compared the others with the extents.
        unsafe { device.launch(kernel, grid, &mut arguments)? };
    }
    Ok(())
}

/// One at the label of each row of `classes`, zero elsewhere.
pub fn one_hot(
    device: &Device,
    op: &'static str,
    dtype: DType,
    labels: (At<'_>, usize),
    classes: usize,
    y: &Block,
) -> Result<()> {
    let (labels, rows) = labels;
    let total = rows * classes;
    if total == 0 {
        return Ok(());
    }
    let kernel = device.template(TEXT, &format!("one_hot<{}>", spelt(dtype)))?;
    let mut arguments: Vec<Argument> = ints([total, classes]).into();
    arguments.extend(device.alarm(op));
    arguments.extend([data(labels, 8, rows), data((y, 0), dtype.size(), total)]);
    // SAFETY: these are the kernel's arguments, and `data` compared every block with the extents.
    unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments) }
}

/// `first + i * step` for `n` elements, in 64 bits: whole numbers for integers, else doubles.
pub fn count_up(device: &Device, dtype: DType, n: usize, first: (i64, f64), step: (i64, f64), y: &Block) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let float = dtype.is_float();
    let kernel =
        device.template(TEXT, &format!("count_up<{}, {}>", spelt(dtype), if float { "double" } else { "i64" }))?;
    let number = |(whole, real): (i64, f64)| if float { Argument::Float(real) } else { Argument::Int(whole) };
    let mut arguments = vec![Argument::Int(n as i64), number(first), number(step), data((y, 0), dtype.size(), n)];
    // SAFETY: these are the kernel's arguments, and `data` compared the block with the extent.
    unsafe { device.launch(kernel, Grid::of(n, device), &mut arguments) }
}

/// What lies on or below (above) a diagonal of stacked matrices, and zeros elsewhere.
pub fn triangle(
    device: &Device,
    dtype: DType,
    [count, rows, columns]: [usize; 3],
    diagonal: i64,
    lower: bool,
    x: At<'_>,
    y: &Block,
) -> Result<()> {
    let total = count * rows * columns;
    if total == 0 {
        return Ok(());
    }
    let kernel = device.template(TEXT, &format!("triangle<{}>", spelt(dtype)))?;
    let mut arguments: Vec<Argument> = ints([total, rows, columns]).into();
    arguments.extend([Argument::Int(diagonal), Argument::Int(lower as i64)]);
    arguments.extend([data(x, dtype.size(), total), data((y, 0), dtype.size(), total)]);
    // SAFETY: these are the kernel's arguments, and `data` compared both blocks with the extents.
    unsafe { device.launch(kernel, Grid::of(total, device), &mut arguments) }
}

/// `n` numbers from `first` to `last`, both included, evenly spaced, or `base` to the power of them.
pub fn spaced(device: &Device, dtype: DType, n: usize, ends: (f64, f64), base: Option<f64>, y: &Block) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let (first, last) = ends;
    let step = if n > 1 { (last - first) / (n - 1) as f64 } else { 0.0 };
    let kernel = device.template(TEXT, &format!("spaced<{}>", spelt(dtype)))?;
    let mut arguments: Vec<Argument> = ints([n]).into();
    arguments.extend([first, last, step].map(Argument::Float));
    arguments.extend([Argument::Int(base.is_some() as i64), Argument::Float(base.unwrap_or(0.0))]);
    arguments.push(data((y, 0), dtype.size(), n));
    // SAFETY: these are the kernel's arguments, and `data` compared the block with the extent.
    unsafe { device.launch(kernel, Grid::of(n, device), &mut arguments) }
}
