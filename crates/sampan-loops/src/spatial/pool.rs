//! Pooling over up to three spatial axes, and the gathers and scatters of its gradients. Data is `planes` (batch times
//! channels) of row-major `[depth, height, width]`; fewer axes are filled up with leading ones.

use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Buffer, Element, Ordered, parallel};
use halve::*;
use sampan_macros::by_dtype;
use slide::*;
use std::ops::Range;

mod halve;
mod slide;

/// Windows of a pooling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolShape {
    /// Batch times channels.
    pub planes: usize,
    /// Extents of an input plane.
    pub input: [usize; 3],
    /// Extents of an output plane; the caller has chosen them (floor or ceil mode).
    pub output: [usize; 3],
    /// How windows are laid.
    pub windows: Windows,
}

/// How windows are laid over the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Windows {
    /// Of one size, at a fixed step, the first one `pad` before the input.
    Sliding {
        /// Extents of a window.
        kernel: [usize; 3],
        /// Step between windows.
        stride: [usize; 3],
        /// Padding before the first element.
        pad: [usize; 3],
        /// Padding after the last element, which counts in averages that include padding.
        pad_end: [usize; 3],
    },
    /// As even as possible, from `⌊i·n/out⌋` to `⌈(i+1)·n/out⌉`.
    Adaptive,
    /// At steps of a fractional length, whose roundings `u` in (0, 1) shifts: of one size, or side by side where the
    /// kernel is 0.
    Fractional {
        /// Extents of a window, or 0.
        kernel: [usize; 3],
        /// The shift.
        u: f32,
    },
}

/// Window `i` of `out` at fractional steps over `n` elements. In single precision like everybody else, so that
/// roundings fall the same way.
fn fractional(n: usize, out: usize, kernel: usize, u: f32, i: usize) -> Range<usize> {
    let steps = out - (kernel > 0) as usize;
    let step = if steps == 0 { 0.0 } else { (n - kernel.min(n)) as f32 / steps as f32 };
    let u = if kernel > 0 {
        u
    } else {
        let base = (n / out) as f32;
        u * ((base + 2.0) / step - 1.0).min((n as f32 + 1.0 - base) / step - (out as f32 - 1.0))
    };
    let place = |i: usize| (((i as f32 + u) * step) as usize).saturating_sub((u * step) as usize).min(n);
    if kernel > 0 {
        // Rounding may carry the last window a step too far.
        let start = place(i).min(n - kernel.min(n));
        return start..(start + kernel).min(n);
    }
    place(i)..place(i + 1)
}

/// The output extent of a sliding window over `input` elements, or `None` if it does not fit. In ceil mode the last window
/// may reach beyond the input, or even begin there, as Paddle has it.
pub fn pooled_len(input: usize, kernel: usize, stride: usize, pad: usize, pad_end: usize, ceil: bool) -> Option<usize> {
    let room = (input + pad + pad_end).checked_sub(kernel)?;
    Some(if ceil { room.div_ceil(stride) } else { room.checked_div(stride)? } + 1)
}

impl PoolShape {
    // Without any plane the extents may be as large as they like.
    fn x_plane(&self) -> usize {
        self.input.iter().fold(1, |n, &extent| n.saturating_mul(extent))
    }

    fn y_plane(&self) -> usize {
        self.output.iter().fold(1, |n, &extent| n.saturating_mul(extent))
    }

    /// The part of window `i` of an axis that lies inside the input, and its extent counting padding.
    fn window(&self, axis: usize, i: usize) -> (Range<usize>, usize) {
        let n = self.input[axis];
        match self.windows {
            Windows::Sliding { kernel, stride, pad, pad_end } => {
                let begin = i * stride[axis];
                let end = (begin + kernel[axis]).min(n + pad[axis] + pad_end[axis]);
                let inside = |v: usize| v.saturating_sub(pad[axis]).min(n);
                (inside(begin)..inside(end), end.saturating_sub(begin))
            }
            Windows::Adaptive => {
                let out = self.output[axis];
                let r = i * n / out..((i + 1) * n).div_ceil(out);
                (r.clone(), r.len())
            }
            Windows::Fractional { kernel, u } => {
                let r = fractional(n, self.output[axis], kernel[axis], u, i);
                (r.clone(), r.len())
            }
        }
    }

