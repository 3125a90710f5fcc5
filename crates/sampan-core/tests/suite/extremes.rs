//! Ops at the edges of their domains: zeros, denormals, huge numbers, infinities and NaN.
//!
//! `recorded` compares float32 with answers of PyTorch in float64 and of mpmath (`scripts/extremes_golden.py`), `scaled`
//! compares every op of the registry in float32 with itself in float64 on small and large versions of its samples.

use crate::registry::{as_function, call, chosen_ops, differentiable, draws, settled};
use safetensors::SafeTensors;
use sampan_core::ops::cross_entropy::CrossEntropyOpts;
use sampan_core::sample::cast_floats;
use sampan_core::{DType, GradOptions, Result, Tensor, Value, grad, op};

const INF: f64 = f64::INFINITY;
const TINY: f64 = f32::MIN_POSITIVE as f64;

/// Cases whose results may be off by an absolute error, and why. Everything else is within a few units in the last place.
const SLACK: &[(&str, f64, &str)] = &[
    ("one/sigmoid out", TINY, "fades to zero where the exponential overflows"),
    ("one/silu out", 100.0 * TINY, "fades to zero where the exponential overflows"),
    ("one/mish out", 100.0 * TINY, "the denormals of tanh"),
    ("one/gelu out", 1e-6, "one plus the error function cancels far left"),
    ("one/gelu/True out", 1e-14, "one plus tanh, as PyTorch has it, cancels far left"),
    ("one/tanhshrink out", 1e-7, "x - tanh(x) cancels near zero"),
    ("one/lgamma out", 1e-6, "near its zeros"),
    ("rows/log_softmax/-1 out", 1e-6, "near zero"),
];

/// Places where we do not say what was recorded, and why.
fn apart(case: &str, x: &[f64]) -> bool {
    let op = case.split([' ', '/']).nth(1).unwrap_or_default();
    let grad = case.contains("grad");
    match op {
        // NaN has no sign.
        "sign" => x[0].is_nan(),
        // Outside of its domain the slope of a logarithm goes on, as that of `log` does.
        "logit" => grad && !(0.0..=1.0).contains(&x[0]),
        // Equal numbers: all of the gradient goes to the first, as in PaddlePaddle; PyTorch halves it.
        "fmax" | "fmin" => grad && x[0] == x[1],
        // One at zero, as in PaddlePaddle, and at negative numbers whose result is a zero.
        "leaky_relu" => grad && x[0].abs() < TINY,
        // A sign can be copied onto infinity as onto anything else.
        "copysign" => grad && x[0].is_infinite(),
        // The quotient is 0 beside an infinite divisor, not -1, and infinite of infinity, not NaN.
        "remainder" => grad && (x[0].is_infinite() || x[1].is_infinite()),
        // Where there is no value there is no slope.
        "acosh" => grad && x[0] < 1.0,
        // The length itself is beyond the largest number.
        "normalize" => x.iter().map(|x| x * x).sum::<f64>().sqrt() > f32::MAX as f64,
        // Quotients of numbers that far apart are denormal, and have few digits.
        "vector_norm" => {
            let sizes = || x.iter().map(|x| x.abs()).filter(|x| *x > 0.0);
            grad && sizes().fold(INF, f64::min) / sizes().fold(0.0, f64::max) < 1e-36
        }
        // x^(y - 1) overflows for a denormal x though y times it does not, and from 2²⁴ on y - 1 is y.
        "pow" => grad && x.len() == 2 && (x[0].abs() < TINY || x[1].abs() > 1e7),
        // The denormals next to zero have few digits.
        "hypot" | "atan2" => grad && x[0].abs().max(x[1].abs()) < TINY,
        _ => false,
    }
}

fn numbers(file: &SafeTensors, name: &str) -> (Vec<f64>, Vec<usize>) {
    let t = file.tensor(name).unwrap_or_else(|_| panic!("{name} is not recorded: run scripts/extremes_golden.py"));
    let values = match t.dtype() {
        safetensors::Dtype::F32 => {
            t.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()) as f64).collect()
        }
        _ => t.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
    };
    (values, t.shape().to_vec())
}

