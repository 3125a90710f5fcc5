//! What every layer class of the registry must do, whatever it computes.

use crate::table::{Row, rows};
use sampan_core::class::{self, ClassDef};
use sampan_core::{DType, Result, Tensor, bail, ensure};
use sampan_nn::{Layer, Members};
use std::sync::Arc;

#[test]
fn every_layer_class_keeps_the_promises_of_a_layer() {
    let table = rows();
    let mut failures = Vec::new();
    // Gradient clipping and beam search live in Paddle's `nn` as well.
    let is_layer = |c: &&ClassDef| c.module == "nn" && !c.name.starts_with("ClipGrad") && c.name != "BeamSearchDecoder";
    let classes: Vec<_> = class::all().into_iter().filter(is_layer).collect();
    for class in &classes {
        let Some(rows) = table.get(class.name) else {
            failures.push(format!("{}: has no row in tests/layers", class.name));
            continue;
        };
        if class.doc.is_empty() {
            failures.push(format!("{}: has no documentation", class.name));
        }
        for (i, row) in rows.iter().enumerate() {
            if let Err(e) = check(class, row) {
                failures.push(format!("{}/{i}: {e}", class.name));
            }
        }
    }
    for name in table.keys().filter(|n| !classes.iter().any(|c| c.name == **n)) {
        failures.push(format!("{name}: has rows and is no class"));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn check(class: &ClassDef, row: &Row) -> Result<()> {
    let layer = row.build(class)?;
    let inputs = row.inputs(DType::Float32);
    let Some(base) = layer.base() else { bail!("has no base") };
    ensure!(base.full_name().rsplit_once('_').is_some(), "the full name is {}", base.full_name());
    modes(&*layer)?;
    ensure!(layer.call_all(&[]).is_err(), "a call without inputs is no error");

    let outputs = layer.call_all(&inputs)?;
    ensure!(!outputs.is_empty(), "has no output");
    shapes_without_values(&*layer, &inputs, &outputs)?;
    gradients_reach_parameters(&*layer, &outputs)?;
    half_precision(class, row)?;
    state_moves(class, row, &layer, &inputs)
}

fn modes(layer: &dyn Layer) -> Result<()> {
    let training = || layer.base().is_some_and(|b| b.training());
    layer.eval();
    ensure!(!training(), "eval() leaves it training");
    layer.train();
    ensure!(training(), "train() leaves it evaluating");
    Ok(())
}

/// A meta tensor gives the shapes and dtypes of the outputs.
fn shapes_without_values(layer: &dyn Layer, inputs: &[Tensor], outputs: &[Tensor]) -> Result<()> {
    // An input of integers may be an index or a size, whose values count.
    let meta = |t: &Tensor| if t.dtype().is_float() { Tensor::meta(t.shape(), t.dtype()) } else { t.clone() };
    let inferred = layer.call_all(&inputs.iter().map(meta).collect::<Vec<_>>())?;
    let look = |ts: &[Tensor]| ts.iter().map(|t| (t.shape().to_vec(), t.dtype())).collect::<Vec<_>>();
    ensure!(look(&inferred) == look(outputs), "infers {:?}, gives {:?}", look(&inferred), look(outputs));
    Ok(())
}

fn gradients_reach_parameters(layer: &dyn Layer, outputs: &[Tensor]) -> Result<()> {
    layer.clear_gradients();
    for out in outputs.iter().filter(|t| t.requires_grad()) {
        out.try_sum(())?.try_backward(None, true)?;
    }
    for (name, p) in layer.named_parameters() {
        ensure!(!p.trainable() || p.grad().is_some(), "{name} gets no gradient");
        ensure!(p.grad().is_none_or(|g| g.shape() == p.shape()), "the gradient of {name} has another shape");
    }
    Ok(())
}

/// In half precision a layer computes and trains as well, and stays in it.
fn half_precision(class: &ClassDef, row: &Row) -> Result<()> {
    let layer = row.build_in(class, DType::BFloat16)?;
    layer.to_dtype(DType::BFloat16)?;
    let outputs = layer.call_all(&row.inputs(DType::BFloat16))?;
    ensure!(outputs[0].dtype() == DType::BFloat16, "gives {} for bfloat16", outputs[0].dtype());
    gradients_reach_parameters(&*layer, &outputs)
}

/// Another layer that takes over the state gives the same output.
fn state_moves(class: &ClassDef, row: &Row, layer: &Arc<dyn Layer>, inputs: &[Tensor]) -> Result<()> {
    let other = row.build(class)?;
    other.set_state_dict(&layer.state_dict())?;
    layer.eval();
    other.eval();
    let (a, b) = (layer.call_all(inputs)?, other.call_all(inputs)?);
    let values = |ts: &[Tensor]| ts.iter().map(Tensor::to_f64_vec).collect::<Vec<_>>();
    ensure!(values(&a) == values(&b), "the output differs after the state moved");
    Ok(())
}
