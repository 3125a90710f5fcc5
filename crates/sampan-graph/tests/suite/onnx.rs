//! ONNX: what is written is read back and computes the same.

use super::registry::{constants_of, evaluate, samples, tensors_of, with_tensors};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, OpDef};
use sampan_core::sample::Sample;
use sampan_core::{DType, Error, Result, Tensor, random};
use sampan_data::vision::models;
use sampan_graph::onnx::{self, OPSETS, Options};
use sampan_graph::{Graph, Spec, trace};
use sampan_nn::{GRU, LSTM, Layer, TransformerEncoder, TransformerEncoderLayer};

fn options(opset: i64) -> Options {
    Options { opset, ..Options::default() }
}

/// The graph through a file in memory.
fn reread(graph: &Graph, opset: i64) -> Result<onnx::Model> {
    let model = onnx::to_model(graph, &options(opset))?;
    onnx::from_bytes(&sampan_io::onnx::model::to_bytes(&model)?)
}

fn close(a: &[Tensor], b: &[Tensor], bound: f64) -> Result<()> {
    for (x, y) in a.iter().zip(b) {
        if x.shape() != y.shape() || x.dtype() != y.dtype() {
            let (x, y) = ((x.shape(), x.dtype()), (y.shape(), y.dtype()));
            return Err(Error::invalid(format!("{x:?} and {y:?}")));
        }
        let numbers = |t: &Tensor| t.cast(DType::Float64).to_vec::<f64>();
        let near =
            |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound * (1.0 + y.abs());
        let (p, q) = (numbers(x), numbers(y));
        if let Some(at) = p.iter().zip(&q).position(|pair| !near(pair)) {
            return Err(Error::invalid(format!("element {at} is {} and {}", p[at], q[at])));
        }
    }
    Ok(())
}

/// None if the op has no form in ONNX.
fn check(op: &'static OpDef, sample: &Sample, opset: i64) -> Result<Option<()>> {
    let args = sample.bind(op)?;
    let (inputs, constants) = (tensors_of(&args), constants_of(op, &args, sample));
    let program = |inputs: &[Tensor]| dispatch(op, with_tensors(&args, inputs)?).map(|o| o.into_vec());
    let specs = inputs.iter().map(|t| Spec::new(t.shape().iter().map(|&n| Some(n)), t.dtype())).collect::<Vec<_>>();
    let (Ok(graph), Ok((expected, grads))) = (trace(program, &specs), evaluate(&inputs, &constants, program)) else {
        return Ok(None);
    };
    let model = match reread(&graph, opset) {
        Ok(model) => model,
        Err(e) if e.kind() == sampan_core::error::Kind::Unimplemented => return Ok(None),
        Err(e) => return Err(e),
    };
    let narrow = inputs.iter().chain(&expected).any(|t| matches!(t.dtype(), DType::Float16 | DType::BFloat16));
    let bound = if narrow { 2e-2 } else { 2e-5 };
    let (found, slopes) = evaluate(&inputs, &constants, |inputs| model.run(inputs))?;
    close(&expected, &found, bound)?;
    // Where an operator of theirs takes part in a step function, it has no gradient, and ours has none of zeros.
    let by_frequency = super::saved_ops::is_true(&args, op, "scale_grad_by_freq");
    if slopes.len() == grads.len() && !by_frequency {
        super::saved_ops::close("gradients", &slopes, &grads)?;
    }
    Ok(Some(()))
}

#[test]
fn every_op_is_written_and_read() {
    random::own(0);
    let (mut failures, mut checked, mut without) = (Vec::new(), 0, Vec::new());
    for op in op::all() {
        if op.random || op.internal || op.peer.is_some_and(|p| p.starts_with("none: unspecified")) {
            continue;
        }
        let mut known = false;
        for (i, sample) in samples(op).into_iter().enumerate() {
            for opset in [*OPSETS.start(), *OPSETS.end()] {
                match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(op, &sample, opset))) {
                    Ok(Ok(Some(()))) => (checked, known) = (checked + 1, true),
                    Ok(Ok(None)) => {}
                    Ok(Err(e)) => failures.push(format!("{} sample {i} opset {opset}: {e}", op.name)),
                    Err(_) => failures.push(format!("{} sample {i} opset {opset}: panicked", op.name)),
                }
            }
        }
        if !known {
            without.push(op.name);
        }
    }
    assert!(failures.is_empty(), "{} of {checked} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 1500, "{checked}; without: {}", without.join(" "));
}

