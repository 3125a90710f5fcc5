//! Every op on a GPU against the CPU: values, first and second gradients, floats of all widths, views with gaps. Without a GPU
//! there is nothing to compare, which is said. `scripts/on_gpu` runs these on a machine that has one.

use crate::registry::{chosen_ops, settled};
use sampan_core::error::Kind;
use sampan_core::op::OpDef;
use sampan_core::sample::{Sample, cast_floats};
use sampan_core::value::Args;
use sampan_core::{Captured, DType, Device, Error, GradOptions, Result, Tensor, device, dispatch, gpu, grad, random};
use std::collections::{BTreeMap, BTreeSet};

const GPU: Device = Device::Cuda(0);

/// Says that there is no GPU, if so.
fn no_gpu() -> bool {
    match gpu::count() {
        Ok(_) => false,
        Err(why) => {
            eprintln!("left out: {why}");
            true
        }
    }
}

fn moved(args: &Args, to: Device) -> Result<Args> {
    let mut args = args.clone();
    for value in args.iter_mut() {
        // A copy, which an op that writes into its argument may change.
        value.map_tensors(&mut |t| t.try_clone_data()?.try_to_device(&to.to_string()))?;
    }
    Ok(args)
}

/// The same values in memory with gaps.
fn with_gaps(args: &Args) -> Result<Args> {
    let mut args = args.clone();
    for value in args.iter_mut() {
        value.map_tensors(&mut |t| match t.ndim() {
            0 => Ok(t.clone()),
            _ => {
                let twice = sampan_core::ops::joining::try_stack(&[t.clone(), t.clone()], -1)?;
                twice.try_narrow(-1, 0, 1)?.try_squeeze(-1)
            }
        })?;
    }
    Ok(args)
}

/// Where an op's results belong: on the device that it names, or on that of its inputs.
fn place_of(op: &OpDef, args: &Args, device: Device) -> Device {
    let named = op.params.iter().zip(args.iter()).find(|(p, _)| p.name == "device").map(|(_, v)| v);
    match named {
        Some(sampan_core::Value::Str(name)) => Device::named(name).unwrap_or(device),
        _ => device,
    }
}

/// The outputs of a call on a device, then the gradients of first and second order, all on the CPU.
fn results(op: &'static OpDef, args: &Args, to: Device, orders: usize) -> Result<Vec<Tensor>> {
    let mut args = moved(args, to)?;
    let mut leaves = Vec::new();
    if orders > 0 {
        for value in args.iter_mut() {
            value.map_tensors(&mut |t| {
                if !t.dtype().is_float() {
                    return Ok(t.clone());
                }
                let leaf = t.detach().requires_grad_();
                leaves.push(leaf.clone());
                Ok(leaf)
            })?;
        }
    }
    let place = place_of(op, &args, to);
    let run = || device::with(to, || dispatch::dispatch(op, args));
    let outputs = random::with_state((7, 0), run)?.into_vec();
    let misplaced = outputs.iter().find(|t| t.device() != place);
    if let Some(t) = misplaced {
        return Err(Error::new(Kind::PreconditionNotMet, format!("a result is on {}, not {place}", t.device())));
    }
    let mut all = outputs.clone();
    let options =
        || GradOptions { allow_unused: true, create_graph: true, retain_graph: Some(true), ..Default::default() };
    let mut from: Vec<Tensor> = outputs.into_iter().filter(|t| t.requires_grad() && t.dtype().is_float()).collect();
    for order in 1..=orders {
        if from.is_empty() {
            break;
        }
        // A sum of squares has gradients that differ from element to element.
        let mut total = from[0].try_square()?.try_sum(())?;
        for t in &from[1..] {
            total = total.try_add(&t.try_square()?.try_sum(())?)?;
        }
        let found: Vec<Tensor> = grad(&[total], &leaves, &[], options())?.into_iter().flatten().collect();
        all.extend(found.iter().cloned());
        from = if order < orders { found.into_iter().filter(|t| t.requires_grad()).collect() } else { vec![] };
    }
    all.into_iter().map(|t| t.detach().try_to_device("cpu")).collect()
}

fn compare(cpu: &[Tensor], gpu: &[Tensor], tolerance: f64) -> Option<String> {
    if cpu.len() != gpu.len() {
        return Some(format!("{} results against {}", gpu.len(), cpu.len()));
    }
    for (i, (a, b)) in cpu.iter().zip(gpu).enumerate() {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            return Some(format!("result {i} is {} {:?} against {} {:?}", b.dtype(), b.shape(), a.dtype(), a.shape()));
        }
        let values = |t: &Tensor| match t.is_complex() {
            true => t.as_real().to_f64_vec(),
            false => t.to_f64_vec(),
        };
        let (x, y) = (values(a), values(b));
        let size = x.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
        for (j, (x, y)) in x.iter().zip(&y).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * size;
            if !same {
                return Some(format!("result {i}, element {j}: {y} against {x}"));
            }
        }
    }
    None
}

/// Ops whose results are free in sign or order, which no kernel of the GPU computes.
fn is_comparable(op: &OpDef, sample: &Sample) -> bool {
    settled(op) && !sample.up_to_sign
}

