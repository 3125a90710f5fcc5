//! Which parameter is which, and how one becomes the other.

use super::corrections::Corrections;
use super::{Pairing, units};
use crate::{Parameter, Structure, kinds};
use sampan_core::{Error, Result, Tensor, ops};
use serde::Serialize;
use std::collections::HashSet;

/// How the reference's tensor becomes the candidate's, step by step in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transform {
    /// Rows `start` to `start + len` of the reference's are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<(usize, usize)>,
    /// Equal blocks of rows are put in this order: gates of a recurrent layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<usize>>,
    /// A matrix is transposed.
    pub transpose: bool,
    /// The shape changes and the order of the elements does not: `[64, 1, 1]` and `[64]`.
    pub reshape: bool,
    /// It fills rows `start` to `start + len` of the candidate's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<(usize, usize)>,
}

impl Transform {
    /// Nothing changes.
    pub fn same() -> Transform {
        Transform::default()
    }

    /// Does it leave the tensor as it is?
    pub fn is_same(&self) -> bool {
        *self == Transform::default()
    }

    /// A short sign for tables: `ᵀ` for a transposed one.
    pub fn mark(&self) -> String {
        let take = self.take.map_or(String::new(), |(s, n)| format!("[{s}:{}]", s + n));
        let gates = self.gates.as_ref().map_or(String::new(), |g| format!("{g:?}"));
        let put = self.put.map_or(String::new(), |(s, n)| format!("→[{s}:{}]", s + n));
        format!("{take}{gates}{}{}{put}", if self.transpose { "ᵀ" } else { "" }, if self.reshape { "~" } else { "" })
    }

    /// The reference's tensor in the candidate's form; `shape` is the candidate's (of the part that is filled).
    pub fn apply(&self, tensor: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let mut t = tensor.clone();
        if let Some((start, len)) = self.take {
            t = t.try_narrow(0, start as i64, len as i64)?;
        }
        if let Some(order) = &self.gates {
            let parts = t.try_chunk(order.len() as i64, 0)?;
            let moved: Vec<Tensor> = order.iter().map(|&g| parts[g].clone()).collect();
            t = ops::joining::try_concat(&moved, 0)?;
        }
        if self.transpose {
            t = t.try_t()?;
        }
        if self.reshape {
            t = t.try_reshape(shape.iter().map(|&d| d as i64).collect::<Vec<_>>())?;
        }
        if t.shape() != shape {
            return Err(
                Error::invalid(format!("a weight becomes {:?}, and {shape:?} is wanted", t.shape())).in_op("align")
            );
        }
        t.try_contiguous()
    }
}

/// Two parameters or buffers that are the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParameterPair {
    /// The reference's.
    pub reference: String,
    /// The candidate's.
    pub candidate: String,
    /// How the reference's becomes the candidate's.
    pub transform: Transform,
    /// The layer of the reference that it belongs to.
    pub reference_layer: String,
    /// The layer of the candidate.
    pub candidate_layer: String,
}

/// What a parameter is in its layer, in PyTorch's words.
fn role(layer: &str, parameter: &str) -> String {
    let rest = parameter.strip_prefix(layer).unwrap_or(parameter).trim_start_matches('.');
    // `0.cell.weight_ih` of a stack of cells is `weight_ih_l0`; backward ones have `cell_bw`.
    let parts: Vec<&str> = rest.split('.').collect();
    if let [number, cell, name] = parts[..]
        && cell.starts_with("cell")
        && number.parse::<u32>().is_ok()
    {
        return format!("{name}_l{number}{}", if cell.ends_with("bw") { "_reverse" } else { "" });
    }
    match rest {
        "_mean" => "running_mean".into(),
        "_variance" => "running_var".into(),
        "gamma" | "scale" => "weight".into(),
        "beta" => "bias".into(),
        other => other.to_string(),
    }
}

/// Does a side keep the weight of a linear layer as `[out, in]`?
fn out_first(side: &str) -> bool {
    matches!(side, "torch" | "onnxruntime" | "onnx")
}

