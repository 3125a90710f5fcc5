//! Factors of a product as the tiles want them: panels of a few lines, `[depth, line]`.

use super::lane::Lane;
use crate::shared::Shared;
use std::ops::Range;

/// One factor of a product: the rows of the left one, the columns of the right one. A line has `k` elements, one for each
/// depth.
pub(crate) trait Lines<T = f32>: Sync {
    /// Writes lines `first..first + count` for all of `depth` into a panel `[depth, width]`, with zeros beyond `count`.
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [T]);

    /// If all lines lie side by side in memory: line 0 at depth 0, and the step from one depth to the next.
    fn side_by_side(&self) -> Option<(Shared<T>, usize)> {
        None
    }
}

/// The lines of a strided matrix.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T = f32> {
    base: Shared<T>,
    line: isize,
    depth: isize,
}

impl<T: Lane> Strided<T> {
    /// # Safety
    /// Every element that is asked for must be valid to read as long as this lives.
    pub(crate) unsafe fn new(base: *const T, line: isize, depth: isize) -> Strided<T> {
        Strided { base: Shared::new_const(base), line, depth }
    }

    /// The lines of a slice: line `i` begins at `i * line`.
    pub(crate) fn of(data: &[T], lines: usize, line: usize, count: usize, depth: usize) -> Strided<T> {
        let last = |n: usize, step: usize| n.saturating_sub(1) * step;
        assert!(lines * count == 0 || last(lines, line) + last(count, depth) < data.len(), "lines leave their slice");
        Strided { base: Shared::new_const(data.as_ptr()), line: line as isize, depth: depth as isize }
    }
}

impl<T: Lane> Lines<T> for Strided<T> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [T]) {
        let len = depth.len();
        assert!(count <= width);
        let out = &mut out[..len * width];
        // SAFETY: the elements of these lines are valid to read, as was promised when this was made.
        unsafe {
            let base = self.base.get().offset(first as isize * self.line + depth.start as isize * self.depth);
            if self.line == 1 {
                let step = self.depth;
                match (count, width) {
                    (32, 32) => copy_rows::<T, 32>(base, step, out),
                    (16, 16) => copy_rows::<T, 16>(base, step, out),
                    (12, 12) => copy_rows::<T, 12>(base, step, out),
                    (8, 8) => copy_rows::<T, 8>(base, step, out),
                    (6, 6) => copy_rows::<T, 6>(base, step, out),
                    _ => {
                        for (d, out) in out.chunks_exact_mut(width).enumerate() {
                            let from = std::slice::from_raw_parts(base.offset(d as isize * step), count);
                            out[..count].iter_mut().zip(from).for_each(|(o, v)| *o = *v);
                            out[count..].fill(T::ZERO);
                        }
                    }
                }
            } else if self.depth == 1 {
                transpose(base, self.line, count, len, width, out);
            } else {
                for (d, out) in out.chunks_exact_mut(width).enumerate() {
                    for (l, o) in out.iter_mut().enumerate() {
                        let at = l as isize * self.line + d as isize * self.depth;
                        *o = if l < count { *base.offset(at) } else { T::ZERO };
                    }
                }
            }
        }
    }

    fn side_by_side(&self) -> Option<(Shared<T>, usize)> {
        (self.line == 1 && self.depth >= 0).then_some((self.base, self.depth as usize))
    }
}

/// # Safety
/// `N` elements at every step from `base` are valid to read, as many times as `out` has room for them.
unsafe fn copy_rows<T: Copy, const N: usize>(base: *const T, step: isize, out: &mut [T]) {
    for (d, out) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        *out = unsafe { base.offset(d as isize * step).cast::<[T; N]>().read() };
    }
}

