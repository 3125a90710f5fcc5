//! Training step by step as the real peer does it: `scripts/parity.py` recorded its losses and says how cases are chosen.

use crate::formula::{Cheap, build, fill, integers, uniform};
use sampan_core::{Result, Tensor};
use sampan_data::vision::models;
use sampan_nn::{
    Adam, AdamW, AnyLayer, Apply, Base, BatchNorm2D, Dropout, LSTM, Layer, Linear, Members, Momentum, Optimizer, SGD,
    TransformerEncoder, TransformerEncoderLayer,
};
use serde_json::Value as Json;
use std::sync::Arc;

/// As many different batches, which come round again and again.
const BATCHES: usize = 5;

#[derive(Layer)]
struct Lstm {
    lstm: LSTM,
    fc: Linear,
}

impl Layer for Lstm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let last = x.shape()[1] as i64 - 1;
        x.apply(&self.lstm)?.try_narrow(1, last, 1)?.try_squeeze(1)?.apply(&self.fc)
    }
}

#[derive(Layer)]
struct Transformer {
    encoder: TransformerEncoder,
    fc: Linear,
}

impl Layer for Transformer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self.encoder)?.try_mean(1)?.apply(&self.fc)
    }
}

struct Case {
    json: Json,
    input: Vec<usize>,
    classes: usize,
}

impl Case {
    fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap()
    }

    fn number(&self, key: &str) -> f64 {
        self.json[key].as_f64().unwrap()
    }

    fn network(&self) -> Result<AnyLayer> {
        let (features, classes) = (self.input[self.input.len() - 1], self.classes);
        let net: AnyLayer = match self.text("net") {
            "lstm" => {
                Arc::new(Lstm { lstm: LSTM::with(features, 16, |o| o.num_layers(2)), fc: Linear::new(16, classes) })
            }
            "transformer" => {
                let layer = TransformerEncoderLayer::with(features, 2, 32, |o| o.dropout(0.0));
                Arc::new(Transformer { encoder: TransformerEncoder::new(layer, 2), fc: Linear::new(features, classes) })
            }
            name => models::find(name).unwrap().build_with(vec![("num_classes", classes.into())])?,
        };
        let statistics_of_batches = self.text("mode") == "train";
        net.apply(&mut |_, layer| {
            let norm = layer.downcast_ref::<BatchNorm2D>().filter(|_| !statistics_of_batches).and_then(Members::base);
            let dropout = layer.downcast_ref::<Dropout>().and_then(Members::base);
            [norm, dropout].into_iter().flatten().for_each(|base: &Base| base.set_training(false));
        });
        Ok(net)
    }

    fn optimizer(&self, net: &dyn Layer) -> Optimizer {
        let (rate, parameters) = (self.number("rate"), net.parameters());
        match self.text("optimizer") {
            "SGD" => SGD::new(rate, parameters),
            "Momentum" => Momentum::new(rate, parameters),
            "Adam" => Adam::new(rate, parameters),
            "AdamW" => AdamW::new(rate, parameters),
            other => panic!("no optimizer is called {other}"),
        }
    }

    /// The largest relative error of a loss.
    fn replay(&self) -> Result<f64> {
        let net = build(Cheap::Noise, || self.network())?;
        fill(&*net, self.number("gain"));
        let mut optimizer = self.optimizer(&*net);
        let mut worst = 0.0f64;
        for (step, peer) in self.json["losses"].as_array().unwrap().iter().enumerate() {
            let k = step % BATCHES;
            let x = uniform(&format!("x{k}"), &self.input);
            let y = integers(&format!("y{k}"), &self.input[..1], self.classes as u64);
            let loss = net.call(&x)?.try_cross_entropy(&y)?;
            loss.try_backward(None, false)?;
            optimizer.step()?;
            optimizer.clear_grad();
            let peer = peer.as_f64().unwrap();
            worst = worst.max(((loss.to_f64() - peer) / peer).abs());
        }
        Ok(worst)
    }
}

fn replays(wanted: impl Fn(&Json) -> bool) {
    let json: Vec<Json> = serde_json::from_str(include_str!("../parity.json")).unwrap();
    let mut failures = Vec::new();
    for json in json.into_iter().filter(wanted) {
        let input = json["input"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap() as usize).collect();
        let case = Case { input, classes: json["classes"].as_u64().unwrap() as usize, json };
        let worst = case.replay().unwrap();
        let line = format!("{} {} {}: {worst:.1e}", case.text("net"), case.text("mode"), case.text("optimizer"));
        eprintln!("{line}");
        if worst.is_nan() || worst > 1e-4 {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "losses differ from the peer's by more than 1e-4:\n{}", failures.join("\n"));
}

fn quick(net: &str) {
    replays(|case| case["net"] == net && case["quick"] == true);
}

#[test]
fn lenet() {
    quick("lenet");
}

#[test]
fn resnet18() {
    quick("resnet18");
}

#[test]
fn mobilenet_v3_small() {
    quick("mobilenet_v3_small");
}

#[test]
fn lstm() {
    quick("lstm");
}

#[test]
fn transformer() {
    quick("transformer");
}

#[test]
fn the_other_cases() {
    replays(|case| case["quick"] == false);
}
