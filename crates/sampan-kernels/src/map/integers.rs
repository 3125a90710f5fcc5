//! The loops on integers and truth values, all of them widened to `i64`. Sums and products wrap.

use super::tables::{Loop1, Loop2, Pair};
use crate::simd::simd_fn;
use crate::vmath::select;
use sampan_formula::{Binary, Unary};

macro_rules! vector {
    (|$x:ident| $e:expr) => {{
        simd_fn! {
            fn run[](x: &'a [i64], y: &'a mut [i64]) {
                for (y, &$x) in y.iter_mut().zip(x) {
                    *y = $e;
                }
            }
        }
        Some(run as Loop1<i64>)
    }};
    (|$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn run[](a: &'a [i64], b: &'a [i64], y: &'a mut [i64]) {
                for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                    *y = $e;
                }
            }
        }
        simd_fn! {
            fn right[](a: &'a [i64], $y: i64, y: &'a mut [i64]) {
                for (y, &$x) in y.iter_mut().zip(a) {
                    *y = $e;
                }
            }
        }
        Some(Pair { slices: run as Loop2<i64>, right: Some(right), left: None, swaps: false })
    }};
}

macro_rules! each {
    (|$x:ident, $y:ident| $e:expr) => {{
        fn run(a: &[i64], b: &[i64], y: &mut [i64]) {
            for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                *y = $e;
            }
        }
        Some(Pair { slices: (|a, b, y| run(a, b, y)) as Loop2<i64>, right: None, left: None, swaps: false })
    }};
}

/// The loop of an operation on one integer.
pub fn unary(op: Unary) -> Option<Loop1<i64>> {
    match op {
        Unary::Neg => vector!(|x| x.wrapping_neg()),
        Unary::Abs => vector!(|x| x.wrapping_abs()),
        Unary::Sign => vector!(|x| x.signum()),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc | Unary::Conj | Unary::Re => vector!(|x| x),
        Unary::IsNan | Unary::IsInf => vector!(|_x| 0),
        Unary::IsFinite => vector!(|_x| 1),
        Unary::SignBit => vector!(|x| (x < 0) as i64),
        Unary::Not => vector!(|x| (x == 0) as i64),
        Unary::BitNot => vector!(|x| !x),
        _ => None,
    }
}

/// The loops of an operation on two integers. Who divides has seen to it that the divisor is not zero.
pub fn binary(op: Binary) -> Option<Pair<i64>> {
    match op {
        Binary::Add => vector!(|x, y| x.wrapping_add(y)),
        Binary::Sub => vector!(|x, y| x.wrapping_sub(y)),
        Binary::Mul | Binary::Times => vector!(|x, y| x.wrapping_mul(y)),
        Binary::Pow => each!(|x, y| power(x, y)),
        Binary::Min | Binary::Fmin => vector!(|x, y| x.min(y)),
        Binary::Max | Binary::Fmax => vector!(|x, y| x.max(y)),
        Binary::Remainder => each!(|x, y| {
            let r = x.wrapping_rem(y);
            if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
        }),
        Binary::Fmod => each!(|x, y| x.wrapping_rem(y)),
        Binary::FloorDiv => each!(|x, y| {
            let q = x.wrapping_div(y);
            q - (x.wrapping_rem(y) != 0 && (x < 0) != (y < 0)) as i64
        }),
        Binary::Lt => vector!(|x, y| (x < y) as i64),
        Binary::Le => vector!(|x, y| (x <= y) as i64),
        Binary::Gt => vector!(|x, y| (x > y) as i64),
        Binary::Ge => vector!(|x, y| (x >= y) as i64),
        Binary::Eq => vector!(|x, y| (x == y) as i64),
        Binary::Ne => vector!(|x, y| (x != y) as i64),
        Binary::And => vector!(|x, y| (x != 0 && y != 0) as i64),
        Binary::Or => vector!(|x, y| (x != 0 || y != 0) as i64),
        Binary::BitAnd => vector!(|x, y| x & y),
        Binary::BitOr => vector!(|x, y| x | y),
        Binary::BitXor => vector!(|x, y| x ^ y),
        // A shift by more bits than there are is what the formula makes of it; here it must only not overflow.
        Binary::Shl => each!(|x, y| x.wrapping_shl(y as u32)),
        Binary::Shr => each!(|x, y| x.wrapping_shr(y as u32)),
        Binary::Gcd => each!(|x, y| common_divisor(x, y)),
        Binary::Lcm => each!(|x, y| match common_divisor(x, y) {
            0 => 0,
            g => (x / g).wrapping_mul(y).wrapping_abs(),
        }),
        _ => None,
    }
}

simd_fn! {
    /// Takes from `a` where the condition holds, else from `b`.
    pub fn select_loop[](c: &'a [i64], a: &'a [i64], b: &'a [i64], y: &'a mut [i64]) {
        for (((y, &c), &a), &b) in y.iter_mut().zip(c).zip(a).zip(b) {
            *y = select(c != 0, a, b);
        }
    }
}

fn common_divisor(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x, y);
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

/// A power that wraps; a negative exponent gives the fraction cut to an integer.
fn power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (1, ..0) => 1,
        (-1, ..0) => 1 - 2 * (exponent & 1),
        (_, ..0) => 0,
        _ => {
            let (mut base, mut n, mut out) = (base, exponent, 1i64);
            while n > 0 {
                if n & 1 == 1 {
                    out = out.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                n >>= 1;
            }
            out
        }
    }
}
