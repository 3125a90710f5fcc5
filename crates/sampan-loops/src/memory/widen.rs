//! Floating types as kernels compute with them: the half types are widened to `f32` block by block.

use crate::simd::simd_fn;
use crate::{Buffer, Element, Ordered, bf16, f16, parallel, vmath::Real};
use half::slice::HalfFloatSliceExt;

/// Elements of one block that is widened, computed and narrowed; it stays in the first-level cache.
pub const BLOCK: usize = 256;

/// A floating element type: `f16` and `bf16` (computed in `f32`), `f32`, `f64`.
pub trait RealElement: Ordered {
    /// The type its arithmetic is done in.
    type Wide: Real;
    /// Is [`RealElement::Wide`] another type?
    const HALF: bool;
    /// One value to the computing type.
    fn wide(self) -> Self::Wide;
    /// One value back, rounded to nearest.
    fn narrow(v: Self::Wide) -> Self;
    /// A slice to the computing type.
    fn widen_slice(src: &[Self], dst: &mut [Self::Wide]);
    /// A slice back, rounded to nearest.
    fn narrow_slice(src: &[Self::Wide], dst: &mut [Self]);
}

macro_rules! full {
    ($($t:ty),*) => {$(
        impl RealElement for $t {
            type Wide = $t;
            const HALF: bool = false;
            #[inline(always)]
            fn wide(self) -> $t { self }
            #[inline(always)]
            fn narrow(v: $t) -> $t { v }
            #[inline(always)]
            fn widen_slice(src: &[$t], dst: &mut [$t]) { dst.copy_from_slice(src) }
            #[inline(always)]
            fn narrow_slice(src: &[$t], dst: &mut [$t]) { dst.copy_from_slice(src) }
        }
    )*};
}
full!(f32, f64);

impl RealElement for f16 {
    type Wide = f32;
    const HALF: bool = true;
    #[inline(always)]
    fn wide(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn narrow(v: f32) -> f16 {
        f16::from_f32(v)
    }
    fn widen_slice(src: &[f16], dst: &mut [f32]) {
        src.convert_to_f32_slice(dst);
    }
    fn narrow_slice(src: &[f32], dst: &mut [f16]) {
        dst.convert_from_f32_slice(src);
    }
}

impl RealElement for bf16 {
    type Wide = f32;
    const HALF: bool = true;
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(v: f32) -> bf16 {
        let bits = v.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
        let quiet = bits | 0x0040_0000;
        bf16::from_bits(((if v.is_nan() { quiet } else { rounded }) >> 16) as u16)
    }
    fn widen_slice(src: &[bf16], dst: &mut [f32]) {
        widen_bf16(src, dst);
    }
    fn narrow_slice(src: &[f32], dst: &mut [bf16]) {
        narrow_bf16(src, dst);
    }
}

simd_fn! {
    fn widen_bf16[](src: &'a [bf16], dst: &'a mut [f32]) {
        for (d, s) in dst.iter_mut().zip(src) {
            *d = s.wide();
        }
    }
}
simd_fn! {
    fn narrow_bf16[](src: &'a [f32], dst: &'a mut [bf16]) {
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = bf16::narrow(s);
        }
    }
}

/// Calls `f` with a half-precision slice as `f32`, block by block: `f(start, block)`.
pub(crate) fn blocks<T: RealElement>(src: &[T], mut f: impl FnMut(usize, &[T::Wide])) {
    let mut wide = [T::Wide::ZERO; BLOCK];
    for (i, block) in src.chunks(BLOCK).enumerate() {
        let wide = &mut wide[..block.len()];
        T::widen_slice(block, wide);
        f(i * BLOCK, wide);
    }
}

/// Where the wide copy of a half-precision slice lies: no memory until it is needed, and the same for the next slice.
#[derive(Default)]
pub struct Room(Option<Buffer>);

impl Room {
    fn of<W: Element>(&mut self, len: usize) -> &mut [W] {
        let bytes = len * size_of::<W>();
        if self.0.as_ref().is_some_and(|b| b.len() < bytes) {
            self.0 = None;
        }
        &mut self.0.get_or_insert_with(|| Buffer::uninit(bytes)).as_mut_slice()[..len]
    }
}

/// Elements that a thread converts at a time.
const PIECE: usize = 1 << 14;

/// A slice in the computing type: itself, or its widened copy in `room`.
#[inline]
pub fn widened<'s, T: RealElement>(x: &'s [T], room: &'s mut Room) -> &'s [T::Wide] {
    if !T::HALF {
        return bytemuck::cast_slice(x);
    }
    let wide = room.of(x.len());
    parallel::for_each_chunk_mut(wide, PIECE, 2, |i, wide| T::widen_slice(&x[i * PIECE..][..wide.len()], wide));
    wide
}

