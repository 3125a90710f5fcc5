//! Branches and loops: each run of the graph decides.

use sampan_core::{DType, Result, Tensor};
use sampan_graph::onnx::{self, Options};
use sampan_graph::{Spec, cond, paddle, trace, while_loop};

fn positive(t: &Tensor) -> Tensor {
    t.sum(()).greater_than(0.0)
}

/// Twice the input or its negative, by its sign, and how often it can be halved.
fn program(x: &[Tensor], w: &Tensor) -> Result<Vec<Tensor>> {
    let x = &x[0];
    let y = cond(
        &positive(x),
        || Ok(vec![x * w]),
        || cond(&positive(&(x + 100.0)), || Ok(vec![-x]), || Ok(vec![x.exp()])),
    )?;
    let state = vec![y[0].clone(), Tensor::new(0i64)];
    let big = |s: &[Tensor]| Ok(s[0].abs().max(()).greater_than(1.0));
    let halved = |s: &[Tensor]| Ok(vec![&s[0] / 2.0, &s[1] + 1i64]);
    while_loop(state, big, halved)
}

#[test]
fn every_run_decides() {
    let w = Tensor::new([2.0f32]).requires_grad_();
    let graph = trace(|x| program(x, &w), &[Spec::new([None], DType::Float32)]).unwrap();
    let bytes = sampan_io::onnx::model::to_bytes(&onnx::to_model(&graph, &Options::default()).unwrap()).unwrap();
    let model = onnx::from_bytes(&bytes).unwrap();
    let traced = model.graph().unwrap();
    let folder = std::env::temp_dir().join(format!("sampan-flow-{}", std::process::id()));
    paddle::save(&graph, folder.join("net"), &[]).unwrap();
    let saved = paddle::load(folder.join("net")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for input in [vec![3.0f32], vec![-1.0, -2.0, 0.5], vec![-200.0], vec![0.25, 0.25]] {
        let x = Tensor::new(input);
        let expected = program(&[x.clone()], &w).unwrap();
        for found in
            [graph.run(&[x.clone()]), model.run(&[x.clone()]), traced.run(&[x.clone()]), saved.run(&[x.clone()])]
        {
            let found = found.unwrap();
            assert_eq!(found[0].to_vec::<f32>(), expected[0].to_vec::<f32>());
            assert_eq!(found[1].to_vec::<i64>(), expected[1].to_vec::<i64>());
        }
        let grad = |f: &dyn Fn() -> Vec<Tensor>| {
            w.clear_grad();
            f()[0].sum(()).backward();
            w.grad().map(|g| g.to_vec::<f32>())
        };
        if positive(&x).item().to_f64() != 0.0 {
            assert_eq!(grad(&|| graph.run(&[x.clone()]).unwrap()), grad(&|| program(&[x.clone()], &w).unwrap()));
        }
    }
    // A graph that was read is a program like any other.
    let again = trace(|x| traced.run(x), &[Spec::new([None], DType::Float32)]).unwrap();
    assert_eq!(again.run(&[Tensor::new([-200.0f32])]).unwrap()[1].to_vec::<i64>(), [0]);
}

#[test]
fn what_cannot_be_is_said() {
    let spec = || [Spec::new([None], DType::Float32)];
    let error = |f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>| trace(f, &spec()).unwrap_err().to_string();
    let shapes = error(&|x| cond(&positive(&x[0]), || Ok(vec![x[0].sum(())]), || Ok(vec![x[0].clone()])));
    assert!(shapes.contains("result 0 of the two branches differs"), "{shapes}");
    let grows = error(&|x| {
        let join = |s: &[Tensor]| Ok(vec![s[0].tile([2i64])]);
        while_loop(vec![x[0].clone()], |s| Ok(positive(&s[0])), join)
    });
    assert!(grows.contains("changes what variable 0 is like"), "{grows}");
    let graph = trace(|x| cond(&positive(&x[0]), || Ok(vec![x[0].relu()]), || Ok(vec![-&x[0]])), &spec()).unwrap();
    assert_eq!(graph.calls.iter().filter(|c| c.op.name == "cond_block").count(), 1);
}
