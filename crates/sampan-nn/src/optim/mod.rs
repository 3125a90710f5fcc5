//! Optimizers: Paddle's `optimizer`.
//!
//! There is one [`Optimizer`]; [`SGD`], [`Adam`] and the others make it with their rule. A step is one pass over all
//! parameters, in which gradients are clipped, penalties added and states updated.

mod adam;
mod adaptive;
mod again;
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

use crate::Parameter;
use crate::clip::{ClipGrad, Plan};
use crate::lr::{LearningRate, Schedule};
use crate::regularizer::Regularizer;
use again::Again;
use rule::{Accumulator, Kind, NUMBERS, Rule, Step};
use sampan_core::error::Kind as ErrorKind;
use sampan_core::ops::creation::{FullOpts, try_full_with};
use sampan_core::value::Arg;
use sampan_core::{DType, Device, Error, Object, Result, Tensor, ensure, gpu, profiler, recording};
use sampan_kernels::optim::{Formula, Job, Prepare, STATES, Written, lamb_norms, step as run};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    groups: Vec<Arc<Group>>,
    slots: Vec<Slot>,
    /// Another one whenever what is trained, and how, changes: recorded steps do not know of that.
    shape: Arc<()>,
    /// Shared with work that was recorded, which moves on without a call of `step`.
    lr: Arc<Mutex<LearningRate>>,
    multi_precision: bool,
    steps: Arc<AtomicU64>,
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
    memory: Option<Arc<Memory>>,
}

/// What is remembered about a parameter.
#[derive(Clone)]
struct Memory {
    tensors: Vec<Tensor>,
    numbers: Numbers,
    master: Option<Tensor>,
}

/// The accumulators that are numbers.
type Numbers = Arc<Mutex<[f64; NUMBERS]>>;

/// As many as a small network has parameters, without asking for memory.
type Few<T> = SmallVec<[T; 8]>;

/// A parameter's part in a step.
struct Work {
    parameter: Parameter,
    /// The number of its group.
    place: usize,
    group: Arc<Group>,
    memory: Arc<Memory>,
    param: Tensor,
    /// Is the gradient in float32 and the parameter not? Then the master weight makes the step, and the parameter follows.
    by_master: bool,
}

