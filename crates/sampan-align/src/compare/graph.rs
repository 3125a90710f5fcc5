//! Who gives a call its inputs.

use crate::{Recording, kinds};
use std::collections::{HashMap, HashSet};

/// Producers and consumers of the calls of one side.
pub(crate) struct Graph {
    /// For each call, the calls whose outputs it reads.
    sources: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// The call that made a tensor.
    made: HashMap<String, usize>,
}

impl Graph {
    pub fn of(side: &Recording) -> Graph {
        let calls = &side.structure.calls;
        let mut made: HashMap<String, usize> = HashMap::new();
        let mut sources = vec![Vec::new(); calls.len()];
        let mut users = vec![Vec::new(); calls.len()];
        for (i, call) in calls.iter().enumerate().filter(|(_, c)| !c.container) {
            for key in &call.inputs {
                if let Some(&from) = made.get(key.as_str()) {
                    sources[i].push(from);
                    users[from].push(i);
                }
            }
            if call.op != "output" {
                call.outputs.iter().for_each(|k| {
                    made.insert(k.clone(), i);
                });
            }
        }
        Graph { sources, users, made }
    }

    /// The calls between `call` and the nearest ones before it that `stop` holds for, in order of execution; and those
    /// nearest ones.
    pub fn before(&self, call: usize, stop: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<usize>) {
        self.back(self.sources[call].clone(), stop)
    }

    /// The calls between the nearest ones that `stop` holds for and a tensor, in order of execution.
    pub fn to(&self, key: &str, stop: impl Fn(usize) -> bool) -> Vec<usize> {
        self.back(self.made.get(key).copied().into_iter().collect(), stop).0
    }

    fn back(&self, mut open: Vec<usize>, stop: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<usize>) {
        let (mut between, mut ends) = (HashSet::new(), HashSet::new());
        while let Some(i) = open.pop() {
            if stop(i) {
                ends.insert(i);
            } else if between.insert(i) {
                open.extend(&self.sources[i]);
            }
        }
        let sorted = |set: HashSet<usize>| {
            let mut v: Vec<_> = set.into_iter().collect();
            v.sort_unstable();
            v
        };
        (sorted(between), sorted(ends))
    }

    /// All calls that depend on one.
    pub fn after(&self, call: usize) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut open = self.users[call].clone();
        while let Some(i) = open.pop() {
            if found.insert(i) {
                open.extend(&self.users[i]);
            }
        }
        found
    }

    /// The nearest calls after one that `stop` holds for.
    pub fn next(&self, call: usize, stop: impl Fn(usize) -> bool) -> Vec<usize> {
        let (mut seen, mut ends) = (HashSet::new(), HashSet::new());
        let mut open = self.users[call].clone();
        while let Some(i) = open.pop() {
            if stop(i) {
                ends.insert(i);
            } else if seen.insert(i) {
                open.extend(&self.users[i]);
            }
        }
        ends.into_iter().collect()
    }
}

/// Is it a call that moves values only?
pub(crate) fn is_glue(kind: &str) -> bool {
    kinds::is_glue(kind)
}
