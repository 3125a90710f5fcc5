//! Optimizers: Paddle's `optimizer`.
//!
//! There is one [`Optimizer`]; [`SGD`], [`Adam`] and the others make it with their rule. A step is one pass over all
//! parameters, in which gradients are clipped, penalties added and states updated.

mod adam;
mod adaptive;
mod group;
mod lbfgs;
mod nadam;
mod rule;
mod sgd;
mod state;

pub use adam::*;
pub use adaptive::*;
pub use group::{ParamGroup, Parameters};
pub use lbfgs::*;
pub use nadam::*;
pub use sgd::*;

use crate::clip::ClipGrad;
use crate::lr::{LearningRate, Schedule};
use crate::regularizer::Regularizer;
use crate::{Parameter, Settings};
use rule::{Accumulator, Kind, NUMBERS, Rule, Step};
use sampan_core::error::Kind as ErrorKind;
use sampan_core::ops::creation::{FullOpts, try_full_with};
use sampan_core::value::Arg;
use sampan_core::{DType, Device, Error, Object, Result, Tensor, ensure, gpu, profiler};
use sampan_kernels::optim::{Formula, Job, Prepare, STATES, lamb_norms, step as run};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes parameters by their gradients.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_nn::{Adam, Layer, Linear, Members};
/// let net = Linear::new(3, 1);
/// let mut opt = Adam::new(0.01, net.parameters());
/// let loss = net.call(&Tensor::new([[1.0f32, 2.0, 3.0]]))?.square().mean(());
/// loss.backward();
/// opt.step()?;
/// opt.clear_grad();
/// assert_eq!(opt.steps(), 1);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Optimizer {
    /// What a group is made from.
    default: Group,
    groups: Vec<Group>,
    slots: Vec<Slot>,
    lr: LearningRate,
    multi_precision: bool,
    steps: u64,
    /// The one optimizer that needs to evaluate the loss itself.
    lbfgs: Option<lbfgs::Search>,
}

/// Settings that most optimizers have.
pub(crate) struct Common {
    pub weight_decay: Option<Regularizer>,
    pub grad_clip: Option<ClipGrad>,
    pub multi_precision: bool,
}

/// A group's settings.
struct Group {
    rule: Box<dyn Rule>,
    accumulators: Vec<Accumulator>,
    factor: Option<f64>,
    weight_decay: Option<Regularizer>,
    grad_clip: Option<ClipGrad>,
}

/// A parameter's place.
struct Slot {
    parameter: Parameter,
    group: usize,
    /// Made when it first has a gradient.
    memory: Option<Memory>,
}

/// What is remembered about a parameter.
struct Memory {
    tensors: Vec<Tensor>,
    numbers: [f64; NUMBERS],
    master: Option<Tensor>,
}

/// A parameter's part in the step that is being made.
struct Work {
    slot: usize,
    param: Tensor,
    grad: Tensor,
    settings: Settings,
    /// Is the gradient in float32 and the parameter not? Then the master weight makes the step, and the parameter follows.
    by_master: bool,
}

/// The type a parameter is computed in.
fn wide(dtype: DType) -> DType {
    if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 }
}

/// Rounds to what a number is saved in.
fn rounding(dtype: DType) -> fn(f64) -> f64 {
    if dtype == DType::Float64 { |v| v } else { |v| v as f32 as f64 }
}

impl Accumulator {
    fn shape(&self, param: &[usize]) -> Vec<usize> {
        match self.kind {
            Kind::Rows(n) => [&[n], param].concat(),
            Kind::Elements | Kind::Spread => param.to_vec(),
            Kind::Number | Kind::Count => vec![1],
        }
    }
}

