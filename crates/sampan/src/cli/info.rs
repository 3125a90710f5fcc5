//! `sampan info`.

use super::{say, weights};
use crate::hapi::read_checkpoint;
use clap::Args;
use sampan_core::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct Info {
    /// Checkpoints, .pdparams, .pdopt, .safetensors, .npy, .npz, .pth, or the folder of a run
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

/// Says what a file holds.
fn describe(path: &Path) -> Result<()> {
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
