//! `infer`.

use crate::say;
use clap::Args;
use sampan_core::{Error, Result, Tensor};
use sampan_graph::{Graph, Predictor};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Runs a saved network on arrays.
#[derive(Args)]
pub struct Infer {
    /// What jit.save wrote: .pdmodel, .json, or the path without an ending; or an .onnx file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// A .npy or .npz file with an input; `name=file` where there are several
    #[arg(long = "input", value_name = "[NAME=]FILE", required = true)]
    inputs: Vec<String>,
    /// Where to write the results: .npy for one, .npz for all
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Run this many times, and say how long a run takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Say how long each step takes
    #[arg(long)]
    profile: bool,
}

fn wrong(message: String) -> Error {
    Error::invalid(message).in_op("infer")
}

/// The tensors of the command line, each as the input that it is.
fn inputs(graph: &Graph, given: &[String]) -> Result<Vec<Tensor>> {
    let mut named = BTreeMap::new();
    let mut rest = Vec::new();
    for word in given {
        let known = |name: &str| graph.inputs.iter().any(|i| i.name == name);
        let (name, file) = match word.split_once('=') {
            Some((name, file)) if known(name) => (Some(name), file),
            _ => (None, word.as_str()),
        };
        match (name, sampan_io::load(file)?) {
            (Some(name), found) => {
                let mut held: Vec<Tensor> = found.tensors().into_values().collect();
                let alone = if held.len() == 1 { held.pop() } else { None };
                let one = found.as_tensor().cloned().or(alone);
                let one = one.ok_or_else(|| wrong(format!("{file} does not hold one tensor")))?;
                named.insert(name.to_string(), one);
            }
            (None, found) => match found.as_tensor() {
                Some(tensor) => rest.push(tensor.clone()),
                None => named.extend(found.tensors()),
            },
        }
    }
    let mut rest = rest.into_iter();
    let names = graph.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = graph.inputs.iter().map(|i| {
        let tensor = named.remove(&i.name).or_else(|| rest.next());
        tensor.ok_or_else(|| wrong(format!("there is no value for the input `{}`; the inputs are {names}", i.name)))
    });
    let found = found.collect::<Result<Vec<_>>>()?;
    match (rest.next(), named.keys().next()) {
        (None, None) => Ok(found),
        (_, Some(name)) => Err(wrong(format!("`{name}` is no input; the inputs are {names}"))),
        _ => Err(wrong(format!("more files than inputs; the inputs are {names}"))),
    }
}

impl Infer {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let graph = sampan_graph::load(&self.model)?;
        let inputs = inputs(&graph, &self.inputs)?;
        let predictor = Predictor::new(&graph)?;
        let mut results = predictor.run(&inputs)?;
        if let Some(n) = self.repeat {
            let begin = Instant::now();
            for _ in 0..n {
                results = predictor.run(&inputs)?;
            }
            say(format!("{:.3} ms a run, of {n}", begin.elapsed().as_secs_f64() * 1e3 / f64::from(n)))?;
        }
        if self.profile {
            for (step, time) in predictor.profile(&inputs, self.repeat.unwrap_or(10) as usize)? {
                say(format!("{:>10.3} ms  {step}", time.as_secs_f64() * 1e3))?;
            }
        }
        for (i, t) in results.iter().enumerate() {
            say(format!("output {i}: {:?} {}", t.shape(), t.dtype()))?;
            if self.output.is_none() {
                say(t)?;
            }
        }
        match &self.output {
            Some(path) if path.extension().is_some_and(|e| e == "npy") => match results.as_slice() {
                [one] => sampan_io::npy::save(path, one)?,
                many => return Err(wrong(format!("{} results do not fit into one .npy; write a .npz", many.len()))),
            },
            Some(path) => {
                let named = graph.output_names().into_iter().zip(results).collect();
                sampan_io::npy::save_npz(path, &named, false)?;
            }
            None => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}
