//! For every op's samples: the call, and its replay from a graph, give the same values and the same gradients.

use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, OpDef};
use sampan_core::sample::Sample;
use sampan_core::value::Args;
use sampan_core::{Error, GradOptions, Result, Tensor, grad, no_grad, random};
use sampan_graph::{Predictor, Spec, trace};

/// Puts tensors in the place of those among the arguments.
pub fn with_tensors(args: &Args, tensors: &[Tensor]) -> Result<Args> {
    let mut args = args.clone();
    let mut next = tensors.iter();
    args.iter_mut()
        .try_for_each(|v| v.map_tensors(&mut |_| Ok(next.next().expect("as many as there were").clone())))?;
    Ok(args)
}

pub fn tensors_of(args: &Args) -> Vec<Tensor> {
    let mut all = Vec::new();
    args.iter().for_each(|v| v.for_each_tensor(&mut |t| all.push(t.clone())));
    all
}

/// Which of these tensors the op takes for constants. A file does not say that they get no gradient.
pub fn constants_of(op: &OpDef, args: &Args, sample: &Sample) -> Vec<bool> {
    let mut all = Vec::new();
    for (i, value) in args.iter().enumerate() {
        let constant = op.params.get(i).is_some_and(|p| sample.constants.contains(&p.name));
        value.for_each_tensor(&mut |_| all.push(constant));
    }
    all
}

fn same(what: &str, a: &[Tensor], b: &[Tensor]) -> Result<()> {
    let alike = |a: &Tensor, b: &Tensor| {
        a.shape() == b.shape()
            && a.dtype() == b.dtype()
            && a.stop_gradient() == b.stop_gradient()
            && a.to_bytes() == b.to_bytes()
    };
    match a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)) {
        true => Ok(()),
        false => Err(Error::invalid(format!("{what} differ: {a:?} and {b:?}"))),
    }
}

/// Values and gradients of a program, under the same random numbers; none for inputs that are `constants`.
pub fn evaluate(
    inputs: &[Tensor],
    constants: &[bool],
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    random::with_state((7, 0), || {
        let fresh = |(i, t): (usize, &Tensor)| {
            let leaf = t.try_clone_data().unwrap();
            leaf.set_stop_gradient(!t.dtype().is_inexact() || constants.get(i) == Some(&true));
            leaf
        };
        let inputs = inputs.iter().enumerate().map(fresh).collect::<Vec<_>>();
        let outputs = f(&inputs)?;
        let wanted = inputs.iter().filter(|t| !t.stop_gradient()).cloned().collect::<Vec<_>>();
        let from = outputs.iter().filter(|t| !t.stop_gradient() && t.dtype().is_inexact()).cloned().collect::<Vec<_>>();
        let mut grads = Vec::new();
        if !wanted.is_empty() && !from.is_empty() {
            let found = grad(&from, &wanted, &[], GradOptions { allow_unused: true, ..Default::default() })?;
            grads = found.into_iter().map(|g| g.unwrap_or_else(|| Tensor::new([0.0f32]))).collect();
        }
        Ok((outputs, grads))
    })
}

/// The calls that an op is tried with.
pub fn samples(op: &OpDef) -> Vec<Sample> {
    op.samples.map(|f| f()).unwrap_or_default()
}

/// None if the op cannot be called without values.
fn check(op: &'static OpDef, sample: &Sample) -> Result<Option<()>> {
    let args = sample.bind(op)?;
    let inputs = tensors_of(&args);
    let program = |inputs: &[Tensor]| dispatch(op, with_tensors(&args, inputs)?).map(|o| o.into_vec());
    let specs = inputs.iter().map(|t| Spec::new(t.shape().iter().map(|&n| Some(n)), t.dtype())).collect::<Vec<_>>();
    let Ok((outputs, grads)) = evaluate(&inputs, &[], program) else {
        // Some samples have no gradient; the values are compared all the same.
        return Ok(Some(()));
    };
    let graph = match random::with_state((7, 0), || trace(program, &specs)) {
        Ok(graph) => graph,
        Err(e) if ["meta tensor", "before it runs"].iter().any(|why| e.to_string().contains(why)) => return Ok(None),
        Err(e) => return Err(e),
    };
    let (replayed, regrads) = evaluate(&inputs, &[], |inputs| graph.run(inputs))?;
    same("values", &outputs, &replayed)?;
    same("gradients", &grads, &regrads)?;
    Ok(Some(()))
}

