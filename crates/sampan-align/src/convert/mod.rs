//! Weights of one network as those of another: PyTorch's as Paddle's and back, in any format.
//!
//! ```
//! use sampan_align::convert::{Convention, Kind, Mapping, Structure, Weight, convert};
//! use sampan_core::Tensor;
//! let side = |name: &str, convention, weights| Structure { name: name.into(), convention: Some(convention), ordered: true, weights };
//! let torch = side("a.pth", Convention::Torch, vec![Weight::of("fc.weight", Tensor::new([[1.0f32, 2.0]]), Kind::Unknown)]);
//! let net = side("net", Convention::Paddle, vec![Weight::new("head.weight", [2, 1], Kind::Linear)]);
//! let converted = convert(&torch, &net, &Mapping::default(), false)?;
//! assert_eq!(converted.state[0].0, "head.weight");
//! assert_eq!(converted.state[0].1.shape(), [2, 1]);
//! assert_eq!(converted.report.rows[0].how, "transposed");
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod files;
mod groups;
mod mapping;
mod onnx;
mod pairing;
mod report;
mod structure;
#[cfg(test)]
mod tests;

pub use files::{default_convention, in_convention, like_itself, read, write};
pub use mapping::Mapping;
pub use pairing::Reason;
pub use report::{Report, Row};
pub use structure::{Convention, Kind, Packed, Structure, Weight};

use crate::Transform;
use groups::{Group, Groups, How, Piece};
use sampan_core::{DType, Error, Result, Tensor};
use std::collections::HashMap;

/// The state of the target, and what became of every key.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The values by the target's keys, in its order.
    pub state: Vec<(String, Tensor)>,
    /// The account.
    pub report: Report,
}

/// How many choices a message lists before it counts the rest.
const SHOWN: usize = 12;

fn listed(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    let rest = lines.len().saturating_sub(SHOWN);
    let mut text = lines[..lines.len().min(SHOWN)].join("\n  ");
    if rest > 0 {
        text += &format!("\n  and {rest} more");
    }
    text
}

/// Gives the target's layers the source's weights. `partial`: keys without a partner are named in the report; else they
/// are an error.
pub fn convert(source: &Structure, target: &Structure, mapping: &Mapping, partial: bool) -> Result<Converted> {
    convert_inner(source, target, mapping, partial).map_err(|e| e.in_op("convert"))
}

fn convert_inner(source: &Structure, target: &Structure, mapping: &Mapping, partial: bool) -> Result<Converted> {
    let whole = attempt(source, target, mapping, partial, (&[], &[]));
    let done = |made: &Result<Converted>| made.as_ref().is_ok_and(|c| c.report.complete());
    if done(&whole) {
        return whole;
    }
    // One side may keep under two names what the other keeps under one.
    let (ours, theirs) = (groups::ties(source), groups::ties(target));
    let fewer = [(&ours[..], &[][..]), (&[], &theirs), (&ours, &theirs)];
    let fewer = fewer.into_iter().filter(|(a, b)| !a.is_empty() || !b.is_empty());
    fewer.map(|tied| attempt(source, target, mapping, partial, tied)).find(done).unwrap_or(whole)
}

/// Ties of the source and of the target: theirs and the first one's places.
type Ties<'t> = (&'t [(usize, usize)], &'t [(usize, usize)]);

