//! Smaller and faster networks: weights, or weights and what flows between layers, in eight bits or half precision.
//!
//! A quantised graph is a plain graph: codes become numbers by `dequantize_linear`, and numbers codes by `quantize_linear`
//! before a layer reads them. So it is replayed, saved in Paddle's files and written as ONNX like any other; the
//! [`Predictor`](crate::Predictor) finds layers between such calls and computes them in whole numbers.
//!
//! ```
//! use sampan_core::{DType, Tensor};
//! use sampan_graph::{Spec, quantize, trace};
//! let w = Tensor::new([[1.0f32, -0.5], [2.0, 0.25]]);
//! let graph = trace(|x| Ok(vec![x[0].matmul(&w)]), &[Spec::new([None, Some(2)], DType::Float32)])?;
//! let x = Tensor::new([[0.5f32, -0.25], [1.0, 1.0]]);
//! let mut data = quantize::Calibration::new(&graph, quantize::Method::MinMax)?;
//! data.feed(&[x.clone()])?;
//! let small = data.finish()?;
//! assert!(small.weights.iter().any(|w| w.tensor.dtype() == DType::Int8));
//! let (a, b) = (graph.run(&[x.clone()])?, small.run(&[x])?);
//! assert!((&a[0] - &b[0]).abs().max(()).to_f64() < 0.02);
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod calibrate;
mod layers;
mod observe;
mod recognise;
mod rewrite;
mod weights;

pub use calibrate::Calibration;
pub(crate) use layers::parts;
pub use observe::Method;
pub(crate) use recognise::{recognise, turn};

use crate::graph::Graph;
use layers::Layers;
use rewrite::Rewrite;
use sampan_core::{DType, Error, Result, no_grad};

fn refused(message: impl Into<String>) -> Error {
    Error::invalid(message.into()).in_op("quantize")
}

/// Weights in eight bits, and what layers read in eight bits too, with steps that each sample decides when it is there.
pub fn dynamic(graph: &Graph) -> Result<Graph> {
    no_grad(|| {
        let graph = graph.for_inference()?;
        let layers = Layers::of(&graph)?;
        let mut rewrite = Rewrite::new(graph);
        rewrite.weights(&layers)?;
        rewrite.dynamic(&layers)?;
        rewrite.finish()
    })
}

/// Weights alone: in `float16`, `bfloat16` or `int8`. They are made floats again when a network is loaded, which computes as
/// it did.
pub fn weights(graph: &Graph, dtype: DType) -> Result<Graph> {
    no_grad(|| weights::only(graph.for_inference()?, dtype))
}

/// Bytes of all weights of a graph, as a file holds them.
pub fn bytes(graph: &Graph) -> usize {
    graph.weights.iter().map(|w| w.tensor.numel() * w.tensor.dtype().size()).sum()
}

/// How many layers of a graph compute with codes, and how many could.
pub fn count(graph: &Graph) -> (usize, usize) {
    layers::count(graph)
}