/// Numbers that are those but for their last digits.
fn close(a: &[Tensor], b: &[Tensor]) -> Result<()> {
    let alike = |a: &Tensor, b: &Tensor| {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            return false;
        }
        if a.to_bytes() == b.to_bytes() {
            return true;
        }
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let scale = b.iter().filter(|v| v.is_finite()).fold(1e-2f64, |m, v| m.max(v.abs()));
        a.iter().zip(&b).all(|(a, b)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * scale)
    };
    match a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)) {
        true => Ok(()),
        false => Err(Error::invalid(format!("values differ: {a:?} and {b:?}"))),
    }
}

/// A plan of the call, with all its tensors as inputs, and with the first alone: the others are weights then.
fn check_planned(op: &'static OpDef, sample: &Sample) -> Result<usize> {
    let args = sample.bind(op)?;
    let given = tensors_of(&args);
    let mut planned = 0;
    for count in [given.len(), 1.min(given.len())] {
        let (inputs, held) = given.split_at(count);
        let program =
            |inputs: &[Tensor]| dispatch(op, with_tensors(&args, &[inputs, held].concat())?).map(|o| o.into_vec());
        let specs = inputs.iter().map(|t| Spec::new(t.shape().iter().map(|&n| Some(n)), t.dtype())).collect::<Vec<_>>();
        let Ok(graph) = random::with_state((7, 0), || trace(program, &specs)) else { continue };
        let run = |f: &dyn Fn() -> Result<Vec<Tensor>>| random::with_state((7, 0), || no_grad(f));
        let fresh = || inputs.iter().map(Tensor::try_clone_data).collect::<Result<Vec<_>>>();
        let Ok(wanted) = run(&|| graph.run(&fresh()?)) else { continue };
        let predictor = Predictor::new(&graph)?;
        let text = predictor.describe(&fresh()?)?;
        close(&run(&|| predictor.run(&fresh()?))?, &wanted).map_err(|e| e.in_layer(text.clone()))?;
        planned += !text.contains("replayed") as usize;
    }
    Ok(planned)
}

#[test]
fn eager_is_planned() {
    let (mut failures, mut planned) = (Vec::new(), 0);
    for op in op::all() {
        if op.peer.is_some_and(|p| p.starts_with("none: unspecified")) {
            continue;
        }
        for (i, sample) in op.samples.map(|f| f()).unwrap_or_default().into_iter().enumerate() {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_planned(op, &sample))) {
                Ok(Ok(n)) => planned += n,
                Ok(Err(e)) => failures.push(format!("{} sample {i}: {e}", op.name)),
                Err(_) => failures.push(format!("{} sample {i}: panicked", op.name)),
            }
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(planned > 2500, "{planned}");
}

#[test]
fn eager_is_replay() {
    let (mut failures, mut valueless, mut checked) = (Vec::new(), Vec::new(), 0);
    for op in op::all() {
        // What it gives is unspecified.
        if op.peer.is_some_and(|p| p.starts_with("none: unspecified")) {
            continue;
        }
        for (i, sample) in samples(op).into_iter().enumerate() {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(op, &sample))) {
                Ok(Ok(Some(()))) => checked += 1,
                Ok(Ok(None)) => valueless.push(op.name),
                Ok(Err(e)) => failures.push(format!("{} sample {i}: {e}", op.name)),
                Err(_) => failures.push(format!("{} sample {i}: panicked", op.name)),
            }
        }
    }
    valueless.dedup();
    assert!(failures.is_empty(), "{} of {checked} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 1500, "{checked}");
    let by_values = ["nonzero", "unique", "masked_select"];
    assert!(valueless.len() < 40 && by_values.iter().all(|n| valueless.contains(n)), "{valueless:?}");
}
