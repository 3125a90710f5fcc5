//! `sampan quantize`.

use super::say;
use clap::{Args, ValueEnum};
use sampan_core::{DType, Error, Result, Tensor};
use sampan_graph::quantize::{self, Calibration, Method};
use sampan_graph::{Graph, onnx, paddle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct Quantize {
    /// The network: .pdmodel, .json, the path without an ending, or an .onnx file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Where it goes: .pdmodel or .json (both are written, with a .pdiparams), or .onnx
    #[arg(long, value_name = "TARGET")]
    to: PathBuf,
    /// What becomes smaller; `static` by default where there are calibration data, else `dynamic`
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Calibration data: a .npy or .npz file with examples along the first axis, or a folder of such files; `name=file` where
    /// there are several inputs
    #[arg(long = "data", value_name = "[NAME=]PATH")]
    data: Vec<String>,
    /// How many examples the network is shown at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// How the range of numbers between layers is chosen
    #[arg(long, value_enum, default_value_t = Range::Minmax)]
    range: Range,
    /// With `--range percentile`: how much of all numbers lies inside
    #[arg(long, value_name = "PERCENT", default_value_t = 99.99)]
    percentile: f64,
    /// With `--range average`: how much of the average so far stays with each batch
    #[arg(long, value_name = "RATE", default_value_t = 0.9)]
    rate: f64,
    /// The version of ONNX's operators, for an .onnx file
    #[arg(long, value_name = "N", default_value_t = onnx::Options::default().opset)]
    opset: i64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    /// Weights and what flows between layers in eight bits, with ranges from calibration data
    Static,
    /// The same with ranges that each example decides when it is there
    Dynamic,
    /// Weights alone in eight bits
    Int8,
    /// Weights alone in float16
    Fp16,
    /// Weights alone in bfloat16
    Bf16,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Range {
    /// The largest numbers that were seen
    Minmax,
    /// All but the largest few
    Percentile,
    /// What tells most about the distribution of the numbers
    Entropy,
    /// The largest numbers of each batch, averaged
    Average,
}

fn wrong(message: String) -> Error {
    Error::invalid(message).in_op("quantize")
}

/// The files of a word of the command line: itself, or those of a folder by their names.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let failed = |e: std::io::Error| wrong(format!("{}: {e}", path.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if matches!(file.extension().and_then(|e| e.to_str()), Some("npy" | "npz")) {
            found.push(file);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(wrong(format!("the folder {} holds neither .npy nor .npz files", path.display()))),
        false => Ok(found),
    }
}

/// The examples of some files, for each input of a graph.
fn examples(graph: &Graph, words: &[String]) -> Result<Vec<Vec<Tensor>>> {
    let mut lists: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    let first = graph.inputs.first().map_or("", |i| i.name.as_str());
    for word in words {
        let named = word.split_once('=').and_then(|(n, p)| Some((graph.inputs.iter().find(|i| i.name == n)?, p)));
        let (name, path) = named.map_or((first, word.as_str()), |(i, p)| (i.name.as_str(), p));
        lists.entry(name).or_default().extend(files(Path::new(path))?);
    }
    let count = lists.values().map(Vec::len).max().unwrap_or(0);
    if let Some((name, list)) = lists.iter().find(|(_, l)| l.len() != count) {
        return Err(wrong(format!("{} files for the input `{name}`, {count} for others", list.len())));
    }
    let names = graph.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
    (0..count)
        .map(|k| {
            let mut found: BTreeMap<String, Tensor> = BTreeMap::new();
            for (name, list) in &lists {
                let held = sampan_io::load(&list[k])?;
                match held.as_tensor() {
                    Some(tensor) => drop(found.insert((*name).to_string(), tensor.clone())),
                    None => {
                        let mut tensors = held.tensors();
                        // One tensor is for the input, whatever its name is.
                        match (tensors.len(), tensors.contains_key(*name)) {
                            (1, false) => drop(tensors.pop_first().map(|(_, t)| found.insert((*name).to_string(), t))),
                            _ => found.extend(tensors),
                        }
                    }
                }
            }
            let one = |i: &sampan_graph::Input| {
                found.remove(&i.name).ok_or_else(|| {
                    wrong(format!(
                        "the calibration data hold nothing for the input `{}`; the inputs are {names}",
                        i.name
                    ))
                })
            };
            graph.inputs.iter().map(one).collect()
        })
        .collect()
}

