//! A program as a graph: it runs a few times without values, at different sizes, and what differs follows the sizes.

use crate::flow::Block;
use crate::graph::{Arg, Call, Dim, Graph, Id, Input, Known, Weight};
use crate::record::{Event, Recorder, recorded};
use crate::size::Extents;
use crate::ssa::{Builder, Run, read_error, refused};
use sampan_core::dispatch::with_composites;
use sampan_core::{DType, Device, Error, Result, Tensor, Value, enable_grad};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// What is known of an input before there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The extents; `None` for any.
    pub shape: Vec<Option<usize>>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its name; one is made up where there is none.
    pub name: Option<String>,
    /// Is it left out of gradients?
    pub stop_gradient: bool,
}

impl Spec {
    /// An input of that shape and type.
    pub fn new(shape: impl IntoIterator<Item = Option<usize>>, dtype: DType) -> Spec {
        Spec { shape: shape.into_iter().collect(), dtype, name: None, stop_gradient: false }
    }

    /// With a name.
    pub fn named(mut self, name: impl Into<String>) -> Spec {
        self.name = Some(name.into());
        self
    }
}

/// The program as a graph.
///
/// It runs several times on tensors without values, with other numbers for the extents that are `None`. What it computes
/// may depend on extents and on nothing else: a value that is read, another order of calls, or a tensor that is made anew
/// with other values each time is an error, which says where.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// # use sampan_graph::{Spec, trace};
/// let graph = trace(|x| Ok(vec![x[0].reshape([x[0].shape()[0] as i64 * 2, -1]).relu()]), &[Spec::new([None, Some(4)], DType::Float32)])?;
/// let y = graph.run(&[Tensor::new([[1.0f32, -2.0, 3.0, -4.0]])])?;
/// assert_eq!(y[0].to_vec::<f32>(), [1.0, 0.0, 3.0, 0.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn trace(program: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>, specs: &[Spec]) -> Result<Graph> {
    trace_with(program, specs, || None)
}

/// Like [`trace`], with a function that says which line of the program is running.
pub fn trace_with(
    mut program: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    specs: &[Spec],
    source: impl Fn() -> Option<String> + Clone + 'static,
) -> Result<Graph> {
    let mut first_error = None;
    for plan in plans(specs) {
        let runs = plan.iter().map(|sizes| run_once(&mut program, specs, sizes, &source)).collect::<Result<Vec<_>>>();
        match runs.and_then(|runs| merge(specs, &runs.iter().collect::<Vec<_>>())) {
            Ok(graph) => return Ok(graph),
            Err(e) => _ = first_error.get_or_insert(e),
        }
    }
    Err(first_error.expect("there is a plan"))
}

/// One run with its inputs' free extents, in order.
fn run_once(
    program: &mut impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    specs: &[Spec],
    sizes: &[usize],
    source: &(impl Fn() -> Option<String> + Clone + 'static),
) -> Result<Run> {
    let mut sizes = sizes.iter();
    let inputs = specs
        .iter()
        .map(|s| {
            let shape = s.shape.iter().map(|d| d.or_else(|| sizes.next().copied()).unwrap_or(1)).collect::<Vec<_>>();
            input(Tensor::meta(shape, s.dtype), s.stop_gradient)
        })
        .collect::<Vec<_>>();
    run_on(program, inputs, 0, source)
}

/// An input of a run. Gradients reach it, and a program may write it all the same: it is no leaf.
pub(crate) fn input(tensor: Tensor, stop_gradient: bool) -> Tensor {
    match stop_gradient || !tensor.dtype().is_inexact() {
        true => tensor,
        false => tensor.requires_grad_().assign(),
    }
}

/// One run on these inputs; calls are noted at that depth.
pub(crate) fn run_on(
    program: &mut impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: Vec<Tensor>,
    level: usize,
    source: &(impl Fn() -> Option<String> + Clone + 'static),
) -> Result<Run> {
    let recorder = Rc::new(Recorder::new(level, Box::new(source.clone())));
    let outputs = recorded(&recorder, || with_composites(|| enable_grad(|| caught(|| program(&inputs)))));
    let events = recorder.take();
    let outputs = outputs.map_err(|e| explained(e, &events))?;
    let mut builder = Builder::new(&inputs, false);
    events.into_iter().try_for_each(|event| builder.event(event))?;
    builder.finish(&outputs)
}

/// A program may be written in ops that panic: at a size that does not suit it, that is no more than an error.
pub(crate) fn caught<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string()));
        match text {
            Some(text) => Err(refused(text)),
            None => std::panic::resume_unwind(payload),
        }
    })
}

