//! Graphs that only run forward: what does not depend on the inputs is computed once, and batch normalisation becomes part of
//! the layer before it.

use crate::graph::{Arg, Call, Graph, Id, Known, Weight};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, OpDef};
use sampan_core::value::Args;
use sampan_core::{DType, Result, Tensor, Value, no_grad};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

impl Graph {
    /// The same results with fewer calls, for weights that stay as they are. Results may differ in the last digits.
    ///
    /// ```
    /// # use sampan_core::{DType, Tensor};
    /// # use sampan_graph::{Spec, trace};
    /// let w = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let graph = trace(|x| Ok(vec![x[0].matmul(&w.t().scale(2.0))]), &[Spec::new([None, Some(2)], DType::Float32)])?;
    /// assert_eq!(graph.for_inference()?.calls.len(), 1);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    pub fn for_inference(&self) -> Result<Graph> {
        no_grad(|| {
            let mut graph = self.clone();
            crate::quantize::turn(&mut graph)?;
            let mut pass = Pass::new(graph);
            pass.fold_constants()?;
            pass.join_bias()?;
            pass.fold_norms()?;
            crate::quantize::recognise(&mut pass.graph)?;
            pass.finish()
        })
    }
}

struct Pass {
    graph: Graph,
    /// The tensors that are there before the graph runs.
    held: HashMap<Id, Tensor>,
    /// Values that are other values.
    same: HashMap<Id, Id>,
    /// What was computed already, by op and arguments.
    computed: HashMap<String, Vec<Id>>,
    /// What was transposed, and how.
    turned: HashMap<Id, (Id, Vec<i64>)>,
    /// Weights of layers that compute with codes: they stay codes.
    coded: HashSet<Id>,
}

/// The calls of a chain: the one before and the one after, of which nobody else reads the value between.
struct Pair {
    first: usize,
    second: usize,
}

fn plain(v: impl Into<Value>) -> Arg {
    Arg::Plain(v.into())
}

fn is_true(arg: Option<&Arg>) -> bool {
    matches!(arg, Some(Arg::Plain(Value::Bool(true))))
}

fn set(call: &mut Call, name: &str, arg: Arg) {
    if let Some(at) = call.op.position(name) {
        call.args[at] = arg;
    }
}

fn id(call: &Call, name: &str) -> Option<Id> {
    if let Some(Arg::Tensor(id)) = call.arg(name) { Some(*id) } else { None }
}

impl Pass {
    fn new(graph: Graph) -> Pass {
        let held = graph.weights.iter().map(|w| (w.value, w.tensor.detach())).collect();
        // What is written at the end may be read by the next run, so it is no constant.
        let written = graph.writes.iter().map(|(t, _)| *t).collect::<Vec<_>>();
        let coded = coded(&graph);
        let mut pass =
            Pass { graph, held, same: HashMap::new(), computed: HashMap::new(), turned: HashMap::new(), coded };
        pass.held.retain(|id, _| !written.contains(id));
        pass
    }

    fn hold(&mut self, tensor: Tensor) -> Id {
        let dims = tensor.shape().iter().map(|&n| crate::graph::Dim::Fixed(n)).collect();
        let value = self.graph.add_value(Known { dims, dtype: tensor.dtype(), stop_gradient: true });
        self.keep(value, tensor);
        value
    }

    fn keep(&mut self, value: Id, tensor: Tensor) {
        self.graph.weights.push(Weight {
            name: format!("folded_{value}"),
            value,
            tensor: tensor.clone(),
            shared: false,
        });
        self.held.insert(value, tensor);
    }

    /// Computes what depends on weights alone, and leaves out what gives back what it was given.
    fn fold_constants(&mut self) -> Result<()> {
        for mut call in std::mem::take(&mut self.graph.calls) {
            call.args.iter_mut().for_each(|a| self.rename(a));
            let unturned = self.join_transposes(&mut call);
            if let Some(from) = unturned.or_else(|| idle(&call, &self.graph)) {
                self.same.insert(call.outputs[0], from);
                continue;
            }
            if let Some(known) = self.computed_before(&call) {
                self.same.extend(call.outputs.iter().copied().zip(known));
                continue;
            }
            match self.constant_args(&call) {
                Some(args) if !self.coded.contains(&call.outputs[0]) => {
                    let outputs = dispatch(call.op, args)?;
                    for (&id, t) in call.outputs.iter().zip(outputs) {
                        self.keep(id, t);
                    }
                }
                _ => self.graph.calls.push(call),
            }
        }
        Ok(())
    }

