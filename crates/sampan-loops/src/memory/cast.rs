//! Conversion between dtypes. Floats to integers truncate towards zero, saturate at the bounds of the type and make NaN
//! zero, on every machine alike; integers wrap, and what is not zero is true. Of complex numbers real types take the real
//! part.

use crate::map::tables::Compute;
use crate::parallel::{self, CHUNK};
use crate::simd::simd_fn;
use crate::widen::{BLOCK, RealElement};
use crate::{AnySlice, AnySliceMut, AnyView, Buffer, DType, Ordered, bf16, f16};

/// Converts to another dtype.
pub fn cast(src: AnyView<'_>, dst: AnySliceMut<'_>) {
    if let Some(row) = src.as_slice() {
        return cast_row(row, dst);
    }
    let mut rows = Buffer::uninit(src.len() * src.dtype().size());
    crate::copy::copy_strided(src, AnySliceMut::new(src.dtype(), rows.bytes_mut()));
    cast_row(AnySlice::new(src.dtype(), rows.bytes()), dst);
}

/// Converts elements side by side.
pub fn cast_row(src: AnySlice<'_>, dst: AnySliceMut<'_>) {
    use DType::*;
    assert_eq!(src.len(), dst.len(), "as many elements are written as are read");
    let (from, to) = (src.dtype(), dst.dtype());
    // Through the type that formulas compute in, whose loops there are anyway: exact, and the shortest way.
    match (from, to) {
        (Complex128, _) | (_, Complex128) => through::<crate::Complex128>(src, dst),
        (Complex64, _) | (_, Complex64) => through::<crate::Complex64>(src, dst),
        (Float64, _) => through::<f64>(src, dst),
        (Float16 | BFloat16 | Float32, _) => through::<f32>(src, dst),
        (Bool | UInt8 | Int8 | Int16, Float16 | BFloat16 | Float32 | Float64) => through::<f32>(src, dst),
        (Int32, Float16 | BFloat16 | Float32) => through::<f32>(src, dst),
        (Int32, Float64) => through::<f64>(src, dst),
        (Bool | UInt8 | Int8 | Int16 | Int32, Bool | UInt8 | Int8 | Int16 | Int32) => through::<i32>(src, dst),
        _ => through::<i64>(src, dst),
    }
}

fn through<T: Compute>(src: AnySlice<'_>, dst: AnySliceMut<'_>) {
    let (from, to, size) = (src.dtype(), dst.dtype(), dst.dtype().size());
    parallel::for_each_chunk_of_bytes(dst.bytes(), size, CHUNK, 1, |i, bytes| {
        let len = bytes.len() / size;
        let src = src.part(i * CHUNK..i * CHUNK + len);
        if to == T::DTYPE {
            return T::load(src, bytemuck::cast_slice_mut(bytes));
        }
        if from == T::DTYPE {
            return T::store(src.of(), AnySliceMut::new(to, bytes));
        }
        let mut block = [T::zeroed(); BLOCK];
        for (at, bytes) in bytes.chunks_mut(BLOCK * size).enumerate() {
            let len = bytes.len() / size;
            T::load(src.part(at * BLOCK..at * BLOCK + len), &mut block[..len]);
            T::store(&block[..len], AnySliceMut::new(to, bytes));
        }
    });
}

/// Converts between real types.
pub(crate) fn cast_slice<A: Ordered, B: Ordered>(x: &[A], y: &mut [B]) {
    if A::DTYPE == B::DTYPE {
        y.copy_from_slice(bytemuck::cast_slice(x));
    } else if A::DTYPE == DType::Float16 {
        crate::widen::blocks(bytemuck::cast_slice::<A, f16>(x), |at, wide| {
            cast_wide(wide, &mut y[at..at + wide.len()])
        });
    } else if A::DTYPE == DType::BFloat16 {
        crate::widen::blocks(bytemuck::cast_slice::<A, bf16>(x), |at, wide| {
            cast_wide(wide, &mut y[at..at + wide.len()])
        });
    } else if A::DTYPE == DType::Float32 {
        cast_wide(bytemuck::cast_slice(x), y);
    } else if B::DTYPE.is_half() && A::DTYPE != DType::Float64 {
        let mut wide = [0f32; BLOCK];
        for (x, y) in x.chunks(BLOCK).zip(y.chunks_mut(BLOCK)) {
            convert_loop(x, &mut wide[..x.len()]);
            cast_wide(&wide[..x.len()], y);
        }
    } else {
        convert_loop(x, y);
    }
}

/// From `f32` to anything.
fn cast_wide<B: Ordered>(x: &[f32], y: &mut [B]) {
    match B::DTYPE {
        DType::Float16 => f16::narrow_slice(x, bytemuck::cast_slice_mut(y)),
        DType::BFloat16 => bf16::narrow_slice(x, bytemuck::cast_slice_mut(y)),
        _ => convert_loop(x, y),
    }
}

simd_fn! {
    fn convert_loop[A: Ordered, B: Ordered](x: &'a [A], y: &'a mut [B]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = convert(x);
        }
    }
}

