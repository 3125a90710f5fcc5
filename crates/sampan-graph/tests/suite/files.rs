//! What Paddle saved is read here and gives Paddle's results; what is written here is read again; nothing else is believed.

use sampan_core::{DType, Tensor, random};
use sampan_graph::{Graph, Spec, paddle, trace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub type Case = BTreeMap<String, Tensor>;

/// The cases of a recording, by name: `program`, `params`, and inputs and outputs.
pub fn cases(file: &str) -> BTreeMap<String, Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for (key, tensor) in sampan_io::load(path).unwrap().tensors() {
        let (name, part) = key.split_once('/').unwrap();
        cases.entry(name.into()).or_default().insert(part.into(), tensor);
    }
    cases
}

pub fn bytes(case: &Case, part: &str) -> Vec<u8> {
    case.get(part).map(|t| t.to_vec::<u8>()).unwrap_or_default()
}

fn list(case: &Case, letter: char) -> Vec<Tensor> {
    (0..).map_while(|i| case.get(&format!("{letter}{i}")).cloned()).collect()
}

fn close(found: &[Tensor], expected: &[Tensor]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} results for {}", found.len(), expected.len()));
    }
    for (a, b) in found.iter().zip(expected) {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            return Err(format!("{:?} {} for {:?} {}", a.shape(), a.dtype(), b.shape(), b.dtype()));
        }
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max);
        if worst > 2e-5 {
            return Err(format!("off by {worst}"));
        }
    }
    Ok(())
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sampan-graph-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Both files of a saved graph, read again.
fn saved_and_loaded(graph: &Graph, folder: &Path) -> sampan_core::Result<[Graph; 2]> {
    let prefix = folder.join("model");
    paddle::save(graph, &prefix, &[])?;
    let read = |end: &str| paddle::load_files(&folder.join(format!("model{end}")), &folder.join("model.pdiparams"));
    Ok([read(".pdmodel")?, read(".json")?])
}