impl Memory {
    fn new(accumulators: &[Accumulator], param: &Tensor, multi_precision: bool) -> Result<Memory> {
        let dtype = wide(param.dtype());
        let tensor = |a: &Accumulator| {
            let make = || try_full_with(a.shape(param.shape()), a.fill, FullOpts::new().dtype(dtype));
            sampan_core::device::with(param.device(), make)
        };
        let mut numbers = [0.0; NUMBERS];
        for (number, a) in numbers.iter_mut().zip(accumulators.iter().filter(|a| a.kind.is_number())) {
            *number = rounding(param.dtype())(a.fill);
        }
        Ok(Memory {
            tensors: accumulators.iter().filter(|a| !a.kind.is_number()).map(tensor).collect::<Result<_>>()?,
            numbers,
            master: (multi_precision && param.dtype() != dtype).then(|| param.detach().try_cast(dtype)).transpose()?,
        })
    }

    /// Follows a parameter that was cast or moved to another device after the first step.
    fn follow(&mut self, param: &Tensor) -> Result<()> {
        let dtype = wide(param.dtype());
        for t in self.tensors.iter_mut().filter(|t| t.dtype() != dtype) {
            *t = t.try_cast(dtype)?;
        }
        if param.dtype() == dtype {
            self.master = None;
        }
        for t in self.tensors.iter_mut().chain(&mut self.master).filter(|t| t.device() != param.device()) {
            *t = t.try_to_device(&param.device().to_string())?;
        }
        Ok(())
    }
}

impl Optimizer {
    pub(crate) fn new(
        rule: impl Rule + 'static,
        lr: LearningRate,
        parameters: Parameters,
        common: Common,
    ) -> Result<Optimizer> {
        check_lr(lr.get())?;
        let default = Group {
            accumulators: rule.accumulators(),
            rule: rule.boxed(),
            factor: None,
            weight_decay: common.weight_decay,
            grad_clip: common.grad_clip,
        };
        let multi_precision = common.multi_precision;
        let (groups, slots) = (Vec::new(), Vec::new());
        let mut optimizer = Optimizer { default, groups, slots, lr, multi_precision, steps: 0, lbfgs: None };
        parameters.into_groups()?.into_iter().try_for_each(|group| optimizer.push_group(group))?;
        Ok(optimizer)
    }

    /// Trains more parameters: those that are unfrozen later, say.
    pub fn add_param_group(&mut self, group: ParamGroup) -> Result<()> {
        let name = self.default.rule.name();
        let add = || {
            let mut groups = Parameters(vec![group]).into_groups()?;
            let group = groups.remove(0);
            for p in &group.params {
                let known = self.slots.iter().any(|s| s.parameter.is_same(p));
                ensure!(!known, "the parameter {} is trained already", p.name());
            }
            self.push_group(group)
        };
        add().map_err(|e| e.in_op(name))
    }

    fn push_group(&mut self, given: ParamGroup) -> Result<()> {
        let mut group = Group {
            rule: self.default.rule.boxed(),
            accumulators: Vec::new(),
            factor: None,
            weight_decay: self.default.weight_decay,
            grad_clip: self.default.grad_clip.clone(),
        };
        for (name, value) in given.settings.iter() {
            match name {
                _ if group.rule.set(name, value)? => {}
                "learning_rate" => group.factor = Some(f64::get(value, name)?),
                "weight_decay" => group.weight_decay = Option::get(value, name)?,
                "grad_clip" => group.grad_clip = Option::get(value, name)?,
                _ => sampan_core::bail!("{} has no setting `{name}` for a parameter group", group.rule.name()),
            }
        }
        group.accumulators = group.rule.accumulators();
        let at = self.groups.len();
        self.slots.extend(given.params.into_iter().map(|parameter| Slot { parameter, group: at, memory: None }));
        self.groups.push(group);
        Ok(())
    }

    /// Keeps a float32 copy of half precision parameters from their next first step on, or no longer.
    pub fn set_multi_precision(&mut self, on: bool) {
        self.multi_precision = on;
    }

