//! For every op's samples: the call written in both of Paddle's formats, read again, gives the same values and gradients.

use super::registry::{constants_of, evaluate, samples, tensors_of, with_tensors};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, OpDef};
use sampan_core::sample::Sample;
use sampan_core::{DType, Error, Result, Tensor, Value};
use sampan_graph::{Spec, paddle, trace};
use std::path::Path;

/// Numbers that are those but for their last digits.
pub fn close(what: &str, found: &[Tensor], wanted: &[Tensor]) -> Result<()> {
    let wrong = |why: String| Err(Error::invalid(format!("{what}: {why}")));
    if found.len() != wanted.len() {
        return wrong(format!("{} for {}", found.len(), wanted.len()));
    }
    for (a, b) in found.iter().zip(wanted) {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            return wrong(format!("{:?} {} for {:?} {}", a.shape(), a.dtype(), b.shape(), b.dtype()));
        }
        let narrow = matches!(a.dtype(), DType::Float16 | DType::BFloat16);
        let numbers = |t: &Tensor| match t.dtype().is_complex() {
            true => t.as_real().cast(DType::Float64).to_vec::<f64>(),
            false => t.cast(DType::Float64).to_vec::<f64>(),
        };
        let (p, q) = (numbers(a), numbers(b));
        let scale = q.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
        let bound = if narrow { 2e-2 } else { 2e-5 } * scale;
        let near = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound;
        if let Some(at) = p.iter().zip(&q).position(|pair| !near(pair)) {
            return wrong(format!("element {at} is {} for {}", p[at], q[at]));
        }
    }
    Ok(())
}

/// Is this argument given, and true?
pub fn is_true(args: &[Value], op: &OpDef, name: &str) -> bool {
    op.position(name).is_some_and(|i| matches!(args[i], Value::Bool(true)))
}

/// None if the op has no form in Paddle's files.
fn check(op: &'static OpDef, sample: &Sample, folder: &Path) -> Result<Option<()>> {
    let args = sample.bind(op)?;
    let (inputs, constants) = (tensors_of(&args), constants_of(op, &args, sample));
    let program = |inputs: &[Tensor]| dispatch(op, with_tensors(&args, inputs)?).map(|o| o.into_vec());
    let specs = inputs.iter().map(|t| Spec::new(t.shape().iter().map(|&n| Some(n)), t.dtype())).collect::<Vec<_>>();
    let (Ok(graph), Ok((values, grads))) = (trace(program, &specs), evaluate(&inputs, &constants, program)) else {
        return Ok(None);
    };
    let prefix = folder.join("op");
    match paddle::save(&graph, &prefix, &[]) {
        Err(e) if e.kind() == sampan_core::error::Kind::Unimplemented => return Ok(None),
        other => other?,
    }
    for end in [".pdmodel", ".json"] {
        let path = folder.join(format!("op{end}"));
        let graph = paddle::load_files(&path, &folder.join("op.pdiparams")).map_err(|e| e.in_layer(end))?;
        let (found, slopes) = evaluate(&inputs, &constants, |inputs| graph.run(inputs)).map_err(|e| e.in_layer(end))?;
        close("values", &found, &values).map_err(|e| e.in_layer(end))?;
        // A file has no word for gradients that are divided by how often a row is read.
        if !is_true(&args, op, "scale_grad_by_freq") {
            close("gradients", &slopes, &grads).map_err(|e| e.in_layer(end))?;
        }
    }
    Ok(Some(()))
}

#[test]
fn every_op_is_saved_and_loaded() {
    let folder = std::env::temp_dir().join(format!("sampan-saved-ops-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut failures, mut checked, mut ops) = (Vec::new(), 0, 0);
    for op in op::all() {
        if op.random || op.internal || op.peer.is_some_and(|p| p.starts_with("none: unspecified")) {
            continue;
        }
        let before = checked;
        for (i, sample) in samples(op).into_iter().enumerate() {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(op, &sample, &folder))) {
                Ok(Ok(Some(()))) => checked += 1,
                Ok(Ok(None)) => {}
                Ok(Err(e)) => failures.push(format!("{} sample {i}: {e}", op.name)),
                Err(_) => failures.push(format!("{} sample {i}: panicked", op.name)),
            }
        }
        ops += usize::from(checked > before);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{checked} samples of {ops} ops");
    assert!(failures.is_empty(), "{} beside {checked} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 500 && ops > 150, "{checked} samples of {ops} ops");
}
