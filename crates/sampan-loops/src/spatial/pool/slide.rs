//! Maxima of sliding windows, all windows of a row at once: one column of every window after the other, which becomes
//! vector code where a window by itself is a chain of comparisons.

use super::{PoolShape, Windows, beats};
use crate::Ordered;
use crate::simd::simd_fn;

/// The columns of a row of input sorted by what they leave when divided by the step: the elements that windows side by
/// side have at one place lie side by side then.
pub(super) struct Phases<T> {
    elements: Vec<T>,
    len: usize,
}

impl<T: Ordered> Phases<T> {
    /// For rows of these windows, or none if they do not slide.
    pub(super) fn new(s: &PoolShape) -> Option<Phases<T>> {
        let Windows::Sliding { stride: [.., stride], .. } = s.windows else { return None };
        let stride = stride.min(s.input[2]);
        let len = s.input[2].div_ceil(stride.max(1));
        Some(Phases { elements: vec![T::default(); stride * len], len })
    }
}

/// Sorts a row into phases.
#[inline(always)]
fn sort<T: Ordered>(row: &[T], phases: &mut Phases<T>) {
    let len = phases.len;
    match phases.elements.len().checked_div(len).unwrap_or(0) {
        0 => {}
        1 => phases.elements.copy_from_slice(row),
        2 => {
            let (even, odd) = phases.elements.split_at_mut(len);
            let (pairs, rest) = row.as_chunks::<2>();
            for ((pair, even), odd) in pairs.iter().zip(&mut *even).zip(odd) {
                (*even, *odd) = (pair[0], pair[1]);
            }
            rest.iter().for_each(|&v| even[len - 1] = v);
        }
        stride => {
            for (phase, out) in phases.elements.chunks_exact_mut(len).enumerate() {
                out.iter_mut().zip(row[phase..].iter().step_by(stride)).for_each(|(out, &v)| *out = v);
            }
        }
    }
}

simd_fn! {
    /// Takes the largest element of a row of input for each window where it beats `best`; `index` then says where it
    /// lies, the row beginning at `start`.
    pub(super) fn slide[T: Ordered](
        s: &'a PoolShape,
        row: &'a [T],
        start: usize,
        phases: &'a mut Phases<T>,
        best: &'a mut [T],
        index: Option<&'a mut [i64]>,
    ) {
        let Windows::Sliding { kernel: [.., kernel], stride: [.., stride], pad: [.., pad], .. } = s.windows else { return };
        sort(row, phases);
        let mut index = index;
        // A window may reach far beyond the input.
        for k in 0..kernel.min(pad + row.len()) {
            // The windows whose column `k` lies inside the input, and where the first of them has it.
            let first = pad.saturating_sub(k).div_ceil(stride);
            let end = (row.len() + pad - k).div_ceil(stride).min(best.len());
            if first >= end {
                continue;
            }
            let column = first * stride + k - pad;
            let values = &phases.elements[column % stride * phases.len + column / stride..][..end - first];
            let best = &mut best[first..end];
            let Some(index) = &mut index else {
                best.iter_mut().zip(values).for_each(|(best, &v)| *best = if beats(v, *best) { v } else { *best });
                continue;
            };
            for (i, ((best, index), &v)) in best.iter_mut().zip(&mut index[first..end]).zip(values).enumerate() {
                let wins = beats(v, *best);
                *index = if wins { (start + column + stride * i) as i64 } else { *index };
                *best = if wins { v } else { *best };
            }
        }
    }
}
