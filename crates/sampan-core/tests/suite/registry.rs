//! Checks that hold for every op, over every op's samples. A new entry is picked up by itself.
//!
//! `OPS=relu,gelu cargo test …` or `FAMILY=math …` limits a run to some ops while working on them.

use crate::alone::{alone, is_alone};
use sampan_core::autograd::{GradCheck, gradcheck, gradgradcheck};
use sampan_core::dispatch::{dispatch, dispatch_inplace, with_composites};
use sampan_core::error::Kind;
use sampan_core::op::{self, OpDef, Returns};
use sampan_core::sample::{Sample, cast_floats};
use sampan_core::value::Args;
use sampan_core::{DType, Error, GradOptions, Result, Tensor, Value, grad, random};

/// The ops under test.
pub fn chosen_ops() -> impl Iterator<Item = &'static OpDef> {
    let listed = |name: &str, word: &str| {
        std::env::var(word).map(|list| list.split(',').any(|w| w.trim() == name)).unwrap_or(true)
    };
    let all = op::all();
    if let Ok(list) = std::env::var("OPS") {
        let unknown = list.split(',').find(|w| !all.iter().any(|op| op.name == w.trim()));
        assert!(unknown.is_none(), "OPS: no op is named {}", unknown.unwrap_or_default());
    }
    all.into_iter().filter(move |op| listed(op.name, "OPS") && listed(op.family(), "FAMILY"))
}

/// The ops under test with their samples.
fn cases() -> Vec<(&'static OpDef, usize, Sample)> {
    chosen_ops()
        .flat_map(|op| {
            let samples = op.samples.map(|f| f()).unwrap_or_default();
            samples.into_iter().enumerate().map(move |(i, s)| (op, i, s))
        })
        .collect()
}

/// Whether a call draws random numbers.
pub fn draws(op: &'static OpDef, sample: &Sample) -> bool {
    op.random && moves_the_generator(op, sample)
}

/// Looks at a generator of this thread's own.
fn moves_the_generator(op: &'static OpDef, sample: &Sample) -> bool {
    random::with_state((0, 0), || {
        let before = random::state();
        let _ = sample.bind(op).and_then(|args| dispatch(op, args));
        random::state() != before
    })
}

/// Whether two calls give the same.
pub fn settled(op: &OpDef) -> bool {
    op.peer.is_none_or(|p| !p.starts_with("none: unspecified"))
}

