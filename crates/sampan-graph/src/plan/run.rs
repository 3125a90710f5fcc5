//! A plan that runs: steps over buffers that are there already.

use sampan_core::dispatch::dispatch;
use sampan_core::op::OpDef;
use sampan_core::value::Args;
use sampan_core::{Error, Layout, Result, Tensor, Value};
use sampan_kernels::{Buffer, DType};
use smallvec::SmallVec;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a step computes from the values it reads.
pub(super) type Kernel = Box<dyn Fn(&[&[f32]], &mut [f32]) + Send + Sync>;

/// Where a value is read.
#[derive(Clone)]
pub(super) enum From {
    /// So many elements of a buffer of the plan.
    Slot(usize, usize),
    /// A tensor of this run.
    Tensor(usize),
    /// A tensor that is always the same.
    Held(Tensor),
}

/// Where a value goes.
#[derive(Clone)]
pub(super) enum To {
    Slot(usize, usize),
    /// A tensor of its own.
    Tensor(usize, Layout),
}

/// An argument of a call.
#[derive(Clone)]
pub(super) enum Given {
    Always(Value),
    /// A tensor of this run, in another shape perhaps.
    Tensor(usize, Option<Vec<i64>>),
    Tensors(Vec<Given>),
    List(Vec<Given>),
}

pub(super) enum Work {
    Floats { kernel: Kernel, from: SmallVec<[From; 3]>, to: To },
    Call { op: &'static OpDef, args: Vec<Given>, to: Vec<Option<usize>> },
}

pub(super) struct Step {
    pub name: String,
    pub work: Work,
    /// Tensors that nobody reads afterwards.
    pub done: Vec<usize>,
}

/// What is computed for inputs of one shape.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// Where the inputs and outputs are among the tensors of a run.
    pub inputs: Vec<usize>,
    pub outputs: Vec<Given>,
    pub tensors: usize,
    /// Bytes of the buffers.
    pub slots: Vec<usize>,
    /// Buffers that no run is using.
    pub free: Mutex<Vec<Vec<Buffer>>>,
}

/// The tensors of one run.
struct Tensors(SmallVec<[Option<Tensor>; 16]>);

impl Tensors {
    fn get(&self, at: usize) -> Result<&Tensor> {
        let found = self.0.get(at).and_then(Option::as_ref);
        found.ok_or_else(|| Error::invalid(format!("tensor {at} of a plan is read before it is given")))
    }

    fn value(&self, given: &Given) -> Result<Value> {
        Ok(match given {
            Given::Always(value) => value.clone(),
            Given::Tensor(at, None) => Value::Tensor(self.get(*at)?.clone()),
            Given::Tensor(at, Some(shape)) => Value::Tensor(self.get(*at)?.try_reshape(&shape[..])?),
            Given::Tensors(all) => {
                let one = |g: &Given| match self.value(g)? {
                    Value::Tensor(t) => Ok(t),
                    _ => Err(Error::invalid("a list of tensors holds something else")),
                };
                Value::Tensors(all.iter().map(one).collect::<Result<_>>()?)
            }
            Given::List(all) => Value::List(all.iter().map(|g| self.value(g)).collect::<Result<_>>()?),
        })
    }
}

impl Plan {
    pub(super) fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.run_watched(inputs, |_| ())
    }

    /// How long each step takes: the shortest time of so many runs.
    pub(super) fn profile(&self, inputs: &[Tensor], runs: usize) -> Result<Vec<(String, Duration)>> {
        let mut best = vec![Duration::MAX; self.steps.len()];
        for _ in 0..runs.max(1) {
            let mut begin = Instant::now();
            self.run_watched(inputs, |k| {
                let now = Instant::now();
                best[k] = best[k].min(now - begin);
                begin = now;
            })?;
        }
        Ok(self.steps.iter().map(|s| s.name.clone()).zip(best).collect())
    }

    /// Tells `after` the number of each step that is done.
    fn run_watched(&self, inputs: &[Tensor], mut after: impl FnMut(usize)) -> Result<Vec<Tensor>> {
        let mut tensors = Tensors(SmallVec::from_elem(None, self.tensors));
        for (&at, t) in self.inputs.iter().zip(inputs) {
            tensors.0[at] = Some(if t.is_contiguous() { t.clone() } else { t.try_contiguous()? });
        }
        let spare = super::lock(&self.free).pop();
        let mut slots = spare.unwrap_or_else(|| self.slots.iter().map(|&bytes| Buffer::uninit(bytes)).collect());
        for (k, step) in self.steps.iter().enumerate() {
            match &step.work {
                Work::Floats { kernel, from, to } => compute(kernel, from, to, &mut slots, &mut tensors)?,
                Work::Call { op, args, to } => {
                    let args = args.iter().map(|a| tensors.value(a)).collect::<Result<Args>>()?;
                    let outputs = dispatch(op, args)?;
                    for (at, t) in to.iter().zip(outputs) {
                        if let Some(at) = at {
                            tensors.0[*at] = Some(if t.is_contiguous() { t } else { t.try_contiguous()? });
                        }
                    }
                }
            }
            step.done.iter().for_each(|&at| tensors.0[at] = None);
            after(k);
        }
        super::lock(&self.free).push(slots);
        let output = |given: &Given| match tensors.value(given)? {
            Value::Tensor(t) => Ok(t),
            _ => Err(Error::invalid("an output of a plan is no tensor")),
        };
        self.outputs.iter().map(output).collect()
    }

    /// The steps, one to a line.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let _ = writeln!(text, "{}", step.name);
        }
        let _ = write!(
            text,
            "{} steps, {} bytes in {} buffers",
            self.steps.len(),
            self.slots.iter().sum::<usize>(),
            self.slots.len()
        );
        text
    }
}

/// One step over floats.
fn compute(kernel: &Kernel, from: &[From], to: &To, slots: &mut [Buffer], tensors: &mut Tensors) -> Result<()> {
    let mut out = match to {
        // An empty buffer stands in meanwhile; it takes no memory.
        To::Slot(at, _) => std::mem::replace(&mut slots[*at], Buffer::uninit(0)),
        To::Tensor(_, layout) => Buffer::uninit(layout.numel() * size_of::<f32>()),
    };
    {
        let mut guards = SmallVec::<[_; 3]>::new();
        for place in from {
            guards.push(match place {
                From::Slot(..) => None,
                From::Tensor(at) => Some(tensors.get(*at)?.data::<f32>()),
                From::Held(t) => Some(t.data::<f32>()),
            });
        }
        let mut read = SmallVec::<[&[f32]; 3]>::new();
        for (place, guard) in from.iter().zip(&guards) {
            read.push(match (place, guard) {
                (From::Slot(at, len), _) => &slots[*at].as_slice()[..*len],
                (_, Some(guard)) => guard.slice(),
                _ => unreachable!("every tensor has a guard"),
            });
        }
        match to {
            To::Slot(_, len) => kernel(&read, &mut out.as_mut_slice()[..*len]),
            To::Tensor(..) => kernel(&read, out.as_mut_slice()),
        }
    }
    match to {
        To::Slot(at, _) => slots[*at] = out,
        To::Tensor(at, layout) => tensors.0[*at] = Some(Tensor::from_buffer(out, layout.clone(), DType::Float32)?),
    }
    Ok(())
}