fn attempt(
    source: &Structure,
    target: &Structure,
    mapping: &Mapping,
    partial: bool,
    tied: Ties<'_>,
) -> Result<Converted> {
    let (from, to) = (Groups::of(source, tied.0), Groups::of(target, tied.1));
    check_conventions(source, target, &from)?;
    let said = |s: &Piece, t: &Piece| {
        let turns = mapping.turns(&source.weights[s.weight].key);
        turns.or_else(|| mapping.turns(&target.weights[t.weight].key))
    };
    let ordered = source.ordered && target.ordered;
    let pairing = pairing::pair(&from.groups, &to.groups, mapping, &said, ordered)?;
    if let [line, ..] = mapping.unused()[..] {
        return Err(Error::invalid(format!(
            "line {line} of the mapping fits no key of {} or {}",
            source.name, target.name
        ))
        .hint("names are written as the report shows them; a star stands for any text"));
    }
    if !pairing.choices.is_empty() {
        let lines = pairing.choices.iter().map(|choice| {
            let options: Vec<&str> = choice.sources.iter().map(|&s| from.groups[s].path.as_str()).collect();
            format!("{} could be {}", pairing::describe(&to.groups[choice.target]), one_of(&options))
        });
        let message = format!(
            "{} layers have more than one choice, and nothing decides:\n  {}",
            pairing.choices.len(),
            listed(lines)
        );
        return Err(Error::invalid(message).hint("say which in a mapping file, a line for each: SOURCE = TARGET"));
    }
    let undecided = pairing.pairs.iter().flat_map(|pair| {
        let group = &from.groups[pair.source];
        pair.moves
            .iter()
            .filter(|(_, _, how)| how.undecided)
            .map(|&(s, ..)| &source.weights[group.pieces[s].weight].key)
    });
    let undecided: Vec<&String> = undecided.collect();
    if !undecided.is_empty() {
        let message = format!(
            "square matrices without a bias, of a table or of a product: nothing tells which\n  {}",
            listed(undecided.iter().map(|key| key.to_string()))
        );
        let hint = "name the model, whose classes tell, or say `transpose KEY` or `plain KEY` in a mapping file";
        return Err(Error::invalid(message).hint(hint));
    }
    let mut report = Report {
        source: source.name.clone(),
        target: target.name.clone(),
        conventions: (report::word(source.convention), report::word(target.convention)),
        notes: pairing.left_out.iter().map(|start| format!("names are compared without {start:?} in front")).collect(),
        ..Report::default()
    };
    let mut filled = Filled::new(source, target);
    for pair in &pairing.pairs {
        filled.pair(&from.groups[pair.source], &to.groups[pair.target], pair)?;
    }
    account(source, target, &from, mapping, &filled, &mut report);
    let mut state = filled.finish(&to, &mut report)?;
    let left: std::collections::HashSet<usize> =
        to.groups.iter().filter(|g| mapping.leaves(&g.path)).flat_map(|g| g.pieces.iter().map(|p| p.weight)).collect();
    let left: Vec<&String> = left.iter().map(|&i| &target.weights[i].key).collect();
    report.left = report.missing.extract_if(.., |key| left.contains(&&*key)).collect();
    keep(target, &report.left, &mut state)?;
    if !partial && !report.complete() {
        let alone = |keys: &[String], side: &str| match keys.len() {
            0 => String::new(),
            n => format!("\n{n} keys of {side} have no partner:\n  {}", listed(keys.iter().cloned())),
        };
        let sides = alone(&report.unused, &source.name) + &alone(&report.missing, &target.name);
        return Err(Error::invalid(format!("the weights do not fit as a whole{sides}")).hint(
            "correct names in a mapping file, say `KEY = -` or `- = KEY` there, or allow it: --partial, partial=True",
        ));
    }
    Ok(Converted { state, report })
}

/// Keys that the mapping leaves as they are have the target's own values, so that no file lacks them.
fn keep(target: &Structure, left: &[String], state: &mut Vec<(String, Tensor)>) -> Result<()> {
    for key in left {
        let own = target.weights.iter().find(|w| w.key == *key).and_then(|w| w.tensor.clone());
        let own = own.ok_or_else(|| {
            Error::invalid(format!("the mapping leaves {key} as it is, and {} has no values for it", target.name))
                .hint("name a model or a file with values as the target, or allow the key to be missing: --partial, partial=True")
        })?;
        state.push((key.clone(), own));
    }
    let place = |key: &String| target.weights.iter().position(|w| w.key == *key);
    state.sort_by_key(|(key, _)| place(key));
    Ok(())
}

fn one_of(options: &[&str]) -> String {
    let shown = &options[..options.len().min(6)];
    let rest = if options.len() > 6 { format!(" or one of {} others", options.len() - 6) } else { String::new() };
    shown.join(" or ") + &rest
}

/// Matrices need both conventions.
fn check_conventions(source: &Structure, target: &Structure, from: &Groups) -> Result<()> {
    let matrix = |g: &&Group| g.pieces.iter().any(|p| p.role == "weight" && p.shape.len() == 2);
    let Some(group) = from.groups.iter().find(matrix) else { return Ok(()) };
    for side in [source, target] {
        if side.convention.is_none() && side.weights.iter().any(|w| w.convention.is_none() && w.shape.len() == 2) {
            let (path, name) = (&group.path, &side.name);
            let message =
                format!("{name} does not tell whether its matrices, such as {path}, lie as PyTorch's or as Paddle's");
            return Err(Error::invalid(message).hint(
                "say torch or paddle: --from and --as of the command, source_layout and target_layout in Python",
            ));
        }
    }
    Ok(())
}

