//! Branch-free `f32` functions that LLVM turns into vector code: range reduction, a polynomial fitted to the reduced
//! range, and selects for the special values. Errors stay within 2 units in the last place. `mul_add` is one
//! instruction wherever the loop was compiled for AVX2 or better (see [`crate::simd`]).

// The fitted coefficients carry more digits than f32 holds, and splits of ln 2 are not "approximations of LN_2".
#![allow(clippy::excessive_precision, clippy::approx_constant)]

use crate::vmath::select;

/// Adding and subtracting this rounds to the nearest integer, which then sits in the low bits.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
const LN2_HI: f32 = 0.693_359_375;
const LN2_LO: f32 = -2.121_944_4e-4;

#[inline(always)]
fn poly<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut r = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        r = r.mul_add(x, c[i]);
    }
    r
}

/// 2ⁿ for −127 < n < 128.
#[inline(always)]
fn pow2(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// x = n·ln 2 + r with |r| ≤ ln 2 / 2.
#[inline(always)]
fn split_ln2(x: f32) -> (i32, f32) {
    let t = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x));
    ((t.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32), r)
}

/// eˣ as a power of two and a number near 1.
#[inline(always)]
fn exp_parts(x: f32) -> (i32, f32) {
    let (n, r) = split_ln2(x);
    let q =
        poly(r, [5.000_000_100_8e-1, 1.666_651_296_3e-1, 4.166_618_760_4e-2, 8.369_591_661_1e-3, 1.395_170_141_1e-3]);
    (n, (r * r).mul_add(q, r) + 1.0)
}

/// eˣ for |x| ≤ 80: nothing overflows or fades.
#[inline(always)]
pub fn exp_of_few(x: f32) -> f32 {
    let (n, p) = exp_parts(x);
    p * pow2(n)
}

/// eˣ.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Comparisons written so that NaN passes through.
    let c = select(x > 89.0, 89.0, select(x < -104.0, -104.0, x));
    let (n, p) = exp_parts(c);
    // Two steps, so that the result may overflow to infinity or fade through the denormals.
    let half = n >> 1;
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

/// eˣ − 1 as a power of two and a number near 0, which one is to be added to.
#[inline(always)]
fn expm1_parts(x: f32) -> (i32, f32) {
    let (n, r) = split_ln2(x);
    let q = poly(
        r,
        [
            5.000_000_049_3e-1,
            1.666_666_682_0e-1,
            4.166_634_187_0e-2,
            8.333_272_074_3e-3,
            1.394_206_044_8e-3,
            1.991_484_123_6e-4,
        ],
    );
    (n, (r * r).mul_add(q, r))
}

/// eˣ − 1 for 0 ≤ x ≤ 80.
#[inline(always)]
pub fn expm1_of_few(x: f32) -> f32 {
    let (n, p) = expm1_parts(x);
    let s = pow2(n);
    s.mul_add(p, s - 1.0)
}

/// eˣ − 1.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let c = select(x > 89.0, 89.0, select(x < -40.0, -40.0, x));
    let (n, p) = expm1_parts(c);
    // Half the scale: 2¹²⁸ itself is no f32.
    let s = pow2(n.wrapping_sub(1));
    let y = s.mul_add(p, s - 0.5) * 2.0;
    select(x == 0.0, x, y)
}

/// Natural logarithm.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = select(tiny, x * 33_554_432.0, x);
    let bits = scaled.to_bits() as i32;
    // The exponent for which the mantissa lies in [√½, √2).
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let e = (e - select(tiny, 25, 0)) as f32;
    let p = poly(
        f,
        [
            3.333_331_057_6e-1,
            -2.499_998_663_4e-1,
            2.000_221_928_7e-1,
            -1.666_924_525_6e-1,
            1.421_878_022_3e-1,
            -1.238_449_502_6e-1,
            1.187_231_131_6e-1,
            -1.178_879_566_4e-1,
            6.915_569_324_2e-2,
        ],
    );
    let f2 = f * f;
    let low = e.mul_add(LN2_LO, f2.mul_add(-0.5, f2 * f * p));
    let y = e.mul_add(LN2_HI, f + low);
    let y = select(x == f32::INFINITY, f32::INFINITY, y);
    let y = select(x > 0.0, y, f32::NAN);
    select(x == 0.0, f32::NEG_INFINITY, y)
}

/// ln(1 + x).
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let lost = (u - 1.0) - x;
    let y = ln(u) - lost / u;
    select(u == 0.0, f32::NEG_INFINITY, select(u == f32::INFINITY, u, select(x == 0.0, x, y)))
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let m = expm1(2.0 * select(a > 10.0, 10.0, a));
    (m / (m + 2.0)).copysign(x)
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let near = x * poly(
        x * x,
        [
            1.128_379_167_1,
            -3.761_263_872_4e-1,
            1.128_378_734_9e-1,
            -2.686_577_201_3e-2,
            5.222_165_541_3e-3,
            -8.503_292_856_3e-4,
            1.142_658_419_5e-4,
            -1.019_242_759_8e-5,
        ],
    );
    // Further out, ln(1 − erf) is a smooth curve.
    let t = select(a > 4.0, 4.0, a);
    let far = poly(
        t,
        [
            1.746_845_603_2e-4,
            -1.129_514_931_1,
            -6.333_469_049_3e-1,
            -1.082_800_910_6e-1,
            2.511_942_850_8e-2,
            -4.171_063_475_8e-3,
            4.344_627_132_0e-4,
            -2.109_505_901_6e-5,
        ],
    );
    let far = (1.0 - exp(far)).copysign(x);
    select(a < 0.93, near, far)
}

