//! Values and gradients of every op against those of PaddlePaddle or PyTorch, recorded by `scripts/golden.py`.

use safetensors::SafeTensors;
use sampan_core::dispatch::dispatch;
use sampan_core::op;
use sampan_core::sample::cast_floats;
use sampan_core::{DType, GradOptions, Tensor, grad, random};

/// The weights that turn an output into a number, as in the script.
fn weights(t: &Tensor) -> Tensor {
    let values: Vec<f64> = (0..t.numel() * t.dtype().parts()).map(|i| ((i + 1) as f64).sin()).collect();
    let values = Tensor::from_vec(values, parts_shape(t));
    if t.is_complex() { values.as_complex().cast(t.dtype()) } else { values.cast(t.dtype()) }
}

/// The shape, with a last axis of two for the parts of complex numbers.
fn parts_shape(t: &Tensor) -> Vec<usize> {
    t.shape().iter().copied().chain(t.is_complex().then_some(2)).collect()
}

fn compare(what: &str, ours: &Tensor, peer: &safetensors::tensor::TensorView, tol: f64, failures: &mut Vec<String>) {
    let values: Vec<f64> =
        peer.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()) as f64).collect();
    if parts_shape(ours) != peer.shape() {
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
        for (i, sample) in op.samples.map(|f| f()).unwrap_or_default().into_iter().enumerate() {
            if sample.peer_of(op).is_none() {
                continue;
            }
            let key = format!("{}/{i}", op.name);
            let note = notes.get(&key).map_or("", String::as_str);
            // NumPy and SciPy give values only, and their note says so.
            let (dtype, values_only) = note.strip_suffix(" values").map_or((note, false), |d| (d, true));
            let Some(dtype) = DType::from_name(dtype) else {
                missing.push(key);
                continue;
            };
            let tol = op.tol.unwrap_or(1e-5).max(if dtype == DType::Float64 { 3e-7 } else { 1e-5 });
            let mut args = sample.bind(op).unwrap();
            cast_floats(&mut args, dtype).unwrap();
            let wanted = sample.grad_peer_of(op).is_some();
            let mut leaves = Vec::new();
            for v in &mut args {
                v.map_tensors(&mut |t| {
                    let t = t.detach();
                    if t.dtype().is_inexact() {
                        t.set_stop_gradient(!wanted);
                        leaves.push(t.clone());
                    }
                    Ok(t)
                })
                .unwrap();
            }
            random::seed(0);
            let mut outputs = match dispatch(op, args) {
                Ok(o) => o,
                Err(e) => {
                    failures.push(format!("{key}: {e}"));
                    continue;
                }
            };
            if sample.up_to_sign {
                outputs = outputs.iter().map(Tensor::abs).collect();
            }
            for (j, out) in outputs.iter().enumerate() {
                let name = format!("{key}/out{j}");
                match golden.tensor(&name) {
                    Ok(peer) => compare(&name, out, &peer, tol, &mut failures),
                    Err(_) => failures.push(format!("{name}: the peer has no such output")),
                }
                compared += 1;
            }
            if golden.tensor(&format!("{key}/out{}", outputs.len())).is_ok() {
                failures.push(format!("{key}: the peer has more than {} outputs", outputs.len()));
            }
            let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
            if values_only || tracked.is_empty() {
                continue;
            }
            let incoming: Vec<Option<Tensor>> = tracked.iter().map(|t| Some(weights(t))).collect();
            let options = GradOptions { allow_unused: true, ..Default::default() };
            let grads = match grad(&tracked, &leaves, &incoming, options) {
                Ok(grads) => grads,
                Err(e) => {
                    failures.push(format!("{key}: {e}"));
                    continue;
                }
            };
            for (j, (g, leaf)) in grads.into_iter().zip(&leaves).enumerate() {
                let name = format!("{key}/grad{j}");
                // No gradient is a gradient of zero, on both sides.
                match (g, golden.tensor(&name)) {
                    (g, Ok(peer)) => {
                        let g = g.unwrap_or_else(|| Tensor::zeros(leaf.shape(), leaf.dtype()));
                        compare(&name, &g, &peer, tol * 10.0, &mut failures);
                    }
                    (Some(g), Err(_)) if g.to_f64_vec().iter().any(|v| *v != 0.0) => {
                        failures.push(format!("{name}: the peer has no gradient here, ours is {:?}", g.to_f64_vec()));
                    }
                    _ => continue,
                }
                compared += 1;
            }
        }
    }
    eprintln!("{compared} tensors compared");
    assert!(failures.is_empty(), "{} disagree:\n{}", failures.len(), failures.join("\n"));
    assert!(missing.is_empty(), "not in the golden file, run scripts/golden.py: {missing:?}");
}
