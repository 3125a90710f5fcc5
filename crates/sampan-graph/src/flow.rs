//! Branches and loops in graphs: what values decide.
//!
//! A branch is a graph of its own, whose inputs are the tensors that it takes from outside. While a program is traced, both
//! branches are run, aside, and what they did becomes an argument of the one call that the program made.

use crate::graph::Graph;
use crate::record::{Event, Heard, Recorder, current, unheard};
use crate::ssa::{Builder, Run, own, param, refused};
use crate::trace::{Spec, input, merge};
use sampan_core::dispatch::Cx;
use sampan_core::op::{Kind, OpDef, Outputs};
use sampan_core::value::{Arg as _, Object};
use sampan_core::{Device, Error, Result, Tensor, Value, grad_enabled};
use std::sync::Arc;

/// What one of two blocks gives: `cond(pred, inputs, then, otherwise)`.
pub static COND: OpDef = own(
    "cond_block",
    "What one of two blocks gives.",
    &[
        param("pred", Kind::Tensor),
        param("inputs", Kind::Tensors),
        param("then", Kind::Operand),
        param("otherwise", Kind::Operand),
    ],
    run_cond,
);

/// A state that a block changes as long as another holds: `while(state, inputs, condition, body)`.
pub static WHILE: OpDef = own(
    "while_block",
    "A state that a block changes as long as another one holds.",
    &[
        param("state", Kind::Tensors),
        param("inputs", Kind::Tensors),
        param("condition", Kind::Operand),
        param("body", Kind::Operand),
    ],
    run_while,
);

/// One run of a block, until all runs are there.
pub(crate) struct Block(pub Run);

impl Block {
    /// The run that an argument holds.
    pub fn of(value: &Value) -> Option<&Run> {
        if let Value::Object(o) = value { o.downcast::<Block>().map(|b| &b.0) } else { None }
    }
}

fn block(args: &[Value], i: usize) -> Result<&Arc<Graph>> {
    let found = if let Value::Object(o) = &args[i] { o.downcast::<Arc<Graph>>() } else { None };
    found.ok_or_else(|| Error::invalid("a block is missing"))
}

fn truth(t: &Tensor) -> Result<bool> {
    Ok(t.try_item()?.to_f64() != 0.0)
}

fn run_cond(cx: &Cx) -> Result<Outputs> {
    let (pred, inputs) = (<&Tensor>::get(&cx.args()[0], "pred")?, <&[Tensor]>::get(&cx.args()[1], "inputs")?);
    let yes = pred.device() == Device::Meta || truth(pred)?;
    block(cx.args(), if yes { 2 } else { 3 })?.run(inputs).map(Outputs::from_vec)
}

fn run_while(cx: &Cx) -> Result<Outputs> {
    let (state, inputs) = (<&[Tensor]>::get(&cx.args()[0], "state")?, <&[Tensor]>::get(&cx.args()[1], "inputs")?);
    let (condition, body) = (block(cx.args(), 2)?, block(cx.args(), 3)?);
    let mut state = state.to_vec();
    loop {
        let all = [state.as_slice(), inputs].concat();
        let goes_on = &condition.run(&all)?[0];
        if goes_on.device() == Device::Meta {
            // Without values, one step tells what the state is like.
            return body.run(&all).map(Outputs::from_vec);
        }
        if !truth(goes_on)? {
            return Ok(Outputs::from_vec(state));
        }
        state = body.run(&all)?;
    }
}

/// The graph of a block, from all runs.
pub(crate) fn merged(runs: &[&Run]) -> Result<Arc<Graph>> {
    let spec = |t: &Tensor| Spec { shape: vec![], dtype: t.dtype(), name: None, stop_gradient: t.stop_gradient() };
    let specs = runs[0].tensors[..runs[0].inputs].iter().map(spec).collect::<Vec<_>>();
    let mut graph = merge(&specs, runs)?;
    // The state of a loop may have other extents than at first.
    graph.strict = false;
    Ok(Arc::new(graph))
}

/// What happened in a block: its results and events.
type Done = (Vec<Tensor>, Vec<Event>);

/// The tensors that blocks take from outside.
fn taken(inputs: &[Tensor], blocks: &[&Done]) -> Result<Vec<Tensor>> {
    let mut all: Vec<Tensor> = Vec::new();
    for (outputs, events) in blocks {
        let mut builder = Builder::new(inputs, true);
        events.iter().cloned().try_for_each(|e| builder.event(e))?;
        let run = builder.finish(outputs)?;
        for t in run.weights.iter().map(|&id| &run.tensors[id]) {
            if !all.iter().any(|known| known.id() == t.id()) {
                all.push(t.clone());
            }
        }
    }
    Ok(all)
}

fn recorded(inputs: &[Tensor], (outputs, events): Done) -> Result<Value> {
    let mut builder = Builder::new(inputs, true);
    events.into_iter().try_for_each(|e| builder.event(e))?;
    let run = builder.finish(&outputs)?;
    if !run.writes.is_empty() {
        return Err(refused("a tensor from outside is written inside of a branch or loop on a tensor's value".into())
            .hint("give the new value as a result: x = x + 1 instead of x += 1 or x[i] = 1"));
    }
    Ok(Value::Object(Object::new(Block(run))))
}

/// A tensor like another, that the call gives.
fn like(t: &Tensor, stop: bool) -> Tensor {
    unheard(|| input(Tensor::meta(t.shape(), t.dtype()), stop))
}

