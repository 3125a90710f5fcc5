//! Expressions while they are written: numbers that note what is done with them.

use crate::operation::{Binary, Unary};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Neg, Not, Sub};

/// Where a value of a formula comes from. Operands stand before what is made of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    /// One of the numbers that the formula is over.
    Input(usize),
    /// One of its captured constants.
    Captured(usize),
    /// A number that is written in it.
    Literal(f64),
    /// An operation on one value.
    Unary(Unary, usize),
    /// An operation on two values.
    Binary(Binary, usize, usize),
    /// The second value where the first holds, else the third.
    Select(usize, usize, usize),
}

impl Source {
    /// The values it is made of.
    pub fn operands(self) -> impl Iterator<Item = usize> {
        let (n, at) = match self {
            Source::Unary(_, a) => (1, [a, 0, 0]),
            Source::Binary(_, a, b) => (2, [a, b, 0]),
            Source::Select(c, a, b) => (3, [c, a, b]),
            _ => (0, [0; 3]),
        };
        at.into_iter().take(n)
    }

    /// The same operation on other values.
    pub fn map(self, f: impl Fn(usize) -> usize) -> Source {
        match self {
            Source::Unary(op, a) => Source::Unary(op, f(a)),
            Source::Binary(op, a, b) => Source::Binary(op, f(a), f(b)),
            Source::Select(c, a, b) => Source::Select(f(c), f(a), f(b)),
            leaf => leaf,
        }
    }

