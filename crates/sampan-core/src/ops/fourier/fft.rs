//! Discrete Fourier transforms under their public names: the input is cast and resized, then one of the three ops of
//! `fourier` computes.

use crate::ops::fourier::distinct_axes;
use crate::ops::prelude::*;

/// Cut off or filled up with zeros at the end of some axes.
fn resized(x: &Tensor, axes: &[i64], sizes: &[usize]) -> Result<Tensor> {
    let (mut lens, mut shape) = (x.shape_vec(), x.shape_vec());
    for (a, &n) in distinct_axes(x, axes)?.into_iter().zip(sizes) {
        lens[a] = n.min(x.shape()[a]);
        shape[a] = n;
    }
    crate::shape::checked_numel(&shape)?;
    let (zeros, ones) = (vec![0i64; x.ndim()], vec![1i64; x.ndim()]);
    let cut =
        if lens[..] == *x.shape() { x.clone() } else { x.try_view_slice(zeros.as_slice(), &lens, ones.as_slice())? };
    if shape == lens { Ok(cut) } else { cut.try_unslice(&shape, zeros, ones) }
}

/// What the public functions share: which axes are transformed, and how long they are made.
struct Lines {
    axes: Vec<i64>,
    sizes: Option<Vec<usize>>,
}

impl Lines {
    fn one(n: Option<i64>, axis: i64) -> Result<Lines> {
        let sizes = n.map(|n| size(n).map(|n| vec![n])).transpose()?;
        Ok(Lines { axes: vec![axis], sizes })
    }

    /// `axes` as they are named; without them the last ones that `s` has sizes for, or all.
    fn many(x: &Tensor, s: Option<&[i64]>, axes: &Axes) -> Result<Lines> {
        let rank = x.ndim() as i64;
        let axes: Vec<i64> = match (&axes.0, s) {
            (Some(axes), _) => axes.to_vec(),
            (None, Some(s)) => {
                ensure!(s.len() <= x.ndim(), "s {s:?} has more sizes than x of shape {:?} has axes", x.shape());
                (rank - s.len() as i64..rank).collect()
            }
            (None, None) => (0..rank).collect(),
        };
        let sizes = s.map(|s| s.iter().map(|&n| size(n)).collect::<Result<Vec<_>>>()).transpose()?;
        if let Some(sizes) = &sizes {
            ensure!(sizes.len() == axes.len(), "s has {} sizes for {} axes", sizes.len(), axes.len());
        }
        Ok(Lines { axes, sizes })
    }

    fn fit(&self, x: &Tensor) -> Result<Tensor> {
        self.sizes.as_ref().map_or(Ok(x.clone()), |sizes| resized(x, &self.axes, sizes))
    }

    /// Complex to complex.
    fn complex(self, x: &Tensor, norm: &str, forward: bool) -> Result<Tensor> {
        let x = self.fit(&x.try_cast(to_float(x.dtype()).complex())?)?;
        x.try_fft_c2c(self.axes, norm, forward)
    }

    /// Real to complex.
    fn halved(self, x: &Tensor, norm: &str, forward: bool) -> Result<Tensor> {
        if x.is_complex() {
            return Err(Error::dtype(format!("x must be real, got {}", x.dtype())).hint("use fft, or take x.real()"));
        }
        let x = self.fit(&x.try_cast(to_float(x.dtype()))?)?;
        x.try_fft_r2c(self.axes, norm, forward)
    }

    /// Complex to real.
    fn doubled(mut self, x: &Tensor, norm: &str, forward: bool) -> Result<Tensor> {
        let n = self.sizes.as_mut().and_then(|s| s.last_mut()).map_or(0, |last| {
            let n = *last;
            *last = n / 2 + 1;
            n as i64
        });
        let x = self.fit(&x.try_cast(to_float(x.dtype()).complex())?)?;
        x.try_fft_c2r(self.axes, norm, forward, n)
    }
}

fn size(n: i64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| Error::invalid(format!("the number of points must be positive, got {n}")))
}

/// The discrete Fourier transform along `axis`, of `n` points: the input is cut off or filled up with zeros.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(x.fft().to_vec::<Complex64>(), [Complex64::new(3.0, 0.0), Complex64::new(-1.0, 0.0)]);
/// ```
#[op(complex, module = "fft", samples = one_samples)]
fn fft(x: &Tensor, #[opt(None)] n: Option<i64>, #[opt(-1)] axis: i64, #[opt("backward")] norm: &str) -> Result<Tensor> {
    Lines::one(n, axis)?.complex(x, norm, true)
}

