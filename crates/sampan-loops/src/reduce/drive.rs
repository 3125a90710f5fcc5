//! The walk of a reduction over a strided view: which elements meet, in which order, on which thread.

use super::fold::{FoldOf, Rows, fold_columns, fold_rows};
use crate::nest::{Nest, check_bounds, gather};
use crate::parallel::CHUNK;
use crate::widen::BLOCK;
use crate::{Ordered, View, parallel};
use std::ops::Range;

/// Kept elements that are accumulated side by side when the reduced axis is not the innermost.
const WIDTH: usize = 512;
/// Rows that such accumulators take before they are set aside.
const ROWS: usize = 64;
/// Rows that are not cut into pieces for several threads.
const LONGEST: usize = 1024;
/// Outputs that are enough for every thread without cutting what is reduced.
const MANY: usize = 8 * WIDTH;
/// Elements of a piece where it is cut: several, so that what it leaves behind is little against what it read.
const PIECE: usize = 4 * CHUNK;

/// Runs below this length are collected before they are reduced.
const LEAST_RUN: usize = 16;

/// The kernels of a fold behind pointers, so that the driver is compiled once per pair of types and not per fold.
struct Kernel<'k, A> {
    init: A,
    rows: &'k (dyn Fn(&mut [A], Rows<A>) + Sync),
    columns: &'k (dyn Fn(&mut [A], Rows<A>) + Sync),
    /// What becomes of finished outputs.
    finish: &'k (dyn Fn(&mut [A]) + Sync),
}

impl<A: Ordered> Kernel<'_, A> {
    fn row(&self, x: &[A]) -> A {
        let mut out = self.init;
        (self.rows)(std::slice::from_mut(&mut out), Rows::one(x));
        out
    }
}

/// Which outputs a slice of elements belongs to: element `j` to output `first + j · step`, the step being 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct Place {
    first: usize,
    step: usize,
}

impl Place {
    /// What `values`, one for each output, hold for `n` elements: one value for all, or one each.
    pub fn of<A>(self, values: &[A], n: usize) -> &[A] {
        &values[self.first..][..if self.step == 0 { 1 } else { n }]
    }
}

/// How elements become accumulators; `None` where they are the same type and untouched.
pub(super) type Load<'l, T, A> = Option<&'l (dyn Fn(Place, &[T], &mut [A]) + Sync)>;

/// Reduces the flagged axes and lets `finish` have each output once.
pub(super) fn reduce<T: Ordered, A: Ordered>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [A],
    load: Load<'_, T, A>,
    fold: impl FoldOf<A>,
    finish: &(dyn Fn(&mut [A]) + Sync),
) {
    let kernel = Kernel {
        init: fold.init(),
        rows: &|out, x| fold_rows(fold, out, x),
        columns: &|acc, x| fold_columns(fold, acc, x),
        finish,
    };
    run(src, reduced, dst, load, &kernel);
}

/// Splits the axes into kept and reduced ones, each merged as far as their strides allow.
pub(crate) fn split(shape: &[usize], strides: &[isize], reduced: &[bool]) -> (Nest<1>, Nest<1>) {
    assert_eq!(shape.len(), reduced.len(), "one flag for each axis");
    let pick = |want: bool| {
        let axes = || (0..shape.len()).filter(move |&i| reduced[i] == want);
        (axes().map(|i| shape[i]).collect::<Vec<_>>(), axes().map(|i| strides[i]).collect::<Vec<_>>())
    };
    let (kept, (shape, strides)) = (pick(false), pick(true));
    // The order of the reduced axes is free: the smallest step innermost.
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(strides[i].unsigned_abs()));
    let shape: Vec<usize> = order.iter().map(|&i| shape[i]).collect();
    let strides: Vec<isize> = order.iter().map(|&i| strides[i]).collect();
    (Nest::new(&kept.0, [&kept.1]), Nest::new(&shape, [&strides]))
}

