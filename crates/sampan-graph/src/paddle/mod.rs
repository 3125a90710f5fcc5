//! Models as Paddle saves them: `.pdmodel` (Paddle 2) and `.json` (PIR, Paddle 3) side by side, with one `.pdiparams`.

mod classic;
mod export;
mod import;
mod ops;
mod pir;
mod program;
mod schema;

use crate::graph::Graph;
use sampan_core::{Error, Result, Tensor};
use sampan_io::{Dict, Object, atomic, pdiparams, pdmodel, pickle};
use std::path::{Path, PathBuf};

/// The path with an ending after its name, which may have dots of its own.
fn beside(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Writes a graph as `prefix.pdmodel`, `prefix.json`, `prefix.pdiparams` and `prefix.pdiparams.info`, which every Paddle
/// from 2.6 on reads. `structured` has names of the weights in the network, for the last file.
pub fn save(graph: &Graph, prefix: impl AsRef<Path>, structured: &[(String, String)]) -> Result<()> {
    let prefix = prefix.as_ref();
    let program = export::program(graph)?;
    let (classic, pir) = (classic::encode(&program)?, pir::encode(&program)?);
    let mut weights: Vec<(String, &Tensor, bool)> = Vec::new();
    for (var, tensor) in &program.tensors {
        let var = &program.vars[*var];
        weights.push((var.name.clone(), tensor, !var.trainable));
    }
    weights.sort_by(|a, b| a.0.cmp(&b.0));
    let info: Dict = weights
        .iter()
        .map(|(name, _, stop)| {
            let known = structured.iter().find(|(n, _)| n == name).map_or(name, |(_, s)| s);
            let facts: Dict = [
                ("structured_name", Object::from(known.as_str())),
                ("stop_gradient", Object::Bool(*stop)),
                ("trainable", Object::Bool(!*stop)),
            ]
            .into_iter()
            .collect();
            (name.as_str(), Object::from(facts))
        })
        .collect();
    if let Some(folder) = prefix.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| {
            Error::new(sampan_core::error::Kind::External, format!("{}: {e}", folder.display())).in_op("save")
        })?;
    }
    let tensors = weights.iter().map(|(_, t, _)| t.detach()).collect::<Vec<_>>();
    let (values, names) = (beside(prefix, ".pdiparams"), beside(prefix, ".pdiparams.info"));
    if tensors.is_empty() {
        // Paddle takes an empty file for a damaged one, and one of an earlier save is none of ours.
        let _ = (std::fs::remove_file(values), std::fs::remove_file(names));
    } else {
        pdiparams::save(values, &tensors)?;
        atomic::write(&names, &pickle::to_bytes(&info.into(), 2)?)?;
    }
    pdmodel::save(beside(prefix, ".pdmodel"), &classic)?;
    atomic::write(beside(prefix, ".json"), pir.as_bytes())
}

/// Reads what [`save`] or Paddle's `jit.save` wrote: `prefix.json` if it is there, else `prefix.pdmodel`.
pub fn load(prefix: impl AsRef<Path>) -> Result<Graph> {
    let prefix = prefix.as_ref();
    let (json, model) = (beside(prefix, ".json"), beside(prefix, ".pdmodel"));
    let parameters = beside(prefix, ".pdiparams");
    if !model.is_file() {
        return load_files(&json, &parameters);
    }
    match load_files(&model, &parameters) {
        // What only the other file says in a way that is read.
        Err(e) if e.kind() == sampan_core::error::Kind::Unimplemented && json.is_file() => {
            load_files(&json, &parameters)
        }
        result => result,
    }
}

/// Reads a program, by the end of its name, and the file of its parameters.
pub fn load_files(program: &Path, parameters: &Path) -> Result<Graph> {
    let found = match program.extension().is_some_and(|e| e == "json") {
        true => {
            let text = std::fs::read_to_string(program).map_err(|e| missing(program, &e))?;
            pir::decode(&text)?
        }
        false => {
            std::fs::metadata(program).map_err(|e| missing(program, &e))?;
            classic::decode(&pdmodel::load(program)?)?
        }
    };
    let none = !found.vars.iter().any(|v| v.weight);
    let tensors = if none && !parameters.is_file() { Vec::new() } else { pdiparams::load(parameters)? };
    import::graph(&found, tensors)
}

pub(crate) fn missing(path: &Path, error: &std::io::Error) -> Error {
    let missing = Error::new(sampan_core::error::Kind::NotFound, format!("{}: {error}", path.display())).in_op("load");
    match path.extension().is_some_and(|e| e == "onnx") {
        true => missing.hint("check the path"),
        false => {
            missing.hint("jit.save writes a .pdmodel or a .json beside the .pdiparams; give the path without an ending")
        }
    }
}

/// Reads a program and its parameters from memory: what a fuzzer calls.
pub fn from_bytes(program: &[u8], parameters: &[u8]) -> Result<Graph> {
    let found = match std::str::from_utf8(program) {
        Ok(text) if text.trim_start().starts_with('{') => pir::decode(text)?,
        _ => classic::decode(&pdmodel::from_bytes(program)?)?,
    };
    import::graph(&found, pdiparams::from_bytes(parameters)?)
}
