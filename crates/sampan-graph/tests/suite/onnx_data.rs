//! ONNX's own test data, where it is on the machine: `SAMPAN_ONNX_DATA` names a file with a folder of a test in each line.

use sampan_core::{DType, Error, Result, Tensor};
use sampan_graph::onnx::{self, Item};
use sampan_io::onnx::model::tensor_from_bytes;
use std::path::Path;

fn tensors(folder: &Path, kind: &str) -> Vec<Result<Tensor>> {
    let read = |i: usize| std::fs::read(folder.join(format!("{kind}_{i}.pb"))).ok();
    (0..).map_while(read).map(|bytes| tensor_from_bytes(&bytes).map(|(_, t)| t)).collect()
}

/// As near as ONNX's tests want it.
fn close(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.shape() != b.shape() || a.dtype() != b.dtype() {
        let (x, y) = ((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        return Err(Error::invalid(format!("gave {x:?}, expected {y:?}")));
    }
    let numbers = |t: &Tensor| t.cast(DType::Float64).to_vec::<f64>();
    let near = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-7 + 1e-3 * y.abs();
    let (x, y) = (numbers(a), numbers(b));
    match x.iter().zip(&y).position(|pair| !near(pair)) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!("element {at} is {}, expected {}", x[at], y[at]))),
    }
}

fn check(folder: &Path, traced: bool) -> Result<()> {
    let model = onnx::load(folder.join("model.onnx"))?;
    let graph = if traced { Some(model.graph()?) } else { None };
    for set in 0.. {
        let data = folder.join(format!("test_data_set_{set}"));
        if !data.is_dir() {
            break;
        }
        let inputs = tensors(&data, "input").into_iter().collect::<Result<Vec<_>>>()?;
        let expected = tensors(&data, "output").into_iter().collect::<Result<Vec<_>>>()?;
        let found = match &graph {
            Some(graph) => graph.run(&inputs)?,
            None => {
                let items = model.run_items(&inputs.into_iter().map(Item::Tensor).collect::<Vec<_>>())?;
                let tensor = |i| if let Item::Tensor(t) = i { Ok(t) } else { Err(Error::invalid("no tensor")) };
                items.into_iter().map(tensor).collect::<Result<Vec<_>>>()?
            }
        };
        for (a, b) in found.iter().zip(&expected) {
            close(a, b)?;
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs the data of ONNX's Python package"]
fn data() {
    let list = std::fs::read_to_string(std::env::var("SAMPAN_ONNX_DATA").unwrap()).unwrap();
    for traced in [false, true] {
        let (mut failures, mut passed) = (Vec::new(), 0);
        for folder in list.lines().map(Path::new) {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            match std::panic::catch_unwind(|| check(folder, traced)) {
                Ok(Ok(())) => passed += 1,
                Ok(Err(e)) => failures.push(format!("{name}: {e}")),
                Err(_) => failures.push(format!("{name}: panicked")),
            }
        }
        println!("{}", failures.join("\n"));
        println!("{} traced={traced}: {passed} passed, {} failed", list.lines().count(), failures.len());
    }
}
