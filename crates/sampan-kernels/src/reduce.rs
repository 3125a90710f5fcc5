//! Reductions over any set of axes of a strided view. The order of every sum is fixed by the shape and strides alone:
//! within a piece values go to separate lanes, pieces are combined as a tree. So results have the same bits for any
//! number of threads, and rounding errors grow with the logarithm of the size.

use crate::copy::{cast_slice, convert};
use crate::elementwise::CHUNK;
use crate::nest::{Nest, check_bounds, gather};
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{BLOCK, RealElement};
use crate::{Bool, Element, Ordered, View, bf16, f16, parallel};
use bytemuck::Zeroable;

pub use crate::arg::{argmax, argmin};

/// Independent accumulators of a row; a power of two that fills several vectors.
const LANES: usize = 64;
/// Values that one accumulator takes in turn before it is set aside.
const RUN: usize = 32;
/// Kept elements that are accumulated side by side when the reduced axis is not the innermost.
const WIDTH: usize = 512;

/// A number that can be reduced. Half types accumulate in `f32`; integers wrap.
pub trait Number: Ordered {
    /// What it accumulates in.
    type Acc: Number<Acc = Self::Acc>;
    /// Below or equal to everything.
    const LOWEST: Self;
    /// Above or equal to everything.
    const HIGHEST: Self;
    /// Sum.
    fn add(self, y: Self) -> Self;
    /// Product.
    fn mul(self, y: Self) -> Self;
    /// The larger; NaN if either is.
    fn larger(self, y: Self) -> Self;
    /// The smaller; NaN if either is.
    fn smaller(self, y: Self) -> Self;
    /// A slice to the accumulating type.
    fn load(src: &[Self], dst: &mut [Self::Acc]) {
        cast_slice(src, dst);
    }
    /// A slice back.
    fn store(src: &[Self::Acc], dst: &mut [Self]) {
        cast_slice(src, dst);
    }
}

macro_rules! number {
    ($($t:ty, $acc:ty, $low:expr, $high:expr, $add:expr, $mul:expr;)*) => {$(
        impl Number for $t {
            type Acc = $acc;
            const LOWEST: $t = $low;
            const HIGHEST: $t = $high;
            #[inline(always)]
            fn add(self, y: $t) -> $t { ($add)(self, y) }
            #[inline(always)]
            fn mul(self, y: $t) -> $t { ($mul)(self, y) }
            #[inline(always)]
            fn larger(self, y: $t) -> $t { if self > y || Ordered::is_nan(self) { self } else { y } }
            #[inline(always)]
            fn smaller(self, y: $t) -> $t { if self < y || Ordered::is_nan(self) { self } else { y } }
        }
    )*};
}
macro_rules! int_number {
    ($($t:ty),*) => { number! { $($t, $t, <$t>::MIN, <$t>::MAX, <$t>::wrapping_add, <$t>::wrapping_mul;)* } };
}
int_number!(u8, i8, i16, i32, i64);
number! {
    f32, f32, f32::NEG_INFINITY, f32::INFINITY, |x: f32, y: f32| x + y, |x: f32, y: f32| x * y;
    f64, f64, f64::NEG_INFINITY, f64::INFINITY, |x: f64, y: f64| x + y, |x: f64, y: f64| x * y;
    f16, f32, f16::NEG_INFINITY, f16::INFINITY, |x: f16, y: f16| x + y, |x: f16, y: f16| x * y;
    bf16, f32, bf16::NEG_INFINITY, bf16::INFINITY, |x: bf16, y: bf16| x + y, |x: bf16, y: bf16| x * y;
}

/// An associative operation on accumulators.
pub(crate) trait Fold: Copy + Send + Sync {
    type Acc: Ordered;
    fn init(self) -> Self::Acc;
    fn join(self, x: Self::Acc, y: Self::Acc) -> Self::Acc;
}

