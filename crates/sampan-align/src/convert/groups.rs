//! Keys as layers: which weights belong together, and what each is to its layer.

use super::structure::{Convention, Kind, Structure};
use sampan_core::Tensor;
use std::collections::HashMap;

/// A weight of a layer, or a part of one that holds several.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// What it is to the layer: `weight`, `bias`, `mean`, `var`, `weight_ih_l0` …
    pub role: String,
    /// Its place in the structure.
    pub weight: usize,
    /// Which part of how many, along the first axis.
    pub part: Option<(usize, usize)>,
    /// Its shape, that of the part.
    pub shape: Vec<usize>,
}

/// The weights of one layer.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub path: String,
    pub kind: Kind,
    pub convention: Option<Convention>,
    pub pieces: Vec<Piece>,
}

/// The layers of a structure, and the weights that are none's, with the reason.
pub(super) struct Groups {
    pub groups: Vec<Group>,
    pub counters: Vec<usize>,
    /// Weights under a second name: theirs and the first one's places.
    pub aliases: Vec<(usize, usize)>,
}

/// `encoder.lstm.0.cell_fw.weight_ih` is Paddle's second name of `encoder.lstm.weight_ih_l0`.
fn first_name(prefix: &str, leaf: &str) -> Option<String> {
    let (rest, cell) = prefix.rsplit_once('.')?;
    let reverse = match cell {
        "cell" | "cell_fw" => "",
        "cell_bw" => "_reverse",
        _ => return None,
    };
    let (owner, number) = rest.rsplit_once('.').map_or(("", rest), |(owner, number)| (owner, number));
    number.parse::<usize>().ok()?;
    let dot = if owner.is_empty() { "" } else { "." };
    Some(format!("{owner}{dot}{leaf}_l{number}{reverse}"))
}

fn role(leaf: &str) -> Option<&str> {
    Some(match leaf {
        "weight" | "gamma" | "scale" => "weight",
        "bias" | "beta" => "bias",
        "running_mean" | "_mean" | "moving_mean" => "mean",
        "running_var" | "_variance" | "moving_variance" | "moving_var" => "var",
        "weight_ih" | "weight_hh" | "bias_ih" | "bias_hh" => leaf,
        _ if ["weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l", "weight_hr_l"]
            .iter()
            .any(|p| leaf.starts_with(p)) =>
        {
            leaf
        }
        _ => return None,
    })
}

/// How many matrices of a network are tied to others at most: a head to an embedding, a decoder to both.
const MOST_TIES: usize = 2;

/// Matrices that hold the very same numbers as an earlier one: one tensor under two names, as of an embedding and the head
/// that it is tied to. Theirs and the first one's places.
///
/// Constants are alike without being one; so are layers of a stack that were copied, and a whole network that was.
pub(super) fn ties(structure: &Structure) -> Vec<(usize, usize)> {
    let matrices: Vec<(usize, &Tensor)> = structure
        .weights
        .iter()
        .enumerate()
        .filter_map(|(i, w)| Some((i, w.tensor.as_ref().filter(|t| t.ndim() >= 2)?)))
        .collect();
    let mut found = Vec::new();
    for (n, &(i, t)) in matrices.iter().enumerate() {
        let before = matrices[..n].iter().find(|(at, other)| {
            let alike = other.shape() == t.shape() && other.dtype() == t.dtype();
            let stacked = |i: usize| {
                structure.weights[i].key.split('.').filter(|p| p.parse::<usize>().is_err()).collect::<Vec<_>>()
            };
            alike && stacked(*at) != stacked(i) && other.to_bytes() == t.to_bytes()
        });
        if let Some(&(first, _)) = before {
            let bytes = t.to_bytes();
            let size = bytes.len() / t.numel().max(1);
            if bytes.chunks(size.max(1)).any(|x| *x != bytes[..size]) {
                found.push((i, first));
            }
        }
    }
    found.truncate(if found.len() > MOST_TIES { 0 } else { MOST_TIES });
    found
}