fn run<T: Ordered, A: Ordered>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [A],
    load: Load<'_, T, A>,
    kernel: &Kernel<'_, A>,
) {
    check_bounds(&src);
    if src.is_empty() {
        dst.fill(kernel.init);
        return (kernel.finish)(dst);
    }
    // A gradient of one bias is the sum over a column: its axes need not be told apart.
    let single = reduced.iter().zip(src.shape).all(|(&r, &n)| r || n == 1);
    if let (Some(x), None, true) = (src.as_slice(), load, single)
        && x.len() <= CHUNK
    {
        dst[0] = kernel.row(bytemuck::cast_slice(x));
        return (kernel.finish)(dst);
    }
    let (kept, red) = split(src.shape, src.strides, reduced);
    assert_eq!(kept.len(), dst.len(), "reduce: the destination has another size than the kept axes");
    let (n, width) = (red.len(), dst.len());
    let near = red.inner_stride(0) == 1 && load.is_none();
    let way = if red.inner_stride(0) != 1 && kept.rank > 0 && kept.inner_stride(0) == 1 && kept.inner() >= 8 {
        Way::Columns
    } else if near && red.rank <= 1 {
        Way::Rows
    } else if near && (LEAST_RUN..=CHUNK).contains(&red.inner()) {
        Way::Runs
    } else {
        Way::Elements
    };
    let job = Job { data: src.data, offset: src.offset, kept: &kept, red: &red, load, kernel, way };
    // A long reduction is cut into pieces of a fixed size.
    let piece = match way {
        Way::Columns if width >= MANY => LONGEST,
        Way::Columns => (PIECE / width).clamp(ROWS, LONGEST),
        Way::Runs => CHUNK / red.inner() * red.inner(),
        Way::Rows | Way::Elements => CHUNK,
    };
    let pieces = n.div_ceil(piece);
    if pieces == 1 {
        return job.outputs(0..n, dst, kernel.finish);
    }
    let mut partial = vec![kernel.init; pieces * width];
    parallel::for_each_chunk_mut(&mut partial, width, piece, |i, out| {
        job.outputs(i * piece..n.min((i + 1) * piece), out, &|_| ());
    });
    let mut step = 1;
    while step < pieces {
        for i in (0..pieces - step).step_by(2 * step) {
            let (left, right) = partial.split_at_mut((i + step) * width);
            (kernel.columns)(&mut left[i * width..][..width], Rows::one(&right[..width]));
        }
        step *= 2;
    }
    dst.copy_from_slice(&partial[..width]);
    (kernel.finish)(dst);
}

/// How the elements of an output are found.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Many outputs side by side, along the innermost kept axis, which is the contiguous one.
    Columns,
    /// They lie side by side.
    Rows,
    /// They lie side by side in runs of one length.
    Runs,
    /// One by one, or converted block by block.
    Elements,
}

struct Job<'j, T, A> {
    data: &'j [T],
    offset: usize,
    kept: &'j Nest<1>,
    red: &'j Nest<1>,
    load: Load<'j, T, A>,
    kernel: &'j Kernel<'j, A>,
    way: Way,
}

