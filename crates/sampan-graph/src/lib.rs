//! Eager programs as graphs: traced at the level of public ops, replayed through `dispatch`, saved in Paddle's formats.
//!
//! ```
//! use sampan_core::{DType, Tensor};
//! use sampan_graph::{Spec, trace};
//! let w = Tensor::new([[1.0f32], [2.0]]).requires_grad_();
//! let graph = trace(|x| Ok(vec![x[0].matmul(&w).tanh()]), &[Spec::new([None, Some(2)], DType::Float32)])?;
//! assert_eq!(graph.calls.iter().map(|c| c.op.name).collect::<Vec<_>>(), ["matmul", "tanh"]);
//! graph.run(&[Tensor::new([[0.5f32, -0.25]])])?[0].sum(()).backward();
//! assert_eq!(w.grad().unwrap().to_vec::<f32>(), [0.5, -0.25]);
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod by_values;
pub mod draw;
mod flow;
mod given;
mod graph;
mod index;
mod lower;
pub mod onnx;
mod optimize;
pub mod paddle;
mod plan;
pub mod quantize;
mod record;
mod replay;
mod size;
mod ssa;
mod trace;

pub use flow::{COND, WHILE, aside, cond, while_loop};
pub use graph::{Arg, Call, Dim, Graph, Id, Input, Known, Size, Weight};
pub use plan::Predictor;
pub use ssa::DETACH;
pub use trace::{Spec, trace, trace_with};

use std::path::Path;

/// Reads a network by one of its files (`.pdmodel` or `.json` with the `.pdiparams` beside it, `.onnx`), or by the path that
/// the former have in common.
pub fn load(model: impl AsRef<Path>) -> sampan_core::Result<Graph> {
    let model = model.as_ref();
    match model.extension().and_then(|e| e.to_str()) {
        Some("onnx") if !model.exists() => Err(paddle::missing(model, &std::io::ErrorKind::NotFound.into())),
        Some("onnx") => onnx::load(model)?.graph(),
        Some("pdmodel" | "json") => paddle::load_files(model, &model.with_extension("pdiparams")),
        _ => paddle::load(model),
    }
}
