//! Recurrent layers. The usual ones are one call of ours; the others go step by step.

use crate::given::Given;
use crate::graph::{Graph, Id};
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, call, many, op, shape_of};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor, Value};
use sampan_io::onnx::model::Attr;

/// One layer in one direction.
struct Cell<'a> {
    kind: &'a str,
    /// The weights of the input, of the state, and their biases, `[gates · units, …]`.
    w: Tensor,
    r: Tensor,
    wb: Tensor,
    rb: Tensor,
    peepholes: Option<Tensor>,
    activations: Vec<(String, f64, f64)>,
    clip: Option<f64>,
    units: i64,
    linear_before_reset: bool,
    input_forget: bool,
}

fn activation(name: &str, alpha: f64, beta: f64, x: &Tensor) -> Result<Tensor> {
    let alpha_or = |default: f64| if alpha.is_nan() { default } else { alpha };
    let beta_or = |default: f64| if beta.is_nan() { default } else { beta };
    match name.to_ascii_lowercase().as_str() {
        "sigmoid" => op!("sigmoid", x),
        "tanh" => op!("tanh", x),
        "relu" => op!("relu", x),
        "softsign" => op!("softsign", x),
        "softplus" => op!("softplus", x),
        "leakyrelu" => op!("leaky_relu", x, alpha_or(0.01)),
        "thresholdedrelu" => op!("thresholded_relu", x, alpha_or(1.0)),
        "hardsigmoid" => op!("hardsigmoid", x, alpha_or(0.2), beta_or(0.5)),
        "elu" => op!("elu", x, alpha_or(1.0)),
        "affine" => op!("scale", x, alpha_or(1.0), beta_or(0.0)),
        "scaledtanh" => op!("multiply", op!("tanh", op!("multiply", x, beta_or(1.0))?)?, alpha_or(1.0)),
        other => Err(sampan_core::Error::invalid(format!("there is no activation {other:?}")).in_op("onnx")),
    }
}

/// Row `i` along the first axis, without it.
fn at(t: &Tensor, i: usize) -> Result<Tensor> {
    op!("squeeze", op!("slice", t, [0i64], [i as i64], [i as i64 + 1])?, 0i64)
}

impl Cell<'_> {
    fn act(&self, i: usize, x: &Tensor) -> Result<Tensor> {
        let x = match self.clip {
            Some(c) => op!("clip", x, -c, c)?,
            None => x.clone(),
        };
        let (name, alpha, beta) = &self.activations[i];
        activation(name, *alpha, *beta, &x)
    }

    /// The part of one gate in gates that lie side by side.
    fn gate(&self, all: &Tensor, i: i64) -> Result<Tensor> {
        let axis = all.ndim() as i64 - 1;
        op!("slice", all, [axis], [i * self.units], [(i + 1) * self.units])
    }

    fn step(&self, x: &Tensor, h: &Tensor, c: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
        let from_x = op!("add", op!("matmul", x, &self.w, false, true)?, &self.wb)?;
        let from_h = op!("add", op!("matmul", h, &self.r, false, true)?, &self.rb)?;
        let sum = |i| op!("add", self.gate(&from_x, i)?, self.gate(&from_h, i)?);
        match self.kind {
            "RNN" => Ok((self.act(0, &sum(0)?)?, None)),
            "GRU" => {
                let (z, r) = (self.act(0, &sum(0)?)?, self.act(0, &sum(1)?)?);
                let back = match self.linear_before_reset {
                    true => op!("multiply", &r, self.gate(&from_h, 2)?)?,
                    false => {
                        let rows = 2 * self.units;
                        let part = op!("slice", &self.r, [0i64], [rows], [rows + self.units])?;
                        let product = op!("matmul", op!("multiply", &r, h)?, part, false, true)?;
                        op!("add", product, self.gate(&self.rb, 2)?)?
                    }
                };
                let new = self.act(1, &op!("add", self.gate(&from_x, 2)?, back)?)?;
                let y = op!("add", op!("multiply", op!("add", op!("neg", &z)?, 1.0)?, new)?, op!("multiply", &z, h)?)?;
                Ok((y, None))
            }
            _ => {
                // Gates in the order input, output, forget, cell.
                let c = c.expect("an LSTM has a cell state");
                let seen = |i: i64, gate: Tensor, c: &Tensor| match &self.peepholes {
                    Some(p) => op!("add", gate, op!("multiply", self.gate(p, i)?, c)?),
                    None => Ok(gate),
                };
                let input = self.act(0, &seen(0, sum(0)?, c)?)?;
                let forget = match self.input_forget {
                    true => op!("add", op!("neg", &input)?, 1.0)?,
                    false => self.act(0, &seen(2, sum(2)?, c)?)?,
                };
                let new = self.act(1, &sum(3)?)?;
                let next = op!("add", op!("multiply", forget, c)?, op!("multiply", input, new)?)?;
                let output = self.act(0, &seen(1, sum(1)?, &next)?)?;
                let (name, alpha, beta) = &self.activations[2];
                Ok((op!("multiply", output, activation(name, *alpha, *beta, &next)?)?, Some(next)))
            }
        }
    }
}