macro_rules! fold {
    ($($name:ident, $init:expr, $join:ident;)*) => {$(
        pub(crate) struct $name<A>(pub std::marker::PhantomData<A>);
        impl<A> Clone for $name<A> {
            fn clone(&self) -> Self { *self }
        }
        impl<A> Copy for $name<A> {}
        impl<A: Number> Fold for $name<A> {
            type Acc = A;
            #[inline(always)]
            fn init(self) -> A { $init }
            #[inline(always)]
            fn join(self, x: A, y: A) -> A { x.$join(y) }
        }
    )*};
}
fold! {
    Sum, A::from_i64(0), add;
    Prod, A::from_i64(1), mul;
    Max, A::LOWEST, larger;
    Min, A::HIGHEST, smaller;
}

/// The accumulating type of a fold, as a bound that `simd_fn!` can name.
pub(crate) trait FoldOf<A>: Fold<Acc = A> {}
impl<A, F: Fold<Acc = A>> FoldOf<A> for F {}

/// What each lane gathers from rows of [`LANES`]. Four short arrays with constant indices, which the compiler keeps in
/// registers; one long array would be written to memory after every row.
#[inline(always)]
fn lanes<A: Ordered>(f: impl FoldOf<A>, x: &[A]) -> [A; LANES] {
    const QUARTER: usize = LANES / 4;
    let init = [f.init(); QUARTER];
    let (mut a, mut b, mut c, mut d) = (init, init, init, init);
    for row in x.chunks_exact(LANES) {
        let row: &[A; LANES] = row.try_into().expect("a whole row");
        for j in 0..QUARTER {
            a[j] = f.join(a[j], row[j]);
        }
        for j in 0..QUARTER {
            b[j] = f.join(b[j], row[QUARTER + j]);
        }
        for j in 0..QUARTER {
            c[j] = f.join(c[j], row[2 * QUARTER + j]);
        }
        for j in 0..QUARTER {
            d[j] = f.join(d[j], row[3 * QUARTER + j]);
        }
    }
    let mut all = [f.init(); LANES];
    for (all, part) in all.chunks_exact_mut(QUARTER).zip([a, b, c, d]) {
        all.copy_from_slice(&part);
    }
    all
}

simd_fn! {
    pub(crate) fn fold_row[F: FoldOf<A>, A: Ordered](f: F, x: &'a [A]) -> A {
        if x.len() < 16 {
            return x.iter().fold(f.init(), |a, &v| f.join(a, v));
        }
        let mut acc = [f.init(); LANES];
        let mut add = |rows: &[A]| {
            let part = lanes(f, rows);
            for j in 0..LANES {
                acc[j] = f.join(acc[j], part[j]);
            }
        };
        // Two levels, so that no lane adds up more than `RUN` values in turn.
        let mut blocks = x.chunks_exact(LANES * RUN);
        blocks.by_ref().for_each(&mut add);
        let (rows, rest) = blocks.remainder().split_at(blocks.remainder().len() / LANES * LANES);
        add(rows);
        for (a, &v) in acc.iter_mut().zip(rest) {
            *a = f.join(*a, v);
        }
        // The tree of lanes, each level written out with a constant width: a loop over widths would stay scalar and cost
        // a short row more than its elements do.
        macro_rules! halve {
            ($($width:literal)*) => {
                $(for j in 0..$width {
                    acc[j] = f.join(acc[j], acc[j + $width]);
                })*
            };
        }
        const { assert!(LANES == 64) };
        halve!(32 16 8 4 2 1);
        acc[0]
    }
}

simd_fn! {
    fn fold_columns[F: FoldOf<A>, A: Ordered](f: F, acc: &'a mut [A], x: &'a [A]) {
        for (a, &v) in acc.iter_mut().zip(x) {
            *a = f.join(*a, v);
        }
    }
}

/// The kernels of a fold behind pointers, so that the driver is compiled once per pair of types and not per fold.
struct Kernel<'k, A> {
    init: A,
    row: &'k (dyn Fn(&[A]) -> A + Sync),
    columns: &'k (dyn Fn(&mut [A], &[A]) + Sync),
}

/// Which outputs a slice of elements belongs to: element `j` to output `first + j · step`, the step being 0 or 1.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    step: usize,
}

