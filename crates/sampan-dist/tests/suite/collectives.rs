//! Every collective, on every engine.

use crate::processes::run;
use sampan_core::{DType, Tensor};
use sampan_dist::{Engine, Job, ReduceOp};
use std::time::Duration;

/// A number that every bit of a result goes into.
fn hash(into: &mut u64, t: &Tensor) {
    for byte in t.to_bytes() {
        *into = (*into ^ byte as u64).wrapping_mul(0x100_0000_01b3);
    }
}

/// Values that differ from process to process and sum up with rounding.
fn values(rank: usize, count: usize, dtype: DType) -> Tensor {
    let raw: Vec<f64> = (0..count).map(|i| (((i * 7919 + rank * 104_729) % 2003) as f64 - 900.0) / 7.0).collect();
    let t = Tensor::from_vec(raw, [count]);
    match dtype {
        DType::Bool => (t.cast(DType::Int64) % 2).cast(DType::Bool),
        _ => t.cast(dtype),
    }
}

/// What a process computes alone from the values of all, in the order of their ranks.
fn alone(size: usize, count: usize, dtype: DType, op: ReduceOp) -> Tensor {
    let wide = match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        DType::UInt8 | DType::Int8 | DType::Int16 | DType::Bool => DType::Int32,
        other => other,
    };
    let mut sum = values(0, count, dtype).cast(wide);
    for r in 1..size {
        let next = values(r, count, dtype).cast(wide);
        sum = match op {
            ReduceOp::Sum | ReduceOp::Avg => &sum + &next,
            ReduceOp::Prod => &sum * &next,
            ReduceOp::Max => sum.maximum(&next),
            ReduceOp::Min => sum.minimum(&next),
        };
    }
    if op == ReduceOp::Avg {
        sum = if wide == DType::Int32 || wide == DType::Int64 {
            let ints = sum.to_f64_vec().into_iter().map(|v| (v / size as f64).trunc());
            Tensor::from_vec(ints.collect::<Vec<f64>>(), [count]).cast(wide)
        } else {
            sum / size as f64
        };
    }
    sum.cast(dtype)
}

fn same(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(found.to_bytes(), expected.to_bytes(), "{what}: {found:?} instead of {expected:?}");
}

