//! Fills whose elements need a fixed number of words, vectorised.

use super::{LANES, Words, philox_lanes};
use crate::vmath::Real;
use crate::{DType, Ordered, parallel};
use sampan_macros::by_dtype;

/// Elements per task; a multiple of every group.
const CHUNK: usize = 1 << 14;

/// A piece of a fill. (A struct of its own: a closure handed to `dispatch` is not always compiled into it, and then runs
/// without wide vectors.)
struct Piece<'a, T, F, const N: usize> {
    seed: u64,
    ctr: u64,
    /// The number of the first element.
    first: usize,
    out: &'a mut [T],
    /// By reference and called as it is: through another layer of generics it would not be compiled for these vectors.
    f: &'a F,
}

impl<T: Ordered, F: Fn(usize, &Words, &mut [T; N]), const N: usize> pulp::WithSimd for Piece<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Piece { seed, ctr, first, out, f } = self;
        for (g, group) in out.chunks_mut(N).enumerate() {
            let first = first + g * N;
            let words = philox_lanes(simd, seed, ctr.wrapping_add((first / N * LANES) as u64));
            match <&mut [T; N]>::try_from(&mut *group) {
                Ok(whole) => f(first, &words, whole),
                Err(_) => {
                    let mut whole = [T::default(); N];
                    f(first, &words, &mut whole);
                    group.copy_from_slice(&whole[..group.len()]);
                }
            }
        }
    }
}

/// Fills `dst` group by group: `f(first index, words, group)` makes `N` elements of sixteen blocks. The last group may
/// be cut short.
#[inline(always)]
fn fill<T: Ordered, const N: usize>(
    seed: u64,
    ctr: u64,
    dst: &mut [T],
    f: impl Fn(usize, &Words, &mut [T; N]) + Sync + Send,
) {
    const { assert!(CHUNK.is_multiple_of(N)) };
    parallel::for_each_chunk_mut(dst, CHUNK, 8, |c, out| {
        pulp::Arch::new().dispatch(Piece { seed, ctr, first: c * CHUNK, out, f: &f });
    });
}

/// [`fill`] on the calling thread.
#[inline(always)]
fn fill_here<T: Ordered, const N: usize>(seed: u64, ctr: u64, out: &mut [T], f: impl Fn(usize, &Words, &mut [T; N])) {
    pulp::Arch::new().dispatch(Piece { seed, ctr, first: 0, out, f: &f });
}

/// One word per element.
#[inline(always)]
fn fill32<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], f: impl Fn(usize, u32) -> T + Sync + Send) {
    fill::<T, 64>(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |first, words, out| {
            for (w, row) in words.iter().enumerate() {
                for b in 0..LANES {
                    out[w * LANES + b] = f(first + w * LANES + b, row[b]);
                }
            }
        },
    );
}

/// Two words per element.
#[inline(always)]
fn fill64<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], f: impl Fn(usize, u64) -> T + Sync + Send) {
    fill::<T, 32>(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |first, words, out| {
            for p in 0..2 {
                for b in 0..LANES {
                    let bits = words[2 * p][b] as u64 | (words[2 * p + 1][b] as u64) << 32;
                    out[p * LANES + b] = f(first + p * LANES + b, bits);
                }
            }
        },
    );
}

/// [0, 1) with 24 bits.
#[inline(always)]
fn unit32(w: u32) -> f32 {
    (w >> 8) as i32 as f32 * (1.0 / (1 << 24) as f32)
}

