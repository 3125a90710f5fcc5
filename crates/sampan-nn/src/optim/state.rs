//! What an optimizer keeps, under Paddle's names, so that a `.pdopt` file goes either way.

use super::rule::{Accumulator, Kind};
use super::{Memory, Numbers, Optimizer, Slot, rounding, wide};
use crate::lr::LearningRate;
use sampan_core::error::Kind as ErrorKind;
use sampan_core::ops::creation::{FullOpts, try_full_with};
use sampan_core::value::Arg;
use sampan_core::{DType, Dict, Error, Result, Tensor, Value};
use std::sync::Arc;

const MASTERS: &str = "master_weights";
const SCHEDULE: &str = "LR_Scheduler";
const MASTER_SUFFIX: &str = "_fp32_master_0";

/// A number as the tensor it is saved as.
fn save_number(a: &Accumulator, value: f64, param: &Tensor) -> Result<Tensor> {
    let dtype = if a.kind == Kind::Count { DType::Int64 } else { wide(param.dtype()) };
    try_full_with(a.shape(param.shape()), value, FullOpts::new().dtype(dtype))
}

/// Does a key end in a counter, `_0`?
fn is_counter(rest: &str) -> bool {
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
}

/// Is this the key of a parameter's accumulator? Paddle counts how often it made one: any number is taken.
fn names(key: &str, param: &str, accumulator: &str) -> bool {
    let Some(rest) = key.strip_prefix(param) else { return false };
    let rest = rest.strip_prefix("_fp32_master_").map_or(rest, |r| r.trim_start_matches(|c: char| c.is_ascii_digit()));
    let rest = rest.strip_prefix('_').and_then(|r| r.strip_prefix(accumulator)).and_then(|r| r.strip_prefix('_'));
    rest.is_some_and(is_counter)
}

/// Is this the key of some parameter's accumulator?
fn is_of(key: &str, accumulator: &str) -> bool {
    key.rsplit_once('_')
        .is_some_and(|(head, n)| is_counter(n) && head.strip_suffix(accumulator).is_some_and(|h| h.ends_with('_')))
}

/// Where a parameter's accumulators were found: one key for each, in order.
type Found<'a> = Vec<(&'a str, &'a Tensor)>;

impl Optimizer {
    /// What must be kept to go on later: accumulators and master weights of parameters that had a gradient, and the
    /// schedule. The tensors are the optimizer's own, not copies.
    pub fn state_dict(&self) -> Result<Dict> {
        if let Some(search) = &self.lbfgs {
            return Ok([("state", search.state_dict())].into_iter().collect());
        }
        let mut entries: Vec<(String, Value)> = self.memories(|a, slot, memory, value| {
            let master = if memory.master.is_some() { MASTER_SUFFIX } else { "" };
            (format!("{}{master}_{}_0", slot.parameter.name(), a.name), value.into())
        })?;
        let masters: Dict =
            self.slots.iter().filter_map(|s| Some((s.parameter.name(), s.memory.as_ref()?.master.clone()?))).collect();
        if !masters.is_empty() {
            entries.push((MASTERS.into(), masters.into()));
        }
        if let LearningRate::Scheduled(s) = &*super::locked(&self.lr) {
            entries.push((SCHEDULE.into(), s.try_state_dict()?.into()));
        }
        Ok(entries.into_iter().collect())
    }

    /// What is remembered: the name of each accumulator, that of its parameter, and its values.
    pub fn accumulators(&self) -> Result<Vec<(&'static str, String, Tensor)>> {
        self.memories(|a, slot, _, value| (a.name, slot.parameter.name(), value))
    }

