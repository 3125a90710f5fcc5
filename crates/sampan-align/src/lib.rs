//! Two implementations of one network side by side: recordings of what they did, pairs of their layers, where they part,
//! and why.
//!
//! ```
//! use sampan_align::{Options, Recording, Tensors, compare};
//! use sampan_core::Tensor;
//! let side = |values: [f32; 3]| {
//!     let mut tensors = Tensors::default();
//!     tensors.insert("logits".into(), Tensor::new(values));
//!     let mut recording = Recording::default();
//!     recording.sections.insert("forward".into(), tensors);
//!     recording
//! };
//! let report = compare(&side([1.0, 2.0, 3.0]), &side([2.0, 4.0, 6.0]), &Options::default())?;
//! assert!(!report.ok && report.findings[0].sentence.contains("2 times the reference"));
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod compare;
pub mod convert;
mod diff;
mod evaluate;
mod kinds;
mod pair;
mod recording;
mod relations;
mod report;
mod settings;
mod structure;

pub use compare::{Check, CheckResult, Finding, LogRow, Options, Report, Row, compare};
pub use diff::Diff;
pub use pair::{CallPair, Corrections, LayerPair, Pairing, ParameterPair, Transform, pair};
pub use recording::{Recording, Tensors};
pub use structure::{Call, Config, Group, Layer, Optimizer, Output, Parameter, Step, Structure};

/// The guide's own examples, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/align.md")]
struct Guide;

/// A value as JSON; numbers that JSON lacks become null.
pub fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form")
}