    /// The shape and dtype of a weight, of codes too.
    fn weight(&self, id: Id) -> Option<(Vec<usize>, DType)> {
        if let Some(w) = self.held.get(&id) {
            return Some((w.shape().to_vec(), w.dtype()));
        }
        let known = self.coded.contains(&id).then(|| &self.graph.values[id])?;
        Some((known.dims.iter().map(|d| d.fixed()).collect::<Option<_>>()?, known.dtype))
    }

    /// A transpose of what is one already becomes one of the tensor before; the tensor, if that is as it was.
    fn join_transposes(&mut self, call: &mut Call) -> Option<Id> {
        let (x, Some(Arg::Plain(Value::Ints(perm)))) = (id(call, "x")?, call.arg("perm")) else { return None };
        if call.op.name != "transpose" || perm.iter().any(|&p| p < 0) {
            return None;
        }
        let (from, perm) = match self.turned.get(&x) {
            Some((from, before)) => {
                (*from, perm.iter().map(|&p| before.get(p as usize).copied()).collect::<Option<Vec<_>>>()?)
            }
            None => (x, perm.to_vec()),
        };
        if perm.iter().enumerate().all(|(i, &p)| i as i64 == p) {
            return Some(from);
        }
        set(call, "x", Arg::Tensor(from));
        set(call, "perm", plain(Value::Ints(perm.iter().copied().collect())));
        self.turned.insert(call.outputs[0], (from, perm));
        None
    }

    /// What the same call gave before; a new one is remembered.
    fn computed_before(&mut self, call: &Call) -> Option<Vec<Id>> {
        if call.op.random || is_true(call.arg("training")) || call.args.iter().any(opaque) {
            return None;
        }
        let key = format!("{} {:?}", call.op.name, call.args);
        if let Some(known) = self.computed.get(&key).filter(|known| known.len() >= call.outputs.len()) {
            return Some(known.clone());
        }
        self.computed.insert(key, call.outputs.clone());
        None
    }

    fn rename(&self, arg: &mut Arg) {
        let now = |id: &mut Id| {
            while let Some(&other) = self.same.get(id) {
                *id = other;
            }
        };
        match arg {
            Arg::Plain(_) | Arg::Block(_) => {}
            Arg::Tensor(id) => now(id),
            Arg::Tensors(ids) => ids.iter_mut().for_each(now),
            Arg::Size(s) => s.extents.iter_mut().for_each(|(id, _)| now(id)),
            Arg::Sizes(all) => all.iter_mut().flat_map(|s| &mut s.extents).for_each(|(id, _)| now(id)),
            Arg::List(parts) => parts.iter_mut().for_each(|p| self.rename(p)),
        }
    }

    /// The arguments of a call that reads weights and nothing else.
    fn constant_args(&self, call: &Call) -> Option<Args> {
        let value = |arg: &Arg| {
            Some(match arg {
                Arg::Plain(v) => v.clone(),
                Arg::Tensor(id) => Value::Tensor(self.held.get(id)?.clone()),
                Arg::Tensors(ids) => {
                    Value::Tensors(ids.iter().map(|id| self.held.get(id).cloned()).collect::<Option<_>>()?)
                }
                Arg::Size(_) | Arg::Sizes(_) | Arg::List(_) | Arg::Block(_) => return None,
            })
        };
        let trains = is_true(call.arg("training"));
        if call.op.random || trains { None } else { call.args.iter().map(value).collect() }
    }

    /// Neighbours: a call of one of `first` and the one call that reads its result, of one of `second`.
    fn pairs(&self, first: &[&str], second: &[&str], slot: &str) -> Vec<Pair> {
        let mut readers: HashMap<Id, Vec<usize>> = HashMap::new();
        for (k, call) in self.graph.calls.iter().enumerate() {
            call.args.iter().for_each(|a| a.for_each_id(&mut |id| readers.entry(id).or_default().push(k)));
        }
        let kept = |id: &Id| self.graph.outputs.contains(id) || self.graph.writes.iter().any(|(_, v)| v == id);
        let pair = |(k, call): (usize, &Call)| {
            let out = call.outputs[0];
            let [reader] = readers.get(&out)?.as_slice() else { return None };
            let next = &self.graph.calls[*reader];
            let fits = first.contains(&call.op.name) && second.contains(&next.op.name) && id(next, slot) == Some(out);
            (fits && !kept(&out)).then_some(Pair { first: k, second: *reader })
        };
        self.graph.calls.iter().enumerate().filter_map(pair).collect()
    }

