//! Gradients that become the means over all processes, in buckets, while the walk backwards still computes others.

use crate::backend::ReduceOp;
use crate::group::{Group, tensors};
use crate::lane::Task;
use parking_lot::Mutex;
use sampan_core::autograd::LeafHook;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor};
use sampan_nn::Parameter;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A gradient of so many bytes is reduced where it lies; smaller ones are put side by side first.
const LARGE: usize = 1 << 16;

/// How gradients are put together.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// Bytes of a bucket.
    pub bytes: usize,
    /// Bytes of the last one at most: nothing is left to compute while it is reduced, so it is small.
    pub last_bytes: usize,
    /// May some parameters have no part in a walk, other ones on other processes?
    pub find_unused: bool,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets { bytes: 25 << 20, last_bytes: 1 << 20, find_unused: false }
    }
}

/// Makes gradients the means over the processes of a group. The leaves know it only weakly, so it ends when it is dropped; of
/// two for the same parameters the later one is heard.
pub struct Reducer {
    shared: Arc<Shared>,
    hook: Arc<dyn LeafHook>,
}

struct Shared {
    group: Group,
    parameters: Vec<(String, Parameter)>,
    /// In the order in which they are reduced; each holds parameters by their numbers.
    buckets: Vec<Vec<usize>>,
    bucket_of: Vec<usize>,
    find_unused: bool,
    active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The numbers of parameters, by the ids of their tensors.
    known: HashMap<u64, usize>,
    tensors: Vec<Tensor>,
    /// What is left to do in this walk.
    ready: Vec<bool>,
    missing: Vec<usize>,
    next: usize,
    under_way: Vec<Pending>,
}

/// A reduction under way.
struct Pending {
    task: Task,
    /// The small gradients, and the tensor in which they lie side by side.
    small: Vec<Tensor>,
    flat: Option<Tensor>,
}

/// Puts parameters into buckets by dtype, and gives the last layers' first. One that is full only when the walk is nearly done
/// has little time to hide in: where the last one is to be smaller than others, it is very small, and each bucket before it is
/// twice as large, up to the limit.
fn plan(parameters: &[(DType, usize)], limits: Buckets) -> Vec<Vec<usize>> {
    let mut dtypes: Vec<DType> = Vec::new();
    parameters.iter().for_each(|(d, _)| {
        if !dtypes.contains(d) {
            dtypes.push(*d)
        }
    });
    let mut all = Vec::new();
    for dtype in dtypes {
        let grows = limits.last_bytes < limits.bytes;
        let mut limit = if grows { limits.last_bytes.min(LARGE) } else { limits.bytes };
        let (mut bucket, mut bytes) = (Vec::new(), 0);
        for (i, (_, size)) in parameters.iter().enumerate().filter(|(_, (d, _))| *d == dtype) {
            if bytes + size > limit && !bucket.is_empty() {
                all.push(std::mem::take(&mut bucket));
                (bytes, limit) = (0, limits.bytes.min(limit.saturating_mul(2)));
            }
            bucket.push(i);
            bytes += size;
        }
        if !bucket.is_empty() {
            all.push(bucket);
        }
    }
    // The walk reaches the last parameters first.
    all.sort_by_key(|bucket| std::cmp::Reverse(bucket.iter().max().copied()));
    all
}

impl Reducer {
    /// Watches the parameters that are trained now.
    pub fn new(group: &Group, parameters: &[(String, Parameter)], buckets: Buckets) -> Reducer {
        let trained = parameters.iter().filter(|(_, p)| !p.tensor().stop_gradient());
        let parameters: Vec<(String, Parameter)> = trained.cloned().collect();
        let sizes: Vec<(DType, usize)> =
            parameters.iter().map(|(_, p)| p.tensor()).map(|t| (t.dtype(), t.numel() * t.dtype().size())).collect();
        let find_unused = buckets.find_unused;
        let buckets = plan(&sizes, buckets);
        let mut bucket_of = vec![0; parameters.len()];
        buckets.iter().enumerate().for_each(|(b, members)| members.iter().for_each(|&i| bucket_of[i] = b));
        let (group, active, state) = (group.clone(), AtomicBool::new(true), Mutex::default());
        let shared = Arc::new(Shared { group, parameters, buckets, bucket_of, find_unused, active, state });
        let reducer = Reducer { hook: shared.clone(), shared };
        reducer.prepare();
        reducer
    }

