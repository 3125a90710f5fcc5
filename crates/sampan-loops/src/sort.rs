//! Order: sort, argsort, topk, kthvalue, mode, search in sorted data, unique, histograms.
//!
//! Every element becomes an unsigned key whose order is the element's order, NaN above everything (so it comes last
//! when ascending and first when descending, as in NumPy and Paddle), with its position below the key. Such pairs are
//! all different, so every algorithm and any number of threads give the same, stable result.

mod group;
mod hist;
mod order;

pub use group::{Groups, isin, searchsorted, unique, unique_consecutive, unique_rows};
pub use hist::{bincount, bincount_len, histogram, histogram_range};
pub use order::{Axis, argsort, kthvalue, mode, sort, topk};

use crate::{DType, Ordered, bf16, f16, parallel};

/// Bits of the key of `T`.
const fn key_bits<T: Ordered>() -> u32 {
    8 * T::DTYPE.size() as u32
}

/// An unsigned number in the order of the elements; −0 and 0 are equal, NaNs are equal and greatest.
#[inline(always)]
pub(crate) fn key<T: Ordered>(v: T) -> u64 {
    macro_rules! float {
        ($f:ty, $u:ty) => {{
            let bits: $u = bytemuck::cast::<$f, $u>(bytemuck::cast_slice::<T, $f>(&[v])[0]);
            const SIGN: $u = 1 << (<$u>::BITS - 1);
            if v.is_nan() {
                <$u>::MAX as u64
            } else if bits == SIGN {
                SIGN as u64
            } else if bits & SIGN != 0 {
                !bits as u64
            } else {
                (bits | SIGN) as u64
            }
        }};
    }
    match T::DTYPE {
        DType::Float64 => float!(f64, u64),
        DType::Float32 => float!(f32, u32),
        DType::Float16 => float!(f16, u16),
        DType::BFloat16 => float!(bf16, u16),
        DType::Bool | DType::UInt8 => v.to_i64() as u64,
        DType::Int64 => v.to_i64() as u64 ^ (1 << 63),
        // The bias makes the smallest value zero.
        DType::Int8 | DType::Int16 | DType::Int32 => (v.to_i64() + (1 << (key_bits::<T>() - 1))) as u64,
        DType::Complex64 | DType::Complex128 => unreachable!("no complex number is `Ordered`"),
    }
}

/// A key with the position below it, in one integer that sorts fast.
trait Packed: Copy + Ord + Send + Sync {
    fn pack(key: u64, position: usize) -> Self;
    fn position(self) -> usize;
    fn key(self) -> u64;
}
impl Packed for u64 {
    #[inline(always)]
    fn pack(key: u64, position: usize) -> u64 {
        key << 32 | position as u64
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u32 as usize
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self >> 32
    }
}
impl Packed for u128 {
    #[inline(always)]
    fn pack(key: u64, position: usize) -> u128 {
        (key as u128) << 64 | position as u128
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u64 as usize
    }
    #[inline(always)]
    fn key(self) -> u64 {
        (self >> 64) as u64
    }
}

/// Runs a block with `P` bound to the packed type that `T` and `n` positions need.
macro_rules! with_packed {
    ($t:ty, $n:expr, $p:ident => $body:expr) => {
        if <$t as crate::Element>::DTYPE.size() <= 4 && $n <= u32::MAX as usize {
            type $p = u64;
            $body
        } else {
            type $p = u128;
            $body
        }
    };
}
use with_packed;

/// What turns the order of the keys around, if `flip`.
#[inline(always)]
fn flip_mask<T: Ordered>(flip: bool) -> u64 {
    if flip { u64::MAX >> (64 - key_bits::<T>()) } else { 0 }
}

/// Keys with positions; `flip` turns the order of the keys (not of the positions) around.
fn pack_all<T: Ordered, P: Packed>(x: impl Iterator<Item = T>, flip: bool) -> Vec<P> {
    let mask = flip_mask::<T>(flip);
    x.enumerate().map(|(i, v)| P::pack(key(v) ^ mask, i)).collect()
}

const DIGIT: u32 = 8;

/// Sorts packed pairs that came in order of position and whose keys have `bits` bits.
fn sort_packed<P: Packed>(pairs: &mut Vec<P>, bits: u32) {
    if pairs.len() < 1 << 10 || (bits == 64 && pairs.len() < 1 << 14) {
        pairs.sort_unstable();
    } else if parallel::num_threads() > 4 && pairs.len() > 1 << 16 {
        merge_sort(pairs);
    } else {
        radix(pairs, bits);
    }
}

