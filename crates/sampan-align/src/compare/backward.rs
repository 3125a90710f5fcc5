//! Which calls differ on the way back: their gradients alone, and the gradients that flow between them.

use super::graph::Graph;
use super::{Check, CheckResult, Context, Finding, LogRow, Options, Report, shown};
use crate::diff::Diff;
use crate::relations;
use crate::{CallPair, kinds};
use sampan_core::Tensor;
use std::collections::{HashMap, HashSet};

/// Gradients of the call alone, by the reference's inputs and the reference's gradient of its output.
fn local(cx: &Context<'_>, p: &CallPair) -> Option<(String, Diff, Tensor, Tensor)> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let (ours, theirs) = (cx.a.section("local")?, cx.b.section("local")?);
    let mut found: Vec<(String, Diff, Tensor, Tensor)> = Vec::new();
    let mut add = |name: String, x: &Tensor, y: &Tensor| {
        found.push((name, cx.diff(x, y, 8), x.clone(), y.clone()));
    };
    for i in 0..b.inputs.len().min(a.inputs.len()) {
        let name = format!("in{i}");
        if let (Some(x), Some(y)) = (ours.get(&format!("{}:{name}", a.key)), theirs.get(&format!("{}:{name}", b.key))) {
            add(format!("its input {i}"), x, y);
        }
    }
    let own = |full: &str, layer: &str| full.strip_prefix(layer).unwrap_or(full).trim_start_matches('.').to_string();
    for q in cx.pairing.parameters.iter().filter(|q| q.reference_layer == a.layer && q.candidate_layer == b.layer) {
        let x = ours.get(&format!("{}:{}", a.key, own(&q.reference, &a.layer)));
        let y = theirs.get(&format!("{}:{}", b.key, own(&q.candidate, &b.layer)));
        if let (Some(x), Some(y)) = (x, y)
            && q.transform.put.is_none()
            && let Ok(x) = q.transform.apply(x, y.shape())
        {
            add(format!("its {}", own(&q.candidate, &b.layer)), &x, y);
        }
    }
    // Gradients that cancel have no size of their own: what is tiny beside the others is rounding.
    let size = |t: &Tensor| crate::recording::numbers(t).map_or(0.0, |v| v.iter().fold(0.0f64, |m, x| m.max(x.abs())));
    let large = found.iter().map(|f| size(&f.2)).fold(0.0, f64::max);
    found.iter_mut().for_each(|f| f.1.differs &= f.1.max > 1e-6 * large || !f.1.max.is_finite());
    found.into_iter().max_by(|x, y| x.1.differs.cmp(&y.1.differs).then(x.1.relative.total_cmp(&y.1.relative)))
}