/// Runs a check on every case and reports all failures at once. The generator belongs to the whole process, so calls that
/// draw from it run in a process without other tests; `test` is the name of the calling one.
fn for_all(test: &str, check: impl Fn(&'static OpDef, &Sample) -> Result<()>) {
    if !is_alone() {
        for_each(|op, sample| if draws(op, sample) { Ok(()) } else { check(op, sample) });
    }
    alone(&format!("registry::{test}"), || {
        for_each(|op, sample| if draws(op, sample) { check(op, sample) } else { Ok(()) })
    });
}

fn for_each(check: impl Fn(&'static OpDef, &Sample) -> Result<()>) {
    let mut failures = Vec::new();
    for (op, i, sample) in cases() {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(op, &sample)));
        match run {
            Ok(Ok(())) => {}
            Ok(Err(e)) => failures.push(format!("{} sample {i}: {e}", op.name)),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                failures.push(format!("{} sample {i}: panicked: {}", op.name, text.unwrap_or_default()));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

pub fn call(op: &'static OpDef, args: Args) -> Result<Vec<Tensor>> {
    random::seed(0);
    dispatch(op, args).map(|o| o.into_vec())
}

fn fail(text: String) -> Error {
    Error::new(Kind::PreconditionNotMet, text)
}

fn close(what: &str, a: &[Tensor], b: &[Tensor], tol: f64) -> Result<()> {
    if a.len() != b.len() {
        return Err(fail(format!("{what}: {} outputs against {}", a.len(), b.len())));
    }
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        if a.shape() != b.shape() {
            return Err(fail(format!("{what}: output {i} has shape {:?} against {:?}", a.shape(), b.shape())));
        }
        for (j, (x, y)) in a.to_f64_vec().into_iter().zip(b.to_f64_vec()).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tol * (1.0 + y.abs());
            if !same {
                return Err(fail(format!("{what}: output {i}, element {j}: {x} against {y}")));
            }
        }
    }
    Ok(())
}

#[test]
fn every_op_is_documented_and_sampled() {
    let bad: Vec<_> = op::all()
        .into_iter()
        .filter(|op| op.samples.is_none_or(|s| s().is_empty()) || op.doc.contains("```") == op.internal)
        .map(|op| op.name)
        .collect();
    assert!(bad.is_empty(), "without samples or a runnable example: {bad:?}");
}

#[test]
fn results_are_as_many_as_their_names() {
    for_all("results_are_as_many_as_their_names", |op, sample| {
        let n = call(op, sample.bind(op)?)?.len();
        let open = op.results.last().is_some_and(|name| name.ends_with("..."));
        if !op.results.is_empty() && n > op.results.len() && !open {
            return Err(fail(format!("{n} results, and names for {:?}", op.results)));
        }
        match op.returns {
            Returns::Tuple(_) if op.results.len() != n => Err(fail(format!("{n} results without names"))),
            _ => Ok(()),
        }
    });
}

#[test]
fn ops_that_draw_say_so() {
    for_each(|op, sample| match op.random || !moves_the_generator(op, sample) {
        true => Ok(()),
        false => Err(fail("draws and is not `random`".into())),
    });
}

#[test]
fn inferred_shape_and_dtype_are_the_actual_ones() {
    for_all("inferred_shape_and_dtype_are_the_actual_ones", |op, sample| {
        let args = sample.bind(op)?;
        let actual = call(op, args.clone())?;
        let mut meta = args;
        meta.iter_mut().try_for_each(|v| v.map_tensors(&mut |t| Ok(t.to_meta())))?;
        let inferred = match dispatch(op, meta) {
            Err(e) if e.message().contains("depends on the values") => return Ok(()),
            other => other?,
        };
        for (a, m) in actual.iter().zip(&inferred) {
            if a.shape() != m.shape() || a.dtype() != m.dtype() {
                return Err(fail(format!("inferred {:?} {}, got {:?} {}", m.shape(), m.dtype(), a.shape(), a.dtype())));
            }
        }
        if actual.len() != inferred.len() {
            return Err(fail(format!("inferred {} outputs, got {}", inferred.len(), actual.len())));
        }
        Ok(())
    });
}

/// The same values with gaps between them in memory.
pub fn strided(t: &Tensor) -> Result<Tensor> {
    let twice = t.detach().unsqueeze(-1).expand([t.shape(), &[2]].concat()).contiguous();
    twice.try_select(-1, 0)
}

#[test]
fn strided_inputs_give_the_same() {
    for_all("strided_inputs_give_the_same", |op, sample| {
        let args = sample.bind(op)?;
        let mut gapped = args.clone();
        gapped.iter_mut().try_for_each(|v| v.map_tensors(&mut strided))?;
        if !settled(op) {
            return Ok(());
        }
        close("strided", &call(op, gapped)?, &call(op, args)?, 1e-6)
    });
}

/// The float tensors among the arguments that are no `constants`, and a way to call the op with others in their place.
pub fn as_function(
    op: &'static OpDef,
    args: &Args,
    symmetric: bool,
    constants: &'static [&'static str],
) -> (Vec<Tensor>, impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) {
    let mut inputs = Vec::new();
    let varies = |i: usize| op.params.get(i).is_none_or(|p| !constants.contains(&p.name));
    args.iter().enumerate().filter(|(i, _)| varies(*i)).for_each(|(_, v)| {
        v.for_each_tensor(&mut |t| {
            if t.dtype().is_inexact() {
                inputs.push(t.clone())
            }
        })
    });
    let args = args.clone();
    let f = move |inputs: &[Tensor]| {
        let mut args = args.clone();
        let mut next = inputs.iter();
        args.iter_mut().enumerate().filter(|(i, _)| varies(*i)).try_for_each(|(_, v)| {
            v.map_tensors(&mut |t| {
                Ok(if t.dtype().is_inexact() { next.next().expect("as many").clone() } else { t.clone() })
            })
        })?;
        if let (true, Value::Tensor(x)) = (symmetric, &mut args[0]) {
            *x = (&*x + x.matrix_transpose()) * 0.5;
        }
        call(op, args)
    };
    (inputs, f)
}

pub fn differentiable(op: &'static OpDef, sample: &Sample) -> bool {
    !op.non_diff && sample.no_grad.is_none()
}

#[test]
fn gradients_match_differences() {
    for_all("gradients_match_differences", |op, sample| {
        if !differentiable(op, sample) {
            return Ok(());
        }
        let mut args = sample.bind(op)?;
        cast_floats(&mut args, DType::Float64)?;
        let (inputs, f) = as_function(op, &args, sample.symmetric, sample.constants);
        gradcheck(f, &inputs, GradCheck::default())
    });
}