impl Place {
    /// What `values`, one for each output, hold for `n` elements: one value for all, or one each.
    fn of<A>(self, values: &[A], n: usize) -> &[A] {
        &values[self.first..][..if self.step == 0 { 1 } else { n }]
    }
}

/// How elements become accumulators; `None` where they are the same type and untouched.
type Load<'l, T, A> = Option<&'l (dyn Fn(Place, &[T], &mut [A]) + Sync)>;

fn reduce<T: Ordered, A: Ordered>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [A],
    load: Load<'_, T, A>,
    fold: impl FoldOf<A>,
) {
    let kernel =
        Kernel { init: fold.init(), row: &|x| fold_row(fold, x), columns: &|acc, x| fold_columns(fold, acc, x) };
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
        return dst.fill(kernel.init);
    }
    if let (Some(x), None, true) = (src.as_slice(), load, reduced.iter().all(|&r| r))
        && x.len() <= CHUNK
    {
        dst[0] = (kernel.row)(bytemuck::cast_slice(x));
        return;
    }
    let (kept, red) = split(src.shape, src.strides, reduced);
    assert_eq!(kept.len(), dst.len(), "reduce: the destination has another size than the kept axes");
    // Side by side along the innermost kept axis where that is the contiguous one.
    let columns = red.inner_stride(0) != 1 && kept.rank > 0 && kept.inner_stride(0) == 1 && kept.inner() >= 8;
    let job = Job { data: src.data, offset: src.offset, kept: &kept, red: &red, load, kernel, columns };
    let n = red.len();
    // A long reduction is cut into pieces of a fixed size; a piece of columns stays short, for its lanes add up in turn.
    let piece = if columns { 1024.max(CHUNK / kept.inner()) } else { CHUNK };
    let pieces = n.div_ceil(piece);
    if pieces == 1 {
        return job.outputs(0..n, dst);
    }
    let mut partial = vec![kernel.init; pieces * dst.len()];
    let width = dst.len();
    parallel::for_each_chunk_mut(&mut partial, width, piece, |i, out| {
        job.outputs(i * piece..n.min((i + 1) * piece), out);
    });
    let mut step = 1;
    while step < pieces {
        for i in (0..pieces - step).step_by(2 * step) {
            let (left, right) = partial.split_at_mut((i + step) * width);
            (kernel.columns)(&mut left[i * width..][..width], &right[..width]);
        }
        step *= 2;
    }
    dst.copy_from_slice(&partial[..width]);
}

struct Job<'j, T, A> {
    data: &'j [T],
    offset: usize,
    kept: &'j Nest<1>,
    red: &'j Nest<1>,
    load: Load<'j, T, A>,
    kernel: &'j Kernel<'j, A>,
    columns: bool,
}

