//! A scene as SVG.

use super::layout::RISE;
use super::scene::{LINE, Node, PAD, Scene, width};
use std::fmt::Write;

const MARGIN: f64 = 16.0;

/// A name from a file is text here, whatever it holds.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // Braces mark the places of the page; other signs are not allowed in XML.
            '{' => safe += "&#123;",
            '}' => safe += "&#125;",
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

const STYLE: &str = "
text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c2733}
.t{font-weight:bold}.s{font-size:10px;fill:#51606f}.w{fill:#40505f}
.e{fill:none;stroke:#8796a5;stroke-width:1.2}
rect{stroke:#5b6b7b;stroke-width:1;fill:#f4f6f8}
.layer>rect{fill:#cfe2f7}.norm>rect{fill:#d8efd9}.pool>rect{fill:#e4dbf3}.bend>rect{fill:#fbe3c4}.move>rect{fill:#e9ecef}
.port>rect{fill:#fff;stroke-width:1.6}.flow>rect{fill:#fdf6e3}.r{fill:#fffdf7;stroke-dasharray:4 3}
.found>rect{stroke:#d33;stroke-width:3}
";

/// The whole picture.
pub(super) fn document(scene: &Scene) -> String {
    let (w, h) = (scene.layout.width + 2.0 * MARGIN, scene.layout.height + 2.0 * MARGIN);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\">\
         <style>{STYLE}</style><defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"#8796a5\"/></marker></defs>\
         <rect width=\"100%\" height=\"100%\" style=\"fill:#fff;stroke:none\"/>"
    );
    draw(&mut out, scene, MARGIN, MARGIN);
    out += "</svg>\n";
    out
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escaped(words));
}

fn draw(out: &mut String, scene: &Scene, dx: f64, dy: f64) {
    let layout = &scene.layout;
    let corner = |n: usize| (layout.at[n].0 + dx, layout.at[n].1 + dy);
    // Lines enter a box side by side, in the order in which they come.
    let mut entering: Vec<Vec<(f64, usize)>> = vec![Vec::new(); scene.boxes.len()];
    for (k, (edge, route)) in scene.edges.iter().zip(&layout.routes).enumerate() {
        let last = route.as_ref().and_then(|r| r.last().copied()).unwrap_or(layout.at[edge.from]);
        entering[edge.to].push((last.0, k));
    }
    let mut place = vec![0.0; scene.edges.len()];
    for (node, list) in scene.boxes.iter().zip(&mut entering) {
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
        let step = (node.width / (list.len() + 1) as f64).min(22.0);
        for (i, (_, k)) in list.iter().enumerate() {
            place[*k] = (i as f64 - (list.len() as f64 - 1.0) / 2.0) * step;
        }
    }
    for ((edge, route), place) in scene.edges.iter().zip(&layout.routes).zip(&place) {
        let (from, to) = (corner(edge.from), corner(edge.to));
        let end = (to.0 + place, to.1);
        match route {
            Some(points) => {
                let begin = (from.0, from.1 + scene.boxes[edge.from].height);
                let points = points.iter().map(|p| (p.0 + dx, p.1 + dy));
                line(out, begin, points, end);
            }
            None => {
                // Too far away to follow: its name stands at the end.
                line(out, (end.0, end.1 - RISE / 2.0), std::iter::empty(), end);
                text(
                    out,
                    end.0 + 4.0,
                    end.1 - RISE / 2.0 + 4.0,
                    "s",
                    &format!("from {}", scene.boxes[edge.from].title),
                );
            }
        }
    }
    for (node, &(x, y)) in scene.boxes.iter().zip(&layout.at) {
        one(out, node, x + dx, y + dy);
    }
}

/// A line from box to box, straight down between layers.
fn line(out: &mut String, begin: (f64, f64), points: impl Iterator<Item = (f64, f64)>, end: (f64, f64)) {
    let _ = write!(out, "<path class=\"e\" marker-end=\"url(#a)\" d=\"M{:.1} {:.1}", begin.0, begin.1);
    let mut last = begin;
    for point in points.chain(std::iter::once(end)) {
        if (point.0 - last.0).abs() < 0.5 {
            let _ = write!(out, "L{:.1} {:.1}", point.0, point.1);
        } else {
            let middle = (last.1 + point.1) / 2.0;
            let _ = write!(out, "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", last.0, point.0, point.0, point.1);
        }
        last = point;
    }
    out.push_str("\"/>");
}

fn one(out: &mut String, node: &Node, x: f64, y: f64) {
    let left = x - node.width / 2.0;
    let round = if node.kind == "port" { 11.0 } else { 4.0 };
    let _ = write!(
        out,
        "<g class=\"n {}\"><title>{}\n{}</title><rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round}\"/>",
        node.kind,
        escaped(&node.title),
        escaped(node.about.trim_end()),
        node.width,
        node.height
    );
    text(out, x - width(&node.title) / 2.0, y + LINE, "t", &node.title);
    for (i, words) in node.lines.iter().enumerate() {
        text(out, left + PAD, y + LINE * (i + 2) as f64 - 1.0, "w", words);
    }
    let top = y + LINE * (1 + node.lines.len()) as f64 + PAD;
    let mut at = left + PAD;
    let whole: f64 = node.inside.iter().map(|(name, s)| s.layout.width.max(width(name)) + 4.0 * PAD).sum();
    at += ((node.width - 2.0 * PAD - whole) / 2.0).max(0.0);
    for (name, scene) in &node.inside {
        let wide = scene.layout.width.max(width(name)) + 2.0 * PAD;
        let high = scene.layout.height + LINE + 2.0 * PAD;
        let _ = write!(
            out,
            "<rect class=\"r\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"4\"/>",
            at + PAD
        );
        text(out, at + 2.0 * PAD, top + LINE - 3.0, "s", name);
        let middle = (wide - 2.0 * PAD - scene.layout.width) / 2.0;
        draw(out, scene, at + 2.0 * PAD + middle, top + LINE + PAD / 2.0);
        at += wide + 2.0 * PAD;
    }
    out.push_str("</g>");
    if !node.gives.is_empty() {
        text(out, x + 5.0, y + node.height + 12.0, "s", &node.gives);
    }
}