#[test]
fn second_gradients_match_differences() {
    for_all("second_gradients_match_differences", |op, sample| {
        if !differentiable(op, sample) {
            return Ok(());
        }
        let mut args = sample.bind(op)?;
        cast_floats(&mut args, DType::Float64)?;
        let (inputs, f) = as_function(op, &args, sample.symmetric, sample.constants);
        gradgradcheck(f, &inputs, GradCheck { rtol: 1e-3, atol: 1e-5, ..Default::default() })
    });
}

/// The arguments with an imaginary part to every float tensor, in complex128; false if there is none.
fn make_complex(args: &mut Args) -> Result<bool> {
    let mut any = false;
    args.iter_mut().try_for_each(|v| {
        v.map_tensors(&mut |t| {
            if !t.dtype().is_inexact() {
                return Ok(t.clone());
            }
            any = true;
            let t = t.detach().try_cast(if t.is_complex() { DType::Complex128 } else { DType::Float64 })?;
            // In memory of its own: some ops write into it.
            Ok(if t.is_complex() { t.assign() } else { t.complex(&((&t * 1.7).sin() + 0.3)) })
        })
    })?;
    Ok(any)
}

#[test]
fn complex_numbers_go_where_they_are_welcome() {
    let mut taken = std::collections::HashSet::new();
    let taken = std::cell::RefCell::new(&mut taken);
    for_each(|op, sample| {
        let mut args = sample.bind(op)?;
        if draws(op, sample) || !make_complex(&mut args)? {
            return Ok(());
        }
        let mut gapped = args.clone();
        gapped.iter_mut().try_for_each(|v| v.map_tensors(&mut strided))?;
        let actual = match call(op, args.clone()) {
            Err(e) if e.kind() == Kind::InvalidType => return Ok(()),
            other => other?,
        };
        if !op.complex {
            return Err(fail("took complex numbers and does not say so".into()));
        }
        taken.borrow_mut().insert(op.name);
        let mut meta = args.clone();
        meta.iter_mut().try_for_each(|v| v.map_tensors(&mut |t| Ok(t.to_meta())))?;
        if let Ok(inferred) = dispatch(op, meta)
            && actual.iter().zip(&inferred).any(|(a, m)| a.shape() != m.shape() || a.dtype() != m.dtype())
        {
            return Err(fail("inferred another shape or dtype".into()));
        }
        if settled(op) {
            close("strided", &call(op, gapped)?, &actual, 1e-12)?;
        }
        if !differentiable(op, sample) {
            return Ok(());
        }
        let (inputs, f) = as_function(op, &args, sample.symmetric, sample.constants);
        gradcheck(&f, &inputs, GradCheck::default())?;
        gradgradcheck(f, &inputs, GradCheck { rtol: 1e-3, atol: 1e-5, ..Default::default() })
    });
    let promised = |op: &&OpDef| op.complex && op.samples.is_some_and(|s| s().iter().any(|s| has_floats(op, s)));
    let broken: Vec<_> =
        chosen_ops().filter(promised).map(|op| op.name).filter(|n| !taken.borrow().contains(n)).collect();
    assert!(broken.is_empty(), "these say that they take complex numbers and refuse them: {broken:?}");
}

fn has_floats(op: &OpDef, sample: &Sample) -> bool {
    sample.bind(op).is_ok_and(|args| args.iter().any(has_float))
}

#[test]
fn half_precision_is_close() {
    for (dtype, tol) in [(DType::Float16, 4e-3), (DType::BFloat16, 3e-2)] {
        for_all("half_precision_is_close", |op, sample| {
            let mut half = sample.bind(op)?;
            if !settled(op) || !half.iter().any(has_float) {
                return Ok(());
            }
            cast_floats(&mut half, dtype)?;
            // The same rounded inputs in float32 are what the half result is a rounding of.
            let mut full = half.clone();
            cast_floats(&mut full, DType::Float32)?;
            match call(op, half) {
                Err(e) if matches!(e.kind(), Kind::InvalidType | Kind::Unimplemented) => Ok(()),
                result => close(dtype.name(), &result?, &call(op, full)?, tol),
            }
        });
    }
}

fn has_float(v: &Value) -> bool {
    let mut found = false;
    v.for_each_tensor(&mut |t| found |= t.dtype().is_float());
    found
}

