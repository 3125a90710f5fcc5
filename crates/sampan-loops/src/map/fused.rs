//! Chains that networks spend their time in, compiled as one loop. They are found by the formula they are; a chain that is
//! not here runs block by block, to the same bits.
//!
//! A chain is written once, for anything that computes like a number: with [`Number`] it gives the formula to look for, with
//! `f32` the loop.

use super::tables::Compute;
use crate::Bool;
use crate::simd::simd_fn;
use crate::vmath::{self, Real};
use sampan_formula::{Formula, Number};
use std::any::Any;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::LazyLock;

/// A formula as one loop.
pub struct Fused<T> {
    /// `y = f(inputs, captured constants)`.
    pub run: Run<T>,
}
/// A formula over a slice and a mask as one loop.
pub struct Masked<T> {
    /// `y = f(x, mask, captured constants)`.
    pub run: for<'a> fn(&'a [T], &'a [Bool], &'a [T], &'a mut [T]),
}
type Run<T> = fn(&[&[T]], &[T], &mut [T]);

/// What computes like a number.
trait Scalar: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    fn of(v: f64) -> Self;
    fn times(self, y: Self) -> Self;
    fn min(self, y: Self) -> Self;
    fn max(self, y: Self) -> Self;
    fn le(self, y: Self) -> Self;
    fn lt(self, y: Self) -> Self;
    fn ge(self, y: Self) -> Self;
    fn gt(self, y: Self) -> Self;
    fn exp(self) -> Self;
    fn erf(self) -> Self;
    fn sigmoid(self) -> Self;
    fn softplus(self) -> Self;
    fn select(self, a: Self, b: Self) -> Self;
}

impl Scalar for Number {
    fn of(v: f64) -> Number {
        v.into()
    }
    fn times(self, y: Number) -> Number {
        self.times(y)
    }
    fn min(self, y: Number) -> Number {
        self.min(y)
    }
    fn max(self, y: Number) -> Number {
        self.max(y)
    }
    fn le(self, y: Number) -> Number {
        self.le(y)
    }
    fn lt(self, y: Number) -> Number {
        self.lt(y)
    }
    fn ge(self, y: Number) -> Number {
        self.ge(y)
    }
    fn gt(self, y: Number) -> Number {
        self.gt(y)
    }
    fn exp(self) -> Number {
        self.exp()
    }
    fn erf(self) -> Number {
        self.erf()
    }
    fn sigmoid(self) -> Number {
        self.sigmoid()
    }
    fn softplus(self) -> Number {
        self.softplus()
    }
    fn select(self, a: Number, b: Number) -> Number {
        sampan_formula::select(self, a, b)
    }
}

#[inline(always)]
fn truth(b: bool) -> f32 {
    vmath::select(b, 1.0, 0.0)
}

