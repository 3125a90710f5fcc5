//! Boxes of tensors, and what two of them have in common.

use super::{Piece, Wanted};
use crate::fault::{Fault, Parse};

/// The elements of a box; of one that is too large, more than any file has.
pub(super) fn numel(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, &d| n.saturating_mul(d))
}

/// The elements of a box that somebody else described.
pub(super) fn count(shape: &[usize]) -> Parse<usize> {
    let found = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|n| *n <= isize::MAX as usize / 16);
    found.ok_or_else(|| Fault::damaged(format!("a box of shape {shape:?} is too large for this machine")))
}

/// Where two spans overlap.
fn common(a: (usize, usize), b: (usize, usize)) -> Option<(usize, usize)> {
    let (start, end) = (a.0.max(b.0), (a.0 + a.1).min(b.0 + b.1));
    (start < end).then_some((start, end))
}

fn spans<'a>(piece: &'a Piece, want: &'a Wanted) -> impl Iterator<Item = Option<(usize, usize)>> + 'a {
    let theirs = piece.offset.iter().copied().zip(piece.shape.iter().copied());
    let ours = want.offset.iter().copied().zip(want.shape.iter().copied());
    theirs.zip(ours).map(|(a, b)| common(a, b))
}

/// Has a piece elements of what is wanted?
pub(super) fn touch(piece: &Piece, want: &Wanted) -> bool {
    spans(piece, want).all(|span| span.is_some())
}

/// Which elements of a box have come; a bit for each. Without bits all count as new.
pub(super) struct Covered(Vec<u8>);

impl Covered {
    pub fn new(bits: Vec<u8>) -> Covered {
        Covered(bits)
    }

    /// Some elements in a row have come: how many of them are new?
    pub fn add(&mut self, start: usize, len: usize) -> usize {
        if self.0.is_empty() {
            return len;
        }
        let (mut at, end, mut new) = (start, start + len, 0);
        while at < end {
            let (bit, byte) = (at % 8, &mut self.0[at / 8]);
            let here = (end - at).min(8 - bit);
            let mask = (((1u16 << here) - 1) << bit) as u8;
            new += (mask & !*byte).count_ones() as usize;
            *byte |= mask;
            at += here;
        }
        new
    }
}

/// Copies what a piece and a wanted box have in common, row by row, and adds up what `came` says of each row.
pub(super) fn copy_common(
    piece: &Piece,
    from: &[u8],
    want: &Wanted,
    to: &mut [u8],
    size: usize,
    mut came: impl FnMut(usize, usize) -> usize,
) -> usize {
    let Some(common) = spans(piece, want).collect::<Option<Vec<_>>>() else { return 0 };
    let (first, last) = piece.range.unwrap_or((0, numel(&piece.shape)));
    // A number without axes is a row of one.
    let (outer, row) = match common.split_last() {
        Some((&row, outer)) => (outer, row),
        None => (&[][..], (0, 1)),
    };
    let flat = |at: &[usize], offset: &[usize], shape: &[usize]| {
        let place = |i: usize| at.get(i).copied().unwrap_or(row.0) - offset[i];
        (0..shape.len()).fold(0, |n, i| n * shape[i] + place(i))
    };
    let mut at: Vec<usize> = outer.iter().map(|span| span.0).collect();
    let mut copied = 0;
    loop {
        let start = flat(&at, &piece.offset, &piece.shape);
        let (begin, end) = (start.max(first), (start + row.1 - row.0).min(last));
        if begin < end {
            let target = flat(&at, &want.offset, &want.shape) + (begin - start);
            let (len, source) = ((end - begin) * size, (begin - first) * size);
            to[target * size..][..len].copy_from_slice(&from[source..][..len]);
            copied += came(target, end - begin);
        }
        // The next row, as a counter turns.
        let Some(axis) = (0..at.len()).rev().find(|&i| at[i] + 1 < outer[i].1) else { return copied };
        at[axis] += 1;
        at[axis + 1..].iter_mut().zip(&outer[axis + 1..]).for_each(|(place, span)| *place = span.0);
    }
}
