//! What one side did, as a folder: `structure.json`, and dicts of arrays that `reprod_log` reads and writes too.

use crate::Structure;
use crate::structure::FORMAT;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor};
use sampan_io::{Dict, Object};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Named tensors in order.
#[derive(Clone, Default)]
pub struct Tensors {
    entries: Vec<(String, Tensor)>,
    places: HashMap<String, usize>,
}

impl Tensors {
    /// Puts a tensor at the end, or in the place of one of the same name.
    pub fn insert(&mut self, name: String, tensor: Tensor) {
        match self.places.get(&name) {
            Some(&i) => self.entries[i].1 = tensor,
            None => {
                self.places.insert(name.clone(), self.entries.len());
                self.entries.push((name, tensor));
            }
        }
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|&i| &self.entries[i].1)
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(k, t)| (k.as_str(), t))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn of(object: &Object) -> Tensors {
        let mut tensors = Tensors::default();
        object.visit("", &mut |name, value| {
            // A number that somebody logged without making an array of it.
            let tensor = value.as_tensor().cloned().or_else(|| value.as_float().map(Tensor::new));
            if let Some(t) = tensor {
                tensors.insert(name.to_string(), t);
            }
        });
        tensors
    }
}

/// What one side did.
#[derive(Clone, Default)]
pub struct Recording {
    /// Its layers and calls.
    pub structure: Structure,
    /// Tensors by the name of their file: `forward`, `backward`, `losses`, …
    pub sections: BTreeMap<String, Tensors>,
}

impl Structure {
    /// Reads what [`to_json`](Structure::to_json) wrote.
    pub fn from_json(text: &str) -> Result<Structure> {
        let fault = |e: String| {
            Error::new(Kind::InvalidArgument, format!("structure.json cannot be read: {e}"))
                .hint("the recording is cut short or not one of sampan.align; record it again")
                .in_op("align")
        };
        let structure: Structure = serde_json::from_str(text).map_err(|e| fault(e.to_string()))?;
        if structure.format > FORMAT {
            let newer = format!("it has format {}, and this version knows up to {FORMAT}", structure.format);
            return Err(fault(newer));
        }
        Ok(structure)
    }

    /// The contents of `structure.json`.
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

/// `forward` for `forward_paddle.npy`, `forward_ref` and the like.
fn section_of(stem: &str) -> String {
    let ends = ["_paddle", "_torch", "_pytorch", "_ref", "_sampan", "_reference", "_candidate", "_benchmark"];
    ends.iter().find_map(|e| stem.strip_suffix(e)).unwrap_or(stem).to_string()
}

impl Recording {
    /// A recording without tensors.
    pub fn new(structure: Structure) -> Recording {
        Recording { structure, sections: BTreeMap::new() }
    }

    /// The tensors of a file.
    pub fn section(&self, name: &str) -> Option<&Tensors> {
        self.sections.get(name)
    }

    /// A tensor of a file.
    pub fn tensor(&self, section: &str, key: &str) -> Option<&Tensor> {
        self.sections.get(section)?.get(key)
    }

    /// Reads a folder, or one `.npy` file of `reprod_log`. Nothing in it is run.
    pub fn load(path: impl AsRef<Path>) -> Result<Recording> {
        let path = path.as_ref();
        let fault = |kind, message: String, hint: &str| Error::new(kind, message).hint(hint).in_op("align");
        if !path.exists() {
            let hint =
                "a recording is the folder that `save` of sampan.align.record wrote, or a .npy file of reprod_log";
            return Err(fault(Kind::NotFound, format!("there is no recording at {}", path.display()), hint));
        }
        let mut recording = Recording::default();
        if path.is_file() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            recording.read(&section_of(&stem), path)?;
            return Ok(recording);
        }
        let described = path.join("structure.json");
        if described.is_file() {
            let text = std::fs::read_to_string(&described).map_err(|e| {
                let hint = "record it again";
                fault(Kind::External, format!("{} cannot be read: {e}", described.display()), hint)
            })?;
            recording.structure = Structure::from_json(&text).map_err(|e| {
                Error::new(e.kind(), format!("{}: {}", path.display(), e.message()))
                    .hint("record it again")
                    .in_op("align")
            })?;
        }
        let folder = std::fs::read_dir(path).map_err(|e| {
            fault(Kind::External, format!("{} cannot be read: {e}", path.display()), "check its rights")
        })?;
        let mut files: Vec<_> = folder.flatten().map(|e| e.path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "npy"));
        files.sort();
        for file in files {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            recording.read(&section_of(&stem), &file)?;
        }
        if recording.sections.is_empty() && recording.structure.layers.is_empty() {
            let message = format!("{} holds neither structure.json nor .npy files", path.display());
            return Err(fault(Kind::NotFound, message, "name the folder that `save` of a recording wrote"));
        }
        recording.finish();
        Ok(recording)
    }

    fn read(&mut self, section: &str, file: &Path) -> Result<()> {
        let object = sampan_io::load(file)?;
        let mut tensors = Tensors::of(&object);
        if let Some(one) = object.as_tensor() {
            tensors = Tensors::default();
            tensors.insert(section.to_string(), one.clone());
        }
        self.sections.insert(section.to_string(), tensors);
        Ok(())
    }

    /// Writes the folder.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fault = |e: std::io::Error| {
            Error::new(Kind::External, format!("the recording cannot be written to {}: {e}", path.display()))
                .in_op("align")
        };
        std::fs::create_dir_all(path).map_err(fault)?;
        for (name, tensors) in &self.sections {
            let dict: Dict = tensors.iter().map(|(k, t)| (k, Object::Array(t.clone()))).collect();
            sampan_io::npy::save_object(path.join(format!("{name}.npy")), &Object::Dict(dict))?;
        }
        std::fs::write(path.join("structure.json"), self.structure.to_json()).map_err(fault)
    }

    /// Fills in what the tensors tell about the calls: shapes and statistics.
    pub fn finish(&mut self) {
        let Some(forward) = self.sections.get("forward") else { return };
        for call in &mut self.structure.calls {
            if call.shapes.is_empty() {
                call.shapes = call.outputs.iter().filter_map(|k| forward.get(k)).map(|t| t.shape().to_vec()).collect();
            }
            if call.stats.is_none() {
                call.stats = call.outputs.first().and_then(|k| forward.get(k)).and_then(stats);
            }
        }
    }
}

/// The elements as numbers of double precision, in order; `None` for complex ones.
pub(crate) fn numbers(t: &Tensor) -> Option<Vec<f64>> {
    if t.dtype().is_complex() {
        return None;
    }
    t.try_cast(DType::Float64).and_then(|t| t.try_to_vec::<f64>()).ok()
}

fn stats(t: &Tensor) -> Option<[f64; 4]> {
    let v = numbers(t)?;
    if v.is_empty() {
        return None;
    }
    let n = v.len() as f64;
    let mean = v.iter().sum::<f64>() / n;
    let deviation = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let all = [
        mean,
        deviation,
        v.iter().copied().fold(f64::INFINITY, f64::min),
        v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ];
    // JSON has no infinities.
    all.iter().all(|x| x.is_finite()).then_some(all)
}