    /// A product or a convolution without a bias, and the sum with a weight after it.
    fn join_bias(&mut self) -> Result<()> {
        let pairs = self.pairs(&["matmul", "conv2d", "conv3d"], &["add"], "x");
        let linear = op::find("linear").expect("it is an op");
        for Pair { first, second } in pairs {
            let (call, next) = (&self.graph.calls[first], &self.graph.calls[second]);
            let Some(bias) = id(next, "y").and_then(|y| self.held.get(&y)).cloned() else { continue };
            let turned = is_true(call.arg("transpose_x")) || is_true(call.arg("transpose_y"));
            let weight = id(call, if call.op.name == "matmul" { "y" } else { "weight" });
            let Some((w, w_dtype)) = weight.and_then(|w| self.weight(w)).filter(|(w, _)| w.len() >= 2) else {
                continue;
            };
            let mut joined = call.clone();
            if call.op.name == "matmul" {
                let vector = bias.ndim() == 1 && w.len() == 2 && w[1] == bias.numel();
                if turned || !vector || bias.dtype() != w_dtype {
                    continue;
                }
                let kept = self.hold(bias);
                joined = renamed(&joined, linear, &[("x", "x"), ("weight", "y")]);
                set(&mut joined, "bias", Arg::Tensor(kept));
            } else {
                // Along the channels: [1, C, 1, 1].
                let channels = w[0];
                let alone = bias.numel() == channels && bias.ndim() == w.len() && bias.shape()[1] == channels;
                let first_format =
                    matches!(call.arg("data_format"), Some(Arg::Plain(Value::Str(f))) if f.starts_with("NC"));
                if !alone || !first_format || call.arg("bias").is_some_and(|b| !b.is_none()) {
                    continue;
                }
                let kept = self.hold(bias.try_reshape([channels as i64])?);
                set(&mut joined, "bias", Arg::Tensor(kept));
            }
            joined.outputs.clone_from(&self.graph.calls[second].outputs);
            self.graph.calls[second] = joined;
            self.graph.calls[first].outputs.clear();
        }
        self.graph.calls.retain(|c| !c.outputs.is_empty());
        Ok(())
    }

    /// Normalisation by known statistics is a factor and a sum for each channel, which the layer before can take over.
    fn fold_norms(&mut self) -> Result<()> {
        let norms = ["batch_norm", "batch_norm_activation"];
        for Pair { first, second } in self.pairs(&["conv1d", "conv2d", "conv3d", "linear"], &norms, "x") {
            let (conv, norm) = (&self.graph.calls[first], &self.graph.calls[second]);
            let held = |call: &Call, name: &str| id(call, name).and_then(|id| self.held.get(&id)).cloned();
            let uses_batch = is_true(norm.arg("training")) && !is_true(norm.arg("use_global_stats"));
            let (Some(w), Some(mean), Some(var)) =
                (held(conv, "weight"), held(norm, "running_mean"), held(norm, "running_var"))
            else {
                continue;
            };
            let optional = |call: &Call, name: &str| match call.arg(name) {
                Some(Arg::Plain(Value::None)) | None => Some(None),
                Some(_) => held(call, name).map(Some),
            };
            let (Some(bias), Some(scale), Some(shift)) =
                (optional(conv, "bias"), optional(norm, "weight"), optional(norm, "bias"))
            else {
                continue;
            };
            let Some(Arg::Plain(Value::Float(epsilon))) = norm.arg("epsilon") else { continue };
            let last = |call: &Call| matches!(call.arg("data_format"), Some(Arg::Plain(Value::Str(f))) if f.ends_with('C') && f.len() > 2);
            let plain_linear = conv.op.name == "linear" && self.graph.values[conv.outputs[0]].dims.len() == 2;
            if uses_batch || w.ndim() < 2 || last(norm) || last(conv) || (conv.op.name == "linear" && !plain_linear) {
                continue;
            }
            let factor = var.try_add(*epsilon)?.try_rsqrt()?;
            let factor = scale.map_or(Ok(factor.clone()), |s| factor.try_multiply(&s))?;
            let from = bias.map_or_else(|| mean.try_neg(), |b| b.try_subtract(&mean))?;
            let sum = from.try_multiply(&factor)?;
            let sum = shift.map_or(Ok(sum.clone()), |s| sum.try_add(&s))?;
            // One factor for each channel of the result: rows of a convolution's weight, columns of a matrix.
            let mut shape = vec![1i64; w.ndim()];
            shape[if plain_linear { 1 } else { 0 }] = factor.numel() as i64;
            let weight = w.try_multiply(factor.try_reshape(shape)?)?;
            let activation = match norm.arg("activation") {
                Some(Arg::Plain(Value::Str(name))) if !name.is_empty() => op::find(name),
                _ => None,
            };
            let (mut joined, outputs) = (conv.clone(), norm.outputs.clone());
            let (weight, sum) = (self.hold(weight), self.hold(sum));
            set(&mut joined, "weight", Arg::Tensor(weight));
            set(&mut joined, "bias", Arg::Tensor(sum));
            match activation {
                Some(op) => {
                    let mut last = Call { op, args: vec![], outputs, no_grad: false, source: joined.source.clone() };
                    last.args = op.params.iter().map(|p| p.default.map_or(plain(()), |d| plain(d()))).collect();
                    set(&mut last, "x", Arg::Tensor(joined.outputs[0]));
                    self.graph.calls[first] = joined;
                    self.graph.calls[second] = last;
                }
                None => {
                    joined.outputs = outputs;
                    self.graph.calls[second] = joined;
                    self.graph.calls[first].outputs.clear();
                }
            }
        }
        self.graph.calls.retain(|c| !c.outputs.is_empty());
        Ok(())
    }

