//! Runs a saved network: `cargo run --release --example infer inference/net.pdmodel`.
//!
//! Every input is filled with numbers from 0 up to 1, and an extent that may be anything is 1.

use sampan::graph::{self, Predictor};
use sampan::prelude::*;

fn main() -> Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        return Err(Error::invalid("usage: infer MODEL"));
    };
    let graph = graph::load(path)?;
    let mut inputs = Vec::new();
    for input in &graph.inputs {
        let known = &graph.values[input.value];
        if known.dtype != DType::Float32 {
            return Err(Error::dtype(format!("the input {} is not float32", input.name)));
        }
        let shape: Vec<usize> = known.dims.iter().map(|d| d.fixed().unwrap_or(1)).collect();
        let count = shape.iter().product::<usize>();
        println!("input {} {shape:?}", input.name);
        inputs.push(Tensor::from_vec((0..count).map(|i| i as f32 / count as f32).collect(), shape));
    }
    let predictor = Predictor::new(&graph)?;
    for (i, output) in predictor.run(&inputs)?.iter().enumerate() {
        print!("output {i} {:?}", output.shape());
        for value in output.try_to_vec::<f32>().unwrap_or_default().iter().take(10) {
            print!(" {value:.4}");
        }
        println!();
    }
    Ok(())
}