/// A program that failed because it asked for a value is told so.
fn explained(error: Error, events: &[Event]) -> Error {
    match events.last() {
        Some(Event::Read { tensor, what, source }) if tensor.device() == Device::Meta => read_error(what, source),
        _ if error.message().contains("a meta tensor holds no values") => read_error("item", &None),
        _ => error,
    }
}

/// Sizes to begin with and to change to. Odd ones tell most about a program; some want multiples of a power of two, some
/// know no long sequences, and some no small images.
const SIZES: [[usize; 3]; 4] = [[67, 71, 73], [5, 7, 9], [224, 256, 288], [8, 16, 24]];

/// The runs to make, as the numbers of all free extents, best attempt first: every extent on its own, or those at the same
/// place of all inputs together, or all.
fn plans(specs: &[Spec]) -> Vec<Vec<Vec<usize>>> {
    let free = specs
        .iter()
        .enumerate()
        .flat_map(|(i, s)| s.shape.iter().enumerate().filter(|(_, d)| d.is_none()).map(move |(axis, _)| (i, axis)))
        .collect::<Vec<_>>();
    if free.is_empty() {
        // Twice, so that what is made anew each time is seen.
        return vec![vec![Vec::new(); 2]];
    }
    let groupings: [&dyn Fn(usize) -> usize; 3] = [&|i| i, &|i| free[i].1, &|_| 0];
    let mut plans: Vec<Vec<Vec<usize>>> = Vec::new();
    for sizes in SIZES {
        for grouping in groupings {
            let plan = plan(&free, grouping, sizes);
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
    }
    plans
}

fn plan(free: &[(usize, usize)], group: &dyn Fn(usize) -> usize, sizes: [usize; 3]) -> Vec<Vec<usize>> {
    // Groups are numbered as they appear; each has numbers of its own, so that no two extents are mistaken for each other.
    let mut groups = Vec::new();
    let of = (0..free.len())
        .map(|i| {
            let g = group(i);
            groups.iter().position(|&k| k == g).unwrap_or_else(|| {
                groups.push(g);
                groups.len() - 1
            })
        })
        .collect::<Vec<_>>();
    let step = sizes[1] - sizes[0];
    let batch = |g: usize| free[of.iter().position(|&k| k == g).unwrap_or(0)].1 == 0;
    // The first axis is a batch almost always: a few images are enough of it.
    let number = |g: usize, k: usize| match batch(g) {
        true => [3, 5, 7][k] + 8 * g,
        false => sizes[k] + 3 * step * g,
    };
    let run = |k: &dyn Fn(usize) -> usize| of.iter().map(|&g| number(g, k(g))).collect::<Vec<_>>();
    let mut runs = vec![run(&|_| 0)];
    for g in 0..groups.len() {
        runs.extend([1, 2].map(|k| run(&|other| if other == g { k } else { 0 })));
    }
    runs.extend([1, 2].map(|k| run(&|_| k)));
    runs.dedup();
    runs
}

/// What the runs have in common, as a graph.
pub(crate) fn merge(specs: &[Spec], runs: &[&Run]) -> Result<Graph> {
    let first = runs[0];
    for run in &runs[1..] {
        same_structure(first, run)?;
    }
    for (i, (tensor, what, source)) in first.reads.iter().enumerate() {
        if runs.iter().all(|r| r.reads.get(i).is_some_and(|(t, ..)| t.id() == tensor.id())) {
            return Err(read_error(what, source));
        }
    }
    let mut graph = Graph { strict: true, ..Graph::default() };
    let mut extents = Extents::default();
    let mut ready = 0;
    let numbers = |id: Id, axis: usize| runs.iter().map(|r| r.tensors[id].shape()[axis] as i64).collect::<Vec<_>>();
    let mut know = |graph: &mut Graph, extents: &mut Extents, upto: Id| {
        while ready < upto {
            let t = &first.tensors[ready];
            let dim = |axis: usize| {
                let all = numbers(ready, axis);
                match all.iter().all(|n| *n == all[0]) {
                    true => Dim::Fixed(all[0] as usize),
                    false => Dim::Free(extents.symbol(all, (ready, axis))),
                }
            };
            let dims = (0..t.ndim()).map(dim).collect();
            graph.values.push(Known { dims, dtype: t.dtype(), stop_gradient: first.stopped[ready] });
            ready += 1;
        }
    };
    know(&mut graph, &mut extents, specs.len());
    for (i, spec) in specs.iter().enumerate() {
        let name = spec.name.clone().unwrap_or_else(|| format!("x{i}"));
        graph.inputs.push(Input { name, value: i });
    }
    for (k, step) in first.steps.iter().enumerate() {
        let upto = step.ids.iter().map(|id| id + 1).max().unwrap_or(0);
        know(&mut graph, &mut extents, upto);
        let mut ids = step.ids.iter().copied();
        let mut args = Vec::new();
        for p in 0..step.args.len() {
            let all = runs.iter().map(|r| &r.steps[k].args[p]).collect::<Vec<_>>();
            let arg = merge_arg(&all, &mut ids, &extents).map_err(|e| {
                let (op, name) = (step.op.name, step.op.params[p].name);
                let at = step.source.as_ref().map_or(String::new(), |s| format!(" ({s})"));
                refused(format!("argument `{name}` of {op}{at} {e}"))
                    .hint("let the op find it (-1 in reshape), or fix the extent in the input's shape")
            })?;
            args.push(arg);
        }
        let upto = step.outputs.iter().map(|id| id + 1).max().unwrap_or(0);
        know(&mut graph, &mut extents, upto);
        let (outputs, source) = (step.outputs.clone(), step.source.clone());
        graph.calls.push(Call { op: step.op, args, outputs, no_grad: step.no_grad, source });
    }
    know(&mut graph, &mut extents, first.tensors.len());
    for (i, &id) in first.weights.iter().enumerate() {
        let tensor = first.tensors[id].clone();
        let others = || runs[1..].iter().map(|r| &r.tensors[r.weights[i]]);
        let shared = others().all(|t| t.id() == tensor.id());
        if !shared && !others().all(|t| equal(t, &tensor)) {
            return Err(refused(format!(
                "a tensor of shape {:?} is made anew in each run, and not with the same values",
                tensor.shape()
            ))
            .hint("make it with ops of sampan (arange, full, rand, …) instead of from an array, or once, outside"));
        }
        let name = if shared && !tensor.name().is_empty() { tensor.name() } else { format!("constant_{i}") };
        graph.weights.push(Weight { name, value: id, tensor, shared });
    }
    graph.outputs.clone_from(&first.outputs);
    graph.writes.clone_from(&first.writes);
    graph.last_uses = OnceLock::new();
    graph.prune();
    Ok(graph)
}

fn equal(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.shape() == b.shape() && a.to_bytes() == b.to_bytes()
}

/// The same calls on the same values?
fn same_structure(a: &Run, b: &Run) -> Result<()> {
    let other = |what: String, source: &Option<String>| {
        let at = source.as_ref().map_or(String::new(), |s| format!(" ({s})"));
        Err(refused(format!("the program does something else at another size: {what}{at}"))
            .hint("give this extent a number in the input's shape, or make the program's calls the same for all sizes"))
    };
    for (x, y) in a.steps.iter().zip(&b.steps) {
        let alike = x.op.name == y.op.name && x.outputs == y.outputs && x.no_grad == y.no_grad;
        if !alike {
            return other(format!("{} in one run, {} in another", x.op.name, y.op.name), &x.source);
        }
        if x.ids != y.ids {
            return other(format!("{} of other tensors", x.op.name), &x.source);
        }
    }
    if a.steps.len() != b.steps.len() {
        return other(format!("{} calls in one run, {} in another", a.steps.len(), b.steps.len()), &None);
    }
    if a.weights != b.weights || a.outputs != b.outputs || a.writes != b.writes {
        return other("other tensors are used or given".into(), &None);
    }
    let ranks = |r: &Run| r.tensors.iter().map(|t| (t.ndim(), t.dtype())).collect::<Vec<_>>();
    if ranks(a) != ranks(b) { other("results of another rank or dtype".into(), &None) } else { Ok(()) }
}

/// One argument as all runs gave it.
fn merge_arg(all: &[&Value], ids: &mut impl Iterator<Item = Id>, extents: &Extents) -> Result<Arg, String> {
    let mut next = || ids.next().ok_or_else(|| "has more tensors in one run".to_string());
    let numbers = |f: &dyn Fn(&Value) -> Option<i64>| all.iter().map(|v| f(v)).collect::<Option<Vec<_>>>();
    let lost = |n: &[i64]| {
        format!("is {} in one run and {} in another, and no simple expression of extents", n[0], n[n.len() - 1])
    };
    match all[0] {
        Value::Tensor(_) => next().map(Arg::Tensor),
        Value::Tensors(ts) => (0..ts.len()).map(|_| next()).collect::<Result<_, _>>().map(Arg::Tensors),
        Value::Int(_) => {
            let n = numbers(&|v| if let Value::Int(i) = v { Some(*i) } else { None }).ok_or("is of another kind")?;
            let size = extents.find(&n).ok_or_else(|| lost(&n))?;
            Ok(size.as_fixed().map_or_else(|| Arg::Size(size), |i| Arg::Plain(Value::Int(i))))
        }
        Value::Ints(list) => {
            let sizes = (0..list.len())
                .map(|i| {
                    let at = |v: &Value| match v {
                        Value::Ints(l) if l.len() == list.len() => Some(l[i]),
                        _ => None,
                    };
                    let n = numbers(&at).ok_or("is a list of another length")?;
                    extents.find(&n).ok_or_else(|| lost(&n))
                })
                .collect::<Result<Vec<_>, _>>()?;
            let fixed = sizes.iter().all(|s| s.as_fixed().is_some());
            Ok(if fixed { Arg::Plain(all[0].clone()) } else { Arg::Sizes(sizes) })
        }
        Value::List(list) => {
            let mut parts = Vec::new();
            for i in 0..list.len() {
                let part = |v: &&'_ Value| match v {
                    Value::List(l) if l.len() == list.len() => l.get(i).cloned(),
                    _ => None,
                };
                let each = all.iter().map(part).collect::<Option<Vec<_>>>().ok_or("is a list of another length")?;
                parts.push(merge_arg(&each.iter().collect::<Vec<_>>(), ids, extents)?);
            }
            let plain = parts.iter().all(|p| matches!(p, Arg::Plain(_)));
            Ok(if plain { Arg::Plain(all[0].clone()) } else { Arg::List(parts) })
        }
        Value::Float(f) => {
            let same = all.iter().all(|v| matches!(v, Value::Float(g) if g.to_bits() == f.to_bits()));
            let whole =
                numbers(&|v| if let Value::Float(f) = v { (f.fract() == 0.0).then_some(*f as i64) } else { None });
            match whole.filter(|_| !same).and_then(|n| extents.find(&n)) {
                Some(size) => Ok(Arg::Size(size)),
                None if same => Ok(Arg::Plain(all[0].clone())),
                None => Err("is a fraction that follows the extents".into()),
            }
        }
        // A formula is compared by what it is called with; objects cannot be told apart.
        Value::Object(object) => {
            match (all.iter().map(|v| Block::of(v)).collect::<Option<Vec<_>>>(), object.downcast::<Arc<Graph>>()) {
                (Some(runs), _) => crate::flow::merged(&runs).map(Arg::Block).map_err(|e| e.to_string()),
                (None, Some(graph)) => Ok(Arg::Block(graph.clone())),
                (None, None) => Ok(Arg::Plain(all[0].clone())),
            }
        }
        other => {
            let text = format!("{other:?}");
            let same = all.iter().all(|v| format!("{v:?}") == text);
            if same { Ok(Arg::Plain(other.clone())) } else { Err(format!("differs between runs: {text}")) }
        }
    }
}
