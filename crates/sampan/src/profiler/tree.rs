//! How events lie in each other.

use sampan_core::profiler::{Event, Kind};

/// The part of a training step that an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Forward,
    Backward,
    Optimizer,
    Loader,
}

/// What is known of an event from those around and inside it.
pub(super) struct Place {
    /// The event around it on its thread; ranges and steps of the user's are none.
    pub parent: Option<usize>,
    pub phase: Phase,
    /// Its time without that of calls inside a call, or of layers inside a layer.
    pub own: u64,
    /// Multiply-adds, with those inside.
    pub multiply_adds: u64,
}

/// One place for each event.
pub(super) struct Tree(Vec<Place>);

impl Tree {
    /// Of events sorted by thread and start, the outer ones first.
    pub fn new(events: &[Event]) -> Tree {
        let mut places: Vec<Place> = Vec::with_capacity(events.len());
        let mut open: Vec<usize> = Vec::new();
        for (i, e) in events.iter().enumerate() {
            while let Some(&last) = open.last()
                && (events[last].thread != e.thread || events[last].end() <= e.start)
            {
                open.pop();
            }
            let parent = open.last().copied();
            let phase = match e.kind {
                Kind::Backward => Phase::Backward,
                Kind::Optimizer => Phase::Optimizer,
                Kind::Loader => Phase::Loader,
                _ => parent.map_or(Phase::Forward, |p| places[p].phase),
            };
            places.push(Place { parent, phase, own: e.duration, multiply_adds: e.multiply_adds });
            if !matches!(e.kind, Kind::Range | Kind::Step) {
                open.push(i);
            }
        }
        let mut tree = Tree(places);
        for i in (0..events.len()).rev() {
            let around = match events[i].kind {
                Kind::Layer => tree.layer_around(events, i),
                Kind::Op | Kind::Gradient => tree.call_around(events, i),
                _ => None,
            };
            if let Some(around) = around {
                tree.0[around].own = tree.0[around].own.saturating_sub(events[i].duration);
            }
            if let Some(parent) = tree.0[i].parent {
                tree.0[parent].multiply_adds += tree.0[i].multiply_adds;
            }
        }
        tree
    }

    pub fn place(&self, event: usize) -> &Place {
        &self.0[event]
    }

    /// The call that this event is a part of.
    pub fn call_around(&self, events: &[Event], event: usize) -> Option<usize> {
        self.0[event].parent.filter(|&p| matches!(events[p].kind, Kind::Op | Kind::Gradient))
    }

    /// The layer around it.
    pub fn layer_around(&self, events: &[Event], event: usize) -> Option<usize> {
        let parent = |i: &usize| self.0[*i].parent;
        std::iter::successors(parent(&event), parent).find(|&p| events[p].kind == Kind::Layer)
    }
}