/// Keys of the source that went nowhere, each with what became of it.
fn account(
    source: &Structure,
    target: &Structure,
    from: &Groups,
    mapping: &Mapping,
    filled: &Filled<'_>,
    report: &mut Report,
) {
    let key = |i: usize| source.weights[i].key.clone();
    let counted = target.weights.iter().any(|w| w.key.ends_with("num_batches_tracked"));
    for &i in &from.counters {
        if !counted {
            report.dropped.push((key(i), "a counter that only PyTorch keeps".into()));
        }
    }
    for &(i, first) in &from.aliases {
        report.dropped.push((key(i), format!("another name of {}", key(first))));
    }
    for piece in from.groups.iter().flat_map(|g| g.pieces.iter().map(move |p| (g, p))) {
        let (group, piece) = piece;
        if filled.used.contains(&piece.weight) {
            continue;
        }
        if mapping.drops(&group.path) {
            report.dropped.push((key(piece.weight), "the mapping says so".into()));
        } else if !report.unused.contains(&key(piece.weight)) {
            report.unused.push(key(piece.weight));
        }
    }
}

/// The target's tensors as they are put together.
struct Filled<'a> {
    source: &'a Structure,
    target: &'a Structure,
    parts: HashMap<usize, Vec<(usize, Tensor, Row)>>,
    used: std::collections::HashSet<usize>,
}

impl<'a> Filled<'a> {
    fn new(source: &'a Structure, target: &'a Structure) -> Filled<'a> {
        Filled { source, target, parts: HashMap::new(), used: Default::default() }
    }

    fn pair(&mut self, from: &Group, to: &Group, pair: &pairing::Pair) -> Result<()> {
        for &(s, t, how) in &pair.moves {
            let (piece, place) = (&from.pieces[s], &to.pieces[t]);
            let weight = &self.source.weights[piece.weight];
            let tensor =
                weight.tensor.as_ref().ok_or_else(|| Error::invalid(format!("{} has no values", weight.key)))?;
            let tensor = moved(tensor, piece, place, how)?;
            self.used.insert(piece.weight);
            let target = &self.target.weights[place.weight];
            let row = Row {
                sources: vec![weight.key.clone()],
                target: target.key.clone(),
                from: vec![weight.shape.clone()],
                to: target.shape.clone(),
                how: report::how(piece.part, how.turned, how.reshaped),
                reason: pair.reason.to_string(),
            };
            self.parts.entry(place.weight).or_default().push((place.part.map_or(0, |(i, _)| i), tensor, row));
        }
        Ok(())
    }

    fn finish(mut self, to: &Groups, report: &mut Report) -> Result<Vec<(String, Tensor)>> {
        let mut state: Vec<Option<Tensor>> = vec![None; self.target.weights.len()];
        for group in &to.groups {
            for piece in &group.pieces {
                let Some(mut parts) = self.parts.remove(&piece.weight) else { continue };
                let key = &self.target.weights[piece.weight].key;
                let whole = piece.part.map_or(1, |(_, n)| n);
                if parts.len() < whole {
                    continue;
                }
                parts.sort_by_key(|(i, ..)| *i);
                let tensors: Vec<Tensor> = parts.iter().map(|(_, t, _)| t.clone()).collect();
                state[piece.weight] = Some(match &tensors[..] {
                    [one] => one.clone(),
                    many => sampan_core::ops::joining::try_concat(many, 0)?,
                });
                let mut row = parts[0].2.clone();
                for (_, _, other) in &parts[1..] {
                    if other.sources != row.sources[..1] {
                        row.sources.extend(other.sources.iter().cloned());
                        row.from.extend(other.from.iter().cloned());
                    }
                }
                if whole > 1 {
                    row.how = format!("{} parts, {}", whole, row.how.trim_start_matches("part 1 of 3, "));
                }
                debug_assert_eq!(&row.target, key);
                report.rows.push(row);
            }
        }
        for &i in &to.counters {
            state[i] = Some(Tensor::zeros([0usize; 0], DType::Int64));
            report.made.push((self.target.weights[i].key.clone(), "0, a counter of PyTorch's".into()));
        }
        for &(i, first) in &to.aliases {
            state[i] = state[first].clone();
            if state[i].is_some() {
                let first = &self.target.weights[first].key;
                report.made.push((self.target.weights[i].key.clone(), format!("another name of {first}")));
            }
        }
        let weights = self.target.weights.iter();
        report.missing = weights.clone().zip(&state).filter(|(_, s)| s.is_none()).map(|(w, _)| w.key.clone()).collect();
        Ok(weights.zip(state).filter_map(|(w, s)| Some((w.key.clone(), s?))).collect())
    }
}

/// A piece of the source as a piece of the target.
fn moved(tensor: &Tensor, from: &Piece, to: &Piece, how: How) -> Result<Tensor> {
    let take = from.part.map(|(part, parts)| (part * (tensor.shape()[0] / parts), tensor.shape()[0] / parts));
    let transform = Transform { take, transpose: how.turned, reshape: how.reshaped, ..Transform::default() };
    transform.apply(tensor, &to.shape)
}
