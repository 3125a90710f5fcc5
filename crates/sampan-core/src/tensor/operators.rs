//! `+ - * / % & | ^ << >> -x !x` on tensors and numbers, and `+=` and the like.
//!
//! `x += y` writes in place, as `x.add_(y)` does: every handle and view on the same storage sees it, `x` keeps its dtype,
//! and a value that a gradient still needs must not be changed. (In Python, as in Paddle, `x += y` means `x = x + y`.)

use super::Tensor;
use crate::{Complex64, Complex128, Operand};
use std::ops::*;

macro_rules! binary {
    ($($tr:ident $f:ident $method:ident;)*) => {$(
        impl<R: Into<Operand>> $tr<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, rhs: R) -> Tensor { self.$method(rhs) }
        }
        impl<R: Into<Operand>> $tr<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, rhs: R) -> Tensor { (&self).$method(rhs) }
        }
    )*};
}
binary! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
    Shl shl bitwise_left_shift;
    Shr shr bitwise_right_shift;
}

macro_rules! scalar_left {
    ($($t:ty),*) => {$(
        impl Add<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn add(self, rhs: &Tensor) -> Tensor { rhs.add(self) }
        }
        impl Add<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn add(self, rhs: Tensor) -> Tensor { (&rhs).add(self) }
        }
        impl Mul<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn mul(self, rhs: &Tensor) -> Tensor { rhs.multiply(self) }
        }
        impl Mul<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn mul(self, rhs: Tensor) -> Tensor { rhs.multiply(self) }
        }
        impl Sub<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn sub(self, rhs: &Tensor) -> Tensor { rhs.rsubtract(self) }
        }
        impl Sub<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn sub(self, rhs: Tensor) -> Tensor { rhs.rsubtract(self) }
        }
        impl Div<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn div(self, rhs: &Tensor) -> Tensor { rhs.rdivide(self) }
        }
        impl Div<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn div(self, rhs: Tensor) -> Tensor { rhs.rdivide(self) }
        }
        impl Rem<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn rem(self, rhs: &Tensor) -> Tensor { rhs.rremainder(self) }
        }
        impl Rem<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn rem(self, rhs: Tensor) -> Tensor { rhs.rremainder(self) }
        }
    )*};
}
scalar_left!(f32, f64, i32, i64, Complex64, Complex128);

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}
impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}
impl Not for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}
impl Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}
macro_rules! assign {
    ($($tr:ident $f:ident $method:ident;)*) => {$(
        #[doc = concat!("In place, as [`Tensor::", stringify!($method), "`]: whoever shares the storage sees it.")]
        impl<R: Into<Operand>> $tr<R> for Tensor {
            #[track_caller]
            fn $f(&mut self, rhs: R) { self.$method(rhs); }
        }
    )*};
}
assign! {
    AddAssign add_assign add_;
    SubAssign sub_assign subtract_;
    MulAssign mul_assign multiply_;
    DivAssign div_assign divide_;
    RemAssign rem_assign remainder_;
    BitAndAssign bitand_assign bitwise_and_;
    BitOrAssign bitor_assign bitwise_or_;
    BitXorAssign bitxor_assign bitwise_xor_;
    ShlAssign shl_assign bitwise_left_shift_;
    ShrAssign shr_assign bitwise_right_shift_;
}