impl<T: Ordered, A: Ordered> Job<'_, T, A> {
    /// Reduces the positions `range` of the reduced space into every output.
    fn outputs(&self, range: std::ops::Range<usize>, dst: &mut [A]) {
        let n = range.len();
        let chunk = (CHUNK / n.max(1)).clamp(1, CHUNK);
        let chunk = if self.columns { chunk.max(256) } else { chunk };
        parallel::for_each_chunk_mut(dst, chunk, n, |i, out| {
            let mut walk = self.kept.walk([self.offset], i * chunk, i * chunk + out.len());
            let mut done = 0;
            let limit = if self.columns { WIDTH } else { 1 };
            let (mut raw, mut wide, mut part) = ([T::zeroed(); WIDTH], [A::zeroed(); WIDTH], [A::zeroed(); WIDTH]);
            while let Some((run, [at])) = walk.next_run(limit) {
                let place = Place { first: i * chunk + done, step: self.columns as usize };
                let out = &mut out[done..done + run];
                done += run;
                if self.columns {
                    out.fill(self.kernel.init);
                    let mut rows = self.red.walk([at as usize], range.start, range.end);
                    let mut left = n;
                    while left > 0 {
                        part[..run].fill(self.kernel.init);
                        for _ in 0..left.min(RUN) {
                            let Some((_, [at])) = rows.next_run(1) else { break };
                            // SAFETY: `run` checked the bounds of the whole view, and this axis has step 1.
                            let row = unsafe { self.data.get_unchecked(at as usize..at as usize + run) };
                            (self.kernel.columns)(&mut part[..run], self.loaded(place, row, &mut wide));
                        }
                        (self.kernel.columns)(out, &part[..run]);
                        left -= left.min(RUN);
                    }
                } else {
                    out[0] = self.row(place, at, &range, &mut raw, &mut wide);
                }
            }
        });
    }

    /// One output: all positions `range` of the reduced space from `at` on.
    fn row(
        &self,
        place: Place,
        at: isize,
        range: &std::ops::Range<usize>,
        raw: &mut [T; WIDTH],
        wide: &mut [A; WIDTH],
    ) -> A {
        let stride = self.red.inner_stride(0);
        let direct = stride == 1 && self.load.is_none();
        let mut runs = self.red.walk([at as usize], range.start, range.end);
        let mut total = self.kernel.init;
        let mut fill = 0;
        let mut add = |x: &[A]| {
            let part = (self.kernel.row)(x);
            (self.kernel.columns)(std::slice::from_mut(&mut total), &[part]);
        };
        while let Some((run, [at])) = runs.next_run(if direct { CHUNK } else { BLOCK }) {
            if direct && run >= LANES {
                // SAFETY: `run` checked the bounds of the whole view, and this axis has step 1.
                let x = unsafe { self.data.get_unchecked(at as usize..at as usize + run) };
                add(bytemuck::cast_slice(x));
                continue;
            }
            // Short or strided runs are collected first.
            let mut from = 0;
            while from < run {
                let take = (run - from).min(WIDTH - fill);
                // SAFETY: as above, at any step.
                unsafe { gather(self.data, at + from as isize * stride, stride, &mut raw[fill..fill + take]) };
                from += take;
                fill += take;
                if fill == WIDTH {
                    add(self.loaded(place, raw, wide));
                    fill = 0;
                }
            }
        }
        if fill > 0 {
            add(self.loaded(place, &raw[..fill], wide));
        }
        total
    }

    fn loaded<'s>(&self, place: Place, x: &'s [T], wide: &'s mut [A; WIDTH]) -> &'s [A] {
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

/// A reduction that accumulates in another type than it gives back.
fn number<T: Number>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [T],
    fold: impl FoldOf<T::Acc>,
    finish: impl Fn(&mut [T::Acc]),
) {
    if T::DTYPE == T::Acc::DTYPE {
        let dst: &mut [T::Acc] = bytemuck::cast_slice_mut(dst);
        reduce(src, reduced, dst, None, fold);
        finish(dst);
    } else {
        let mut wide = vec![T::Acc::zeroed(); dst.len()];
        reduce(src, reduced, &mut wide, Some(&|_, x, y| T::load(x, y)), fold);
        finish(&mut wide);
        T::store(&wide, dst);
    }
}

/// Sum over the flagged axes.
pub fn sum<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Sum(std::marker::PhantomData), |_| ());
}

/// Mean over the flagged axes; NaN over none.
pub fn mean<T: Number + RealElement>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    let n: usize = src.shape.iter().zip(reduced).filter(|&(_, &r)| r).map(|(&n, _)| n).product();
    number(src, reduced, dst, Sum(std::marker::PhantomData), |sums| {
        for s in sums {
            *s = <T as Number>::Acc::from_f64(s.to_f64() / n as f64);
        }
    });
}

/// Product over the flagged axes.
pub fn prod<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Prod(std::marker::PhantomData), |_| ());
}

/// Largest over the flagged axes; NaN where there is one.
pub fn max<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Max(std::marker::PhantomData), |_| ());
}

/// Smallest over the flagged axes; NaN where there is one.
pub fn min<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Min(std::marker::PhantomData), |_| ());
}

/// Sum of what `load` makes of the elements, slice by slice.
pub fn sum_map<A: Ordered, B: Number<Acc = B>>(
    src: View<'_, A>,
    reduced: &[bool],
    dst: &mut [B],
    load: &(dyn Fn(&[A], &mut [B]) + Sync),
) {
    reduce(src, reduced, dst, Some(&|_, x, y| load(x, y)), Sum(std::marker::PhantomData));
}

