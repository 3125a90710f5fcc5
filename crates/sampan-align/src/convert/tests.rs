//! What is paired, what is turned, and what is refused.

use super::*;

fn ramp(shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
    Tensor::try_from_slice(&values, shape).unwrap()
}

/// A side of keys, shapes and classes, with values.
fn side(convention: Convention, weights: &[(&str, &[usize], &str)]) -> Structure {
    let weights =
        weights.iter().map(|&(key, shape, class)| Weight::of(key, ramp(shape), Kind::of_class(class))).collect();
    Structure { name: convention.to_string(), convention: Some(convention), ordered: true, weights }
}

fn go(source: &Structure, target: &Structure, mapping: &str) -> Result<Converted> {
    convert(source, target, &Mapping::parse(mapping).unwrap(), false)
}

fn message(source: &Structure, target: &Structure, mapping: &str) -> String {
    go(source, target, mapping).unwrap_err().to_string()
}

const BLOCK: &[(&str, &[usize], &str)] = &[
    ("conv.weight", &[4, 3, 3, 3], ""),
    ("bn.weight", &[4], ""),
    ("bn.bias", &[4], ""),
    ("bn.running_mean", &[4], ""),
    ("bn.running_var", &[4], ""),
    ("bn.num_batches_tracked", &[], ""),
    ("fc.weight", &[5, 4], ""),
    ("fc.bias", &[5], ""),
];

#[test]
fn statistics_are_renamed_matrices_turned_and_counters_dropped() {
    let paddle = side(
        Convention::Paddle,
        &[
            ("stem.0.weight", &[4, 3, 3, 3], "Conv2D"),
            ("stem.1.weight", &[4], "BatchNorm2D"),
            ("stem.1.bias", &[4], "BatchNorm2D"),
            ("stem.1._mean", &[4], "BatchNorm2D"),
            ("stem.1._variance", &[4], "BatchNorm2D"),
            ("head.weight", &[4, 5], "Linear"),
            ("head.bias", &[5], "Linear"),
        ],
    );
    let torch = side(Convention::Torch, BLOCK);
    let there = go(&torch, &paddle, "").unwrap();
    assert_eq!(there.report.dropped[0].0, "bn.num_batches_tracked");
    assert_eq!(there.report.rows.len(), 7);
    let head = &there.state.iter().find(|(key, _)| key == "head.weight").unwrap().1;
    assert_eq!(head.to_vec::<f32>()[..3], [0., 4., 8.]);
    let mut state = paddle.clone();
    state
        .weights
        .iter_mut()
        .for_each(|w| w.tensor = there.state.iter().find(|(k, _)| *k == w.key).map(|(_, t)| t.clone()));
    let back = go(&state, &torch, "").unwrap();
    for ((key, tensor), weight) in back.state.iter().zip(&torch.weights) {
        assert_eq!(key, &weight.key);
        if !key.ends_with("tracked") {
            assert_eq!(tensor.to_vec::<f32>(), weight.tensor.as_ref().unwrap().to_vec::<f32>(), "{key}");
        }
    }
    assert_eq!(back.report.made.len(), 1);
}

#[test]
fn a_square_matrix_follows_its_class() {
    let torch = side(Convention::Torch, &[("a.weight", &[3, 3], "")]);
    for (class, first) in [("Linear", [0., 3., 6.]), ("Embedding", [0., 1., 2.])] {
        let net = side(Convention::Paddle, &[("a.weight", &[3, 3], class)]);
        assert_eq!(go(&torch, &net, "").unwrap().state[0].1.to_vec::<f32>()[..3], first, "{class}");
    }
    let net = side(Convention::Paddle, &[("a.weight", &[3, 3], "MyOwn")]);
    assert!(message(&torch, &net, "").contains("nothing tells which\n  a.weight"));
    assert_eq!(go(&torch, &net, "transpose a.weight").unwrap().report.rows[0].how, "transposed");
    assert_eq!(go(&torch, &net, "plain a.*").unwrap().report.rows[0].how, "as it is");
}

#[test]
fn projections_are_taken_apart_and_put_together() {
    let torch = side(
        Convention::Torch,
        &[
            ("m.in_proj_weight", &[6, 2], "MultiheadAttention"),
            ("m.in_proj_bias", &[6], "MultiheadAttention"),
            ("m.out_proj.weight", &[2, 2], "NonDynamicallyQuantizableLinear"),
            ("m.out_proj.bias", &[2], "NonDynamicallyQuantizableLinear"),
        ],
    );
    let names = ["q_proj", "k_proj", "v_proj", "out_proj"];
    let keys: Vec<(String, Vec<usize>)> =
        names.iter().flat_map(|n| [(format!("m.{n}.weight"), vec![2, 2]), (format!("m.{n}.bias"), vec![2])]).collect();
    let paddle: Vec<(&str, &[usize], &str)> = keys.iter().map(|(k, s)| (k.as_str(), &s[..], "Linear")).collect();
    let mut paddle = side(Convention::Paddle, &paddle);
    let there = go(&torch, &paddle, "").unwrap();
    assert_eq!(there.state[2].0, "m.k_proj.weight");
    assert_eq!(there.state[2].1.to_vec::<f32>(), [4., 6., 5., 7.]);
    paddle.weights.iter_mut().zip(&there.state).for_each(|(w, (_, t))| w.tensor = Some(t.clone()));
    let back = go(&paddle, &torch, "").unwrap();
    assert_eq!(back.state[0].1.to_vec::<f32>(), ramp(&[6, 2]).to_vec::<f32>());
    assert_eq!(back.report.rows[0].sources.len(), 3);
}

