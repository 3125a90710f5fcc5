//! Attention and recurrent layers.

use super::args::{float, maybe, tensor, text};
use crate::graph::{Arg, Dim, Known, Size};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{DType, Result, Value as Plain};

fn attention(w: &mut Exporter, call: &Given) -> Result<bool> {
    let ids = (call.id("query"), call.id("key"), call.id("value"));
    let (Some(q), Some(k), Some(v)) = ids else { return Ok(false) };
    let (kq, kk, kv) = (w.known(q).clone(), w.known(k).clone(), w.known(v).clone());
    let dropped = call.bool("training") && call.float("dropout_p").unwrap_or(0.0) > 0.0;
    let mask = call.id("attn_mask");
    let heads = |known: &Known| known.dims.get(2).copied();
    if kq.dims.len() != 4
        || heads(&kq) != heads(&kk)
        || dropped
        || call.bool("is_causal")
        || mask.is_some_and(|m| w.known(m).dtype == DType::Bool)
    {
        return Ok(false);
    }
    let turned = |known: &Known| {
        let mut known = known.clone();
        known.dims.swap(1, 2);
        known
    };
    let turn = |w: &mut Exporter, var: VarId, like: &Known| {
        w.emit("transpose", vec![("x", Value::Var(var)), ("perm", Value::Ints(vec![0, 2, 1, 3]))], like)
    };
    let mut t = Vec::new();
    for (id, known) in [(q, &kq), (k, &kk), (v, &kv)] {
        let var = w.var_of(id)?;
        t.push(turn(w, var, &turned(known))?);
    }
    let Dim::Fixed(width) = kq.dims[3] else { return Ok(false) };
    let scale = call.float("scale").unwrap_or(1.0 / (width as f64).sqrt());
    let mut scores = turned(&kq);
    scores.dims[3] = kk.dims[1];
    let scaled = vec![
        ("x", Value::Var(t[0])),
        ("scale", Value::Float(scale)),
        ("bias", Value::Float(0.0)),
        ("bias_after_scale", Value::Bool(true)),
    ];
    let q = w.emit("scale", scaled, &turned(&kq))?;
    let product = |x, y, turn| {
        vec![
            ("x", Value::Var(x)),
            ("y", Value::Var(y)),
            ("transpose_x", Value::Bool(false)),
            ("transpose_y", Value::Bool(turn)),
        ]
    };
    let mut s = w.emit("matmul", product(q, t[1], true), &scores)?;
    if let Some(mask) = mask {
        let mask = w.var_of(mask)?;
        s = w.emit("add", vec![("x", Value::Var(s)), ("y", Value::Var(mask))], &scores)?;
    }
    let p = w.emit("softmax", vec![("x", Value::Var(s)), ("axis", Value::Int(-1))], &scores)?;
    let mut result = turned(&kq);
    result.dims[3] = kv.dims[3];
    let y = w.emit("matmul", product(p, t[2], false), &result)?;
    w.give("transpose", vec![("x", Value::Var(y)), ("perm", Value::Ints(vec![0, 2, 1, 3]))], call.out())?;
    Ok(true)
}