    fn key(self) -> Key {
        match self {
            Source::Input(i) => Key(0, 0, [i, 0, 0], 0),
            Source::Captured(i) => Key(1, 0, [i, 0, 0], 0),
            Source::Literal(v) => Key(2, 0, [0; 3], v.to_bits()),
            Source::Unary(op, a) => Key(3, op as u8, [a, 0, 0], 0),
            Source::Binary(op, a, b) => Key(4, op as u8, [a, b, 0], 0),
            Source::Select(c, a, b) => Key(5, 0, [c, a, b], 0),
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key(u8, u8, [usize; 3], u64);

/// Values in the order they are made; equal ones are made once.
#[derive(Default)]
pub(crate) struct Values {
    pub list: Vec<Source>,
    known: HashMap<Key, usize>,
}

impl Values {
    pub fn add(&mut self, source: Source) -> usize {
        *self.known.entry(source.key()).or_insert_with(|| {
            self.list.push(source);
            self.list.len() - 1
        })
    }
}

thread_local! {
    static WRITING: RefCell<Vec<Values>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f`, whose numbers are noted, after these values.
pub(crate) fn write<R>(known: &[Source], f: impl FnOnce() -> R) -> (Values, R) {
    let mut values = Values::default();
    known.iter().for_each(|&s| {
        values.add(s);
    });
    WRITING.with_borrow_mut(|w| w.push(values));
    let result = f();
    (WRITING.with_borrow_mut(|w| w.pop()).expect("pushed above"), result)
}

/// A number of a formula that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number(pub(crate) usize);

impl Number {
    pub(crate) fn new(source: Source) -> Number {
        WRITING.with_borrow_mut(|w| Number(w.last_mut().expect("inside formula!").add(source)))
    }

    /// Where it comes from.
    pub(crate) fn source(self) -> Source {
        WRITING.with_borrow(|w| w.last().expect("inside formula!").list[self.0])
    }

    /// Does it depend on an input?
    pub(crate) fn varies(self) -> bool {
        fn depends(values: &[Source], at: usize) -> bool {
            matches!(values[at], Source::Input(_)) || values[at].operands().any(|o| depends(values, o))
        }
        WRITING.with_borrow(|w| depends(&w.last().expect("inside formula!").list, self.0))
    }

    /// Its value, if that is written in the formula.
    pub(crate) fn literal(self) -> Option<f64> {
        if let Source::Literal(v) = self.source() { Some(v) } else { None }
    }

    fn unary(self, op: Unary) -> Number {
        Number::new(Source::Unary(op, self.0))
    }

    fn binary(self, op: Binary, other: impl Into<Number>) -> Number {
        let other = other.into();
        Number::new(Source::Binary(op, self.0, other.0))
    }
}

impl From<f64> for Number {
    fn from(v: f64) -> Number {
        Number::new(Source::Literal(v))
    }
}

/// `a` where `condition` holds, else `b`.
pub fn select(condition: Number, a: impl Into<Number>, b: impl Into<Number>) -> Number {
    let (a, b) = (a.into(), b.into());
    Number::new(Source::Select(condition.0, a.0, b.0))
}

/// The methods of [`Number`]: operations by name.
macro_rules! methods {
    (unary { $($name:ident = $op:ident,)* } binary { $($pair:ident = $op2:ident,)* }) => {
        // A shift is written `x.shl(y)`, as all operations are.
        #[allow(clippy::should_implement_trait)]
        impl Number {
            $(
                #[doc = concat!("See [`Unary::", stringify!($op), "`].")]
                pub fn $name(self) -> Number { self.unary(Unary::$op) }
            )*
            $(
                #[doc = concat!("See [`Binary::", stringify!($op2), "`].")]
                pub fn $pair(self, other: impl Into<Number>) -> Number { self.binary(Binary::$op2, other) }
            )*
        }
    };
}

methods! {
    unary {
        abs = Abs, sign = Sign, recip = Recip, sqrt = Sqrt, rsqrt = Rsqrt, exp = Exp, exp2 = Exp2, expm1 = Expm1, ln = Ln, log2 = Log2,
        log10 = Log10, log1p = Log1p, sin = Sin, cos = Cos, tan = Tan, asin = Asin, acos = Acos, atan = Atan, sinh = Sinh,
        cosh = Cosh, tanh = Tanh, asinh = Asinh, acosh = Acosh, atanh = Atanh, sigmoid = Sigmoid, softplus = Softplus,
        erf = Erf, erfinv = Erfinv, lgamma = Lgamma, digamma = Digamma, i0 = I0, i0e = I0e, i1 = I1, i1e = I1e,
        floor = Floor, ceil = Ceil, round = Round, trunc = Trunc, mantissa = Mantissa, exponent = Exponent,
        is_nan = IsNan, is_inf = IsInf, is_finite = IsFinite, sign_bit = SignBit, bit_not = BitNot, conj = Conj, re = Re,
        im = Im, angle = Angle,
    }
    binary {
        times = Times, pow = Pow, atan2 = Atan2, hypot = Hypot, min = Min, max = Max, fmin = Fmin, fmax = Fmax,
        remainder = Remainder, fmod = Fmod, floor_div = FloorDiv, copysign = Copysign, next_after = NextAfter, lt = Lt,
        le = Le, gt = Gt, ge = Ge, equals = Eq, differs = Ne, and = And, or = Or, bit_and = BitAnd, bit_or = BitOr,
        bit_xor = BitXor, shl = Shl, shr = Shr, gcd = Gcd, lcm = Lcm, gammainc = Gammainc, gammaincc = Gammaincc,
        polygamma_at = Polygamma, complex = Complex,
    }
}

impl Number {
    /// `x * x`.
    pub fn square(self) -> Number {
        self * self
    }
}

impl Neg for Number {
    type Output = Number;
    fn neg(self) -> Number {
        self.unary(Unary::Neg)
    }
}

impl Not for Number {
    type Output = Number;
    fn not(self) -> Number {
        self.unary(Unary::Not)
    }
}

macro_rules! operators {
    ($($trait:ident $name:ident $op:ident),*) => {$(
        impl<N: Into<Number>> $trait<N> for Number {
            type Output = Number;
            fn $name(self, other: N) -> Number { self.binary(Binary::$op, other) }
        }
        impl $trait<Number> for f64 {
            type Output = Number;
            fn $name(self, other: Number) -> Number { Number::from(self).binary(Binary::$op, other) }
        }
    )*};
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);