    /// The windows of each axis: the part inside the input, and the extent counting padding.
    pub fn axes(&self) -> [Vec<(Range<usize>, usize)>; 3] {
        std::array::from_fn(|axis| (0..self.output[axis]).map(|i| self.window(axis, i)).collect())
    }

    /// About how many elements a window holds.
    fn cost(&self) -> usize {
        match self.windows {
            // A window may reach far beyond the input.
            Windows::Sliding { kernel, .. } => (0..3).map(|a| kernel[a].min(self.input[a])).product::<usize>() + 2,
            _ => self.x_plane() / self.y_plane().max(1) + 3,
        }
    }

    /// Is it the common halving: 2×2 windows side by side, all of them inside?
    fn halves(&self) -> bool {
        matches!(self.windows, Windows::Sliding { kernel: [1, 2, 2], stride: [_, 2, 2], pad: [0, 0, 0], .. })
            && self.input[0] == self.output[0]
            && (1..3).all(|a| 2 * self.output[a] <= self.input[a])
            && (self.input[0] == 1 || matches!(self.windows, Windows::Sliding { stride: [1, ..], .. }))
    }

    fn check(&self, x: usize, y: usize) {
        assert!(
            x == self.planes * self.x_plane() && y == self.planes * self.y_plane(),
            "pool: {x} and {y} elements for {self:?}"
        );
    }

    /// Calls `f` for each window of a plane with its place in the output, its ranges and its extent with padding.
    #[inline(always)]
    fn each_window(axes: &[Vec<(Range<usize>, usize)>; 3], mut f: impl FnMut(usize, [&Range<usize>; 3], usize)) {
        let mut at = 0;
        for (d, nd) in &axes[0] {
            for (h, nh) in &axes[1] {
                for (w, nw) in &axes[2] {
                    f(at, [d, h, w], nd * nh * nw);
                    at += 1;
                }
            }
        }
    }

    /// Calls `f` for each row of output of a plane: where it begins, where the rows of input that its windows cover
    /// begin, how many these are, and how many with padding. Windows are products of ranges, so a kernel may first join
    /// whole rows of input, and then the columns of the joined row.
    #[inline(always)]
    fn each_line(
        &self,
        axes: &[Vec<(Range<usize>, usize)>; 3],
        mut f: impl FnMut(usize, &mut dyn Iterator<Item = usize>, usize, usize),
    ) {
        let [_, ih, iw] = self.input;
        for (i, (d, nd)) in axes[0].iter().enumerate() {
            for (j, (h, nh)) in axes[1].iter().enumerate() {
                let mut starts = d.clone().flat_map(|d| h.clone().map(move |h| (d * ih + h) * iw));
                f((i * self.output[1] + j) * self.output[2], &mut starts, d.len() * h.len(), nd * nh);
            }
        }
    }

    /// Calls `f(start, len)` for each row of a window, in order.
    #[inline(always)]
    fn each_row(&self, [d, h, w]: [&Range<usize>; 3], mut f: impl FnMut(usize, usize)) {
        for d in d.clone() {
            for h in h.clone() {
                f((d * self.input[1] + h) * self.input[2] + w.start, w.len());
            }
        }
    }
}

/// Calls `f(plane, x, out)` for every plane, in parallel; `out` is cut in pieces of `out_plane`.
fn by_plane<T: Sync, U: Send>(
    x: &[T],
    x_plane: usize,
    out: &mut [U],
    out_plane: usize,
    cost: usize,
    f: impl Fn(&[T], &mut [U]) + Sync + Send,
) {
    if out.is_empty() {
        return;
    }
    // Several small planes to a task, so that handing it over is cheap.
    let per_task = ((1 << 14) / (out_plane * cost).max(1)).max(1);
    parallel::for_each_chunk_mut(out, per_task * out_plane, cost, |task, out| {
        for (i, out) in out.chunks_exact_mut(out_plane).enumerate() {
            f(&x[(task * per_task + i) * x_plane..][..x_plane], out);
        }
    });
}

