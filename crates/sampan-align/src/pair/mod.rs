//! Which layer of one side is which layer of the other.

mod corrections;
mod parameters;
mod sequence;
mod units;

pub use corrections::Corrections;
pub use parameters::{ParameterPair, Transform};

use crate::Structure;
use sampan_core::Result;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use units::Unit;

/// Two calls that do the same thing; indices into [`Structure::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CallPair {
    /// The reference's call.
    pub reference: usize,
    /// The candidate's.
    pub candidate: usize,
    /// Do they stand at other places in the order of execution?
    pub moved: bool,
    /// Do they only move values, so that more or fewer of them may do the same?
    pub glue: bool,
}

/// Two layers that are the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerPair {
    /// The reference's layer.
    pub reference: String,
    /// The candidate's.
    pub candidate: String,
    /// How well they fit, from 0 to 1; a correction of the user's has 1.
    pub score: f64,
}

/// What belongs together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pairing {
    /// Layers, inner ones and those that hold others.
    pub layers: Vec<LayerPair>,
    /// Calls, where both sides ran.
    pub calls: Vec<CallPair>,
    /// Parameters and buffers.
    pub parameters: Vec<ParameterPair>,
    /// Parameters of the reference without a partner.
    pub left_reference: Vec<String>,
    /// Parameters of the candidate without a partner.
    pub left_candidate: Vec<String>,
    /// What had to be decided without certainty, in sentences.
    pub doubts: Vec<String>,
}

/// Pairs the layers, calls and parameters of two sides by structure, names, shapes and order of execution.
///
/// ```
/// use sampan_align::{Corrections, Structure, pair};
/// let shapes = |weight: [usize; 2]| vec![("fc.weight".to_string(), weight.to_vec()), ("fc.bias".to_string(), vec![3])];
/// let torch = Structure::from_weights("torch", &shapes([3, 4]));
/// let ours = Structure::from_weights("sampan", &shapes([4, 3]));
/// let pairing = pair(&torch, &ours, &Corrections::default())?;
/// assert!(pairing.parameters[0].transform.transpose);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn pair(reference: &Structure, candidate: &Structure, corrections: &Corrections) -> Result<Pairing> {
    corrections.check(reference, candidate)?;
    let fold = units::is_fused(reference) != units::is_fused(candidate);
    // What ran is paired in the order of execution; layers that did not run, and files of weights, in that of definition.
    let (a, b) = (units::of_calls(reference), units::of_calls(candidate));
    let mut pairing = Pairing::default();
    let mut layers: Vec<(String, String, f64)> = Vec::new();
    if !a.is_empty() && !b.is_empty() {
        for m in sequence::match_units(&a, &b, corrections) {
            let (x, y) = (&a[m.a], &b[m.b]);
            pairing.calls.push(CallPair {
                reference: x.call,
                candidate: y.call,
                moved: m.moved,
                glue: crate::kinds::is_glue(&y.kind) || candidate.calls[y.call].constant,
            });
            if x.is_layer && y.is_layer {
                layers.push((x.layer.clone(), y.layer.clone(), m.fit));
            }
        }
        pairing.calls.sort_by_key(|c| c.candidate);
    }
    let ran = |layers: &[(String, String, f64)], first: bool| -> HashSet<String> {
        layers.iter().map(|l| if first { l.0.clone() } else { l.1.clone() }).collect()
    };
    let inside = |name: &str, owners: &HashSet<String>| {
        owners.contains(name)
            || owners.iter().any(|o| name.strip_prefix(o.as_str()).is_some_and(|r| r.starts_with('.')))
    };
    let (done_a, done_b) = (ran(&layers, true), ran(&layers, false));
    let mut a: Vec<Unit> = units::of_layers(reference, fold);
    let mut b: Vec<Unit> = units::of_layers(candidate, fold);
    a.retain(|u| !inside(&u.layer, &done_a));
    b.retain(|u| !inside(&u.layer, &done_b));
    for m in sequence::match_units(&a, &b, corrections) {
        layers.push((a[m.a].layer.clone(), b[m.b].layer.clone(), m.fit));
    }
    // A layer that runs several times, or whose weights are shared, is paired once.
    let mut seen = HashSet::new();
    layers.retain(|(x, y, _)| seen.insert((x.clone(), y.clone())));
    drop_contradictions(&mut layers, &mut pairing.doubts);
    parameters::match_parameters(reference, candidate, &layers, corrections, &mut pairing);
    pairing.layers =
        layers.iter().map(|(x, y, s)| LayerPair { reference: x.clone(), candidate: y.clone(), score: *s }).collect();
    pairing.layers.extend(containers(reference, candidate, &layers));
    Ok(pairing)
}

