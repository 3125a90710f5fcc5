//! Which calls differ forward: each alone, on the reference's input where that is known.

use super::causes::{self, Cause};
use super::graph::{Graph, is_glue};
use super::{Check, CheckResult, Context, Finding, LogRow, Options, Report, Row, shown};
use super::{blocks, ends, gaps};
use crate::diff::Diff;
use crate::evaluate;
use crate::{Call, CallPair, kinds};
use sampan_core::Tensor;
use std::collections::{HashMap, HashSet};

/// What was seen at one pair of calls.
struct Seen {
    pair: CallPair,
    natural: Option<Diff>,
    /// The candidate's call on the reference's input.
    forced: Option<Diff>,
    forced_output: Option<Tensor>,
    /// The input that the candidate would have had, were everything before it right: index, reference's, candidate's.
    input: Option<(usize, Tensor, Tensor)>,
}

fn worst(found: impl Iterator<Item = Diff>) -> Option<Diff> {
    found.max_by(|x, y| x.differs.cmp(&y.differs).then(x.relative.total_cmp(&y.relative)))
}

fn tensors<'t>(side: &'t crate::Recording, keys: &[String]) -> Vec<Option<&'t Tensor>> {
    keys.iter().map(|k| side.tensor("forward", k)).collect()
}

/// Is it the loss, or computed from the output by the program around the model?
fn outside(call: &Call) -> bool {
    call.layer == "(program)"
}

/// Compares inputs in order; a sum and a product may have theirs swapped.
fn input_diff(cx: &Context<'_>, kind: &str, ours: &[&Tensor], theirs: &[&Tensor]) -> Option<(usize, Diff)> {
    let depth = 4;
    let of = |pairs: Vec<(usize, &Tensor, &Tensor)>| -> Option<(usize, Diff)> {
        let all = pairs.into_iter().map(|(i, x, y)| (i, cx.diff(x, y, depth)));
        all.filter(|(_, d)| d.differs).max_by(|x, y| x.1.relative.total_cmp(&y.1.relative))
    };
    if ours.len() != theirs.len() {
        // A query given once and one given as query, key and value are the same thing.
        let n = ours.len().min(theirs.len()).min(1);
        return of((0..n).map(|i| (i, ours[i], theirs[i])).collect());
    }
    let straight = of((0..ours.len()).map(|i| (i, ours[i], theirs[i])).collect())?;
    if matches!(kind, "add" | "mul") && ours.len() == 2 {
        let crossed = of(vec![(0, ours[0], theirs[1]), (1, ours[1], theirs[0])]);
        return crossed.map(|c| if c.1.relative < straight.1.relative { c } else { straight });
    }
    Some(straight)
}

/// Dropout in training mode draws numbers of its own on each side.
pub(crate) fn draws(cx: &Context<'_>, p: &CallPair) -> bool {
    let active = |c: &Call| {
        let training = c.config.get("training").and_then(|t| t.as_bool()).unwrap_or(false);
        let share = |name: &str| c.config.get(name).and_then(|p| p.as_f64()).unwrap_or(0.0) > 0.0;
        training && (share("p") || share("dropout"))
    };
    let kind = cx.kind_a(p);
    (kind.starts_with("drop") || matches!(kind, "mha" | "lstm" | "gru")) && active(cx.call_a(p)) && active(cx.call_b(p))
}