/// Is `v` the new maximum over `best`? A NaN beats every number and stays.
#[inline(always)]
fn beats<T: Ordered>(v: T, best: T) -> bool {
    // Not `||` and `&&`, which are jumps that nobody can foretell.
    (v > best) | (v.is_nan() & !best.is_nan())
}

/// Largest element of each window; NaN if it holds one. A window without any element gives −∞.
#[by_dtype(T in float)]
pub fn max_pool<T: RealElement>(s: &PoolShape, x: &[T], y: &mut [T]) {
    s.check(x.len(), y.len());
    if y.is_empty() {
        return;
    }
    let axes = s.axes();
    by_plane(x, s.x_plane(), y, s.y_plane(), s.cost(), |x, y| {
        if s.halves() {
            return halve_max(s, x, y);
        }
        let low = -T::Wide::INFINITY;
        let max = |best: &mut T::Wide, v: T::Wide| *best = if beats(v, *best) { v } else { *best };
        let (mut line, mut best, mut phases) = (vec![low; s.input[2]], vec![low; s.output[2]], Phases::new(s));
        s.each_line(&axes, |row, starts, _, _| {
            line.fill(low);
            for start in starts {
                line.iter_mut().zip(&x[start..]).for_each(|(best, v)| max(best, v.wide()));
            }
            let y = &mut y[row..row + s.output[2]];
            if let Some(phases) = &mut phases {
                best.fill(low);
                slide(s, &line, 0, phases, &mut best, None);
                y.iter_mut().zip(&best).for_each(|(y, &v)| *y = T::narrow(v));
                return;
            }
            for (y, (w, _)) in y.iter_mut().zip(&axes[2]) {
                let mut best = low;
                line[w.clone()].iter().for_each(|&v| max(&mut best, v));
                *y = T::narrow(best);
            }
        });
    });
}

/// [`max_pool`] that also says where in its input plane each maximum lies; of equals the first.
#[by_dtype(T in float)]
pub fn max_pool_with_index<T: RealElement>(s: &PoolShape, x: &[T], y: &mut [T], index: &mut [i64]) {
    s.check(x.len(), y.len());
    if y.is_empty() {
        return;
    }
    max_index_of(s, x, index);
    if s.axes().iter().flatten().any(|(r, _)| r.is_empty()) {
        max_pool_of(s, x, y);
    } else {
        gather_by_index_of(s.planes, x, index, y);
    }
}

/// Where in its input plane the maximum of each window lies: of equals the first, of NaNs the first, and for a window
/// without elements the place nearest to it.
#[by_dtype(T in float)]
pub fn max_index<T: RealElement>(s: &PoolShape, x: &[T], index: &mut [i64]) {
    s.check(x.len(), index.len());
    if index.is_empty() {
        return;
    }
    let axes = s.axes();
    by_plane(x, s.x_plane(), index, s.y_plane(), s.cost(), |x, index| {
        if s.halves() {
            return halve_index(s, x, index);
        }
        let nearest = |v: usize, axis: usize| v.min(s.input[axis].saturating_sub(1));
        let place = |[d, h, w]: [usize; 3]| (nearest(d, 0) * s.input[1] + nearest(h, 1)) * s.input[2] + nearest(w, 2);
        if let Some(mut phases) = Phases::new(s) {
            let ow = s.output[2];
            let mut best = vec![T::default(); ow];
            for (row, index) in index.chunks_exact_mut(ow).enumerate() {
                let (d, h) = (&axes[0][row / s.output[1]].0, &axes[1][row % s.output[1]].0);
                for (w, (index, best)) in index.iter_mut().zip(&mut best).enumerate() {
                    let at = place([d.start, h.start, axes[2][w].0.start]);
                    (*index, *best) = (at as i64, x.get(at).copied().unwrap_or_default());
                }
                s.each_row([d, h, &(0..s.input[2])], |start, len| {
                    slide(s, &x[start..start + len], start, &mut phases, &mut best, Some(&mut *index));
                });
            }
            return;
        }
        PoolShape::each_window(&axes, |at, ranges, _| {
            let mut place = place(ranges.map(|r| r.start));
            let mut best = x.get(place).copied().unwrap_or_default();
            s.each_row(ranges, |start, len| {
                for (i, &v) in x[start..start + len].iter().enumerate() {
                    if beats(v, best) {
                        (best, place) = (v, start + i);
                    }
                }
            });
            index[at] = place as i64;
        });
    });
}