impl<T: Ordered, A: Ordered> Job<'_, T, A> {
    /// Reduces the positions `range` of the reduced space into every output.
    fn outputs(&self, range: Range<usize>, dst: &mut [A], finish: &(dyn Fn(&mut [A]) + Sync)) {
        let n = range.len();
        let chunk = match self.way {
            // Whole pages where there are enough of them, else at least a few cache lines.
            Way::Columns if dst.len() >= MANY => WIDTH,
            Way::Columns => (CHUNK / n).clamp(WIDTH / 4, WIDTH),
            _ => (CHUNK / n).max(1),
        };
        parallel::for_each_chunk_mut(dst, chunk, n, |i, out| {
            match self.way {
                Way::Columns => self.columns(i * chunk, &range, out),
                Way::Rows => self.rows(i * chunk, &range, out),
                Way::Runs => self.runs(i * chunk, &range, out),
                Way::Elements => self.elements(i * chunk, &range, out),
            }
            finish(out);
        });
    }

    /// The data where no load changes it.
    fn plain(&self) -> &[A] {
        bytemuck::cast_slice(self.data)
    }

    /// Outputs from `first` on, many at a time.
    fn columns(&self, first: usize, range: &Range<usize>, out: &mut [A]) {
        let mut walk = self.kept.walk([self.offset], first, first + out.len());
        let mut part = [A::zeroed(); WIDTH];
        let mut done = 0;
        while let Some((width, [at])) = walk.next_run(WIDTH) {
            let (part, out) = (&mut part[..width], &mut out[done..done + width]);
            let place = Place { first: first + done, step: 1 };
            done += width;
            out.fill(self.kernel.init);
            for start in range.clone().step_by(ROWS) {
                part.fill(self.kernel.init);
                let mut rows = self.red.walk([at as usize], start, range.end.min(start + ROWS));
                while let Some((count, [at])) = rows.next_run(ROWS) {
                    let (at, step) = (at as usize, self.red.inner_stride(0));
                    match self.load {
                        None => (self.kernel.columns)(part, Rows { data: self.plain(), at, step, count, width }),
                        Some(_) => self.columns_loaded(place, Rows { data: self.data, at, step, count, width }, part),
                    }
                }
                (self.kernel.columns)(out, Rows::one(part));
            }
        }
    }

    /// The same for rows that are converted first.
    fn columns_loaded(&self, place: Place, x: Rows<T>, part: &mut [A]) {
        let mut wide = [A::zeroed(); WIDTH];
        for i in 0..x.count {
            (self.kernel.columns)(part, Rows::one(self.loaded(place, x.get(i), &mut wide)));
        }
    }

    /// Outputs from `first` on whose elements lie side by side.
    fn rows(&self, first: usize, range: &Range<usize>, out: &mut [A]) {
        let mut walk = self.kept.walk([self.offset], first, first + out.len());
        let mut done = 0;
        while let Some((count, [at])) = walk.next_run(usize::MAX) {
            let (at, step) = (at as usize + range.start, self.kept.inner_stride(0));
            let rows = Rows { data: self.plain(), at, step, count, width: range.len() };
            (self.kernel.rows)(&mut out[done..done + count], rows);
            done += count;
        }
    }

    /// Outputs from `first` on whose elements lie in runs; a range begins and ends with a run.
    fn runs(&self, first: usize, range: &Range<usize>, out: &mut [A]) {
        let (inner, outer) = (self.red.inner(), self.red.outer());
        let mut walk = self.kept.walk([self.offset], first, first + out.len());
        let mut parts = [A::zeroed(); BLOCK];
        for out in out {
            let Some((_, [at])) = walk.next_run(1) else { break };
            let mut total = None;
            for start in (range.start / inner..range.end / inner).step_by(BLOCK) {
                let mut runs = outer.walk([at as usize], start, (range.end / inner).min(start + BLOCK));
                let mut done = 0;
                while let Some((count, [at])) = runs.next_run(BLOCK) {
                    let (at, step) = (at as usize, outer.inner_stride(0));
                    let rows = Rows { data: self.plain(), at, step, count, width: inner };
                    (self.kernel.rows)(&mut parts[done..done + count], rows);
                    done += count;
                }
                self.add(&mut total, &parts[..done]);
            }
            *out = total.unwrap_or(self.kernel.init);
        }
    }

    /// Outputs from `first` on, whose elements are collected and converted first.
    fn elements(&self, first: usize, range: &Range<usize>, out: &mut [A]) {
        let stride = self.red.inner_stride(0);
        let mut walk = self.kept.walk([self.offset], first, first + out.len());
        let (mut raw, mut wide) = ([T::zeroed(); 2 * BLOCK], [A::zeroed(); 2 * BLOCK]);
        for (i, out) in out.iter_mut().enumerate() {
            let Some((_, [at])) = walk.next_run(1) else { break };
            let place = Place { first: first + i, step: 0 };
            let mut runs = self.red.walk([at as usize], range.start, range.end);
            let (mut total, mut fill) = (None, 0);
            while let Some((run, [at])) = runs.next_run(raw.len() - fill) {
                // SAFETY: `run` checked the bounds of the whole view, which the walk stays in.
                unsafe { gather(self.data, at, stride, &mut raw[fill..fill + run]) };
                fill += run;
                if fill == raw.len() {
                    self.add(&mut total, self.loaded(place, &raw, &mut wide));
                    fill = 0;
                }
            }
            if fill > 0 {
                self.add(&mut total, self.loaded(place, &raw[..fill], &mut wide));
            }
            *out = total.unwrap_or(self.kernel.init);
        }
    }

    /// A block more of what belongs to one output.
    fn add(&self, total: &mut Option<A>, block: &[A]) {
        let part = self.kernel.row(block);
        match total {
            None => *total = Some(part),
            Some(total) => (self.kernel.columns)(std::slice::from_mut(total), Rows::one(&[part])),
        }
    }

    fn loaded<'s>(&self, place: Place, x: &'s [T], wide: &'s mut [A]) -> &'s [A] {
        match self.load {
            None => bytemuck::cast_slice(x),
            Some(load) => {
                let wide = &mut wide[..x.len()];
                load(place, x, wide);
                wide
            }
        }
    }
}