impl Scalar for f32 {
    #[inline(always)]
    fn of(v: f64) -> f32 {
        v as f32
    }
    #[inline(always)]
    fn times(self, y: f32) -> f32 {
        vmath::select((self == 0.0) | (y == 0.0), 0.0, self * y)
    }
    #[inline(always)]
    fn min(self, y: f32) -> f32 {
        Real::min(self, y)
    }
    #[inline(always)]
    fn max(self, y: f32) -> f32 {
        Real::max(self, y)
    }
    #[inline(always)]
    fn le(self, y: f32) -> f32 {
        truth(self <= y)
    }
    #[inline(always)]
    fn lt(self, y: f32) -> f32 {
        truth(self < y)
    }
    #[inline(always)]
    fn ge(self, y: f32) -> f32 {
        truth(self >= y)
    }
    #[inline(always)]
    fn gt(self, y: f32) -> f32 {
        truth(self > y)
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        Real::exp(self)
    }
    #[inline(always)]
    fn erf(self) -> f32 {
        Real::erf(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> f32 {
        Real::sigmoid(self)
    }
    #[inline(always)]
    fn softplus(self) -> f32 {
        Real::softplus(self)
    }
    #[inline(always)]
    fn select(self, a: f32, b: f32) -> f32 {
        vmath::select(self != 0.0, a, b)
    }
}

/// Writes a chain as a formula and as a loop: `chain!(|x, g| [c0] body)`, where `S` is the type.
macro_rules! chain {
    (|$($x:ident),+| [$($c:ident),*] $body:expr) => {{
        #[inline(always)]
        fn compute<S: Scalar>($($x: S,)+ $($c: S),*) -> S {
            $body
        }
        chain!(@loop ($($x),+) [$($c),*]);
        const INPUTS: usize = [$(stringify!($x)),+].len();
        const CAPTURED: usize = <[&str]>::len(&[$(stringify!($c)),*]);
        let formula = Formula::write(INPUTS, CAPTURED, &|inputs, captured| {
            let mut all = inputs.iter().chain(captured).copied();
            let mut next = || all.next().expect("one for each");
            $(let $x = next();)+
            $(let $c = next();)*
            compute($($x,)+ $($c),*)
        });
        (formula, run as Run<f32>)
    }};
    (@loop ($x:ident) [$($c:ident),*]) => {
        simd_fn! {
            fn vector[](x: &'a [f32], constants: &'a [f32], out: &'a mut [f32]) {
                let mut constants = constants.iter().copied();
                $(let $c = constants.next().expect("one for each");)*
                let _ = &mut constants;
                for (out, &$x) in out.iter_mut().zip(x) {
                    *out = compute($x, $($c),*);
                }
            }
        }
        fn run(inputs: &[&[f32]], constants: &[f32], out: &mut [f32]) {
            vector(inputs[0], constants, out)
        }
    };
    (@loop ($x:ident, $y:ident) [$($c:ident),*]) => {
        simd_fn! {
            fn vector[](x: &'a [f32], y: &'a [f32], constants: &'a [f32], out: &'a mut [f32]) {
                let mut constants = constants.iter().copied();
                $(let $c = constants.next().expect("one for each");)*
                let _ = &mut constants;
                for ((out, &$x), &$y) in out.iter_mut().zip(x).zip(y) {
                    *out = compute($x, $y, $($c),*);
                }
            }
        }
        fn run(inputs: &[&[f32]], constants: &[f32], out: &mut [f32]) {
            vector(inputs[0], inputs[1], constants, out)
        }
    };
}

const ROOT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
const TWO_BY_ROOT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// What dropout does to an element, and to its gradient.
#[inline(always)]
fn scaled_where<S: Scalar>(x: S, kept: S, scale: S, other: S) -> S {
    kept.select(x * scale, other)
}

/// The chain of dropout over a mask as it lies in memory.
pub(super) static DROPOUT: LazyLock<Formula> = LazyLock::new(|| {
    Formula::write(2, 2, &|inputs, captured| scaled_where(inputs[0], inputs[1], captured[0], captured[1]))
});

simd_fn! {
    fn dropout[](x: &'a [f32], kept: &'a [Bool], constants: &'a [f32], out: &'a mut [f32]) {
        let (scale, other) = (constants[0], constants[1]);
        for ((out, &x), kept) in out.iter_mut().zip(x).zip(kept) {
            *out = vmath::select(kept.0 != 0, x * scale, other);
        }
    }
}

/// The loop of a formula over a slice and a mask, if it is the compiled one.
pub fn find_masked(formula: &Formula) -> Option<Masked<f32>> {
    (*formula == *DROPOUT).then_some(Masked { run: dropout })
}

/// The compiled chains: activations and what they do to gradients. In a gradient `y` is a result and `g` its gradient.
pub(super) static CHAINS: LazyLock<Vec<(Formula, Run<f32>)>> = LazyLock::new(|| {
    vec![
        // relu, and backwards
        chain!(|x| [] x.max(S::of(0.0))),
        chain!(|y, g| [] y.le(S::of(0.0)).select(S::of(0.0), g)),
        // clip, hardtanh, relu6
        chain!(|x| [low, high] x.max(low).min(high)),
        // hardtanh, backwards
        chain!(|y, g| [low, high] y.le(low).select(S::of(0.0), y.ge(high).select(S::of(0.0), g))),
        // leaky_relu, and backwards
        chain!(|x| [slope] x.gt(S::of(0.0)).select(x, x * slope)),
        chain!(|x, g| [slope] x.ge(S::of(0.0)).select(g, g * slope)),
        // sigmoid and tanh, backwards
        chain!(|y, g| [] g * (y * (S::of(1.0) - y))),
        chain!(|y, g| [] g * (S::of(1.0) - y * y)),
        // silu, and backwards
        chain!(|x| [] x.times(x.sigmoid())),
        chain!(|x, g| [] {
            let s = x.sigmoid();
            g * s + (g * x).times(s * (S::of(1.0) - s))
        }),
        // gelu, and backwards
        chain!(|x| [](S::of(0.5) * x).times(S::of(1.0) + (x * S::of(ROOT_HALF)).erf())),
        chain!(|x, g| [] {
            let half = S::of(0.5) * x;
            let u = x * S::of(ROOT_HALF);
            let cdf = S::of(1.0) + u.erf();
            (g * half).times((-(u * u)).exp() * S::of(TWO_BY_ROOT_PI)) * S::of(ROOT_HALF) + g * cdf * S::of(0.5)
        }),
        // hardswish, and backwards
        chain!(|x| [] x.times((x + S::of(3.0)).max(S::of(0.0)).min(S::of(6.0)) * S::of(1.0 / 6.0))),
        chain!(|x, g| [] {
            let up = x + S::of(3.0);
            let open = up.max(S::of(0.0));
            let inner = open.lt(S::of(6.0)).select(g * x * S::of(1.0 / 6.0), S::of(0.0));
            g * (open.min(S::of(6.0)) * S::of(1.0 / 6.0)) + up.gt(S::of(0.0)).select(inner, S::of(0.0))
        }),
        // softplus, and backwards
        chain!(|x| [beta, inverse, threshold] {
            let z = x * beta;
            z.gt(threshold).select(x, z.softplus() * inverse)
        }),
        chain!(|x, g| [beta, inverse, threshold] {
            let z = x * beta;
            let straight = z.gt(threshold);
            straight.select(g, S::of(0.0)) + (straight.select(S::of(0.0), g) * inverse).times(z.sigmoid()) * beta
        }),
        // hardsigmoid, and backwards
        chain!(|x| [slope, offset](x * slope + offset).max(S::of(0.0)).min(S::of(1.0))),
        chain!(|y, g| [slope] y.le(S::of(0.0)).select(S::of(0.0), y.ge(S::of(1.0)).select(S::of(0.0), g * slope))),
        // dropout
        chain!(|x, kept| [scale, other] scaled_where(x, kept, scale, other)),
    ]
});

/// The loop of a formula, if it is one of the compiled ones.
pub fn find<T: Compute>(formula: &Formula) -> Option<Fused<T>> {
    let found = CHAINS.iter().find(|(f, _)| f == formula)?;
    (&found.1 as &dyn Any).downcast_ref::<Run<T>>().map(|&run| Fused { run })
}
