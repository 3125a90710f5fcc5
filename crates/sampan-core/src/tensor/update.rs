//! Kernel-level updates of many tensors at once, outside the recorded graph: what optimizers do.

use super::Tensor;
use crate::storage::Storage;
use crate::{Error, Result};
use sampan_kernels::Buffer;
use smallvec::SmallVec;

/// The bytes of a contiguous tensor inside its storage.
fn span(t: &Tensor) -> std::ops::Range<usize> {
    let size = t.dtype().size();
    let start = if t.numel() == 0 { 0 } else { t.layout().offset * size };
    start..start + t.numel() * size
}

impl Tensor {
    /// Calls `f` with the bytes of `targets` to write and of `sources` to read, and counts the writes; autograd does not
    /// see them. All must be contiguous, and no target may share memory with another tensor of the call.
    pub fn update<R>(
        targets: &[&Tensor],
        sources: &[&Tensor],
        f: impl FnOnce(&mut [&mut [u8]], &[&[u8]]) -> R,
    ) -> Result<R> {
        let fail = |why: &str, t: &Tensor| Err(Error::invalid(why).received(t.describe()).in_op("update"));
        for t in targets.iter().chain(sources) {
            if !t.is_contiguous() || !t.device().has_values() {
                return fail("needs contiguous tensors with values", t);
            }
        }
        if targets.is_empty() {
            // What is written nowhere goes to the caller.
            sources.iter().for_each(|t| crate::dispatch::reading(t, "update", || ()));
        }
        // Sorted by memory, a target that shares some stands beside whom it shares it with.
        let mut all: SmallVec<[(usize, bool, &Tensor); 16]> =
            targets.iter().map(|t| (t.storage().address(), true, *t)).collect();
        all.extend(sources.iter().map(|t| (t.storage().address(), false, *t)));
        all.sort_unstable_by_key(|(address, _, _)| *address);
        for pair in all.windows(2) {
            let [(a, a_written, t), (b, b_written, _)] = pair else { continue };
            if a == b && (*a_written || *b_written) {
                return fail("a tensor to write shares memory with another tensor of the call", t);
            }
        }
        let (mut writes, reads) =
            Storage::lock_all(targets.iter().map(|t| t.storage()), sources.iter().map(|t| t.storage()));
        let mut target_bytes: SmallVec<[&mut [u8]; 8]> =
            writes.iter_mut().zip(targets).map(|(w, t)| &mut Buffer::bytes_mut(w)[span(t)]).collect();
        let source_bytes: SmallVec<[&[u8]; 8]> = reads.iter().zip(sources).map(|(r, t)| &r.bytes()[span(t)]).collect();
        let result = f(&mut target_bytes, &source_bytes);
        drop((target_bytes, source_bytes));
        drop((writes, reads));
        targets.iter().for_each(|t| {
            t.storage().bump();
            crate::dispatch::wrote(t, t, crate::dispatch::Write::Update);
        });
        Ok(result)
    }
}
