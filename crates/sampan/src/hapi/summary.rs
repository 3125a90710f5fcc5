//! A table of the layers of a network: shapes and parameters.

use super::inspect::{self, InputSpec, LayerCall};
use sampan_core::Result;
use sampan_nn::Layer;
use std::collections::HashMap;
use std::fmt;

/// What `summary` found; prints as a table.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Each call of a layer, in order, without mere containers.
    pub rows: Vec<LayerCall>,
    /// Elements of all parameters.
    pub total_params: usize,
    /// Elements of the parameters that are trained.
    pub trainable_params: usize,
    /// Elements of all inputs.
    pub input_elements: usize,
}

/// Runs a network on inputs without values and lists its layers.
///
/// ```
/// use sampan::hapi::{InputSpec, summary};
/// let net = sampan::nn::Linear::new(4, 3);
/// let table = summary(&net, &[InputSpec::new([1, 4])])?;
/// assert_eq!(table.total_params, 15);
/// println!("{table}");
/// # Ok::<(), sampan::Error>(())
/// ```
pub fn summary(net: &(impl Layer + ?Sized), inputs: &[InputSpec]) -> Result<Summary> {
    let calls = inspect::run(net, inputs)?;
    let alone = calls.len() == 1;
    let rows = calls.into_iter().filter(|c| alone || !(c.path.is_empty() || is_plain_container(c))).collect();
    let parameters = net.parameters();
    Ok(Summary {
        rows,
        total_params: parameters.iter().map(|p| p.numel()).sum(),
        trainable_params: parameters.iter().filter(|p| p.trainable()).map(|p| p.numel()).sum(),
        input_elements: inputs.iter().map(|i| i.shape.iter().product::<usize>()).sum(),
    })
}

fn is_plain_container(call: &LayerCall) -> bool {
    matches!(call.type_name, "Sequential" | "LayerList" | "LayerDict")
}

/// `61610` as `61,610`.
pub(crate) fn with_commas(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap_or_default()).collect();
    groups.join(",")
}

/// A table with centred columns between two rules.
pub(crate) fn table(f: &mut fmt::Formatter<'_>, head: &[&str], rows: &[Vec<String>]) -> Result<usize, fmt::Error> {
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).chain([head[i].len()]).max().unwrap_or(0) + 4;
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let total = widths.iter().sum();
    let line = |cells: &[String]| -> String {
        let text: String = cells.iter().zip(&widths).map(|(c, w)| format!("{c:^w$}")).collect();
        text.trim_end().to_string()
    };
    let head: Vec<String> = head.iter().map(|h| h.to_string()).collect();
    writeln!(f, "{}", "-".repeat(total))?;
    writeln!(f, "{}", line(&head))?;
    writeln!(f, "{}", "=".repeat(total))?;
    for row in rows {
        writeln!(f, "{}", line(row))?;
    }
    writeln!(f, "{}", "=".repeat(total))?;
    Ok(total)
}

pub(crate) fn shapes(list: &[Vec<usize>]) -> String {
    if let [one] = list { format!("{one:?}") } else { format!("{list:?}") }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|r| {
                let n = numbers.entry(r.type_name).or_default();
                *n += 1;
                vec![
                    r.path.clone(),
                    format!("{}-{n}", r.type_name),
                    format!("{:?}", r.inputs),
                    shapes(&r.outputs),
                    with_commas(r.params as u64),
                ]
            })
            .collect();
        let width = table(f, &["Name", "Layer (type)", "Input Shape", "Output Shape", "Param #"], &rows)?;
        writeln!(f, "Total params: {}", with_commas(self.total_params as u64))?;
        writeln!(f, "Trainable params: {}", with_commas(self.trainable_params as u64))?;
        writeln!(f, "Non-trainable params: {}", with_commas((self.total_params - self.trainable_params) as u64))?;
        writeln!(f, "{}", "-".repeat(width))?;
        let outputs: usize = self.rows.iter().flat_map(|r| &r.outputs).map(|s| s.iter().product::<usize>()).sum();
        let mb = |elements: usize| elements as f64 * 4.0 / (1 << 20) as f64;
        let (input, pass, params) = (mb(self.input_elements), 2.0 * mb(outputs), mb(self.total_params));
        writeln!(f, "Input size (MB): {input:.2}")?;
        writeln!(f, "Forward/backward pass size (MB): {pass:.2}")?;
        writeln!(f, "Params size (MB): {params:.2}")?;
        writeln!(f, "Estimated Total Size (MB): {:.2}", input + pass + params)?;
        writeln!(f, "{}", "-".repeat(width))
    }
}