/// The inverse of `fft`.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([3.0f32, -1.0]);
/// assert_eq!(x.ifft().to_vec::<Complex64>(), [Complex64::new(1.0, 0.0), Complex64::new(2.0, 0.0)]);
/// ```
#[op(complex, module = "fft", samples = one_samples)]
fn ifft(
    x: &Tensor,
    #[opt(None)] n: Option<i64>,
    #[opt(-1)] axis: i64,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::one(n, axis)?.complex(x, norm, false)
}

/// The transform of real numbers along `axis`: the first `n / 2 + 1` coefficients, of which the others are the mirror image.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([1.0f32, 2.0, 3.0, 2.0]);
/// assert_eq!(x.rfft().to_vec::<Complex64>(), [Complex64::new(8.0, 0.0), Complex64::new(-2.0, 0.0), Complex64::new(0.0, 0.0)]);
/// ```
#[op(module = "fft", samples = real_samples)]
fn rfft(
    x: &Tensor,
    #[opt(None)] n: Option<i64>,
    #[opt(-1)] axis: i64,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::one(n, axis)?.halved(x, norm, true)
}

/// The inverse of `rfft`: `n` real numbers, `2 * (m - 1)` by default, from the first half of their coefficients.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([Complex64::new(8.0, 0.0), Complex64::new(-2.0, 0.0), Complex64::new(0.0, 0.0)]);
/// assert_eq!(x.irfft().to_vec::<f32>(), [1.0, 2.0, 3.0, 2.0]);
/// ```
#[op(complex, module = "fft", samples = half_samples)]
fn irfft(
    x: &Tensor,
    #[opt(None)] n: Option<i64>,
    #[opt(-1)] axis: i64,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::one(n, axis)?.doubled(x, norm, false)
}

/// The transform along `axis` of a signal of which the second half is the mirror image of the first: `n` real numbers.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([Complex64::new(2.0, 0.0), Complex64::new(0.5, 0.0), Complex64::new(1.0, 0.0)]);
/// assert_eq!(x.hfft().to_vec::<f32>(), [4.0, 1.0, 2.0, 1.0]);
/// ```
#[op(complex, module = "fft", samples = half_samples)]
fn hfft(
    x: &Tensor,
    #[opt(None)] n: Option<i64>,
    #[opt(-1)] axis: i64,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::one(n, axis)?.doubled(x, norm, true)
}

/// The inverse of `hfft`: the first half of a signal whose transform is real.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([4.0f32, 1.0, 2.0, 1.0]);
/// assert_eq!(x.ihfft().to_vec::<Complex64>(), [Complex64::new(2.0, 0.0), Complex64::new(0.5, 0.0), Complex64::new(1.0, 0.0)]);
/// ```
#[op(module = "fft", samples = real_samples)]
fn ihfft(
    x: &Tensor,
    #[opt(None)] n: Option<i64>,
    #[opt(-1)] axis: i64,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::one(n, axis)?.halved(x, norm, false)
}

/// The discrete Fourier transform along several axes (the last two axes by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.fft2().real().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(complex, module = "fft", samples = axes_samples2, alias(dim = axes))]
fn fft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.complex(x, norm, true)
}

/// The inverse of `fft2`, along several axes (the last two axes by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.ifft2().real().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(complex, module = "fft", samples = axes_samples2, alias(dim = axes))]
fn ifft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.complex(x, norm, false)
}

/// The transform of real numbers along several axes (the last two axes by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.rfft2().real().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(module = "fft", samples = real_axes_samples2, alias(dim = axes))]
fn rfft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.halved(x, norm, true)
}

/// The inverse of `rfft2`, along several axes (the last two axes by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.irfft2().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(complex, module = "fft", samples = half_axes_samples2, alias(dim = axes))]
fn irfft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.doubled(x, norm, false)
}

/// The transform along several axes (the last two axes by default) of a signal whose second half, along the last of them, is
/// the mirror image of the first.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.hfft2().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(complex, module = "fft", samples = half_axes_samples2, alias(dim = axes))]
fn hfft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.doubled(x, norm, true)
}

