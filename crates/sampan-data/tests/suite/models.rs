//! The model zoo against the real peer's, recorded by `scripts/models_golden.py`, and in training.

use crate::formula::{Cheap, build, fill, fnv, uniform};
use sampan_core::{DType, Result, Tensor, Value, bail, ensure};
use sampan_data::vision::models::{self, Known};
use sampan_nn::{AnyLayer, Base, Layer, LayerRef, Members, Path, Visitor};
use serde_json::Value as Json;

struct Row {
    name: String,
    args: Vec<(String, Value)>,
    members: String,
    /// Shape of the input and what comes out.
    computed: Option<(Vec<usize>, Vec<f64>)>,
}

impl Row {
    fn known(&self) -> &'static Known {
        models::find(&self.name).unwrap_or_else(|| panic!("{} is not in the table", self.name))
    }

    fn build(&self) -> Result<AnyLayer> {
        let args = self.args.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        self.known().build_with(args)
    }
}

fn rows() -> Vec<Row> {
    let json: Vec<Json> = serde_json::from_str(include_str!("../models.json")).unwrap();
    let value = |v: &Json| match v {
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap().into(), Value::from),
        other => panic!("no argument is {other}"),
    };
    let numbers = |v: &Json| v.as_array().map(|list| list.iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>());
    let row = |json: &Json| Row {
        name: json["name"].as_str().unwrap().into(),
        args: json["args"].as_object().unwrap().iter().map(|(name, v)| (name.clone(), value(v))).collect(),
        members: json["members"].as_str().unwrap().into(),
        computed: numbers(&json["input"])
            .map(|shape| (shape.iter().map(|d| *d as usize).collect(), numbers(&json["output"]).unwrap())),
    };
    json.iter().map(row).collect()
}

/// One line for each layer and each tensor of the state, as the script writes them.
fn members(net: &dyn Layer) -> Vec<String> {
    struct Layers(Vec<String>, Path);
    impl Visitor for Layers {
        fn layer(&mut self, path: &Path, _: LayerRef) {
            self.1 = path.clone();
        }
        fn base(&mut self, _: &Path, base: &Base) {
            self.0.push(format!("{} {}", self.1.as_str(), base.full_name()));
        }
    }
    let mut lines = Layers(Vec::new(), Path::default());
    net.visit(&Path::default(), &mut lines);
    lines.0.extend(net.state_dict().iter().map(|(name, t)| format!("{name} {:?} {}", t.shape(), t.name())));
    lines.0.sort();
    lines.0
}

/// At most 16 numbers from all parts of an output.
fn some(t: &Tensor) -> Vec<f64> {
    t.to_f64_vec().into_iter().step_by((t.numel() / 16).max(1)).take(16).collect()
}

#[test]
fn names_shapes_and_outputs_are_the_peers() {
    let mut failures = Vec::new();
    let rows = rows();
    for name in models::names().iter().filter(|name| !rows.iter().any(|row| row.name == **name)) {
        failures.push(format!("{name}: not recorded, run scripts/models_golden.py"));
    }
    for row in &rows {
        let cheap = if row.computed.is_some() { Cheap::Noise } else { Cheap::Meta };
        let net = build(cheap, || row.build()).unwrap();
        let lines = members(&*net);
        if format!("{:016x}", fnv(&lines.join("\n"))) != row.members {
            let (name, args) = (&row.name, &row.args);
            let file = std::env::temp_dir().join(format!("{name}.members"));
            std::fs::write(&file, lines.join("\n")).unwrap();
            failures.push(format!(
                "{name} {args:?}: other members, see {} and scripts/models_golden.py --list {name}",
                file.display()
            ));
            continue;
        }
        let Some((shape, expected)) = &row.computed else { continue };
        fill(&*net, 6.0);
        net.eval();
        let outputs = net.call_all(&[uniform("input", shape)]).unwrap();
        let ours: Vec<f64> = outputs.iter().flat_map(some).collect();
        let size = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let error = ours.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size;
        eprintln!("{}: relative error {error:.1e}", row.name);
        if ours.len() != expected.len() || error.is_nan() || error > 1e-4 {
            failures.push(format!("{}: {ours:?} against the peer's {expected:?}", row.name));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_model_takes_the_images_it_was_made_for() {
    for known in models::all() {
        let net = build(Cheap::Meta, || known.build()).unwrap();
        net.eval();
        let classes = if known.name == "lenet" { 10 } else { 1000 };
        for out in net.call_all(&[Tensor::meta(known.input, DType::Float32)]).unwrap() {
            assert_eq!(out.shape(), [1, classes], "{}", known.name);
        }
    }
}

#[test]
fn gradients_reach_every_parameter() {
    let mut failures = Vec::new();
    for row in rows().iter().filter(|row| row.computed.is_some()) {
        if let Err(e) = trains(row.known()) {
            failures.push(format!("{}: {e}", row.name));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// In training a small batch goes through, and every parameter gets a finite gradient.
fn trains(known: &Known) -> Result<()> {
    let net = build(Cheap::Noise, || known.build_with(vec![("num_classes", 4.into())]))?;
    let shape = match known.name {
        // They take no smaller images.
        "lenet" | "alexnet" | "googlenet" => known.input,
        "squeezenet1_0" => [2, 3, 64, 64],
        "inception_v3" => [2, 3, 75, 75],
        _ => [2, 3, 32, 32],
    };
    let mut loss = Tensor::new(0.0f32);
    for out in net.call_all(&[uniform("input", &shape)])? {
        ensure!(out.shape() == [shape[0], 4], "puts out {:?}", out.shape());
        loss = loss.try_add(out.try_square()?.try_sum(())?)?;
    }
    loss.try_backward(None, false)?;
    for (name, p) in net.named_parameters() {
        let Some(gradient) = p.grad() else { bail!("{name} gets no gradient") };
        ensure!(gradient.shape() == p.shape(), "the gradient of {name} has shape {:?}", gradient.shape());
        ensure!(gradient.try_sum(())?.to_f64().is_finite(), "the gradient of {name} is not finite");
    }
    Ok(())
}

#[test]
fn wrong_arguments_are_refused_with_a_sentence() {
    let refused = [
        ("resnet18", "depth", Value::from(20), "18, 34, 50, 101 or 152"),
        ("shufflenet_v2_x1_0", "scale", 0.7.into(), "0.25, 0.33, 0.5, 1, 1.5 or 2"),
        ("shufflenet_v2_x1_0", "act", "gelu".into(), "\"relu\", \"swish\" or None"),
        ("densenet121", "layers", 100.into(), "121, 161, 169, 201 or 264"),
        ("lenet", "classes", 3.into(), "classes"),
        ("vgg11", "batch_norm", "yes".into(), "batch_norm"),
    ];
    for (name, argument, value, sentence) in refused {
        let Err(error) = models::find(name).unwrap().build_with(vec![(argument, value)]) else {
            panic!("{name} takes {argument}")
        };
        assert!(error.to_string().contains(sentence), "{error}");
    }
    assert!(models::find("resnet19").is_none());
}