fn look(cx: &Context<'_>, p: CallPair, depth: usize, graph: &Graph, natural_of: &HashMap<usize, f64>) -> Seen {
    let (a, b) = (cx.call_a(&p), cx.call_b(&p));
    let outputs = |side, call: &Call| tensors(side, &call.outputs).into_iter().flatten().cloned().collect::<Vec<_>>();
    let (out_a, out_b): (Vec<Tensor>, Vec<Tensor>) = (outputs(cx.a, a), outputs(cx.b, b));
    let natural = worst(out_a.iter().zip(&out_b).map(|(x, y)| cx.diff(x, y, depth)));
    let in_a: Vec<&Tensor> = tensors(cx.a, &a.inputs).into_iter().flatten().collect();
    let in_b: Vec<&Tensor> = tensors(cx.b, &b.inputs).into_iter().flatten().collect();
    let section = cx.b.section("forced");
    let get = |key: String| section.and_then(|s| s.get(&key));
    let forced_in: Vec<&Tensor> = (0..b.inputs.len()).filter_map(|i| get(format!("{}:in{i}", b.key))).collect();
    let mut forced_out: Vec<Tensor> =
        (0..b.outputs.len()).filter_map(|i| get(format!("{}:out{i}", b.key)).cloned()).collect();
    let mut input = None;
    if !forced_in.is_empty()
        && let Some((i, _)) = input_diff(cx, cx.kind_b(&p), &in_a, &forced_in)
    {
        input = Some((i, in_a[i].clone(), forced_in[i.min(forced_in.len() - 1)].clone()));
    }
    // Without forcing, the layer is computed again where that is known, and else judged by what it made of its own input.
    let unforced = section.is_none_or(|s| s.is_empty());
    let mut spread = 0.0;
    if unforced {
        let parameters = causes::parameters(cx, &p);
        let inputs: Vec<Tensor> = in_a.iter().map(|t| (*t).clone()).collect();
        forced_out.extend(evaluate::evaluate(cx.sides().1, cx.kind_b(&p), &b.config, &parameters, &inputs));
        let far = |x: &Tensor, y: &Tensor| cx.diff(x, y, 0).relative;
        let inputs = || in_a.iter().zip(&in_b).map(|(x, y)| far(x, y)).fold(0.0, f64::max);
        if forced_out.is_empty() && in_a.len() == in_b.len() {
            spread = 10.0 * inputs();
            forced_out = out_b.clone();
        }
        // An input is at fault only if what it is made from agrees far better.
        let (_, ends) = graph.before(p.candidate, |j| natural_of.contains_key(&j));
        let before = ends.iter().map(|j| natural_of[j]).fold(0.0, f64::max);
        if let Some((i, _)) = input_diff(cx, cx.kind_b(&p), &in_a, &in_b).filter(|(_, d)| d.relative > 10.0 * before) {
            input = Some((i, in_a[i].clone(), in_b[i].clone()));
        }
    }
    let mut forced = worst(out_a.iter().zip(&forced_out).map(|(x, y)| cx.diff(x, y, 2)));
    if let Some(d) = forced.as_mut().filter(|d| d.relative <= spread) {
        d.differs = false;
    }
    Seen { pair: p, natural, forced, forced_output: forced_out.into_iter().next(), input }
}

