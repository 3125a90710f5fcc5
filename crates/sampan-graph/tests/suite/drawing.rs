//! Pictures of graphs.

use sampan_core::{DType, Tensor};
use sampan_graph::{Spec, cond, draw, trace};
use std::time::Instant;

/// The numbers after a word, such as the left sides of boxes.
fn numbers(svg: &str, before: &str) -> Vec<f64> {
    svg.split(before).skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
}

#[test]
fn names_are_text_and_shapes_are_there() {
    let w = Tensor::zeros([3, 5], DType::Float32);
    let spec = Spec::new([None, Some(3)], DType::Float32).named("<script>{{svg}}&'\"]]>\u{1}");
    let mut graph = trace(|x| Ok(vec![x[0].matmul(&w).relu()]), &[spec]).unwrap();
    graph.weights[0].shared = true;
    graph.weights[0].name = "w</title><b>".into();
    let (svg, page) = (draw::svg(&graph), draw::html(&graph, "</title><script>"));
    assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{1}'), "{svg}");
    assert_eq!(page.matches("<script").count(), 1, "the page has the one program of its own");
    assert!(svg.contains("?×5") && svg.contains("w&lt;/title&gt;&lt;b&gt; 3×5") && svg.contains(">matmul<"), "{svg}");
    assert!(page.contains(svg.trim()));
}

/// A deep graph with ways around: boxes of a layer do not overlap, and it does not take long.
#[test]
fn a_large_graph_is_drawn_at_once() {
    let net = |x: &[Tensor]| {
        let mut y = x[0].clone();
        let mut all = vec![];
        for i in 0..300 {
            let side = y.sigmoid() + 1.0;
            y = y.tanh() * side + &x[0];
            if i % 10 == 0 {
                all.push(y.exp());
            }
        }
        all.push(y);
        Ok(all)
    };
    let graph = trace(net, &[Spec::new([None], DType::Float32).named("x")]).unwrap();
    let begin = Instant::now();
    let svg = draw::svg(&graph);
    assert!(begin.elapsed().as_secs_f64() < 5.0, "{:?}", begin.elapsed());
    assert!(svg.contains("from x"), "a line too long to follow has a name at its end");
    let (x, y, w) = (numbers(&svg, "<rect x=\""), numbers(&svg, "\" y=\""), numbers(&svg, "\" width=\""));
    assert!(x.len() > 900 && x.iter().chain(&y).chain(&w).all(|n| n.is_finite()));
    // Attributes of a box stand in this order: x, y, width.
    let mut boxes: Vec<(i64, f64, f64)> = Vec::new();
    for part in svg.split("<rect x=\"").skip(1) {
        let fields: Vec<f64> = part.split('"').step_by(2).take(3).filter_map(|n| n.parse().ok()).collect();
        boxes.push(((fields[1] * 10.0) as i64, fields[0], fields[0] + fields[2]));
    }
    boxes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    for pair in boxes.windows(2).filter(|p| p[0].0 == p[1].0) {
        assert!(pair[0].2 < pair[1].1, "{pair:?} overlap");
    }
}

#[test]
fn branches_are_boxes_in_boxes() {
    let net = |x: &[Tensor]| {
        let pred = x[0].sum(()).greater_than(0.0);
        cond(&pred, || Ok(vec![x[0].exp()]), || Ok(vec![x[0].sin()]))
    };
    let graph = trace(net, &[Spec::new([None], DType::Float32).named("x")]).unwrap();
    let svg = draw::svg(&graph);
    for word in [">cond_block<", ">then<", ">otherwise<", ">exp<", ">sin<"] {
        assert!(svg.contains(word), "{word}: {svg}");
    }
    assert_eq!(svg.matches("class=\"r\"").count(), 2);
}