/// One value to another type, by the shortest way that vectorises.
#[inline(always)]
pub(crate) fn convert<A: Ordered, B: Ordered>(x: A) -> B {
    if A::DTYPE == DType::Bool && B::DTYPE == DType::Float32 {
        // By hand, for the way through i64 does not vectorise everywhere. The detours fold away.
        B::from_f64((x.to_i64() as i32 as f32) as f64)
    } else if B::DTYPE == DType::Bool {
        let truth = if A::DTYPE.is_float() { x.to_f64() != 0.0 } else { x.to_i64() != 0 };
        B::from_i64(truth as i64)
    } else if A::DTYPE.is_float() && B::DTYPE.is_float() {
        B::from_f64(x.to_f64())
    } else if A::DTYPE == DType::Float32 && B::DTYPE != DType::Int64 {
        // Bounded by hand, for Rust's saturating cast does not vectorise. The detour through f64 folds away.
        const BEYOND: f32 = 2_147_483_648.0; // 2³¹, the first number that i32 cannot hold
        const TOP: f32 = 2_147_483_520.0; // the largest f32 below it
        let (low, high) = match B::DTYPE {
            DType::UInt8 => (0.0, 255.0),
            DType::Int8 => (-128.0, 127.0),
            DType::Int16 => (-32768.0, 32767.0),
            _ => (-BEYOND, TOP),
        };
        let v = x.to_f64() as f32;
        let bounded = if v > high { high } else { v };
        let bounded = if bounded < low { low } else { bounded };
        let bounded = if bounded.is_nan() { 0.0 } else { bounded };
        // SAFETY: a number between −2³¹ and 2³¹.
        let i = unsafe { bounded.to_int_unchecked::<i32>() };
        B::from_i64(if B::DTYPE == DType::Int32 && v >= BEYOND { i32::MAX } else { i } as i64)
    } else if A::DTYPE.is_float() {
        B::from_f64(x.to_f64())
    } else {
        B::from_i64(x.to_i64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::contiguous_strides;
    use crate::{Element, View};

    fn cast<A: Element, B: Element>(v: View<'_, A>, dst: &mut [B]) {
        super::cast(v.into(), dst.into());
    }

    #[test]
    fn casts() {
        let shape = [6];
        let strides = contiguous_strides(&shape);
        let x = [1.5f32, -1.5, 300.0, 0.0, 0.5, f32::NAN];
        let v = View::contiguous(&x, &shape, &strides);
        fn to<B: Ordered>(v: View<'_, f32>) -> Vec<B> {
            let mut y = vec![B::default(); v.len()];
            cast(v, &mut y);
            y
        }
        assert_eq!(to::<i32>(v), [1, -1, 300, 0, 0, 0]);
        assert_eq!(to::<u8>(v), [1, 0, 255, 0, 0, 0]);
        assert_eq!(to::<i64>(v), [1, -1, 300, 0, 0, 0]);
        assert_eq!(
            to::<crate::Bool>(v).iter().map(|b| b.get()).collect::<Vec<_>>(),
            [true, true, true, false, true, true]
        );
        assert_eq!(to::<f64>(v)[..5], [1.5, -1.5, 300.0, 0.0, 0.5]);
        assert_eq!(to::<f16>(v)[2], f16::from_f32(300.0));
        assert!(to::<bf16>(v)[5].is_nan());
        let h = to::<bf16>(v);
        let mut y = [0i16; 6];
        cast(View::contiguous(&h, &shape, &strides), &mut y);
        assert_eq!(y, [1, -1, 300, 0, 0, 0]);
        let edges = [f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 2_147_483_520.0, -129.0];
        let v = View::contiguous(&edges, &shape, &strides);
        assert_eq!(to::<i32>(v), [i32::MAX, i32::MIN, i32::MAX, i32::MIN, 2_147_483_520, -129]);
        assert_eq!(to::<i64>(v), [i64::MAX, i64::MIN, 3_000_000_000, -3_000_000_000, 2_147_483_520, -129]);
        assert_eq!(to::<i16>(v), [i16::MAX, i16::MIN, i16::MAX, i16::MIN, i16::MAX, -129]);
        assert_eq!(to::<i8>(v), [127, -128, 127, -128, 127, -128]);
        assert_eq!(to::<u8>(v), [255, 0, 255, 0, 255, 0]);
        // The longer way of float64 and the half types has the same rule.
        let wide = edges.map(|v| v as f64);
        let mut y = [0i8; 6];
        cast(View::contiguous(&wide, &shape, &strides), &mut y);
        assert_eq!(y, [127, -128, 127, -128, 127, -128]);
        let mut y = [0i32; 6];
        cast(View::contiguous(&wide, &shape, &strides), &mut y);
        assert_eq!(y, [i32::MAX, i32::MIN, i32::MAX, i32::MIN, 2_147_483_520, -129]);
        let big = [i64::MAX, 257, -1, 0, 5, 1 << 40];
        let mut y = [0u8; 6];
        cast(View::contiguous(&big, &shape, &strides), &mut y);
        assert_eq!(y, [255, 1, 255, 0, 5, 0]);
    }
}
