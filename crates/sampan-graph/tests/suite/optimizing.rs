//! Graphs for inference: fewer calls, the same results.

use sampan_core::{DType, Tensor, random};
use sampan_data::vision::models;
use sampan_graph::{Graph, Spec, paddle, trace};
use sampan_nn::{BatchNorm1D, Dropout, Layer, Linear, sequential};

fn close(a: &[Tensor], b: &[Tensor]) {
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let scale = b.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 2e-5 * scale, "{worst} of {scale}");
    }
}

fn names(graph: &Graph) -> Vec<&'static str> {
    graph.calls.iter().map(|c| c.op.name).collect()
}

/// The graph of a network whose statistics are no longer those it was made with.
fn lived(net: &dyn Layer, spec: Spec, shape: &[usize]) -> (Graph, Tensor) {
    random::own(3);
    let x = Tensor::randn(shape);
    net.train();
    for _ in 0..2 {
        net.call_all(&[x.clone()]).unwrap();
    }
    net.eval();
    (trace(|x| net.call_all(x), &[spec]).unwrap(), x)
}

#[test]
fn batch_norm_becomes_part_of_the_layer_before() {
    random::own(0);
    let image = || Spec::new([None, Some(3), None, None], DType::Float32);
    let (resnet, mobile) = (models::resnet18(), models::mobilenet_v3_small());
    for net in [&resnet as &dyn Layer, &mobile] {
        let (graph, x) = lived(net, image(), &[2, 3, 40, 48]);
        let fast = graph.for_inference().unwrap();
        assert!(!names(&fast).iter().any(|n| n.starts_with("batch_norm") || *n == "dropout"), "{:?}", names(&fast));
        assert!(fast.calls.len() <= graph.calls.len());
        close(&fast.run(&[x.clone()]).unwrap(), &graph.run(&[x.clone()]).unwrap());
        // As Paddle writes it: products and sums apart.
        let prefix = std::env::temp_dir().join(format!("sampan-optimize-{}", std::process::id())).join("net");
        paddle::save(&graph, &prefix, &[]).unwrap();
        let loaded = paddle::load(&prefix).unwrap();
        let fast = loaded.for_inference().unwrap();
        assert!(names(&fast).contains(&"linear") && !names(&fast).contains(&"batch_norm"), "{:?}", names(&fast));
        close(&fast.run(&[x.clone()]).unwrap(), &graph.run(&[x]).unwrap());
        std::fs::remove_dir_all(prefix.parent().unwrap()).unwrap();
    }
}

#[test]
fn what_is_read_elsewhere_stays() {
    random::own(0);
    let net = sequential![Linear::new(4, 3), BatchNorm1D::new(3), Dropout::new(0.5)];
    let (graph, x) = lived(&net, Spec::new([None, Some(4)], DType::Float32), &[5, 4]);
    let fast = graph.for_inference().unwrap();
    assert_eq!(names(&fast), ["linear"]);
    close(&fast.run(&[x.clone()]).unwrap(), &graph.run(&[x]).unwrap());
    // Both the product and its norm are results: neither is taken into the other.
    let (w, one) = (Tensor::new([[2.0f32], [3.0]]), Tensor::new([1.0f32]));
    let both = |x: &[Tensor]| {
        let y = x[0].linear(&w, None);
        Ok(vec![y.clone(), y.batch_norm(&one, &one)])
    };
    let graph = trace(both, &[Spec::new([None, Some(2)], DType::Float32)]).unwrap();
    assert_eq!(names(&graph.for_inference().unwrap()), ["linear", "batch_norm"]);
    // What draws random numbers goes on doing so.
    let x = Tensor::randn([5, 4]);
    let graph = trace(|x| Ok(vec![x[0].dropout(0.5)]), &[Spec::new([None, Some(4)], DType::Float32)]).unwrap();
    assert_eq!(names(&graph.for_inference().unwrap()), ["dropout"]);
    assert!(graph.for_inference().unwrap().run(&[x]).is_ok());
}