/// Is `got`, in float32, what `want` rounds to, up to a relative and an absolute error?
fn near(got: f64, want: f64, relative: f64, absolute: f64) -> bool {
    let rounded = want as f32 as f64;
    let edge = want.abs() > 0.999_99 * f32::MAX as f64 && got.abs() > 0.999_99 * f32::MAX as f64;
    got == rounded
        || (got.is_nan() && want.is_nan())
        || (edge && got.signum() == want.signum())
        || (got - want).abs() <= relative * want.abs() + absolute + 1e-44
}

/// The weights that turn results into a number.
fn weights(t: &Tensor) -> Tensor {
    let values: Vec<f64> = (0..t.numel()).map(|i| ((i + 1) as f64).sin()).collect();
    Tensor::from_vec(values, t.shape()).cast(t.dtype())
}

fn value(v: &serde_json::Value) -> Value {
    match v {
        serde_json::Value::Bool(b) => (*b).into(),
        serde_json::Value::String(s) => s.parse::<f64>().expect("infinity").into(),
        serde_json::Value::Array(a) => a.iter().map(|v| v.as_i64().unwrap()).collect::<Vec<_>>().into(),
        v => v.as_i64().map_or_else(|| v.as_f64().unwrap().into(), Value::from),
    }
}

/// Where gradients are not compared: at a NaN, and in rows with an infinity among arguments or results, or with nothing but
/// denormals, which have few digits.
fn slopeless(kind: &str, x: &[f64], out: &[f64]) -> bool {
    let faint = x.iter().all(|x| x.abs() < TINY) && x.iter().any(|x| *x != 0.0);
    x.iter().any(|x| x.is_nan()) || kind == "rows" && (faint || x.iter().chain(out).any(|v| v.is_infinite()))
}