/// [0, 1) with 53 bits.
#[inline(always)]
pub(super) fn unit64(w: u64) -> f64 {
    (w >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// (0, 1], fine near zero, where a logarithm looks closest.
#[inline(always)]
fn open32(w: u32) -> f32 {
    // Halves are converted one by one because signed conversion is the fast one.
    let high = (w >> 16) as i32 as f32;
    let low = (w & 0xffff) as i32 as f32;
    (high * 65536.0 + (low + 0.5)) * (1.0 / 4_294_967_296.0)
}

#[inline(always)]
pub(super) fn open64(w: u64) -> f64 {
    ((w >> 11) as f64 + 1.0) * (1.0 / (1u64 << 53) as f64)
}

/// `ln` and `(sin, cos)(2πu)` as plain polynomials: they vectorise, and have the same bits on every machine, which a
/// system's own functions do not promise.
macro_rules! series {
    ($ln:ident, $turn:ident, $t:ident, $bits:ident, $mant:literal, $ln_terms:literal, $trig_terms:literal) => {
        /// Natural logarithm of a positive normal number.
        #[inline(always)]
        fn $ln(x: $t) -> $t {
            // x = m·2^e with m in [√½, √2); ln m = 2 atanh(s), s = (m − 1)/(m + 1), |s| < 0.172.
            let shifted = x.to_bits().wrapping_sub(std::$t::consts::FRAC_1_SQRT_2.to_bits());
            let e = (shifted as $bits) >> $mant;
            let m = $t::from_bits(x.to_bits().wrapping_sub((e << $mant) as _));
            let s = (m - 1.0) / (m + 1.0);
            let s2 = s * s;
            let mut sum = 0.0;
            for k in 0..$ln_terms {
                let k = $ln_terms - k;
                sum = (sum + 1.0 / (2 * k + 1) as $t) * s2;
            }
            e as $t * std::$t::consts::LN_2 + 2.0 * (s + s * sum)
        }

        /// Sine and cosine of a whole turn times `u`, `u` in [0, 1].
        #[inline(always)]
        fn $turn(u: $t) -> ($t, $t) {
            // Adding 1.5·2^mantissa rounds to a whole number, which then stands in the lowest bits.
            const ROUND: $t = 1.5 * (1u64 << $mant) as $t;
            let rounded = u * 4.0 + ROUND;
            let q = rounded.to_bits();
            let x = (u * 4.0 - (rounded - ROUND)) * std::$t::consts::FRAC_PI_2;
            let x2 = x * x;
            let (mut sin, mut cos) = (0.0, 0.0);
            for k in 0..$trig_terms {
                let k = $trig_terms - k;
                sin = (sin + 1.0) * x2 * (-1.0 / ((2 * k) * (2 * k + 1)) as $t);
                cos = (cos + 1.0) * x2 * (-1.0 / ((2 * k - 1) * (2 * k)) as $t);
            }
            let (sin, cos) = (x + x * sin, 1.0 + cos);
            let (s, c) = if q & 1 == 0 { (sin, cos) } else { (cos, sin) };
            (if q & 2 == 0 { s } else { -s }, if q.wrapping_add(1) & 2 == 0 { c } else { -c })
        }
    };
}
series!(ln32, turn32, f32, i32, 23, 5, 5);
series!(ln64, turn64, f64, i64, 52, 11, 9);

/// The value that keeps rounding below `hi`: the largest number under it in the precision of a float dtype.
pub fn below(dtype: DType, lo: f64, hi: f64) -> f64 {
    let mantissa = match dtype {
        DType::Float64 => 52,
        DType::Float32 => 23,
        DType::Float16 => 10,
        _ => 7,
    };
    let hi = match dtype {
        DType::Float64 => hi,
        DType::Float16 => crate::f16::from_f64(hi).to_f64(),
        DType::BFloat16 => crate::bf16::from_f64(hi).to_f64(),
        _ => hi as f32 as f64,
    };
    if hi == 0.0 {
        return match dtype {
            DType::Float64 => -f64::MIN_POSITIVE,
            DType::Float16 => -2f64.powi(-14),
            _ => -f32::MIN_POSITIVE as f64,
        };
    }
    // At a power of two this steps by a full ulp where half of one would do; still inside [lo, hi).
    let step = 2f64.powi(hi.abs().log2().floor() as i32 - mantissa);
    (hi - step).max(lo)
}

/// Raw 64-bit words.
pub(crate) fn random_bits(seed: u64, ctr: u64, dst: &mut [i64]) {
    fill64(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |_, w| w as i64,
    );
}

/// Uniform in [lo, hi).
#[by_dtype(T in float)]
pub fn uniform<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], lo: f64, hi: f64) {
    let top = below(T::DTYPE, lo, hi);
    if T::DTYPE == DType::Float64 {
        let width = hi - lo;
        fill64(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w| T::from_f64((lo + unit64(w) * width).min(top)),
        );
    } else {
        let (lo, width, top) = (lo as f32, (hi - lo) as f32, top as f32);
        fill32(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w| T::from_f64((lo + unit32(w) * width).min(top) as f64),
        );
    }
}

