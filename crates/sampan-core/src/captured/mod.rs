//! A step of training, or any other function of tensors, that is recorded once and then done again as a whole: on a GPU as one
//! launch, on the CPU from a tape of its calls.

mod cpu;
mod gpu;
mod replay;
pub(crate) mod tape;

use crate::shape::{Shape, Strides};
use crate::{DType, Device, Result, Tensor, amp, autograd, flags, recording};
use std::sync::Arc;

/// Calls that run as they are before one is recorded: kernels are compiled and states made by then.
const EAGER: usize = 2;
/// How often a call that made something for later ones is tried again.
const TRIES: usize = 64;
/// Records of one kind of call that are kept; more mean that it differs every time.
const MOST: usize = 16;

/// What a call must agree with to be done by the same record.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    tag: String,
    inputs: Vec<(Shape, Strides, DType, bool)>,
    grad: bool,
    cast: Option<String>,
    switches: Switches,
    device: Device,
}

/// Settings of the process that decide what calls do.
type Switches = (bool, (bool, bool), DType);

fn switches() -> Switches {
    (flags::deterministic(), crate::gpu::rounding(), crate::promote::default_dtype())
}

impl Key {
    /// What tells calls apart, as it is now.
    fn new(tag: &str, inputs: &[Tensor], device: Device) -> Key {
        // On a GPU they are copied to places without gaps.
        let steps = |t: &Tensor| if device == Device::Cpu { t.layout().strides.clone() } else { Strides::new() };
        Key {
            tag: tag.to_string(),
            inputs: inputs.iter().map(|t| (t.shape_vec(), steps(t), t.dtype(), t.stop_gradient())).collect(),
            grad: autograd::grad_enabled(),
            cast: amp::level().map(|policy| policy.describe()),
            switches: switches(),
            device,
        }
    }

    /// Is it the key of this call? Asked of the last one first, and without making anything.
    fn is(&self, tag: &str, inputs: &[Tensor], device: Device) -> bool {
        // A few numbers are compared one by one sooner than by a call.
        let same = |a: &[usize], b: &[usize]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b);
        let alike = |(t, (shape, strides, dtype, stop)): (&Tensor, &(Shape, Strides, DType, bool))| {
            let layout = t.layout();
            let steps = device != Device::Cpu
                || (layout.strides.len() == strides.len() && layout.strides.iter().zip(strides).all(|(a, b)| a == b));
            same(&layout.shape, shape) && steps && t.dtype() == *dtype && t.stop_gradient() == *stop
        };
        // A comparison of nothing with nothing would still look at where it lies, which is nowhere, and that takes long.
        let tagged = if tag.is_empty() { self.tag.is_empty() } else { self.tag == tag };
        tagged
            && self.device == device
            && self.inputs.len() == inputs.len()
            && inputs.iter().zip(&self.inputs).all(alike)
            && self.grad == autograd::grad_enabled()
            && self.cast.is_some() == amp::enabled()
            && (self.cast.is_none() || self.cast == amp::level().map(|policy| policy.describe()))
            && self.switches == switches()
    }
}

/// A function of tensors that is recorded at its third call and then done again as a whole.
///
/// What the function does besides working on tensors (printing, counting) happens only while it is recorded; optimizers,
/// schedules of learning rates and random numbers move on as if it had been called, and the bits are the same. A value
/// that is read on the host cannot be recorded: the function is then called as it is, every time, and
/// [`why_not`](Captured::why_not) says why. So is one whose result is to be differentiated.
///
/// ```
/// use sampan_core::{Captured, Tensor};
/// let w = Tensor::new([1.0f32]).requires_grad_();
/// let mut step = Captured::default();
/// for _ in 0..5 {
///     let loss = step.call("", &[Tensor::new([3.0f32])], |x| {
///         let loss = (&x[0] * &w).sum(());
///         loss.backward();
///         w.clear_grad();
///         Ok(vec![loss])
///     })?;
///     assert_eq!(loss[0].to_f64(), 3.0);
/// }
/// assert_eq!((step.why_not(), step.nodes().len()), (None, 1));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[derive(Default)]
pub struct Captured {
    kinds: Vec<(Key, Kind)>,
    why_not: Option<String>,
    line: Option<Line>,
    only_gpu: bool,
}

/// Says which line of the program is running.
pub type Line = Arc<dyn Fn() -> Option<String> + Send + Sync>;

#[derive(Default)]
struct Kind {
    eager: usize,
    /// Recordings that came to nothing.
    tries: usize,
    refused: bool,
    records: Vec<Record>,
}

/// One recorded call.
#[allow(clippy::large_enum_variant)]
enum Record {
    Gpu(gpu::Record),
    Cpu(cpu::Record),
}

impl Record {
    fn still_fits(&mut self) -> Result<bool> {
        match self {
            Record::Gpu(record) => record.still_fits(),
            Record::Cpu(record) => Ok(record.still_fits()),
        }
    }

    fn again(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        match self {
            Record::Gpu(record) => record.again(inputs),
            Record::Cpu(record) => record.again(inputs),
        }
    }
}

/// What became of a call that was to be recorded.
#[allow(clippy::large_enum_variant)]
enum Recorded {
    /// It was done, and can be done again.
    Done(Record, Vec<Tensor>),
    /// It was done, and what was recorded stands for no other.
    Once(Vec<Tensor>, NotNow),
    /// It was not done, and all is as it was before.
    Not(String),
}