pub(crate) fn check(cx: &Context<'_>, options: &Options, report: &mut Report) {
    if cx.pairing.calls.is_empty() {
        return;
    }
    let (graph_a, graph_b) = (Graph::of(cx.a), Graph::of(cx.b));
    let mut natural_of: HashMap<usize, f64> = HashMap::new();
    let mut seen: Vec<Seen> = Vec::new();
    for (depth, p) in cx.pairing.calls.iter().enumerate() {
        let s = look(cx, *p, depth, &graph_b, &natural_of);
        if !p.glue {
            let far = s.natural.as_ref().map_or(0.0, |d| d.relative);
            natural_of.insert(p.candidate, if draws(cx, p) { 0.0 } else { far });
        }
        seen.push(s);
    }
    let natural: HashMap<usize, f64> = seen
        .iter()
        .filter(|s| !s.pair.glue && !outside(cx.call_b(&s.pair)))
        .filter_map(|s| {
            s.natural.as_ref().map(|d| (s.pair.candidate, if d.differs { f64::INFINITY } else { d.relative }))
        })
        .collect();
    let mut faults: HashSet<usize> = HashSet::new();
    let anchors_a: HashSet<usize> =
        cx.pairing.calls.iter().filter(|p| !p.glue && !is_glue(cx.kind_a(p))).map(|p| p.reference).collect();
    let anchors_b: HashSet<usize> = cx.pairing.calls.iter().filter(|p| !p.glue).map(|p| p.candidate).collect();
    for (order, s) in seen.iter().enumerate() {
        let p = &s.pair;
        if p.glue {
            continue;
        }
        let healed = heals(cx, s, &graph_b, &natural);
        let mut blamed = false;
        if let Some((index, x, y)) = &s.input
            && !healed
        {
            // What leads to the input that differs, or to all of them where that shows nothing.
            let key = |c: &Call| c.inputs.get(*index).cloned().unwrap_or_default();
            let near = [
                graph_a.to(&key(cx.call_a(p)), |i| anchors_a.contains(&i)),
                graph_b.to(&key(cx.call_b(p)), |i| anchors_b.contains(&i)),
            ];
            let all = [
                graph_a.before(p.reference, |i| anchors_a.contains(&i)).0,
                graph_b.before(p.candidate, |i| anchors_b.contains(&i)).0,
            ];
            let shows = |[r, c]: &[Vec<usize>; 2]| {
                let calls = |side: &crate::Recording, of: &[usize]| {
                    of.iter().map(|&i| side.structure.calls[i].clone()).collect::<Vec<_>>()
                };
                let (r, c) = (calls(cx.a, r), calls(cx.b, c));
                gaps::unmatched(&r.iter().collect::<Vec<_>>(), &c.iter().collect::<Vec<_>>())
                    .iter()
                    .any(|side| !side.is_empty())
            };
            let [reference, candidate] = if shows(&near) { near } else { all };
            let between = Between { reference, candidate, input: *index, x, y };
            let finding = between.finding(cx, p, order);
            if wanted(options, &finding) {
                report.findings.push(finding);
            }
            faults.insert(order);
            // Where the reference's input could not be put in, the output only follows from the wrong one.
            let inputs = |c: &Call| c.inputs.iter().collect::<HashSet<_>>().len();
            blamed = x.shape() != y.shape() || inputs(cx.call_a(p)) != inputs(cx.call_b(p));
        }
        let bad = s.forced.as_ref().is_some_and(|d| d.differs) && !draws(cx, p);
        let refuses = cx.call_b(p).config.get("refuses").and_then(|r| r.as_str());
        if (bad || refuses.is_some()) && !blamed && !healed {
            let cause = causes::of_call(cx, p, s.forced_output.as_ref());
            let finding = layer_finding(cx, p, s, cause, order, refuses);
            if wanted(options, &finding) {
                report.findings.push(finding);
            }
            faults.insert(order);
        } else if !bad {
            // An exported graph has normalisations folded into the weights before them.
            let exported = cx.sides().0 == "onnxruntime" || cx.sides().1 == "onnxruntime";
            if let Some(cause) = super::weights::cause(cx, p).filter(|_| !exported) {
                // Too little to show in the output of the layer, and yet the weights are not the same.
                report.findings.push(layer_finding(cx, p, s, cause, order, None));
                faults.insert(order);
            }
            for finding in causes::silent(cx, p, order) {
                if wanted(options, &finding) {
                    report.findings.push(finding);
                }
            }
        }
    }
    reorder(&mut report.findings);
    if options.wants(Check::Loss) {
        ends::final_loss(cx, report);
    }
    let first =
        |outside_: bool| (0..seen.len()).find(|o| faults.contains(o) && outside(cx.call_b(&seen[*o].pair)) == outside_);
    report.first_forward = first(false).map(|o| cx.call_b(&seen[o].pair).key.clone());
    rows(cx, options, &seen, &faults, report);
}