struct Sides<'s> {
    a: &'s Structure,
    b: &'s Structure,
}

pub(crate) fn match_parameters(
    a: &Structure,
    b: &Structure,
    layers: &[(String, String, f64)],
    corrections: &Corrections,
    pairing: &mut Pairing,
) {
    let sides = Sides { a, b };
    let (mut done_a, mut done_b): (HashSet<String>, HashSet<String>) = Default::default();
    // The user's word about parameters comes first.
    for p in a.parameters() {
        if let Some(Some(name)) = corrections.candidate(&p.name)
            && let Some(q) = b.parameters().find(|q| q.name == name)
            && let Some(t) = sides.by_shape(p, q)
        {
            let owner = |n: &str| n.rsplit_once('.').map_or(String::new(), |(o, _)| o.to_string());
            // A layer that is paired anyway does this better; only what differs in name from it is the user's own.
            if !layers.iter().any(|l| units::subtree(a, &l.0).any(|x| x.name == p.name)) {
                done_a.insert(p.name.clone());
                done_b.insert(q.name.clone());
                pairing.parameters.push(ParameterPair {
                    reference: p.name.clone(),
                    candidate: name.clone(),
                    transform: t,
                    reference_layer: owner(&p.name),
                    candidate_layer: owner(&q.name),
                });
            }
        }
    }
    // A parameter belongs to the innermost layer that is paired, so inner layers come first.
    let mut inner_first: Vec<_> = layers.iter().collect();
    inner_first.sort_by_key(|l| std::cmp::Reverse(l.0.len()));
    for (x, y, _) in inner_first {
        sides.layer(x, y, pairing, &mut done_a, &mut done_b);
    }
    let place = |p: &ParameterPair| a.parameters().position(|q| q.name == p.reference);
    pairing.parameters.sort_by_key(place);
    let unused = |side: &Structure, done: &HashSet<String>| -> Vec<String> {
        let left = side
            .parameters()
            .filter(|p| !done.contains(&p.name) && p.shares.as_ref().is_none_or(|s| !done.contains(s)));
        // A count of batches says nothing about the values.
        left.filter(|p| !p.name.ends_with("num_batches_tracked")).map(|p| p.name.clone()).collect()
    };
    pairing.left_reference = unused(a, &done_a);
    pairing.left_candidate = unused(b, &done_b);
}

