//! `sampan info`.

use super::{infer, say, weights};
use crate::hapi::read_checkpoint;
use clap::Args;
use sampan_core::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct Info {
    /// Networks (.pdmodel, .json), checkpoints, .pdparams, .pdopt, .safetensors, .npy, .npz, .pth, or the folder of a run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn bytes(n: usize) -> String {
    match n {
        0..10_000 => format!("{n} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

/// Says what a saved network takes, gives and computes.
fn describe_network(path: &Path) -> Result<()> {
    let graph = infer::load(path)?;
    let elements: usize = graph.weights.iter().filter(|w| w.shared).map(|w| w.tensor.numel()).sum();
    let (calls, weights) = (graph.calls.len(), graph.weights.iter().filter(|w| w.shared).count());
    say(format!("{}: a network of {calls} calls, {weights} parameters with {elements} elements", path.display()))?;
    let shape = |id: usize| {
        let known = &graph.values[id];
        let dims = known.dims.iter().map(|d| d.fixed().map_or("any".into(), |n| n.to_string()));
        format!("[{}] {}", dims.collect::<Vec<_>>().join(", "), known.dtype)
    };
    for input in &graph.inputs {
        say(format!("  input   {} {}", input.name, shape(input.value)))?;
    }
    for (i, &id) in graph.outputs.iter().enumerate() {
        say(format!("  output  {i} {}", shape(id)))?;
    }
    let mut counts = BTreeMap::new();
    graph.calls.iter().for_each(|c| *counts.entry(c.op.name).or_insert(0) += 1);
    let counts = counts.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>();
    say(format!("  calls   {}", counts.join(", ")))
}

/// Says what a file holds.
fn describe(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|e| e == "pdmodel" || e == "json") {
        return describe_network(path);
    }
    let path = &if path.is_dir() { weights::file(path)? } else { path.to_path_buf() };
    let found = sampan_io::describe(path)?;
    say(format!("{}: {}, {} elements, {}", path.display(), found.format, found.numel(), bytes(found.bytes())))?;
    if let Ok(checkpoint) = read_checkpoint(path) {
        let at = &checkpoint.position;
        say(format!(
            "  a checkpoint of a training run: {} epochs and {} steps done ({} steps in all)",
            at.epoch, at.step, at.global_step
        ))?;
    }
    let width = found.entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    found.entries.iter().try_for_each(|entry| say(format!("  {:width$}  {}", entry.name, entry.summary)))
}

impl Info {
    pub fn run(self) -> Result<ExitCode> {
        let mut failed = false;
        // A bad file does not hide what is in the others.
        for path in &self.files {
            if let Err(e) = describe(path) {
                failed = true;
                eprintln!("error: {e}");
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