/// A layer that runs twice may meet two partners; the one it meets most often stays.
fn drop_contradictions(layers: &mut Vec<(String, String, f64)>, doubts: &mut Vec<String>) {
    let mut best: HashMap<String, (String, f64)> = HashMap::new();
    for (x, y, s) in layers.iter() {
        match best.get(x) {
            Some((_, known)) if *known >= *s => {}
            _ => {
                best.insert(x.clone(), (y.clone(), *s));
            }
        }
    }
    layers.retain(|(x, y, _)| {
        let keep = best[x].0 == *y;
        if !keep {
            doubts.push(format!(
                "the reference's {x} fits two layers of the candidate, {} and {y}; the first was taken",
                best[x].0
            ));
        }
        keep
    });
}

/// Layers that hold others are the same if most of what they hold is.
fn containers(a: &Structure, b: &Structure, leaves: &[(String, String, f64)]) -> Vec<LayerPair> {
    let ancestors = |name: &str| -> Vec<String> {
        let mut found: Vec<String> = name.match_indices('.').map(|(i, _)| name[..i].to_string()).collect();
        if !name.is_empty() {
            found.push(String::new());
        }
        found
    };
    let mut counts: HashMap<(String, String), f64> = HashMap::new();
    let (mut size_a, mut size_b): (HashMap<String, f64>, HashMap<String, f64>) = Default::default();
    for (x, y, _) in leaves {
        let (above_x, above_y) = (ancestors(x), ancestors(y));
        above_x.iter().for_each(|p| *size_a.entry(p.clone()).or_default() += 1.0);
        above_y.iter().for_each(|p| *size_b.entry(p.clone()).or_default() += 1.0);
        for p in &above_x {
            for q in &above_y {
                *counts.entry((p.clone(), q.clone())).or_default() += 1.0;
            }
        }
    }
    let overlap = |p: &str, q: &str, n: f64| n / (size_a[p] + size_b[q] - n);
    let mut scored: Vec<(f64, String, String)> =
        counts.iter().map(|((p, q), n)| (overlap(p, q, *n), p.clone(), q.clone())).collect();
    let depth = |n: &str| n.matches('.').count() + usize::from(!n.is_empty());
    scored.sort_by(|x, y| {
        // Of equal ones, the pair at equal depth; then by name, so that the result does not depend on a hash.
        let off = |s: &(f64, String, String)| depth(&s.1).abs_diff(depth(&s.2));
        y.0.total_cmp(&x.0).then(off(x).cmp(&off(y))).then(x.1.cmp(&y.1)).then(x.2.cmp(&y.2))
    });
    let (mut used_a, mut used_b) = (HashSet::new(), HashSet::new());
    let mut found = Vec::new();
    for (score, p, q) in scored {
        let known = (a.layers.is_empty() || a.layer(&p).is_some()) && (b.layers.is_empty() || b.layer(&q).is_some());
        if score >= 0.4 && known && !used_a.contains(&p) && !used_b.contains(&q) {
            used_a.insert(p.clone());
            used_b.insert(q.clone());
            found.push(LayerPair { reference: p, candidate: q, score });
        }
    }
    found.sort_by(|x, y| x.reference.cmp(&y.reference));
    found
}

impl Pairing {
    /// The partner of a layer of the reference.
    pub fn partner(&self, reference: &str) -> Option<&str> {
        self.layers.iter().find(|l| l.reference == reference).map(|l| l.candidate.as_str())
    }

    /// The pairs as a table that a user reads, and corrects by copying lines of it into a map.
    pub fn table(&self, a: &Structure, b: &Structure) -> String {
        let class = |s: &Structure, n: &str| s.layer(n).map_or(String::new(), |l| l.class.clone());
        let shown = |n: &str| if n.is_empty() { "(root)".to_string() } else { n.to_string() };
        let rows: Vec<[String; 5]> = self
            .layers
            .iter()
            .map(|l| {
                let params: Vec<String> = self
                    .parameters
                    .iter()
                    .filter(|p| p.reference_layer == l.reference)
                    .map(|p| format!("{}{}", p.candidate.rsplit('.').next().unwrap_or(""), p.transform.mark()))
                    .collect();
                let sides = (class(a, &l.reference), class(b, &l.candidate));
                [shown(&l.reference), sides.0, shown(&l.candidate), sides.1, params.join(" ")]
            })
            .collect();
        let head = [a.side.as_str(), "", b.side.as_str(), "", "parameters"].map(str::to_string);
        let width = |i: usize| rows.iter().chain([&head]).map(|r| r[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        let line = |r: &[String; 5]| {
            let cells = (0..5).map(|i| format!("{:w$}", r[i], w = widths[i])).collect::<Vec<_>>();
            format!("{}  {}  =  {}  {}  {}", cells[0], cells[1], cells[2], cells[3], cells[4]).trim_end().to_string()
        };
        let mut text = vec![line(&head)];
        text.extend(rows.iter().map(line));
        let left = |side: &str, names: &[String]| {
            names.iter().map(|n| format!("no partner for {n} of {side}")).collect::<Vec<_>>()
        };
        text.extend(left(&a.side, &self.left_reference));
        text.extend(left(&b.side, &self.left_candidate));
        text.extend(self.doubts.iter().map(|d| format!("note: {d}")));
        text.join("\n") + "\n"
    }
}