/// Up to here [`sin`], [`cos`] and [`tan`] are right; larger arguments need more digits of π than the reduction has, and
/// the loops take them to `f64`.
pub const WIDEST_ANGLE: f64 = 1_125_899_906_842_624.0; // 2⁵⁰

/// x = n·π/2 + r with |r| ≤ π/4; gives n mod 4 and r. Done in `f64`, which keeps every bit up to [`WIDEST_ANGLE`]; beyond
/// that the result is merely some point of the circle.
#[inline(always)]
fn split_quarter(x: f32) -> (u32, f32) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    const LIMIT: f64 = WIDEST_ANGLE;
    let d = x as f64;
    let d = select(d > LIMIT && d < f64::INFINITY, LIMIT, select(d < -LIMIT && d > f64::NEG_INFINITY, -LIMIT, d));
    let t = d.mul_add(std::f64::consts::FRAC_2_PI, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-6.123_233_995_736_766e-17, n.mul_add(-std::f64::consts::FRAC_PI_2, d));
    (t.to_bits() as u32 & 3, r as f32)
}

#[inline(always)]
fn sin_cos_quarter(r: f32) -> (f32, f32) {
    let z = r * r;
    let s =
        (z * r).mul_add(poly(z, [-1.666_666_664_0e-1, 8.333_329_145_9e-3, -1.983_925_712_8e-4, 2.717_568_271_7e-6]), r);
    let c =
        (z * z).mul_add(poly(z, [4.166_664_567_8e-2, -1.388_730_704_5e-3, 2.443_130_238_9e-5]), z.mul_add(-0.5, 1.0));
    (s, c)
}

/// Sine.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (n, r) = split_quarter(x);
    let (s, c) = sin_cos_quarter(r);
    let y = select(n & 1 == 0, s, c);
    f32::from_bits(y.to_bits() ^ ((n & 2) << 30))
}

/// Cosine.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (n, r) = split_quarter(x);
    let (s, c) = sin_cos_quarter(r);
    let y = select(n & 1 == 0, c, s);
    f32::from_bits(y.to_bits() ^ ((n.wrapping_add(1) & 2) << 30))
}

/// Tangent.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (n, r) = split_quarter(x);
    let (s, c) = sin_cos_quarter(r);
    select(n & 1 == 0, s / c, -c / s)
}

