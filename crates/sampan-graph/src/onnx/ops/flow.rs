//! Branches, loops, sequences and optionals.

use crate::given::Given;
use crate::graph::{Arg, Graph, Known};
use crate::onnx::eval::Item;
use crate::onnx::export::{Writer, info};
use crate::onnx::node::{Call, op};
use sampan_core::{DType, Device, Result, Tensor};
use sampan_io::onnx::model::{Attr, Net};
use sampan_kernels::buffer::Held;

/// A loop that a file asks for is stopped here: no program of this kind has more steps.
const MOST_STEPS: usize = 1 << 24;

impl Call<'_> {
    fn item(&self, i: usize) -> Item {
        self.inputs.get(i).cloned().flatten().unwrap_or(Item::Nothing)
    }

    fn block(&self, net: &Net, inputs: Vec<Item>) -> Result<Vec<Item>> {
        self.frame.block(net, self.scope, inputs)
    }

    fn tensor(&self, item: Item) -> Result<Tensor> {
        match item {
            Item::Tensor(t) => Ok(t),
            _ => Err(self.wrong("a tensor is wanted, and a sequence or nothing is there")),
        }
    }
}

/// Tensors that the steps of a loop leave, each counted with what is around it.
#[derive(Default)]
struct Kept {
    tensors: Vec<Tensor>,
    held: Vec<Held>,
}

impl Kept {
    fn push(&mut self, tensor: Tensor) -> Result<()> {
        self.held.push(Held::around(1)?);
        self.tensors.push(tensor);
        Ok(())
    }

    fn several(n: usize) -> Vec<Kept> {
        std::iter::repeat_with(Kept::default).take(n).collect()
    }
}

/// What the steps gave, side by side.
fn gathered(c: &Call, steps: Kept, axis: i64, reverse: bool) -> Result<Tensor> {
    let Kept { tensors: mut steps, held: _held } = steps;
    if reverse {
        steps.reverse();
    }
    if steps.is_empty() {
        return Err(c.lacking("a loop without steps whose steps give something"));
    }
    op!("stack", steps, axis)
}

fn branch(c: &Call) -> Result<Vec<Item>> {
    let pred = c.x(0)?;
    if pred.device() == Device::Meta {
        let run = |name: &str| c.block(c.net(name)?, vec![])?.into_iter().map(|i| c.tensor(i)).collect();
        let found = crate::flow::cond(pred, || run("then_branch"), || run("else_branch"))?;
        return Ok(found.into_iter().map(Item::Tensor).collect());
    }
    let yes = c.number(0)? != 0.0;
    c.block(c.net(if yes { "then_branch" } else { "else_branch" })?, vec![])
}

/// A loop whose end values decide, while it is traced: the number of the step, the condition, and what is carried.
fn repeat_traced(c: &Call, body: &Net) -> Result<Vec<Item>> {
    let n = c.inputs.len().saturating_sub(2);
    if body.outputs.len() != n + 1 {
        return Err(c.lacking("a loop that values end, and whose steps give something"));
    }
    let step = op!("full", [1i64; 0], 0i64, DType::Int64)?;
    let goes_on = match c.maybe(1) {
        Some(t) => op!("reshape", t, [1i64; 0])?,
        None => op!("full", [1i64; 0], true, DType::Bool)?,
    };
    let most = c.maybe(0).map(|t| op!("reshape", t, [1i64; 0])).transpose()?;
    let carried = (2..c.inputs.len()).map(|i| c.x(i).cloned()).collect::<Result<Vec<_>>>()?;
    let condition = |state: &[Tensor]| match &most {
        Some(most) => op!("logical_and", &state[1], op!("less_than", &state[0], most)?),
        None => Ok(state[1].clone()),
    };
    let one = |state: &[Tensor]| {
        let found = c.block(body, state.iter().cloned().map(Item::Tensor).collect())?;
        let mut next = vec![op!("add", &state[0], 1i64)?];
        for (i, item) in found.into_iter().enumerate() {
            let t = c.tensor(item)?;
            next.push(if i == 0 { op!("reshape", t, [1i64; 0])? } else { t });
        }
        Ok(next)
    };
    let mut found = crate::flow::while_loop([vec![step, goes_on], carried].concat(), condition, one)?;
    Ok(found.split_off(2).into_iter().map(Item::Tensor).collect())
}

