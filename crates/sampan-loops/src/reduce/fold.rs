//! What a reduction does with two elements, and the loops over rows and columns of them.

use super::Number;
use crate::Ordered;
use crate::simd::simd_fn;
use std::marker::PhantomData;

/// Independent accumulators of a row; a power of two that fills several vectors.
pub(super) const LANES: usize = 64;
/// Lanes that are worked on together: an array of them stays in registers.
const QUARTER: usize = LANES / 4;
/// Values that one accumulator takes in turn before it is set aside.
const RUN: usize = 32;
/// Rows whose trees are worked on together.
const BATCH: usize = 32;
/// Rows below this length are added up in turn: the tree of lanes would cost more than they do.
const SHORT: usize = 16;

/// An associative operation on accumulators.
pub(crate) trait Fold: Copy + Send + Sync {
    type Acc: Ordered;
    fn init(self) -> Self::Acc;
    fn join(self, x: Self::Acc, y: Self::Acc) -> Self::Acc;
    /// What [`join`](Fold::join) gives, in fewer instructions, except that a NaN in `y` may be lost.
    fn step(self, x: Self::Acc, y: Self::Acc) -> Self::Acc;
    /// Whether `step` loses something: then NaNs are looked for on the side.
    fn loses_nan(self) -> bool;
}

macro_rules! fold {
    ($($name:ident, $init:expr, $join:ident, |$x:ident, $y:ident| $step:expr, $loses:expr;)*) => {$(
        pub(crate) struct $name<A>(pub PhantomData<A>);
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
            #[inline(always)]
            fn step(self, $x: A, $y: A) -> A { $step }
            #[inline(always)]
            fn loses_nan(self) -> bool { $loses }
        }
    )*};
}
fold! {
    Sum, A::from_i64(0), add, |x, y| x.add(y), false;
    Prod, A::from_i64(1), mul, |x, y| x.mul(y), false;
    Max, A::LOWEST, larger, |x, y| if y > x { y } else { x }, Ordered::is_nan(A::from_f64(f64::NAN));
    Min, A::HIGHEST, smaller, |x, y| if y < x { y } else { x }, Ordered::is_nan(A::from_f64(f64::NAN));
}

/// The accumulating type of a fold, as a bound that `simd_fn!` can name.
pub(crate) trait FoldOf<A>: Fold<Acc = A> {}
impl<A, F: Fold<Acc = A>> FoldOf<A> for F {}

/// Rows of one array: row `i` is `width` elements from `at + i · step` on.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, A> {
    pub data: &'a [A],
    pub at: usize,
    pub step: isize,
    pub count: usize,
    pub width: usize,
}

impl<'a, A> Rows<'a, A> {
    /// One row that is there already.
    pub fn one(data: &'a [A]) -> Self {
        Rows { data, at: 0, step: 0, count: 1, width: data.len() }
    }

    #[inline(always)]
    pub fn get(&self, i: usize) -> &'a [A] {
        &self.data[self.at.wrapping_add_signed(i as isize * self.step)..][..self.width]
    }
}

/// The accumulators of a row. Four short arrays with constant indices, which the compiler keeps in registers; one long
/// array would be written to memory after every step.
#[derive(Clone, Copy)]
struct Lanes<A>([A; QUARTER], [A; QUARTER], [A; QUARTER], [A; QUARTER]);

/// Elements `QUARTER · i` to `QUARTER · (i + 1)`.
#[inline(always)]
fn quarter<A: Copy>(x: &[A], i: usize) -> [A; QUARTER] {
    x[i * QUARTER..][..QUARTER].try_into().expect("a quarter")
}

#[inline(always)]
fn join<A: Ordered>(f: impl FoldOf<A>, mut x: [A; QUARTER], y: [A; QUARTER]) -> [A; QUARTER] {
    for j in 0..QUARTER {
        x[j] = f.join(x[j], y[j]);
    }
    x
}

#[inline(always)]
fn step_all<A: Ordered>(f: impl FoldOf<A>, mut x: [A; QUARTER], y: [A; QUARTER]) -> [A; QUARTER] {
    for j in 0..QUARTER {
        x[j] = f.step(x[j], y[j]);
    }
    x
}

impl<A: Ordered> Lanes<A> {
    #[inline(always)]
    fn new(f: impl FoldOf<A>) -> Self {
        let init = [f.init(); QUARTER];
        Lanes(init, init, init, init)
    }

    #[inline(always)]
    fn load(x: &[A; LANES]) -> Self {
        Lanes(quarter(x, 0), quarter(x, 1), quarter(x, 2), quarter(x, 3))
    }

    #[inline(always)]
    fn join(self, f: impl FoldOf<A>, y: Self) -> Self {
        Lanes(join(f, self.0, y.0), join(f, self.1, y.1), join(f, self.2, y.2), join(f, self.3, y.3))
    }

