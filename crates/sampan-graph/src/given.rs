//! The arguments of a call by name, for those who write it in another form.

use crate::graph::{Arg, Call, Id, Size};
use sampan_core::{DType, Value as Plain};

/// The arguments of a call, by name.
pub(crate) struct Given<'a>(pub &'a Call);

impl Given<'_> {
    pub fn name(&self) -> &'static str {
        self.0.op.name
    }

    pub fn out(&self) -> Id {
        self.0.outputs[0]
    }

    pub fn arg(&self, name: &str) -> Option<&Arg> {
        self.0.arg(name).filter(|a| !a.is_none())
    }

    pub fn id(&self, name: &str) -> Option<Id> {
        if let Some(Arg::Tensor(id)) = self.arg(name) { Some(*id) } else { None }
    }

    /// The values of a tensor or of several.
    pub fn ids(&self, name: &str) -> Vec<Id> {
        match self.arg(name) {
            Some(Arg::Tensors(ids)) => ids.clone(),
            Some(Arg::Tensor(id)) => vec![*id],
            _ => vec![],
        }
    }

    pub fn plain(&self, name: &str) -> Option<&Plain> {
        if let Some(Arg::Plain(v)) = self.arg(name) { Some(v) } else { None }
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match self.plain(name)? {
            Plain::Int(i) => Some(*i),
            Plain::Bool(b) => Some(i64::from(*b)),
            Plain::Ints(v) if v.len() == 1 => Some(v[0]),
            _ => None,
        }
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match self.plain(name)? {
            Plain::Float(f) => Some(*f),
            Plain::Int(i) => Some(*i as f64),
            Plain::Bool(b) => Some(f64::from(u8::from(*b))),
            _ => None,
        }
    }

    pub fn bool(&self, name: &str) -> bool {
        matches!(self.plain(name), Some(Plain::Bool(true) | Plain::Int(1)))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        if let Some(Plain::Str(s)) = self.plain(name) { Some(s) } else { None }
    }

    pub fn dtype(&self, name: &str) -> Option<DType> {
        if let Some(Plain::DType(d)) = self.plain(name) { Some(*d) } else { None }
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.plain(name)? {
            Plain::Ints(v) => Some(v.to_vec()),
            Plain::Int(i) => Some(vec![*i]),
            Plain::List(v) => v.iter().map(|v| if let Plain::Int(i) = v { Some(*i) } else { None }).collect(),
            _ => None,
        }
    }

    /// Numbers, of which some may follow extents.
    pub fn sizes(&self, name: &str) -> Option<Vec<Size>> {
        match self.arg(name)? {
            Arg::Size(s) => Some(vec![s.clone()]),
            Arg::Sizes(all) => Some(all.clone()),
            Arg::Plain(_) => Some(self.ints(name)?.into_iter().map(Size::fixed).collect()),
            _ => None,
        }
    }

    /// The same list for each of `n` axes, if one number stands for all.
    pub fn each(&self, name: &str, n: usize, default: i64) -> Option<Vec<i64>> {
        match self.arg(name) {
            None => Some(vec![default; n]),
            Some(_) => match self.ints(name)?.as_slice() {
                [one] => Some(vec![*one; n]),
                many => Some(many.to_vec()),
            },
        }
    }

    /// Padding of windows on `n` axes as numbers, and the word that stands for it.
    pub fn padding(&self, n: usize) -> Option<(Vec<i64>, &'static str)> {
        match self.plain("padding") {
            None | Some(Plain::None) => Some((vec![0; n], "EXPLICIT")),
            Some(Plain::Str(s)) if s.eq_ignore_ascii_case("same") => Some((vec![0; n], "SAME")),
            Some(Plain::Str(s)) if s.eq_ignore_ascii_case("valid") => Some((vec![0; n], "VALID")),
            Some(Plain::List(pairs)) if pairs.iter().all(|p| matches!(p, Plain::Ints(p) if p.len() == 2)) => {
                // A pair for every axis, those of the batch and the channels too.
                let all = pairs.iter().flat_map(|p| if let Plain::Ints(p) = p { p.to_vec() } else { vec![] });
                let last = self.text("data_format").is_some_and(|f| f.ends_with('C'));
                Some((all.skip(if last { 2 } else { 4 }).take(2 * n).collect(), "EXPLICIT"))
            }
            _ => self.each("padding", n, 0).map(|p| (p, "EXPLICIT")),
        }
    }
}