    /// Watches the parameters' tensors of now, where others have come into their places. Called before each forward.
    pub fn prepare(&self) {
        let mut state = self.shared.state.lock();
        let now: Vec<Tensor> = self.shared.parameters.iter().map(|(_, p)| p.tensor()).collect();
        if state.tensors.len() == now.len() && state.tensors.iter().zip(&now).all(|(a, b)| a.is_same(b)) {
            return;
        }
        for t in &now {
            t.set_leaf_hook(Some(&self.hook));
        }
        state.known = now.iter().enumerate().map(|(i, t)| (t.id(), i)).collect();
        state.tensors = now;
        self.shared.reset(&mut state);
    }

    /// Are gradients reduced? Otherwise each process adds up its own, and the next reduction takes them along.
    pub fn is_active(&self) -> bool {
        self.shared.active.load(Ordering::Relaxed)
    }

    /// Reduces gradients, or does not; gives what was before.
    pub fn set_active(&self, on: bool) -> bool {
        self.shared.active.swap(on, Ordering::Relaxed)
    }

    /// How many parameters each bucket has, in the order of reduction.
    pub fn buckets(&self) -> Vec<usize> {
        self.shared.buckets.iter().map(Vec::len).collect()
    }
}

impl Shared {
    fn reset(&self, state: &mut State) {
        state.ready = vec![false; self.parameters.len()];
        state.missing = self.buckets.iter().map(Vec::len).collect();
        state.next = 0;
        state.under_way.clear();
    }

    /// Begins to reduce a bucket.
    fn launch(&self, state: &mut State, bucket: usize) -> Result<()> {
        let mut small = Vec::new();
        for &i in &self.buckets[bucket] {
            let leaf = &state.tensors[i];
            let grad = match leaf.grad() {
                Some(grad) if grad.is_contiguous() => grad,
                // What had no part, or lies in other memory, is reduced all the same: others count on it.
                other => {
                    let grad = match other {
                        Some(grad) => grad.try_clone_data()?,
                        None => leaf.detach().zeros_like(),
                    };
                    leaf.set_grad(Some(grad.clone()));
                    grad
                }
            };
            if grad.numel() * grad.dtype().size() < LARGE {
                small.push(grad);
                continue;
            }
            let task = self.group.all_reduce_async(&grad, ReduceOp::Avg);
            state.under_way.push(Pending { task, small: Vec::new(), flat: None });
        }
        if !small.is_empty() {
            let joined = tensors::join(&small)?;
            let count: usize = small.iter().map(Tensor::numel).sum();
            let flat = Tensor::from_bytes(joined.bytes(), small[0].dtype(), [count])?;
            let task = self.group.all_reduce_async(&flat, ReduceOp::Avg);
            state.under_way.push(Pending { task, small, flat: Some(flat) });
        }
        Ok(())
    }

    /// Begins with every bucket whose turn it is.
    fn launch_complete(&self, state: &mut State) -> Result<()> {
        while state.missing.get(state.next) == Some(&0) {
            self.launch(state, state.next)?;
            state.next += 1;
        }
        Ok(())
    }

    /// Which parameters had a part in the walk on any process.
    fn used_anywhere(&self, state: &State) -> Result<Vec<bool>> {
        let mine: Vec<u8> = state.ready.iter().map(|r| *r as u8).collect();
        let all = Tensor::from_vec(mine, [state.ready.len()]);
        self.group.all_reduce(&all, ReduceOp::Max)?;
        Ok(all.to_vec::<u8>().into_iter().map(|u| u != 0).collect())
    }

