//! Pooling.

use super::{Gpu, Held};
use crate::shape::Layout;
use crate::{Result, Tensor, recording};
use parking_lot::Mutex;
use sampan_cuda::Block;
use sampan_cuda::pool::{Over, Pool};
use sampan_cuda::reduce::Reduction;
use sampan_kernels::pool::{Divisor, PoolShape};
use std::sync::Arc;

/// The windows of a pooling on a device, and the longest side of one.
struct Table {
    block: Arc<Block>,
    longest: usize,
}

/// Tables of windows that were sent to a device, the last ones used; networks use few.
static TABLES: Mutex<Vec<(usize, PoolShape, Arc<Table>)>> = Mutex::new(Vec::new());
/// How many are kept.
const KEPT: usize = 64;

/// The windows of a pooling on a device; see `pool.cu`.
fn table(gpu: &'static Gpu, s: &PoolShape) -> Result<Arc<Table>> {
    let known = |(device, shape, _): &(usize, PoolShape, Arc<Table>)| {
        *device == gpu.ordinal() && (shape.input, shape.output, shape.windows) == (s.input, s.output, s.windows)
    };
    {
        let mut tables = TABLES.lock();
        if let Some(at) = tables.iter().position(known) {
            let entry = tables.remove(at);
            let table = entry.2.clone();
            tables.push(entry);
            // Others may push it out of the list while what is recorded still reads it.
            recording::hold(&table.block);
            return Ok(table);
        }
    }
    let (mut words, mut longest): (Vec<i32>, usize) = (Vec::new(), 0);
    for (axis, windows) in s.axes().iter().enumerate() {
        longest = windows.iter().map(|(w, _)| w.len()).fold(longest, usize::max);
        words.extend(windows.iter().flat_map(|(w, full)| [w.start as i32, w.end as i32, *full as i32]));
        for at in 0..s.input[axis] {
            let holds = |w: &&(std::ops::Range<usize>, usize)| w.0.contains(&at);
            let first = windows.iter().position(|w| holds(&w)).unwrap_or(0);
            let past = windows.iter().rposition(|w| holds(&w)).map_or(first, |last| last + 1);
            words.extend([first as i32, past as i32]);
        }
    }
    // Not under the lock: both wait for whoever records work, who may want a table as well.
    let block = Arc::new(gpu.alloc(words.len() * 4)?);
    gpu.upload(bytemuck::cast_slice(&words), &block)?;
    let table = Arc::new(Table { block, longest });
    // What is made while work is recorded belongs to that work.
    if gpu.records() {
        return Ok(table);
    }
    let mut tables = TABLES.lock();
    if tables.len() == KEPT {
        tables.remove(0);
    }
    tables.push((gpu.ordinal(), *s, table.clone()));
    Ok(table)
}

fn pool<'a>(s: &PoolShape, table: &'a Table) -> Pool<'a> {
    Pool { planes: s.planes, input: s.input, output: s.output, table: &table.block, window: table.longest }
}

/// The largest of each window, its place, or both.
pub(crate) fn max_pool(
    gpu: &'static Gpu,
    s: &PoolShape,
    x: &Tensor,
    out: Option<&Tensor>,
    index: Option<&Tensor>,
) -> Result<bool> {
    let x = x.in_rows()?;
    let (from, table) = (Held::values(&x, gpu)?, table(gpu, s)?);
    let (out, index) = (out.map(Held::to_fill).transpose()?, index.map(Held::to_fill).transpose()?);
    let blocks = (out.as_ref().map(Held::block), index.as_ref().map(Held::block));
    pool(s, &table).max(gpu, x.dtype(), from.start(), blocks.0, blocks.1)?;
    Ok(true)
}

/// Brings each element of `grad` to where the largest element of its window lies in `x`.
pub(crate) fn max_pool_grad(gpu: &'static Gpu, s: &PoolShape, x: &Tensor, grad: &Tensor, out: &Tensor) -> Result<bool> {
    let (x, grad) = (x.in_rows()?, grad.in_rows()?);
    let (from, dy, to, table) =
        (Held::values(&x, gpu)?, Held::values(&grad, gpu)?, Held::to_fill(out)?, table(gpu, s)?);
    pool(s, &table).max_gradient(gpu, x.dtype(), from.start(), dy.start(), to.block())?;
    Ok(true)
}

/// The average of each window, or back.
pub(crate) fn average(
    gpu: &'static Gpu,
    s: &PoolShape,
    by: Divisor,
    back: bool,
    x: &Tensor,
    out: &Tensor,
) -> Result<bool> {
    let x = x.in_rows()?;
    let all = s.axes().iter().zip(s.input).all(|(w, n)| w.len() == 1 && w[0] == (0..n, n));
    if all && !back && !matches!(by, Divisor::Fixed(_)) {
        // One window is a mean of each plane.
        let planes = x
            .detach()
            .view(Layout { offset: x.layout().offset, ..Layout::contiguous([s.planes, x.numel() / s.planes.max(1)]) });
        return super::reduce(gpu, Reduction::Mean, &planes, &[false, true], out);
    }
    let (from, to, table) = (Held::values(&x, gpu)?, Held::to_fill(out)?, table(gpu, s)?);
    let over = match by {
        Divisor::Inside => Over::Inside,
        Divisor::Window => Over::Window,
        Divisor::Fixed(number) => Over::Fixed(number),
    };
    pool(s, &table).average(gpu, x.dtype(), over, back, from.start(), to.block())?;
    Ok(true)
}
