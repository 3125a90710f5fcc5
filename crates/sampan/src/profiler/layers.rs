//! The table of layers.

use super::table::{self, Text, Unit};
use super::{Kind, Profile};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// One line: all calls of one layer. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct LayerRow {
    /// The way to it from the outermost layer: `LeNet.features.0`.
    pub path: String,
    /// The name of its type.
    pub type_name: String,
    /// How often it was called.
    pub calls: u64,
    /// Forward, with the layers inside.
    pub forward: u64,
    /// Forward, without the layers inside.
    pub own: u64,
    /// The gradients of its ops, with those of the layers inside.
    pub backward: u64,
    /// The part of the outermost layers' time, forward and backward.
    pub share: f64,
    /// Multiply-adds of both ways, where they are known.
    pub multiply_adds: u64,
    /// Bytes of tensors made in the forward pass.
    pub allocated: u64,
}

/// A table to be made, in the order in which the layers began to run.
#[derive(Clone)]
pub struct Layers<'a> {
    profile: &'a Profile,
    depth: usize,
    unit: Unit,
}

impl<'a> Layers<'a> {
    pub(super) fn new(profile: &'a Profile) -> Layers<'a> {
        Layers { profile, depth: usize::MAX, unit: Unit::Milliseconds }
    }

    /// Only layers that lie in fewer than so many others; 1 for the outermost alone.
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Times in another unit.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// The lines.
    pub fn rows(&self) -> Vec<LayerRow> {
        let (events, tree) = (&self.profile.recording.events, &self.profile.tree);
        let mut at: HashMap<&str, usize> = HashMap::new();
        let mut rows: Vec<LayerRow> = Vec::new();
        let mut backward: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut whole = 0;
        for (i, e) in events.iter().enumerate() {
            let Some(path) = e.layer.as_deref() else { continue };
            if e.kind == Kind::Gradient && tree.call_around(events, i).is_none() {
                let (time, work) = backward.entry(path).or_default();
                *time += e.duration;
                *work += tree.place(i).multiply_adds;
                whole += e.duration;
            }
            if e.kind != Kind::Layer {
                continue;
            }
            let row = *at.entry(path).or_insert_with(|| {
                rows.push(LayerRow { path: path.into(), type_name: e.name.to_string(), ..Default::default() });
                rows.len() - 1
            });
            let row = &mut rows[row];
            row.calls += 1;
            row.forward += e.duration;
            row.own += tree.place(i).own;
            row.multiply_adds += tree.place(i).multiply_adds;
            row.allocated += e.memory.unwrap_or_default().allocated;
            if tree.layer_around(events, i).is_none() {
                whole += e.duration;
            }
        }
        // The gradients of a layer are its own and those of all paths that begin with its.
        for row in &mut rows {
            let inner = format!("{}.", row.path);
            for (_, (time, work)) in backward.iter().filter(|(p, _)| **p == row.path || p.starts_with(&inner)) {
                row.backward += time;
                row.multiply_adds += work;
            }
            row.share = table::share(row.forward + row.backward, whole);
        }
        rows.retain(|r| r.path.split('.').count() <= self.depth);
        rows
    }
}

impl fmt::Display for Layers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["Layer", "Type", "Calls", "Forward", "Self", "Backward", "Share", "GFLOP/s", "Allocated"];
        let mut text = Text::new(format!("Layers (time in {})", self.unit.symbol()), &header);
        let memory = self.profile.recording.options.memory;
        for r in self.rows() {
            text.row(vec![
                r.path,
                r.type_name,
                r.calls.to_string(),
                self.unit.show(r.forward),
                self.unit.show(r.own),
                if r.backward > 0 { self.unit.show(r.backward) } else { String::new() },
                table::percent(r.share),
                table::speed(r.multiply_adds, r.forward + r.backward),
                if memory { table::bytes(r.allocated) } else { String::new() },
            ]);
        }
        write!(f, "{text}{}", self.profile.warning())
    }
}
