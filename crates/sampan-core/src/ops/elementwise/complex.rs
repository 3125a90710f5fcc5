//! Complex numbers: parts, angles, conjugates, and the way between complex and real tensors. The gradient of a real result
//! with respect to a complex number is `∂/∂re + i ∂/∂im`, the direction in which it grows fastest.

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;

impl Tensor {
    /// The conjugate, for a gradient formula; a real tensor itself, without a call.
    pub(crate) fn conjugate(&self) -> Tensor {
        if self.dtype().is_complex() { self.conj() } else { self.clone() }
    }

    /// Cast to the dtype of a tensor that these values are written into. Imaginary parts do not get lost on the way.
    pub(crate) fn fitting(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype().is_complex() && !dtype.is_complex() {
            return Err(Error::dtype(format!("{} values do not fit into a {dtype} tensor", self.dtype()))
                .hint("take their real() part, or cast the tensor first"));
        }
        self.try_cast(dtype)
    }
}

/// A view of one of the two parts.
fn part(x: &Tensor, which: usize) -> Tensor {
    let mut layout = x.parts().layout().clone();
    layout.shape.pop();
    layout.strides.pop();
    layout.offset += which;
    x.view_as_dtype(layout, x.dtype().real_part())
}

/// The real part of each element, as a view; a real tensor as it is.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// assert_eq!(Tensor::new([Complex64::new(1.0, 2.0)]).real().to_vec::<f32>(), [1.0]);
/// ```
#[op(complex, samples = complex_line)]
fn real(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return cx.grad(x.clone(), &[], |g| Ok(g.grad()));
    }
    let dtype = x.dtype();
    cx.grad(part(x, 0), &[], move |g| Ok(g.grad().cast(dtype)))
}

/// The imaginary part of each element, as a view.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// assert_eq!(Tensor::new([Complex64::new(1.0, 2.0)]).imag().to_vec::<f32>(), [2.0]);
/// ```
#[op(complex, samples = complex_line)]
fn imag(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return Err(Error::dtype(format!("a {} tensor has no imaginary part", x.dtype()))
            .hint("it is zero everywhere: zeros_like(x)"));
    }
    cx.grad(part(x, 1), &[], |g| Ok(g.grad().zeros_like().complex(&g.grad())))
}

/// The complex conjugate: the imaginary part with the other sign. A real tensor is returned as it is.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// assert_eq!(Tensor::new([Complex64::new(1.0, 2.0)]).conj().to_vec::<Complex64>(), [Complex64::new(1.0, -2.0)]);
/// ```
#[op(complex, samples = any_line)]
fn conj(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = match x.dtype().is_complex() {
        true => cx.number_values(formula!(|z| z.conj()), x)?,
        false => x.clone(),
    };
    cx.grad(out, &[], |g| Ok(g.grad().conjugate()))
}

/// The angle of each element in the complex plane, in (-π, π]: 0 or π for real numbers.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// assert_eq!(Tensor::new([Complex64::new(0.0, 2.0)]).angle().to_vec::<f32>(), [std::f32::consts::FRAC_PI_2]);
/// assert_eq!(Tensor::new([3.0f32, -1.0]).angle().to_vec::<f32>(), [0.0, std::f32::consts::PI]);
/// ```
#[op(complex, samples = any_line)]
fn angle(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        let turn = formula!(|x| select(x.is_nan(), x, select(x.lt(0.0), std::f64::consts::PI, 0.0)));
        let out = cx.float_values(turn, x)?;
        return cx.grad(out, &[], |g| Ok(crate::ops::math::zeros_like_grad(g)));
    }
    let out = cx.part(formula!(|z| z.angle()), x)?;
    cx.grad(out, &[x], |g| {
        // Across the number, i · x / |x|²; no angle changes at zero.
        let x = g.saved(0);
        let size = x.abs().square();
        let across = x * Complex128::new(0.0, 1.0);
        Ok(across * (g.grad() / (&size + size.equal(0.0))))
    })
}

