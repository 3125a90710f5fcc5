//! How elements are called in the texts of this crate.

use sampan_formula::DType;

/// The type of an element in memory, as `types.cu` has it.
pub(crate) fn spelt(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::UInt8 => "u8",
        DType::Int8 => "signed char",
        DType::Int16 => "short",
        DType::Int32 => "int",
        DType::Int64 => "i64",
        DType::Float16 => "f16",
        DType::BFloat16 => "bf16",
        DType::Float32 => "float",
        DType::Float64 => "double",
        DType::Complex64 => "c64",
        DType::Complex128 => "c128",
    }
}

/// The type that real elements are computed in.
pub(crate) fn wide(dtype: DType) -> &'static str {
    match dtype {
        DType::Float16 | DType::BFloat16 | DType::Float32 => "float",
        DType::Float64 => "double",
        _ => "i64",
    }
}
