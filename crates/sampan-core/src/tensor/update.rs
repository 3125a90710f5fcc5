//! Kernel-level updates of several tensors at once, outside the recorded graph: what optimizers do.

use super::Tensor;
use crate::{Device, Element, Error, Result};

impl Tensor {
    /// Calls `f` with the memory of `targets` to write and of `sources` to read, and counts the writes. All must be
    /// contiguous CPU tensors of type `T`, and no target may share memory with another tensor of the call.
    pub fn update<T: Element>(
        targets: &[&Tensor],
        sources: &[&Tensor],
        f: impl FnOnce(&mut [&mut [T]], &[&[T]]),
    ) -> Result<()> {
        for t in targets.iter().chain(sources) {
            if t.dtype() != T::DTYPE || !t.is_contiguous() || t.device() != Device::Cpu {
                return Err(Error::invalid(format!("needs contiguous {} tensors on the CPU", T::DTYPE))
                    .received(t.describe())
                    .in_op("update"));
            }
        }
        for (i, t) in targets.iter().enumerate() {
            if targets[i + 1..].iter().chain(sources).any(|o| o.shares_memory(t)) {
                return Err(Error::invalid("a target shares memory with another tensor of the call").in_op("update"));
            }
        }
        let mut writes: Vec<_> = targets.iter().map(|t| t.data_mut::<T>()).collect();
        let reads: Vec<_> = sources.iter().map(|t| t.data::<T>()).collect();
        let mut target_slices: Vec<&mut [T]> = writes.iter_mut().map(|w| w.slice()).collect();
        let source_slices: Vec<&[T]> = reads.iter().map(|r| r.slice()).collect();
        f(&mut target_slices, &source_slices);
        targets.iter().for_each(|t| {
            t.storage().bump(false);
        });
        Ok(())
    }
}