fn note(recorder: &Recorder, op: &'static OpDef, args: Vec<Value>, outputs: &[Tensor]) {
    let mut stopped = Vec::new();
    args.iter().for_each(|v| v.for_each_tensor(&mut |t| stopped.push(t.stop_gradient())));
    let gave = outputs.iter().map(Tensor::stop_gradient).collect();
    let outputs = outputs.iter().cloned().collect();
    let (no_grad, source) = (!grad_enabled(), recorder.line());
    recorder.note(Event::Call(Heard { op, args, outputs, stopped, gave, no_grad, source }));
}

/// Where two results differ in what a graph must know of them.
fn differ(a: &Tensor, b: &Tensor) -> Option<String> {
    let same = a.shape() == b.shape() && a.dtype() == b.dtype();
    (!same).then(|| format!("{:?} {} and {:?} {}", a.shape(), a.dtype(), b.shape(), b.dtype()))
}

/// Runs something without making it part of the program that is traced: to see what it would give.
pub fn aside<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    match current() {
        Some(recorder) => recorder.aside(f).map(|(r, _)| r),
        None => f(),
    }
}

/// What one of two functions gives. While a program is traced and the condition has no value yet, both become part of the
/// graph, and each run of it chooses.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// # use sampan_graph::{Spec, cond, trace};
/// let program = |x: &[Tensor]| cond(&x[0].sum(()).greater_than(0.0), || Ok(vec![x[0].relu()]), || Ok(vec![-&x[0]]));
/// let graph = trace(program, &[Spec::new([None], DType::Float32)])?;
/// assert_eq!(graph.run(&[Tensor::new([1.0f32, 2.0])])?[0].to_vec::<f32>(), [1.0, 2.0]);
/// assert_eq!(graph.run(&[Tensor::new([-1.0f32])])?[0].to_vec::<f32>(), [1.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn cond(
    pred: &Tensor,
    then: impl FnOnce() -> Result<Vec<Tensor>>,
    otherwise: impl FnOnce() -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    if pred.device() != Device::Meta {
        return if bool::try_from(&pred.try_cast(sampan_core::DType::Bool)?)? { then() } else { otherwise() };
    }
    let Some(recorder) = current() else { return then() };
    let (a, b) = (recorder.aside(then)?, recorder.aside(otherwise)?);
    if a.0.len() != b.0.len() {
        return Err(refused(format!("one branch gives {} tensors and the other {}", a.0.len(), b.0.len())));
    }
    if let Some((i, why)) = a.0.iter().zip(&b.0).enumerate().find_map(|(i, (x, y))| Some((i, differ(x, y)?))) {
        return Err(refused(format!("result {i} of the two branches differs: {why}"))
            .hint("give both the same shape and dtype"));
    }
    let outputs =
        a.0.iter().zip(&b.0).map(|(x, y)| like(x, x.stop_gradient() && y.stop_gradient())).collect::<Vec<_>>();
    let inputs = taken(&[], &[&a, &b])?;
    let blocks = (recorded(&inputs, a)?, recorded(&inputs, b)?);
    note(&recorder, &COND, vec![pred.into(), Value::Tensors(inputs), blocks.0, blocks.1], &outputs);
    Ok(outputs)
}

/// A state that `body` changes as long as `condition` of it holds; like [`cond`], part of the graph when its values are not
/// known. The state keeps its shapes and dtypes.
pub fn while_loop(
    state: Vec<Tensor>,
    mut condition: impl FnMut(&[Tensor]) -> Result<Tensor>,
    mut body: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let mut state = state;
    let recorder = loop {
        let Some(recorder) = current() else {
            if !bool::try_from(&condition(&state)?.try_cast(sampan_core::DType::Bool)?)? {
                return Ok(state);
            }
            state = body(&state)?;
            continue;
        };
        // Steps that are known to be made, or not, are made here.
        let (goes_on, events) = recorder.aside(|| condition(&state))?;
        if goes_on.device() == Device::Meta {
            break recorder;
        }
        events.into_iter().for_each(|e| recorder.note(e));
        if !bool::try_from(&goes_on.try_cast(sampan_core::DType::Bool)?)? {
            return Ok(state);
        }
        state = body(&state)?;
    };
    let inside = state.iter().map(|t| like(t, t.stop_gradient())).collect::<Vec<_>>();
    let (goes_on, events) = recorder.aside(|| condition(&inside))?;
    let check = (vec![goes_on], events);
    let step = recorder.aside(|| body(&inside))?;
    if step.0.len() != state.len() {
        return Err(refused(format!("a loop of {} tensors gives {}", state.len(), step.0.len())));
    }
    if let Some((i, why)) = state.iter().zip(&step.0).enumerate().find_map(|(i, (x, y))| Some((i, differ(x, y)?))) {
        return Err(refused(format!("a step of a loop changes what variable {i} is like: {why}"))
            .hint("what a loop changes keeps its shape and dtype"));
    }
    let outputs =
        state.iter().zip(&step.0).map(|(x, y)| like(x, x.stop_gradient() && y.stop_gradient())).collect::<Vec<_>>();
    let inputs = taken(&inside, &[&check, &step])?;
    let all = [inside, inputs.clone()].concat();
    let blocks = (recorded(&all, check)?, recorded(&all, step)?);
    note(&recorder, &WHILE, vec![Value::Tensors(state), Value::Tensors(inputs), blocks.0, blocks.1], &outputs);
    Ok(outputs)
}