#[test]
fn a_gpu_gives_what_the_cpu_gives() {
    if no_gpu() {
        return;
    }
    gpu::set_rounding(false, false);
    gpu::take_stood_in();
    let mut failures: Vec<String> = Vec::new();
    let mut fell_back: BTreeMap<&str, u64> = BTreeMap::new();
    let mut primitives = BTreeSet::new();
    for op in chosen_ops() {
        if op.primitive {
            primitives.insert(op.name);
        }
        let samples = op.samples.map(|f| f()).unwrap_or_default();
        for (i, sample) in samples.iter().enumerate().filter(|(_, s)| is_comparable(op, s)) {
            let Ok(bound) = sample.bind(op) else { continue };
            let orders = if op.non_diff || sample.no_grad.is_some() { 0 } else { 2 };
            let kinds: [(&str, Option<DType>, bool, f64); 4] = [
                // Second gradients of normalisation cancel to a few digits in float32; float64 says whether they are right.
                ("as it is", None, false, if orders > 1 { 1e-4 } else { 1e-5 }),
                ("with gaps", None, true, if orders > 1 { 1e-4 } else { 1e-5 }),
                ("float64", Some(DType::Float64), false, 1e-9),
                ("bfloat16", Some(DType::BFloat16), false, 4e-2),
            ];
            for (kind, dtype, gaps, tolerance) in kinds {
                let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| -> Result<Option<String>> {
                    let mut args = bound.clone();
                    if let Some(dtype) = dtype {
                        cast_floats(&mut args, dtype)?;
                    }
                    if gaps {
                        args = with_gaps(&args)?;
                    }
                    let orders = if dtype == Some(DType::BFloat16) { orders.min(1) } else { orders };
                    // What the CPU refuses is refused; what it has no second gradient for has one gradient.
                    let expected = match results(op, &args, Device::Cpu, orders) {
                        Ok(values) => (values, orders),
                        Err(_) => match results(op, &args, Device::Cpu, orders.min(1)) {
                            Ok(values) => (values, orders.min(1)),
                            Err(_) => return Ok(None),
                        },
                    };
                    Ok(compare(&expected.0, &results(op, &args, GPU, expected.1)?, tolerance))
                }));
                let problem = match run {
                    Ok(Ok(problem)) => problem,
                    Ok(Err(e)) => Some(e.to_string()),
                    Err(payload) => {
                        let said = payload.downcast_ref::<String>().cloned();
                        let said = said.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string()));
                        Some(format!("panicked: {}", said.unwrap_or_default()))
                    }
                };
                if let Some(problem) = problem {
                    failures.push(format!("{} sample {i} {kind}: {problem}", op.name));
                }
            }
        }
        for (name, count) in gpu::take_stood_in() {
            *fell_back.entry(name).or_insert(0) += count;
        }
    }
    let own: Vec<_> = primitives.iter().filter(|p| !fell_back.contains_key(*p)).collect();
    eprintln!(
        "{} of {} primitives computed by the GPU; by the CPU: {:?}",
        own.len(),
        primitives.len(),
        fell_back.keys()
    );
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_gpu_draws_the_numbers_of_the_cpu() {
    if no_gpu() {
        return;
    }
    use sampan_core::ops::random as r;
    let same = |what: &str, draw: &dyn Fn() -> Tensor| {
        let on = |device: Device| random::with_state((11, 0), || device::with(device, draw).to_f64_vec());
        let (gpu, cpu) = (on(GPU), on(Device::Cpu));
        let other = gpu.iter().zip(&cpu).position(|(a, b)| a != b);
        assert!(other.is_none(), "{what}: element {other:?} differs");
    };
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        let like = || Tensor::zeros([3, 333], dtype);
        same("uniform", &|| like().rand_like());
        same("normal", &|| like().randn_like());
        same("bernoulli", &|| (like() + 0.3).bernoulli(None));
        same("dropout", &|| (like() + 1.0).dropout(0.4));
        same("exponential", &|| like().exponential_(2.0).clone());
    }
    same("randint", &|| r::randint(-5, 70, [999]));
    same("randperm", &|| r::randperm(500));
}

#[test]
fn a_recorded_step_takes_small_inputs_from_both_sides() {
    if no_gpu() {
        return;
    }
    let mut step = Captured::default();
    for i in 0..6 {
        // What comes from the host lies around what is on the GPU, near enough to be one copy.
        let inputs = [1.0f32, 10.0, 100.0].map(|n| Tensor::new([n + i as f32]));
        let inputs = [inputs[0].clone(), inputs[1].try_to_device("gpu").unwrap(), inputs[2].clone()];
        let sum = step.call("", &inputs, |t| Ok(vec![t[0].try_add(&t[1])?.try_add(&t[2])?])).unwrap();
        assert_eq!(sum[0].to_f64_vec(), [111.0 + 3.0 * i as f64]);
    }
    assert_eq!((step.why_not(), step.nodes().len()), (None, 1));
}

#[test]
fn deviations_of_halves_do_not_overflow_on_the_way() {
    if no_gpu() {
        return;
    }
    // Its distances from the mean are larger than a half can be, and so is the root of the sum of their squares.
    let x: Vec<f32> = (0..4096).map(|i| if i % 4 == 0 { -60000.0 } else { 60000.0 }).collect();
    let x = Tensor::from_vec(x, [4096]).cast(DType::Float16);
    let on_gpu = x.try_to_device("gpu").unwrap();
    assert_eq!(on_gpu.std(()).to_f64(), x.std(()).to_f64());
}

#[test]
fn images_of_the_host_are_normalised_by_parameters_of_a_gpu() {
    if no_gpu() {
        return;
    }
    // On the host too, channels may lie side by side.
    let x = random::with_state((3, 0), || Tensor::randn([2, 5, 3])).transpose([0, 2, 1]);
    let (mean, var) = (Tensor::new([0.1f32, 0.2, 0.3]), Tensor::new([1.0f32, 2.0, 3.0]));
    let there = |t: &Tensor| t.try_to_device("gpu").unwrap();
    let (expected, found) = (x.batch_norm(&mean, &var), x.batch_norm(&there(&mean), &there(&var)));
    assert_eq!(found.device(), GPU);
    assert_eq!(compare(&[expected], &[found], 1e-5), None);
}
