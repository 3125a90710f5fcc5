//! Values and gradients of every op against the real peer's, recorded by `scripts/golden.py`.

use safetensors::SafeTensors;
use sampan_core::dispatch::dispatch;
use sampan_core::op;
use sampan_core::sample::cast_floats;
use sampan_core::{DType, GradOptions, Tensor, grad, random};

/// The weights that turn an output into a number, as in the script.
fn weights(t: &Tensor) -> Tensor {
    let values: Vec<f64> = (0..t.numel()).map(|i| ((i + 1) as f64).sin()).collect();
    Tensor::from_vec(values, t.shape()).cast(t.dtype())
}

fn compare(what: &str, ours: &Tensor, peer: &safetensors::tensor::TensorView, tol: f64, failures: &mut Vec<String>) {
    let values: Vec<f64> =
        peer.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()) as f64).collect();
    if ours.shape() != peer.shape() {
        failures.push(format!("{what}: shape {:?} against the peer's {:?}", ours.shape(), peer.shape()));
        return;
    }
    let scale = values.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
    for (i, (a, b)) in ours.to_f64_vec().into_iter().zip(values).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tol * (b.abs() + 0.1 * scale + 1e-3);
        if !same {
            failures.push(format!("{what}, element {i}: {a} against the peer's {b}"));
            return;
        }
    }
}

#[test]
fn values_and_gradients_agree_with_the_peer() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.safetensors");
    let bytes = std::fs::read(path).expect("tests/golden.safetensors is committed");
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let notes = header.metadata().clone().unwrap_or_default();
    let (mut failures, mut compared, mut missing) = (Vec::new(), 0, Vec::new());
    for op in op::all() {
        if op.peer.is_some_and(|p| p.starts_with("none:")) {
            continue;
        }
        for (i, sample) in op.samples.map(|f| f()).unwrap_or_default().into_iter().enumerate() {
            if sample.no_peer.is_some() {
                continue;
            }
            let key = format!("{}/{i}", op.name);
            let Some(dtype) = notes.get(&key).and_then(|d| DType::from_name(d)) else {
                missing.push(key);
                continue;
            };
            let tol = op.tol.unwrap_or(1e-5).max(if dtype == DType::Float64 { 3e-7 } else { 1e-5 });
            let mut args = sample.bind(op).unwrap();
            cast_floats(&mut args, dtype).unwrap();
            let mut leaves = Vec::new();
            for v in &mut args {
                v.map_tensors(&mut |t| {
                    let t = t.detach();
                    if t.dtype().is_float() {
                        t.set_stop_gradient(false);
                        leaves.push(t.clone());
                    }
                    Ok(t)
                })
                .unwrap();
            }
            random::seed(0);
            let outputs = match dispatch(op, args) {
                Ok(o) => o,
                Err(e) => {
                    failures.push(format!("{key}: {e}"));
                    continue;
                }
            };
            for (j, out) in outputs.iter().enumerate() {
                let name = format!("{key}/out{j}");
                match golden.tensor(&name) {
                    Ok(peer) => compare(&name, out, &peer, tol, &mut failures),
                    Err(_) => failures.push(format!("{name}: the peer has no such output")),
                }
                compared += 1;
            }
            let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
            if sample.no_grad.is_some()
                || sample.no_peer_grad.is_some()
                || tracked.is_empty()
                || !golden.names().iter().any(|n| n.starts_with(&format!("{key}/grad")))
            {
                continue;
            }
            let incoming: Vec<Option<Tensor>> = tracked.iter().map(|t| Some(weights(t))).collect();
            let options = GradOptions { allow_unused: true, ..Default::default() };
            let grads = grad(&tracked, &leaves, &incoming, options).unwrap();
            for (j, g) in grads.iter().enumerate() {
                let name = format!("{key}/grad{j}");
                if let (Some(g), Ok(peer)) = (g, golden.tensor(&name)) {
                    compare(&name, g, &peer, tol * 10.0, &mut failures);
                    compared += 1;
                }
            }
        }
    }
    eprintln!("{compared} tensors compared");
    assert!(failures.is_empty(), "{} disagree:\n{}", failures.len(), failures.join("\n"));
    assert!(missing.is_empty(), "not in the golden file, run scripts/golden.py: {missing:?}");
}
