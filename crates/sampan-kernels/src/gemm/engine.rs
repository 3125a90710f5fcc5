//! Products of `f32` matrices whose factors come from anywhere: a matrix in memory, or an image that a convolution reads
//! as one. The result is cut into blocks by shape alone, and every element is summed in one order, so its bits do not
//! depend on the number of threads.

use super::pack::Lines;
use super::tile::{Block, Out, TileSize};
use crate::float::Shared;
use crate::{Buffer, parallel};

/// Depth of a block: a panel of rows then fits into the first-level cache.
const DEPTH: usize = 512;
/// Elements of the right factor in a block: they stay in the second-level cache while the panels of rows pass.
const BLOCK: usize = 128 << 10;
/// Multiplications that are worth a task, and the most tasks that a product is cut into for the sake of threads.
const TASK: usize = 1 << 18;
const TASKS: usize = 32;
/// Up to so many panels of rows the right factor is read where it lies, since each element is used so few times.
const FEW_PANELS: usize = 2;
/// Multiplications to an elementary operation, as the thread pool counts.
const PER_OPERATION: usize = 8;

/// Elements of a left factor that fits into the second-level cache.
const SMALL_FACTOR: usize = 128 << 10;
/// Up to so many rows a product is not cut by rows if it has some blocks of columns.
const FEW_ROWS: usize = 128;

/// How a product is cut.
struct Plan {
    tile: TileSize,
    depth: usize,
    rows: usize,
    cols: usize,
}

impl Plan {
    fn new(m: usize, n: usize, k: usize, whole: usize) -> Plan {
        let tile = TileSize::here();
        let depth = if k <= DEPTH + DEPTH / 4 { k } else { k.div_ceil(k.div_ceil(DEPTH)).next_multiple_of(whole) };
        let width = tile.columns();
        let wanted = (m * n * k / TASK).clamp(1, TASKS);
        let widest = (BLOCK / depth / width * width).max(width);
        // Every block of columns reads the whole left factor: narrow ones only where that is small.
        let narrowest = if m * k <= SMALL_FACTOR { width } else { 2 * width };
        let blocks = n.div_ceil(widest).max(wanted.min(n.div_ceil(narrowest)));
        let cols = n.div_ceil(blocks).next_multiple_of(width);
        // Blocks of rows share their columns, packed by whoever came first, which travel from core to core then.
        let along = n.div_ceil(cols);
        let enough = along >= TASKS / 2 || along >= 4 && m <= FEW_ROWS;
        let across = if enough { 1 } else { wanted.div_ceil(along).min(m.div_ceil(2 * tile.rows)) };
        let rows = m.div_ceil(across).next_multiple_of(tile.rows);
        Plan { tile, depth, rows, cols }
    }
}

/// `out = a · b`, where `a` has `m` lines, `b` has `n`, and lines have `k` elements. `whole` elements of a line belong
/// together: `k` is cut between multiples of it. None of the extents is zero.
///
/// # Safety
/// All elements of `out` may be written and nobody else touches them.
pub(crate) unsafe fn multiply(
    (m, n, k): (usize, usize, usize),
    a: &(impl Lines + ?Sized),
    b: &(impl Lines + ?Sized),
    whole: usize,
    out: Out,
    threads: bool,
) {
    let plan = Plan::new(m, n, k, whole);
    let Plan { tile, depth, rows, cols } = plan;
    let (across, along) = (m.div_ceil(rows), n.div_ceil(cols));
    let width = tile.columns();
    // Where `b` is read by several tasks, it is packed once, before.
    let in_place = if m <= FEW_PANELS * tile.rows { b.side_by_side() } else { None };
    let before = across > 1 && in_place.is_none();
    let full = n / width * width;
    let padded = full + if full < n { tile.panel(n - full) } else { 0 };

    let mut packed = Buffer::uninit(4 * k * (m + if before { padded } else { 0 }));
    let (pa, pb) = packed.as_mut_slice::<f32>().split_at_mut(m * k);
    let (to_a, to_b) = (Shared::new(pa), Shared::new(pb));
    let (a_panels, b_panels) = (m.div_ceil(tile.rows), if before { n.div_ceil(width) } else { 0 });
    let cost = |macs: usize| if threads { macs } else { 0 };
    parallel::for_each_range(a_panels + b_panels, 4, cost(k * width / 2), |panels| {
        for panel in panels {
            for start in (0..k).step_by(depth) {
                let end = k.min(start + depth);
                let len = end - start;
                if panel < a_panels {
                    let first = panel * tile.rows;
                    let count = tile.rows.min(m - first);
                    // SAFETY: the place of this panel in the packed factor, which no other task writes.
                    let to =
                        unsafe { std::slice::from_raw_parts_mut(to_a.get().add(start * m + first * len), count * len) };
                    a.pack(first, count, start..end, count, to);
                } else {
                    let first = (panel - a_panels) * width;
                    let wide = tile.panel(n - first);
                    // SAFETY: as above.
                    let to = unsafe {
                        std::slice::from_raw_parts_mut(to_b.get().add(start * padded + first * len), wide * len)
                    };
                    b.pack(first, width.min(n - first), start..end, wide, to);
                }
            }
        }
    });

    let each = rows.min(m) * cols.min(n) * k / PER_OPERATION;
    parallel::for_each_range(across * along, 1, cost(each), |task| {
        let (row, col) = (task.start / along * rows, task.start % along * cols);
        let (rows, cols) = (rows.min(m - row), cols.min(n - col));
        let wholes = cols / width * width;
        let own = if before { 0 } else { cols.next_multiple_of(width) - if in_place.is_some() { wholes } else { 0 } };
        let mut buffer = Buffer::uninit(4 * own * depth.min(k));
        let own = buffer.as_mut_slice::<f32>();
        for start in (0..k).step_by(depth) {
            let end = k.min(start + depth);
            let len = end - start;
            let out = if start == 0 { out } else { Out { accumulate: true, bias: None, ..out } };
            // SAFETY: inside the packed factors; see the layout above.
            let a = unsafe { to_a.get().add(start * m + row * len) };
            let block = |from: usize, cols: usize, b: *const f32, b_step: Option<usize>| {
                if cols > 0 {
                    let block = Block { row, rows, col: col + from, cols, depth: len, a, b, b_step, out };
                    // SAFETY: the panels hold these rows and columns, and no other task has this block of `out`.
                    unsafe { block.run() };
                }
            };
            if before {
                // SAFETY: as above.
                block(0, cols, unsafe { to_b.get().add(start * padded + col * len) }, None);
                continue;
            }
            let first = if in_place.is_some() { wholes } else { 0 };
            for (from, to) in (first..cols).step_by(width).zip(own.chunks_mut(width * len)) {
                let wide = tile.panel(cols - from);
                b.pack(col + from, width.min(cols - from), start..end, wide, to);
            }
            if let Some((base, step)) = in_place {
                // SAFETY: inside `b`.
                block(0, wholes, unsafe { base.get().add(start * step + col) }, Some(step));
            }
            block(first, cols - first, own.as_ptr(), None);
        }
    });
}
