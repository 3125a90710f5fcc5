//! What a trace keeps, and what it refuses.

use sampan_core::{DType, Result, Tensor, i, no_grad, random};
use sampan_graph::{Arg, Graph, Spec, trace};

fn any(rank: usize) -> Spec {
    Spec::new(std::iter::repeat_n(None, rank), DType::Float32)
}

fn traced(f: impl Fn(&Tensor) -> Tensor) -> Result<Graph> {
    trace(|x| Ok(vec![f(&x[0])]), &[any(2)])
}

fn names(graph: &Graph) -> Vec<&'static str> {
    graph.calls.iter().map(|c| c.op.name).collect()
}

/// The program and its graph agree on values and on the gradient of the input.
fn agrees(f: impl Fn(&Tensor) -> Tensor) -> Graph {
    let graph = traced(&f).unwrap();
    for shape in [[2, 4], [3, 6]] {
        let values = (0..shape[0] * shape[1]).map(|v| v as f32 * 0.25 - 1.0).collect::<Vec<_>>();
        let leaf = || Tensor::from_vec(values.clone(), shape).requires_grad_();
        let (x, y) = (leaf(), leaf());
        let (expected, found) = (f(&x), graph.run(&[y.clone()]).unwrap().remove(0));
        assert_eq!(expected.to_vec::<f32>(), found.to_vec::<f32>());
        assert_eq!(expected.shape(), found.shape());
        expected.sum(()).backward();
        found.sum(()).backward();
        assert_eq!(x.grad().map(|g| g.to_vec::<f32>()), y.grad().map(|g| g.to_vec::<f32>()));
    }
    graph
}

fn refusal(f: impl Fn(&Tensor) -> Tensor) -> String {
    traced(f).unwrap_err().to_string()
}

#[test]
fn sizes_follow_the_input() {
    random::own(0);
    agrees(|x| x.reshape([x.shape()[0] as i64 * 2, -1]).tanh());
    agrees(|x| {
        let (b, n) = (x.shape()[0] as i64, x.shape()[1] as i64);
        x.reshape([b, 2, n / 2]).transpose([1, 0, 2]).reshape([2 * b, n / 2])
            * Tensor::ones([2 * x.shape()[0], 1], DType::Float32)
    });
    // An extent of something computed, not of an input.
    let graph = agrees(|x| {
        let y = x.get(i![.., ..; 2]);
        y.reshape([(y.shape()[0] * y.shape()[1]) as i64]) * 2.0
    });
    assert!(graph.calls.iter().any(|c| matches!(c.arg("shape"), Some(Arg::Sizes(_)))));
    // A number among the numbers.
    agrees(|x| x * x.shape()[1] as i64);
}

#[test]
fn writes_become_values() {
    random::own(0);
    agrees(|x| {
        let mut y = x * 1.0;
        y.add_(1.0);
        let z = &y * 2.0;
        y.exp_();
        y + z
    });
    agrees(|x| {
        let mut y = x * 1.0;
        y.set(i![.., 1], 5.0).set(i![0], x.get(i![1]));
        y
    });
    // Through a view, which is cut by an index.
    agrees(|x| {
        let y = x * 1.0;
        let mut row = y.get(i![0]);
        row.multiply_(3.0);
        y * 2.0
    });
    // A view of what is written.
    agrees(|x| {
        let mut y = x * 1.0;
        let turned = y.transpose([1, 0]);
        y.multiply_(3.0);
        turned.sum(0)
    });
    let said = refusal(|x| {
        let y = x * 1.0;
        let mut turned = y.transpose([1, 0]);
        turned.multiply_(3.0);
        y * 2.0
    });
    assert!(said.contains("through a view"), "{said}");
}

#[test]
fn gradients_stop_where_they_did() {
    random::own(0);
    let graph = agrees(|x| x * 2.0 + (x * 3.0).detach());
    assert!(names(&graph).contains(&"detach"));
    agrees(|x| {
        let y = x * 3.0;
        y.set_stop_gradient(true);
        x * &y
    });
    let graph = agrees(|x| x + no_grad(|| x * 2.0));
    assert_eq!(graph.calls.iter().map(|c| c.no_grad).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn nothing_becomes_a_number_in_silence() {
    random::own(0);
    assert!(refusal(|x| if x.sum(()).item().to_f64() > 0.0 { x * 2.0 } else { x * 3.0 }).contains("`item`"));
    let w = Tensor::new([2.0f32]).requires_grad_();
    assert!(refusal(|x| x * w.item().to_f64()).contains("`item`"));
    assert!(refusal(|x| x * (&w * 2.0).item().to_f64()).contains("`item`"));
    let said = refusal(|x| x + Tensor::from_vec(vec![0.5f32; x.shape()[1]], [x.shape()[1]]));
    assert!(said.contains("rank") || said.contains("made anew"), "{said}");
    let said = refusal(|x| if x.shape()[0] % 8 == 3 { x.relu() } else { x.tanh() });
    assert!(said.contains("something else at another size"), "{said}");
    let said = refusal(|x| x * (1.0 / x.shape()[0] as f64));
    assert!(said.contains("fraction"), "{said}");
    // The same each time: a number among the lines of the program.
    let graph = agrees(|x| x * Tensor::new([0.5f32]));
    assert!(!graph.weights[0].shared);
    let graph = agrees(|x| x * &w);
    assert!(graph.weights[0].shared && graph.weights[0].tensor.is_same(&w));
}

#[test]
fn random_numbers_are_drawn_anew() {
    random::own(0);
    let graph = traced(|x| x + Tensor::randn(x.shape())).unwrap();
    let x = Tensor::zeros([2, 3], DType::Float32);
    let run = || random::with_state((3, 0), || graph.run(&[x.clone()]).unwrap().remove(0).to_vec::<f32>());
    assert_eq!(run(), run());
    assert_eq!(run(), random::with_state((3, 0), || Tensor::randn([2, 3]).to_vec::<f32>()));
}

#[test]
fn inputs_are_checked() {
    random::own(0);
    let graph = trace(|x| Ok(vec![x[0].relu()]), &[Spec::new([None, Some(4)], DType::Float32).named("image")]).unwrap();
    let said = graph.run(&[Tensor::zeros([2, 5], DType::Float32)]).unwrap_err().to_string();
    assert!(said.contains("`image` has shape [any, 4], got [2, 5]"), "{said}");
    assert!(
        graph.run(&[Tensor::zeros([2, 4], DType::Int64)]).unwrap_err().to_string().contains("is float32, got int64")
    );
    assert!(graph.run(&[]).unwrap_err().to_string().contains("takes 1 inputs (image), got 0"));
}

#[test]
fn extents_that_belong_together_are_found() {
    random::own(0);
    let graph = trace(|x| Ok(vec![&x[0] + &x[1]]), &[any(2), any(2)]).unwrap();
    let x = Tensor::ones([2, 3], DType::Float32);
    assert_eq!(graph.run(&[x.clone(), x]).unwrap()[0].to_vec::<f32>(), [2.0; 6]);
}

#[test]
fn calls_that_nobody_reads_are_left_out() {
    random::own(0);
    let graph = agrees(|x| {
        let _unread = x.exp();
        x.relu()
    });
    assert_eq!(names(&graph), ["relu"]);
}