#[test]
fn what_could_be_several_is_the_users_choice() {
    let linear = |names: &[&'static str]| -> Vec<(&'static str, &'static [usize], &'static str)> {
        names.iter().map(|&n| (n, &[3usize, 3][..], "Linear")).collect()
    };
    let own = |mut side: Structure| {
        side.weights.iter_mut().enumerate().for_each(|(i, w)| w.tensor = Some(noise(&[3, 3], i)));
        side
    };
    let torch = own(side(Convention::Torch, &linear(&["a.weight", "b.weight"])));
    let paddle = own(side(Convention::Paddle, &linear(&["x.weight", "y.weight", "z.weight"])));
    assert!(message(&torch, &paddle, "").contains("y (weight [3, 3]) could be a or b"));
    let chosen = go(&torch, &paddle, "a = z\nb = x\n- = y").unwrap();
    assert_eq!(chosen.report.left, ["y.weight"]);
    assert_eq!(chosen.report.rows[0].target, "x.weight");
    assert!(message(&torch, &paddle, "a = z\nb = x").contains("y.weight"));
    assert!(message(&torch, &paddle, "a = nowhere").contains("which the target lacks"));
    assert!(message(&torch, &paddle, "a = x\nb = y\n- = z\nc = x").contains("line 4"));
}

#[test]
fn names_decide_among_neighbours_in_another_order() {
    let rows = |names: [&'static str; 3]| names.map(|n| (n, &[3usize, 3][..], "Linear"));
    let torch = side(Convention::Torch, &rows(["attn.k.weight", "attn.q.weight", "attn.v.weight"]));
    let paddle = side(Convention::Paddle, &rows(["mixer.q.weight", "mixer.k.weight", "mixer.v.weight"]));
    let report = go(&torch, &paddle, "").unwrap().report;
    for row in &report.rows {
        assert_eq!(row.sources[0].split('.').nth(1), row.target.split('.').nth(1));
    }
}

#[test]
fn a_common_beginning_is_left_out() {
    let torch = side(Convention::Torch, &[("module.a.weight", &[2, 3], ""), ("module.b.weight", &[2, 3], "")]);
    let mut paddle = side(Convention::Paddle, &[("b.weight", &[3, 2], "Linear"), ("a.weight", &[3, 2], "Linear")]);
    paddle.ordered = false;
    let report = go(&torch, &paddle, "").unwrap().report;
    assert!(report.notes[0].contains("module."));
    assert!(report.rows.iter().all(|r| r.sources[0] == format!("module.{}", r.target)));
}

#[test]
fn without_a_convention_matrices_are_not_touched() {
    let mut torch = side(Convention::Torch, &[("a.weight", &[3, 3], "")]);
    torch.convention = None;
    let paddle = side(Convention::Paddle, &[("a.weight", &[3, 3], "Linear")]);
    assert!(message(&torch, &paddle, "").contains("does not tell"));
}

/// A matrix whose numbers are its own.
fn noise(shape: &[usize], seed: usize) -> Tensor {
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|i| ((i + seed * 31) as f32 * 0.37).sin()).collect();
    Tensor::try_from_slice(&values, shape).unwrap()
}

fn tied(convention: Convention, names: &[(&str, &str, usize)]) -> Structure {
    let weights =
        names.iter().map(|&(key, class, seed)| Weight::of(key, noise(&[5, 4], seed), Kind::of_class(class))).collect();
    Structure { name: convention.to_string(), convention: Some(convention), ordered: true, weights }
}

#[test]
fn a_tensor_under_two_names_needs_one_partner() {
    let torch = tied(Convention::Torch, &[("wte.weight", "Embedding", 1), ("head.weight", "Linear", 1)]);
    let paddle = tied(Convention::Paddle, &[("tok.weight", "Embedding", 2)]);
    let there = go(&torch, &paddle, "").unwrap();
    assert_eq!(there.report.dropped, [("head.weight".to_string(), "another name of wte.weight".to_string())]);
    let back = go(&paddle, &torch, "").unwrap();
    assert_eq!(back.state.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["wte.weight", "head.weight"]);
    assert_eq!(back.state[0].1.to_bytes(), back.state[1].1.to_bytes());
    // Two that are not one are still one too many.
    let apart = tied(Convention::Torch, &[("wte.weight", "Embedding", 1), ("head.weight", "Linear", 3)]);
    assert!(message(&apart, &paddle, "").contains("head.weight"));
    let stack = tied(Convention::Torch, &[("l.0.weight", "Embedding", 1), ("l.1.weight", "Embedding", 1)]);
    assert!(go(&stack, &paddle, "").is_err() && go(&paddle, &stack, "").is_err());
    let zeros = |key: &str| Weight::of(key, Tensor::zeros([5usize, 4], DType::Float32), Kind::Embedding);
    let constant = Structure { weights: vec![zeros("a.weight"), zeros("b.weight")], ..torch };
    assert!(go(&constant, &paddle, "").is_err());
}

#[test]
fn what_a_mapping_leaves_keeps_the_targets_values() {
    let source = tied(Convention::Paddle, &[("a.weight", "Embedding", 1)]);
    let mut target = tied(Convention::Paddle, &[("a.weight", "Embedding", 2), ("b.weight", "Embedding", 3)]);
    let done = go(&source, &target, "- = b").unwrap();
    assert_eq!(done.report.left, ["b.weight"]);
    assert_eq!(done.state[1].1.to_bytes(), noise(&[5, 4], 3).to_bytes());
    assert!(done.report.to_string().contains("with the target's own values:\n  b.weight"));
    target.weights[1].tensor = None;
    assert!(message(&source, &target, "- = b").contains("has no values for it"));
}