/// Normal by Box and Muller: two words make two elements.
#[by_dtype(T in float)]
pub fn normal<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], mean: f64, std: f64) {
    if T::DTYPE == DType::Float64 {
        fill::<T, 32>(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w, out| {
                for b in 0..LANES {
                    let bits = |p: usize| w[2 * p][b] as u64 | (w[2 * p + 1][b] as u64) << 32;
                    let r = (-2.0 * ln64(open64(bits(0)))).sqrt() * std;
                    let (s, c) = turn64(unit64(bits(1)));
                    out[b] = T::from_f64(mean + r * c);
                    out[LANES + b] = T::from_f64(mean + r * s);
                }
            },
        );
    } else {
        let (mean, std) = (mean as f32, std as f32);
        fill::<T, 64>(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w, out| {
                for p in 0..2 {
                    for b in 0..LANES {
                        let r = (-2.0 * ln32(open32(w[2 * p][b]))).sqrt() * std;
                        let (s, c) = turn32(unit32(w[2 * p + 1][b]));
                        out[2 * p * LANES + b] = T::from_f64((mean + r * c) as f64);
                        out[(2 * p + 1) * LANES + b] = T::from_f64((mean + r * s) as f64);
                    }
                }
            },
        );
    }
}

/// Exponential of rate `lambda`.
#[by_dtype(T in float)]
pub fn exponential<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], lambda: f64) {
    let scale = -1.0 / lambda;
    if T::DTYPE == DType::Float64 {
        fill64(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w| T::from_f64(ln64(open64(w)) * scale),
        );
    } else {
        let scale = scale as f32;
        fill32(
            seed,
            ctr,
            dst,
            #[inline(always)]
            |_, w| T::from_f64((ln32(open32(w)) * scale) as f64),
        );
    }
}

/// Integers in [lo, hi); the bias of the 64-bit multiply is below range / 2⁶⁴.
#[by_dtype(T in real)]
pub fn randint<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], lo: i64, hi: i64) {
    let range = hi.wrapping_sub(lo) as u64;
    fill64(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |_, w| T::from_i64(lo.wrapping_add(((w as u128 * range as u128) >> 64) as i64)),
    );
}

/// A probability as the number of 32-bit words below it.
#[inline(always)]
pub fn threshold(p: f64) -> u64 {
    (p * 4_294_967_296.0) as u64
}

/// 1 with probability `p`, else 0.
#[by_dtype(T in real)]
pub fn bernoulli<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], p: f64) {
    let (zero, one) = (T::from_i64(0), T::from_i64(1));
    // In 32 bits, where a vector holds twice as many words.
    let Some(last) = threshold(p).checked_sub(1).map(|last| last as u32) else { return dst.fill(zero) };
    if size_of::<T>() == 1 {
        // Truth values and small integers alike are the byte 1 or 0, which needs no choice between two values.
        return fill32(
            seed,
            ctr,
            bytemuck::cast_slice_mut::<T, u8>(dst),
            #[inline(always)]
            |_, w| (w <= last) as u8,
        );
    }
    fill32(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |_, w| if w <= last { one } else { zero },
    );
}

/// A finite `scale` with probability `keep`, else 0, on the calling thread: for kernels that make their random numbers where they
/// use them, as often as they need them. The words are those of a fill that begins at `ctr`.
pub fn keep_or_drop<T: Real>(seed: u64, ctr: u64, keep: f64, scale: T, out: &mut [T]) {
    let Some(last) = threshold(keep).checked_sub(1).map(|last| last as u32) else { return out.fill(T::ZERO) };
    fill_here::<T, { 4 * LANES }>(
        seed,
        ctr,
        out,
        #[inline(always)]
        |_, words, out| {
            for (out, &w) in out.iter_mut().zip(words.as_flattened()) {
                // A product, since the compiler makes branches of a choice, and random ones are never foreseen.
                *out = T::of((w <= last) as i32 as f64) * scale;
            }
        },
    );
}

