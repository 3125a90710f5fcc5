//! Models as ONNX has them: read, run, traced as graphs, and written from graphs.
//!
//! ```
//! use sampan_core::{DType, Tensor};
//! use sampan_graph::{Spec, onnx, trace};
//! let w = Tensor::new([[1.0f32], [2.0]]);
//! let graph = trace(|x| Ok(vec![x[0].matmul(&w).tanh()]), &[Spec::new([None, Some(2)], DType::Float32)])?;
//! let path = std::env::temp_dir().join("sampan-onnx-doc.onnx");
//! onnx::save(&graph, &path, onnx::Options::default())?;
//! let x = Tensor::new([[0.5f32, -0.25]]);
//! let model = onnx::load(&path)?;
//! assert_eq!(model.run(&[x.clone()])?[0].to_vec::<f32>(), [0.0]);
//! assert_eq!(model.graph()?.run(&[x])?[0].to_vec::<f32>(), [0.0]);
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod eval;
mod export;
mod node;
mod ops;

pub use eval::{Item, Model};
pub use export::{OPSETS, Options, save, to_model};
use sampan_core::Result;
use sampan_io::onnx::model;
use std::path::Path;

/// Reads an `.onnx` file, and the values that lie beside it in its folder.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    Model::new(model::load(path)?)
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
    Model::new(model::from_bytes(bytes)?)
}