impl Work {
    /// Are rows left alone that no index named?
    fn is_lazy(&self) -> bool {
        self.group.rule.lazy() && self.parameter.settings().sparse && self.param.ndim() > 0
    }
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
            numbers: Arc::new(Mutex::new(numbers)),
            master: (multi_precision && param.dtype() != dtype).then(|| param.detach().try_cast(dtype)).transpose()?,
        })
    }

    /// Follows a parameter that was cast or moved to another device after the first step.
    fn follow(this: &mut Arc<Memory>, param: &Tensor) -> Result<()> {
        let dtype = wide(param.dtype());
        let fits = |t: &Tensor| t.dtype() == dtype && t.device() == param.device();
        if this.tensors.iter().chain(&this.master).all(fits) && (this.master.is_none() || param.dtype() != dtype) {
            return Ok(());
        }
        let this = Arc::make_mut(this);
        for t in this.tensors.iter_mut().filter(|t| t.dtype() != dtype) {
            *t = t.try_cast(dtype)?;
        }
        if param.dtype() == dtype {
            this.master = None;
        }
        for t in this.tensors.iter_mut().chain(&mut this.master).filter(|t| t.device() != param.device()) {
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
        let (shape, lr, steps) = (Arc::default(), Arc::new(Mutex::new(lr)), Arc::default());
        let mut optimizer = Optimizer { default, groups, slots, shape, lr, multi_precision, steps, lbfgs: None };
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
        self.groups.push(Arc::new(group));
        self.shape = Arc::default();
        Ok(())
    }

    /// Keeps a float32 copy of half precision parameters from their next first step on, or no longer.
    pub fn set_multi_precision(&mut self, on: bool) {
        self.multi_precision = on;
        self.shape = Arc::default();
    }

    /// The parameters it trains.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.slots.iter().map(|s| s.parameter.clone()).collect()
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
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
        self.step_all().map_err(|e| e.in_op(name))
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
                let result = search.step(&parameters, self.get_lr(), &mut closure).map_err(|e| e.in_op("LBFGS"));
                self.lbfgs = Some(search);
                result.inspect(|_| self.count_step())
            }
        }
    }

    /// [`step_with`](Self::step_with) of an optimizer that others hold too: the closure may use it.
    pub fn step_shared(this: &Mutex<Optimizer>, mut closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        let lock = || this.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |mut o: MutexGuard<'_, Optimizer>| o.lbfgs.take().map(|s| (s, o.parameters(), o.get_lr()));
        let Some((mut search, parameters, lr)) = taken(lock()) else {
            let loss = sampan_core::enable_grad(&mut closure)?;
            lock().step()?;
            return Ok(loss);
        };
        let result = search.step(&parameters, lr, &mut closure).map_err(|e| e.in_op("LBFGS"));
        let mut optimizer = lock();
        optimizer.lbfgs = Some(search);
        result.inspect(|_| optimizer.count_step())
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
        locked(&self.lr).get()
    }

    /// Sets a learning rate that is a number; a schedule sets its own.
    pub fn set_lr(&mut self, lr: f64) -> Result<()> {
        let fail = |e: Error| e.in_op("set_lr");
        recording::refuse(|| "a learning rate is set".into());
        if let LearningRate::Scheduled(s) = &*locked(&self.lr) {
            let error = Error::new(ErrorKind::PreconditionNotMet, format!("a schedule sets the learning rate: {s:?}"));
            return Err(fail(error.hint("use set_lr_scheduler to replace it")));
        }
        check_lr(lr).map_err(fail)?;
        *locked(&self.lr) = lr.into();
        Ok(())
    }

    /// From now on a schedule sets the learning rate.
    pub fn set_lr_scheduler(&mut self, schedule: &Schedule) {
        recording::refuse(|| "a learning rate is set".into());
        *locked(&self.lr) = schedule.into();
    }

    /// The schedule that sets the learning rate, if one does.
    pub fn lr_scheduler(&self) -> Option<Schedule> {
        if let LearningRate::Scheduled(s) = &*locked(&self.lr) { Some(s.clone()) } else { None }
    }

    /// Parameters that take part in a step, with memory, and their gradients.
    fn collect(&mut self) -> Result<(Vec<Work>, Vec<Tensor>)> {
        let mut works = Vec::with_capacity(self.slots.len());
        let mut grads = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            let param = slot.parameter.tensor();
            recording::watch(&param);
            let Some(grad) = (if param.stop_gradient() { None } else { param.grad() }) else { continue };
            let name = || slot.parameter.name();
            ensure!(
                grad.shape() == param.shape(),
                "the gradient of {} has shape {:?}, the parameter {:?}",
                name(),
                grad.shape(),
                param.shape()
            );
            ensure!(param.is_contiguous(), "the parameter {} is a view with gaps; replace it by a copy", name());
            let group = &self.groups[slot.group];
            let memory = match &mut slot.memory {
                Some(memory) => {
                    Memory::follow(memory, &param)?;
                    memory.clone()
                }
                none => {
                    let memory = Arc::new(Memory::new(&group.accumulators, &param, self.multi_precision)?);
                    none.insert(memory).clone()
                }
            };
            let by_master = memory.master.as_ref().is_some_and(|m| m.dtype() == grad.dtype());
            let ready = (by_master || grad.dtype() == param.dtype()) && grad.is_contiguous();
            let dtype = if by_master { grad.dtype() } else { param.dtype() };
            grads.push(if ready { grad } else { grad.detach().try_cast(dtype)?.contiguous() });
            let (parameter, place, group) = (slot.parameter.clone(), slot.group, group.clone());
            works.push(Work { parameter, place, group, memory, param, by_master });
        }
        Ok((works, grads))
    }

    fn step_all(&mut self) -> Result<()> {
        let (works, grads) = self.collect()?;
        if recording::on_cpu() {
            return self.record_step(works, &grads);
        }
        let again = |orders: &[Order], written: &[Written]| self.recorded(&works, &grads, orders, written);
        advance(&works, &grads, self.get_lr(), again)?;
        self.count_step();
        Ok(())
    }

    /// Makes the step as part of the CPU's work that is recorded, which makes it again.
    fn record_step(&self, works: Vec<Work>, grads: &[Tensor]) -> Result<()> {
        let shape = Arc::downgrade(&self.shape);
        recording::guard(move || shape.strong_count() > 0);
        let (lr, steps) = (self.lr.clone(), self.steps.clone());
        let again = move |grads: &[Tensor], gate: &AtomicBool| {
            if !gate.load(Ordering::Relaxed) {
                let rate = locked(&lr).get();
                advance(&works, grads, rate, |_, _| -> Again { unreachable!("no GPU is at work") })?;
                steps.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Vec::new())
        };
        recording::act(&grads.iter().collect::<Vec<_>>(), again).map(|_| ())
    }

    /// The step as recorded work of a GPU does it again.
    fn recorded(&self, works: &[Work], grads: &[Tensor], orders: &[Order], written: &[Written]) -> Again {
        if recording::has_actions() {
            let why = "a schedule or a scaler moves on before an optimizer makes its step";
            recording::refuse(|| why.into());
        }
        let part = |(((work, grad), order), written): (((&Work, &Tensor), &Order), &Written)| again::Part {
            parameter: work.parameter.clone(),
            rule: work.group.rule.boxed(),
            factor: work.group.factor,
            prepare: order.2,
            row: order.3,
            dtype: if work.by_master { grad.dtype() } else { work.param.dtype() },
            written: Written { formulas: written.formulas.clone(), constants: Vec::new() },
            numbers: work.memory.numbers.clone(),
            before: *locked(&work.memory.numbers),
            next: None,
        };
        let parts = works.iter().zip(grads).zip(orders).zip(written).map(part).collect();
        Again { parts, lr: self.lr.clone(), steps: self.steps.clone(), steps_before: self.steps() }
    }
}

