//! Tests of alignment on recordings made by hand.

mod compare;
mod pairing;
mod recordings;

use sampan_align::{Call, Layer, Parameter, Recording, Structure, Tensors};
use sampan_core::Tensor;
use serde_json::{Value, json};

/// A network of layers in a row, run once: what each layer is called, is, is set to, and what it gave.
pub(crate) struct Row<'r> {
    pub(crate) name: &'r str,
    pub(crate) class: &'r str,
    pub(crate) config: Value,
    pub(crate) parameters: Vec<(&'r str, Tensor)>,
    pub(crate) output: Tensor,
}

pub(crate) fn row<'r>(name: &'r str, class: &'r str, config: Value, output: &Tensor) -> Row<'r> {
    Row { name, class, config, parameters: Vec::new(), output: output.clone() }
}

/// The recording of such a network.
pub(crate) fn recording(side: &str, input: &Tensor, rows: &[Row<'_>]) -> Recording {
    let mut structure = Structure { format: 1, side: side.into(), ..Structure::default() };
    let (mut forward, mut parameters) = (Tensors::default(), Tensors::default());
    forward.insert("input0".into(), input.clone());
    let mut last = "input0".to_string();
    for r in rows {
        let own = r.parameters.iter().map(|(n, t)| {
            let name = format!("{}.{n}", r.name);
            parameters.insert(name.clone(), t.clone());
            Parameter { name, shape: t.shape().to_vec(), trainable: true, ..Parameter::default() }
        });
        let own = own.collect();
        let config = r.config.as_object().cloned().unwrap_or_default();
        structure.layers.push(Layer {
            name: r.name.into(),
            class: r.class.into(),
            config: config.clone(),
            parameters: own,
            ..Layer::default()
        });
        forward.insert(r.name.into(), r.output.clone());
        structure.calls.push(Call {
            key: r.name.into(),
            layer: r.name.into(),
            op: r.class.into(),
            config,
            inputs: vec![last.clone()],
            outputs: vec![r.name.into()],
            ..Call::default()
        });
        last = r.name.to_string();
    }
    structure.calls.push(Call {
        key: "(output)".into(),
        op: "output".into(),
        function: true,
        inputs: vec![last.clone()],
        outputs: vec![last],
        ..Call::default()
    });
    let mut made = Recording::new(structure);
    made.sections.insert("forward".into(), forward);
    made.sections.insert("parameters".into(), parameters);
    made.finish();
    made
}

/// Numbers without a pattern.
pub(crate) fn wave(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let v: Vec<f32> = (0..n).map(|i| ((i * i + 3 * i) as f32 * 0.37).sin() * 2.0).collect();
    Tensor::new(v).reshape(shape.iter().map(|&d| d as i64).collect::<Vec<_>>())
}

pub(crate) fn none() -> Value {
    json!({})
}
