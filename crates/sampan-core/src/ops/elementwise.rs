//! Shared machinery of elementwise ops: dtype, broadcasting, kernels, gradients that undo broadcasting.

use super::prelude::*;
use sampan_kernels::View;
use sampan_kernels::complex::{self, ComplexElement, ComplexFn1, ComplexFn2};
use sampan_kernels::elementwise::{RealFn1, RealFn2, binary_real, map1, map2, unary_real};

/// The sum over the axes that broadcasting added or stretched, back to `shape`.
pub(crate) fn sum_to(g: &Tensor, shape: &[usize]) -> Tensor {
    if g.shape() == shape {
        return g.clone();
    }
    let lead = g.ndim() - shape.len();
    let axes: Vec<i64> =
        (0..g.ndim()).filter(|&i| i < lead || (shape[i - lead] == 1 && g.shape()[i] != 1)).map(|i| i as i64).collect();
    let summed = if axes.is_empty() { g.clone() } else { g.sum(axes) };
    summed.reshape_to(shape)
}

/// The gradients of an op of two operands, each brought back to its operand's shape; none for a number.
pub(crate) fn pair_grads(
    g: &Grad,
    x: &[usize],
    y: Option<&[usize]>,
    dx: impl FnOnce() -> Tensor,
    dy: impl FnOnce() -> Tensor,
) -> Vec<Option<Tensor>> {
    let mut out = vec![g.if_needed(0, || sum_to(&dx(), x))];
    if let Some(y) = y {
        out.push(g.if_needed(1, || sum_to(&dy(), y)));
    }
    out
}

/// An operand ready for a kernel: cast, with its layout under the common shape.
pub(crate) enum Ready<'a> {
    /// As it is.
    Same(&'a Tensor),
    /// Cast or broadcast.
    Tensor(Tensor, Layout),
    /// A number for every element.
    Number(Scalar, Layout),
}

/// A number beside so few elements is written out: a plain loop is quicker than a walk over strides.
const FEW: usize = 64;