/// A step of parameters by their gradients.
fn advance(
    works: &[Work],
    grads: &[Tensor],
    lr: f64,
    recorded: impl FnOnce(&[Order], &[Written]) -> Again,
) -> Result<()> {
    let plans = clip(works, grads)?;
    // Nothing is changed before everything that can fail has been done.
    let mut next_numbers: Few<Option<[f64; NUMBERS]>> = Few::new();
    let mut orders: Few<Order> = Few::new();
    for (i, work) in works.iter().enumerate() {
        let settings = work.parameter.settings();
        let mut prepare = plans.get(i).map_or_else(Prepare::default, |plan| plan.prepare);
        match settings.regularizer.or(work.group.weight_decay) {
            Some(Regularizer::L1(coeff)) => prepare.l1 = coeff,
            Some(Regularizer::L2(coeff)) => prepare.l2 = coeff,
            None => {}
        }
        let before = *locked(&work.memory.numbers);
        let mut numbers = before;
        let lr = lr * work.group.factor.unwrap_or(settings.learning_rate);
        orders.push(order(&*work.group.rule, &work.parameter, work.param.dtype(), lr, prepare, &mut numbers)?);
        next_numbers.push((numbers != before).then_some(numbers));
    }
    let on_gpu = gpu_steps(works, grads, &orders, &plans);
    if on_gpu.is_empty() || !gpu::step(&on_gpu, |written| recorded(&orders, written))? {
        step_on_cpu(works, grads, &orders)?;
    }
    for (work, numbers) in works.iter().zip(next_numbers) {
        if let Some(numbers) = numbers {
            *locked(&work.memory.numbers) = numbers;
        }
        if let Some(master) = work.memory.master.as_ref().filter(|_| work.by_master) {
            work.param.try_set_value(&master.try_cast(work.param.dtype())?)?;
        }
    }
    Ok(())
}

/// What clipping does to each gradient, or nothing where none is clipped; a group's gradients are clipped together.
fn clip(works: &[Work], grads: &[Tensor]) -> Result<Vec<Plan>> {
    if works.iter().all(|w| w.group.grad_clip.is_none()) {
        return Ok(Vec::new());
    }
    let mut plans = vec![Plan::default(); works.len()];
    let mut done = 0;
    while let Some(first) = works.get(done) {
        // Those of a group stand side by side.
        let members = done..done + works[done..].iter().take_while(|w| w.place == first.place).count();
        done = members.end;
        let Some(clip) = &first.group.grad_clip else { continue };
        let clipped: Vec<Option<&Tensor>> =
            members.clone().map(|w| works[w].parameter.settings().need_clip.then_some(&grads[w])).collect();
        plans[members].clone_from_slice(&clip.plan(&clipped)?);
    }
    Ok(plans)
}

/// The same step as a GPU takes it.
fn gpu_steps<'a>(works: &'a [Work], grads: &'a [Tensor], orders: &[Order], plans: &'a [Plan]) -> Vec<gpu::Step<'a>> {
    // Which rows are left alone is found out on the host.
    if !works.iter().all(|w| matches!(w.param.device(), Device::Cuda(_)) && !w.is_lazy()) {
        return Vec::new();
    }
    let one = |(i, ((work, grad), &(formula, lr, prepare, row, _))): (usize, ((&'a Work, &'a Tensor), &Order))| {
        let memory = &work.memory;
        let used = |t: &Tensor| if t.numel() > work.param.numel() { row } else { 0 };
        let (param, master) = match &memory.master {
            Some(master) if work.by_master => (master, None),
            master => (&work.param, master.as_ref()),
        };
        let states = memory.tensors.iter().map(|t| (t, used(t))).collect();
        let factor = plans.get(i).and_then(|plan| plan.factor.as_ref()).map(|(t, at)| (t, *at));
        gpu::Step { param, grad, master, states, formula, lr, prepare, factor }
    };
    works.iter().zip(grads).zip(orders).enumerate().map(one).collect()
}

