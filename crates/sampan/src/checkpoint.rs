//! Everything a training run needs to go on to the bit, in one safetensors file.

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use sampan_core::error::Kind;
use sampan_core::{DType, Dict, Error, Result, Tensor, Value};
use sampan_nn::{Layer, Optimizer};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Epochs finished.
    pub epoch: usize,
    /// Batches of the current epoch finished.
    pub step: usize,
    /// The generator when the epoch began: the order of its batches follows from it.
    pub epoch_rng: (u64, u64),
    /// The generator now.
    pub rng: (u64, u64),
}

const DTYPES: [(DType, Dtype); 10] = [
    (DType::Bool, Dtype::BOOL),
    (DType::UInt8, Dtype::U8),
    (DType::Int8, Dtype::I8),
    (DType::Int16, Dtype::I16),
    (DType::Int32, Dtype::I32),
    (DType::Int64, Dtype::I64),
    (DType::Float16, Dtype::F16),
    (DType::BFloat16, Dtype::BF16),
    (DType::Float32, Dtype::F32),
    (DType::Float64, Dtype::F64),
];

fn broken(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::External, format!("{}: {why}", path.display())).in_op("checkpoint")
}

/// Writes model, optimizer and position. The file appears whole or not at all: it is written beside and then renamed.
pub fn save(path: &Path, net: &dyn Layer, optimizer: &Optimizer, at: Position) -> Result<()> {
    let mut tensors: BTreeMap<String, Tensor> =
        net.state_dict().into_iter().map(|(k, t)| (format!("model.{k}"), t)).collect();
    // The number keeps the order, by which a network that was built anew finds its state.
    for (i, (key, value)) in optimizer.state_dict()?.iter().enumerate() {
        let Value::Tensor(t) = value else { return Err(broken(path, format!("{key} is no tensor"))) };
        tensors.insert(format!("optimizer.{i:06}.{key}"), t.clone());
    }
    let bytes: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(k, t)| {
            let dtype = DTYPES.iter().find(|(d, _)| *d == t.dtype()).expect("every dtype is in the table").1;
            (k.clone(), dtype, t.shape().to_vec(), t.to_bytes())
        })
        .collect();
    let views: Vec<(&str, TensorView)> = bytes
        .iter()
        .map(|(k, d, s, b)| TensorView::new(*d, s.clone(), b).map(|v| (k.as_str(), v)).map_err(|e| broken(path, e)))
        .collect::<Result<_>>()?;
    let numbers = [at.epoch as u64, at.step as u64, at.epoch_rng.0, at.epoch_rng.1, at.rng.0, at.rng.1];
    let position = numbers.map(|n| n.to_string()).join(" ");
    let notes = HashMap::from([("format".to_string(), "sampan-1".to_string()), ("position".to_string(), position)]);
    let data = safetensors::serialize(views, Some(notes)).map_err(|e| broken(path, e))?;
    let partial = path.with_extension("partial");
    let write = || -> std::io::Result<()> {
        use std::io::Write;
        let mut file = std::fs::File::create(&partial)?;
        file.write_all(&data)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&partial);
        broken(path, e)
    })
}

/// Reads a checkpoint back into a model and an optimizer of the same form.
pub fn load(path: &Path, net: &dyn Layer, optimizer: Option<&mut Optimizer>) -> Result<Position> {
    let data = std::fs::read(path).map_err(|e| broken(path, e))?;
    let (_, header) = SafeTensors::read_metadata(&data).map_err(|e| broken(path, format!("no checkpoint: {e}")))?;
    let file = SafeTensors::deserialize(&data).map_err(|e| broken(path, format!("no checkpoint: {e}")))?;
    let mut model = BTreeMap::new();
    let mut state = BTreeMap::new();
    for (name, view) in file.tensors() {
        let (dtype, _) = DTYPES
            .iter()
            .find(|(_, d)| *d == view.dtype())
            .ok_or_else(|| broken(path, format!("{name} has dtype {:?}, which sampan lacks", view.dtype())))?;
        let tensor = Tensor::from_bytes(view.data(), *dtype, view.shape())?;
        if let Some(name) = name.strip_prefix("model.") {
            model.insert(name.to_string(), tensor);
        } else if let Some(name) = name.strip_prefix("optimizer.") {
            state.insert(name.to_string(), tensor);
        }
    }
    let position = header.metadata().as_ref().and_then(|m| m.get("position")).cloned().unwrap_or_default();
    let numbers: Vec<u64> = position.split(' ').filter_map(|n| n.parse().ok()).collect();
    let &[epoch, step, a, b, c, d] = numbers.as_slice() else {
        return Err(broken(path, "the file does not say how far training had come"));
    };
    net.set_state_dict(&model)?;
    if let Some(optimizer) = optimizer {
        let named = |(k, t): (String, Tensor)| k.split_once('.').map(|(_, name)| (name.to_string(), t));
        optimizer.set_state_dict(&state.into_iter().filter_map(named).collect::<Dict>())?;
    }
    Ok(Position { epoch: epoch as usize, step: step as usize, epoch_rng: (a, b), rng: (c, d) })
}