/// 1 with each element's own probability, else 0.
#[by_dtype(T in float)]
pub fn bernoulli_with<T: Ordered>(seed: u64, ctr: u64, probs: &[T], dst: &mut [T]) {
    assert_eq!(probs.len(), dst.len());
    fill32(
        seed,
        ctr,
        dst,
        #[inline(always)]
        |i, w| {
            let p = probs.get(i).map_or(0.0, |p| p.to_f64());
            T::from_i64(((w as u64) < threshold(p)) as i64)
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments<T: Ordered>(x: &[T]) -> (f64, f64) {
        let n = x.len() as f64;
        let mean = x.iter().map(|v| v.to_f64()).sum::<f64>() / n;
        (mean, x.iter().map(|v| (v.to_f64() - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn series_match_the_library() {
        for i in 1..4000 {
            let x = i as f64 / 4000.0;
            assert!((ln64(x) - x.ln()).abs() <= 2e-15 * x.ln().abs().max(0.1), "{x}");
            assert!((ln32(x as f32) as f64 - (x as f32 as f64).ln()).abs() <= 3e-7 * x.ln().abs().max(0.1), "{x}");
            let (s, c) = (x * std::f64::consts::TAU).sin_cos();
            let (s64, c64) = turn64(x);
            let (s32, c32) = turn32(x as f32);
            assert!((s64 - s).abs() < 2e-15 && (c64 - c).abs() < 2e-15, "{x} {s64} {s} {c64} {c}");
            assert!((s32 as f64 - s).abs() < 1e-6 && (c32 as f64 - c).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn moments_are_right() {
        let n = 200_000;
        let mut x = vec![0f32; n];
        uniform_of(3, 0, &mut x, -1.0, 3.0);
        let (m, v) = moments(&x);
        assert!((m - 1.0).abs() < 0.01 && (v - 16.0 / 12.0).abs() < 0.01, "{m} {v}");
        assert!(x.iter().all(|&v| (-1.0..3.0).contains(&v)));
        normal_of(3, 1000, &mut x, 2.0, 0.5);
        let (m, v) = moments(&x);
        assert!((m - 2.0).abs() < 0.01 && (v - 0.25).abs() < 0.01, "{m} {v}");
        let tail = x.iter().filter(|&&v| (v - 2.0).abs() > 1.0).count() as f64 / n as f64;
        assert!((tail - 0.0455).abs() < 0.003, "{tail}");
        exponential_of(3, 5, &mut x, 2.0);
        let (m, v) = moments(&x);
        assert!((m - 0.5).abs() < 0.01 && (v - 0.25).abs() < 0.01, "{m} {v}");
        bernoulli_of(3, 9, &mut x, 0.3);
        assert!((moments(&x).0 - 0.3).abs() < 0.005);
        let mut y = vec![0f64; n];
        normal_of(4, 0, &mut y, 0.0, 1.0);
        let (m, v) = moments(&y);
        assert!(m.abs() < 0.01 && (v - 1.0).abs() < 0.02, "{m} {v}");
        let mut z = vec![0i64; n];
        randint_of(4, 0, &mut z, -3, 4);
        let (m, v) = moments(&z);
        assert!(m.abs() < 0.02 && (v - 4.0).abs() < 0.05, "{m} {v}");
        assert!(z.iter().all(|v| (-3..4).contains(v)));
        let probs = vec![0.8f32; n];
        bernoulli_with_of(4, 0, &probs, &mut x);
        assert!((moments(&x).0 - 0.8).abs() < 0.005);
        bernoulli_of(4, 0, &mut x, 1.0);
        assert!(x.iter().all(|&v| v == 1.0));
    }

    #[test]
    fn keeping_in_place_is_a_fill() {
        let (mut mask, mut kept) = (vec![0f32; 300], vec![9f32; 300]);
        for p in [0.0, 0.3, 1.0] {
            bernoulli_of(7, 32, &mut mask, p);
            keep_or_drop(7, 32, p, 2.5, &mut kept);
            assert!(mask.iter().zip(&kept).all(|(m, k)| m * 2.5 == *k), "{p}");
        }
    }

    #[test]
    fn uniform_stays_below_its_end_in_every_precision() {
        fn check<T: Ordered>(lo: f64, hi: f64) {
            let mut x = vec![T::default(); 20_000];
            uniform_of(1, 0, &mut x, lo, hi);
            let (l, h) = (T::from_f64(lo), T::from_f64(hi));
            assert!(x.iter().all(|v| *v >= l && *v < h), "{} {lo} {hi}", T::DTYPE);
        }
        for (lo, hi) in [(0.0, 1.0), (-1.0, 0.0), (-1000.0, 0.0), (0.5, 1.0), (-4.0, -2.0), (0.0, 3.0)] {
            check::<f32>(lo, hi);
            check::<f64>(lo, hi);
            check::<crate::f16>(lo, hi);
            check::<crate::bf16>(lo, hi);
        }
    }

    #[test]
    fn same_bits_whatever_the_cut_and_the_threads() {
        let mut whole = vec![0f32; 100_003];
        normal_of(11, 64, &mut whole, 0.0, 1.0);
        let mut short = vec![0f32; 70];
        normal_of(11, 64, &mut short, 0.0, 1.0);
        assert_eq!(whole[..70], short);
        let before = parallel::num_threads();
        for threads in [1, 4] {
            parallel::set_num_threads(threads);
            let mut again = vec![0f32; 100_003];
            normal_of(11, 64, &mut again, 0.0, 1.0);
            assert_eq!(whole, again);
        }
        parallel::set_num_threads(before);
    }
}