    fn finish(mut self) -> Result<Graph> {
        let mut outputs = std::mem::take(&mut self.graph.outputs).into_iter().map(Arg::Tensor).collect::<Vec<_>>();
        outputs.iter_mut().for_each(|a| self.rename(a));
        self.graph.outputs =
            outputs.iter().filter_map(|a| if let Arg::Tensor(id) = a { Some(*id) } else { None }).collect();
        // Nobody trains these any more: what no call reads is left out.
        self.graph.weights.iter_mut().for_each(|w| w.shared = false);
        self.graph.last_uses = OnceLock::new();
        self.graph.prune();
        Ok(self.graph)
    }
}

/// The weights of layers between codes: what `dequantize_linear` gives, where nothing but such layers reads it.
fn coded(graph: &Graph) -> HashSet<Id> {
    let made: HashSet<Id> = graph
        .calls
        .iter()
        .filter(|c| c.op.name == "dequantize_linear")
        .flat_map(|c| c.outputs.iter().copied())
        .collect();
    let mut found = HashSet::new();
    let mut others = HashSet::new();
    for call in &graph.calls {
        let weight = crate::quantize::parts(call, graph).filter(|(x, w, _)| made.contains(x) && made.contains(w));
        let weight = weight.map(|(_, w, _)| w);
        found.extend(weight);
        call.args.iter().for_each(|a| {
            a.for_each_id(&mut |id| {
                if Some(id) != weight {
                    others.insert(id);
                }
            });
        });
    }
    others.extend(&graph.outputs);
    found.retain(|id| !others.contains(id));
    found
}

/// A call of another op with the tensors of this one: (its parameter, ours).
fn renamed(call: &Call, op: &'static OpDef, tensors: &[(&str, &str)]) -> Call {
    let args = op.params.iter().map(|p| p.default.map_or(plain(()), |d| plain(d()))).collect();
    let mut new = Call { op, args, outputs: call.outputs.clone(), no_grad: call.no_grad, source: call.source.clone() };
    for (to, from) in tensors {
        if let Some(arg) = call.arg(from) {
            set(&mut new, to, arg.clone());
        }
    }
    new
}

/// Does it hold something that is not told apart by how it is shown?
fn opaque(arg: &Arg) -> bool {
    fn is(value: &Value) -> bool {
        match value {
            Value::Object(_) | Value::Dict(_) | Value::Tensor(_) | Value::Tensors(_) => true,
            Value::List(all) => all.iter().any(is),
            _ => false,
        }
    }
    match arg {
        Arg::Plain(value) => is(value),
        Arg::List(parts) => parts.iter().any(opaque),
        _ => false,
    }
}

/// What a call gives back that changes nothing.
fn idle(call: &Call, graph: &Graph) -> Option<Id> {
    let x = id(call, "x")?;
    let word = |name: &str| if let Some(Arg::Plain(Value::Str(s))) = call.arg(name) { Some(&**s) } else { None };
    let number = |name: &str| if let Some(Arg::Plain(Value::Float(f))) = call.arg(name) { Some(*f) } else { None };
    let nothing = match call.op.name {
        "assign" | "detach" => true,
        "dropout" => !is_true(call.arg("training")) && word("mode") == Some("upscale_in_train"),
        "cast" => graph.values[x].dtype == graph.values[call.outputs[0]].dtype,
        "scale" => {
            number("scale") == Some(1.0) && number("bias") == Some(0.0) && call.arg("act").is_none_or(Arg::is_none)
        }
        _ => false,
    };
    nothing.then_some(x)
}