pub fn everything(job: &Job) -> String {
    let group = job.everybody();
    let (me, size) = (group.rank().unwrap(), group.size());
    let mut bits = 0xcbf2_9ce4_8422_2325;
    for dtype in DType::ALL {
        for op in ReduceOp::ALL {
            let t = values(me, 1000, dtype);
            if dtype.is_complex() && matches!(op, ReduceOp::Max | ReduceOp::Min) {
                assert!(group.all_reduce(&t, op).unwrap_err().to_string().contains("no order"));
                continue;
            }
            group.all_reduce(&t, op).unwrap();
            if !(dtype == DType::Bool && op == ReduceOp::Avg) {
                same(&t, &alone(size, 1000, dtype, op), &format!("all_reduce {dtype} {op:?}"));
            }
            hash(&mut bits, &t);
        }
    }
    // Lengths around every threshold, and none.
    for count in [0, 1, 3, 4097, 5000, 262_143, 262_144, 600_001] {
        let t = values(me, count, DType::Float32);
        group.all_reduce(&t, ReduceOp::Sum).unwrap();
        same(&t, &alone(size, count, DType::Float32, ReduceOp::Sum), &format!("all_reduce of {count}"));
        hash(&mut bits, &t);
        for root in 0..size {
            let t = values(me, count, DType::Float32);
            group.reduce(&t, root, ReduceOp::Sum).unwrap();
            let expected = if me == root {
                alone(size, count, DType::Float32, ReduceOp::Sum)
            } else {
                values(me, count, DType::Float32)
            };
            same(&t, &expected, "reduce");
            let t = values(me, count, DType::Int64);
            group.broadcast(&t, root).unwrap();
            same(&t, &values(root, count, DType::Int64), "broadcast");
        }
        let t = values(me, count, DType::BFloat16);
        for (r, t) in group.all_gather(&t).unwrap().iter().enumerate() {
            same(t, &values(r, count, DType::BFloat16), "all_gather");
        }
        let root = size - 1;
        let outputs: Vec<Tensor> = if me == root { (0..size).map(|_| t.zeros_like()).collect() } else { Vec::new() };
        group.gather_into(&outputs, &t, root).unwrap();
        for (r, t) in outputs.iter().enumerate() {
            same(t, &values(r, count, DType::BFloat16), "gather");
        }
        let inputs: Vec<Tensor> = (0..size).map(|r| values(10 * me + r, count, DType::Float32)).collect();
        let place = Tensor::zeros([count], DType::Float32);
        group.scatter(&place, if me == root { &inputs } else { &[] }, root).unwrap();
        same(&place, &values(10 * root + me, count, DType::Float32), "scatter");
        group.reduce_scatter(&place, &inputs, ReduceOp::Sum).unwrap();
        let mut expected = values(me, count, DType::Float32);
        for r in 1..size {
            expected = expected + values(10 * r + me, count, DType::Float32);
        }
        same(&place, &expected, "reduce_scatter");
        // Lengths that differ from pair to pair.
        let part = |from: usize, to: usize| values(10 * from + to, count + 3 * from + 5 * to, DType::Int32);
        let inputs: Vec<Tensor> = (0..size).map(|to| part(me, to)).collect();
        let outputs: Vec<Tensor> = (0..size).map(|from| part(from, me).zeros_like()).collect();
        group.all_to_all(&outputs, &inputs).unwrap();
        for (from, t) in outputs.iter().enumerate() {
            same(t, &part(from, me), "alltoall");
        }
        messages(job, count);
    }
    // A view with gaps is filled where it lies, and nothing beside it.
    let whole = values(me, 12, DType::Float32).reshape([3, 4]);
    let column = whole.narrow(1, 1, 2);
    group.all_reduce(&column, ReduceOp::Sum).unwrap();
    let sum = alone(size, 12, DType::Float32, ReduceOp::Sum).reshape([3, 4]);
    same(&column.contiguous(), &sum.narrow(1, 1, 2).contiguous(), "a view");
    same(
        &whole.narrow(1, 3, 1).contiguous(),
        &values(me, 12, DType::Float32).reshape([3, 4]).narrow(1, 3, 1).contiguous(),
        "beside it",
    );
    // Several at once, in order, and one that waits after them.
    let tensors: Vec<Tensor> = (0..8).map(|i| values(me + i, 10_000, DType::Float32)).collect();
    let tasks: Vec<_> = tensors.iter().map(|t| group.all_reduce_async(t, ReduceOp::Max)).collect();
    group.barrier().unwrap();
    assert!(tasks.iter().all(|task| task.is_completed()));
    tasks.iter().for_each(|task| task.wait().unwrap());
    hash(&mut bits, &tensors[7]);
    format!("{bits:016x}")
}

/// All send to all at the same time, and then one to the next.
fn messages(job: &Job, count: usize) {
    let group = job.everybody();
    let (me, size) = (group.rank().unwrap(), group.size());
    let others = || (0..size).filter(|r| *r != me);
    let places: Vec<Tensor> = (0..size).map(|_| Tensor::zeros([count], DType::Float32)).collect();
    let mut tasks: Vec<_> = others().map(|r| group.recv_async(&places[r], r)).collect();
    tasks.extend(others().map(|r| group.send_async(&values(10 * me + r, count, DType::Float32), r)));
    tasks.iter().for_each(|task| task.wait().unwrap());
    others().for_each(|r| same(&places[r], &values(10 * r + me, count, DType::Float32), "messages"));
    let t = values(me, count, DType::Float64);
    if me == 0 {
        group.send(&t, 1).unwrap();
    } else if me == 1 {
        group.recv(&t, 0).unwrap();
        same(&t, &values(0, count, DType::Float64), "send");
    }
}