/// The inverse of `hfft2`, along several axes (the last two axes by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.ihfft2().real().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(module = "fft", samples = real_axes_samples2, alias(dim = axes))]
fn ihfft2(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt([-2, -1])] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.halved(x, norm, false)
}

/// The discrete Fourier transform along several axes (all by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.fftn().real().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(complex, module = "fft", samples = axes_samples, alias(dim = axes))]
fn fftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.complex(x, norm, true)
}

/// The inverse of `fftn`, along several axes (all by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.ifftn().real().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(complex, module = "fft", samples = axes_samples, alias(dim = axes))]
fn ifftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.complex(x, norm, false)
}

/// The transform of real numbers along several axes (all by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.rfftn().real().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(module = "fft", samples = real_axes_samples, alias(dim = axes))]
fn rfftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.halved(x, norm, true)
}

/// The inverse of `rfftn`, along several axes (all by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.irfftn().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(complex, module = "fft", samples = half_axes_samples, alias(dim = axes))]
fn irfftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.doubled(x, norm, false)
}

/// The transform along several axes (all by default) of a signal whose second half, along the last of them, is
/// the mirror image of the first.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.hfftn().to_vec::<f32>(), [10.0, -2.0, -4.0, 0.0]);
/// ```
#[op(complex, module = "fft", samples = half_axes_samples, alias(dim = axes))]
fn hfftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.doubled(x, norm, true)
}

/// The inverse of `hfftn`, along several axes (all by default).
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[10.0f32, -2.0], [-4.0, 0.0]]);
/// assert_eq!(x.ihfftn().real().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[op(module = "fft", samples = real_axes_samples, alias(dim = axes))]
fn ihfftn(
    x: &Tensor,
    #[opt(None)] s: Option<&[i64]>,
    #[opt(None)] axes: Axes,
    #[opt("backward")] norm: &str,
) -> Result<Tensor> {
    Lines::many(x, s, &axes)?.halved(x, norm, false)
}

/// Where the coefficients of a transform of `n` points lie, in cycles per unit of a spacing of `d`: zero, the positive
/// ones, then the negative ones.
///
/// ```
/// # use sampan_core::ops::fft::fftfreq;
/// assert_eq!(fftfreq(4, 0.5).to_vec::<f32>(), [0.0, 0.5, -1.0, -0.5]);
/// ```
#[op(module = "fft", non_diff, samples = frequency_samples)]
fn fftfreq(n: i64, #[default(1.0)] d: f64, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let n = crate::shape::checked_numel(&[size(n)?])? as i64;
    let front = crate::ops::creation::try_arange(0, (n + 1) / 2, 1)?;
    let back = crate::ops::creation::try_arange(-(n / 2), 0, 1)?;
    frequencies(&crate::ops::joining::try_concat(&[front, back], 0)?, n, d, dtype)
}

/// The frequencies that are not negative: those of the coefficients that `rfft` gives.
///
/// ```
/// # use sampan_core::ops::fft::rfftfreq;
/// assert_eq!(rfftfreq(4, 0.5).to_vec::<f32>(), [0.0, 0.5, 1.0]);
/// ```
#[op(module = "fft", non_diff, samples = frequency_samples)]
fn rfftfreq(n: i64, #[default(1.0)] d: f64, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let n = size(n)? as i64;
    frequencies(&crate::ops::creation::try_arange(0, n / 2 + 1, 1)?, n, d, dtype)
}

fn frequencies(turns: &Tensor, n: i64, d: f64, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(default_dtype);
    if !dtype.is_float() {
        return Err(Error::dtype(format!("a frequency is no {dtype}")).hint("leave dtype out, or pass a float"));
    }
    ensure!(d != 0.0 && d.is_finite(), "the spacing d must be a number other than zero, got {d}");
    (turns.try_cast(DType::Float64)? / (n as f64 * d)).try_cast(dtype)
}

/// The coefficient of frequency zero brought to the middle of each axis (all by default): the halves change places.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0i64, 1, 2, -2, -1]).fftshift(()).to_vec::<i64>(), [-2, -1, 0, 1, 2]);
/// ```
#[op(complex, module = "fft", samples = shift_samples, alias(dim = axes))]
fn fftshift(x: &Tensor, #[default(None)] axes: Axes) -> Result<Tensor> {
    shifted(x, axes, |n| n / 2)
}