/// xʸ as 2^(y·log₂ x). In `f64`: the product would cost `f32` up to seven bits.
#[inline(always)]
pub fn powf(x: f32, y: f32) -> f32 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let (a, y64) = (x.abs() as f64, y as f64);
    // a = m·2ᵉ with m in [√½, √2); log₂ m is an odd series in s = (m − 1) / (m + 1).
    let bits = a.to_bits();
    let e = (bits.wrapping_add(ONE - ROOT_HALF) >> 52).wrapping_sub(0x3ff);
    let m = f64::from_bits(bits.wrapping_sub(e << 52));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let odd = z
        .mul_add(1.0 / 13.0, 1.0 / 11.0)
        .mul_add(z, 1.0 / 9.0)
        .mul_add(z, 1.0 / 7.0)
        .mul_add(z, 1.0 / 5.0)
        .mul_add(z, 1.0 / 3.0)
        .mul_add(z, 1.0);
    let log = (s * odd).mul_add(2.0 * std::f64::consts::LOG2_E, e as i32 as f64);
    let log = select(a == 0.0, f64::NEG_INFINITY, select(a == f64::INFINITY, a, select(a.is_nan(), a, log)));
    let t = y64 * log;
    let t = select(t > 200.0, 200.0, select(t < -200.0, -200.0, t));
    let shifted = t + ROUND;
    let r = (t - (shifted - ROUND)) * std::f64::consts::LN_2;
    let p = r
        .mul_add(1.0 / 362_880.0, 1.0 / 40_320.0)
        .mul_add(r, 1.0 / 5040.0)
        .mul_add(r, 1.0 / 720.0)
        .mul_add(r, 1.0 / 120.0)
        .mul_add(r, 1.0 / 24.0)
        .mul_add(r, 1.0 / 6.0)
        .mul_add(r, 0.5)
        .mul_add(r, 1.0)
        .mul_add(r, 1.0);
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(ONE));
    let v = (p * scale) as f32;
    let v = select(a == 1.0 && !y.is_nan(), 1.0, v);
    // Negative x: integers only, odd ones keep the sign.
    let half = y * 0.5;
    let integer = y.trunc() == y;
    let negative = x.is_sign_negative();
    let v = select(negative && integer && half.trunc() != half, -v, v);
    let v = select(x < 0.0 && x != f32::NEG_INFINITY && !integer, f32::NAN, v);
    select(y == 0.0 || x == 1.0, 1.0, v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, f: fn(f32) -> f32, exact: fn(f64) -> f64, lo: f64, hi: f64) {
        let steps = 200_000;
        let mut worst = (0.0, 0.0f32);
        for i in 0..=steps {
            let x = (lo + (hi - lo) * i as f64 / steps as f64) as f32;
            let want = exact(x as f64);
            let unit = (want.abs() * f32::EPSILON as f64 / 2.0).max(f32::MIN_POSITIVE as f64 * 1e-7);
            let err = (f(x) as f64 - want).abs() / unit;
            if err > worst.0 {
                worst = (err, x);
            }
        }
        // Within 2 ulp: the unit above is half to one ulp.
        assert!(worst.0 < 4.0, "{name}: {} half-ulps at {}", worst.0, worst.1);
    }

    #[test]
    fn accurate() {
        check("exp", exp, f64::exp, -87.0, 88.7);
        check("exp", exp, f64::exp, -1.0, 1.0);
        check("expm1", expm1, f64::exp_m1, -20.0, 88.0);
        check("expm1", expm1, f64::exp_m1, -1e-3, 1e-3);
        check("ln", ln, f64::ln, 1e-6, 4.0);
        check("ln", ln, f64::ln, 1.0, 1e6);
        check("ln", ln, f64::ln, 1e-39, 1e-38);
        check("log1p", log1p, f64::ln_1p, -0.99, 3.0);
        check("log1p", log1p, f64::ln_1p, -1e-4, 1e-4);
        check("tanh", tanh, f64::tanh, -12.0, 12.0);
        check("tanh", tanh, f64::tanh, -0.01, 0.01);
        check("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 30.0);
        check("erf", erf, libm::erf, -5.0, 5.0);
        check("sin", sin, f64::sin, -3.0, 3.0);
        check("sin", sin, f64::sin, -1e5, 1e5);
        check("cos", cos, f64::cos, -1e9, 1e9);
        check("sin", sin, f64::sin, 1e14, WIDEST_ANGLE);
        check("tan", tan, f64::tan, -100.0, 100.0);
        check("x^2.7", |x| powf(x, 2.7), |x| x.powf(2.7f32 as f64), 1e-3, 1e6);
        check("x^-0.3", |x| powf(x, -0.3), |x| x.powf(-0.3f32 as f64), 1e-30, 1e30);
        check("1.1^x", |x| powf(1.1, x), |x| (1.1f32 as f64).powf(x), -900.0, 900.0);
        check("x^3", |x| powf(x, 3.0), |x| x.powi(3), -50.0, 50.0);
    }

    #[test]
    fn special_values() {
        let inf = f32::INFINITY;
        for f in [exp, expm1, ln, log1p, tanh, sigmoid, erf, sin, cos, tan] {
            assert!(f(f32::NAN).is_nan());
        }
        assert_eq!([exp(inf), exp(-inf), exp(0.0), exp(200.0), exp(-200.0)], [inf, 0.0, 1.0, inf, 0.0]);
        assert!(exp(-100.0) > 0.0 && exp(-100.0) < 1e-43);
        assert_eq!([expm1(inf), expm1(-inf), expm1(0.0)], [inf, -1.0, 0.0]);
        assert_eq!([ln(0.0), ln(-0.0), ln(1.0), ln(inf)], [-inf, -inf, 0.0, inf]);
        assert!(ln(-1.0).is_nan() && ln(-inf).is_nan() && ln(-1e-40).is_nan());
        assert_eq!([log1p(-1.0), log1p(inf), log1p(0.0)], [-inf, inf, 0.0]);
        assert!(log1p(-2.0).is_nan());
        assert_eq!([tanh(inf), tanh(-inf), tanh(0.0)], [1.0, -1.0, 0.0]);
        assert_eq!([sigmoid(inf), sigmoid(-inf), sigmoid(0.0)], [1.0, 0.0, 0.5]);
        assert_eq!([erf(inf), erf(-inf), erf(0.0)], [1.0, -1.0, 0.0]);
        assert!(sin(inf).is_nan() && cos(-inf).is_nan() && tan(inf).is_nan());
        assert_eq!([sin(0.0), cos(0.0), tan(0.0)], [0.0, 1.0, 0.0]);
        let edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-40, 1e30, inf, -inf, f32::NAN];
        for (x, y) in edges.iter().flat_map(|&x| edges.map(|y| (x, y))) {
            let (got, want) = (powf(x, y), x.powf(y));
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x}^{y}: {got} {want}");
        }
        assert!(sin(1e30).abs() <= 1.0 && tanh(-0.0).is_sign_negative());
    }
}