pub(crate) fn check(cx: &Context<'_>, options: &Options, report: &mut Report) {
    let has = |name: &str| cx.a.section(name).is_some_and(|s| !s.is_empty());
    if !options.wants(Check::Backward) || !(has("gradients") || has("backward")) {
        return;
    }
    let forward_ok = !report.findings.iter().any(|f| f.visible && matches!(f.check.as_str(), "forward" | "loss"));
    let blamed: HashSet<String> = report.findings.iter().map(|f| f.candidate.clone()).collect();
    let (ours, theirs) = (cx.a.section("gradients"), cx.b.section("gradients"));
    let mut flow: HashMap<usize, Option<Diff>> = HashMap::new();
    let mut bad_local = HashSet::new();
    let mut flips = false;
    for (order, p) in cx.pairing.calls.iter().enumerate() {
        let (a, b) = (cx.call_a(p), cx.call_b(p));
        let alone = local(cx, p);
        if let Some(row) = report.rows.get_mut(order) {
            row.local = alone.as_ref().map(|l| l.1.clone());
        }
        let random = super::forward::draws(cx, p);
        if let Some((what, d, x, y)) = alone.filter(|l| l.1.differs && !random && !p.glue)
            && !blamed.contains(&b.key)
        {
            bad_local.insert(p.candidate);
            let relation = relations::explain(&x, &y);
            let why = relation.as_ref().map_or(format!("by up to {:.3e}", d.max), |r| r.sentence.clone());
            // Too little to show in the output, and yet they are set otherwise.
            let set = crate::settings::differences(
                (cx.kind_a(p), cx.kind_b(p)),
                cx.sides(),
                (&a.config, &b.config),
                x.shape().len(),
            );
            let set = set.into_iter().next();
            let setting = set
                .as_ref()
                .map_or(String::new(), |d| format!("; {} is {} there and {} here", d.key, d.reference, d.candidate));
            report.findings.push(Finding {
                check: "backward".into(),
                place: if b.function { "function".into() } else { "layer".into() },
                reference: a.key.clone(),
                candidate: b.key.clone(),
                cause: match (&set, relation) {
                    (Some(d), _) => d.cause.into(),
                    (_, Some(r)) if r.cause == "zero" => "gradient_stopped".into(),
                    (_, Some(_)) => "gradient".into(),
                    _ => String::new(),
                },
                sentence: format!("{} gives another gradient of {what} on the same input: {why}{setting}", shown(b)),
                certainty: "likely".into(),
                visible: true,
                // On the way back the last call comes first.
                order: cx.pairing.calls.len() - order,
                ..Finding::default()
            });
        }
        let grad =
            |s: Option<&crate::Tensors>, keys: &[String]| keys.first().and_then(|k| s.and_then(|s| s.get(k).cloned()));
        let gradient = match (grad(ours, &a.outputs), grad(theirs, &b.outputs)) {
            (Some(x), Some(y)) => Some(cx.diff(&x, &y, 40 + 4 * (cx.pairing.calls.len() - order))),
            (Some(x), None) => {
                let zero = x.try_zeros_like().unwrap_or_else(|_| x.clone());
                let mut d = cx.diff(&x, &zero, 0);
                d.remark = "no gradient reaches the candidate's".into();
                Some(d)
            }
            (None, Some(_)) => Some(Diff {
                differs: true,
                remark: "a gradient reaches only the candidate's".into(),
                ..Diff::default()
            }),
            _ => None,
        };
        let flipped = gradient.as_ref().is_some_and(|d| d.differs && d.remark.is_empty())
            && forward_ok
            && matches!((grad(ours, &a.outputs), grad(theirs, &b.outputs)), (Some(x), Some(y)) if few(&x, &y));
        let gradient = gradient.map(|d| Diff { differs: d.differs && !flipped, ..d });
        flips |= flipped;
        if let Some(row) = report.rows.get_mut(order) {
            row.gradient = gradient.clone();
        }
        if !p.glue && b.op != "output" {
            flow.insert(p.candidate, gradient);
        }
    }
    if forward_ok && !cx.random {
        broken_flow(cx, &flow, &bad_local, report);
    }
    // After other random numbers every gradient is another one.
    let mut rows = if cx.random { Vec::new() } else { parameter_rows(cx) };
    if flips && bad_local.is_empty() && rows.iter().any(|r| r.diff.differs && r.diff.relative < 0.1) {
        rows.iter_mut().for_each(|r| r.diff.differs &= r.diff.relative >= 0.1 || !r.diff.remark.is_empty());
        report.notes.push(FLIPS.into());
    }
    let first = report.findings.iter().filter(|f| f.check == "backward" && f.visible).min_by_key(|f| f.order);
    report.first_backward = first.map(|f| f.candidate.clone());
    if !rows.is_empty() {
        let ok = rows.iter().all(|r| !r.diff.differs);
        if !ok && forward_ok && first.is_none() {
            lonely(cx, &rows, report);
        }
        report.checks.push(CheckResult { check: Check::Backward, ok, rows });
    }
}

/// What is said where a maximum is taken elsewhere.
pub(crate) const FLIPS: &str = "two values are so close in a few places that rounding decides which is the greatest, and the \
    gradient takes another way there; each call by itself has the right gradients";

/// Do they differ in a few elements only, far more than in the others?
fn few(x: &Tensor, y: &Tensor) -> bool {
    let (Some(v), Some(w)) = (crate::recording::numbers(x), crate::recording::numbers(y)) else { return false };
    let large = v.iter().fold(0.0f64, |m, a| m.max(a.abs()));
    let far = v.iter().zip(&w).filter(|(a, b)| (*a - *b).abs() > 1e-4 * large).count();
    v.len() == w.len() && v.len() >= 200 && far * 100 <= v.len()
}