#[test]
fn files_of_paddle_give_its_results() {
    random::own(0);
    let folder = folder("read");
    let (mut failures, mut read, mut written) = (Vec::new(), 0, 0);
    for file in ["paddle-2.6.npz", "paddle-3.0.npz", "paddle-3.3.npz"] {
        for (name, case) in cases(file) {
            let (x, y) = (list(&case, 'x'), list(&case, 'y'));
            let mut check = || -> Result<(), String> {
                let graph =
                    paddle::from_bytes(&bytes(&case, "program"), &bytes(&case, "params")).map_err(|e| e.to_string())?;
                let found = graph.run(&x).map_err(|e| e.to_string())?;
                close(&found, &y)?;
                read += 1;
                // A program that was read is traced, written, and read once more.
                let specs =
                    x.iter().map(|t| Spec::new(t.shape().iter().map(|&n| Some(n)), t.dtype())).collect::<Vec<_>>();
                let Ok(again) = trace(|x| graph.run(x), &specs) else { return Ok(()) };
                let Ok(pair) = saved_and_loaded(&again, &folder) else { return Ok(()) };
                for graph in pair {
                    close(&graph.run(&x).map_err(|e| e.to_string())?, &y)?;
                }
                written += 1;
                Ok(())
            };
            if let Err(why) = check() {
                failures.push(format!("{file} {name}: {why}"));
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(read >= 410 && written >= 390, "{read} read, {written} written");
}

/// Branches and loops: every way through them.
#[test]
fn programs_of_paddle_that_branch_give_its_results() {
    random::own(0);
    let (mut ways, folder) = (0, folder("branches"));
    let files = ["2.6-flows", "3.3-flows", "2.6-lists", "3.0-lists", "3.3-lists"];
    for file in files.map(|name| format!("paddle-{name}.npz")) {
        for (name, case) in cases(&file) {
            let graph = paddle::from_bytes(&bytes(&case, "program"), &[]);
            let graph = graph.unwrap_or_else(|e| panic!("{file} {name}: {e}"));
            let predictor = sampan_graph::Predictor::new(&graph).unwrap();
            let again = saved_and_loaded(&graph, &folder).unwrap_or_else(|e| panic!("{file} {name}: {e}"));
            for (k, x) in list(&case, 'x').into_iter().enumerate() {
                let y: Vec<Tensor> = (0..).map_while(|i| case.get(&format!("y{k}_{i}")).cloned()).collect();
                let runs = [&graph, &again[0], &again[1]].map(|graph| graph.run(&[x.clone()]));
                for found in runs.into_iter().chain([predictor.run(&[x])]) {
                    let found = found.unwrap_or_else(|e| panic!("{file} {name} {k}: {e}"));
                    close(&found, &y).unwrap_or_else(|why| panic!("{file} {name} {k}: {why}"));
                }
                ways += 1;
            }
        }
    }
    assert!(ways >= 280, "{ways}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Places that are not there are errors, as in Paddle, and -1 is the last one also where it is computed.
#[test]
fn places_beyond_the_end_are_errors() {
    random::own(0);
    let (mut refused, folder) = (0, folder("beyond"));
    for (name, case) in cases("paddle-3.3-beyond.npz") {
        let graph = paddle::from_bytes(&bytes(&case, "program"), &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
        let predictor = sampan_graph::Predictor::new(&graph).unwrap();
        let again = saved_and_loaded(&graph, &folder).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (k, x) in list(&case, 'x').into_iter().enumerate() {
            let runs = [&graph, &again[0], &again[1]].map(|graph| graph.run(&[x.clone()]));
            for found in runs.into_iter().chain([predictor.run(&[x])]) {
                if let Some(y) = case.get(&format!("y{k}_0")) {
                    let found = found.unwrap_or_else(|e| panic!("{name} {k}: {e}"));
                    close(&found, std::slice::from_ref(y)).unwrap_or_else(|why| panic!("{name} {k}: {why}"));
                } else {
                    assert!(found.is_err(), "{name} {k} gives {:?}", found.unwrap()[0].shape());
                    refused += 1;
                }
            }
        }
    }
    assert_eq!(refused, 4 * 20);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_network_comes_back_with_its_free_sizes_and_gradients() {
    random::own(0);
    let folder = folder("write");
    let w = Tensor::new([[1.0f32, -2.0], [0.5, 3.0]]).requires_grad_();
    w.set_name("linear_0.w_0");
    let net = |x: &[Tensor]| {
        let (b, n) = (x[0].shape()[0] as i64, x[0].shape()[1] as i64);
        let y = x[0].matmul(&w).tanh().reshape([b * n, 2]);
        Ok(vec![y.softmax(-1).reshape([b, 2 * n]), x[0].sum(())])
    };
    let graph = trace(net, &[Spec::new([None, None, Some(2)], DType::Float32).named("image")]).unwrap();
    for loaded in saved_and_loaded(&graph, &folder).unwrap() {
        assert_eq!(loaded.inputs[0].name, "image");
        assert_eq!(loaded.weights[0].name, "linear_0.w_0");
        for shape in [[2, 3, 2], [5, 1, 2]] {
            let x = Tensor::randn(shape);
            let (expected, found) = (net(&[x.clone()]).unwrap(), loaded.run(&[x]).unwrap());
            close(&found, &expected).unwrap();
            expected[0].square().sum(()).backward();
            found[0].square().sum(()).backward();
            let (own, other) = (w.grad().unwrap(), loaded.weights[0].tensor.grad().unwrap());
            close(&[other], &[own]).unwrap();
            w.clear_grad();
            loaded.weights[0].tensor.clear_grad();
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Damaged in many ways, a file is an error or another model; never a panic, never more memory than the file is worth.
#[test]
fn damaged_files_are_errors() {
    random::own(0);
    let mut state = 1u64;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % n.max(1)
    };
    // More with DAMAGE=10000.
    let rounds = std::env::var("DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let mut tried = 0;
    for file in ["paddle-2.6.npz", "paddle-3.3.npz"] {
        let mut cases = cases(file);
        for name in ["mlp", "gru", "transformer", "slice_rev", "assign_const", "full", "pad2"] {
            let Some(case) = cases.remove(name) else { continue };
            let (program, params) = (bytes(&case, "program"), bytes(&case, "params"));
            for _ in 0..rounds {
                let (mut program, mut params) = (program.clone(), params.clone());
                let target = if random(4) == 0 && !params.is_empty() { &mut params } else { &mut program };
                for _ in 0..1 + random(4) {
                    let at = random(target.len());
                    match random(4) {
                        0 => target[at] = random(256) as u8,
                        1 => target[at] ^= 1 << random(8),
                        2 => target.truncate(at.max(1)),
                        _ => {
                            let piece = target[at..(at + 1 + random(16)).min(target.len())].to_vec();
                            let to = random(target.len());
                            target.splice(to..to, piece);
                        }
                    }
                }
                if let Ok(graph) = paddle::from_bytes(&program, &params) {
                    let _ = graph.run(&list(&case, 'x'));
                }
                tried += 1;
            }
        }
    }
    assert!(tried >= 13 * rounds, "{tried}");
}
