//! What a call is made of, for those who do not know its op.

use crate::graph::{Arg, Call, Dim, Graph, Id};
use crate::ssa::refused;
use crate::trace::{Spec, input, merge, run_on};
use sampan_core::{Result, Tensor, Value};

/// What an op's call is made of, one level down: a graph whose inputs are the call's tensors.
pub(crate) fn lowered(call: &Call, graph: &Graph) -> Result<Graph> {
    if call.args.iter().any(|a| matches!(a, Arg::Block(_))) {
        // Which of its calls are made, values decide.
        return Err(refused(format!("{} is control flow, and made of no other ops", call.op.name)));
    }
    let mut ids = Vec::new();
    call.args.iter().for_each(|a| tensor_ids(a, &mut ids));
    let mut symbols =
        ids.iter().flat_map(|&id| &graph.values[id].dims).filter(|d| d.fixed().is_none()).collect::<Vec<_>>();
    symbols.sort_by_key(|d| if let Dim::Free(s) = d { *s } else { 0 });
    symbols.dedup();
    // Some numbers for each symbol: the first, then others for each of them and for all.
    let number = |at: usize, k: usize| [6, 8, 12][k] + 16 * at;
    let mut plans = vec![vec![0; symbols.len()]];
    for i in 0..symbols.len() {
        plans.extend([1, 2].map(|k| (0..symbols.len()).map(|j| if i == j { k } else { 0 }).collect()));
    }
    plans.extend([1, 2].map(|k| vec![k; symbols.len()]));
    let mut runs = Vec::new();
    for plan in plans {
        let extent = |d: Dim| match (d, symbols.iter().position(|s| **s == d)) {
            (Dim::Fixed(n), _) => n,
            (_, Some(at)) => number(at, plan[at]),
            (_, None) => 1,
        };
        let inputs = ids.iter().map(|&id| {
            let known = &graph.values[id];
            let shape = known.dims.iter().map(|&d| extent(d)).collect::<Vec<_>>();
            input(Tensor::meta(shape, known.dtype), known.stop_gradient)
        });
        let size = |id: Id, axis: usize| graph.values[id].dims.get(axis).map(|&d| extent(d) as i64);
        let mut program = |inputs: &[Tensor]| {
            let mut next = inputs.iter().cloned();
            let args = call.args.iter().map(|a| valued(a, &mut next, &size)).collect::<Option<_>>();
            let args = args.ok_or_else(|| refused("an argument cannot be computed".into()))?;
            sampan_core::dispatch::dispatch(call.op, args).map(|o| o.into_vec())
        };
        runs.push(run_on(&mut program, inputs.collect(), 1, &|| None)?);
    }
    let spec = |&id: &Id| Spec { shape: vec![], dtype: graph.values[id].dtype, name: None, stop_gradient: false };
    merge(&ids.iter().map(spec).collect::<Vec<_>>(), &runs.iter().collect::<Vec<_>>())
}

/// The tensors of an argument, in order.
pub(crate) fn tensor_ids(arg: &Arg, ids: &mut Vec<Id>) {
    match arg {
        Arg::Tensor(id) => ids.push(*id),
        Arg::Tensors(all) => ids.extend(all),
        Arg::List(parts) => parts.iter().for_each(|p| tensor_ids(p, ids)),
        Arg::Plain(_) | Arg::Size(_) | Arg::Sizes(_) | Arg::Block(_) => {}
    }
}

/// An argument with tensors and numbers in the place of what stands for them.
fn valued(
    arg: &Arg,
    next: &mut impl Iterator<Item = Tensor>,
    size: &impl Fn(Id, usize) -> Option<i64>,
) -> Option<Value> {
    Some(match arg {
        Arg::Plain(v) => v.clone(),
        Arg::Block(_) => return None,
        Arg::Tensor(_) => Value::Tensor(next.next()?),
        Arg::Tensors(ids) => Value::Tensors(ids.iter().map(|_| next.next()).collect::<Option<_>>()?),
        Arg::Size(s) => Value::Int(s.eval(size)?),
        Arg::Sizes(all) => Value::Ints(all.iter().map(|s| s.eval(size)).collect::<Option<_>>()?),
        Arg::List(parts) => Value::List(parts.iter().map(|p| valued(p, next, size)).collect::<Option<_>>()?),
    })
}
