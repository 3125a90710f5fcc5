//! The transforms of Winograd's method along one axis, and how two of them make one of a square.
//!
//! A method is known by its points along an axis, `N`: 4 and 6 make tiles of 2 and 4 outputs from as many inputs as there
//! are points. 3 makes the 2 outputs of a whole image of 2 inputs with a zero on either side, which is smaller still.
//!
//! With `B` for inputs, `G` for kernels and `A` for outputs, a convolution is `Aᵀ [(G w Gᵀ) ⊙ (Bᵀ x B)] A`, and so its
//! gradient by the kernel `Gᵀ [(A dy Aᵀ) ⊙ (Bᵀ x B)] G`.

use pulp::Simd;

/// The most elements of a line.
const MOST: usize = 6;

/// Vectors along one axis; those beyond the extent of a step do not count.
type Line<S> = [<S as Simd>::f32s; MOST];

/// Outputs of a tile along one axis.
pub(crate) const fn outputs(points: usize) -> usize {
    if points == 3 { 2 } else { points - 2 }
}

/// A transform of a line of `FROM` elements to one of `TO`.
pub(crate) trait Step {
    const FROM: usize;
    const TO: usize;
    fn line<S: Simd>(simd: S, line: Line<S>) -> Line<S>;
}

/// `Bᵀ x`.
pub(crate) struct Input<const N: usize>;
/// `A dy`.
pub(crate) struct Gradient<const N: usize>;
/// `Aᵀ m`.
pub(crate) struct Output<const N: usize>;
/// `G w`.
pub(crate) struct Kernel<const N: usize>;
/// `Gᵀ u`.
pub(crate) struct KernelGradient<const N: usize>;

/// `k · a + b`. (A function: closures are not compiled for the wider instruction set.)
#[inline(always)]
fn scaled<S: Simd>(simd: S, k: f32, a: S::f32s, b: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(simd.splat_f32s(k), a, b)
}

#[inline(always)]
fn times<S: Simd>(simd: S, k: f32, a: S::f32s) -> S::f32s {
    simd.mul_f32s(simd.splat_f32s(k), a)
}

impl<const N: usize> Step for Input<N> {
    const FROM: usize = if N == 3 { 2 } else { N };
    const TO: usize = N;

    #[inline(always)]
    fn line<S: Simd>(simd: S, d: Line<S>) -> Line<S> {
        let mut out = d;
        if N == 3 {
            out[0] = simd.add_f32s(d[0], d[1]);
            out[1] = d[1];
            out[2] = d[0];
        } else if N == 4 {
            out[0] = simd.sub_f32s(d[0], d[2]);
            out[1] = simd.add_f32s(d[1], d[2]);
            out[2] = simd.sub_f32s(d[2], d[1]);
            out[3] = simd.sub_f32s(d[1], d[3]);
        } else {
            let (even, odd) = (scaled(simd, -4.0, d[2], d[4]), scaled(simd, -4.0, d[1], d[3]));
            let (even2, odd2) = (simd.sub_f32s(d[4], d[2]), simd.sub_f32s(d[3], d[1]));
            out[0] = scaled(simd, 4.0, d[0], scaled(simd, -5.0, d[2], d[4]));
            out[1] = simd.add_f32s(even, odd);
            out[2] = simd.sub_f32s(even, odd);
            out[3] = scaled(simd, 2.0, odd2, even2);
            out[4] = scaled(simd, -2.0, odd2, even2);
            out[5] = scaled(simd, 4.0, d[1], scaled(simd, -5.0, d[3], d[5]));
        }
        out
    }
}

impl<const N: usize> Step for Gradient<N> {
    const FROM: usize = outputs(N);
    const TO: usize = N;

    #[inline(always)]
    fn line<S: Simd>(simd: S, d: Line<S>) -> Line<S> {
        let mut out = d;
        if N == 3 {
            out[0] = simd.add_f32s(d[0], d[1]);
            out[1] = d[0];
            out[2] = d[1];
        } else if N == 4 {
            out[1] = simd.add_f32s(d[0], d[1]);
            out[2] = simd.sub_f32s(d[0], d[1]);
            out[3] = simd.sub_f32s(simd.splat_f32s(0.0), d[1]);
        } else {
            let (even, odd) = (simd.add_f32s(d[0], d[2]), simd.add_f32s(d[1], d[3]));
            let (even2, odd2) = (scaled(simd, 4.0, d[2], d[0]), scaled(simd, 4.0, d[3], d[1]));
            out[1] = simd.add_f32s(even, odd);
            out[2] = simd.sub_f32s(even, odd);
            out[3] = scaled(simd, 2.0, odd2, even2);
            out[4] = scaled(simd, -2.0, odd2, even2);
            out[5] = d[3];
        }
        out
    }
}

impl<const N: usize> Step for Output<N> {
    const FROM: usize = N;
    const TO: usize = outputs(N);

