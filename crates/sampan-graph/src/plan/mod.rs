//! Graphs that run forward again and again: for each shape of the inputs a plan of calls straight to the kernels.
//!
//! A plan knows every shape, so what is computed of shapes is computed once. Images lie in blocks of channels from one
//! convolution to the next; a sum and an activation that follow are a part of the layer before; chains of elementwise ops
//! are one formula; weights are packed once, for all plans; and values that do not live at the same time share memory. What
//! has no kernel here goes through `dispatch`.

mod build;
mod coded;
mod codes;
mod fuse;
mod heard;
mod layers;
mod memory;
mod places;
mod recurrent;
mod run;

use crate::graph::{Graph, Id};
use run::Plan;
use sampan_core::{Device, Result, Tensor, no_grad};
use sampan_kernels::planned::{Lstm, Packed, Way, int8};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Plans that are kept; the one that was not used for longest goes first.
const PLANS: usize = 16;

/// A graph that is ready to run forward. It can be used from many threads; clones share its weights and its plans.
///
/// ```
/// use sampan_core::{DType, Tensor};
/// use sampan_graph::{Predictor, Spec, trace};
/// let w = Tensor::new([[1.0f32], [2.0]]);
/// let graph = trace(|x| Ok(vec![x[0].matmul(&w).relu()]), &[Spec::new([None, Some(2)], DType::Float32)])?;
/// let predictor = Predictor::new(&graph)?;
/// assert_eq!(predictor.run(&[Tensor::new([[0.5f32, 1.0], [0.5, -1.0]])])?[0].to_vec::<f32>(), [2.5, 0.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Predictor(Arc<Shared>);

struct Shared {
    graph: Graph,
    packed: Weights,
    plans: Mutex<Plans>,
}

/// Packed weights by the value they are packed from.
#[derive(Default)]
struct Weights(Mutex<HashMap<(Id, Form), Arc<Packed>>>, Mutex<codes::Coding>, Mutex<HashMap<Id, Arc<Lstm>>>);

/// What weights are packed for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Form {
    Conv(Way),
    Matrix { turned: bool },
}

impl Weights {
    fn get(&self, id: Id, form: Form, make: impl FnOnce() -> Packed) -> Arc<Packed> {
        if let Some(packed) = lock(&self.0).get(&(id, form)) {
            return packed.clone();
        }
        let made = Arc::new(make());
        lock(&self.0).entry((id, form)).or_insert(made).clone()
    }

    /// The same for weights of codes, turned or not.
    fn coded(&self, id: Id, turned: bool, make: impl FnOnce() -> int8::Packed) -> Arc<int8::Packed> {
        if let Some(packed) = lock(&self.1).get(&(id, turned)) {
            return packed.clone();
        }
        let made = Arc::new(make());
        lock(&self.1).entry((id, turned)).or_insert(made).clone()
    }
}

/// Plans by the shapes of the inputs; `None` for one that cannot be made, whose calls are replayed.
#[derive(Default)]
struct Plans {
    known: HashMap<Vec<Vec<usize>>, (u64, Option<Arc<Plan>>)>,
    time: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Predictor {
    /// Makes a graph ready; its weights stay as they are now.
    pub fn new(graph: &Graph) -> Result<Predictor> {
        let graph = graph.for_inference()?;
        Ok(Predictor(Arc::new(Shared { graph, packed: Weights::default(), plans: Mutex::default() })))
    }

    /// The graph as it runs.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// The outputs for these inputs, without gradients.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let graph = &self.0.graph;
        no_grad(|| {
            graph.check_inputs(inputs)?;
            match self.plan(inputs)? {
                Some(plan) => plan.run(inputs),
                None => graph.run(inputs),
            }
        })
    }

    /// The steps for inputs of these shapes, for people: what is computed by which kernel.
    pub fn describe(&self, inputs: &[Tensor]) -> Result<String> {
        self.0.graph.check_inputs(inputs)?;
        Ok(no_grad(|| self.plan(inputs))?.map_or_else(|| "replayed call by call".into(), |plan| plan.describe()))
    }

    /// How long each step takes, for inputs of these shapes: the shortest time of so many runs. Empty where the calls are
    /// replayed, which a profiler sees.
    pub fn profile(&self, inputs: &[Tensor], runs: usize) -> Result<Vec<(String, Duration)>> {
        self.0.graph.check_inputs(inputs)?;
        no_grad(|| self.plan(inputs)?.map_or(Ok(vec![]), |plan| plan.profile(inputs, runs)))
    }

    fn plan(&self, inputs: &[Tensor]) -> Result<Option<Arc<Plan>>> {
        if inputs.iter().any(|t| t.device() != Device::Cpu) {
            return Ok(None);
        }
        let mut plans = lock(&self.0.plans);
        plans.time += 1;
        let time = plans.time;
        // Looked up without making a key: a small network runs in microseconds.
        let same = |key: &[Vec<usize>]| key.iter().zip(inputs).all(|(k, t)| k[..] == *t.shape());
        if let Some((_, (used, plan))) = plans.known.iter_mut().find(|(key, _)| same(key)) {
            *used = time;
            return Ok(plan.clone());
        }
        drop(plans);
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|t| t.shape().to_vec()).collect();
        // A graph that asks for values on the way, or fails, is replayed, which tells what is wrong.
        let plan = build::plan(&self.0, &shapes).ok().map(Arc::new);
        let mut plans = lock(&self.0.plans);
        if plans.known.len() >= PLANS
            && let Some(oldest) = plans.known.iter().min_by_key(|(_, (used, _))| *used).map(|(k, _)| k.clone())
        {
            plans.known.remove(&oldest);
        }
        plans.known.insert(shapes, (time, plan.clone()));
        Ok(plan)
    }
}
