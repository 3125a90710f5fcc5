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

mod graph;
mod lower;
mod optimize;
pub mod paddle;
mod record;
mod replay;
mod size;
mod ssa;
mod trace;

pub use graph::{Arg, Call, Dim, Graph, Id, Input, Known, Size, Weight};
pub use ssa::DETACH;
pub use trace::{Spec, trace, trace_with};
