//! A trained LeNet from a file.

use crate::hapi::{Model, read_checkpoint};
use crate::main_job::{self, RunFolder, Settings};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use sampan_deploy::More;
use sampan_nn::Members;
use std::path::{Path, PathBuf};

/// What `sampan info` knows of folders and checkpoints.
pub const MORE: More = More {
    file,
    about: |path| {
        let at = read_checkpoint(path).ok()?.position;
        Some(format!(
            "a checkpoint of a training run: {} epochs and {} steps done ({} steps in all)",
            at.epoch, at.step, at.global_step
        ))
    },
};

/// Reads a run folder, a checkpoint, or a file of weights (.pdparams, .safetensors, .npz, .pth).
pub fn load(path: &Path) -> Result<Model> {
    let file = file(path)?;
    let state = match read_checkpoint(&file) {
        Ok(contents) => contents.model,
        // Not a checkpoint of ours: plain weights.
        Err(_) => sampan_io::load(&file)?.tensors(),
    };
    let model = main_job::model(&Settings::default())?;
    model.network().set_state_dict(&state).map_err(|e| {
        Error::new(e.kind(), format!("{} does not hold a LeNet of `sampan train`: {}", file.display(), e.message()))
    })?;
    Ok(model)
}

/// The file itself, or the trained model (else the checkpoint) in a run folder.
pub fn file(path: &Path) -> Result<PathBuf> {
    if path.is_file() {
        return Ok(path.to_path_buf());
    }
    let run = RunFolder(path.to_path_buf());
    let candidates = [run.model().with_extension("pdparams"), run.checkpoint()];
    candidates.into_iter().find(|p| p.is_file()).ok_or_else(|| {
        let message = format!("there is no trained model in {}", path.display());
        Error::new(Kind::NotFound, message).hint("run `sampan train` first, or name a file with --model")
    })
}