#[test]
fn every_collective_gives_the_same_bits_on_every_engine() {
    for size in [2, 3] {
        let bits = run("everything", size, "shared_memory");
        assert_eq!(bits, run("everything", size, "tcp"), "{size} processes");
        if has_gloo() {
            assert_eq!(bits, run("everything", size, "gloo"), "{size} processes");
        }
    }
}

pub fn which(job: &Job) -> String {
    let group = job.everybody();
    let (name, why) = group.backend();
    format!("{name}: {why}")
}

/// Is Gloo installed? Where it is not, another engine stands in and says why.
pub fn has_gloo() -> bool {
    let said = run("which", 2, "gloo");
    if said.starts_with("gloo: ") {
        return true;
    }
    assert!(said.contains("Gloo was asked for, but rank 0 has none ("), "{said}");
    eprintln!("not tested: {said}");
    false
}

pub fn groups(job: &Job) -> String {
    let (rank, limit) = (job.world().rank, Duration::from_secs(30));
    let pairs = [vec![0, 2], vec![2, 1]].map(|ranks| job.new_group(ranks, Engine::Auto, limit).unwrap());
    let mut said = String::new();
    for (i, group) in pairs.iter().enumerate() {
        let t = values(rank, 10, DType::Float32);
        match group.rank() {
            Some(_) => {
                group.all_reduce(&t, ReduceOp::Sum).unwrap();
                let [a, b] = group.ranks() else { panic!("a pair") };
                same(&t, &(values(*a, 10, DType::Float32) + values(*b, 10, DType::Float32)), "a pair");
            }
            None => assert!(group.all_reduce(&t, ReduceOp::Sum).unwrap_err().to_string().contains("not a member")),
        }
        let name = if group.rank().is_some() { group.backend().0 } else { job.everybody().backend().0 };
        said += &format!("{i}: {name} ");
    }
    assert!(job.new_group(vec![0, 7], Engine::Auto, limit).unwrap_err().to_string().contains("rank 7"));
    assert!(job.new_group(vec![0, 0], Engine::Auto, limit).unwrap_err().to_string().contains("twice"));
    // One process alone is a group too.
    job.new_group(vec![1], Engine::Auto, limit).unwrap();
    job.everybody().barrier().unwrap();
    said
}

#[test]
fn groups_of_some() {
    assert_eq!(run("groups", 3, "auto"), "0: shared_memory 1: shared_memory ");
}

pub fn disagree(job: &Job) -> String {
    let group = job.everybody();
    let count = 3 + group.rank().unwrap();
    let error = group.all_reduce(&values(0, count, DType::Float32), ReduceOp::Sum).unwrap_err().to_string();
    assert!(error.contains("the same in the same order") && error.contains("all_reduce(3 float32, Sum)"), "{error}");
    // A connection of ours does not stay usable, since what follows on it is unknown.
    assert_eq!(group.barrier().is_err(), group.backend().0 == "tcp");
    "told".into()
}

#[test]
fn processes_that_do_not_do_the_same_are_told() {
    for engine in ["shared_memory", "tcp", "gloo"] {
        assert_eq!(run("disagree", 2, engine), "told");
    }
}

pub fn mismatched_message(job: &Job) -> String {
    let group = job.everybody();
    match group.rank() {
        Some(0) => {
            let _ = group.send(&values(0, 4, DType::Float32), 1);
            "told".into()
        }
        _ => {
            let error = group.recv(&values(0, 5, DType::Float32), 0).unwrap_err().to_string();
            assert!(error.contains("send(4 float32)") && error.contains("send(5 float32)"), "{error}");
            "told".into()
        }
    }
}

#[test]
fn a_message_of_another_length_is_told() {
    for engine in ["shared_memory", "tcp", "gloo"] {
        assert_eq!(run("mismatched_message", 2, engine), "told");
    }
}
