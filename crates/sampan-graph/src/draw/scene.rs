//! What is drawn of a graph: boxes with lines of text, some with graphs inside, and lines between them.

use super::layout::{Extent, Layout, layout};
use crate::graph::{Arg, Call, Dim, Graph, Id};
use sampan_core::{DType, Value};
use std::collections::HashMap;
use std::fmt::Write;

/// A graph that is ready to be drawn.
pub(super) struct Scene {
    pub boxes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub layout: Layout,
}

pub(super) struct Node {
    pub kind: &'static str,
    pub title: String,
    pub lines: Vec<String>,
    /// Everything that is known, for whoever asks.
    pub about: String,
    /// What it gives, written below it.
    pub gives: String,
    /// Graphs inside, with their names.
    pub inside: Vec<(&'static str, Scene)>,
    pub width: f64,
    pub height: f64,
}

pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
}

/// A letter's width and the height of a line.
pub(super) const LETTER: f64 = 7.3;
pub(super) const LINE: f64 = 16.0;
/// Around texts and around graphs inside of boxes.
pub(super) const PAD: f64 = 8.0;
const LONGEST: usize = 44;
/// Calls of blocks inside of blocks that are drawn.
const DEEPEST: usize = 8;

/// The width of a text; letters that are not Latin are wide.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(|c| if (c as u32) < 0x2e80 { LETTER } else { 2.0 * LETTER }).sum()
}

fn short(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain,
    }
}

fn shape(graph: &Graph, id: Id) -> String {
    let known = &graph.values[id];
    let extent = |d: &Dim| d.fixed().map_or("?".into(), |n| n.to_string());
    let dims = known.dims.iter().map(extent).collect::<Vec<_>>().join("×");
    let dims = if dims.is_empty() { "number".into() } else { dims };
    if known.dtype == DType::Float32 { dims } else { format!("{dims} {}", known.dtype) }
}

/// A number that a file may have as a float of 32 bits.
fn float(f: f64) -> String {
    let small = f as f32;
    let (text, size) = if f64::from(small) == f { (small.to_string(), f.abs()) } else { (f.to_string(), f.abs()) };
    match size != 0.0 && !(1e-4..1e7).contains(&size) {
        true if f64::from(small) == f => format!("{small:e}"),
        true => format!("{f:e}"),
        false => text,
    }
}

