//! Sample arguments and inputs of every layer class, from `tests/layers/*.json`; `scripts/layers_golden.py` says what a
//! row holds and repeats the formulas.

use sampan_core::class::{self, ClassDef};
use sampan_core::{DType, Object, Result, Tensor, Value};
use sampan_nn::{Layer, utils};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One way to build and call a class.
pub struct Row {
    json: Json,
}

impl Row {
    /// A note on the row, such as `random`.
    pub fn has(&self, note: &str) -> bool {
        self.json.get(note).is_some()
    }

    /// The relative error allowed against the peer, where the row names one.
    pub fn tol(&self) -> Option<f64> {
        self.json["tol"].as_f64()
    }

    pub fn build(&self, class: &ClassDef) -> Result<Arc<dyn Layer>> {
        self.build_in(class, DType::Float32)
    }

    /// Builds one; arguments that are tensors are of this dtype, parameters of the default one.
    pub fn build_in(&self, class: &ClassDef, dtype: DType) -> Result<Arc<dyn Layer>> {
        let object = make(class, &self.json["args"], dtype)?;
        let layer = object.downcast::<Arc<dyn Layer>>().expect("a class of nn is a layer").clone();
        for (form, settings) in self.json["norm"].as_object().into_iter().flatten() {
            let dim = settings["dim"].as_i64();
            if form == "weight_norm" {
                utils::weight_norm(&*layer, "weight", settings.get("dim").map_or(Some(0), Json::as_i64))?;
            } else {
                let mut options = utils::SpectralNormOptions { dim, ..Default::default() };
                if let Some(n) = settings["n_power_iterations"].as_u64() {
                    options.n_power_iterations = n as usize;
                }
                if let Some(eps) = settings["eps"].as_f64() {
                    options.eps = eps;
                }
                utils::spectral_norm(&*layer, "weight", options)?;
            }
        }
        Ok(layer)
    }

    /// The inputs; floats are of this dtype and want a gradient.
    pub fn inputs(&self, dtype: DType) -> Vec<Tensor> {
        let specs = self.json["inputs"].as_array().expect("inputs is a list");
        specs.iter().enumerate().map(|(k, spec)| input(spec, k, dtype)).collect()
    }
}

/// Every row of every class, in the order of the files.
pub fn rows() -> BTreeMap<String, Vec<Row>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layers");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut table: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for file in files {
        let Json::Object(classes) = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() else {
            panic!("{} is not a map", file.display())
        };
        for (class, list) in classes {
            let Json::Array(list) = list else { panic!("{class}: not a list") };
            table.entry(class).or_default().extend(list.into_iter().map(|json| Row { json }));
        }
    }
    table
}

fn make(class: &ClassDef, args: &Json, dtype: DType) -> Result<Object> {
    let args = args.as_object().expect("args is a map");
    class.make(Vec::new(), args.iter().map(|(name, v)| (name.as_str(), argument(v, dtype))).collect())
}

/// An argument as Python would pass it.
fn argument(v: &Json, dtype: DType) -> Value {
    match v {
        Json::Null => Value::None,
        Json::Bool(b) => (*b).into(),
        Json::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap().into(), Value::from),
        Json::String(s) => s.as_str().into(),
        Json::Array(list) if list.iter().all(Json::is_i64) => {
            list.iter().map(|v| v.as_i64().unwrap()).collect::<Vec<_>>().into()
        }
        Json::Array(list) => Value::List(list.iter().map(|v| argument(v, dtype)).collect()),
        Json::Object(map) => match map.get("tensor") {
            Some(spec) => input(spec, 0, dtype).detach().into(),
            None => {
                let name = map["class"].as_str().expect("an argument that is a map is a tensor or a layer");
                let class = class::find("nn", name).expect("a class of nn");
                make(class, &map["args"], dtype).unwrap().into()
            }
        },
    }
}

pub fn wave(n: usize, step: f64, start: f64) -> Vec<f64> {
    (0..n).map(|i| (step * (i as f64 + 1.0) + start).sin()).collect()
}

fn shape(v: &Json) -> Vec<usize> {
    v.as_array().expect("a shape is a list").iter().map(|d| d.as_u64().unwrap() as usize).collect()
}

fn input(spec: &Json, k: usize, dtype: DType) -> Tensor {
    if spec.is_array() {
        let shape = shape(spec);
        let values = wave(shape.iter().product(), 1.37, 0.4 * k as f64).iter().map(|v| 1.5 * v).collect::<Vec<_>>();
        return Tensor::from_vec(values, &shape).cast(dtype).requires_grad_();
    }
    let shape = shape(&spec["shape"]);
    if let Json::Array(bounds) = &spec["between"] {
        let (low, high) = (bounds[0].as_f64().unwrap(), bounds[1].as_f64().unwrap());
        let wave = wave(shape.iter().product(), 1.37, 0.4 * k as f64);
        let values: Vec<f64> = wave.iter().map(|v| low + (high - low) * (0.5 + 0.5 * v)).collect();
        let t = Tensor::from_vec(values, &shape).cast(dtype);
        t.set_stop_gradient(spec.get("fixed").is_some());
        return t;
    }
    let values: Vec<i64> = match (&spec["values"], spec["below"].as_i64()) {
        (Json::Array(list), _) => list.iter().map(|v| v.as_i64().unwrap()).collect(),
        (_, Some(below)) => (0..shape.iter().product::<usize>() as i64).map(|i| (7 * i + 3) % below).collect(),
        _ => panic!("an input is a shape, or has values or below"),
    };
    let t = Tensor::from_vec(values, &shape);
    match spec["dtype"].as_str() {
        None => t,
        Some("float") => t.cast(dtype),
        Some(name) => t.cast(DType::from_name(name).expect("a dtype")),
    }
}

/// Fills parameters and buffers with waves that depend on their names.
pub fn fill(layer: &dyn Layer) {
    for (name, t) in layer.state_dict() {
        let start = (name.bytes().map(u32::from).sum::<u32>() % 17) as f64;
        let positive = name.ends_with("variance");
        let values =
            wave(t.numel(), 0.61, start).into_iter().map(|w| if positive { 1.0 + 0.5 * w } else { 0.4 * w + 0.1 });
        t.set_value(&Tensor::from_vec(values.collect::<Vec<f64>>(), t.shape()).cast(t.dtype()));
    }
}