fn step_on_cpu(works: &[Work], grads: &[Tensor], orders: &[Order]) -> Result<()> {
    let mut targets: Few<&Tensor> = Few::new();
    for w in works {
        targets.push(&w.param);
        targets.extend(&w.memory.master);
        targets.extend(&w.memory.tensors);
    }
    let sources: Few<&Tensor> = grads.iter().collect();
    let by_norms = works.first().is_some_and(|w| w.group.rule.scaled_by_norms());
    Tensor::update(&targets, &sources, |writes, reads| {
        let mut writes = writes.iter_mut().map(std::mem::take);
        let mut next = || writes.next().expect("as many as targets");
        let mut jobs: Few<Job> = Few::new();
        for ((work, &grad), (&(formula, lr, prepare, row, _), g)) in
            works.iter().zip(reads).zip(orders.iter().zip(grads))
        {
            let memory = &work.memory;
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
            let job = Job { dtype: g.dtype(), formula, lr, prepare, param, grad, master, states };
            if work.is_lazy() { jobs.extend(used_rows(job, g.dim(0))) } else { jobs.push(job) }
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

/// The parts of a job that are rows with a gradient, of a table of so many rows.
fn used_rows(job: Job<'_>, rows: usize) -> Vec<Job<'_>> {
    let Job { dtype, formula, lr, prepare, mut param, mut grad, mut master, mut states } = job;
    let width = grad.len() / rows.max(1);
    // Zeros of either sign: the first bit of an element lies in its last byte.
    let is_used = |row: &[u8]| {
        row.chunks_exact(dtype.size())
            .any(|e| e.split_last().is_some_and(|(s, rest)| s & 0x7f != 0 || rest.iter().any(|b| *b != 0)))
    };
    let mut parts = Vec::new();
    while !grad.is_empty() && width > 0 {
        let used = is_used(&grad[..width]);
        let run = grad.chunks_exact(width).take_while(|row| is_used(row) == used).count();
        let left = grad.len() / width;
        let take = |bytes| first_rows(bytes, run, left);
        let (param, master) = (take(&mut param), take(&mut master));
        let states = states.each_mut().map(take);
        let part = Job { dtype, formula, lr, prepare, param, grad: &grad[..run * width], master, states };
        grad = &grad[run * width..];
        parts.extend(used.then_some(part));
    }
    parts
}

/// Takes the first `n` of so many rows off.
fn first_rows<'a>(bytes: &mut &'a mut [u8], n: usize, rows: usize) -> &'a mut [u8] {
    let all = std::mem::take(bytes);
    let (first, rest) = all.split_at_mut(all.len() / rows * n);
    *bytes = rest;
    first
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, n) = (self.groups[0].rule.name(), self.slots.len());
        let lr = locked(&self.lr);
        write!(f, "{name} of {n} parameters after {} steps, learning rate {lr:?}", self.steps())
    }
}

/// What one parameter's step does: the formula, the learning rate, the gradient's preparation, the row of accumulators, and
/// whether norms scale it.
type Order = (Formula, f64, Prepare, usize, bool);

/// What a rule makes of the next step of a parameter of this dtype; `numbers` move on.
fn order(
    rule: &dyn Rule,
    parameter: &Parameter,
    dtype: DType,
    lr: f64,
    prepare: Prepare,
    numbers: &mut [f64; NUMBERS],
) -> Result<Order> {
    let round = rounding(dtype);
    let mut step = Step { parameter, lr, prepare, numbers, row: 0, adapt: false, round };
    let formula = rule.formula(&mut step)?;
    Ok((formula, step.lr, step.prepare, step.row, step.adapt))
}

/// A lock that outlives a panic of whoever held it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_lr(lr: f64) -> Result<()> {
    ensure!(lr >= 0.0, "the learning rate must not be negative, got {lr}");
    Ok(())
}

/// An optimizer for those who build by name.
pub fn object(optimizer: Optimizer) -> Object {
    Object::new(Arc::new(Mutex::new(optimizer)))
}
