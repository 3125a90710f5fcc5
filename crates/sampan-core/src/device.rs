//! Where tensors live.

use crate::{Error, Result};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicI16, Ordering};

/// A place that holds and computes tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// The processor.
    Cpu,
    /// A GPU, by its number.
    Cuda(u8),
    /// Nowhere: shapes and dtypes are inferred, nothing is computed.
    Meta,
}

impl Device {
    /// Does it hold values, that can be read?
    pub fn has_values(self) -> bool {
        self != Device::Meta
    }

    /// The GPU that a name such as `"gpu"` or `"gpu:1"` means, the processor for `"cpu"`; an error says what is wrong with the
    /// name, or why there is no such GPU.
    ///
    /// ```
    /// # use sampan_core::Device;
    /// assert_eq!(Device::named("cpu").unwrap(), Device::Cpu);
    /// assert!(Device::named("abacus").is_err());
    /// ```
    pub fn named(name: &str) -> Result<Device> {
        let number = match name.split_once(':') {
            _ if name == "cpu" => return Ok(Device::Cpu),
            None if matches!(name, "gpu" | "cuda") => Some(0),
            Some(("gpu" | "cuda", number)) => number.parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            let why = format!("a device is \"cpu\", \"gpu\" or \"gpu:0\", \"gpu:1\", …, got \"{name}\"");
            return Err(Error::invalid(why));
        };
        sampan_cuda::device(number as usize)?;
        Ok(Device::Cuda(number))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "gpu:{number}"),
            Device::Meta => f.write_str("meta"),
        }
    }
}

thread_local! {
    static AMBIENT: Cell<Option<Device>> = const { Cell::new(None) };
}

/// The number of the GPU that new tensors are put on unless something else is said; none if negative.
static DEFAULT: AtomicI16 = AtomicI16::new(-1);

/// Where new tensors are put unless something else is said.
pub fn default() -> Device {
    u8::try_from(DEFAULT.load(Ordering::Relaxed)).map_or(Device::Cpu, Device::Cuda)
}

/// Says where new tensors are put from now on.
pub fn set_default(device: Device) {
    let number = if let Device::Cuda(number) = device { number as i16 } else { -1 };
    DEFAULT.store(number, Ordering::Relaxed);
}

/// Where a tensor that is made from no other is put now: the device of the call that runs, or of the gradient that flows, or
/// what [`with`] says.
pub fn current() -> Device {
    AMBIENT.get().unwrap_or_else(default)
}

/// Runs `f` with new tensors on a device.
///
/// ```
/// # use sampan_core::{DType, Device, Tensor, device};
/// let x = device::with(Device::Meta, || Tensor::zeros([2], DType::Float32));
/// assert_eq!((x.device(), device::current()), (Device::Meta, Device::Cpu));
/// ```
pub fn with<R>(device: Device, f: impl FnOnce() -> R) -> R {
    let _stay = Stay::on(device);
    f()
}

/// Keeps new tensors of this thread on a device until it is dropped.
pub(crate) struct Stay(Option<Device>);

impl Stay {
    pub(crate) fn on(device: Device) -> Stay {
        Stay(AMBIENT.replace(Some(device)))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        AMBIENT.set(self.0);
    }
}
