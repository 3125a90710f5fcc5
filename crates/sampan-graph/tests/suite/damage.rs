//! Damaged files: every reader answers, with a graph or an error, and soon.
//!
//! What is still read joins the files that are damaged next, so that damage adds up. The files are those that Paddle wrote for
//! the other tests, and what becomes of them as ONNX. A second for each format; `SAMPAN_FUZZ_TRIES` tries so often, with
//! `SAMPAN_FUZZ_SEED`, and `SAMPAN_FUZZ_FORMAT` takes one format. A file that makes a reader panic or dawdle is left behind.

use crate::files::{bytes, cases};
use sampan_core::{DType, Tensor, random};
use sampan_graph::onnx::{self, Item, Options};
use sampan_graph::{Graph, Predictor, Spec, cond, paddle, quantize, trace};
use sampan_io::onnx::model::{Attr, Model as File, Net, Node, ValueInfo};
use std::time::{Duration, Instant};

/// A graph with weights, free extents, constants and a branch.
fn graph() -> Graph {
    let w = Tensor::randn([4, 3]).requires_grad_();
    let program = |x: &[Tensor]| {
        let y = x[0].matmul(&w).relu().reshape([x[0].shape()[0] as i64, 3, 1]);
        let sum = y.sum(());
        cond(&sum.greater_than(1.0), || Ok(vec![&y * 2.0]), || Ok(vec![y.exp()]))
    };
    trace(program, &[Spec::new([None, Some(4)], DType::Float32).named("x")]).unwrap()
}

/// Numbers that follow from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Bytes that mean something somewhere: numbers at the edge of their range, in all formats.
const WORDS: [&[u8]; 12] = [
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\xff\xff\xff\xff\x07",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"1e999",
    b"-1",
    b"null",
    b"[]",
    b"{}",
    b"\"#\":",
];

