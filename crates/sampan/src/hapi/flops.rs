//! The work of one pass through a network.

use super::inspect::{self, InputSpec, LayerCall};
use super::summary::{shapes, table, with_commas};
use sampan_core::Result;
use sampan_nn::Layer;
use std::fmt;

/// What `flops` counted; prints as a table.
#[derive(Clone, Debug)]
pub struct Flops {
    /// Each call of a layer that computes by itself.
    pub rows: Vec<LayerCall>,
    /// Multiply-adds of one pass.
    pub total: u64,
}

/// Counts the multiply-adds of one pass, as Paddle's `flops` does, without computing anything. Work outside of layers, such
/// as a matrix product in `forward`, counts as well.
///
/// ```
/// use sampan::hapi::{InputSpec, flops};
/// let net = sampan::nn::Linear::new(4, 3);
/// assert_eq!(flops(&net, &[InputSpec::new([2, 4])])?.total, 24);
/// # Ok::<(), sampan::Error>(())
/// ```
pub fn flops(net: &(impl Layer + ?Sized), inputs: &[InputSpec]) -> Result<Flops> {
    let calls = inspect::run(net, inputs)?;
    let total = calls.iter().map(|c| c.flops).sum();
    Ok(Flops { rows: calls.into_iter().filter(|c| !c.is_container || c.flops > 0).collect(), total })
}

impl fmt::Display for Flops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |r: &LayerCall| {
            vec![
                format!("{} ({})", r.path, r.type_name),
                shapes(&r.inputs),
                shapes(&r.outputs),
                with_commas(r.params as u64),
                with_commas(r.flops),
            ]
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(row).collect();
        table(f, &["Layer Name", "Input Shape", "Output Shape", "Params", "Flops"], &rows)?;
        let params: usize = self.rows.iter().map(|r| r.params).sum();
        writeln!(f, "Total Flops: {}     Total Params: {}", self.total, params)
    }
}