impl Quantize {
    fn method(&self) -> Method {
        match self.range {
            Range::Minmax => Method::MinMax,
            Range::Percentile => Method::Percentile(self.percentile),
            Range::Entropy => Method::Entropy,
            Range::Average => Method::MovingAverage(self.rate),
        }
    }

    fn calibrated(&self, graph: &Graph) -> Result<Graph> {
        let mut calibration = Calibration::new(graph, self.method())?;
        let (batch, mut seen) = (i64::from(self.batch), 0);
        for inputs in examples(graph, &self.data)? {
            let inputs: Vec<Tensor> = graph
                .inputs
                .iter()
                .zip(inputs)
                .map(|(i, t)| t.try_cast(graph.values[i.value].dtype))
                .collect::<Result<_>>()?;
            let free =
                |i: &sampan_graph::Input| graph.values[i.value].dims.first().is_some_and(|d| d.fixed().is_none());
            let count = inputs.first().and_then(|t| t.shape().first().copied()).unwrap_or(0) as i64;
            let even = inputs.iter().all(|t| t.shape().first() == Some(&(count as usize)));
            if !(graph.inputs.iter().all(free) && even) {
                // A network for one size is shown what was made for it.
                calibration.feed(&inputs)?;
                seen += count.max(1);
                continue;
            }
            for start in (0..count).step_by(batch as usize) {
                let part = |t: &Tensor| t.try_slice([0i64], [start], [count.min(start + batch)]);
                calibration.feed(&inputs.iter().map(part).collect::<Result<Vec<_>>>()?)?;
            }
            seen += count;
        }
        say(format!("calibrated with {seen} examples"))?;
        calibration.finish()
    }

    pub fn run(self) -> Result<ExitCode> {
        let ending = self.to.extension().and_then(|e| e.to_str());
        if !matches!(ending, Some("pdmodel" | "json" | "onnx")) {
            return Err(wrong(format!("{}: the target ends in .pdmodel, .json or .onnx", self.to.display())));
        }
        let mode = self.mode.unwrap_or(if self.data.is_empty() { Mode::Dynamic } else { Mode::Static });
        if (mode == Mode::Static) == self.data.is_empty() {
            return Err(wrong(match mode {
                Mode::Static => "the mode static needs calibration data; give some with --data".into(),
                _ => "calibration data are for the mode static alone".into(),
            }));
        }
        let graph = sampan_graph::load(&self.model)?;
        let small = match mode {
            Mode::Static => self.calibrated(&graph)?,
            Mode::Dynamic => quantize::dynamic(&graph)?,
            Mode::Int8 => quantize::weights(&graph, DType::Int8)?,
            Mode::Fp16 => quantize::weights(&graph, DType::Float16)?,
            Mode::Bf16 => quantize::weights(&graph, DType::BFloat16)?,
        };
        match ending {
            Some("onnx") => {
                onnx::save(&small, &self.to, onnx::Options { opset: self.opset, ..onnx::Options::default() })?;
            }
            _ => paddle::save(&small, self.to.with_extension(""), &[])?,
        }
        let (done, all) = quantize::count(&small);
        let layers = if done > 0 { format!("{done} of {all} layers in eight bits, ") } else { String::new() };
        let (before, after) = (quantize::bytes(&graph), quantize::bytes(&small));
        let percent = 100.0 * after as f64 / before.max(1) as f64;
        say(format!("{}: {layers}weights of {before} bytes are {after} ({percent:.0} %)", self.to.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