/// Sum in another type: bool and small integers into `i64`, for example.
pub fn sum_as<A: Ordered, B: Number<Acc = B>>(src: View<'_, A>, reduced: &[bool], dst: &mut [B]) {
    sum_map(src, reduced, dst, &cast_slice);
}

/// Product in another type.
pub fn prod_as<A: Ordered, B: Number<Acc = B>>(src: View<'_, A>, reduced: &[bool], dst: &mut [B]) {
    reduce(src, reduced, dst, Some(&|_, x, y| cast_slice(x, y)), Prod(std::marker::PhantomData));
}

/// How many elements are not zero.
pub fn count_nonzero<T: Ordered>(src: View<'_, T>, reduced: &[bool], dst: &mut [i64]) {
    sum_map(src, reduced, dst, &|x, y| {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = convert::<T, Bool>(x).0 as i64;
        }
    });
}

/// Sum of squares, in the computing type.
pub fn sum_sq<T: RealElement>(src: View<'_, T>, reduced: &[bool], dst: &mut [T::Wide])
where
    T::Wide: Number<Acc = T::Wide>,
{
    sum_map(src, reduced, dst, &|x, y| {
        T::widen_slice(x, y);
        for y in y {
            *y *= *y;
        }
    });
}

fn truth(_: Place, x: &[Bool], y: &mut [u8]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.get() as u8;
    }
}

/// Is any element true?
pub fn any(src: View<'_, Bool>, reduced: &[bool], dst: &mut [Bool]) {
    reduce(src, reduced, bytemuck::cast_slice_mut(dst), Some(&truth), Max::<u8>(std::marker::PhantomData));
}

/// Are all elements true?
pub fn all(src: View<'_, Bool>, reduced: &[bool], dst: &mut [Bool]) {
    let dst: &mut [u8] = bytemuck::cast_slice_mut(dst);
    reduce(src, reduced, dst, Some(&truth), Min::<u8>(std::marker::PhantomData));
    // Over no elements the neutral 255 remains.
    dst.iter_mut().for_each(|d| *d = (*d != 0) as u8);
}

/// ln Σ eˣ over the flagged axes, without overflow.
pub fn logsumexp<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [T],
) where
    T::Wide: Number<Acc = T::Wide>,
{
    let mut peak = vec![T::zeroed(); dst.len()];
    max(src, reduced, &mut peak);
    let peak: Vec<T::Wide> = peak.into_iter().map(RealElement::wide).collect();
    let mut total = vec![T::Wide::ZERO; dst.len()];
    let load = |place: Place, x: &[T], y: &mut [T::Wide]| {
        T::widen_slice(x, y);
        exp_shifted(y, place.of(&peak, x.len()));
    };
    reduce(src, reduced, &mut total, Some(&load), Sum(std::marker::PhantomData));
    for ((d, &m), s) in dst.iter_mut().zip(&peak).zip(&total) {
        *d = T::narrow(if m.is_inf() { m } else { m + s.ln() });
    }
}

/// Sum of squared distances from the mean over the flagged axes, divided by `freedom`.
pub fn variance<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    freedom: f64,
    dst: &mut [T],
) where
    T::Wide: Number<Acc = T::Wide>,
{
    let n: usize = src.shape.iter().zip(reduced).filter(|&(_, &r)| r).map(|(&n, _)| n).product();
    let (mut mean, mut total) = (vec![T::Wide::ZERO; dst.len()], vec![T::Wide::ZERO; dst.len()]);
    let widen = |_: Place, x: &[T], y: &mut [T::Wide]| T::widen_slice(x, y);
    let load: Load<'_, T, T::Wide> = if T::HALF { Some(&widen) } else { None };
    reduce(src, reduced, &mut mean, load, Sum(std::marker::PhantomData));
    mean.iter_mut().for_each(|m| *m = T::Wide::of(Ordered::to_f64(*m) / n as f64));
    let load = |place: Place, x: &[T], y: &mut [T::Wide]| {
        T::widen_slice(x, y);
        square_shifted(y, place.of(&mean, x.len()));
    };
    reduce(src, reduced, &mut total, Some(&load), Sum(std::marker::PhantomData));
    for (d, s) in dst.iter_mut().zip(&total) {
        *d = T::from_f64(Ordered::to_f64(*s) / freedom);
    }
}