impl Groups {
    /// `tied`: weights that are left to their first names.
    pub fn of(structure: &Structure, tied: &[(usize, usize)]) -> Groups {
        let places: HashMap<&str, usize> =
            structure.weights.iter().enumerate().map(|(i, w)| (w.key.as_str(), i)).collect();
        let mut found = Groups { groups: Vec::new(), counters: Vec::new(), aliases: Vec::new() };
        let mut by_path: HashMap<String, usize> = HashMap::new();
        for (i, weight) in structure.weights.iter().enumerate() {
            let (prefix, leaf) = weight.key.rsplit_once('.').unwrap_or(("", &weight.key));
            if leaf == "num_batches_tracked" {
                found.counters.push(i);
                continue;
            }
            if let Some(&tie) = tied.iter().find(|(other, _)| *other == i) {
                found.aliases.push(tie);
                continue;
            }
            let first = first_name(prefix, leaf);
            if let Some(&first) = first.as_ref().and_then(|name| places.get(name.as_str())) {
                found.aliases.push((i, first));
                continue;
            }
            let mut add = |path: String, role: &str, part: Option<(usize, usize)>, kind: Kind| {
                let at = *by_path.entry(path.clone()).or_insert_with(|| {
                    let convention = structure.convention_of(weight);
                    found.groups.push(Group { path, kind, convention, pieces: Vec::new() });
                    found.groups.len() - 1
                });
                let group = &mut found.groups[at];
                if group.kind == Kind::Unknown {
                    group.kind = kind;
                }
                group.convention = weight.convention.or(group.convention);
                let mut shape = weight.shape.clone();
                if let Some((_, parts)) = part {
                    shape[0] /= parts;
                }
                group.pieces.push(Piece { role: role.into(), weight: i, part, shape });
            };
            let below = |name: &str| if prefix.is_empty() { name.into() } else { format!("{prefix}.{name}") };
            let projections = ["q_proj", "k_proj", "v_proj"];
            match leaf {
                "in_proj_weight" | "in_proj_bias" if weight.shape.first().is_some_and(|d| d % 3 == 0) => {
                    let role = leaf.trim_start_matches("in_proj_");
                    for (n, name) in projections.iter().enumerate() {
                        add(below(name), role, Some((n, 3)), Kind::Linear);
                    }
                }
                "q_proj_weight" | "k_proj_weight" | "v_proj_weight" => {
                    add(below(leaf.trim_end_matches("_weight")), "weight", None, Kind::Linear);
                }
                // Paddle keeps the projection of an LSTM's output in the cell, and turned.
                "weight_ho" if first.is_some() => {
                    let flat = first.unwrap_or_default().replace("weight_ho_l", "weight_hr_l");
                    let (owner, role) = flat.rsplit_once('.').map_or(("", flat.as_str()), |(o, r)| (o, r));
                    add(owner.to_string(), role, None, Kind::Same);
                }
                _ => match role(leaf) {
                    // A table and a recurrent layer's matrices lie the same everywhere; a class says more than a name.
                    Some(role) => add(prefix.to_string(), role, None, weight.kind),
                    None => add(weight.key.clone(), "value", None, Kind::Same),
                },
            }
        }
        for group in &mut found.groups {
            let has = |role: &str| group.pieces.iter().find(|p| p.role == role);
            // What has a matrix and a bias is a product; a table has no bias.
            let product =
                |w: &Piece, b: &Piece| w.shape.len() == 2 && b.shape.len() == 1 && w.shape.contains(&b.shape[0]);
            if group.kind == Kind::Unknown && has("weight").zip(has("bias")).is_some_and(|(w, b)| product(w, b)) {
                group.kind = Kind::Linear;
            }
        }
        found
    }
}

/// How the values of one weight become those of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct How {
    pub turned: bool,
    pub reshaped: bool,
    /// A square matrix of which nobody knows whether it is to be turned.
    pub undecided: bool,
}

/// What a mapping file says about single matrices.
pub(super) type Said<'a> = &'a dyn Fn(&Piece, &Piece) -> Option<bool>;

fn squeezed(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|&d| d != 1).collect()
}

/// Can the weights of one layer be the other's? Then what becomes of each.
pub(super) fn compatible(source: &Group, target: &Group, said: Said<'_>) -> Option<Vec<(usize, usize, How)>> {
    if source.pieces.len() != target.pieces.len() {
        return None;
    }
    let kind = match (source.kind, target.kind) {
        (Kind::Unknown, known) | (known, Kind::Unknown) => known,
        (a, b) if a == b => a,
        _ => return None,
    };
    let crossed = source.convention != target.convention;
    let mut moves = Vec::new();
    for (s, from) in source.pieces.iter().enumerate() {
        let t = target.pieces.iter().position(|p| p.role == from.role)?;
        let to = &target.pieces[t];
        let matrix = from.shape.len() == 2 && to.shape.len() == 2;
        let back: Vec<usize> = from.shape.iter().rev().copied().collect();
        let (same, turned) = (from.shape == to.shape, back == to.shape);
        let projection = from.role.starts_with("weight_hr_l");
        let how = match said(from, to) {
            Some(true) if matrix && turned => How { turned: true, ..How::default() },
            Some(false) if same => How::default(),
            Some(_) => return None,
            None if matrix && crossed && (projection || kind == Kind::Linear && from.role == "weight") => {
                turned.then(|| How { turned: true, ..How::default() })?
            }
            None if matrix && crossed && kind == Kind::Unknown => match (same, turned) {
                (true, true) => How { undecided: true, ..How::default() },
                (true, false) => How::default(),
                (false, true) => How { turned: true, ..How::default() },
                (false, false) => return None,
            },
            None if same => How::default(),
            None => {
                let count = |shape: &[usize]| shape.iter().product::<usize>();
                let flat = kind == Kind::Norm && count(&from.shape) == count(&to.shape);
                let narrow = squeezed(&from.shape).len() <= 1 && squeezed(&from.shape) == squeezed(&to.shape);
                let fits = flat || narrow;
                fits.then(|| How { reshaped: true, ..How::default() })?
            }
        };
        moves.push((s, t, how));
    }
    Some(moves)
}