/// Why a call was not recorded, and whether a later one may be.
struct NotNow {
    why: String,
    later: bool,
}

impl Captured {
    /// Records work of GPUs alone; on the CPU functions are called.
    pub fn on_gpus() -> Captured {
        Captured { only_gpu: true, ..Captured::default() }
    }

    /// Names lines of the program in [`why_not`](Captured::why_not), as `line` tells them.
    pub fn naming_lines(mut self, line: Line) -> Captured {
        self.line = Some(line);
        self
    }

    /// Does again what a call did, if one with this tag and such inputs was recorded and still stands for it.
    pub fn again(&mut self, tag: &str, inputs: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
        let device = device_of(inputs);
        if recording::on() || recording::taping() || checks() {
            return Ok(None);
        }
        let Some((_, kind)) = self.kinds.iter_mut().find(|(key, _)| key.is(tag, inputs, device)) else {
            return Ok(None);
        };
        for record in &mut kind.records {
            if record.still_fits()? {
                return record.again(inputs).map(Some);
            }
        }
        Ok(None)
    }

    /// Calls `f`, or does again what it did. Calls with another `tag`, other shapes or dtypes are recorded apart.
    pub fn call(
        &mut self,
        tag: &str,
        inputs: &[Tensor],
        mut f: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let device = device_of(inputs);
        if recording::taping() || recording::on() || (self.only_gpu && device == Device::Cpu) || device == Device::Meta
        {
            return f(inputs);
        }
        let at = self.kinds.iter().position(|(key, _)| key.is(tag, inputs, device)).unwrap_or_else(|| {
            self.kinds.push((Key::new(tag, inputs, device), Kind::default()));
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[at].1;
        let on = |inputs: &[Tensor]| match device {
            Device::Cuda(number) => gpu::on_gpu(inputs, number),
            _ => Ok(inputs.to_vec()),
        };
        if kind.refused {
            return f(&on(inputs)?);
        }
        if kind.eager < EAGER {
            kind.eager += 1;
            let on = on(inputs)?;
            if device == Device::Cpu {
                return f(&on);
            }
            let (outputs, reason) = gpu::watched(self.line.clone(), || f(&on));
            let outputs = outputs?;
            if kind.eager == EAGER && reason.is_some() {
                kind.refused = true;
                self.why_not = reason;
            }
            return Ok(outputs);
        }
        if checks() {
            self.why_not = Some("every result is checked for NaN".into());
            return f(&on(inputs)?);
        }
        for record in &mut kind.records {
            if record.still_fits()? {
                return record.again(inputs);
            }
        }
        if kind.records.len() >= MOST {
            kind.refused = true;
            kind.records.clear();
            self.why_not = Some("every call was different".into());
            return f(&on(inputs)?);
        }
        let recorded = match device {
            Device::Cuda(number) => gpu::Record::of(crate::gpu::gpu(number)?, inputs, self.line.clone(), &mut f)?,
            _ => cpu::Record::of(inputs, self.line.clone(), &mut f)?,
        };
        let (outputs, not_now) = match recorded {
            Recorded::Done(record, outputs) => {
                kind.records.push(record);
                return Ok(outputs);
            }
            Recorded::Once(outputs, not_now) => (Some(outputs), not_now),
            Recorded::Not(why) => (None, NotNow { why, later: false }),
        };
        kind.tries += 1;
        if !not_now.later || kind.tries == TRIES {
            kind.refused = true;
            kind.records.clear();
            self.why_not = Some(not_now.why);
        }
        match outputs {
            Some(outputs) => Ok(outputs),
            None => f(&on(inputs)?),
        }
    }

    /// Why calls are not recorded, if one could not be.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// The number of kernels, copies and fills, or on the CPU of calls, of each record.
    pub fn nodes(&self) -> Vec<usize> {
        let count = |record: &Record| match record {
            Record::Gpu(record) => record.nodes(),
            Record::Cpu(record) => record.nodes(),
        };
        self.kinds.iter().flat_map(|(_, kind)| kind.records.iter().map(count)).collect()
    }

    /// The names of the calls that the CPU makes in each record.
    pub fn describe(&self) -> Vec<Vec<&'static str>> {
        let names = |record: &Record| match record {
            Record::Gpu(_) => Vec::new(),
            Record::Cpu(record) => record.describe(),
        };
        self.kinds.iter().flat_map(|(_, kind)| kind.records.iter().map(names)).collect()
    }

    /// Is there one record, and it is of the CPU?
    pub fn has_one_of_cpu(&self) -> bool {
        let mut records = self.kinds.iter().flat_map(|(_, kind)| &kind.records);
        matches!((records.next(), records.next()), (Some(Record::Cpu(_)), None))
    }

    /// Forgets what was recorded.
    pub fn reset(&mut self) {
        self.kinds.clear();
        self.why_not = None;
    }
}

/// Is every result looked at?
fn checks() -> bool {
    flags::check_nan_inf() || flags::anomaly_mode()
}

/// The device that a function of these tensors works on.
fn device_of(inputs: &[Tensor]) -> Device {
    let is_gpu = |d: &Device| matches!(d, Device::Cuda(_));
    let gpu = inputs.iter().map(Tensor::device).find(is_gpu).or(Some(crate::device::current()).filter(is_gpu));
    let meta = inputs.iter().map(Tensor::device).find(|d| *d == Device::Meta);
    gpu.or(meta).unwrap_or(Device::Cpu)
}
