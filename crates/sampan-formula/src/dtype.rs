//! The types of elements.

use std::fmt;

/// The type of a tensor's elements, known at run time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl DType {
    /// Every dtype, in order of promotion.
    pub const ALL: [DType; 12] = [
        DType::Bool,
        DType::UInt8,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::Float16,
        DType::BFloat16,
        DType::Float32,
        DType::Float64,
        DType::Complex64,
        DType::Complex128,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::UInt8 | DType::Int8 => 1,
            DType::Int16 | DType::Float16 | DType::BFloat16 => 2,
            DType::Int32 | DType::Float32 => 4,
            DType::Int64 | DType::Float64 | DType::Complex64 => 8,
            DType::Complex128 => 16,
        }
    }

    /// The name users read and write: `float32`, `int64`, `bool` …
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::UInt8 => "uint8",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::Float16 => "float16",
            DType::BFloat16 => "bfloat16",
            DType::Float32 => "float32",
            DType::Float64 => "float64",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
        }
    }

    /// The dtype of that name; `float`, `double`, `half`, `int` and `long` are understood too.
    pub fn from_name(name: &str) -> Option<DType> {
        let name = name.strip_prefix("paddle.").unwrap_or(name);
        DType::ALL.into_iter().find(|d| d.name() == name).or(match name {
            "float" => Some(DType::Float32),
            "double" => Some(DType::Float64),
            "half" => Some(DType::Float16),
            "int" => Some(DType::Int32),
            "long" => Some(DType::Int64),
            _ => None,
        })
    }

    /// Floating point of any width.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64)
    }

    /// An integer type; `bool` is none.
    pub const fn is_int(self) -> bool {
        matches!(self, DType::UInt8 | DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64)
    }

    /// A pair of floats, real and imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::Complex64 | DType::Complex128)
    }

    /// Floating point or complex: what has a gradient.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The float of a complex number's parts; a real dtype itself.
    pub const fn real_part(self) -> DType {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            real => real,
        }
    }

    /// How many real numbers one element is: two in a complex number.
    pub const fn parts(self) -> usize {
        if self.is_complex() { 2 } else { 1 }
    }

    /// The complex dtype that holds this one: complex128 for float64, complex64 for all that is narrower.
    pub const fn complex(self) -> DType {
        match self {
            DType::Float64 | DType::Complex128 => DType::Complex128,
            _ => DType::Complex64,
        }
    }

    /// The dtype that arithmetic on this one is done in: float32 for the halves, else itself.
    pub const fn wide(self) -> DType {
        if self.is_half() { DType::Float32 } else { self }
    }

    /// float16 or bfloat16, whose arithmetic is done in float32.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::Float16 | DType::BFloat16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
