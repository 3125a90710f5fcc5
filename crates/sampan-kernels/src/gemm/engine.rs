//! Products of matrices whose factors come from anywhere: a matrix in memory, or an image that a convolution reads
//! as one. The result is cut into blocks by shape alone, and every element is summed in one order, so its bits do not
//! depend on the number of threads.

use super::lane::Lane;
use super::microkernel::{Block, Out, TileSize};
use super::pack::{self, Lines};
use crate::shared::Shared;
use crate::{Buffer, parallel};
use std::ops::Range;
use std::sync::OnceLock;

/// Depth of a block in bytes: a panel of rows then fits into the first-level cache.
const DEPTH: usize = 4 * 512;
/// Bytes of the right factor in a block: they stay in the second-level cache while the panels of rows pass.
const BLOCK: usize = 512 << 10;
/// Multiplications that are worth a task, and the most tasks for each thread.
const TASK: usize = 1 << 18;
const TASKS_EACH: usize = 8;
/// Up to so many panels of rows the right factor is read where it lies, since each element is used so few times:
/// with numbers of four bytes, and of eight, of which there is more to copy for as many products.
const FEW_PANELS: [usize; 2] = [2, 6];
/// Multiplications to an elementary operation, as the thread pool counts.
const PER_OPERATION: usize = 8;

/// Elements of a left factor that fits into the second-level cache with what else is there, of four bytes and of eight.
const SMALL_FACTOR: [usize; 2] = [128 << 10, 32 << 10];
/// From so many bytes on the left factor of a product with few columns is packed by the tasks that use it, since it
/// would not stay in a cache from the one to the other.
const LARGE_FACTOR: usize = 2 << 20;
/// Panels that such a task has at least, since it reads the whole right factor, unless that leaves too few tasks.
const OWN_PANELS: usize = 4;
const FEWEST_TASKS: usize = 8;

/// Panels of lines side by side that are packed together: what lies in one piece is fetched in one go. With more of them the
/// places they are written to, which may be pages apart, would compete for the same ones in the first-level cache.
const TOGETHER: usize = 8;

/// Columns for each thread from which on every thread packs the left factor for itself: little against the work, and
/// nothing travels from core to core.
const COLUMNS_EACH: usize = 64;

/// How a product is cut.
#[derive(Clone, Copy)]
struct Plan {
    depth: usize,
    rows: usize,
    cols: usize,
    left: Left,
    /// Are the columns packed before, for all tasks?
    cols_before: bool,
}

/// Who packs the left factor.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    /// All threads together, before the tasks.
    Before,
    /// Every thread for itself, with its first task.
    Thread,
    /// Every task its rows.
    Task,
}

impl Plan {
    /// `depth` follows from the shape alone, and with it the order of additions; the rest may look at the number of threads.
    fn new<T>(tile: TileSize, (m, n, k): (usize, usize, usize), whole: usize, in_place: bool, threads: usize) -> Plan {
        let size = size_of::<T>();
        let deep = DEPTH / size;
        let depth = if k <= deep + deep / 4 { k } else { k.div_ceil(k.div_ceil(deep)).next_multiple_of(whole) };
        let width = tile.columns();
        let wanted = (m * n * k / TASK).clamp(1, TASKS_EACH * threads);
        if m >= 2 * n && m * k * size >= LARGE_FACTOR {
            let rows = m.div_ceil(wanted).max(m.div_ceil(FEWEST_TASKS).min(OWN_PANELS * tile.rows));
            let rows = rows.next_multiple_of(tile.rows);
            return Plan { depth, rows, cols: n, left: Left::Task, cols_before: true };
        }
        let widest = (BLOCK / size / depth / width * width).max(width);
        // Every block of columns reads the whole left factor: narrow ones only where that is small.
        let narrowest = if m * k <= SMALL_FACTOR[size / 8] { width } else { 2 * width };
        let blocks = n.div_ceil(widest).max(wanted.min(n.div_ceil(narrowest)));
        let cols = n.div_ceil(blocks).next_multiple_of(width);
        // Blocks of rows share their columns, and what one core packed travels to the other then.
        let along = n.div_ceil(cols);
        let across = if along >= 2 * threads { 1 } else { wanted.div_ceil(along).min(m.div_ceil(2 * tile.rows)) };
        let rows = m.div_ceil(across).next_multiple_of(tile.rows);
        let left = if n < COLUMNS_EACH * threads { Left::Before } else { Left::Thread };
        Plan { depth, rows, cols, left, cols_before: rows < m && !in_place }
    }
}