    fn conclude(&self, state: &mut State) -> Result<()> {
        let unused: Vec<usize> = (0..state.ready.len()).filter(|i| !state.ready[*i]).collect();
        // Whoever was frozen meanwhile is not missed.
        let missed: Vec<usize> = unused.iter().copied().filter(|i| !state.tensors[*i].stop_gradient()).collect();
        if !missed.is_empty() && !self.find_unused {
            let unused = missed;
            let names: Vec<&str> = unused.iter().take(5).map(|i| self.parameters[*i].0.as_str()).collect();
            let more = if unused.len() > 5 { format!(" and {} more", unused.len() - 5) } else { String::new() };
            return Err(Error::new(
                Kind::PreconditionNotMet,
                format!("no gradient came for {}{more}", names.join(", ")),
            )
            .hint("find_unused_parameters=True, if some parameters have no part in some steps")
            .in_op("DataParallel"));
        }
        // What was there before a parameter had no part comes back if it had none anywhere.
        let before: Vec<(usize, Option<Tensor>)> = unused.iter().map(|i| (*i, state.tensors[*i].grad())).collect();
        for (i, old) in &before {
            if let Some(old) = old {
                state.tensors[*i].set_grad(Some(old.try_clone_data()?));
            }
        }
        state.missing.fill(0);
        self.launch_complete(state)?;
        let used = if self.find_unused { self.used_anywhere(state)? } else { Vec::new() };
        for Pending { task, small, flat } in state.under_way.drain(..) {
            task.wait()?;
            if let Some(flat) = flat {
                tensors::with_bytes(&flat, |bytes| tensors::spread(bytes, &small))?;
            }
        }
        for (i, old) in before {
            if !used.get(i).copied().unwrap_or(false) {
                state.tensors[i].set_grad(old);
            }
        }
        Ok(())
    }
}

impl LeafHook for Shared {
    fn ready(&self, leaf: &Tensor) -> Result<()> {
        if !self.active.load(Ordering::Relaxed) || self.group.size() == 1 {
            return Ok(());
        }
        let mut state = self.state.lock();
        let Some(&i) = state.known.get(&leaf.id()) else { return Ok(()) };
        if !std::mem::replace(&mut state.ready[i], true) {
            state.missing[self.bucket_of[i]] -= 1;
        }
        self.launch_complete(&mut state)
    }

    fn finish(&self, completed: bool) -> Result<()> {
        if !self.active.load(Ordering::Relaxed) || self.group.size() == 1 {
            return Ok(());
        }
        let mut state = self.state.lock();
        let result = if completed { self.conclude(&mut state) } else { Ok(()) };
        // What is under way ends before anybody may use the gradients for something else.
        state.under_way.iter().for_each(|pending| drop(pending.task.wait()));
        self.reset(&mut state);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_from_the_first_layers_on() {
        let limits = Buckets { bytes: 1 << 20, last_bytes: 1 << 18, find_unused: false };
        let layers: Vec<(DType, usize)> = [10, 50, 100, 100, 300, 900, 900].map(|kb| (DType::Float32, kb << 10)).into();
        assert_eq!(plan(&layers, limits), [vec![6], vec![5], vec![4], vec![3], vec![2], vec![0, 1]]);
        // Alike where they are to be alike.
        let limits = Buckets { last_bytes: 1 << 20, ..limits };
        assert_eq!(plan(&layers, limits), [vec![6], vec![5], vec![0, 1, 2, 3, 4]]);
    }

    #[test]
    fn every_dtype_has_buckets_of_its_own() {
        let mixed = [DType::Float32, DType::BFloat16, DType::Float32].map(|dtype| (dtype, 8));
        assert_eq!(plan(&mixed, Buckets::default()), [vec![0, 2], vec![1]]);
    }
}
