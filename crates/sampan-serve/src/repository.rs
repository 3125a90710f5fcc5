//! The folder of models: what is there, and what has changed.

use crate::Options;
use crate::batch::{Batcher, Sharing};
use crate::metrics::Metrics;
use crate::protocol::type_name;
use sampan_core::Result;
use sampan_graph::{Graph, Id, Predictor};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

/// One version of a model.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) inputs: Vec<String>,
    /// What is known of their shapes; -1 stands for any extent.
    pub(crate) shapes: Vec<Vec<i64>>,
    pub(crate) outputs: Vec<String>,
    pub(crate) metadata: Value,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) batcher: Batcher,
}

/// A version on the disk: the path that its files have in common, and when they were written.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    prefix: PathBuf,
    written: Vec<(PathBuf, SystemTime, u64)>,
}

impl Found {
    fn file(&self, ending: &str) -> Option<&Path> {
        self.written.iter().map(|(path, ..)| path.as_path()).find(|path| path.extension().is_some_and(|e| e == ending))
    }

    /// The `.onnx` file, where there is no program of Paddle's.
    fn onnx(&self) -> Option<&Path> {
        self.file("onnx").filter(|_| self.file("pdmodel").or(self.file("json")).is_none())
    }
}

type Key = (String, String);

/// All models, by name and version.
pub(crate) struct Repository {
    options: Options,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    models: BTreeMap<Key, (Found, Arc<Model>)>,
    /// What could not be read, and why.
    broken: BTreeMap<Key, (Found, String)>,
}

fn dims(graph: &Graph, id: Id) -> Vec<i64> {
    graph.values[id].dims.iter().map(|d| d.fixed().map_or(-1, |n| n as i64)).collect()
}

impl Model {
    fn load(key: &Key, found: &Found, options: &Options) -> Result<Model> {
        let graph = sampan_graph::load(found.onnx().unwrap_or(&found.prefix))?;
        let entry = |name: &str, id: Id| json!({ "name": name, "datatype": type_name(graph.values[id].dtype), "shape": dims(&graph, id) });
        let outputs = graph.output_names();
        let (name, version) = key.clone();
        let metadata = json!({
            "name": name,
            "versions": [version],
            "platform": if found.onnx().is_some() { "sampan_onnx" } else { "sampan_paddle" },
            "inputs": graph.inputs.iter().map(|i| entry(&i.name, i.value)).collect::<Vec<_>>(),
            "outputs": outputs.iter().zip(&graph.outputs).map(|(n, &id)| entry(n, id)).collect::<Vec<_>>(),
        });
        let free = |id: Id| graph.values[id].dims.first().is_some_and(|d| d.fixed().is_none());
        let batches = graph.inputs.iter().all(|i| free(i.value)) && graph.outputs.iter().all(|&id| free(id));
        let inputs = graph.inputs.iter().map(|i| i.name.clone()).collect();
        let shapes = graph.inputs.iter().map(|i| dims(&graph, i.value)).collect();
        let how = Sharing { max_batch: options.max_batch, max_delay: options.max_delay, queue: options.queue };
        let metrics = Arc::new(Metrics::default());
        let batcher = Batcher::new(Predictor::new(&graph)?, batches, how, metrics.clone());
        let batcher = batcher.map_err(|e| sampan_core::Error::invalid(format!("no thread for a model: {e}")))?;
        Ok(Model { name, version, inputs, shapes, outputs, metadata, metrics, batcher })
    }
}

/// The networks directly inside of a folder: paths without their endings.
fn networks(folder: &Path) -> Vec<Found> {
    let mut found = BTreeMap::<PathBuf, Found>::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let ending = path.extension().and_then(|e| e.to_str());
        if !matches!(ending, Some("pdmodel" | "json" | "pdiparams" | "onnx")) {
            continue;
        }
        let Ok(about) = entry.metadata() else { continue };
        let prefix = path.with_extension("");
        let one = found.entry(prefix.clone()).or_insert_with(|| Found { prefix, written: vec![] });
        one.written.push((path, about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()));
    }
    let program = |f: &Found| f.written.iter().any(|(p, ..)| p.extension().is_some_and(|e| e != "pdiparams"));
    let mut all: Vec<Found> = found.into_values().filter(program).collect();
    all.iter_mut().for_each(|f| f.written.sort());
    all
}

fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    // Names are parts of addresses and of metrics.
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    (plain && !name.starts_with('.')).then(|| name.to_string())
}

/// What a folder holds: files of one name are a model, so is a folder with files, and its numbered folders are versions.
fn scan(folder: &Path) -> BTreeMap<Key, Found> {
    let mut all = BTreeMap::new();
    for found in networks(folder) {
        if let Some(name) = name_of(&found.prefix) {
            all.insert((name, "1".to_string()), found);
        }
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let (true, Some(name)) = (path.is_dir(), name_of(&path)) else { continue };
        if let Some(found) = networks(&path).into_iter().next() {
            all.insert((name.clone(), "1".to_string()), found);
        }
        for version in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = version.path();
            let number = name_of(&path).filter(|n| n.parse::<u64>().is_ok());
            if let (true, Some(number), Some(found)) = (path.is_dir(), number, networks(&path).into_iter().next()) {
                all.insert((name.clone(), number), found);
            }
        }
    }
    all
}

impl Repository {
    pub(crate) fn new(options: Options) -> Repository {
        Repository { options, state: RwLock::default() }
    }

    /// Bytes of a request's body, at most.
    pub(crate) fn max_body(&self) -> usize {
        self.options.max_body
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Looks at the folder and loads what is new; says what it did.
    pub(crate) fn refresh(&self) -> Vec<String> {
        let found = scan(&self.options.models);
        let mut said = Vec::new();
        let gone: Vec<Key> = self.read().models.keys().filter(|k| !found.contains_key(*k)).cloned().collect();
        for key in gone {
            self.write().models.remove(&key);
            said.push(format!("{} {} is gone", key.0, key.1));
        }
        self.write().broken.retain(|key, _| found.contains_key(key));
        for (key, found) in found {
            let state = self.read();
            let known = state.models.get(&key).is_some_and(|(f, _)| *f == found);
            let broken = state.broken.get(&key).is_some_and(|(f, _)| *f == found);
            drop(state);
            if known || broken {
                continue;
            }
            // The old one goes on answering until the new one is there, and if that cannot be read.
            match Model::load(&key, &found, &self.options) {
                Ok(model) => {
                    said.push(format!("{} {} is ready", key.0, key.1));
                    let mut state = self.write();
                    state.broken.remove(&key);
                    state.models.insert(key, (found, Arc::new(model)));
                }
                Err(e) => {
                    said.push(format!("{} {} cannot be read: {e}", key.0, key.1));
                    self.write().broken.insert(key, (found, e.to_string()));
                }
            }
        }
        said
    }

    /// A model, in its newest version unless one is named.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Option<Arc<Model>> {
        let state = self.read();
        let of_name = state.models.iter().filter(|((n, _), _)| n == name);
        let number = |v: &str| v.parse::<u64>().unwrap_or(0);
        match version {
            Some(version) => of_name.into_iter().find(|((_, v), _)| v == version),
            None => of_name.into_iter().max_by_key(|((_, v), _)| number(v)),
        }
        .map(|(_, (_, model))| model.clone())
    }

    /// The versions of a model, the oldest first.
    pub(crate) fn versions(&self, name: &str) -> Vec<String> {
        let mut all: Vec<String> =
            self.read().models.keys().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect();
        all.sort_by_key(|v| v.parse::<u64>().unwrap_or(0));
        all
    }

    /// Every version, with its state.
    pub(crate) fn index(&self) -> Value {
        let state = self.read();
        let ready =
            state.models.keys().map(|(n, v)| json!({ "name": n, "version": v, "state": "READY", "reason": "" }));
        let broken = state
            .broken
            .iter()
            .filter(|(key, _)| !state.models.contains_key(*key))
            .map(|((n, v), (_, why))| json!({ "name": n, "version": v, "state": "UNAVAILABLE", "reason": why }));
        ready.chain(broken).collect()
    }

    pub(crate) fn metrics(&self) -> Vec<(String, String, Arc<Metrics>)> {
        self.read().models.values().map(|(_, m)| (m.name.clone(), m.version.clone(), m.metrics.clone())).collect()
    }
}