    /// The parameters it trains.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.slots.iter().map(|s| s.parameter.clone()).collect()
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Changes every parameter that has a gradient and is not frozen. Gradients that were not cleared add up, so several
    /// batches can make one step.
    pub fn step(&mut self) -> Result<()> {
        if self.lbfgs.is_some() {
            let error = Error::new(ErrorKind::PreconditionNotMet, "evaluates the loss several times in a step");
            return Err(error.hint("call step_with(closure)").in_op("LBFGS"));
        }
        let name = self.groups[0].rule.name();
        let _range = profiler::range_of(profiler::Kind::Optimizer, name);
        self.step_all().map_err(|e| e.in_op(name))?;
        self.steps += 1;
        Ok(())
    }

    /// Calls `closure`, which clears the gradients, computes the loss and its gradients and returns it; then makes a step.
    /// LBFGS calls it several times.
    pub fn step_with(&mut self, mut closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        match self.lbfgs.take() {
            None => {
                let loss = sampan_core::enable_grad(&mut closure)?;
                self.step()?;
                Ok(loss)
            }
            Some(mut search) => {
                let parameters = self.parameters();
                let result = search.step(&parameters, self.lr.get(), &mut closure).map_err(|e| e.in_op("LBFGS"));
                self.lbfgs = Some(search);
                self.steps += u64::from(result.is_ok());
                result
            }
        }
    }

    /// [`step_with`](Self::step_with) of an optimizer that others hold too: the closure may use it.
    pub fn step_shared(this: &Mutex<Optimizer>, mut closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        let lock = || this.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |mut o: MutexGuard<'_, Optimizer>| o.lbfgs.take().map(|s| (s, o.parameters(), o.lr.get()));
        let Some((mut search, parameters, lr)) = taken(lock()) else {
            let loss = sampan_core::enable_grad(&mut closure)?;
            lock().step()?;
            return Ok(loss);
        };
        let result = search.step(&parameters, lr, &mut closure).map_err(|e| e.in_op("LBFGS"));
        let mut optimizer = lock();
        optimizer.lbfgs = Some(search);
        optimizer.steps += u64::from(result.is_ok());
        result
    }

    /// Paddle's `minimize`: a step with the gradients that `loss.backward()` left.
    pub fn minimize(&mut self, _loss: &Tensor) -> Result<()> {
        self.step()
    }

    /// Forgets the gradients; they add up until then.
    pub fn clear_grad(&self) {
        self.clear_grad_with(false);
    }

    /// Forgets the gradients, or sets those there are to zero, as Paddle's `clear_grad(set_to_zero=True)` does.
    pub fn clear_grad_with(&self, set_to_zero: bool) {
        for Slot { parameter, .. } in self.slots.iter().filter(|s| s.parameter.trainable()) {
            match set_to_zero {
                true => parameter.tensor().zero_grad(),
                false => parameter.clear_grad(),
            }
        }
    }

    /// The learning rate of the next step.
    pub fn get_lr(&self) -> f64 {
        self.lr.get()
    }

    /// Sets a learning rate that is a number; a schedule sets its own.
    pub fn set_lr(&mut self, lr: f64) -> Result<()> {
        let fail = |e: Error| e.in_op("set_lr");
        if let LearningRate::Scheduled(s) = &self.lr {
            let error = Error::new(ErrorKind::PreconditionNotMet, format!("a schedule sets the learning rate: {s:?}"));
            return Err(fail(error.hint("use set_lr_scheduler to replace it")));
        }
        check_lr(lr).map_err(fail)?;
        self.lr = lr.into();
        Ok(())
    }

    /// From now on a schedule sets the learning rate.
    pub fn set_lr_scheduler(&mut self, schedule: &Schedule) {
        self.lr = schedule.into();
    }

    /// The schedule that sets the learning rate, if one does.
    pub fn lr_scheduler(&self) -> Option<&Schedule> {
        if let LearningRate::Scheduled(s) = &self.lr { Some(s) } else { None }
    }

