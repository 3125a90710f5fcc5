//! Initializers against the peer's, recorded by `scripts/init_golden.py`, and what no peer can tell.

use sampan_core::class;
use sampan_core::{DType, Tensor, Value};
use sampan_nn::init::{self, Assign, Bilinear, Constant, Dirac, Initializer, KaimingNormal, Orthogonal, Uniform};
use sampan_nn::{Linear, ParamAttr};
use serde_json::Value as Json;
use std::sync::Arc;

fn recorded() -> Json {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/initializers.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn argument(v: &Json) -> Value {
    match v {
        Json::String(s) => s.as_str().into(),
        Json::Array(list) => list.iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>().into(),
        number => number.as_i64().map_or_else(|| number.as_f64().unwrap().into(), Value::from),
    }
}

#[test]
fn every_initializer_gives_what_the_peer_s_gives() {
    let mut seen = std::collections::BTreeSet::from(["Bilinear".to_string()]);
    for row in recorded()["rows"].as_array().unwrap() {
        let name = row["class"].as_str().unwrap();
        seen.insert(name.to_string());
        let args = row["args"].as_object().unwrap();
        let class = class::find("nn.initializer", name).unwrap();
        let object = class.make(vec![], args.iter().map(|(k, v)| (k.as_str(), argument(v))).collect()).unwrap();
        let initializer = object.downcast::<Arc<dyn Initializer>>().unwrap();
        let shape: Vec<usize> = row["shape"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap() as usize).collect();
        let made = initializer.init(&shape, DType::Float64).unwrap();
        assert_eq!((made.shape(), made.dtype()), (&shape[..], DType::Float64));
        let values = made.to_f64_vec();
        if let Some(expected) = row["values"].as_array() {
            assert_eq!(values, expected.iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>(), "{row}");
            continue;
        }
        let [mean, std, low, high] = ["mean", "std", "low", "high"].map(|k| row[k].as_f64().unwrap());
        let n = values.len() as f64;
        let ours = values.iter().sum::<f64>() / n;
        let spread = (values.iter().map(|v| (v - ours).powi(2)).sum::<f64>() / n).sqrt();
        assert!((ours - mean).abs() < 8.0 * std / n.sqrt(), "{row}: mean {ours}");
        assert!((spread / std - 1.0).abs() < 0.025, "{row}: deviation {spread}");
        if name.ends_with("Uniform") || name == "TruncatedNormal" {
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
            let near = 0.005 * (high - low);
            assert!((min - low).abs() < near && (max - high).abs() < near, "{row}: from {min} to {max}");
        }
    }
    let all: std::collections::BTreeSet<_> =
        class::all().iter().filter(|c| c.module == "nn.initializer").map(|c| c.name.to_string()).collect();
    assert_eq!(all, seen, "every class has a row in scripts/init_golden.py");
}

#[test]
fn gains_are_the_peer_s() {
    for (name, gain) in recorded()["gains"].as_object().unwrap() {
        let (name, param) = name.split_once('/').map_or((&**name, None), |(n, p)| (n, p.parse().ok()));
        assert_eq!(init::calculate_gain(name, param).unwrap(), gain.as_f64().unwrap(), "{name}");
    }
    assert!(init::calculate_gain("gelu", None).unwrap_err().to_string().contains("leaky_relu"));
}

#[test]
fn orthogonal_weights_have_orthogonal_rows_or_columns() {
    for shape in [&[5, 3][..], &[3, 5], &[4, 2, 3, 3]] {
        let w = Orthogonal::with(|o| o.gain(2.0)).init(shape, DType::Float64).unwrap();
        let m = w.reshape([shape[0] as i64, -1]);
        let m = if m.dim(0) > m.dim(1) { m.t() } else { m };
        let difference =
            m.matmul(&m.t()) - sampan_core::ops::creation::eye(m.dim(0) as i64, None).cast(DType::Float64) * 4.0;
        assert!(difference.abs().max(()).to_f64() < 1e-12, "{shape:?}");
    }
}

#[test]
fn values_come_in_the_requested_type() {
    let all: Vec<Box<dyn Initializer>> = vec![
        Box::new(KaimingNormal::new()),
        Box::new(Uniform::new(-1.0, 1.0)),
        Box::new(Orthogonal::new()),
        Box::new(Bilinear::new()),
        Box::new(Dirac::new()),
        Box::new(Constant::new(1.0)),
    ];
    for dtype in [DType::Float64, DType::Float16, DType::BFloat16] {
        for initializer in &all {
            let made = initializer.init(&[2, 2, 3, 3], dtype).unwrap();
            assert_eq!((made.dtype(), made.shape()), (dtype, &[2, 2, 3, 3][..]));
        }
    }
}

#[test]
fn a_bilinear_kernel_is_the_same_in_every_channel_and_along_both_axes() {
    let w = Bilinear::new().init(&[2, 3, 4, 4], DType::Float64).unwrap();
    let line = [0.25, 0.75, 0.75, 0.25];
    let kernel: Vec<f64> = line.iter().flat_map(|y| line.iter().map(move |x| x * y)).collect();
    assert_eq!(w.to_vec::<f64>(), kernel.repeat(6));
}

#[test]
fn assigned_values_are_copied() {
    let values = Tensor::new([[1.0f32, 2.0]]);
    let layer = Linear::with(1, 2, |o| o.weight_attr(ParamAttr::new().initializer(Assign::new(&values))));
    layer.weight.tensor().set_value(&Tensor::new([[5.0f32, 6.0]]));
    assert_eq!(values.to_vec::<f32>(), [1.0, 2.0]);
}

#[test]
fn wrong_settings_and_shapes_are_refused() {
    let message = |r: sampan_core::Result<()>| r.unwrap_err().to_string();
    let kaiming = |mode: &'static str, fan: bool| {
        KaimingNormal::try_with(|o| if fan { o.mode(mode).fan_in(3.0) } else { o.mode(mode) }).map(|_| ())
    };
    assert!(message(kaiming("fan_avg", false)).contains("fan_avg"));
    assert!(message(kaiming("fan_out", true)).contains("fan_in"));
    assert!(message(Uniform::try_new(1.0, 0.0).map(|_| ())).contains("low 1"));
    let make = |i: &dyn Initializer, shape: &[usize]| message(i.init(shape, DType::Float32).map(|_| ()));
    // Values keep their shape; a layer needs them in its own.
    assert_eq!(Assign::new([1.0, 2.0]).init(&[3], DType::Float32).unwrap().shape(), [2]);
    let wrong = ParamAttr::new().initializer(Assign::new([1.0, 2.0]));
    let error = Linear::try_with(2, 2, |o| o.weight_attr(wrong)).err().unwrap().to_string();
    assert!(error.contains("gave shape [2], the parameter has [2, 2]"), "{error}");
    assert!(make(&Dirac::new(), &[2, 2]).contains("[2, 2]"));
    assert!(make(&Dirac::with(|o| o.groups(2)), &[3, 2, 1]).contains("3 output channels"));
    assert!(make(&Orthogonal::new(), &[4]).contains("2 axes"));
    assert!(make(&Bilinear::new(), &[1, 1, 3, 4]).contains("square"));
}