/// Applies a function of an element and a shift, which is one for all elements or one for each.
macro_rules! shifted {
    ($($name:ident, |$x:ident, $m:ident| $e:expr;)*) => {$(
        simd_fn! {
            fn $name[T: Real](x: &'a mut [T], shift: &'a [T]) {
                if let &[$m] = shift {
                    for x in x {
                        let $x = *x;
                        *x = $e;
                    }
                } else {
                    for (x, &$m) in x.iter_mut().zip(shift) {
                        let $x = *x;
                        *x = $e;
                    }
                }
            }
        }
    )*};
}
shifted! {
    exp_shifted, |x, m| (x - m).exp();
    square_shifted, |x, m| (x - m).square();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arg::position;
    use crate::view::contiguous_strides;

    /// Values of each output, in the row-major order of the reduced axes.
    fn groups<T: Ordered>(v: View<'_, T>, reduced: &[bool]) -> Vec<Vec<T>> {
        let kept: Vec<usize> = (0..reduced.len()).filter(|&i| !reduced[i]).collect();
        let mut out = vec![Vec::new(); kept.iter().map(|&i| v.shape[i]).product()];
        for i in 0..v.len() {
            let (mut rest, mut index) = (i, vec![0; v.shape.len()]);
            for axis in (0..v.shape.len()).rev() {
                index[axis] = rest % v.shape[axis];
                rest /= v.shape[axis];
            }
            let at = v.offset as isize + index.iter().zip(v.strides).map(|(&i, &s)| i as isize * s).sum::<isize>();
            let slot = kept.iter().fold(0, |acc, &a| acc * v.shape[a] + index[a]);
            out[slot].push(v.data[at as usize]);
        }
        out
    }

    fn cases() -> Vec<(Vec<usize>, Vec<isize>, Vec<bool>)> {
        let mut cases = Vec::new();
        for shape in [vec![5, 6, 7], vec![3, 2000, 9], vec![40, 3, 500], vec![1, 33_000, 1], vec![20, 17, 100]] {
            let row = contiguous_strides(&shape);
            let mut column = row.clone();
            column.swap(0, 2);
            let mut turned = shape.clone();
            turned.swap(0, 2);
            for mask in 0..8 {
                let reduced: Vec<bool> = (0..3).map(|b| mask >> b & 1 == 1).collect();
                cases.push((shape.clone(), row.clone(), reduced.clone()));
                cases.push((turned.clone(), column.clone(), reduced.clone()));
                cases.push((shape.clone(), vec![0, row[1], row[2]], reduced));
            }
        }
        cases
    }

    #[test]
    fn agree_with_plain_loops() {
        let data: Vec<f32> = (0..70_000u64).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
        for (shape, strides, reduced) in cases() {
            let v = View { data: &data, shape: &shape, strides: &strides, offset: 0 };
            let groups = groups(v, &reduced);
            let mut y = vec![0f32; groups.len()];
            sum(v, &reduced, &mut y);
            for (y, g) in y.iter().zip(&groups) {
                let want: f64 = g.iter().map(|&x| x as f64).sum();
                let scale: f64 = g.iter().map(|&x| x.abs() as f64).sum();
                assert!((*y as f64 - want).abs() <= 1e-6 * scale.max(1.0), "{shape:?} {strides:?} {reduced:?}");
            }
            max(v, &reduced, &mut y);
            assert_eq!(y, groups.iter().map(|g| g.iter().copied().fold(f32::MIN, f32::max)).collect::<Vec<_>>());
            min(v, &reduced, &mut y);
            assert_eq!(y, groups.iter().map(|g| g.iter().copied().fold(f32::MAX, f32::min)).collect::<Vec<_>>());
            logsumexp(v, &reduced, &mut y);
            for (y, g) in y.iter().zip(&groups) {
                let want = g.iter().map(|&x| (x as f64).exp()).sum::<f64>().ln();
                assert!((*y as f64 - want).abs() < 2e-6 * want.abs().max(1.0));
            }
            variance(v, &reduced, 2.0, &mut y);
            for (y, g) in y.iter().zip(&groups) {
                let mean = g.iter().map(|&x| x as f64).sum::<f64>() / g.len() as f64;
                let want = g.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / 2.0;
                assert!((*y as f64 - want).abs() < 2e-6 * want.abs().max(1.0));
            }
            let mut n = vec![0i64; groups.len()];
            count_nonzero(v, &reduced, &mut n);
            assert_eq!(n, groups.iter().map(|g| g.iter().filter(|&&x| x != 0.0).count() as i64).collect::<Vec<_>>());
            if reduced.iter().filter(|&&r| r).count() == 1 {
                let axis = reduced.iter().position(|&r| r).unwrap();
                argmax(v, axis, &mut n);
                let first = |g: &Vec<f32>| position(g, g.iter().copied().fold(f32::MIN, f32::max)) as i64;
                assert_eq!(n, groups.iter().map(first).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn other_types() {
        let shape = [3, 400];
        let strides = contiguous_strides(&shape);
        let h: Vec<f16> = (0..1200).map(|i| f16::from_f32((i % 10) as f32)).collect();
        let mut y = [f16::ZERO; 3];
        mean(View::contiguous(&h, &shape, &strides), &[false, true], &mut y);
        assert_eq!(y, [f16::from_f32(4.5); 3]);
        let b: Vec<Bool> = (0..1200).map(|i| Bool((i >= 400) as u8 * (i % 7) as u8)).collect();
        let v = View::contiguous(&b, &shape, &strides);
        let (mut n, mut t) = ([0i64; 3], [Bool(0); 3]);
        sum_as(v, &[false, true], &mut n);
        assert_eq!(n[0], 0);
        assert_eq!(n[1], (400..800).filter(|i| i % 7 != 0).count() as i64);
        any(v, &[false, true], &mut t);
        assert_eq!(t.map(Bool::get), [false, true, true]);
        all(v, &[false, true], &mut t);
        assert_eq!(t.map(Bool::get), [false; 3]);
        let i: Vec<u8> = vec![200; 1200];
        let mut w = [0u8; 1];
        sum(View::contiguous(&i, &shape, &strides), &[true, true], &mut w);
        assert_eq!(w[0], (200u32 * 1200) as u8);
        let mut e = [0.0f32; 2];
        sum(View::contiguous(&[], &[2, 0], &[0, 1]), &[false, true], &mut e);
        assert_eq!(e, [0.0; 2]);
    }

    #[test]
    fn nan_spreads_and_is_found() {
        let mut x = vec![1.0f32; 300];
        x[77] = f32::NAN;
        x[200] = 9.0;
        let v = View::contiguous(&x, &[300], &[1]);
        let mut y = [0.0];
        max(v, &[true], &mut y);
        assert!(y[0].is_nan());
        min(v, &[true], &mut y);
        assert!(y[0].is_nan());
        let mut at = [0i64];
        argmax(v, 0, &mut at);
        assert_eq!(at, [77]);
    }

    #[test]
    fn sums_stay_accurate_and_equal_for_any_threads() {
        let n = 1 << 20;
        let data: Vec<f32> = (0..n).map(|i| 0.1 + (i % 3) as f32 * 1e-3).collect();
        let want: f64 = data.iter().map(|&x| x as f64).sum();
        let run = || {
            let (mut all, mut columns) = ([0f32], vec![0f32; 64]);
            sum(View::contiguous(&data, &[n], &[1]), &[true], &mut all);
            sum(View::contiguous(&data, &[n / 64, 64], &[64, 1]), &[true, false], &mut columns);
            (all[0].to_bits(), columns.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        };
        let threads = parallel::num_threads();
        parallel::set_num_threads(1);
        let one = run();
        parallel::set_num_threads(4);
        let four = run();
        parallel::set_num_threads(threads);
        assert_eq!(one, four);
        assert!((f32::from_bits(one.0) as f64 / want - 1.0).abs() < 2e-7);
    }
}