    /// Parameters that take part in a step, with memory.
    fn collect(&mut self) -> Result<Vec<Work>> {
        let mut works = Vec::with_capacity(self.slots.len());
        for (i, slot) in self.slots.iter_mut().enumerate() {
            let param = slot.parameter.tensor();
            let Some(grad) = param.grad().filter(|_| !param.stop_gradient()) else { continue };
            let name = || slot.parameter.name();
            ensure!(
                grad.shape() == param.shape(),
                "the gradient of {} has shape {:?}, the parameter {:?}",
                name(),
                grad.shape(),
                param.shape()
            );
            ensure!(param.is_contiguous(), "the parameter {} is a view with gaps; replace it by a copy", name());
            match &mut slot.memory {
                Some(memory) => memory.follow(&param)?,
                none => {
                    let accumulators = &self.groups[slot.group].accumulators;
                    *none = Some(Memory::new(accumulators, &param, self.multi_precision)?);
                }
            }
            let master = slot.memory.as_ref().and_then(|m| m.master.as_ref());
            let by_master = master.is_some_and(|m| m.dtype() == grad.dtype());
            let ready = (by_master || grad.dtype() == param.dtype()) && grad.is_contiguous();
            let dtype = if by_master { grad.dtype() } else { param.dtype() };
            let grad = if ready { grad } else { grad.detach().try_cast(dtype)?.contiguous() };
            works.push(Work { slot: i, param, grad, settings: slot.parameter.settings(), by_master });
        }
        Ok(works)
    }

    /// What clipping does to each gradient; a group's gradients are clipped together.
    fn clip(&self, works: &[Work]) -> Result<Vec<Prepare>> {
        let mut plans = vec![Prepare::default(); works.len()];
        for (g, group) in self.groups.iter().enumerate() {
            let Some(clip) = &group.grad_clip else { continue };
            let members: Vec<usize> = (0..works.len()).filter(|&w| self.slots[works[w].slot].group == g).collect();
            let grads: Vec<Option<&Tensor>> =
                members.iter().map(|&w| works[w].settings.need_clip.then_some(&works[w].grad)).collect();
            members.iter().zip(clip.plan(&grads)?).for_each(|(&w, plan)| plans[w] = plan);
        }
        Ok(plans)
    }

    fn step_all(&mut self) -> Result<()> {
        let works = self.collect()?;
        let mut plans = self.clip(&works)?;
        let lr = self.lr.get();
        // Nothing is changed before everything that can fail has been done.
        let mut next_numbers = Vec::with_capacity(works.len());
        let mut orders: Vec<Order> = Vec::with_capacity(works.len());
        for (work, prepare) in works.iter().zip(&mut plans) {
            let slot = &self.slots[work.slot];
            let (group, memory) = (&self.groups[slot.group], slot.memory.as_ref().expect("made by collect"));
            match work.settings.regularizer.or(group.weight_decay) {
                Some(Regularizer::L1(coeff)) => prepare.l1 = coeff,
                Some(Regularizer::L2(coeff)) => prepare.l2 = coeff,
                None => {}
            }
            let mut numbers = memory.numbers;
            let mut step = Step {
                parameter: &slot.parameter,
                lr: lr * group.factor.unwrap_or(work.settings.learning_rate),
                prepare: *prepare,
                numbers: &mut numbers,
                row: 0,
                adapt: false,
                round: rounding(work.param.dtype()),
            };
            let formula = group.rule.formula(&mut step)?;
            orders.push((formula, step.lr, step.prepare, step.row, step.adapt));
            next_numbers.push(numbers);
        }
        if !gpu::step(&self.gpu_steps(&works, &orders))? {
            self.step_on_cpu(&works, &orders)?;
        }
        for (work, numbers) in works.iter().zip(next_numbers) {
            let memory = self.slots[work.slot].memory.as_mut().expect("made by collect");
            memory.numbers = numbers;
            if let Some(master) = memory.master.as_ref().filter(|_| work.by_master) {
                work.param.try_set_value(&master.try_cast(work.param.dtype())?)?;
            }
        }
        Ok(())
    }