/// Sorted chunks, merged two by two, on all threads. No two pairs are equal, so there is one result.
fn merge_sort<P: Packed>(pairs: &mut Vec<P>) {
    let mut width = 1 << 13;
    parallel::for_each_chunk_mut(pairs, width, 16, |_, piece| piece.sort_unstable());
    let mut merged = pairs.clone();
    while width < pairs.len() {
        parallel::for_each_chunk_mut(&mut merged, 2 * width, 4, |i, out| {
            let both = &pairs[2 * width * i..][..out.len()];
            let (mut left, mut right) = both.split_at(width.min(both.len()));
            for o in out {
                let from_left = match (left.first(), right.first()) {
                    (Some(l), Some(r)) => l < r,
                    (l, _) => l.is_some(),
                };
                let side = if from_left { &mut left } else { &mut right };
                (*o, *side) = (side[0], &side[1..]);
            }
        });
        std::mem::swap(pairs, &mut merged);
        width *= 2;
    }
}

/// Least significant digit first. All digits are counted in one pass; a digit that is the same everywhere is skipped.
fn radix<P: Packed>(pairs: &mut Vec<P>, bits: u32) {
    let digits = bits.div_ceil(DIGIT) as usize;
    let digit = |p: P, d: usize| (p.key() >> (d as u32 * DIGIT)) as usize & ((1 << DIGIT) - 1);
    let mut counts = vec![[0usize; 1 << DIGIT]; digits];
    for &p in pairs.iter() {
        for (d, c) in counts.iter_mut().enumerate() {
            c[digit(p, d)] += 1;
        }
    }
    let mut other = pairs.clone();
    for (d, count) in counts.iter_mut().enumerate() {
        if count.contains(&pairs.len()) {
            continue;
        }
        let mut at = 0;
        for c in count.iter_mut() {
            (*c, at) = (at, at + *c);
        }
        for &p in pairs.iter() {
            let slot = &mut count[digit(p, d)];
            other[*slot] = p;
            *slot += 1;
        }
        std::mem::swap(pairs, &mut other);
    }
}

/// Positions of `keys` in stable order of the keys.
pub(crate) fn order_of_indices(keys: &[i64]) -> Vec<usize> {
    if keys.len() <= u32::MAX as usize && keys.iter().all(|&k| (0..1 << 32).contains(&k)) {
        let mut pairs: Vec<u64> = keys.iter().enumerate().map(|(i, &k)| u64::pack(k as u64, i)).collect();
        sort_packed(&mut pairs, 32);
        pairs.into_iter().map(Packed::position).collect()
    } else {
        let mut pairs: Vec<u128> = pack_all(keys.iter().copied(), false);
        sort_packed(&mut pairs, 64);
        pairs.into_iter().map(Packed::position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_order() {
        let f = [f64::NEG_INFINITY, -2.0, -1e-3, -0.0, 1e-3, 2.0, f64::INFINITY, f64::NAN];
        for w in f.windows(2) {
            assert!(key(w[0]) < key(w[1]));
            assert!(key(w[0] as f32) < key(w[1] as f32));
            assert!(key(f16::from_f64(w[0])) < key(f16::from_f64(w[1])));
            assert!(key(bf16::from_f64(w[0])) < key(bf16::from_f64(w[1])));
        }
        assert_eq!(key(-0.0f32), key(0.0f32));
        assert!(key(i8::MIN) < key(-1i8) && key(-1i8) < key(0i8) && key(0i8) < key(i8::MAX));
        assert!(key(i64::MIN) < key(-1i64) && key(-1i64) < key(i64::MAX));
        assert!(key(i32::MIN) < key(0) && key(0) < key(i32::MAX));
        assert_eq!(key(crate::Bool(1)), key(crate::Bool(7)));
    }

    #[test]
    fn radix_is_a_sort() {
        let mut x = vec![0i64; 5000];
        crate::rng::randint(1, 0, x.as_mut_slice().into(), -300, 300);
        let mut a: Vec<u128> = pack_all(x.iter().copied(), true);
        let mut b = a.clone();
        radix(&mut a, 64);
        b.sort_unstable();
        assert_eq!(a, b);
        let mut a: Vec<u64> = pack_all(x.iter().map(|&v| v as f32 * 0.1), false);
        let mut b = a.clone();
        radix(&mut a, 32);
        b.sort_unstable();
        assert_eq!(a, b);
    }

    #[test]
    fn merging_is_a_sort() {
        for len in [0, 5, 8192, 8193, 50_001] {
            let mut x = vec![0i64; len];
            crate::rng::randint(1, 0, x.as_mut_slice().into(), -300, 300);
            let mut a: Vec<u64> = pack_all(x.iter().map(|&v| v as f32 * 0.1), false);
            let mut b = a.clone();
            merge_sort(&mut a);
            b.sort_unstable();
            assert_eq!(a, b);
        }
    }
}