/// A plain argument in a few letters.
fn plain(value: &Value) -> Option<String> {
    let list = |items: Vec<String>| {
        let all_same = items.len() > 1 && items.windows(2).all(|p| p[0] == p[1]);
        if all_same { items[0].clone() } else { format!("[{}]", items.join(", ")) }
    };
    Some(match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => float(*f),
        Value::Str(s) => s.to_string(),
        Value::DType(d) => d.to_string(),
        Value::Ints(v) => list(v.iter().map(ToString::to_string).collect()),
        Value::Floats(v) => list(v.iter().map(|f| float(*f)).collect()),
        Value::List(v) => list(v.iter().map(plain).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// The colour of a box, by what it does.
fn kind(name: &str) -> &'static str {
    let any = |words: &[&str]| words.iter().any(|w| name.contains(w));
    match name {
        _ if any(&["conv", "linear", "matmul", "addmm", "attention", "rnn", "lstm", "gru", "embedding", "bmm"]) => {
            "layer"
        }
        _ if any(&["norm", "dropout"]) => "norm",
        _ if any(&[
            "relu", "sigmoid", "tanh", "gelu", "softmax", "swish", "silu", "elu", "hard", "mish", "softplus",
        ]) =>
        {
            "bend"
        }
        _ if any(&["pool", "mean", "sum", "max", "min", "arg"]) => "pool",
        _ if any(&[
            "shape",
            "flatten",
            "transpose",
            "concat",
            "split",
            "slice",
            "squeeze",
            "stack",
            "cast",
            "assign",
            "getitem",
        ]) =>
        {
            "move"
        }
        _ if any(&["cond_block", "while_block"]) => "flow",
        _ => "plain",
    }
}

fn call(graph: &Graph, weights: &HashMap<Id, usize>, call: &Call, depth: usize) -> Node {
    let mut lines = Vec::new();
    let mut settings = String::new();
    let mut about = String::new();
    let mut inside = Vec::new();
    for (param, arg) in call.op.params.iter().zip(&call.args) {
        let mut held = Vec::<usize>::new();
        let mut note = |id: Id| held.extend(weights.get(&id));
        match arg {
            Arg::Tensor(_) | Arg::Tensors(_) | Arg::List(_) => arg.for_each_id(&mut note),
            _ => {}
        }
        for &at in &held {
            let weight = &graph.weights[at];
            let name = if weight.shared { short(&weight.name) } else { param.name.to_string() };
            lines.push(format!("{name} {}", shape(graph, weight.value)));
            let _ = writeln!(about, "{} = {} {}", param.name, weight.name, shape(graph, weight.value));
        }
        match arg {
            Arg::Block(block) if depth < DEEPEST => inside.push((param.name, inner(block, depth + 1))),
            Arg::Block(block) => lines.push(format!("{}: {} calls", param.name, block.calls.len())),
            Arg::Plain(value) => {
                let Some(text) = plain(value) else { continue };
                let _ = writeln!(about, "{} = {text}", param.name);
                let usual = param.default.and_then(|d| plain(&d()));
                if usual.as_ref() != Some(&text) {
                    let _ = write!(settings, "{}{} {text}", if settings.is_empty() { "" } else { ", " }, param.name);
                }
            }
            Arg::Size(_) | Arg::Sizes(_) => {
                let _ = writeln!(about, "{} follows the sizes of the inputs", param.name);
            }
            _ => {}
        }
    }
    if !settings.is_empty() {
        lines.insert(0, short(&settings));
    }
    let shapes: Vec<String> = call.outputs.iter().map(|&id| shape(graph, id)).collect();
    let _ = writeln!(about, "gives {}", shapes.join(", "));
    if let Some(source) = &call.source {
        let _ = writeln!(about, "{source}");
    }
    let mut gives = shapes.first().cloned().unwrap_or_default();
    if shapes.len() > 1 {
        lines.push(short(&format!("gives {}", shapes.join(", "))));
        gives = String::new();
    }
    node(kind(call.op.name), call.op.name.into(), lines, about, gives, inside)
}

fn node(
    kind: &'static str,
    title: String,
    lines: Vec<String>,
    about: String,
    gives: String,
    inside: Vec<(&'static str, Scene)>,
) -> Node {
    let texts = std::iter::once(&title).chain(&lines).map(|t| width(t)).fold(0.0, f64::max);
    let side_by_side: f64 = inside.iter().map(|(name, s)| s.layout.width.max(width(name)) + 4.0 * PAD).sum();
    let tallest = inside.iter().map(|(_, s)| s.layout.height + LINE + 4.0 * PAD).fold(0.0, f64::max);
    let height = LINE * (1 + lines.len()) as f64 + PAD + tallest;
    Node { kind, title, lines, about, gives, inside, width: texts.max(side_by_side).max(40.0) + 2.0 * PAD, height }
}

/// The weight that a call does nothing but move.
fn moved(call: &Call, weights: &HashMap<Id, usize>) -> Option<usize> {
    let mut ids = Vec::new();
    call.args.iter().for_each(|a| a.for_each_id(&mut |id| ids.push(id)));
    let [one] = ids[..] else { return None };
    weights.get(&one).copied().filter(|_| kind(call.op.name) == "move")
}

/// What is drawn of a graph.
pub(super) fn scene(graph: &Graph) -> Scene {
    inner(graph, 0)
}

fn inner(graph: &Graph, depth: usize) -> Scene {
    let mut weights: HashMap<Id, usize> = graph.weights.iter().enumerate().map(|(i, w)| (w.value, i)).collect();
    let mut boxes = Vec::new();
    let mut edges: Vec<Edge> = Vec::new();
    let mut made: HashMap<Id, usize> = HashMap::new();
    for input in &graph.inputs {
        made.insert(input.value, boxes.len());
        let about = format!("input {}\n{}\n", input.name, shape(graph, input.value));
        boxes.push(node("port", short(&input.name), vec![], about, shape(graph, input.value), vec![]));
    }
    let mut link = |boxes: &[Node], made: &HashMap<Id, usize>, ids: &mut dyn FnMut(&mut dyn FnMut(Id))| {
        let to = boxes.len();
        let begin = edges.len();
        ids(&mut |id| {
            if let Some(&from) = made.get(&id)
                && edges[begin..].iter().all(|e| e.from != from)
            {
                edges.push(Edge { from, to });
            }
        });
    };
    for one in &graph.calls {
        // A weight in another shape is that weight.
        if let (Some(at), [id]) = (moved(one, &weights), &one.outputs[..]) {
            weights.insert(*id, at);
            continue;
        }
        link(&boxes, &made, &mut |f| one.args.iter().for_each(|a| a.for_each_id(&mut |id| f(id))));
        one.outputs.iter().for_each(|&id| _ = made.insert(id, boxes.len()));
        boxes.push(call(graph, &weights, one, depth));
    }
    for (name, &id) in graph.output_names().into_iter().zip(&graph.outputs) {
        link(&boxes, &made, &mut |f| f(id));
        let about = format!("output {name}\n{}\n", shape(graph, id));
        let lines = weights.get(&id).map(|&at| short(&graph.weights[at].name)).into_iter().collect();
        boxes.push(node("port", name, lines, about, String::new(), vec![]));
    }
    let extent = |n: &Node| {
        let label = if n.gives.is_empty() { 0.0 } else { width(&n.gives) * 0.85 + PAD };
        Extent { left: n.width / 2.0, right: (n.width / 2.0).max(label), height: n.height }
    };
    let extents: Vec<Extent> = boxes.iter().map(extent).collect();
    let pairs: Vec<(usize, usize)> = edges.iter().map(|e| (e.from, e.to)).collect();
    Scene { layout: layout(&extents, &pairs), boxes, edges }
}