/// A factor, cut into panels for the tiles.
struct Factor<'a, T> {
    lines: &'a dyn Lines<T>,
    count: usize,
    /// Lines of a panel; the last one has as many as remain, rounded up to a multiple of `lanes`.
    panel: usize,
    lanes: usize,
}

impl<T: Lane> Factor<'_, T> {
    fn width(&self, first: usize) -> usize {
        (self.count - first).next_multiple_of(self.lanes).min(self.panel)
    }

    fn panels(&self) -> usize {
        self.count.div_ceil(self.panel)
    }

    /// Lines of all panels.
    fn padded(&self) -> usize {
        let last = (self.count - 1) / self.panel * self.panel;
        last + self.width(last)
    }

    /// Packs the panel that begins with line `first`.
    fn pack(&self, first: usize, depth: Range<usize>, out: &mut [T]) {
        self.lines.pack(first, self.panel.min(self.count - first), depth, self.width(first), out);
    }

    /// Packs lines `lines`, panel after panel.
    fn pack_lines(&self, lines: Range<usize>, depth: Range<usize>, out: &mut [T]) {
        for (first, out) in lines.step_by(self.panel).zip(out.chunks_mut(self.panel * depth.len())) {
            self.pack(first, depth.clone(), out);
        }
    }

    /// Packs lines `lines`, the first of which begins a panel, in all depths; laid out as [`Factor::pack_panel`] does it.
    fn pack_rows(&self, lines: Range<usize>, k: usize, depth: usize, out: &mut [T]) {
        let blocks = || (0..k).step_by(depth).map(|start| (start, k.min(start + depth)));
        let mut first = lines.start;
        if let Some((base, step)) = self.lines.side_by_side() {
            let whole = lines.end - lines.len() % self.panel;
            while first < whole {
                let count = ((whole - first) / self.panel).min(TOGETHER);
                for (start, end) in blocks() {
                    let out = &mut out[start * lines.len() + (first - lines.start) * (end - start)..];
                    // SAFETY: lines that are there, in depths that are.
                    unsafe {
                        pack::together(base.get().add(start * step + first), step, self.panel, count, end - start, out)
                    };
                }
                first += count * self.panel;
            }
        }
        // Long rows are read faster than short ones.
        for first in (first..lines.end).step_by(self.panel) {
            for (start, end) in blocks() {
                let at = start * lines.len() + (first - lines.start) * (end - start);
                self.pack(first, start..end, &mut out[at..]);
            }
        }
    }

    /// Packs a panel in all depths. Blocks of depth follow each other, in each of them the panels.
    ///
    /// # Safety
    /// `to` has room for the whole factor, and nobody else uses the panel's part of it.
    unsafe fn pack_panel(&self, panel: usize, k: usize, depth: usize, to: *mut T) {
        let first = panel * self.panel;
        for start in (0..k).step_by(depth) {
            let end = k.min(start + depth);
            let (at, len) = (start * self.padded() + first * (end - start), self.width(first) * (end - start));
            // SAFETY: promised by the caller.
            let out = unsafe { std::slice::from_raw_parts_mut(to.add(at), len) };
            self.pack(first, start..end, out);
        }
    }
}

