//! The three Fourier transforms that compute: complex to complex, real to complex, complex to real.
//!
//! `forward` chooses the sign of the exponent, minus if it is true. `norm` says which of the two directions divides by the
//! number of points: `backward` the inverse one, `forward` the other, `ortho` each by its root.

pub mod fft;
pub mod signal;

use crate::ops::prelude::*;
use sampan_kernels::fft as kernel;

/// The factor of a transform of `n` points.
fn factor(norm: &str, forward: bool, n: usize) -> Result<f64> {
    Ok(match (norm, forward) {
        ("backward", true) | ("forward", false) => 1.0,
        ("backward", false) | ("forward", true) => 1.0 / n as f64,
        ("ortho", _) => 1.0 / (n as f64).sqrt(),
        _ => bail!("norm must be \"backward\", \"ortho\" or \"forward\", got {norm:?}"),
    })
}

/// The norm that gives the other direction the factor of this one: that of a gradient.
fn other_way(norm: &str) -> &'static str {
    match norm {
        "backward" => "forward",
        "forward" => "backward",
        _ => "ortho",
    }
}

/// The axes as positions, none named twice.
pub(super) fn distinct_axes(x: &Tensor, axes: &[i64]) -> Result<Vec<usize>> {
    let mut out = Vec::new();
    for &a in axes {
        ensure!(x.ndim() > 0, "a 0-d tensor has no axis to transform");
        let at = resolve_axis(a, x.ndim())?;
        ensure!(!out.contains(&at), "axis {a} is named twice in {axes:?}");
        out.push(at);
    }
    Ok(out)
}

/// The axes as positions, each of them holding something.
fn positions(x: &Tensor, axes: &[i64]) -> Result<Vec<usize>> {
    let out = distinct_axes(x, axes)?;
    if let Some(a) = out.iter().find(|&&a| x.shape()[a] == 0) {
        bail!("axis {a} of {:?} is empty: there is nothing to transform", x.shape());
    }
    Ok(out)
}

fn points(x: &Tensor, axes: &[usize]) -> usize {
    axes.iter().map(|&a| x.shape()[a]).product()
}

/// Transforms a contiguous complex tensor in place along some axes.
fn transform(t: &Tensor, axes: &[usize], forward: bool, factor: f64) {
    let mut data = t.values_mut();
    for (i, &a) in axes.iter().enumerate() {
        // One axis carries the factor of all.
        let scale = if i == 0 { factor } else { 1.0 };
        let inner = t.shape()[a + 1..].iter().product();
        kernel::transform(data.slice(), t.shape()[a], inner, !forward, scale);
    }
}

/// The transform of complex numbers along `axes`.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0)]);
/// assert_eq!(x.fft_c2c([0], "backward", true).to_vec::<Complex64>(), [Complex64::new(1.0, 0.0); 2]);
/// ```
#[op(complex, module = "_C_ops", samples = c2c_samples)]
fn fft_c2c(cx: &Cx, x: &Tensor, axes: &[i64], normalization: &str, forward: bool) -> Result<Tensor> {
    if !x.is_complex() {
        return Err(Error::dtype(format!("x must be complex, got {}", x.dtype())));
    }
    let at = positions(x, axes)?;
    let factor = factor(normalization, forward, points(x, &at))?;
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        put(&out, x);
        transform(&out, &at, forward, factor);
        Ok(())
    })?;
    let (axes, norm) = (axes.to_vec(), other_way(normalization));
    cx.grad(out, &[], move |g| Ok(g.grad().fft_c2c(axes.as_slice(), norm, !forward)))
}

/// The transform of real numbers along `axes`. Along the last one of them the first `n / 2 + 1` of the `n` coefficients are
/// kept; the others are their mirror image.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([1.0f32, 1.0, 1.0, 1.0]);
/// assert_eq!(x.fft_r2c([0], "backward", true).to_vec::<Complex64>()[0], Complex64::new(4.0, 0.0));
/// assert_eq!(x.fft_r2c([0], "backward", true).shape(), [3]);
/// ```
#[op(module = "_C_ops", samples = r2c_samples, peer = "lambda x, axes, norm, forward: paddle._C_ops.fft_r2c(x, axes, norm, forward, True)")]
fn fft_r2c(cx: &Cx, x: &Tensor, axes: &[i64], normalization: &str, forward: bool) -> Result<Tensor> {
    let dtype = x.dtype();
    if !matches!(dtype, DType::Float32 | DType::Float64) {
        return Err(Error::dtype(format!("x must be float32 or float64, got {dtype}")));
    }
    ensure!(!axes.is_empty(), "needs an axis");
    let at = positions(x, axes)?;
    let factor = factor(normalization, forward, points(x, &at))?;
    let (&last, rest) = at.split_last().expect("an axis was asked for");
    let n = x.shape()[last];
    let mut shape = x.shape_vec();
    shape[last] = n / 2 + 1;
    let out = cx.out(&shape, dtype.complex())?;
    cx.cpu(|| {
        // The lines lie one behind the other, at first and in the result.
        let rows = x.try_moveaxis(last, -1)?.contiguous();
        let mut moved = shape.clone();
        let half = moved.remove(last);
        moved.push(half);
        let lines = if last + 1 == x.ndim() { out.clone() } else { cx.out(&moved, dtype.complex())? };
        kernel::real_to_complex(rows.values().slice(), lines.values_mut().slice(), n, !forward, factor.into());
        if last + 1 < x.ndim() {
            put(&out, &lines.try_moveaxis(-1, last)?);
        }
        transform(&out, rest, forward, 1.0);
        Ok(())
    })?;
    let (axes, norm, full) = (axes.to_vec(), other_way(normalization), x.shape_vec());
    cx.grad(out, &[], move |g| {
        let zeros = vec![0i64; full.len()];
        let padded = g.grad().unslice(&full, zeros.as_slice(), vec![1i64; full.len()]);
        Ok(padded.fft_c2c(axes.as_slice(), norm, !forward).real())
    })
}