    /// One thing for each accumulator of each parameter that has some: accumulator by accumulator in each group.
    fn memories<T>(&self, one: impl Fn(&Accumulator, &Slot, &Memory, Tensor) -> T) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let (mut tensor, mut number) = (0, 0);
            for a in &group.accumulators {
                for slot in self.slots.iter().filter(|s| s.group == i) {
                    let Some(memory) = &slot.memory else { continue };
                    let value = match a.kind.is_number() {
                        true => save_number(a, super::locked(&memory.numbers)[number], &slot.parameter.tensor())?,
                        false => memory.tensors[tensor].clone(),
                    };
                    found.push(one(a, slot, memory, value));
                }
                *(if a.kind.is_number() { &mut number } else { &mut tensor }) += 1;
            }
        }
        Ok(found)
    }

    /// Goes on from a kept state. Accumulators are found by the names of their parameters, or, where the names differ
    /// because the network was built anew, by their order and shapes.
    pub fn set_state_dict(&mut self, state: &Dict) -> Result<()> {
        self.load(state).map_err(|e| e.in_op("set_state_dict"))
    }

    fn load(&mut self, state: &Dict) -> Result<()> {
        if let Some(search) = &mut self.lbfgs {
            let inner = state.get("state").ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no `state`"))?;
            return search.set_state_dict(<&Dict>::get(inner, "state")?);
        }
        let masters = state.get(MASTERS).map(|m| <&Dict>::get(m, MASTERS)).transpose()?;
        let memories = self.find(state)?;
        let mut loaded = Vec::with_capacity(memories.len());
        for (i, found) in memories.into_iter().enumerate() {
            loaded.push(match found {
                Some(found) => Some(self.memory_from(i, &found, masters)?),
                None => None,
            });
        }
        // Nothing was changed so far.
        if let LearningRate::Scheduled(s) = &*super::locked(&self.lr) {
            let missing = || {
                Error::new(ErrorKind::NotFound, format!("the state has no `{SCHEDULE}`, but a schedule sets the rate"))
            };
            s.set_state_dict(<&Dict>::get(state.get(SCHEDULE).ok_or_else(missing)?, SCHEDULE)?)?;
        }
        for (slot, memory) in self.slots.iter_mut().zip(loaded) {
            slot.memory = memory.map(Arc::new);
        }
        self.shape = Arc::default();
        Ok(())
    }

    /// The accumulators of each slot; `None` for a parameter that never had a gradient.
    fn find<'a>(&self, state: &'a Dict) -> Result<Vec<Option<Found<'a>>>> {
        let tensors: Found =
            state.iter().filter_map(|(k, v)| if let Value::Tensor(t) = v { Some((k, t)) } else { None }).collect();
        let mut taken = 0;
        let mut complete = true;
        let by_name: Vec<Option<Found>> = self
            .slots
            .iter()
            .map(|slot| {
                let (name, accumulators) = (slot.parameter.name(), &self.groups[slot.group].accumulators);
                let of = |a: &Accumulator| tensors.iter().find(|(k, _)| names(k, &name, a.name)).copied();
                let found: Found = accumulators.iter().filter_map(of).collect();
                taken += found.len();
                complete &= found.is_empty() || found.len() == accumulators.len();
                // Without accumulators (SGD) the master weight alone tells whether it had a gradient.
                (found.len() == accumulators.len() && (!found.is_empty() || self.has_master(state, &name)))
                    .then_some(found)
            })
            .collect();
        if complete && (taken == tensors.len() || by_name.iter().all(Option::is_some)) {
            return Ok(by_name);
        }
        self.find_by_order(&tensors)
    }

    fn has_master(&self, state: &Dict, name: &str) -> bool {
        matches!(state.get(MASTERS), Some(Value::Dict(masters)) if masters.get(name).is_some())
    }

    /// The n-th parameter gets the n-th accumulator of each kind. Frozen ones take part if there are enough for them: they
    /// were frozen after their first step.
    fn find_by_order<'a>(&self, tensors: &Found<'a>) -> Result<Vec<Option<Found<'a>>>> {
        let kinds = self.groups.iter().flat_map(|g| &g.accumulators).map(|a| a.name);
        let all =
            kinds.into_iter().all(|name| tensors.iter().filter(|(k, _)| is_of(k, name)).count() == self.slots.len());
        let takes_part = |slot: &Slot| all || slot.parameter.trainable();
        let wanted = self.slots.iter().filter(|s| takes_part(s)).count();
        let fail = |what: String| {
            let have: Vec<&str> = tensors.iter().take(4).map(|(k, _)| *k).collect();
            let dots = if tensors.len() > have.len() { ", …" } else { "" };
            Error::new(ErrorKind::NotFound, format!("the state fits neither by name nor by order: {what}"))
                .received(format!("{} tensors: {}{dots}", tensors.len(), have.join(", ")))
                .hint("load a state that the same optimizer saved for the same network")
        };
        let mut next: std::collections::HashMap<&str, usize> = Default::default();
        self.slots
            .iter()
            .map(|slot| {
                if !takes_part(slot) {
                    return Ok(None);
                }
                let shape = slot.parameter.shape();
                let mut found = Vec::new();
                for a in &self.groups[slot.group].accumulators {
                    let at = next.entry(a.name).or_default();
                    let all = tensors.iter().filter(|(k, _)| is_of(k, a.name));
                    let key = format!("{}_{}_0", slot.parameter.name(), a.name);
                    if all.clone().count() != wanted {
                        let count = all.clone().count();
                        return Err(fail(format!("{wanted} parameters but {count} of `{}` ({key})", a.name)));
                    }
                    let one = all.clone().nth(*at).expect("counted above");
                    if one.1.shape() != a.shape(&shape) {
                        let (got, want) = (one.1.shape(), a.shape(&shape));
                        return Err(fail(format!("`{}` has shape {got:?}, {key} has {want:?}", one.0)));
                    }
                    *at += 1;
                    found.push(*one);
                }
                Ok(Some(found))
            })
            .collect()
    }

    /// Copies of what was found, in the types this optimizer uses.
    fn memory_from(&self, slot: usize, found: &Found, masters: Option<&Dict>) -> Result<Memory> {
        let slot = &self.slots[slot];
        let param = slot.parameter.tensor();
        let dtype = wide(param.dtype());
        let own = |t: &Tensor| t.detach().try_cast(dtype)?.try_clone_data();
        let mut memory = Memory { tensors: Vec::new(), numbers: Numbers::default(), master: None };
        let mut numbers = 0;
        for (a, (key, value)) in self.groups[slot.group].accumulators.iter().zip(found) {
            let number = a.kind.is_number();
            let want = a.shape(param.shape());
            // Some versions of Paddle save a single number with shape [] rather than [1].
            if value.shape() != want && !(number && value.numel() == 1) {
                let error = Error::invalid(format!("`{key}` has shape {:?}, expected {want:?}", value.shape()));
                return Err(error.hint("the state belongs to another network"));
            }
            match number {
                true => {
                    let first = value.to_f64_vec().first().copied().unwrap_or(a.fill);
                    super::locked(&memory.numbers)[numbers] = rounding(param.dtype())(first);
                    numbers += 1;
                }
                false => memory.tensors.push(own(value)?),
            }
        }
        if self.multi_precision && param.dtype() != dtype {
            // By name, or in order where the names differ; as for accumulators, frozen ones count if all are there.
            let all = masters.is_some_and(|m| m.iter().count() == self.slots.len());
            let mut candidates = self.slots.iter().filter(|s| all || s.parameter.trainable());
            let position = candidates.position(|s| std::ptr::eq(s, slot));
            let saved = masters.and_then(|m| {
                m.get(&slot.parameter.name()).or_else(|| position.and_then(|i| m.iter().nth(i)).map(|(_, v)| v))
            });
            memory.master = Some(match saved {
                Some(Value::Tensor(t)) if t.shape() == param.shape() => own(t)?,
                Some(other) => {
                    let got =
                        if let Value::Tensor(t) = other { format!("{:?}", t.shape()) } else { "no tensor".into() };
                    let name = slot.parameter.name();
                    return Err(Error::invalid(format!(
                        "the master weight of {name} is {got}, not {:?}",
                        param.shape()
                    )));
                }
                None => own(&param)?,
            });
        }
        Ok(memory)
    }
}