#[test]
fn in_place_is_out_of_place() {
    for_all("in_place_is_out_of_place", |op, sample| {
        if !op.inplace {
            return Ok(());
        }
        let args = sample.bind(op)?;
        let expected = call(op, args.clone())?;
        let mut own = args;
        own.iter_mut()
            .try_for_each(|v| v.map_tensors(&mut |t| Tensor::from_bytes(&t.to_bytes(), t.dtype(), t.shape())))?;
        let Value::Tensor(target) = &own[0] else { return Err(fail("the first argument is no tensor".into())) };
        let target = target.clone();
        if expected[0].shape() != target.shape() {
            // A result that broadcasts beyond its target must be refused.
            return match dispatch_inplace(op, own) {
                Err(_) => Ok(()),
                Ok(out) if out.shares_memory(&target) && out.numel() == target.numel() => {
                    close("in place", &[out], &expected[..1], 0.0)
                }
                Ok(_) => Err(fail("wrote a larger result into a smaller tensor".into())),
            };
        }
        if expected[0].dtype() != target.dtype() {
            return Ok(());
        }
        random::seed(0);
        let out = dispatch_inplace(op, own)?;
        if !out.shares_memory(&target) {
            return Err(fail("the result is not in the target's memory".into()));
        }
        close("in place", &[out], &expected[..1], 1e-7)
    });
}

#[test]
fn in_place_gradients_are_those_of_the_plain_form() {
    for_all("in_place_gradients_are_those_of_the_plain_form", |op, sample| {
        if !op.inplace || !differentiable(op, sample) {
            return Ok(());
        }
        let mut args = sample.bind(op)?;
        cast_floats(&mut args, DType::Float64)?;
        let Value::Tensor(first) = &args[0] else { return Ok(()) };
        let expected = call(op, args.clone())?;
        if expected[0].shape() != first.shape()
            || expected[0].dtype() != first.dtype()
            || !expected[0].dtype().is_float()
        {
            return Ok(());
        }
        let gradients = |inplace: bool| -> Result<Vec<Tensor>> {
            let (mut leaves, mut args) = (Vec::new(), args.clone());
            args.iter_mut().try_for_each(|v| {
                v.map_tensors(&mut |t| {
                    if !t.dtype().is_float() {
                        return Ok(t.clone());
                    }
                    leaves.push(t.try_clone_data()?.requires_grad_());
                    leaves[leaves.len() - 1].try_multiply(1.0)
                })
            })?;
            random::seed(0);
            let out = if inplace { dispatch_inplace(op, args)? } else { dispatch(op, args)?.remove(0) };
            let options = GradOptions { allow_unused: true, ..Default::default() };
            let found = grad(&[out.try_square()?.try_sum(())?], &leaves, &[], options)?;
            Ok(found.into_iter().zip(&leaves).map(|(g, x)| g.unwrap_or_else(|| x.zeros_like())).collect())
        };
        close("gradients in place", &gradients(true)?, &gradients(false)?, 1e-12)
    });
}

#[test]
fn fused_kernels_equal_their_composites() {
    for_all("fused_kernels_equal_their_composites", |op, sample| {
        if op.reference.is_none() {
            return Ok(());
        }
        let mut args = sample.bind(op)?;
        cast_floats(&mut args, DType::Float64)?;
        let (inputs, f) = as_function(op, &args, sample.symmetric, sample.constants);
        let run = || -> Result<Vec<Tensor>> {
            let leaves: Vec<Tensor> = inputs.iter().map(|t| t.detach().requires_grad_()).collect();
            let mut outputs = f(&leaves)?;
            let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
            if !tracked.is_empty() && differentiable(op, sample) {
                let options = GradOptions { allow_unused: true, ..Default::default() };
                outputs.extend(grad(&tracked, &leaves, &[], options)?.into_iter().flatten());
            }
            Ok(outputs)
        };
        close("fused", &run()?, &with_composites(run)?, 1e-9)
    });
}

#[test]
fn aliases_are_of_arguments() {
    let ops = op::all().into_iter().map(|op| op.takes());
    for taken in ops.chain(sampan_core::function::all().into_iter().map(|f| f.takes())) {
        for (alias, name) in taken.aliases {
            let has = |n: &str| taken.params.iter().any(|p| p.name == n);
            assert!(has(name) && !has(alias), "{taken}: {alias} stands for {name}");
        }
    }
}

#[test]
fn aliases_and_names_bind() {
    let op = op::find("sum").expect("sum exists");
    let x = Tensor::new([[1.0f32, 2.0]]);
    let args = op.bind(vec![], vec![("input", x.into()), ("dim", 1i64.into())]).unwrap();
    assert_eq!(dispatch(op, args).unwrap()[0].to_vec::<f32>(), [3.0]);
    let error = op.bind(vec![], vec![("axes", 1i64.into())]).unwrap_err().to_string();
    assert!(error.contains("has no argument `axes`") && error.contains("sum(x, axis=None"), "{error}");
}