fn plane_of(len: usize, planes: usize) -> usize {
    assert!(planes > 0 || len == 0);
    let plane = len.checked_div(planes).unwrap_or(0);
    assert_eq!(plane * planes, len, "pool: {len} elements are not {planes} planes");
    plane
}

/// `y[p, i] = x[p, index[p, i]]` for every plane `p`.
#[by_dtype(T in bytes)]
pub fn gather_by_index<T: Element>(planes: usize, x: &[T], index: &[i64], y: &mut [T]) {
    assert_eq!(index.len(), y.len(), "pool: as many indices as outputs");
    let (x_plane, y_plane) = (plane_of(x.len(), planes), plane_of(y.len(), planes));
    if y.is_empty() {
        return;
    }
    parallel::for_each_chunk_mut(y, y_plane, 2, |p, y| {
        let x = &x[p * x_plane..(p + 1) * x_plane];
        for (y, &i) in y.iter_mut().zip(&index[p * y_plane..]) {
            *y = x[i as usize];
        }
    });
}

/// `dx[p, index[p, i]] += dy[p, i]` on zeros, for every plane `p`: the gradient of [`gather_by_index`] and so of max
/// pooling.
#[by_dtype(T in float)]
pub fn max_pool_backward<T: RealElement>(planes: usize, dy: &[T], index: &[i64], dx: &mut [T]) {
    assert_eq!(index.len(), dy.len(), "pool: as many indices as outputs");
    let (x_plane, y_plane) = (plane_of(dx.len(), planes), plane_of(dy.len(), planes));
    if dx.is_empty() {
        return;
    }
    parallel::for_each_chunk_mut(dx, x_plane, 2, |p, dx| {
        dx.fill(T::default());
        for (&v, &i) in dy[p * y_plane..(p + 1) * y_plane].iter().zip(&index[p * y_plane..]) {
            let out = &mut dx[i as usize];
            *out = T::narrow(out.wide() + v.wide());
        }
    });
}

/// The gradient of [`max_pool`]: what [`max_index`] and [`max_pool_backward`] give, plane by plane.
#[by_dtype(T in float)]
pub fn max_pool_grad<T: RealElement>(s: &PoolShape, x: &[T], dy: &[T], dx: &mut [T]) {
    s.check(x.len(), dy.len());
    s.check(dx.len(), dy.len());
    if dy.is_empty() || dx.is_empty() {
        return dx.fill(T::default());
    }
    let (x_plane, y_plane) = (s.x_plane(), s.y_plane());
    let flat = s.halves() && s.input[0] == 1;
    let per_task = ((1 << 14) / x_plane).max(1);
    let cost = 2 + s.cost() * y_plane / x_plane;
    parallel::for_each_chunk_mut(dx, per_task * x_plane, cost, |task, dx| {
        let planes = dx.len() / x_plane;
        let x = &x[task * per_task * x_plane..][..dx.len()];
        let dy = &dy[task * per_task * y_plane..][..planes * y_plane];
        if flat {
            return halve_max_backward(s, x, dy, dx);
        }
        let mut index = Buffer::uninit(size_of::<i64>() * dy.len());
        max_index_of(&PoolShape { planes, ..*s }, x, index.as_mut_slice());
        max_pool_backward_of(planes, dy, index.as_slice(), dx);
    });
}