fn defaults(kind: &str) -> &'static [&'static str] {
    match kind {
        "RNN" => &["Tanh"],
        "GRU" => &["Sigmoid", "Tanh"],
        _ => &["Sigmoid", "Tanh", "Tanh"],
    }
}

/// Our order of the gates, by the numbers that ONNX has for them.
pub(super) fn gates(kind: &str) -> &'static [i64] {
    match kind {
        "RNN" => &[0],
        "GRU" => &[1, 0, 2],
        _ => &[0, 2, 3, 1],
    }
}

/// The rows of gates in another order.
fn reordered(t: &Tensor, order: &[i64], units: i64) -> Result<Tensor> {
    if order.len() == 1 {
        return Ok(t.clone());
    }
    let part = |&g: &i64| op!("slice", t, [0i64], [g * units], [(g + 1) * units]);
    op!("concat", order.iter().map(part).collect::<Result<Vec<_>>>()?, 0i64)
}

fn recurrent(c: &Call, kind: &str) -> Result<Vec<Tensor>> {
    let layout = c.int("layout", 0);
    let swap = |t: &Tensor| if layout == 1 { op!("transpose", t, swapped(t.ndim())) } else { Ok(t.clone()) };
    let x = swap(c.x(0)?)?;
    let (w, r) = (c.x(1)?, c.x(2)?);
    if x.ndim() != 3 || w.ndim() != 3 || r.ndim() != 3 {
        return Err(c.wrong("the input, W and R have three axes"));
    }
    let (steps, batch) = (x.shape()[0], x.shape()[1] as i64);
    let (directions, units) = (w.shape()[0], r.shape()[2] as i64);
    let n = defaults(kind).len();
    let words = c.texts("activations").filter(|a| a.len() == n * directions);
    let words = words.unwrap_or_else(|| defaults(kind).repeat(directions).iter().map(|s| s.to_string()).collect());
    let (alphas, betas) =
        (c.floats("activation_alpha").unwrap_or_default(), c.floats("activation_beta").unwrap_or_default());
    let clip = c.attr("clip").map(|_| c.float("clip", 0.0));
    let reverse = c.text("direction", "forward") == "reverse";
    let state = |i: usize| match c.maybe(i) {
        Some(t) => swap(t),
        None => op!("full", [directions as i64, batch, units], 0.0, x.dtype()),
    };
    let lengths = c.maybe(4);
    let plain = words.chunks(n).all(|a| a.iter().zip(defaults(kind)).all(|(a, d)| a == d));
    let usual = plain && clip.is_none() && c.maybe(7).is_none() && !c.flag("input_forget") && !reverse;
    let rows = gates(kind).len() as i64 * units;
    let bias = |d: usize, half: i64| match c.maybe(3) {
        Some(b) => op!("slice", at(b, d)?, [0i64], [half * rows], [(half + 1) * rows]),
        None => op!("full", [rows], 0.0, x.dtype()),
    };
    if usual && lengths.is_none() && (kind != "GRU" || c.flag("linear_before_reset")) && x.dtype().is_float() {
        let mut weights = Vec::new();
        for d in 0..directions {
            for t in [at(w, d)?, at(r, d)?, bias(d, 0)?, bias(d, 1)?] {
                weights.push(reordered(&t, gates(kind), units)?);
            }
        }
        let mut initial = Vec::new();
        if c.maybe(5).is_some() || c.maybe(6).is_some() {
            initial.push(state(5)?);
            if kind == "LSTM" {
                initial.push(state(6)?);
            }
        }
        let mode = if kind == "RNN" { "RNN_TANH" } else { kind };
        let direction = if directions == 2 { "bidirect" } else { "forward" };
        let named = vec![("mode", mode.into()), ("direction", direction.into()), ("time_major", true.into())];
        let mut out = call("rnn", vec![x.into(), Value::Tensors(initial), weights.into()], named)?;
        // Directions lie side by side there, and have an axis of their own here.
        let y = op!("reshape", &out[0], [steps as i64, batch, directions as i64, units])?;
        out[0] = op!("transpose", y, [0i64, 2, 1, 3])?;
        return finished(out, layout);
    }
    let (mut all, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..directions {
        let number = |list: &[f64], i: usize| list.get(d * n + i).copied().unwrap_or(f64::NAN);
        let activations = (0..n).map(|i| (words[d * n + i].clone(), number(&alphas, i), number(&betas, i))).collect();
        let cell = Cell {
            kind,
            w: at(w, d)?,
            r: at(r, d)?,
            wb: bias(d, 0)?,
            rb: bias(d, 1)?,
            peepholes: c.maybe(7).map(|p| at(p, d)).transpose()?,
            activations,
            clip,
            units,
            linear_before_reset: c.flag("linear_before_reset"),
            input_forget: c.flag("input_forget"),
        };
        let mut h = at(&state(5)?, d)?;
        let mut s = if kind == "LSTM" { Some(at(&state(6)?, d)?) } else { None };
        let backwards = reverse || d == 1;
        let mut outputs = vec![None; steps];
        for k in 0..steps {
            let t = if backwards { steps - 1 - k } else { k };
            let (mut next, mut cell_next) = cell.step(&at(&x, t)?, &h, s.as_ref())?;
            let mut shown = next.clone();
            if let Some(lengths) = lengths {
                // A sequence that has ended keeps its state, and gives zeros.
                let goes_on = op!("greater_than", op!("cast", lengths, DType::Int64)?, t)?;
                let goes_on = op!("reshape", goes_on, [batch, 1])?;
                next = op!("where_cond", &goes_on, next, &h)?;
                shown = op!("where_cond", &goes_on, shown, op!("zeros_like", &h)?)?;
                cell_next = match (cell_next, &s) {
                    (Some(new), Some(old)) => Some(op!("where_cond", &goes_on, new, old)?),
                    (other, _) => other,
                };
            }
            (h, s) = (next, cell_next);
            outputs[t] = Some(shown);
        }
        let outputs = outputs.into_iter().flatten().collect::<Vec<_>>();
        all.push(if outputs.is_empty() {
            op!("full", [0, batch, units], 0.0, x.dtype())?
        } else {
            op!("stack", outputs, 0i64)?
        });
        last_h.push(h);
        last_c.extend(s);
    }
    let mut out = vec![op!("stack", all, 1i64)?, op!("stack", last_h, 0i64)?];
    if !last_c.is_empty() {
        out.push(op!("stack", last_c, 0i64)?);
    }
    finished(out, layout)
}

/// The first two axes in the other order.
fn swapped(rank: usize) -> Vec<i64> {
    let mut perm = (0..rank as i64).collect::<Vec<_>>();
    perm.swap(0, 1);
    perm
}

/// Outputs with the batch in front, if it was.
fn finished(mut out: Vec<Tensor>, layout: i64) -> Result<Vec<Tensor>> {
    if layout == 1 {
        out[0] = op!("transpose", &out[0], [2i64, 0, 1, 3])?;
        for state in &mut out[1..] {
            *state = op!("transpose", &*state, swapped(shape_of(state).len()))?;
        }
    }
    Ok(out)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    match c.node.op.as_str() {
        kind @ ("RNN" | "GRU" | "LSTM") => many(recurrent(c, kind)?),
        _ => Ok(None),
    }
}

/// ONNX's order of the gates, by the numbers that ours have.
fn gates_back(kind: &str) -> Vec<i64> {
    let ours = gates(kind);
    (0..ours.len() as i64).map(|g| ours.iter().position(|o| *o == g).unwrap_or(0) as i64).collect()
}

/// The weights of one layer's directions as one tensor.
fn stacked(graph: &Graph, ids: &[Id], order: &[i64], units: i64) -> Result<Option<Tensor>> {
    let mut all = Vec::new();
    for &id in ids {
        let Some(weight) = graph.weight_of(id) else { return Ok(None) };
        all.push(reordered(&weight.tensor.detach(), order, units)?);
    }
    op!("stack", all, 0i64).map(Some)
}

fn write_rnn(w: &mut Writer, call: &Given) -> Result<bool> {
    let Some(id) = call.id("x") else { return Ok(false) };
    let mode = call.text("mode").unwrap_or("LSTM").to_string();
    let kind = if mode.starts_with("RNN") { "RNN" } else { mode.as_str() };
    let layers = call.int("num_layers").unwrap_or(1).max(0) as usize;
    let directions = if call.text("direction").is_some_and(|d| d != "forward") { 2 } else { 1 };
    let (weights, before) = (call.ids("weights"), call.ids("initial_states"));
    let dropped = call.bool("training") && call.float("dropout").unwrap_or(0.0) > 0.0;
    if layers == 0 || weights.len() != 4 * layers * directions || dropped {
        return Ok(false);
    }
    let Some(units) = w.known(weights[1]).dims.get(1).and_then(|d| d.fixed()).map(|n| n as i64) else {
        return Ok(false);
    };
    let (order, major) = (gates_back(kind), call.bool("time_major"));
    let turn = |w: &mut Writer, x: String| w.node("Transpose", vec![x], vec![("perm", Attr::Ints(vec![1, 0, 2]))]);
    let mut x = w.name(id)?;
    if !major {
        x = turn(w, x);
    }
    let lengths = match call.id("sequence_length") {
        Some(id) => w.cast_id(id, DType::Int32)?,
        None => String::new(),
    };
    let states = if kind == "LSTM" { 2 } else { 1 };
    let mut last: Vec<Vec<String>> = vec![Vec::new(); states];
    for layer in 0..layers {
        let of = |k: usize| (0..directions).map(|d| weights[(layer * directions + d) * 4 + k]).collect::<Vec<_>>();
        let graph = w.graph;
        let tensors = unheard(|| -> Result<Option<Vec<Tensor>>> {
            let mut all = Vec::new();
            for k in 0..4 {
                match stacked(graph, &of(k), &order, units)? {
                    Some(t) => all.push(t),
                    None => return Ok(None),
                }
            }
            let bias = op!("concat", vec![all[2].clone(), all[3].clone()], 1i64)?;
            Ok(Some(vec![all[0].clone(), all[1].clone(), bias]))
        })?;
        let Some(tensors) = tensors else { return Ok(false) };
        let mut inputs = vec![x];
        inputs.extend(tensors.iter().map(|t| w.tensor(t)));
        inputs.push(lengths.clone());
        for &state in &before {
            let (from, to) = (layer * directions, (layer + 1) * directions);
            let (from, to, axis) = (w.ints(&[from as i64])?, w.ints(&[to as i64])?, w.ints(&[0])?);
            let name = w.name(state)?;
            inputs.push(w.op("Slice", &[&name, &from, &to, &axis]));
        }
        let mut attrs = vec![("hidden_size", Attr::Int(units))];
        if directions == 2 {
            attrs.push(("direction", Attr::Text("bidirectional".into())));
        }
        if kind == "GRU" {
            attrs.push(("linear_before_reset", Attr::Int(1)));
        }
        if mode == "RNN_RELU" {
            attrs.push(("activations", Attr::Texts(vec!["Relu".into(); directions])));
        }
        let names = w.nodes(kind, inputs, attrs, states + 1);
        let y = w.node("Transpose", vec![names[0].clone()], vec![("perm", Attr::Ints(vec![0, 2, 1, 3]))]);
        let shape = w.ints(&[0, 0, directions as i64 * units])?;
        x = w.op("Reshape", &[&y, &shape]);
        for (list, name) in last.iter_mut().zip(&names[1..]) {
            list.push(name.clone());
        }
    }
    if !major {
        x = turn(w, x);
    }
    let mut names = vec![x];
    for list in last {
        names.push(if list.len() == 1 {
            list[0].clone()
        } else {
            w.node("Concat", list, vec![("axis", Attr::Int(0))])
        });
    }
    for (&id, name) in call.0.outputs.iter().zip(names) {
        w.bind(id, name);
    }
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if call.name() == "rnn" { write_rnn(w, call) } else { Ok(false) }
}
