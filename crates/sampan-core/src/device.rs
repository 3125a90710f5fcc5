//! Where tensors live.

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