/// A few bytes changed, removed, doubled, put elsewhere or taken from another file.
fn mutated(bytes: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..1 + chance.below(4) {
        let (at, n) = (chance.below(out.len()), 1 + chance.below(16));
        let end = (at + n).min(out.len());
        match chance.below(9) {
            0 => out[at..end].iter_mut().for_each(|b| *b = chance.below(256) as u8),
            1 => out[at] ^= 1 << chance.below(8),
            2 => drop(out.drain(at..end)),
            3 => {
                let part = out[at..end].to_vec();
                let to = chance.below(out.len());
                out.splice(to..to, part);
            }
            4 => out[at] = [0, 1, 0x7f, 0x80, 0xff, b'-', b'9'][chance.below(7)],
            5 => drop(out.splice(at..end, WORDS[chance.below(WORDS.len())].iter().copied())),
            6 => {
                let from = chance.below(other.len());
                let part = &other[from..(from + 1 + chance.below(256)).min(other.len())];
                out.splice(at..end, part.iter().copied());
            }
            7 => {
                // A number counts up or down.
                let digit = out.iter().skip(at).position(u8::is_ascii_digit).map_or(at, |i| at + i);
                out[digit] = out[digit].wrapping_add([1, 255][chance.below(2)]);
            }
            _ if chance.below(8) == 0 => out.truncate(at),
            _ => out[at] = out[at].wrapping_add([1, 255][chance.below(2)]),
        }
        if out.is_empty() {
            out.push(0);
        }
    }
    out
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Damages files and reads them.
fn tried(name: &str, files: &[Vec<u8>], read: impl Fn(&[u8]) -> bool + std::panic::RefUnwindSafe) {
    if std::env::var("SAMPAN_FUZZ_FORMAT").is_ok_and(|format| format != name) {
        return;
    }
    let tries = setting("SAMPAN_FUZZ_TRIES");
    let seed = setting("SAMPAN_FUZZ_SEED").unwrap_or(1);
    let (begin, mut chance, mut count, mut good) = (Instant::now(), Chance(seed), 0u64, 0u64);
    let mut slowest = Duration::ZERO;
    let mut pool: Vec<Vec<u8>> = files.to_vec();
    assert!(pool.iter().any(|file| read(file)), "{name}: the whole files are read");
    while tries.map_or(begin.elapsed() < Duration::from_secs(1), |tries| count < tries) {
        let (a, b) = (chance.below(pool.len()), chance.below(pool.len()));
        let damaged = mutated(&pool[a], &pool[b], &mut chance);
        let since = Instant::now();
        let answer = std::panic::catch_unwind(|| read(&damaged));
        let took = since.elapsed();
        slowest = slowest.max(took);
        if answer.is_err() || took > Duration::from_secs(30) {
            let left = std::env::temp_dir().join(format!("sampan-damaged-{count}.{name}"));
            std::fs::write(&left, &damaged).unwrap();
            panic!("{name}: try {count} of seed {seed} took {took:?}; the file is {}", left.display());
        }
        count += 1;
        if answer.is_ok_and(|read| read) {
            good += 1;
            // Not longer than twice the longest, so that a try stays cheap.
            if damaged.len() < 16384 {
                match pool.len() < files.len() + 512 {
                    true => pool.push(damaged),
                    false => pool[files.len() + chance.below(512)] = damaged,
                }
            }
        }
        if tries.is_some() && count.is_multiple_of(1_000_000) {
            println!("{name}: {count} tries, {good} still read, the slowest {slowest:?}");
        }
    }
    println!("{name}: {count} tries, {good} still read, the slowest {slowest:?}");
    assert!(good < count);
}

/// The programs of a recording that are small enough to be read many times.
fn programs(files: &[&str]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let all = files.iter().flat_map(|file| cases(file).into_values());
    let pairs = all.map(|case| (bytes(&case, "program"), bytes(&case, "params")));
    let (programs, params): (Vec<_>, Vec<_>) = pairs.filter(|(program, _)| program.len() < 8192).unzip();
    (programs, params.into_iter().filter(|p| !p.is_empty() && p.len() < 8192).collect())
}

#[test]
fn damaged_programs_are_answered() {
    random::own(0);
    let graph = graph();
    let folder = std::env::temp_dir().join(format!("sampan-damage-{}", std::process::id()));
    paddle::save(&graph, folder.join("net"), &[]).unwrap();
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (pir, classic, weights) = (file("net.json"), file("net.pdmodel"), file("net.pdiparams"));
    std::fs::remove_dir_all(&folder).unwrap();
    for program in [&pir, &classic] {
        paddle::from_bytes(program, &weights).unwrap();
    }
    let (mut classics, mut params) = programs(&["paddle-2.6.npz", "paddle-2.6-flows.npz", "paddle-2.6-lists.npz"]);
    let (mut pirs, more) = programs(&["paddle-3.3.npz", "paddle-3.3-flows.npz", "paddle-3.3-lists.npz"]);
    let as_onnx = |graph: &Graph| {
        let model = onnx::to_model(graph, &Options::default()).ok()?;
        sampan_io::onnx::model::to_bytes(&model).ok().filter(|bytes| bytes.len() < 8192)
    };
    let mut models: Vec<Vec<u8>> = classics.iter().filter_map(|p| as_onnx(&paddle::from_bytes(p, &[]).ok()?)).collect();
    models.extend(as_onnx(&graph));
    classics.push(classic);
    pirs.push(pir);
    params.extend(more);
    params.push(weights.clone());
    assert!(models.len() > 1 && pirs.len() > 1 && classics.len() > 1, "files that Paddle wrote are there");
    tried("onnx", &models, |b| onnx::from_bytes(b).is_ok_and(|m| m.graph().is_ok()));
    tried("json", &pirs, |b| paddle::from_bytes(b, &weights).is_ok() || paddle::from_bytes(b, &[]).is_ok());
    tried("pdmodel", &classics, |b| paddle::from_bytes(b, &weights).is_ok() || paddle::from_bytes(b, &[]).is_ok());
    tried("pdiparams", &params, |b| sampan_io::pdiparams::from_bytes(b).is_ok());
}

/// Small files that ask for much: two constants of four gigabytes each, joined.
#[test]
fn memory_is_not_given_on_the_word_of_a_file() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/large-constants.onnx");
    let error = onnx::load(file).unwrap().graph().unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
    // Others may go on.
    assert_eq!(Tensor::zeros([1 << 20], DType::Float32).numel(), 1 << 20);
}

/// A loop of so many steps that carries and collects what its body makes of `x`.
fn looping(steps: i64, body: Vec<Node>) -> onnx::Model {
    let named = |name: &str, dtype| ValueInfo { name: name.into(), dtype: Some(dtype), dims: None };
    let node = |op: &str, inputs: &[&str], outputs: &[&str], attrs| Node {
        op: op.into(),
        inputs: inputs.iter().map(|n| n.to_string()).collect(),
        outputs: outputs.iter().map(|n| n.to_string()).collect(),
        attrs,
        ..Node::default()
    };
    let body = Net {
        nodes: [vec![node("Identity", &["goes_on"], &["again"], vec![])], body].concat(),
        inputs: vec![named("step", DType::Int64), named("goes_on", DType::Bool), named("x", DType::Float32)],
        outputs: vec![named("again", DType::Bool), named("next", DType::Float32), named("kept", DType::Float32)],
        ..Net::default()
    };
    let attrs = vec![("body".to_string(), Attr::Graph(Box::new(body)))];
    let graph = Net {
        name: "looping".into(),
        nodes: vec![node("Loop", &["steps", "", "given"], &["last", "all"], attrs)],
        initialisers: vec![("steps".into(), Tensor::new(steps))],
        inputs: vec![named("given", DType::Float32)],
        outputs: vec![named("last", DType::Float32), named("all", DType::Float32)],
    };
    let opsets = vec![(String::new(), 17)];
    let file = File { ir_version: 8, producer: String::new(), opsets, graph, functions: vec![] };
    onnx::from_bytes(&sampan_io::onnx::model::to_bytes(&file).unwrap()).unwrap()
}