fn repeat(c: &Call) -> Result<Vec<Item>> {
    let body = c.net("body")?;
    if c.inputs.iter().flatten().any(|i| matches!(i, Item::Tensor(t) if t.device() == Device::Meta)) {
        return repeat_traced(c, body);
    }
    let most = if c.maybe(0).is_some() { (c.number(0)? as i64).max(0) as usize } else { usize::MAX };
    let mut goes_on = c.maybe(1).is_none() || c.number(1)? != 0.0;
    let mut carried = (2..c.inputs.len()).map(|i| c.item(i)).collect::<Vec<_>>();
    let n = carried.len();
    let mut scanned = Kept::several(body.outputs.len().saturating_sub(1 + n));
    let mut step = 0;
    while goes_on && step < most {
        if step >= MOST_STEPS {
            return Err(c.wrong(format!("more than {MOST_STEPS} steps")));
        }
        let number = Tensor::try_from_slice(&[step as i64], [0usize; 0])?;
        let condition = Tensor::try_new(true)?;
        let mut inputs = vec![Item::Tensor(number), Item::Tensor(condition)];
        inputs.append(&mut carried);
        let mut outputs = c.block(body, inputs)?.into_iter();
        let next = outputs.next().ok_or_else(|| c.wrong("its body gives no condition"))?;
        goes_on = crate::record::unheard(|| c.tensor(next)?.try_item())?.to_f64() != 0.0;
        carried = outputs.by_ref().take(n).collect();
        for (list, item) in scanned.iter_mut().zip(outputs) {
            list.push(c.tensor(item)?)?;
        }
        step += 1;
    }
    for list in scanned {
        carried.push(Item::Tensor(gathered(c, list, 0, false)?));
    }
    Ok(carried)
}

fn scan(c: &Call) -> Result<Vec<Item>> {
    if c.opset() < 9 {
        return early_scan(c);
    }
    let body = c.net("body")?;
    let states = (c.inputs.len() as i64 - c.int("num_scan_inputs", 1)).max(0) as usize;
    let state = (0..states).map(|i| c.item(i)).collect();
    let sequences = (states..c.inputs.len()).map(|i| c.x(i).cloned()).collect::<Result<Vec<_>>>()?;
    scan_over(c, body, state, &sequences)
}

/// A scan over sequences, from states.
fn scan_over(c: &Call, body: &Net, mut state: Vec<Item>, sequences: &[Tensor]) -> Result<Vec<Item>> {
    let states = state.len();
    let outs = body.outputs.len().saturating_sub(states);
    let list = |name: &str, n: usize| c.ints(name).filter(|v| v.len() == n).unwrap_or_else(|| vec![0; n]);
    let (axes, backwards) = (list("scan_input_axes", sequences.len()), list("scan_input_directions", sequences.len()));
    let (out_axes, out_backwards) = (list("scan_output_axes", outs), list("scan_output_directions", outs));
    let axes = sequences.iter().zip(axes).map(|(t, a)| c.axis(a, t.ndim())).collect::<Result<Vec<_>>>()?;
    let steps = sequences.first().map_or(0, |t| t.shape()[axes[0]]);
    let mut scanned = Kept::several(outs);
    for step in 0..steps {
        let mut inputs = std::mem::take(&mut state);
        for (k, t) in sequences.iter().enumerate() {
            let at = if backwards[k] == 1 { steps - 1 - step } else { step } as i64;
            let axis = axes[k] as i64;
            inputs.push(Item::Tensor(op!("squeeze", op!("slice", t, [axis], [at], [at + 1])?, axis)?));
        }
        let mut outputs = c.block(body, inputs)?.into_iter();
        state = outputs.by_ref().take(states).collect();
        for (list, item) in scanned.iter_mut().zip(outputs) {
            list.push(c.tensor(item)?)?;
        }
    }
    for (k, list) in scanned.into_iter().enumerate() {
        let rank = list.tensors.first().map_or(1, |t| t.ndim() + 1) as i64;
        let axis = if out_axes[k] < 0 { out_axes[k] + rank } else { out_axes[k] };
        state.push(Item::Tensor(gathered(c, list, axis, out_backwards[k] == 1)?));
    }
    Ok(state)
}

/// The first form had a batch in front, each of whose elements is a scan.
fn early_scan(c: &Call) -> Result<Vec<Item>> {
    let body = c.net("body")?;
    let count = c.int("num_scan_inputs", 1).max(0) as usize;
    let given = (1..c.inputs.len()).map(|i| c.x(i).cloned()).collect::<Result<Vec<_>>>()?;
    let batch = given.first().map_or(0, |t| t.shape().first().copied().unwrap_or(0));
    let mut all = Kept::several(0);
    for b in 0..batch as i64 {
        let one = |t: &Tensor| op!("squeeze", op!("slice", t, [0i64], [b], [b + 1])?, 0i64);
        let mut each = given.iter().map(one).collect::<Result<Vec<_>>>()?;
        let sequences = each.split_off(each.len().saturating_sub(count));
        let found = scan_over(c, body, each.into_iter().map(Item::Tensor).collect(), &sequences)?;
        all.resize_with(found.len(), Kept::default);
        for (list, item) in all.iter_mut().zip(found) {
            list.push(c.tensor(item)?)?;
        }
    }
    all.into_iter().map(|list| gathered(c, list, 0, false).map(Item::Tensor)).collect()
}