/// Packs `count` panels of `panel` lines that lie side by side from `base` on, of `len` depths, one row after the other.
///
/// # Safety
/// So many elements at each of `len` steps from `base` are valid to read.
pub(crate) unsafe fn together<T: Lane>(
    base: *const T,
    step: usize,
    panel: usize,
    count: usize,
    len: usize,
    out: &mut [T],
) {
    let out = &mut out[..count * panel * len];
    // SAFETY: promised by the caller, and just found.
    unsafe {
        match panel {
            12 => panels_of::<T, 12>(base, step, count, len, out),
            8 => panels_of::<T, 8>(base, step, count, len, out),
            6 => panels_of::<T, 6>(base, step, count, len, out),
            _ => {
                for (p, out) in out.chunks_exact_mut(panel * len).enumerate() {
                    for (d, out) in out.chunks_exact_mut(panel).enumerate() {
                        out.copy_from_slice(std::slice::from_raw_parts(base.add(d * step + p * panel), panel));
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`together`], and `out` has room for the panels.
unsafe fn panels_of<T: Lane, const N: usize>(base: *const T, step: usize, count: usize, len: usize, out: &mut [T]) {
    let out = out.as_mut_ptr();
    for d in 0..len {
        for p in 0..count {
            // SAFETY: promised by the caller.
            unsafe {
                let from = base.add(d * step + p * N).cast::<[T; N]>();
                out.add((p * len + d) * N).cast::<[T; N]>().write(from.read());
            }
        }
    }
}

/// Lines of `len` elements side by side become columns of `out`, whose rows are `width` long; the columns beyond `count`
/// are zero.
///
/// # Safety
/// `len` elements from each of `count` lines, `line` apart, are valid to read.
pub(crate) unsafe fn transpose<T: Lane>(
    base: *const T,
    line: isize,
    count: usize,
    len: usize,
    width: usize,
    out: &mut [T],
) {
    assert!(count <= width && out.len() >= len * width);
    // SAFETY: the lines are promised by the caller, and `out` has room for `len` rows of `width`.
    unsafe { transpose_to(base, line, count, len, out.as_mut_ptr(), width) };
    if count < width {
        out.chunks_exact_mut(width).take(len).for_each(|row| row[count..].fill(T::ZERO));
    }
}

/// Lines of `len` elements side by side become columns of a matrix whose rows are `pitch` apart.
///
/// # Safety
/// `len` elements from each of `count` lines, `line` apart, are valid to read, and the first `count` elements of `len` rows
/// to write.
pub(crate) unsafe fn transpose_to<T: Lane>(
    base: *const T,
    line: isize,
    count: usize,
    len: usize,
    to: *mut T,
    pitch: usize,
) {
    let mut l = 0;
    while l < count {
        let n = match count - l {
            8.. => 8,
            4.. => 4,
            rest => rest,
        };
        let mut d = 0;
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() == 4 && n >= 4 && pulp::x86::V3::try_new().is_some() {
            while d + 4 <= len {
                let step = if d + 8 <= len { 8 } else { 4 };
                // SAFETY: `n` lines have so many elements from `d` on, and as many rows have `n` columns from `l` on; the
                // machine knows AVX2, and what has four bytes is an `f32`.
                unsafe {
                    let from = base.offset(l as isize * line + d as isize).cast::<f32>();
                    let to = to.add(d * pitch + l).cast::<f32>();
                    match (n, step) {
                        (8, 8) => x86::eight(from, line, to, pitch),
                        (_, 8) => x86::four(from, line, to, pitch),
                        (8, _) => x86::short(from, line, to, pitch, 2),
                        _ => x86::short(from, line, to, pitch, 1),
                    }
                }
                d += step;
            }
        }
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() == 8 && n >= 4 && pulp::x86::V3::try_new().is_some() {
            while d + 4 <= len {
                for first in (l..l + n).step_by(4) {
                    // SAFETY: as above; what has eight bytes is an `f64`.
                    unsafe {
                        let from = base.offset(first as isize * line + d as isize).cast::<f64>();
                        x86::four_doubles(from, line, to.add(d * pitch + first).cast::<f64>(), pitch);
                    }
                }
                d += 4;
            }
        }
        // SAFETY: promised by the caller.
        let one = |d: usize, i: usize| unsafe { *to.add(d * pitch + i) = *base.offset(i as isize * line + d as isize) };
        // The longer of the two loops inside.
        if n < 4 {
            (l..l + n).for_each(|i| (d..len).for_each(|d| one(d, i)));
        } else {
            (d..len).for_each(|d| (l..l + n).for_each(|i| one(d, i)));
        }
        l += n;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::simd::each;
    use std::arch::x86_64::*;

    /// Eight lines of eight elements become eight rows.
    ///
    /// # Safety
    /// The lines are valid to read and the rows to write, and the machine knows AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn eight(from: *const f32, line: isize, to: *mut f32, width: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let x: [__m256; 8] = each!(i => _mm256_loadu_ps(from.offset(i as isize * line)));
            let mut y = [_mm256_setzero_ps(); 8];
            for i in 0..4 {
                y[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
                y[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
            }
            let mut z = [_mm256_setzero_ps(); 8];
            for i in [0, 4] {
                z[i] = _mm256_shuffle_ps::<0b01_00_01_00>(y[i], y[i + 2]);
                z[i + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(y[i], y[i + 2]);
                z[i + 2] = _mm256_shuffle_ps::<0b01_00_01_00>(y[i + 1], y[i + 3]);
                z[i + 3] = _mm256_shuffle_ps::<0b11_10_11_10>(y[i + 1], y[i + 3]);
            }
            for i in 0..4 {
                _mm256_storeu_ps(to.add(i * width), _mm256_permute2f128_ps::<0x20>(z[i], z[i + 4]));
                _mm256_storeu_ps(to.add((i + 4) * width), _mm256_permute2f128_ps::<0x31>(z[i], z[i + 4]));
            }
        }
    }

    /// Four lines of eight elements become eight rows.
    ///
    /// # Safety
    /// As [`eight`].
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn four(from: *const f32, line: isize, to: *mut f32, width: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let x: [__m256; 4] = each!(i => _mm256_loadu_ps(from.offset(i as isize * line)));
            let (a, b) = (_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
            let (c, d) = (_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
            let rows = [
                _mm256_shuffle_ps::<0b01_00_01_00>(a, c),
                _mm256_shuffle_ps::<0b11_10_11_10>(a, c),
                _mm256_shuffle_ps::<0b01_00_01_00>(b, d),
                _mm256_shuffle_ps::<0b11_10_11_10>(b, d),
            ];
            for (i, row) in rows.into_iter().enumerate() {
                _mm_storeu_ps(to.add(i * width), _mm256_castps256_ps128(row));
                _mm_storeu_ps(to.add((i + 4) * width), _mm256_extractf128_ps::<1>(row));
            }
        }
    }

    /// Four lines of four elements become four rows.
    ///
    /// # Safety
    /// As [`eight`].
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn four_doubles(from: *const f64, line: isize, to: *mut f64, width: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let x: [__m256d; 4] = each!(i => _mm256_loadu_pd(from.offset(i as isize * line)));
            let (a, b) = (_mm256_unpacklo_pd(x[0], x[1]), _mm256_unpackhi_pd(x[0], x[1]));
            let (c, d) = (_mm256_unpacklo_pd(x[2], x[3]), _mm256_unpackhi_pd(x[2], x[3]));
            _mm256_storeu_pd(to, _mm256_permute2f128_pd::<0x20>(a, c));
            _mm256_storeu_pd(to.add(width), _mm256_permute2f128_pd::<0x20>(b, d));
            _mm256_storeu_pd(to.add(2 * width), _mm256_permute2f128_pd::<0x31>(a, c));
            _mm256_storeu_pd(to.add(3 * width), _mm256_permute2f128_pd::<0x31>(b, d));
        }
    }

    /// Four lines of four elements become four rows, and so the next four lines beside them, `times` times.
    ///
    /// # Safety
    /// As [`eight`].
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn short(from: *const f32, line: isize, to: *mut f32, width: usize, times: usize) {
        for t in 0..times {
            // SAFETY: promised by the caller.
            unsafe {
                let from = from.offset(4 * t as isize * line);
                let mut x: [__m128; 4] = [_mm_setzero_ps(); 4];
                for (i, x) in x.iter_mut().enumerate() {
                    *x = _mm_loadu_ps(from.offset(i as isize * line));
                }
                let [a, b, c, d] = &mut x;
                _MM_TRANSPOSE4_PS(a, b, c, d);
                for (i, x) in x.into_iter().enumerate() {
                    _mm_storeu_ps(to.add(i * width + 4 * t), x);
                }
            }
        }
    }
}