    /// What each lane gathers from a whole number of steps.
    #[inline(always)]
    fn gather(f: impl FoldOf<A>, x: &[A]) -> Self {
        // Plain loops: the closure of an iterator's `fold` would not be compiled for the caller's instruction set.
        let (mut lanes, mut nan) = (Lanes::new(f), [f.init(); QUARTER]);
        for step in x.chunks_exact(LANES) {
            let y = Lanes::load(step.try_into().expect("a whole step"));
            lanes = Lanes(
                step_all(f, lanes.0, y.0),
                step_all(f, lanes.1, y.1),
                step_all(f, lanes.2, y.2),
                step_all(f, lanes.3, y.3),
            );
            if f.loses_nan() {
                for j in 0..QUARTER {
                    let found = y.0[j].is_nan() | y.1[j].is_nan() | y.2[j].is_nan() | y.3[j].is_nan();
                    nan[j] = if found { A::from_f64(f64::NAN) } else { nan[j] };
                }
            }
        }
        if f.loses_nan() {
            lanes.0 = join(f, lanes.0, nan);
        }
        lanes
    }

    /// The upper levels of the tree of lanes.
    #[inline(always)]
    fn quarter(self, f: impl FoldOf<A>) -> [A; QUARTER] {
        join(f, join(f, self.0, self.2), join(f, self.1, self.3))
    }
}

/// The upper levels of a row that is not short.
#[inline(always)]
fn fold_lanes<A: Ordered>(f: impl FoldOf<A>, x: &[A]) -> [A; QUARTER] {
    // Two levels, so that no lane adds up more than `RUN` values in turn.
    let (mut lanes, mut rest) = (Lanes::new(f), x);
    while rest.len() >= LANES {
        let (block, more) = rest.split_at(rest.len().min(LANES * RUN) / LANES * LANES);
        lanes = lanes.join(f, Lanes::gather(f, block));
        rest = more;
    }
    if !rest.is_empty() {
        let mut padded = [f.init(); LANES];
        padded[..rest.len()].copy_from_slice(rest);
        lanes = lanes.join(f, Lanes::load(&padded));
    }
    lanes.quarter(f)
}

simd_fn! {
    /// Each row into its place of `out`. Many rows in one call: a short row costs no more than finding the instruction
    /// set does.
    pub(super) fn fold_rows[F: FoldOf<A>, A: Ordered](f: F, out: &'a mut [A], x: Rows<'a, A>) {
        if x.width < SHORT {
            for (i, out) in out.iter_mut().enumerate() {
                let mut acc = f.init();
                for &v in x.get(i) {
                    acc = f.join(acc, v);
                }
                *out = acc;
            }
            return;
        }
        let mut trees = [[f.init(); QUARTER]; BATCH];
        for (b, out) in out.chunks_mut(BATCH).enumerate() {
            let trees = &mut trees[..out.len()];
            for (i, tree) in trees.iter_mut().enumerate() {
                *tree = fold_lanes(f, x.get(b * BATCH + i));
            }
            // Level by level through memory: the halves of a row are whole vectors there and need no shuffles, and the
            // rows do not wait for each other. The black box keeps the compiler from gathering one lane of many rows.
            macro_rules! halve {
                ($($width:literal)*) => {
                    $(for tree in trees.iter_mut() {
                        let tree = std::hint::black_box(tree);
                        for j in 0..$width {
                            tree[j] = f.join(tree[j], tree[j + $width]);
                        }
                    })*
                };
            }
            const { assert!(QUARTER == 16) };
            halve!(8 4 2);
            for (out, tree) in out.iter_mut().zip(trees) {
                *out = f.join(tree[0], tree[1]);
            }
        }
    }
}

/// One row.
pub(crate) fn fold_row<A: Ordered>(f: impl FoldOf<A>, x: &[A]) -> A {
    use std::hint::black_box;
    let mut out = f.init();
    // A loop that is known to have one row is compiled into something else, which is five times as slow.
    fold_rows(f, black_box(std::slice::from_mut(&mut out)), black_box(Rows::one(x)));
    out
}

simd_fn! {
    /// All rows onto `acc`, element by element: four at a time as a tree, so that `acc` is read and written once for
    /// four. (More would be rows that lie a power of two apart and push each other out of the cache.)
    pub(super) fn fold_columns[F: FoldOf<A>, A: Ordered](f: F, acc: &'a mut [A], x: Rows<'a, A>) {
        assert_eq!(acc.len(), x.width, "one accumulator for each column");
        let mut done = 0;
        while done + 4 <= x.count {
            let (x0, x1, x2, x3) = (x.get(done), x.get(done + 1), x.get(done + 2), x.get(done + 3));
            let n = acc.len();
            let (x0, x1, x2, x3) = (&x0[..n], &x1[..n], &x2[..n], &x3[..n]);
            if f.loses_nan() {
                for j in 0..n {
                    let four = f.step(f.step(x0[j], x1[j]), f.step(x2[j], x3[j]));
                    let found = x0[j].is_nan() | x1[j].is_nan() | x2[j].is_nan() | x3[j].is_nan();
                    acc[j] = if found { A::from_f64(f64::NAN) } else { f.step(acc[j], four) };
                }
            } else {
                for j in 0..n {
                    acc[j] = f.join(acc[j], f.join(f.join(x0[j], x1[j]), f.join(x2[j], x3[j])));
                }
            }
            done += 4;
        }
        for i in done..x.count {
            for (a, &v) in acc.iter_mut().zip(x.get(i)) {
                *a = f.join(*a, v);
            }
        }
    }
}