/// The inverse of `fftshift`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-2i64, -1, 0, 1, 2]).ifftshift(()).to_vec::<i64>(), [0, 1, 2, -2, -1]);
/// ```
#[op(complex, module = "fft", samples = shift_samples, alias(dim = axes))]
fn ifftshift(x: &Tensor, #[default(None)] axes: Axes) -> Result<Tensor> {
    shifted(x, axes, |n| n.div_ceil(2))
}

fn shifted(x: &Tensor, axes: Axes, by: impl Fn(usize) -> usize) -> Result<Tensor> {
    let axes = axes.0.map_or_else(|| (0..x.ndim() as i64).collect(), |a| a.to_vec());
    let shifts: Vec<i64> = distinct_axes(x, &axes)?.into_iter().map(|a| by(x.shape()[a]) as i64).collect();
    x.try_roll(shifts, axes)
}

fn one_samples() -> Vec<Sample> {
    vec![
        sample![randn([5])],
        sample![complexes([2, 4])],
        sample![complexes([3, 4]); axis = 0, norm = "ortho"],
        sample![complexes([2, 5]); n = 3, norm = "forward"],
        sample![randn([2, 3]); n = 5],
        sample![ints([4], 0, 9)],
    ]
}
fn real_samples() -> Vec<Sample> {
    vec![
        sample![randn([5])],
        sample![randn([2, 4])],
        sample![randn([3, 4]); axis = 0, norm = "ortho"],
        sample![randn([2, 5]); n = 4, norm = "forward"],
        sample![randn([2, 3]); n = 6],
        sample![ints([4], 0, 9)],
    ]
}
fn half_samples() -> Vec<Sample> {
    vec![
        sample![complexes([4])],
        sample![complexes([2, 3]); n = 5],
        sample![complexes([3, 4]); axis = 0, norm = "ortho"],
        sample![complexes([2, 5]); n = 4, norm = "forward"],
        sample![complexes([2, 3]); n = 7],
        sample![randn([4])],
    ]
}
fn axes_samples() -> Vec<Sample> {
    let mut samples = axes_samples2();
    samples.push(sample![complexes([2, 3, 2])]);
    samples.push(sample![complexes([2, 3, 2]); s = [4]]);
    samples
}
fn axes_samples2() -> Vec<Sample> {
    vec![
        sample![randn([3, 4])],
        sample![complexes([2, 3, 4]); norm = "ortho"],
        sample![complexes([3, 4, 2]); s = [2, 5], axes = [0, 1], norm = "forward"],
        sample![complexes([3, 4]); axes = [1, 0]],
    ]
}
fn real_axes_samples() -> Vec<Sample> {
    let mut samples = real_axes_samples2();
    samples.push(sample![randn([2, 3, 2])]);
    samples.push(sample![randn([2, 3, 2]); s = [4]]);
    samples
}
fn real_axes_samples2() -> Vec<Sample> {
    vec![
        sample![randn([3, 4])],
        sample![randn([2, 3, 5]); norm = "ortho"],
        sample![randn([3, 4, 2]); s = [2, 5], axes = [0, 1], norm = "forward"],
        sample![randn([3, 4]); axes = [1, 0]],
    ]
}
fn half_axes_samples() -> Vec<Sample> {
    let mut samples = half_axes_samples2();
    samples.push(sample![complexes([2, 3, 3])]);
    samples.push(sample![complexes([2, 3, 2]); s = [3]]);
    samples
}
fn half_axes_samples2() -> Vec<Sample> {
    vec![
        sample![complexes([3, 4])],
        sample![complexes([2, 3, 3]); norm = "ortho"],
        sample![complexes([3, 4, 2]); s = [2, 5], axes = [0, 1], norm = "forward"],
        sample![complexes([3, 4]); axes = [1, 0]],
    ]
}
fn frequency_samples() -> Vec<Sample> {
    vec![sample![5], sample![6, 0.3], sample![1, 2.0; dtype = DType::Float64]]
}
fn shift_samples() -> Vec<Sample> {
    // Paddle fails where one axis is shifted.
    let torch = "lambda x, axes=None: getattr(torch.fft, op)(x, axes)";
    vec![
        sample![randn([5])].peer(torch),
        sample![complexes([2, 3])],
        sample![randn([2, 3]), 1].peer(torch),
        sample![ints([4, 3], 0, 9), [0, 1]],
    ]
}