impl<'a> Ready<'a> {
    pub fn new(y: &'a Operand, dtype: DType, shape: &[usize]) -> Result<Ready<'a>> {
        match y {
            Operand::Tensor(t) => Ready::tensor(t, dtype, shape),
            Operand::Scalar(s) => {
                let mut layout = Layout::contiguous(shape);
                if layout.numel() > FEW {
                    layout.strides.fill(0);
                }
                Ok(Ready::Number(*s, layout))
            }
        }
    }

    pub fn tensor(t: &'a Tensor, dtype: DType, shape: &[usize]) -> Result<Ready<'a>> {
        if t.dtype() == dtype && t.shape() == shape {
            return Ok(Ready::Same(t));
        }
        let t = if t.dtype() == dtype { t.clone() } else { t.try_cast(dtype)? };
        let layout = t.layout().broadcast_to(shape);
        Ok(Ready::Tensor(t, layout))
    }

    /// Calls `f` with the values.
    pub fn with<T: Element, R>(&self, f: impl FnOnce(View<T>) -> R) -> R {
        match self {
            Ready::Same(t) => f(t.data::<T>().view()),
            Ready::Tensor(t, layout) => f(t.data::<T>().view_as(layout)),
            Ready::Number(s, layout) => {
                let values = [s.to::<T>(); FEW];
                f(View { data: &values, shape: &layout.shape, strides: &layout.strides, offset: 0 })
            }
        }
    }
}

/// The shape a tensor and an operand broadcast to.
pub(crate) fn common_shape(x: &Tensor, y: &Operand) -> Result<Shape> {
    match y {
        Operand::Tensor(y) => broadcast(x.shape(), y.shape()),
        Operand::Scalar(_) => Ok(x.shape_vec()),
    }
}

/// Kernels of real functions know no complex numbers.
fn real_only(dtype: DType) -> Result<()> {
    if dtype.is_complex() { Err(Error::dtype(format!("works on real numbers only, got {dtype}"))) } else { Ok(()) }
}

impl Cx<'_> {
    /// A function of one float; integers become the default float first.
    pub(crate) fn unary(&self, x: &Tensor, f: impl RealFn1) -> Result<Tensor> {
        let dtype = to_float(x.dtype());
        real_only(dtype)?;
        let out = self.out(x.shape(), dtype)?;
        self.cpu(|| {
            let x = if x.dtype() == dtype { x.clone() } else { x.try_cast(dtype)? };
            match_dtype!(dtype, T in float => {
                unary_real(f, x.data::<T>().view(), out.data_mut::<T>().slice())
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A function of one number: `f` on floats, `z` on complex numbers; integers become the default float first.
    pub(crate) fn analytic(&self, x: &Tensor, f: impl RealFn1, z: impl ComplexFn1) -> Result<Tensor> {
        if !x.dtype().is_complex() {
            return self.unary(x, f);
        }
        let out = self.out(x.shape(), x.dtype())?;
        self.cpu(|| {
            match_dtype!(x.dtype(), T in complex => {
                complex::unary(z, x.data::<T>().view(), out.data_mut::<T>().slice())
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A real number from each complex one, computed in float64.
    pub(crate) fn part(&self, x: &Tensor, f: impl Fn(Complex128) -> f64 + Copy + Send + Sync) -> Result<Tensor> {
        let out = self.out(x.shape(), x.dtype().real_part())?;
        self.cpu(|| {
            match_dtype!(x.dtype(), T in complex => {
                type Part = <T as ComplexElement>::Part;
                let apply = move |z: T| <Part as Element>::from_f64(f(z.to_complex()));
                map1(apply, x.data::<T>().view(), out.data_mut::<Part>().slice())
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A function of one number that keeps its dtype: `f` on floats, `g` on integers.
    pub(crate) fn unary_number(
        &self,
        x: &Tensor,
        f: impl RealFn1,
        g: impl Fn(i64) -> i64 + Copy + Send + Sync,
    ) -> Result<Tensor> {
        if x.dtype().is_inexact() {
            return self.unary(x, f);
        }
        let out = self.out(x.shape(), x.dtype())?;
        self.cpu(|| {
            match_dtype!(x.dtype(), T in [Bool, u8, i8, i16, i32, i64] => {
                map1(move |v: T| T::from_i64(g(v.to_i64())), x.data::<T>().view(), out.data_mut::<T>().slice())
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A truth value from each element: `f` on floats (as f64), `g` on integers.
    pub(crate) fn predicate(
        &self,
        x: &Tensor,
        f: impl Fn(f64) -> bool + Copy + Send + Sync,
        g: impl Fn(i64) -> bool + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let out = self.out(x.shape(), DType::Bool)?;
        self.cpu(|| {
            match_dtype!(x.dtype(), T => {
                let apply = move |v: T| Bool::from(if T::DTYPE.is_float() { f(v.to_f64()) } else { g(v.to_i64()) });
                map1(apply, x.data::<T>().view(), out.data_mut::<Bool>().slice())
            });
            Ok(())
        })?;
        Ok(out)
    }

    /// A truth value from each complex number.
    pub(crate) fn complex_predicate(
        &self,
        x: &Tensor,
        f: impl Fn(Complex128) -> bool + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let out = self.out(x.shape(), DType::Bool)?;
        self.cpu(|| {
            match_dtype!(x.dtype(), T in complex => {
                map1(move |v: T| Bool::from(f(v.to_complex())), x.data::<T>().view(), out.data_mut::<Bool>().slice())
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A function of two floats under broadcasting; integers become the default float first.
    pub(crate) fn binary(&self, x: &Tensor, y: &Operand, f: impl RealFn2) -> Result<Tensor> {
        self.binary_as(to_float(promote_operand(x, y)), x, y, f)
    }

    fn binary_as(&self, dtype: DType, x: &Tensor, y: &Operand, f: impl RealFn2) -> Result<Tensor> {
        real_only(dtype)?;
        let shape = common_shape(x, y)?;
        let out = self.out(&shape, dtype)?;
        self.cpu(|| {
            let (a, b) = (Ready::tensor(x, dtype, &shape)?, Ready::new(y, dtype, &shape)?);
            match_dtype!(dtype, T in float => {
                a.with::<T, _>(|a| b.with::<T, _>(|b| binary_real(f, a, b, out.data_mut::<T>().slice())))
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A function of two complex numbers under broadcasting, in a complex dtype.
    pub(crate) fn binary_complex(&self, dtype: DType, x: &Tensor, y: &Operand, z: impl ComplexFn2) -> Result<Tensor> {
        let shape = common_shape(x, y)?;
        let out = self.out(&shape, dtype)?;
        self.cpu(|| {
            let (a, b) = (Ready::tensor(x, dtype, &shape)?, Ready::new(y, dtype, &shape)?);
            match_dtype!(dtype, T in complex => {
                a.with::<T, _>(|a| b.with::<T, _>(|b| complex::binary(z, a, b, out.data_mut::<T>().slice())))
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A function of two numbers in their common dtype: `f` on floats, `g` on integers, `z` on complex numbers.
    pub(crate) fn arithmetic(
        &self,
        x: &Tensor,
        y: &Operand,
        f: impl RealFn2,
        g: impl Fn(i64, i64) -> i64 + Copy + Send + Sync,
        z: impl ComplexFn2,
    ) -> Result<Tensor> {
        match promote_operand(x, y) {
            d if d.is_complex() => self.binary_complex(d, x, y, z),
            _ => self.binary_number(x, y, f, g),
        }
    }

    /// A function of two numbers in their common dtype: `f` on floats, `g` on integers.
    pub(crate) fn binary_number(
        &self,
        x: &Tensor,
        y: &Operand,
        f: impl RealFn2,
        g: impl Fn(i64, i64) -> i64 + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let dtype = promote_operand(x, y);
        if dtype.is_inexact() { self.binary_as(dtype, x, y, f) } else { self.binary_int_as(dtype, x, y, g) }
    }

    /// A function of two integers (or truth values) in their common dtype; floats are refused.
    pub(crate) fn binary_int(
        &self,
        x: &Tensor,
        y: &Operand,
        g: impl Fn(i64, i64) -> i64 + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let dtype = promote_operand(x, y);
        if dtype.is_inexact() {
            return Err(Error::dtype(format!("needs integers or bool, got {dtype}")));
        }
        self.binary_int_as(dtype, x, y, g)
    }

    fn binary_int_as(
        &self,
        dtype: DType,
        x: &Tensor,
        y: &Operand,
        g: impl Fn(i64, i64) -> i64 + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let shape = common_shape(x, y)?;
        let out = self.out(&shape, dtype)?;
        self.cpu(|| {
            let (a, b) = (Ready::tensor(x, dtype, &shape)?, Ready::new(y, dtype, &shape)?);
            match_dtype!(dtype, T in [Bool, u8, i8, i16, i32, i64] => {
                let apply = move |x: T, y: T| T::from_i64(g(x.to_i64(), y.to_i64()));
                a.with::<T, _>(|a| b.with::<T, _>(|b| map2(apply, a, b, out.data_mut::<T>().slice())))
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }

    /// A truth value from two numbers in their common dtype: `f` on floats (as f64), `g` on integers.
    pub(crate) fn compare(
        &self,
        x: &Tensor,
        y: &Operand,
        f: impl Fn(f64, f64) -> bool + Copy + Send + Sync,
        g: impl Fn(i64, i64) -> bool + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let dtype = promote_operand(x, y);
        real_only(dtype)?;
        let shape = common_shape(x, y)?;
        let out = self.out(&shape, DType::Bool)?;
        self.cpu(|| {
            if let (Operand::Scalar(s), false) = (y, dtype.is_float()) {
                // The number may not fit into the tensor's dtype.
                let s = s.to_i64();
                let x = x.try_cast(dtype)?;
                match_dtype!(dtype, T in [Bool, u8, i8, i16, i32, i64] => {
                    map1(move |v: T| Bool::from(g(v.to_i64(), s)), x.data::<T>().view(), out.data_mut::<Bool>().slice())
                }, else => {});
                return Ok(());
            }
            let (a, b) = (Ready::tensor(x, dtype, &shape)?, Ready::new(y, dtype, &shape)?);
            match_dtype!(dtype, T => {
                let apply = move |x: T, y: T| {
                    Bool::from(if T::DTYPE.is_float() { f(x.to_f64(), y.to_f64()) } else { g(x.to_i64(), y.to_i64()) })
                };
                a.with::<T, _>(|a| b.with::<T, _>(|b| map2(apply, a, b, out.data_mut::<Bool>().slice())))
            });
            Ok(())
        })?;
        Ok(out)
    }

    /// A truth value from two numbers, of which one is complex.
    pub(crate) fn complex_compare(
        &self,
        x: &Tensor,
        y: &Operand,
        f: impl Fn(Complex128, Complex128) -> bool + Copy + Send + Sync,
    ) -> Result<Tensor> {
        let dtype = promote_operand(x, y);
        let shape = common_shape(x, y)?;
        let out = self.out(&shape, DType::Bool)?;
        self.cpu(|| {
            let (a, b) = (Ready::tensor(x, dtype, &shape)?, Ready::new(y, dtype, &shape)?);
            match_dtype!(dtype, T in complex => {
                let apply = move |x: T, y: T| Bool::from(f(x.to_complex(), y.to_complex()));
                a.with::<T, _>(|a| b.with::<T, _>(|b| map2(apply, a, b, out.data_mut::<Bool>().slice())))
            }, else => {});
            Ok(())
        })?;
        Ok(out)
    }
}