impl Sides<'_> {
    fn layer(
        &self,
        x: &str,
        y: &str,
        pairing: &mut Pairing,
        done_a: &mut HashSet<String>,
        done_b: &mut HashSet<String>,
    ) {
        let free = |done: &HashSet<String>, p: &&Parameter| !done.contains(&p.name);
        let (ps, qs): (Vec<&Parameter>, Vec<&Parameter>) = (
            units::subtree(self.a, x).filter(|p| free(done_a, p)).collect(),
            units::subtree(self.b, y).filter(|p| free(done_b, p)).collect(),
        );
        let kind = self.kind(x, y);
        let mut add = |p: &Parameter, q: &Parameter, transform: Transform| {
            done_a.insert(p.name.clone());
            done_b.insert(q.name.clone());
            pairing.parameters.push(ParameterPair {
                reference: p.name.clone(),
                candidate: q.name.clone(),
                transform,
                reference_layer: x.to_string(),
                candidate_layer: y.to_string(),
            });
        };
        let mut doubts = Vec::new();
        for p in &ps {
            let want = role(x, &p.name);
            let mut partner = qs.iter().find(|q| role(y, &q.name) == want);
            // Only one of its shape and no name in common: `kernel` and `weight`.
            if partner.is_none() && !want.contains("_proj") {
                let named = |q: &&&Parameter| !ps.iter().any(|p| role(x, &p.name) == role(y, &q.name));
                let fits: Vec<_> =
                    qs.iter().filter(named).filter(|q| self.by_shape(p, q).is_some() && p.buffer == q.buffer).collect();
                partner = if fits.len() == 1 { Some(fits[0]) } else { None };
            }
            if let Some(q) = partner {
                match self.transform(&kind, p, q, &mut doubts) {
                    Some(t) => add(p, q, t),
                    None => doubts.push(format!(
                        "{} {:?} and {} {:?} have one name and shapes that do not fit",
                        p.name, p.shape, q.name, q.shape
                    )),
                }
                continue;
            }
            // One weight for three projections on one side, three weights on the other.
            if let Some(end) = want.strip_prefix("in_proj_") {
                let flip = end == "weight" && !out_first(&self.b.side);
                for (i, letter) in ["q", "k", "v"].iter().enumerate() {
                    let name = format!("{letter}_proj.{end}");
                    if let Some(q) = qs.iter().find(|q| role(y, &q.name) == name) {
                        let rows = p.shape.first().copied().unwrap_or(0) / 3;
                        let t = Transform { take: Some((i * rows, rows)), transpose: flip, ..Transform::default() };
                        add(p, q, t);
                    }
                }
            } else if let Some((letter, end)) = want.split_once("_proj.")
                && let Some(q) = qs.iter().find(|q| role(y, &q.name) == format!("in_proj_{end}"))
                && let Some(i) = ["q", "k", "v"].iter().position(|l| *l == letter)
            {
                let rows = q.shape.first().copied().unwrap_or(0) / 3;
                let transpose = end == "weight" && !out_first(&self.a.side);
                add(p, q, Transform { put: Some((i * rows, rows)), transpose, ..Transform::default() });
            }
        }
        pairing.doubts.append(&mut doubts);
    }

    fn kind(&self, x: &str, y: &str) -> String {
        let class = |side: &Structure, n: &str| side.layer(n).map_or(String::new(), |l| l.class.clone());
        let (p, q) = (class(self.a, x), class(self.b, y));
        kinds::kind(if q.is_empty() { &p } else { &q })
    }

    fn transform(&self, kind: &str, p: &Parameter, q: &Parameter, doubts: &mut Vec<String>) -> Option<Transform> {
        let flip = Transform { transpose: true, ..Transform::default() };
        let transposed = p.shape.len() == 2 && p.shape[0] == q.shape.get(1).copied()? && p.shape[1] == q.shape[0];
        let projection = p.name.contains("_proj.") && kind == "mha";
        let weight = p.name.ends_with("weight") && p.shape.len() == 2;
        if weight && (kind == "linear" || projection) && out_first(&self.a.side) != out_first(&self.b.side) {
            return transposed.then_some(flip);
        }
        if weight && kind.is_empty() && p.shape == q.shape && p.shape[0] == p.shape[1] {
            let crossing = out_first(&self.a.side) != out_first(&self.b.side);
            let how = if crossing { "transposed, as a linear layer's is" } else { "as it is" };
            doubts.push(format!(
                "{} is square, and no class says what layer it belongs to; it was taken {how}: say `{} = {}` in a map, or pair \
                 with the model instead of its file",
                p.name, p.name, q.name
            ));
            return Some(if crossing { flip } else { Transform::same() });
        }
        self.by_shape(p, q)
    }

    fn by_shape(&self, p: &Parameter, q: &Parameter) -> Option<Transform> {
        let numel = |s: &[usize]| s.iter().product::<usize>();
        if p.shape == q.shape {
            Some(Transform::same())
        } else if p.shape.len() == 2 && q.shape.len() == 2 && p.shape[0] == q.shape[1] && p.shape[1] == q.shape[0] {
            Some(Transform { transpose: true, ..Transform::default() })
        } else if numel(&p.shape) == numel(&q.shape) && units_only(&p.shape) == units_only(&q.shape) {
            Some(Transform { reshape: true, ..Transform::default() })
        } else {
            None
        }
    }
}

/// A shape without its sides of one.
fn units_only(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|&d| d != 1).collect()
}