fn network(net: &dyn Layer, spec: Spec, shape: &[usize]) {
    random::own(0);
    net.eval();
    let graph = trace(|x| net.call_all(x), &[spec]).unwrap();
    let x = Tensor::randn(shape);
    let expected = net.call_all(&[x.clone()]).unwrap();
    for opset in [*OPSETS.start(), *OPSETS.end()] {
        let model = reread(&graph, opset).unwrap();
        close(&expected, &model.run(&[x.clone()]).unwrap(), 1e-5).unwrap();
        let again = model.graph().unwrap();
        close(&expected, &again.run(&[x.clone()]).unwrap(), 1e-5).unwrap();
        // What was read can be trained.
        again.run(&[x.clone()]).unwrap()[0].sum(()).backward();
        assert!(again.weights.iter().any(|w| w.tensor.grad().is_some()));
    }
}

#[test]
fn networks_are_written_and_read() {
    random::own(0);
    let image = || Spec::new([None, Some(3), Some(40), Some(48)], DType::Float32);
    network(&models::resnet18(), image(), &[2, 3, 40, 48]);
    network(&models::mobilenet_v3_small(), image(), &[2, 3, 40, 48]);
    let steps = || Spec::new([None, None, Some(8)], DType::Float32);
    network(&LSTM::new(8, 6), steps(), &[3, 5, 8]);
    network(&GRU::new(8, 6), steps(), &[3, 5, 8]);
    let layer = TransformerEncoderLayer::new(8, 2, 16);
    network(&TransformerEncoder::new(layer, 2), steps(), &[3, 5, 8]);
}

#[test]
fn extents_stay_free() {
    random::own(0);
    let program = |x: &[Tensor]| {
        let (n, m) = (x[0].shape()[0] as i64, x[0].shape()[1] as i64);
        Ok(vec![x[0].reshape([n * 2, m / 2]).relu(), x[0].sum(1)])
    };
    let graph = trace(program, &[Spec::new([None, None], DType::Float32).named("x")]).unwrap();
    let model = reread(&graph, 17).unwrap();
    let x = Tensor::randn([3, 8]);
    let expected = program(&[x.clone()]).unwrap();
    close(&expected, &model.run(&[x.clone()]).unwrap(), 1e-6).unwrap();
    let traced = model.graph().unwrap();
    close(&expected, &traced.run(&[x]).unwrap(), 1e-6).unwrap();
    let y = Tensor::randn([5, 4]);
    close(&program(&[y.clone()]).unwrap(), &traced.run(&[y]).unwrap(), 1e-6).unwrap();
}

#[test]
fn mistakes_are_said() {
    random::own(0);
    let graph = trace(|x| Ok(vec![x[0].relu()]), &[Spec::new([Some(2)], DType::Float32)]).unwrap();
    assert!(onnx::to_model(&graph, &options(12)).unwrap_err().to_string().contains("13 to 21"));
    let model = reread(&graph, 17).unwrap();
    assert!(model.run(&[]).unwrap_err().to_string().contains("takes 1 inputs (x0)"));
    assert!(model.run(&[Tensor::new([1i64, 2])]).unwrap_err().to_string().contains("is float32, got int64"));
    let strange = trace(|x| Ok(vec![x[0].erfinv()]), &[Spec::new([Some(2)], DType::Float32)]).unwrap();
    assert!(onnx::to_model(&strange, &options(17)).unwrap_err().to_string().contains("erfinv has no form in ONNX"));
}
