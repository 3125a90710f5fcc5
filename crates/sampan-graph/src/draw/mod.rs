//! Graphs as pictures: SVG, and a page that shows it and can be searched.
//!
//! ```
//! use sampan_core::DType;
//! use sampan_graph::{Spec, draw, trace};
//! let graph = trace(|x| Ok(vec![x[0].tanh()]), &[Spec::new([None, Some(2)], DType::Float32).named("x")])?;
//! assert!(draw::svg(&graph).contains("tanh") && draw::html(&graph, "net").starts_with("<!doctype html>"));
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod layout;
mod scene;
mod svg;

use crate::graph::Graph;

/// The graph as an SVG picture.
pub fn svg(graph: &Graph) -> String {
    svg::document(&scene::scene(graph))
}

/// The graph as a page that needs nothing else: it can be moved, made larger and searched, and a box says all it knows.
pub fn html(graph: &Graph, name: &str) -> String {
    let weights = graph.weights.iter().filter(|w| w.shared);
    let (count, elements) = weights.fold((0, 0), |(n, all), w| (n + 1, all + w.tensor.numel()));
    let facts = format!("{} calls, {count} parameters with {elements} elements", graph.calls.len());
    include_str!("page.html")
        .replace("{{name}}", &svg::escaped(name))
        .replace("{{facts}}", &facts)
        .replace("{{svg}}", &svg(graph))
}
