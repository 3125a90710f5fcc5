//! `info`.

use crate::say;
use clap::Args;
use sampan_core::{Error, Result};
use sampan_graph::draw;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Says what files hold, and draws networks.
#[derive(Args)]
pub struct Info {
    /// Networks (.pdmodel, .json, .onnx), checkpoints, .pdparams, .pdopt, .safetensors, .npy, .npz, .pth, or the folder of a run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Draw the network: its calls, the shapes between them and the weights
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page that shows the network, in one file that any browser opens
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What a program knows of files beside their formats.
pub struct More {
    /// The file that a folder stands for.
    pub file: fn(&Path) -> Result<PathBuf>,
    /// A line about a file.
    pub about: fn(&Path) -> Option<String>,
}

impl Default for More {
    fn default() -> More {
        More { file: |path| Ok(path.to_path_buf()), about: |_| None }
    }
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
    let graph = sampan_graph::load(path)?;
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
fn describe(path: &Path, more: &More) -> Result<()> {
    if path.extension().is_some_and(|e| e == "pdmodel" || e == "json") {
        return describe_network(path);
    }
    if path.extension().is_some_and(|e| e == "onnx") && describe_network(path).is_ok() {
        // What cannot be a graph of our calls is described by its weights.
        return Ok(());
    }
    let path = &if path.is_dir() { (more.file)(path)? } else { path.to_path_buf() };
    let found = sampan_io::describe(path)?;
    say(format!("{}: {}, {} elements, {}", path.display(), found.format, found.numel(), bytes(found.bytes())))?;
    if let Some(line) = (more.about)(path) {
        say(format!("  {line}"))?;
    }
    let width = found.entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    found.entries.iter().try_for_each(|entry| say(format!("  {:width$}  {}", entry.name, entry.summary)))
}

impl Info {
    /// Draws the one network that is named.
    fn draw(&self) -> Result<()> {
        let [path] = &self.files[..] else {
            return Err(Error::invalid("a picture is of one network; name one file").in_op("info"));
        };
        let graph = sampan_graph::load(path)?;
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        if let Some(to) = &self.svg {
            sampan_io::atomic::write(to, draw::svg(&graph).as_bytes())?;
        }
        if let Some(to) = &self.html {
            sampan_io::atomic::write(to, draw::html(&graph, &name).as_bytes())?;
        }
        for to in [&self.svg, &self.html].into_iter().flatten() {
            say(format!("{}: a picture of {} calls", to.display(), graph.calls.len()))?;
        }
        Ok(())
    }

    /// Does it.
    pub fn run(self, more: &More) -> Result<ExitCode> {
        if self.svg.is_some() || self.html.is_some() {
            self.draw()?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut failed = false;
        // A bad file does not hide what is in the others.
        for path in &self.files {
            if let Err(e) = describe(path, more) {
                failed = true;
                eprintln!("error: {e}");
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
