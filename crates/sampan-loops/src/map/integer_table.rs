// The loops on one type of integers; included for each.

macro_rules! vector {
    (|$x:ident| $e:expr) => {{
        simd_fn! {
            fn run[](x: &'a [Int], y: &'a mut [Int]) {
                for (y, &$x) in y.iter_mut().zip(x) {
                    *y = $e;
                }
            }
        }
        Some(run as Loop1<Int>)
    }};
    (|$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn run[](a: &'a [Int], b: &'a [Int], y: &'a mut [Int]) {
                for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                    *y = $e;
                }
            }
        }
        simd_fn! {
            fn right[](a: &'a [Int], $y: Int, y: &'a mut [Int]) {
                for (y, &$x) in y.iter_mut().zip(a) {
                    *y = $e;
                }
            }
        }
        Some(Pair { slices: run as Loop2<Int>, right: Some(right), left: None, swaps: false })
    }};
}

macro_rules! each {
    (|$x:ident, $y:ident| $e:expr) => {{
        fn run(a: &[Int], b: &[Int], y: &mut [Int]) {
            for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                *y = $e;
            }
        }
        Some(Pair { slices: (|a, b, y| run(a, b, y)) as Loop2<Int>, right: None, left: None, swaps: false })
    }};
}

/// The loop of an operation on one integer.
pub fn unary(op: Unary) -> Option<Loop1<Int>> {
    match op {
        Unary::Neg => vector!(|x| x.wrapping_neg()),
        Unary::Abs => vector!(|x| x.wrapping_abs()),
        Unary::Sign => vector!(|x| x.signum()),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc | Unary::Conj | Unary::Re => vector!(|x| x),
        Unary::IsNan | Unary::IsInf => vector!(|_x| 0),
        Unary::IsFinite => vector!(|_x| 1),
        Unary::SignBit => vector!(|x| (x < 0) as Int),
        Unary::Not => vector!(|x| (x == 0) as Int),
        Unary::BitNot => vector!(|x| !x),
        _ => None,
    }
}

/// The loops of an operation on two integers. Who divides has seen to it that the divisor is not zero.
pub fn binary(op: Binary) -> Option<Pair<Int>> {
    match op {
        Binary::Add => vector!(|x, y| x.wrapping_add(y)),
        Binary::Sub => vector!(|x, y| x.wrapping_sub(y)),
        Binary::Mul | Binary::Times => vector!(|x, y| x.wrapping_mul(y)),
        Binary::Pow => each!(|x, y| power(x as i64, y as i64) as Int),
        Binary::Min | Binary::Fmin => vector!(|x, y| x.min(y)),
        Binary::Max | Binary::Fmax => vector!(|x, y| x.max(y)),
        Binary::Remainder => each!(|x, y| {
            let r = x.wrapping_rem(y);
            if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
        }),
        Binary::Fmod => each!(|x, y| x.wrapping_rem(y)),
        Binary::FloorDiv => each!(|x, y| {
            let q = x.wrapping_div(y);
            q - (x.wrapping_rem(y) != 0 && (x < 0) != (y < 0)) as Int
        }),
        Binary::Lt => vector!(|x, y| (x < y) as Int),
        Binary::Le => vector!(|x, y| (x <= y) as Int),
        Binary::Gt => vector!(|x, y| (x > y) as Int),
        Binary::Ge => vector!(|x, y| (x >= y) as Int),
        Binary::Eq => vector!(|x, y| (x == y) as Int),
        Binary::Ne => vector!(|x, y| (x != y) as Int),
        Binary::And => vector!(|x, y| (x != 0 && y != 0) as Int),
        Binary::Or => vector!(|x, y| (x != 0 || y != 0) as Int),
        Binary::BitAnd => vector!(|x, y| x & y),
        Binary::BitOr => vector!(|x, y| x | y),
        Binary::BitXor => vector!(|x, y| x ^ y),
        // A shift by more bits than there are is what the formula makes of it; here it must only not overflow.
        Binary::Shl => each!(|x, y| x.wrapping_shl(y as u32)),
        Binary::Shr => each!(|x, y| x.wrapping_shr(y as u32)),
        Binary::Gcd => each!(|x, y| common_divisor(x as i64, y as i64) as Int),
        Binary::Lcm => each!(|x, y| match common_divisor(x as i64, y as i64) {
            0 => 0,
            g => (x as i64 / g).wrapping_mul(y as i64).wrapping_abs() as Int,
        }),
        _ => None,
    }
}

simd_fn! {
    /// Takes from `a` where the condition holds, else from `b`.
    pub fn select_loop[](c: &'a [Int], a: &'a [Int], b: &'a [Int], y: &'a mut [Int]) {
        for (((y, &c), &a), &b) in y.iter_mut().zip(c).zip(a).zip(b) {
            *y = select(c != 0, a, b);
        }
    }
}