    /// The same step as a GPU takes it.
    fn gpu_steps<'a>(&'a self, works: &'a [Work], orders: &[Order]) -> Vec<gpu::Step<'a>> {
        if !works.iter().all(|w| matches!(w.param.device(), Device::Cuda(_))) {
            return Vec::new();
        }
        let one = |(work, &(formula, lr, prepare, row, _)): (&'a Work, &Order)| {
            let memory = self.slots[work.slot].memory.as_ref().expect("made by collect");
            let used = |t: &Tensor| if t.numel() > work.param.numel() { row } else { 0 };
            let (param, master) = match &memory.master {
                Some(master) if work.by_master => (master, None),
                master => (&work.param, master.as_ref()),
            };
            let states = memory.tensors.iter().map(|t| (t, used(t))).collect();
            gpu::Step { param, grad: &work.grad, master, states, formula, lr, prepare }
        };
        works.iter().zip(orders).map(one).collect()
    }

    fn step_on_cpu(&self, works: &[Work], orders: &[Order]) -> Result<()> {
        let memories = works.iter().map(|w| self.slots[w.slot].memory.as_ref().expect("made by collect"));
        let targets: Vec<&Tensor> = works
            .iter()
            .zip(memories)
            .flat_map(|(w, m)| std::iter::once(&w.param).chain(&m.master).chain(&m.tensors))
            .collect();
        let sources: Vec<&Tensor> = works.iter().map(|w| &w.grad).collect();
        let by_norms = self.groups[0].rule.scaled_by_norms();
        Tensor::update(&targets, &sources, |writes, reads| {
            let mut writes = writes.iter_mut().map(std::mem::take);
            let mut next = || writes.next().expect("as many as targets");
            let mut jobs: Vec<Job> = Vec::with_capacity(works.len());
            for ((work, &grad), &(formula, lr, prepare, row, _)) in works.iter().zip(reads).zip(orders) {
                let memory = self.slots[work.slot].memory.as_ref().expect("made by collect");
                let mut param = next();
                let mut master = if memory.master.is_some() { next() } else { Default::default() };
                if work.by_master {
                    param = std::mem::take(&mut master);
                }
                let bytes = work.param.numel() * wide(work.param.dtype()).size();
                let mut states: [&mut [u8]; STATES] = Default::default();
                for (state, tensor) in states.iter_mut().zip(&memory.tensors) {
                    // Of an accumulator with rows one is used.
                    let row = if tensor.numel() > work.param.numel() { row } else { 0 };
                    *state = &mut next()[row * bytes..][..bytes];
                }
                let dtype = work.grad.dtype();
                jobs.push(Job { dtype, formula, lr, prepare, param, grad, master, states });
            }
            if by_norms {
                let norms = lamb_norms(&mut jobs);
                for ((job, (param, direction)), order) in jobs.iter_mut().zip(norms).zip(orders) {
                    if order.4 && param > 0.0 && direction > 0.0 {
                        job.lr *= param.sqrt() / direction.sqrt();
                    }
                }
            }
            run(&mut jobs);
        })
    }
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, n) = (self.groups[0].rule.name(), self.slots.len());
        write!(f, "{name} of {n} parameters after {} steps, learning rate {:?}", self.steps, self.lr)
    }
}

/// What one parameter's step does: the formula, the learning rate, the gradient's preparation, the row of accumulators, and
/// whether norms scale it.
type Order = (Formula, f64, Prepare, usize, bool);

fn check_lr(lr: f64) -> Result<()> {
    ensure!(lr >= 0.0, "the learning rate must not be negative, got {lr}");
    Ok(())
}

/// An optimizer for those who build by name.
pub fn object(optimizer: Optimizer) -> Object {
    Object::new(Arc::new(Mutex::new(optimizer)))
}