#[test]
fn recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extremes.safetensors");
    let bytes = std::fs::read(path).expect("tests/extremes.safetensors is committed");
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut failures = Vec::new();
    let mut cases: Vec<_> = header.metadata().clone().unwrap_or_default().into_iter().collect();
    cases.sort();
    for (case, note) in cases {
        let note: serde_json::Value = serde_json::from_str(&note).unwrap();
        let name = note["op"].as_str().unwrap();
        if !chosen_ops().any(|op| op.name == name) {
            continue;
        }
        let op = op::find(name).unwrap_or_else(|| panic!("there is no op {name}"));
        let kind = case.split('/').next().unwrap();
        let count = if matches!(kind, "two" | "labels") { 2 } else { 1 };
        let inputs: Vec<_> = (0..count).map(|i| numbers(&file, &format!("{kind}/{i}"))).collect();
        let leaf = |(v, shape): &(Vec<f64>, Vec<usize>)| {
            let t = Tensor::from_vec(v.iter().map(|&v| v as f32).collect::<Vec<_>>(), shape);
            t.set_stop_gradient(false);
            t
        };
        let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect();
        let mut args: Vec<Value> = leaves.iter().map(|t| t.clone().into()).collect();
        args.extend(note["args"].as_array().unwrap().iter().map(value));
        let out = call(op, op.bind(args, vec![]).unwrap()).unwrap_or_else(|e| panic!("{case}: {e}")).remove(0);
        let each = inputs[0].0.len() / inputs[0].1[0];
        let values = out.to_f64_vec();
        let each_out = values.len() / inputs[0].1[0];
        let mut compare = |part: &str, got: &Tensor| {
            let (what, grad) = (format!("{case} {part}"), part != "out");
            let (want, shape) = numbers(&file, &format!("{case}/{part}"));
            assert_eq!(got.shape(), shape, "{what}");
            let per_row = want.len() / inputs[0].1[0];
            let slack = SLACK.iter().find(|s| s.0 == what).map_or(0.0, |s| s.1);
            let (relative, absolute) = match (grad, kind) {
                (false, _) => (2e-6, slack),
                // Slopes that follow from the rounded result are as exact as that.
                (true, "rows") => (1e-5, 2e-6),
                (true, _) => (1e-5, 2e-7),
            };
            for (i, (got, want)) in got.to_f64_vec().into_iter().zip(want).enumerate() {
                let at = i / per_row;
                let x: Vec<f64> = match kind {
                    "rows" => inputs[0].0[at * each..][..each].to_vec(),
                    _ => inputs.iter().map(|input| input.0[at]).collect(),
                };
                let excused = grad && slopeless(kind, &x, &values[at * each_out..][..each_out]) || apart(&what, &x);
                if !excused && !near(got, want, relative, absolute) {
                    failures.push(format!("{what} at {x:?}[{}]: {got:e} instead of {want:e}", i % per_row));
                }
            }
        };
        compare("out", &out);
        if out.requires_grad() {
            let up = if kind == "rows" { weights(&out) } else { Tensor::ones(out.shape(), DType::Float32) };
            let options = GradOptions { allow_unused: true, ..Default::default() };
            let grads = grad(&[out], &leaves, &[Some(up)], options).unwrap();
            for (i, (g, leaf)) in grads.into_iter().zip(&leaves).enumerate() {
                let g = g.unwrap_or_else(|| Tensor::zeros(leaf.shape(), leaf.dtype()));
                compare(&format!("grad{i}"), &g);
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

/// Ops that leave the range of float32 on the way at some scale, and why that is so.
const OUT_OF_RANGE: &[(&str, &str)] = &[
    ("batch_norm", "keeps the variance, which is out of range itself"),
    ("batch_norm_activation", "keeps the variance"),
    ("channel_norm", "keeps the variance"),
    ("instance_norm", "keeps the variance"),
    ("local_response_norm", "divides by a sum of squares"),
    ("lp_pool1d", "the powers of a window"),
    ("lp_pool2d", "the powers of a window"),
    ("row_norm", "its statistics have slopes of their own"),
    ("rms_norm", "its statistics have slopes of their own"),
    ("scaled_dot_product_attention", "a difference of almost equal numbers times a large query"),
    ("cdist", "by a matrix product the squares are added up"),
    ("euclidean_distances", "by a matrix product the squares are added up"),
    ("corrcoef", "covariances"),
    ("cov", "the slope of a product of weights"),
    ("cosine_embedding_loss", "squares of the lengths"),
    ("triplet_margin_loss", "the difference of two large distances"),
    ("dist", "elements that are equal when rounded share the gradient of the largest"),
    ("digamma", "the slope times its weight is in range, the slope is not"),
    ("multigammaln", "a pole beside the argument"),
    ("grid_corners", "the whole part of a coordinate"),
    ("divide", "complex numbers are divided by squares"),
    ("rdivide", "the slope times its weight is in range, the slope is not"),
    ("pow", "the power of a complex number"),
    ("cumprod", "the products before and behind an element"),
    ("linear_recurrence", "the products before and behind an element"),
    ("matrix_power", "products of matrices"),
    ("det", "products of matrices"),
    ("inverse", "the square of the inverse"),
    ("solve", "the square of the inverse"),
    ("solve_matrices", "the square of the inverse"),
    ("triangular_solve", "the square of the inverse"),
    ("cholesky_inverse", "the square of the inverse"),
    ("lstsq", "the square of the inverse"),
    ("pinv", "the square of the inverse"),
    ("cond", "the inverse"),
    ("svd", "differences of squared singular values"),
    ("householder_product", "squares of the vectors"),
    ("ormqr", "squares of the vectors"),
];

/// Results and gradients of an op on its arguments in one precision.
fn answers(op: &'static op::OpDef, args: &sampan_core::value::Args, slopes: bool) -> Result<Vec<Tensor>> {
    let (inputs, f) = as_function(op, args, false, &[]);
    let leaves: Vec<Tensor> = inputs.iter().map(|t| t.detach().requires_grad_()).collect();
    let mut outputs = f(&leaves)?;
    let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
    if slopes && !tracked.is_empty() {
        let up: Vec<_> = tracked.iter().map(|t| Some(weights(t))).collect();
        let options = GradOptions { allow_unused: true, ..Default::default() };
        outputs.extend(grad(&tracked, &leaves, &up, options)?.into_iter().flatten());
    }
    Ok(outputs)
}

#[test]
fn scaled() {
    let mut failures = Vec::new();
    for op in chosen_ops() {
        let allowed = OUT_OF_RANGE.iter().any(|(name, _)| *name == op.name);
        let samples = op.samples.map(|f| f()).unwrap_or_default();
        let mut failed = false;
        'op: for (i, sample) in samples.iter().enumerate().filter(|(_, s)| !draws(op, s)) {
            for scale in [1e-30, 1e-20, 1e-8, 1e8, 1e16, 1e30] {
                let Ok(mut small) = sample.bind(op) else { continue };
                let mut first = true;
                let mut enlarge = |t: &Tensor| {
                    let change = t.dtype() == DType::Float32 && std::mem::take(&mut first);
                    Ok(if change { t.detach() * scale } else { t.clone() })
                };
                small.iter_mut().try_for_each(|v| v.map_tensors(&mut enlarge)).unwrap();
                if first || !settled(op) {
                    continue 'op;
                }
                let mut large = small.clone();
                cast_floats(&mut large, DType::Float64).unwrap();
                let slopes = differentiable(op, sample);
                let run = |args: &sampan_core::value::Args| {
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answers(op, args, slopes).ok()))
                        .unwrap_or(None)
                };
                let (Some(got), Some(want)) = (run(&small), run(&large)) else { continue };
                let name = |j: usize| format!("{} sample {i} times {scale:e}, tensor {j}", op.name);
                for (j, (got, want)) in got.iter().zip(&want).enumerate() {
                    if !want.dtype().is_float() || got.shape() != want.shape() {
                        continue;
                    }
                    let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
                    let size = want.iter().filter(|v| v.abs() < f32::MAX as f64).fold(0.0f64, |m, v| m.max(v.abs()));
                    let bad = got.iter().zip(&want).position(|(&g, &w)| !near(g, w, 1e-3, 1e-3 * size + 1e-6));
                    if let Some(k) = bad {
                        failed = true;
                        if !allowed {
                            failures.push(format!("{}, element {k}: {:e} instead of {:e}", name(j), got[k], want[k]));
                        }
                        break;
                    }
                }
            }
        }
        if allowed && !failed {
            failures.push(format!("{} is in range: take it off the list", op.name));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn cross_entropy_of_large_logits() {
    let labels = Tensor::new([0i64, 2]);
    // 2²⁰ and 2¹⁴ are in all of these types, and swallow the logarithm of a sum.
    for (dtype, size) in
        [(DType::Float32, 1e8), (DType::Float64, 1e17), (DType::BFloat16, 1048576.0), (DType::Float16, 16384.0)]
    {
        let x = (Tensor::new([[1.0f32, 1.0, -1.0], [0.5, 0.5, 0.5]]).cast(DType::Float64) * size).cast(dtype);
        let tol = if dtype.is_half() { 4e-3 } else { 1e-6 };
        let soft = Tensor::new([[1.0f32, 0.0, 0.0], [0.0, 0.0, 1.0]]).cast(dtype);
        let options = || CrossEntropyOpts::new().reduction("sum");
        let losses: [&dyn Fn(&Tensor) -> Tensor; 5] = [
            &|x| x.cross_entropy_with(&labels, options()),
            &|x| x.cross_entropy_with(&soft, options().soft_label(true)),
            &|x| x.t().cross_entropy_with(&labels, options().axis(0)),
            &|x| x.log_softmax(-1).nll_loss(&labels) * 2.0,
            &|x| (x.t().log_softmax(0).t() * &soft).sum(()) * -1.0,
        ];
        for (i, loss) in losses.iter().enumerate() {
            let x = x.detach().requires_grad_();
            let y = loss(&x);
            assert!((y.to_f64() - (2f64.ln() + 3f64.ln())).abs() < 3.0 * tol, "{dtype} {i}: {}", y.to_f64());
            let g = grad(&[y], &[x], &[], GradOptions::default()).unwrap().remove(0).unwrap();
            let third = 1.0 / 3.0;
            for (g, want) in g.to_f64_vec().into_iter().zip([-0.5, 0.5, 0.0, third, third, third - 1.0]) {
                assert!((g - want).abs() < tol, "{dtype} {i}: {g} instead of {want}");
            }
        }
        let x = x.detach().requires_grad_();
        let g = grad(&[x.logsumexp(1).sum(())], &[x.clone()], &[], GradOptions::default()).unwrap().remove(0).unwrap();
        for (g, want) in g.to_f64_vec().into_iter().zip([0.5, 0.5, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
            assert!((g - want).abs() < tol, "{dtype}: {g} instead of {want}");
        }
    }
}

#[test]
fn attention_of_large_scores() {
    // Two keys of equal, large scores: each has half of the weight.
    let q = Tensor::new([[[[1e4f32]]]]);
    let k = Tensor::new([[[[1e4f32]], [[1e4f32]]]]);
    let v = Tensor::new([[[[1.0f32]], [[3.0f32]]]]).requires_grad_();
    let out = q.scaled_dot_product_attention(&k, &v, None);
    assert_eq!(out.to_f64(), 2.0);
    let g = grad(&[out], &[v], &[], GradOptions::default()).unwrap().remove(0).unwrap();
    g.to_f64_vec().iter().for_each(|g| assert!((g - 0.5).abs() < 1e-6, "{g}"));
}

#[test]
fn binary_cross_entropy_of_infinite_logits() {
    let (x, y) = (Tensor::new([INF as f32, -INF as f32]).requires_grad_(), Tensor::new([0.0f32, 0.0]));
    for weight in [None, Some(Tensor::new([2.0f32, 2.0]))] {
        let loss = x.binary_cross_entropy_with_logits(&y, None, "none", weight.as_ref());
        assert_eq!(loss.to_vec::<f32>(), [INF as f32, 0.0]);
        let right = x.binary_cross_entropy_with_logits(&Tensor::new([1.0f32, 0.0]), None, "sum", weight.as_ref());
        assert_eq!(right.to_f64(), 0.0);
        let g = grad(&[right], &[x.clone()], &[], GradOptions::default()).unwrap().remove(0).unwrap();
        assert_eq!(g.to_vec::<f32>(), [0.0, 0.0]);
    }
}

#[test]
fn long_sums_do_not_stop() {
    let n = 20_000_000;
    let ones = Tensor::ones([n], DType::Float32);
    assert_eq!(ones.sum(()).to_f64(), n as f64);
    assert_eq!(ones.mean(()).to_f64(), 1.0);
    assert_eq!(ones.reshape([n as i64 / 4, 4]).sum(0).to_vec::<f32>(), [n as f32 / 4.0; 4]);
    assert_eq!(ones.cumsum(0).try_narrow(0, n - 1, 1).unwrap().to_f64(), n as f64);
    assert_eq!(ones.dot(&ones).to_f64(), n as f64);
    let log = (n as f64).ln();
    let zeros = Tensor::zeros([n], DType::Float32);
    assert!((zeros.logsumexp(()).to_f64() - log).abs() < 1e-5);
    assert!((zeros.logcumsumexp(0).try_narrow(0, n - 1, 1).unwrap().to_f64() - log).abs() < 1e-5);
    assert!((zeros.log_softmax(0).try_narrow(0, n - 1, 1).unwrap().to_f64() + log).abs() < 1e-5);
}