/// Do the values agree again at or after this call, far better than it differs here? Then the two sides only compute in
/// another order: a factor before the product or after it.
fn heals(cx: &Context<'_>, s: &Seen, graph: &Graph, natural: &HashMap<usize, f64>) -> bool {
    // In the models as they ran a later fault may hide it, so that it was tried with everything else right.
    if cx.call_b(&s.pair).heals {
        return true;
    }
    let forced = s.forced.as_ref().map_or(0.0, |d| d.relative);
    let input = s.input.as_ref().map_or(0.0, |(_, x, y)| cx.diff(x, y, 0).relative);
    let limit = (forced.max(input) / 500.0).min(5e-5);
    // A mask of huge numbers hides a difference for one call; what follows shows it again.
    let stays = |j: &usize| graph.after(*j).iter().all(|k| natural.get(k).is_none_or(|d| d.is_finite()));
    let agrees = |j: &usize| natural.get(j).is_some_and(|d| *d <= limit) && stays(j);
    agrees(&s.pair.candidate) || graph.after(s.pair.candidate).iter().any(agrees)
}

fn wanted(options: &Options, f: &Finding) -> bool {
    let check = if f.check == "loss" { Check::Loss } else { Check::Forward };
    options.wants(check)
}

/// Calls between two pairs where something is lost, added or turned.
struct Between<'t> {
    reference: Vec<usize>,
    candidate: Vec<usize>,
    input: usize,
    x: &'t Tensor,
    y: &'t Tensor,
}

impl Between<'_> {
    fn finding(&self, cx: &Context<'_>, p: &CallPair, order: usize) -> Finding {
        let (a, b) = (cx.call_a(p), cx.call_b(p));
        let calls_a: Vec<&Call> = self.reference.iter().map(|&i| &cx.a.structure.calls[i]).collect();
        let calls_b: Vec<&Call> = self.candidate.iter().map(|&i| &cx.b.structure.calls[i]).collect();
        let cause = gaps::of_gap(cx, &calls_a, &calls_b, (a, b), self.input, self.x, self.y);
        // The call that is there on one side only is what to look at; else the one that gets the wrong input.
        let anchor = |calls: &[&Call]| {
            calls.iter().rev().find(|c| !is_glue(&kinds::kind(&c.op))).or(calls.last()).map(|c| c.key.clone())
        };
        let list = |calls: &[&Call]| {
            let names: Vec<String> = calls.iter().map(|c| shown(c)).collect();
            if names.is_empty() { "nothing".to_string() } else { names.join(", ") }
        };
        let check = if outside(b) { "loss" } else { "forward" };
        if let Some(block) = blocks::between(cx, &calls_a, &calls_b) {
            let name = |own: bool| if own { block.name.clone() } else { String::new() };
            return Finding {
                check: check.into(),
                place: "layer".into(),
                reference: name(!block.extra),
                candidate: name(block.extra),
                sentence: block.cause.sentence,
                cause: block.cause.word,
                certainty: block.cause.certainty,
                evidence: vec![format!("{} is the first to get another input for it", shown(b))],
                visible: true,
                order,
                ..Finding::default()
            };
        }
        let mut evidence = vec![
            format!("between the layers the reference calls {}, the candidate {}", list(&calls_a), list(&calls_b)),
            format!("the input of {} would be {:?} and is {:?}", b.key, self.x.shape(), self.y.shape()),
        ];
        evidence.extend(cause.evidence.clone());
        Finding {
            check: check.into(),
            place: "between".into(),
            reference: anchor(&calls_a).unwrap_or_else(|| a.key.clone()),
            candidate: anchor(&calls_b).unwrap_or_else(|| b.key.clone()),
            sentence: format!("{} gets another input than in the reference: {}", shown(b), cause.sentence),
            cause: cause.word,
            certainty: cause.certainty,
            lost: gaps::unmatched(&calls_a, &calls_b)
                .map(|side| side.into_iter().map(|c| kinds::kind(&c.op)).collect()),
            detail: super::detail(cx, p),
            evidence,
            visible: true,
            order,
        }
    }
}