/// Gradients that agree after a place and not before it, though every call by itself is right.
fn broken_flow(cx: &Context<'_>, flow: &HashMap<usize, Option<Diff>>, bad_local: &HashSet<usize>, report: &mut Report) {
    let graph = Graph::of(cx.b);
    for (order, p) in cx.pairing.calls.iter().enumerate().rev() {
        let Some(Some(d)) = flow.get(&p.candidate) else { continue };
        if !d.differs || cx.call_b(p).layer == "(program)" {
            continue;
        }
        let users = graph.next(p.candidate, |j| flow.contains_key(&j));
        let right =
            |j: &usize| !bad_local.contains(j) && flow.get(j).is_some_and(|f| f.as_ref().is_none_or(|d| !d.differs));
        // Where gradients agree again before this call, the sides only compute in another order.
        let heals =
            graph.before(p.candidate, |_| false).0.iter().any(|j| matches!(flow.get(j), Some(Some(d)) if !d.differs));
        if users.iter().all(right) && !heals {
            let (a, b) = (cx.call_a(p), cx.call_b(p));
            // A call that cuts the flow hides who reads its result; then it is whoever comes next.
            let later =
                cx.pairing.calls.iter().map(|q| q.candidate).find(|&j| j > p.candidate && flow.contains_key(&j));
            let next = users.iter().min().copied().or(later).map(|j| shown(&cx.b.structure.calls[j]));
            let seen =
                cx.b.structure
                    .calls
                    .iter()
                    .find(|c| kinds::kind(&c.op) == "detach" && c.inputs.iter().any(|k| b.outputs.contains(k)));
            let lost = if d.remark.is_empty() {
                "another gradient reaches it than in the reference".to_string()
            } else {
                d.remark.clone()
            };
            report.findings.push(Finding {
                check: "backward".into(),
                place: "between".into(),
                reference: a.key.clone(),
                candidate: seen.map_or(b.key.clone(), |c| c.key.clone()),
                cause: "gradient_stopped".into(),
                sentence: format!(
                    "the gradient is lost between {} and {}: {lost}; something like detach or stop_gradient stands there",
                    shown(b),
                    next.unwrap_or_else(|| "the loss".into())
                ),
                evidence: vec![format!("each call by itself has the right gradients, and those after {} agree", b.key)],
                certainty: "confirmed".into(),
                visible: true,
                order: cx.pairing.calls.len() - order,
                ..Finding::default()
            });
            return;
        }
    }
}

/// Gradients of parameters of the first step, in the candidate's form.
fn parameter_rows(cx: &Context<'_>) -> Vec<LogRow> {
    let (Some(ours), Some(theirs)) = (cx.a.section("backward"), cx.b.section("backward")) else { return Vec::new() };
    let mut rows = Vec::new();
    let depth = 40 + 4 * cx.pairing.calls.len();
    let size = |t: &Tensor| crate::recording::numbers(t).map_or(0.0, |v| v.iter().fold(0.0f64, |m, x| m.max(x.abs())));
    let large = ours.iter().map(|(_, t)| size(t)).fold(0.0, f64::max);
    for p in cx.pairing.parameters.iter().filter(|p| p.transform.put.is_none()) {
        let get = |s: &crate::Tensors, n: &str| s.get(&cx.at_step(n)).or_else(|| s.get(n)).cloned();
        match (get(ours, &p.reference), get(theirs, &p.candidate)) {
            (Some(x), Some(y)) => {
                let Ok(x) = p.transform.apply(&x, y.shape()) else { continue };
                let mut d = cx.diff(&x, &y, depth);
                // A bias before a batch normalisation has no gradient but rounding.
                d.differs &= d.max > 1e-5 * large || !d.max.is_finite();
                rows.push(LogRow { key: p.reference.clone(), diff: d });
            }
            (Some(x), None) if size(&x) > 1e-6 * large => rows.push(LogRow {
                key: p.reference.clone(),
                diff: Diff {
                    differs: true,
                    relative: 1.0,
                    max: size(&x),
                    remark: "the candidate has no gradient".into(),
                    ..Diff::default()
                },
            }),
            _ => {}
        }
    }
    rows
}

/// Parameters whose gradients differ although no call stands out.
fn lonely(cx: &Context<'_>, rows: &[LogRow], report: &mut Report) {
    // Without tensors between the layers, the last layer whose gradient is wrong is the first on the way back.
    let Some(row) = rows.iter().rev().find(|r| r.diff.differs) else { return };
    let pair = cx.pairing.parameters.iter().find(|p| p.reference == row.key);
    let none = row.diff.remark.contains("no gradient");
    report.findings.push(Finding {
        check: "backward".into(),
        place: "layer".into(),
        reference: pair.map_or(row.key.clone(), |p| p.reference_layer.clone()),
        candidate: pair.map_or(row.key.clone(), |p| p.candidate_layer.clone()),
        cause: if none { "gradient_stopped".into() } else { String::new() },
        sentence: format!(
            "the gradient of {} differs: {}",
            row.key,
            if none { row.diff.remark.clone() } else { format!("by up to {:.3e}", row.diff.max) }
        ),
        certainty: "likely".into(),
        visible: true,
        order: 0,
        ..Finding::default()
    });
    report.first_backward = report.findings.last().map(|f| f.candidate.clone());
}
