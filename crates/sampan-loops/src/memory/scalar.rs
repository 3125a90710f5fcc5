//! One number of any dtype.

use crate::any::{Refused, refuse};
use crate::{Complex64, Complex128, DType, Element, Ordered, bf16, f16};

/// A number without a tensor around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex128),
}

impl Scalar {
    /// One element.
    pub fn of<T: Element>(v: T) -> Scalar {
        let z = v.to_complex();
        match T::DTYPE {
            DType::Bool => Scalar::Bool(z.re != 0.0),
            // The one type that a float does not hold.
            DType::Int64 => Scalar::Int(bytemuck::cast(v)),
            d if d.is_int() => Scalar::Int(z.re as i64),
            d if d.is_float() => Scalar::Float(z.re),
            _ => Scalar::Complex(z),
        }
    }

    /// As the widest float; of a complex number the real part.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
            Scalar::Complex(z) => z.re,
        }
    }

    /// The complex conjugate; a real number itself.
    pub fn conj(self) -> Scalar {
        match self {
            Scalar::Complex(z) => Scalar::Complex(z.conj()),
            real => real,
        }
    }

    /// As the widest integer, truncating; of a complex number the real part.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
            Scalar::Complex(z) => z.re as i64,
        }
    }

    /// As an element of that dtype holds it: halves round, integers wrap.
    pub fn rounded(self, dtype: DType) -> Scalar {
        match dtype {
            d if d.is_complex() => self,
            DType::Float16 => Scalar::Float(self.to::<f16>().to_f64()),
            DType::BFloat16 => Scalar::Float(self.to::<bf16>().to_f64()),
            DType::Float32 => Scalar::Float(self.to::<f32>() as f64),
            DType::Float64 => Scalar::Float(self.to::<f64>()),
            d => crate::match_dtype!(d, T in real => Scalar::Int(self.to::<T>().to_i64()), else => self),
        }
    }

    /// As an element of type `T`. A complex number is no element of a real type: it unwinds with [`Refused`].
    pub fn to<T: Element>(self) -> T {
        match self {
            Scalar::Complex(z) if !T::DTYPE.is_complex() => refuse(Refused::Complex(z, T::DTYPE)),
            Scalar::Float(f) => T::from_f64(f),
            Scalar::Complex(z) => T::from_complex(z),
            other => T::from_i64(other.to_i64()),
        }
    }

    /// What memory of a dtype holds for this number, as a type of the same size.
    pub(crate) fn stored<T: Element>(self, dtype: DType) -> T {
        bytemuck::pod_read_unaligned(&self.bytes(dtype)[..size_of::<T>()])
    }

    /// What memory of a dtype holds for this number; the rest is zero.
    fn bytes(self, dtype: DType) -> [u8; 16] {
        let mut bytes = [0; 16];
        crate::match_dtype!(dtype, T in any => bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&self.to::<T>())));
        bytes
    }
}

macro_rules! from {
    ($($from:ty => |$v:ident| $e:expr;)*) => {$(
        impl From<$from> for Scalar {
            #[inline]
            fn from($v: $from) -> Scalar { $e }
        }
    )*};
}
from! {
    bool => |v| Scalar::Bool(v);
    i32 => |v| Scalar::Int(v as i64);
    i64 => |v| Scalar::Int(v);
    usize => |v| Scalar::Int(v as i64);
    f32 => |v| Scalar::Float(v as f64);
    f64 => |v| Scalar::Float(v);
    Complex64 => |v| Scalar::Complex(Complex128::new(v.re as f64, v.im as f64));
    Complex128 => |v| Scalar::Complex(v);
}