/// A place in a sequence, from its end if it is negative.
fn place(c: &Call, i: usize, len: usize) -> Result<usize> {
    let at = c.number(i)? as i64;
    let from_zero = if at < 0 { at + len as i64 } else { at };
    let at = usize::try_from(from_zero).ok().filter(|a| *a <= len);
    at.ok_or_else(|| c.wrong(format!("place {from_zero} of a sequence of {len}")))
}

fn split_to_sequence(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(c.int("axis", 0), x.ndim())?;
    let n = x.shape()[axis] as i64;
    let keep = c.maybe(1).is_some() || c.int("keepdims", 1) != 0;
    let sizes = match c.maybe(1) {
        Some(t) if t.ndim() == 0 => {
            let part = (c.number(1)? as i64).max(1);
            (0..(n + part - 1) / part).map(|i| part.min(n - i * part)).collect()
        }
        Some(_) => c.numbers(1)?,
        None => vec![1; n as usize],
    };
    let parts = super::shapes::split_at(x, &sizes, axis)?;
    if keep { Ok(parts) } else { parts.iter().map(|t| op!("squeeze", t, axis)).collect() }
}

fn sequence_map(c: &Call) -> Result<Vec<Item>> {
    let body = c.net("body")?;
    let n = c.list(0)?.len();
    let mut lists = Kept::several(body.outputs.len());
    for k in 0..n {
        let pick = |i: usize| match c.item(i) {
            Item::List(list) => list.get(k).cloned().map_or(Item::Nothing, Item::Tensor),
            other => other,
        };
        let outputs = c.block(body, (0..c.inputs.len()).map(pick).collect())?;
        for (list, item) in lists.iter_mut().zip(outputs) {
            list.push(c.tensor(item)?)?;
        }
    }
    Ok(lists.into_iter().map(|kept| Item::List(kept.tensors)).collect())
}

fn sequence(c: &Call) -> Result<Option<Item>> {
    Ok(Some(match c.node.op.as_str() {
        "SequenceEmpty" => Item::List(vec![]),
        "SequenceConstruct" => Item::List(c.tensors()?),
        "SequenceInsert" => {
            let mut list = c.list(0)?.to_vec();
            let at = if c.maybe(2).is_some() { place(c, 2, list.len())? } else { list.len() };
            list.insert(at, c.x(1)?.clone());
            Item::List(list)
        }
        "SequenceErase" => {
            let mut list = c.list(0)?.to_vec();
            let at = if c.maybe(1).is_some() { place(c, 1, list.len())? } else { list.len().saturating_sub(1) };
            if at >= list.len() {
                return Err(c.wrong(format!("place {at} of a sequence of {}", list.len())));
            }
            list.remove(at);
            Item::List(list)
        }
        "SequenceAt" => {
            let list = c.list(0)?;
            let at = place(c, 1, list.len())?;
            let found = list.get(at).cloned();
            Item::Tensor(found.ok_or_else(|| c.wrong(format!("place {at} of a sequence of {}", list.len())))?)
        }
        "SequenceLength" => Item::Tensor(Tensor::try_from_slice(&[c.list(0)?.len() as i64], [0usize; 0])?),
        "SplitToSequence" => Item::List(split_to_sequence(c)?),
        "ConcatFromSequence" => {
            let name = if c.flag("new_axis") { "stack" } else { "concat" };
            Item::Tensor(op!(name, c.list(0)?.to_vec(), c.int("axis", 0))?)
        }
        "Optional" => c.item(0),
        "OptionalHasElement" => {
            let has = !matches!(c.item(0), Item::Nothing);
            Item::Tensor(Tensor::try_new(has)?)
        }
        "OptionalGetElement" => match c.item(0) {
            Item::Nothing => return Err(c.wrong("there is nothing in it")),
            item => item,
        },
        "Identity" => c.item(0),
        _ => return Ok(None),
    }))
}

/// Writes the calls of a block into a graph of its own; what it takes from outside it sees by name.
fn net(w: &mut Writer, graph: &Graph, inputs: Vec<String>, name: &str) -> Result<(Net, Vec<String>)> {
    let outer = std::mem::take(&mut w.state.net.nodes);
    let (shapes, found) = (w.state.shapes.clone(), w.block(graph, inputs));
    let nodes = std::mem::replace(&mut w.state.net.nodes, outer);
    w.state.shapes = shapes;
    Ok((Net { name: name.into(), nodes, ..Net::default() }, found?))
}