fn rnn(w: &mut Exporter, call: &Given) -> Result<bool> {
    let Some(id) = call.id("x") else { return Ok(false) };
    let (mode, layers) = (call.text("mode").unwrap_or("LSTM").to_string(), call.int("num_layers").unwrap_or(1));
    let both = call.text("direction").is_some_and(|d| d != "forward");
    let Value::Vars(weights) = call.tensors(w, "weights")? else { return Ok(false) };
    let count = usize::try_from(layers * if both { 2 } else { 1 }).unwrap_or(0);
    if count == 0 || weights.len() != 4 * count {
        return Ok(false);
    }
    let (mut known, out) = (w.known(id).clone(), w.known(call.out()).clone());
    let major = call.bool("time_major");
    let mut x = w.var_of(id)?;
    let turn = |known: &Known| {
        let mut known = known.clone();
        known.dims.swap(0, 1);
        known
    };
    let perm = |x| vec![("x", Value::Var(x)), ("perm", Value::Ints(vec![1, 0, 2]))];
    if !major {
        known = turn(&known);
        x = w.emit("transpose", perm(x), &known)?;
    }
    let hidden = w.program.vars[weights[1]].dims[1];
    let states = if mode == "LSTM" { 2 } else { 1 };
    let Value::Vars(mut before) = call.tensors(w, "initial_states")? else { return Ok(false) };
    if before.is_empty() {
        let batch = usize::from(major);
        let shape = [Size::fixed(count as i64), Size::extent(id, batch), Size::fixed(hidden)];
        let batch_dim = w.known(id).dims[batch];
        let dims = vec![Dim::Fixed(count), batch_dim, Dim::Fixed(hidden.max(0) as usize)];
        let like = Known { dims, dtype: known.dtype, stop_gradient: true };
        for _ in 0..states {
            let shape = match batch_dim {
                Dim::Fixed(n) => Value::Ints(vec![count as i64, n as i64, hidden]),
                Dim::Free(_) => w.sizes(&shape)?,
            };
            let args = vec![("shape", shape), ("value", Value::Float(0.0)), ("dtype", Value::DType(Some(known.dtype)))];
            before.push(w.emit("full", args, &like)?);
        }
    }
    // All weights, then all biases.
    let cells = weights.chunks(4);
    let list = cells.clone().flat_map(|c| &c[..2]).chain(cells.flat_map(|c| &c[2..])).copied().collect();
    let nothing = w.number(0.0, &[], DType::UInt8)?;
    let features = *w.program.vars[x].dims.last().unwrap_or(&1);
    let mut args = vec![
        ("x", Value::Var(x)),
        ("pre_state", Value::Vars(before)),
        ("weight_list", Value::Vars(list)),
        ("dropout_state_in", Value::Var(nothing)),
        ("dropout_prob", Value::Float(call.float("dropout").unwrap_or(0.0))),
        ("is_bidirec", Value::Bool(both)),
        ("input_size", Value::Int(features)),
        ("hidden_size", Value::Int(hidden)),
        ("num_layers", Value::Int(layers)),
        ("mode", Value::Text(mode)),
        ("seed", Value::Int(0)),
        ("is_test", Value::Bool(!call.bool("training"))),
    ];
    args.extend(call.optional(w, "sequence_length", "sequence_length")?);
    let known = if major { out.clone() } else { turn(&out) };
    let y = if major { w.fresh(call.out(), "rnn") } else { w.emit_var("rnn", &known) };
    let after = call.0.outputs[1..].iter().map(|&id| w.fresh(id, "rnn_state")).collect();
    w.emit_to("rnn", args, vec![("out", vec![y]), ("state", after)])?;
    if !major {
        w.give("transpose", perm(y), call.out())?;
    }
    Ok(true)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    match call.name() {
        "scaled_dot_product_attention" => attention(w, call),
        "rnn" => rnn(w, call),
        _ => Ok(false),
    }
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    match op.schema.name {
        "rnn" => {
            let both = op.bool("is_bidirec", false);
            let list = op.vars("weight_list")?;
            if list.len() % 4 != 0 {
                return Ok(false);
            }
            let (weights, biases) = list.split_at(list.len() / 2);
            let cells = weights
                .chunks(2)
                .zip(biases.chunks(2))
                .flat_map(|(w, b)| w.iter().chain(b))
                .copied()
                .collect::<Vec<_>>();
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("initial_states", Arg::Tensors(r.ids(&op.vars("pre_state")?)?)),
                ("weights", Arg::Tensors(r.ids(&cells)?)),
                ("sequence_length", maybe(r, op, "sequence_length")?),
                ("mode", text(op.text("mode", "LSTM"))),
                ("num_layers", Arg::Plain(Plain::Int(op.int("num_layers")?))),
                ("direction", text(if both { "bidirect".into() } else { "forward".into() })),
                ("dropout", float(op, "dropout_prob")?),
                ("training", Arg::Plain(Plain::Bool(!op.bool("is_test", true)))),
                ("time_major", Arg::Plain(Plain::Bool(true))),
            ];
            let results = [op.results("out"), op.results("state")].concat();
            r.call("rnn", args, &results)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
