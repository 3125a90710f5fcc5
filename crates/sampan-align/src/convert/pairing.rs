//! Which layer's weights go to which layer.
//!
//! A pair is certain if the names are the same and the shapes fit, if both networks have the same layers in the same order,
//! if there is only one layer of that shape on each side, or if of all that fit only one has a name that ends alike.
//! Everything else is a choice, which is the user's.

use super::groups::{Group, How, Said, compatible};
use super::mapping::Mapping;
use sampan_core::{Error, Result};
use std::collections::HashMap;

/// Why two layers are a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The user says so.
    Mapping,
    /// They have the same name.
    Name,
    /// They stand at the same place, and all layers around them fit.
    Order,
    /// No other layer has these shapes.
    OnlyOne,
    /// Of the layers with these shapes only one has a name that ends alike.
    End,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::Mapping => "mapping",
            Reason::Name => "same name",
            Reason::Order => "same place",
            Reason::OnlyOne => "only one of its shape",
            Reason::End => "same end of the name",
        })
    }
}

pub(super) struct Pair {
    pub source: usize,
    pub target: usize,
    pub reason: Reason,
    pub moves: Vec<(usize, usize, How)>,
}

/// A layer that several others could be.
pub(super) struct Choice {
    pub target: usize,
    pub sources: Vec<usize>,
}

pub(super) struct Pairing {
    pub pairs: Vec<Pair>,
    pub choices: Vec<Choice>,
    /// Names that all layers of one side begin with and the other side lacks.
    pub left_out: Vec<String>,
}

struct Work<'a> {
    sources: &'a [Group],
    targets: &'a [Group],
    said: Said<'a>,
    /// The names as they are compared: renamed by the user, without a common beginning.
    names: Vec<String>,
    target_names: Vec<String>,
    ordered: bool,
    pairs: Vec<Pair>,
    free_sources: Vec<usize>,
    free_targets: Vec<usize>,
}

/// The first component that all names share.
fn common_start(names: &[String]) -> Option<String> {
    let first = names.first()?.split_once('.')?.0;
    let start = format!("{first}.");
    (names.len() > 1 && names.iter().all(|n| n.starts_with(&start))).then_some(start)
}

fn same_names(a: &[String], b: &[String]) -> usize {
    let known: std::collections::HashSet<&String> = a.iter().collect();
    b.iter().filter(|n| known.contains(n)).count()
}