/// A run may hold so much at once, be it in a few large tensors or in many small ones; what is given back does not count.
#[test]
fn runs_of_strangers_models_are_bounded() {
    let call = |op: &str, inputs: &[&str], output: &str| Node {
        op: op.into(),
        inputs: inputs.iter().map(|n| n.to_string()).collect(),
        outputs: vec![output.into()],
        attrs: if op == "Concat" { vec![("axis".into(), Attr::Int(0))] } else { vec![] },
        ..Node::default()
    };
    let x = Tensor::ones([4], DType::Float32);
    let doubled = || vec![call("Concat", &["x", "x"], "next"), call("Identity", &["goes_on"], "kept")];
    let collected = || vec![call("Identity", &["x"], "next"), call("Neg", &["x"], "kept")];
    for (steps, body) in [(40, doubled()), (1 << 23, collected())] {
        let error = looping(steps, body).with_memory(16 << 20).run(std::slice::from_ref(&x)).unwrap_err().to_string();
        assert!(error.contains("out of memory") && error.contains("may hold 16.0 MiB at once"), "{error}");
        assert!(error.contains("Loop"), "{error}");
    }
    // Views have no memory of their own, but there may be many of them: of each step, in a sequence, of one tensor.
    let views = vec![call("Identity", &["x"], "next"), call("Transpose", &["given"], "kept")];
    let inserted = vec![call("Transpose", &["steps"], "kept"), call("SequenceInsert", &["x", "kept"], "next")];
    let split = vec![
        call("SplitToSequence", &["x"], "parts"),
        call("Identity", &["steps"], "next"),
        call("Identity", &["steps"], "kept"),
    ];
    let ones = |n: usize| Item::Tensor(Tensor::ones([n], DType::Float32));
    let cases = [(1 << 14, views, ones(1)), (1 << 10, inserted, Item::List(vec![])), (1, split, ones(1 << 14))];
    for (steps, body, given) in cases {
        let error = looping(steps, body).with_memory(1 << 20).run_items(&[given]).unwrap_err().to_string();
        assert!(error.contains("out of memory") && error.contains("may hold 1.0 MiB at once"), "{error}");
    }
    assert_eq!(looping(10, doubled()).with_memory(16 << 20).run(&[x]).unwrap()[0].shape(), [4 << 10]);
    // Two mebibytes a step, none of which is kept.
    let squared = vec![call("Mul", &["x", "x"], "next"), call("ReduceSum", &["x"], "kept")];
    let large = Tensor::ones([1 << 19], DType::Float32);
    assert_eq!(looping(50, squared).with_memory(16 << 20).run(&[large]).unwrap()[1].shape(), [50, 1]);
}

/// A network of codes: whatever its steps, codes and program are made, there is an answer.
#[test]
fn damaged_codes_are_answered() {
    random::own(0);
    let w = Tensor::randn([4, 6]);
    let plain = trace(|x| Ok(vec![x[0].matmul(&w).relu()]), &[Spec::new([None, Some(4)], DType::Float32)]).unwrap();
    let mut calibration = quantize::Calibration::new(&plain, quantize::Method::MinMax).unwrap();
    calibration.feed(&[Tensor::randn([3, 4])]).unwrap();
    let graph = calibration.finish().unwrap();
    let folder = std::env::temp_dir().join(format!("sampan-codes-{}", std::process::id()));
    paddle::save(&graph, folder.join("net"), &[]).unwrap();
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (program, weights) = (file("net.pdmodel"), file("net.pdiparams"));
    std::fs::remove_dir_all(&folder).unwrap();
    tried("pdmodel of codes", std::slice::from_ref(&program), |b| paddle::from_bytes(b, &weights).is_ok());
    let model = sampan_io::onnx::model::to_bytes(&onnx::to_model(&graph, &Options::default()).unwrap()).unwrap();
    tried("onnx of codes", &[model], |b| onnx::from_bytes(b).is_ok());
    tried("codes", std::slice::from_ref(&weights), |b| {
        let read = paddle::from_bytes(&program, b).and_then(|graph| Predictor::new(&graph));
        // Steps that are no numbers, or none at all, give what they give.
        read.and_then(|predictor| predictor.run(&[Tensor::new([[0.5f32, -1.0, 2.0, 0.0]])])).is_ok()
    });
}