/// `y[p, index[p, i]] = x[p, i]` on zeros, for every plane `p`: max unpooling. Of equal indices the last one stays.
#[by_dtype(T in bytes)]
pub fn max_unpool<T: Element>(planes: usize, x: &[T], index: &[i64], y: &mut [T]) {
    assert_eq!(index.len(), x.len(), "pool: as many indices as inputs");
    let (y_plane, x_plane) = (plane_of(y.len(), planes), plane_of(x.len(), planes));
    if y.is_empty() {
        return;
    }
    parallel::for_each_chunk_mut(y, y_plane, 2, |p, y| {
        y.fill(T::default());
        for (&v, &i) in x[p * x_plane..(p + 1) * x_plane].iter().zip(&index[p * x_plane..]) {
            y[i as usize] = v;
        }
    });
}

/// What an average divides by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divisor {
    /// The elements of the window that lie inside the input (Paddle's `exclusive=True`).
    Inside,
    /// The elements of the window with padding.
    Window,
    /// Always this.
    Fixed(f64),
}

impl Divisor {
    /// The number for a window of which so many elements lie inside.
    #[inline(always)]
    pub fn get(self, inside: usize, window: usize) -> f64 {
        match self {
            Divisor::Inside => inside as f64,
            Divisor::Window => window as f64,
            Divisor::Fixed(v) => v,
        }
    }
}

/// Average of each window; a window without elements gives 0.
#[by_dtype(T in float)]
pub fn avg_pool<T: RealElement>(s: &PoolShape, divisor: Divisor, x: &[T], y: &mut [T]) {
    s.check(x.len(), y.len());
    if y.is_empty() {
        return;
    }
    let axes = s.axes();
    by_plane(x, s.x_plane(), y, s.y_plane(), s.cost(), |x, y| {
        if s.halves() {
            return halve_avg(s, T::Wide::from_f64(divisor.get(4, 4)), x, y);
        }
        let mut line = vec![T::Wide::ZERO; s.input[2]];
        s.each_line(&axes, |row, starts, inside, window| {
            line.fill(T::Wide::ZERO);
            for start in starts {
                line.iter_mut().zip(&x[start..]).for_each(|(sum, v)| *sum += v.wide());
            }
            for (y, (w, n)) in y[row..].iter_mut().zip(&axes[2]) {
                let mut sum = T::Wide::ZERO;
                line[w.clone()].iter().for_each(|&v| sum += v);
                let inside = inside * w.len();
                let over = T::Wide::from_f64(divisor.get(inside, window * n));
                *y = T::narrow(if inside == 0 { T::Wide::ZERO } else { sum / over });
            }
        });
    });
}

/// The gradient of [`avg_pool`].
#[by_dtype(T in float)]
pub fn avg_pool_backward<T: RealElement>(s: &PoolShape, divisor: Divisor, dy: &[T], dx: &mut [T]) {
    s.check(dx.len(), dy.len());
    if dy.is_empty() {
        return dx.fill(T::default());
    }
    let axes = s.axes();
    let cost = s.cost() * s.y_plane() / s.x_plane().max(1) + 1;
    by_plane(dy, s.y_plane(), dx, s.x_plane(), cost, |dy, dx| {
        if s.halves() {
            return halve_avg_backward(s, T::Wide::from_f64(divisor.get(4, 4)), dy, dx);
        }
        // Sums of half types are kept wide until the plane is done.
        let mut wide = vec![T::Wide::ZERO; dx.len()];
        let mut line = vec![T::Wide::ZERO; s.input[2]];
        s.each_line(&axes, |row, starts, inside, window| {
            line.fill(T::Wide::ZERO);
            for (dy, (w, n)) in dy[row..].iter().zip(&axes[2]) {
                let v = dy.wide() / T::Wide::from_f64(divisor.get(inside * w.len(), window * n));
                line[w.clone()].iter_mut().for_each(|o| *o += v);
            }
            for start in starts {
                wide[start..].iter_mut().zip(&line).for_each(|(o, v)| *o += *v);
            }
        });
        dx.iter_mut().zip(&wide).for_each(|(o, v)| *o = T::narrow(*v));
    });
}

#[cfg(test)]
mod tests;