impl Work<'_> {
    fn fit(&self, s: usize, t: usize) -> Option<Vec<(usize, usize, How)>> {
        compatible(&self.sources[s], &self.targets[t], self.said)
    }

    fn pair(&mut self, source: usize, target: usize, reason: Reason, moves: Vec<(usize, usize, How)>) {
        self.free_sources.retain(|&s| s != source);
        self.free_targets.retain(|&t| t != target);
        self.pairs.push(Pair { source, target, reason, moves });
    }

    /// Leaves out a beginning that only one side has, where more names are the same without it.
    fn without_common_start(&mut self) -> Vec<String> {
        let mut left_out = Vec::new();
        for _ in 0..3 {
            let now = same_names(&self.names, &self.target_names);
            let stripped = |names: &[String]| {
                let start = common_start(names)?;
                Some((names.iter().map(|n| n[start.len()..].to_string()).collect::<Vec<_>>(), start))
            };
            if let Some((names, start)) = stripped(&self.names).filter(|(n, _)| same_names(n, &self.target_names) > now)
            {
                self.names = names;
                left_out.push(start);
            } else if let Some((names, start)) =
                stripped(&self.target_names).filter(|(n, _)| same_names(&self.names, n) > now)
            {
                self.target_names = names;
                left_out.push(start);
            }
        }
        left_out
    }

    /// The user's pairs, which must fit.
    fn by_mapping(&mut self, mapping: &Mapping) -> Result<()> {
        let targets: HashMap<&str, usize> =
            self.targets.iter().enumerate().map(|(i, t)| (t.path.as_str(), i)).collect();
        for s in 0..self.sources.len() {
            let Some(renamed) = mapping.rename(&self.sources[s].path) else { continue };
            let Some(&t) = targets.get(renamed.as_str()) else {
                let source = &self.sources[s].path;
                return Err(Error::invalid(format!("the mapping sends {source} to {renamed}, which the target lacks")));
            };
            let Some(moves) = self.fit(s, t) else {
                let (source, target) = (describe(&self.sources[s]), describe(&self.targets[t]));
                return Err(Error::invalid(format!(
                    "the mapping sends {source} to {target}, and the shapes do not fit"
                )));
            };
            self.pair(s, t, Reason::Mapping, moves);
        }
        Ok(())
    }

    fn by_name(&mut self) {
        let places: HashMap<String, usize> = self.free_sources.iter().map(|&s| (self.names[s].clone(), s)).collect();
        for t in self.free_targets.clone() {
            if let Some(&s) = places.get(&self.target_names[t])
                && let Some(moves) = self.fit(s, t)
            {
                self.pair(s, t, Reason::Name, moves);
            }
        }
    }

    /// All free layers of both sides in order, one to one; or the shorter side inside the longer, if there is one way only.
    fn by_order(&mut self) {
        if !self.ordered || self.free_sources.is_empty() || self.free_targets.is_empty() {
            return;
        }
        let (sources, targets) = (self.free_sources.clone(), self.free_targets.clone());
        let fits = |s: usize, t: usize| self.fit(s, t).is_some();
        let inside = |short: &[usize], long: &[usize], fits: &dyn Fn(usize, usize) -> bool| {
            let leftmost = embed(short.iter().copied(), long, fits)?;
            let reversed: Vec<usize> = long.iter().rev().copied().collect();
            let mut rightmost = embed(short.iter().rev().copied(), &reversed, fits)?;
            rightmost.reverse();
            (leftmost == rightmost).then_some(leftmost)
        };
        let found: Option<Vec<(usize, usize)>> = if sources.len() >= targets.len() {
            inside(&targets, &sources, &|t, s| fits(s, t)).map(|s| s.into_iter().zip(targets).collect())
        } else {
            inside(&sources, &targets, &|s, t| fits(s, t)).map(|t| sources.into_iter().zip(t).collect())
        };
        for (s, t, reason) in self.by_name_within(found.unwrap_or_default()) {
            if let Some(moves) = self.fit(s, t) {
                self.pair(s, t, reason, moves);
            }
        }
    }

    /// Layers that stand side by side under the same names in another order, such as `q`, `k` and `v`: there the names
    /// decide, not the order.
    fn by_name_within(&self, pairs: Vec<(usize, usize)>) -> Vec<(usize, usize, Reason)> {
        let mut families: HashMap<(&str, &str), Vec<(usize, usize)>> = HashMap::new();
        for &(s, t) in &pairs {
            families.entry((parent(&self.names[s]), parent(&self.target_names[t]))).or_default().push((s, t));
        }
        let mut decided: HashMap<usize, usize> = HashMap::new();
        for family in families.values() {
            let (mut a, mut b): (Vec<&str>, Vec<&str>) =
                family.iter().map(|&(s, t)| (end(&self.names[s]), end(&self.target_names[t]))).unzip();
            if a == b {
                continue;
            }
            a.sort_unstable();
            b.sort_unstable();
            if a == b {
                for &(s, _) in family {
                    let same = family.iter().find(|(_, t)| end(&self.target_names[*t]) == end(&self.names[s]));
                    decided.extend(same.map(|&(_, t)| (s, t)));
                }
            }
        }
        let reason = |s: usize, t: usize| match decided.get(&s) {
            Some(&by_name) => (s, by_name, if by_name == t { Reason::Order } else { Reason::End }),
            None => (s, t, Reason::Order),
        };
        pairs.into_iter().map(|(s, t)| reason(s, t)).collect()
    }

    /// Layers of which only one that fits ends alike, on both sides.
    fn by_end(&mut self) {
        let alike = |s: usize, t: usize| {
            let (a, b) = (self.names[s].rsplit('.'), self.target_names[t].rsplit('.'));
            a.zip(b).take_while(|(x, y)| x == y && x.parse::<usize>().is_err()).count()
        };
        let best = |fitting: Vec<(usize, usize)>| -> Option<usize> {
            let most = fitting.iter().map(|&(_, n)| n).max().filter(|&n| n > 0)?;
            let mut found = fitting.iter().filter(|&&(_, n)| n == most);
            found.next().filter(|_| found.next().is_none()).map(|&(i, _)| i)
        };
        let pairs: Vec<(usize, usize)> = self
            .free_targets
            .iter()
            .filter_map(|&t| {
                let sources = self.free_sources.iter().filter(|&&s| self.fit(s, t).is_some());
                let s = best(sources.map(|&s| (s, alike(s, t))).collect())?;
                let targets = self.free_targets.iter().filter(|&&t| self.fit(s, t).is_some());
                (best(targets.map(|&t| (t, alike(s, t))).collect()) == Some(t)).then_some((s, t))
            })
            .collect();
        for (s, t) in pairs {
            if let Some(moves) = self.fit(s, t) {
                self.pair(s, t, Reason::End, moves);
            }
        }
    }

    /// Layers that fit one layer only, and it them.
    fn by_shape(&mut self) {
        loop {
            let before = self.pairs.len();
            for t in self.free_targets.clone() {
                let fitting: Vec<usize> =
                    self.free_sources.iter().copied().filter(|&s| self.fit(s, t).is_some()).collect();
                if let [s] = fitting[..]
                    && self.free_targets.iter().filter(|&&other| self.fit(s, other).is_some()).count() == 1
                    && let Some(moves) = self.fit(s, t)
                {
                    self.pair(s, t, Reason::OnlyOne, moves);
                }
            }
            if self.pairs.len() == before {
                return;
            }
        }
    }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn end(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Each of `short` at a place of `long`, in order, as early as possible.
fn embed(
    short: impl Iterator<Item = usize>,
    long: &[usize],
    fits: &dyn Fn(usize, usize) -> bool,
) -> Option<Vec<usize>> {
    let mut places = long.iter().copied();
    short.map(|a| places.find(|&b| fits(a, b))).collect()
}

/// A layer in a message: its name and the shapes of its weights.
pub(super) fn describe(group: &Group) -> String {
    let shapes: Vec<String> = group.pieces.iter().map(|p| format!("{} {:?}", p.role, p.shape)).collect();
    format!("{} ({})", group.path, shapes.join(", "))
}

pub(super) fn pair(
    sources: &[Group],
    targets: &[Group],
    mapping: &Mapping,
    said: Said<'_>,
    ordered: bool,
) -> Result<Pairing> {
    let free = |side: &[Group], gone: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..side.len()).filter(|&i| !gone(&side[i].path)).collect()
    };
    let names = |side: &[Group]| side.iter().map(|g| g.path.clone()).collect::<Vec<_>>();
    let mut work = Work {
        sources,
        targets,
        said,
        names: names(sources),
        target_names: names(targets),
        ordered,
        pairs: Vec::new(),
        free_sources: free(sources, &|path| mapping.drops(path)),
        free_targets: free(targets, &|path| mapping.leaves(path)),
    };
    work.by_mapping(mapping)?;
    let left_out = work.without_common_start();
    // If nothing is named alike, or everything, the order of one side must not disturb the other's.
    let complete = work.free_targets.iter().all(|&t| work.names.contains(&work.target_names[t]));
    if !complete && work.ordered && work.free_sources.len() == work.free_targets.len() {
        let in_order = work.free_sources.iter().zip(&work.free_targets).all(|(&s, &t)| work.fit(s, t).is_some());
        let crossing = work.free_sources.iter().zip(&work.free_targets).any(|(&s, &t)| {
            work.names[s] != work.target_names[t]
                && work
                    .free_targets
                    .iter()
                    .any(|&other| work.target_names[other] == work.names[s] && work.fit(s, other).is_some())
        });
        if in_order && !crossing {
            work.by_order();
        }
    }
    work.by_name();
    work.by_order();
    work.by_shape();
    work.by_end();
    work.by_shape();
    let choices = work
        .free_targets
        .iter()
        .map(|&target| Choice {
            target,
            sources: work.free_sources.iter().copied().filter(|&s| work.fit(s, target).is_some()).collect(),
        })
        .filter(|choice| !choice.sources.is_empty())
        .collect();
    Ok(Pairing { pairs: work.pairs, choices, left_out })
}
