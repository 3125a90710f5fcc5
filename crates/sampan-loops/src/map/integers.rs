//! The loops on integers and truth values, widened to `i32` or `i64`. Sums and products wrap.

macro_rules! integer_loops {
    ($int:ident, $name:ident) => {
        pub mod $name {
            use super::super::tables::{Loop1, Loop2, Pair};
            use super::{common_divisor, power};
            use crate::simd::simd_fn;
            use crate::vmath::select;
            use sampan_formula::{Binary, Unary};

            type Int = $int;
            include!("integer_table.rs");
        }
    };
}
integer_loops!(i32, narrow);
integer_loops!(i64, wide);

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