/// `out = a · b`, where `a` has `m` lines, `b` has `n`, and lines have `k` elements. `whole` elements of a line belong
/// together: `k` is cut between multiples of it. None of the extents is zero.
///
/// # Safety
/// All elements of `out` may be written and nobody else touches them.
pub(crate) unsafe fn multiply<T: Lane>(
    (m, n, k): (usize, usize, usize),
    a: &dyn Lines<T>,
    b: &dyn Lines<T>,
    whole: usize,
    out: Out<T>,
    threads: bool,
) {
    let tile = TileSize::here::<T>();
    let width = tile.columns();
    let in_place = if m <= FEW_PANELS[size_of::<T>() / 8] * tile.rows { b.side_by_side() } else { None };
    let count = if threads { parallel::num_threads() } else { 1 };
    let Plan { depth, rows, cols, left, cols_before } =
        Plan::new::<T>(tile, (m, n, k), whole, in_place.is_some(), count);
    let a = Factor { lines: a, count: m, panel: tile.rows, lanes: 1 };
    let b = Factor { lines: b, count: n, panel: width, lanes: tile.lanes };
    let cost = |operations: usize| if threads { operations } else { 0 };

    let (a_len, b_len) = (if left == Left::Before { m * k } else { 0 }, if cols_before { b.padded() * k } else { 0 });
    let mut packed = Buffer::uninit(size_of::<T>() * (a_len + b_len));
    let (pa, pb) = packed.as_mut_slice::<T>().split_at_mut(a_len);
    let (pa, pb) = (Shared::new(pa), Shared::new(pb));
    let (a_panels, b_panels) =
        (if left == Left::Before { a.panels() } else { 0 }, if cols_before { b.panels() } else { 0 });
    parallel::for_each_range(a_panels + b_panels, 1, cost(k * width / 2), |panels| {
        for panel in panels {
            // SAFETY: the factors have room, and each panel has one task.
            unsafe {
                match panel.checked_sub(a_panels) {
                    None => a.pack_panel(panel, k, depth, pa.get()),
                    Some(panel) => b.pack_panel(panel, k, depth, pb.get()),
                }
            }
        }
    });

    let by_thread: Vec<OnceLock<Buffer>> = (0..count).map(|_| OnceLock::new()).collect();
    let (across, along) = (m.div_ceil(rows), n.div_ceil(cols));
    let each = rows.min(m) * cols.min(n) * k / PER_OPERATION;
    parallel::for_each_range(across * along, 1, cost(each), |task| {
        let (row, col) = (task.start / along * rows, task.start % along * cols);
        let (rows, cols) = (rows.min(m - row), cols.min(n - col));
        // What is read in place are whole panels.
        let wholes = if in_place.is_some() { cols / width * width } else { 0 };
        let own_rows = if left == Left::Task { rows * k } else { 0 };
        let own_cols = if cols_before { 0 } else { (cols - wholes).next_multiple_of(width) * depth };
        let mut buffer = Buffer::uninit(size_of::<T>() * (own_rows + own_cols));
        let (own_rows, own_cols) = buffer.as_mut_slice::<T>().split_at_mut(own_rows);
        let mut whole_left: *const T = pa.get();
        if left == Left::Thread {
            let packed = by_thread[parallel::place() % count].get_or_init(|| {
                let mut all = Buffer::uninit(size_of::<T>() * m * k);
                // SAFETY: there is room for the factor, and nobody else has it.
                (0..a.panels())
                    .for_each(|p| unsafe { a.pack_panel(p, k, depth, all.as_mut_slice::<T>().as_mut_ptr()) });
                all
            });
            whole_left = packed.as_slice::<T>().as_ptr();
        }
        if left == Left::Task {
            a.pack_rows(row..row + rows, k, depth, own_rows);
        }
        for start in (0..k).step_by(depth) {
            let end = k.min(start + depth);
            let len = end - start;
            let out = if start == 0 { out } else { Out { accumulate: true, bias: None, ..out } };
            let left: *const T = match left {
                Left::Task => own_rows[start * rows..].as_ptr(),
                // SAFETY: inside the packed factor; see `pack_panel`.
                _ => unsafe { whole_left.add(start * m + row * len) },
            };
            let block = |from: usize, cols: usize, b: *const T, b_step: Option<usize>| {
                if cols > 0 {
                    let block = Block { row, rows, col: col + from, cols, depth: len, a: left, b, b_step, out };
                    // SAFETY: the panels hold these rows and columns, and no other task has this block of `out`.
                    unsafe { block.run() };
                }
            };
            if cols_before {
                // No more columns at a time than stay in the cache while the rows pass.
                let most = (BLOCK / size_of::<T>() / len / width * width).max(width);
                for from in (0..cols).step_by(most) {
                    // SAFETY: inside the packed factor; see `pack_panel`.
                    let b = unsafe { pb.get().add(start * b.padded() + (col + from) * len) };
                    block(from, most.min(cols - from), b, None);
                }
                continue;
            }
            if let Some((base, step)) = in_place {
                // SAFETY: inside `b`.
                block(0, wholes, unsafe { base.get().add(start * step + col) }, Some(step));
            }
            b.pack_lines(col + wholes..col + cols, start..end, own_cols);
            block(wholes, cols - wholes, own_cols.as_ptr(), None);
        }
    });
}