/// Gives a graph its outputs, each computed in it.
fn close(w: &mut Writer, net: &mut Net, names: Vec<String>, known: &[Known]) {
    for (name, known) in names.into_iter().zip(known) {
        let before = std::mem::replace(&mut w.state.net.nodes, std::mem::take(&mut net.nodes));
        let name = w.op("Identity", &[&name]);
        net.nodes = std::mem::replace(&mut w.state.net.nodes, before);
        net.outputs.push(info(name, known));
    }
}

fn outputs_of(graph: &Graph) -> Vec<Known> {
    graph.outputs.iter().map(|&id| graph.values[id].clone()).collect()
}

fn blocks<'a>(call: &Given<'a>, names: [&str; 2]) -> Option<[&'a Graph; 2]> {
    let of = |name: &str| if let Some(Arg::Block(graph)) = call.0.arg(name) { Some(&**graph) } else { None };
    Some([of(names[0])?, of(names[1])?])
}

fn write_if(w: &mut Writer, call: &Given) -> Result<bool> {
    let (Some(pred), Some(both)) = (call.id("pred"), blocks(call, ["then", "otherwise"])) else { return Ok(false) };
    let pred = w.cast_id(pred, DType::Bool)?;
    let inputs = call.ids("inputs").into_iter().map(|id| w.name(id)).collect::<Result<Vec<_>>>()?;
    let mut attrs = Vec::new();
    for (graph, attr) in both.into_iter().zip(["then_branch", "else_branch"]) {
        let (mut block, names) = net(w, graph, inputs.clone(), attr)?;
        close(w, &mut block, names, &outputs_of(graph));
        attrs.push((attr, Attr::Graph(Box::new(block))));
    }
    let names = w.nodes("If", vec![pred], attrs, call.0.outputs.len());
    call.0.outputs.iter().zip(names).for_each(|(&id, name)| w.bind(id, name));
    Ok(true)
}

fn write_loop(w: &mut Writer, call: &Given) -> Result<bool> {
    let Some([condition, body]) = blocks(call, ["condition", "body"]) else { return Ok(false) };
    let of = |w: &Writer, name: &str| call.ids(name).into_iter().map(|id| w.name(id)).collect::<Result<Vec<_>>>();
    let (state, outer) = (of(w, "state")?, of(w, "inputs")?);
    let scalar = Known { dims: vec![], dtype: DType::Bool, stop_gradient: true };
    // Whether there is a first step is asked before, and whether there is another at the end of each.
    let asked = |w: &mut Writer, state: &[String]| -> Result<String> {
        let found = w.block(condition, [state, &outer].concat())?;
        let none = w.ints(&[])?;
        let value = w.op("Reshape", &[&found[0], &none]);
        Ok(w.cast(value, condition.values[condition.outputs[0]].dtype, DType::Bool))
    };
    let first = asked(w, &state)?;
    let inside = (0..state.len()).map(|_| w.fresh("state")).collect::<Vec<_>>();
    let (step, goes_on) = (w.fresh("step"), w.fresh("goes_on"));
    let (mut block, next) = net(w, body, [inside.as_slice(), &outer].concat(), "body")?;
    let before = std::mem::replace(&mut w.state.net.nodes, std::mem::take(&mut block.nodes));
    let shapes = w.state.shapes.clone();
    let again = asked(w, &next);
    w.state.shapes = shapes;
    block.nodes = std::mem::replace(&mut w.state.net.nodes, before);
    let number = Known { dtype: DType::Int64, ..scalar.clone() };
    block.inputs = vec![info(step, &number), info(goes_on, &scalar)];
    block.inputs.extend(inside.into_iter().zip(&body.inputs).map(|(n, i)| info(n, &body.values[i.value])));
    close(w, &mut block, vec![again?], std::slice::from_ref(&scalar));
    close(w, &mut block, next, &outputs_of(body));
    let inputs = [vec![String::new(), first], state].concat();
    let names = w.nodes("Loop", inputs, vec![("body", Attr::Graph(Box::new(block)))], call.0.outputs.len());
    call.0.outputs.iter().zip(names).for_each(|(&id, name)| w.bind(id, name));
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    match call.name() {
        "cond_block" => write_if(w, call),
        "while_block" => write_loop(w, call),
        _ => Ok(false),
    }
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    Ok(Some(match c.node.op.as_str() {
        "If" => branch(c)?,
        "Loop" => repeat(c)?,
        "Scan" => scan(c)?,
        "SequenceMap" => sequence_map(c)?,
        _ => return Ok(sequence(c)?.map(|item| vec![item])),
    }))
}