fn layer_finding(
    cx: &Context<'_>,
    p: &CallPair,
    s: &Seen,
    cause: Cause,
    order: usize,
    refuses: Option<&str>,
) -> Finding {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let mut evidence = Vec::new();
    if let Some(d) = &s.forced {
        let how = if d.remark.is_empty() {
            format!("by up to {:.3e} ({:.2e} of the largest value)", d.max, d.relative)
        } else {
            format!("({})", d.remark)
        };
        evidence.push(format!("on the reference's input the outputs differ {how}"));
    }
    if let Some(why) = refuses {
        evidence.push(format!("on the reference's input it fails: {why}"));
    }
    evidence.extend(cause.evidence);
    let place = if outside(b) {
        "loss"
    } else if b.function {
        "function"
    } else {
        "layer"
    };
    let other =
        if a.key == b.key && a.op == b.op { String::new() } else { format!(", {} in the reference,", shown(a)) };
    Finding {
        check: if outside(b) { "loss".into() } else { "forward".into() },
        place: place.into(),
        reference: a.key.clone(),
        candidate: b.key.clone(),
        sentence: format!("{}{other} computes something else: {}", shown(b), cause.sentence),
        cause: cause.word,
        certainty: cause.certainty,
        detail: super::detail(cx, p),
        evidence,
        visible: true,
        order,
        ..Finding::default()
    }
}

/// What is missing in one place and too much in another close by has changed its place.
fn reorder(findings: &mut [Finding]) {
    let near = |x: &Finding, y: &Finding| x.order != y.order && x.order.abs_diff(y.order) <= 6;
    let moved: Vec<usize> = (0..findings.len())
        .filter(|&i| {
            let x = &findings[i];
            findings.iter().filter(|y| near(x, y)).any(|y| {
                x.lost[0].iter().any(|k| y.lost[1].contains(k)) || x.lost[1].iter().any(|k| y.lost[0].contains(k))
            })
        })
        .collect();
    for i in moved {
        let f = &mut findings[i];
        f.evidence.push(f.sentence.clone());
        let kind = f.lost[0].first().or(f.lost[1].first()).cloned().unwrap_or_default();
        f.cause = "layer_order".into();
        f.certainty = "confirmed".into();
        f.sentence = format!(
            "the layers around {} run in another order than in the reference: {kind} has changed its place",
            f.candidate
        );
    }
}

fn rows(cx: &Context<'_>, options: &Options, seen: &[Seen], faults: &HashSet<usize>, report: &mut Report) {
    let mut logs = vec![];
    let mut losses = vec![];
    for (order, s) in seen.iter().enumerate() {
        let (a, b) = (cx.call_a(&s.pair), cx.call_b(&s.pair));
        let verdict = match (faults.contains(&order), &s.natural) {
            (true, _) => "fault",
            (_, Some(d)) if d.differs && !cx.random => "inherited",
            _ => "ok",
        };
        if let Some(d) = &s.natural {
            let row = LogRow { key: a.key.clone(), diff: d.clone() };
            if outside(a) { losses.push(row) } else { logs.push(row) }
        }
        report.rows.push(Row {
            reference: a.key.clone(),
            candidate: b.key.clone(),
            kind: cx.kind_b(&s.pair).to_string(),
            shape: b.shapes.first().cloned().unwrap_or_default(),
            natural: s.natural.clone(),
            forced: s.forced.clone(),
            gradient: None,
            local: None,
            verdict: verdict.into(),
        });
    }
    let ok = |rows: &[LogRow]| cx.random || rows.last().is_none_or(|r| !r.diff.differs);
    if options.wants(Check::Forward) && !logs.is_empty() {
        report.checks.push(CheckResult { check: Check::Forward, ok: ok(&logs), rows: logs });
    }
    if options.wants(Check::Loss) && !losses.is_empty() {
        report.checks.push(CheckResult { check: Check::Loss, ok: ok(&losses), rows: losses });
    }
}