    #[inline(always)]
    fn line<S: Simd>(simd: S, m: Line<S>) -> Line<S> {
        let mut out = m;
        let (sum, difference) = (simd.add_f32s(m[1], m[2]), simd.sub_f32s(m[1], m[2]));
        if N == 3 {
            out[0] = simd.add_f32s(m[0], m[1]);
            out[1] = simd.add_f32s(m[0], m[2]);
        } else if N == 4 {
            out[0] = simd.add_f32s(m[0], sum);
            out[1] = simd.sub_f32s(difference, m[3]);
        } else {
            let (sum2, difference2) = (simd.add_f32s(m[3], m[4]), simd.sub_f32s(m[3], m[4]));
            out[0] = simd.add_f32s(simd.add_f32s(m[0], sum), sum2);
            out[1] = scaled(simd, 2.0, difference2, difference);
            out[2] = scaled(simd, 4.0, sum2, sum);
            out[3] = simd.add_f32s(scaled(simd, 8.0, difference2, difference), m[5]);
        }
        out
    }
}

impl<const N: usize> Step for Kernel<N> {
    const FROM: usize = 3;
    const TO: usize = N;

    #[inline(always)]
    fn line<S: Simd>(simd: S, w: Line<S>) -> Line<S> {
        let mut out = w;
        let ends = simd.add_f32s(w[0], w[2]);
        if N == 3 {
            out[0] = w[1];
            out[1] = simd.sub_f32s(w[2], w[1]);
            out[2] = simd.sub_f32s(w[0], w[1]);
        } else if N == 4 {
            out[1] = times(simd, 0.5, simd.add_f32s(ends, w[1]));
            out[2] = times(simd, 0.5, simd.sub_f32s(ends, w[1]));
            out[3] = w[2];
        } else {
            let ends4 = scaled(simd, 4.0, w[2], w[0]);
            out[0] = times(simd, 1.0 / 4.0, w[0]);
            out[1] = times(simd, -1.0 / 6.0, simd.add_f32s(ends, w[1]));
            out[2] = times(simd, 1.0 / 6.0, simd.sub_f32s(w[1], ends));
            out[3] = times(simd, 1.0 / 24.0, scaled(simd, 2.0, w[1], ends4));
            out[4] = times(simd, 1.0 / 24.0, scaled(simd, -2.0, w[1], ends4));
            out[5] = w[2];
        }
        out
    }
}

impl<const N: usize> Step for KernelGradient<N> {
    const FROM: usize = N;
    const TO: usize = 3;

    #[inline(always)]
    fn line<S: Simd>(simd: S, u: Line<S>) -> Line<S> {
        let mut out = u;
        let (sum, difference) = (simd.add_f32s(u[1], u[2]), simd.sub_f32s(u[1], u[2]));
        if N == 3 {
            out[0] = u[2];
            out[1] = simd.sub_f32s(u[0], sum);
            out[2] = u[1];
        } else if N == 4 {
            out[0] = scaled(simd, 0.5, sum, u[0]);
            out[1] = times(simd, 0.5, difference);
            out[2] = scaled(simd, 0.5, sum, u[3]);
        } else {
            let (sum2, difference2) = (simd.add_f32s(u[3], u[4]), simd.sub_f32s(u[3], u[4]));
            let ends = times(simd, -1.0 / 6.0, sum);
            out[0] = scaled(simd, 1.0 / 4.0, u[0], scaled(simd, 1.0 / 24.0, sum2, ends));
            out[1] = scaled(simd, 1.0 / 12.0, difference2, times(simd, -1.0 / 6.0, difference));
            out[2] = simd.add_f32s(u[5], scaled(simd, 1.0 / 6.0, sum2, ends));
        }
        out
    }
}

/// Transforms a square of vectors by columns and by rows. Its elements lie `from_steps` (one down, one across) apart, those
/// of the result `to_steps`.
///
/// # Safety
/// The vectors are valid to read and to write.
#[inline(always)]
pub(crate) unsafe fn square<S: Simd, T: Step>(
    simd: S,
    from: *const f32,
    from_steps: [isize; 2],
    to: *mut f32,
    to_steps: [usize; 2],
) {
    let zero = simd.splat_f32s(0.0);
    let mut rows = [[zero; MOST]; MOST];
    for j in 0..T::FROM {
        let mut column = [zero; MOST];
        for i in 0..T::FROM {
            let at = i as isize * from_steps[0] + j as isize * from_steps[1];
            // SAFETY: promised by the caller.
            column[i] = unsafe { from.offset(at).cast::<S::f32s>().read_unaligned() };
        }
        let column = T::line(simd, column);
        for i in 0..T::TO {
            rows[i][j] = column[i];
        }
    }
    for i in 0..T::TO {
        let row = T::line(simd, rows[i]);
        for j in 0..T::TO {
            let at = i * to_steps[0] + j * to_steps[1];
            // SAFETY: promised by the caller.
            unsafe { to.add(at).cast::<S::f32s>().write_unaligned(row[j]) };
        }
    }
}
