//! Where tensors live.

use std::cell::Cell;
use std::fmt;

/// A place that holds and computes tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// The processor.
    Cpu,
    /// Nowhere: shapes and dtypes are inferred, nothing is computed.
    Meta,
}

impl Device {
    /// The name Paddle 2 prints it by.
    pub fn place_name(self) -> &'static str {
        match self {
            Device::Cpu => "CPUPlace",
            Device::Meta => "MetaPlace",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Meta => "meta",
        })
    }
}

thread_local! {
    static AMBIENT: Cell<Device> = const { Cell::new(Device::Cpu) };
}

/// Where a tensor that is made from no other is put now: the device of the call that runs, or of the gradient that flows, or
/// what [`with`] says.
pub fn current() -> Device {
    AMBIENT.get()
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
pub(crate) struct Stay(Device);

impl Stay {
    pub(crate) fn on(device: Device) -> Stay {
        Stay(AMBIENT.replace(device))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        AMBIENT.set(self.0);
    }
}