/// Copies a view into a contiguous tensor of the same shape.
fn put(out: &Tensor, values: &Tensor) {
    sampan_kernels::copy::copy_strided(values.values().view(), out.values_mut().slice());
}

/// The transform along `axes` of complex numbers that stand for twice as many: along the last one of them the coefficients
/// from `last_dim_size / 2 + 1` on are the mirror image of those that are there, so the result is real.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([Complex64::new(4.0, 0.0), Complex64::new(0.0, 0.0), Complex64::new(0.0, 0.0)]);
/// assert_eq!(x.fft_c2r([0], "backward", false, 4).to_vec::<f32>(), [1.0; 4]);
/// ```
#[op(complex, module = "_C_ops", samples = c2r_samples)]
fn fft_c2r(
    cx: &Cx,
    x: &Tensor,
    axes: &[i64],
    normalization: &str,
    forward: bool,
    #[default(0)] last_dim_size: i64,
) -> Result<Tensor> {
    if !x.is_complex() {
        return Err(Error::dtype(format!("x must be complex, got {}", x.dtype())));
    }
    ensure!(!axes.is_empty(), "needs an axis");
    let at = positions(x, axes)?;
    let (&last, rest) = at.split_last().expect("an axis was asked for");
    let half = x.shape()[last];
    let n = if last_dim_size == 0 { 2 * (half as i64 - 1) } else { last_dim_size };
    ensure!(n > 0, "the result would have {n} points; give more coefficients or a larger size");
    ensure!(n as usize / 2 + 1 == half, "{n} points need {} coefficients, x has {half}", n as usize / 2 + 1);
    let n = n as usize;
    let mut shape = x.shape_vec();
    shape[last] = n;
    let factor = factor(normalization, forward, points(x, rest) * n)?;
    let dtype = x.dtype().real_part();
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let whole = x.try_clone_data()?;
        transform(&whole, rest, forward, 1.0);
        let rows = whole.try_moveaxis(last, -1)?.contiguous();
        let mut moved = shape.clone();
        moved.remove(last);
        moved.push(n);
        let lines = if last + 1 == x.ndim() { out.clone() } else { cx.out(&moved, dtype)? };
        kernel::complex_to_real(rows.values().slice(), lines.values_mut().slice(), n, !forward, factor.into());
        if last + 1 < x.ndim() {
            put(&out, &lines.try_moveaxis(-1, last)?);
        }
        Ok(())
    })?;
    let (axes, norm) = (axes.to_vec(), other_way(normalization));
    let mut spread = vec![1usize; shape.len()];
    spread[last] = half;
    cx.grad(out, &[], move |g| {
        // What has a mirror image counts twice.
        let twice: Vec<f64> = (0..half).map(|k| if k == 0 || 2 * k == n { 1.0 } else { 2.0 }).collect();
        let twice = Tensor::from_vec(twice, &spread).cast(dtype);
        Ok(g.grad().fft_r2c(axes.as_slice(), norm, !forward) * twice)
    })
}

fn c2c_samples() -> Vec<Sample> {
    vec![
        sample![complexes([5]), [0], "backward", true],
        sample![complexes([3, 4]), [0, 1], "ortho", false],
        sample![complexes([2, 3, 2]), [1], "forward", true],
        sample![complexes([2, 3, 2]), [2, 0], "backward", false],
    ]
}
fn r2c_samples() -> Vec<Sample> {
    vec![
        sample![randn([5]), [0], "backward", true],
        sample![randn([6]), [0], "ortho", false],
        sample![randn([3, 4]), [0, 1], "forward", true],
        sample![randn([2, 3, 2]), [2, 1], "backward", false],
        sample![randn([1, 1]), [1], "backward", true],
    ]
}
fn c2r_samples() -> Vec<Sample> {
    vec![
        sample![complexes([3]), [0], "backward", false, 5],
        sample![complexes([4]), [0], "ortho", true, 6],
        sample![complexes([3, 3]), [0, 1], "forward", false, 4],
        sample![complexes([2, 3, 2]), [2, 1], "backward", true, 5],
        sample![complexes([3]), [0], "backward", false, 0],
    ]
}