/// Lets `f` write a slice in the computing type: in place, or through `room`.
#[inline]
pub fn narrowed<T: RealElement>(y: &mut [T], room: &mut Room, f: impl FnOnce(&mut [T::Wide])) {
    if !T::HALF {
        return f(bytemuck::cast_slice_mut(y));
    }
    let wide = room.of(y.len());
    f(wide);
    parallel::for_each_chunk_mut(y, PIECE, 2, |i, y| T::narrow_slice(&wide[i * PIECE..][..y.len()], y));
}

/// Independent accumulators of a row sum.
const LANES: usize = 32;

/// The sum of the lanes, as a tree.
#[inline(always)]
pub fn add_lanes<T: Real>(mut acc: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            let right = acc[j + width];
            acc[j] += right;
        }
        width /= 2;
    }
    acc[0]
}

/// Σ f(x) in separate lanes, so that the loop vectorises and errors stay small.
#[inline(always)]
pub fn lane_sum<T: Real>(x: &[T], f: impl Fn(T) -> T) -> T {
    let mut acc = [T::ZERO; LANES];
    let mut rows = x.chunks_exact(LANES);
    for row in rows.by_ref() {
        for j in 0..LANES {
            acc[j] += f(row[j]);
        }
    }
    for (a, &v) in acc.iter_mut().zip(rows.remainder()) {
        *a += f(v);
    }
    add_lanes(acc)
}

/// Σ f(x, y) in separate lanes.
#[inline(always)]
pub fn lane_sum2<T: Real>(x: &[T], y: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut acc = [T::ZERO; LANES];
    let (mut xs, mut ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    for (x, y) in xs.by_ref().zip(ys.by_ref()) {
        for j in 0..LANES {
            acc[j] += f(x[j], y[j]);
        }
    }
    for ((a, &x), &y) in acc.iter_mut().zip(xs.remainder()).zip(ys.remainder()) {
        *a += f(x, y);
    }
    add_lanes(acc)
}

/// Largest element in separate lanes; NaN where there is one.
#[inline(always)]
pub fn lane_max<T: Real>(x: &[T]) -> T {
    let mut acc = [-T::INFINITY; LANES];
    let mut rows = x.chunks_exact(LANES);
    for row in rows.by_ref() {
        for j in 0..LANES {
            acc[j] = row[j].max(acc[j]);
        }
    }
    for (a, &v) in acc.iter_mut().zip(rows.remainder()) {
        *a = v.max(*a);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            acc[j] = acc[j].max(acc[j + width]);
        }
        width /= 2;
    }
    acc[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_widened_exactly_and_rounded_to_nearest_even() {
        for bits in 0..=u16::MAX {
            let (b, h) = (bf16::from_bits(bits), f16::from_bits(bits));
            assert!(b.wide().to_f64() == b.to_f64() || b.is_nan() && b.wide().is_nan());
            assert!(h.wide().to_f64() == h.to_f64() || h.is_nan() && h.wide().is_nan());
        }
        let every = (0..=u32::MAX).step_by(4099);
        let ties = (0..=u16::MAX).map(|high| (high as u32) << 16 | 0x8000);
        let values: Vec<f32> = every.chain(ties).map(f32::from_bits).collect();
        let (mut b, mut h) = (vec![bf16::ZERO; values.len()], vec![f16::ZERO; values.len()]);
        bf16::narrow_slice(&values, &mut b);
        f16::narrow_slice(&values, &mut h);
        for (i, &v) in values.iter().enumerate() {
            assert_eq!([b[i].to_bits(), bf16::narrow(v).to_bits()], [bf16::from_f32(v).to_bits(); 2], "{v}");
            assert_eq!(h[i].to_bits(), f16::narrow(v).to_bits(), "{v}");
        }
    }

    #[test]
    fn one_room_serves_slices_of_several_lengths() {
        let mut room = Room::default();
        for len in [3, 2 * PIECE + 1, 0, 5] {
            let x: Vec<bf16> = (0..len).map(|i| bf16::from_f32((i % 100) as f32)).collect();
            let mut y = vec![bf16::ZERO; len];
            assert!(widened(&x, &mut room).iter().enumerate().all(|(i, &v)| v == (i % 100) as f32));
            narrowed(&mut y, &mut room, |y| y.fill(2.0));
            assert!(y.iter().all(|&v| v == bf16::from_f32(2.0)));
        }
    }
}