/// Complex numbers from a real tensor whose last axis holds two: the real and the imaginary part. A view where the memory
/// allows it.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.as_complex().to_vec::<Complex64>(), [Complex64::new(1.0, 2.0), Complex64::new(3.0, 4.0)]);
/// ```
#[op(samples = pair_samples, also("view_as_complex"))]
fn as_complex(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let dtype = match x.dtype() {
        DType::Float32 | DType::Float64 => x.dtype().complex(),
        other => return Err(Error::dtype(format!("x must be float32 or float64, got {other}"))),
    };
    if x.shape().last() != Some(&2) {
        return Err(Error::invalid("the last axis of x must hold two numbers, the real and the imaginary part"));
    }
    let fits = |l: &Layout| {
        let (last, rest) = l.strides.split_last().expect("has a last axis");
        let outer = l.shape.iter().zip(rest).all(|(&n, &s)| n <= 1 || s % 2 == 0);
        *last == 1 && outer && l.offset.is_multiple_of(2)
    };
    let x = if fits(x.layout()) { x.clone() } else { x.try_clone_data()? };
    let mut layout = x.layout().clone();
    layout.shape.pop();
    layout.strides.pop();
    layout.strides.iter_mut().for_each(|s| *s /= 2);
    layout.offset /= 2;
    let out = x.view_as_dtype(layout, dtype);
    cx.grad(out, &[], |g| Ok(g.grad().as_real()))
}

/// The real numbers of a complex tensor, with a last axis of two for the real and the imaginary part. A view.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// assert_eq!(Tensor::new([Complex64::new(1.0, 2.0)]).as_real().to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(complex, samples = complex_line, also("view_as_real"))]
fn as_real(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return Err(Error::dtype(format!("x must be complex, got {}", x.dtype())).hint("as_complex goes the other way"));
    }
    cx.grad(x.parts(), &[], |g| Ok(g.grad().contiguous().as_complex()))
}

/// The floats that the two operands of a complex number have in common.
fn common_float(a: &Tensor, b: &Tensor) -> Result<DType> {
    let dtype = promote_tensors(a, b);
    match dtype {
        DType::Float32 | DType::Float64 => Ok(dtype),
        other => Err(Error::dtype(format!("the parts must be float32 or float64, got {other}"))),
    }
}

/// Complex numbers from their real and imaginary parts, with broadcasting.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let z = Tensor::new([1.0f32]).complex(&Tensor::new([2.0f32]));
/// assert_eq!(z.to_vec::<Complex64>(), [Complex64::new(1.0, 2.0)]);
/// ```
#[op(samples = parts_samples)]
fn complex(cx: &Cx, real: &Tensor, imag: &Tensor) -> Result<Tensor> {
    let dtype = common_float(real, imag)?.complex();
    let out = cx.values_in(dtype, formula!(|x, y| x.complex(y)), (real, imag))?;
    let (r, i) = (real.shape_vec(), imag.shape_vec());
    cx.grad(out, &[], move |g| {
        let d = g.grad();
        Ok([g.if_needed(0, || sum_to(&d.real(), &r)), g.if_needed(1, || sum_to(&d.imag(), &i))])
    })
}

/// Complex numbers from their lengths and their angles in radians, with broadcasting.
///
/// ```
/// # use sampan_core::{Complex64, Tensor};
/// let z = Tensor::new([2.0f32]).polar(&Tensor::new([0.0f32]));
/// assert_eq!(z.to_vec::<Complex64>(), [Complex64::new(2.0, 0.0)]);
/// ```
#[op(samples = polar_samples)]
fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
    (abs * angle.cos()).try_complex(&(abs * angle.sin()))
}

fn complex_line() -> Vec<Sample> {
    vec![sample![complexes([2, 3])], sample![complexes([5])], sample![complexes([])], sample![complexes([0, 2])]]
}

fn pair_samples() -> Vec<Sample> {
    vec![sample![randn([3, 2])], sample![randn([2])], sample![randn([2, 0, 2])], sample![randn([2, 3, 2])]]
}

fn parts_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), positive([2, 3])],
        sample![randn([2, 1]), positive([3])],
        sample![randn([]), positive([])],
        sample![randn([0, 3]), positive([3])],
    ]
}

fn polar_samples() -> Vec<Sample> {
    vec![
        sample![positive([2, 3]), randn([2, 3])],
        sample![positive([]), randn([])],
        sample![positive([0, 3]), randn([0, 3])],
    ]
}
