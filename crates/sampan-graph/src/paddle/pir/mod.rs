//! Programs as PIR's `.json` has them.

mod codes;
mod read;
mod write;

pub(crate) use read::decode;
pub(crate) use write::encode;

use sampan_core::DType;

/// The types of elements, by PIR's names.
const TYPES: [(&str, DType); 12] = [
    ("0.t_bool", DType::Bool),
    ("0.t_ui8", DType::UInt8),
    ("0.t_i8", DType::Int8),
    ("0.t_i16", DType::Int16),
    ("0.t_i32", DType::Int32),
    ("0.t_i64", DType::Int64),
    ("0.t_f16", DType::Float16),
    ("0.t_bf16", DType::BFloat16),
    ("0.t_f32", DType::Float32),
    ("0.t_f64", DType::Float64),
    ("0.t_c64", DType::Complex64),
    ("0.t_c128", DType::Complex128),
];
