//! 2×2 windows side by side, which halve an image: the pooling that nearly every small network has. A row of output meets
//! two rows of input, and the lanes of a piece of it become vectors.

use super::{PoolShape, beats};
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;

/// Pairs of neighbours.
#[inline(always)]
fn pairs<T>(row: &[T]) -> &[[T; 2]] {
    row.as_chunks().0
}

/// Calls `f` for each row of output of a plane with where it begins, and where the upper of its two rows of input does.
#[inline(always)]
fn each_row(s: &PoolShape, mut f: impl FnMut(usize, usize)) {
    let ([_, ih, iw], [_, oh, ow]) = (s.input, s.output);
    for row in 0..s.output[0] * oh {
        f(row * ow, (row / oh * ih + 2 * (row % oh)) * iw);
    }
}

#[inline(always)]
fn larger<T: RealElement>(a: T, b: T) -> T {
    if beats(b, a) { b } else { a }
}

/// The maxima of a row of windows, `N` of them at a time, which become one vector. The last piece may repeat what the one
/// before did: rows are short, and the rest would be much of them.
#[inline(always)]
fn max_row<T: RealElement, const N: usize>(top: &[[T; 2]], bottom: &[[T; 2]], y: &mut [T]) {
    let mut at = 0;
    while at < y.len() {
        at = at.min(y.len() - N);
        let pieces = (top[at..].first_chunk::<N>(), bottom[at..].first_chunk::<N>(), y[at..].first_chunk_mut::<N>());
        let (Some(top), Some(bottom), Some(y)) = pieces else { return };
        for i in 0..N {
            y[i] = larger(larger(top[i][0], top[i][1]), larger(bottom[i][0], bottom[i][1]));
        }
        at += N;
    }
}

simd_fn! {
    /// The maxima.
    pub(super) fn halve_max[T: RealElement](s: &'a PoolShape, x: &'a [T], y: &'a mut [T]) {
        let (iw, ow) = (s.input[2], s.output[2]);
        each_row(s, |at, from| {
            let (top, bottom) = (pairs(&x[from..from + iw]), pairs(&x[from + iw..from + 2 * iw]));
            let y = &mut y[at..at + ow];
            match ow {
                16.. => max_row::<_, 16>(top, bottom, y),
                8.. => max_row::<_, 8>(top, bottom, y),
                4.. => max_row::<_, 4>(top, bottom, y),
                _ => max_row::<_, 1>(top, bottom, y),
            }
        });
    }
}

simd_fn! {
    /// Where the maxima lie. Written with selects only, which become vector code.
    pub(super) fn halve_index[T: RealElement](s: &'a PoolShape, x: &'a [T], index: &'a mut [i64]) {
        let (iw, ow) = (s.input[2], s.output[2]);
        each_row(s, |at, from| {
            let (top, bottom) = (pairs(&x[from..from + iw]), pairs(&x[from + iw..from + 2 * iw]));
            for (w, (at, (a, b))) in index[at..at + ow].iter_mut().zip(top.iter().zip(bottom)).enumerate() {
                let (i, v) = if beats(a[1], a[0]) { (1, a[1]) } else { (0, a[0]) };
                let (j, u) = if beats(b[1], b[0]) { (1, b[1]) } else { (0, b[0]) };
                *at = (from + 2 * w + if beats(u, v) { j + iw } else { i }) as i64;
            }
        });
    }
}

/// Gradients of inputs at once: as many as the widest vector has.
const LANES: usize = 16;

/// Which of these inputs of two rows are the maxima of their windows gets the gradient, the others zero. Lanes are
/// inputs here, each beside its neighbour in the window, so that nothing has to be interleaved at the end. Loops are short
/// and one behind the other, and conditions are joined without jumps: so written they become vector code.
#[inline(always)]
fn max_backward_piece<T: RealElement, const LANES: usize>(
    top: &[T; LANES],
    bottom: &[T; LANES],
    dy: &[T],
) -> ([T; LANES], [T; LANES]) {
    let dy = &dy[..LANES / 2];
    let [mut top_other, mut bottom_other, mut g, mut upper, mut lower] = [[T::default(); LANES]; 5];
    for i in 0..LANES {
        top_other[i] = top[i ^ 1];
    }
    for i in 0..LANES {
        bottom_other[i] = bottom[i ^ 1];
    }
    for i in 0..LANES {
        g[i] = dy[i / 2];
    }
    for i in 0..LANES {
        let (a, a_other, b, b_other) = (top[i], top_other[i], bottom[i], bottom_other[i]);
        let below = beats(larger(b, b_other), larger(a, a_other));
        // Of equals the left one counts.
        let odd = i % 2 == 1;
        let wins = (beats(a, a_other) & odd) | !(beats(a_other, a) | odd);
        let wins_below = (beats(b, b_other) & odd) | !(beats(b_other, b) | odd);
        upper[i] = if wins & !below { g[i] } else { T::default() };
        lower[i] = if wins_below & below { g[i] } else { T::default() };
    }
    (upper, lower)
}

simd_fn! {
    /// Brings each gradient of some planes of one image each to where the maximum lies, and zeros to the other places.
    pub(super) fn halve_max_backward[T: RealElement](s: &'a PoolShape, x: &'a [T], dy: &'a [T], dx: &'a mut [T]) {
        let ([_, ih, iw], [_, oh, ow]) = (s.input, s.output);
        let zero = T::default();
        let used = 2 * ow;
        let some = |v: &'a [T], at: usize| -> &'a [T; LANES] { v[at..].first_chunk().expect("checked") };
        for row in 0..dy.len() / ow {
            let (plane, h) = (row / oh, row % oh);
            let (top, dy) = ((plane * ih + 2 * h) * iw, &dy[row * ow..]);
            let bottom = top + iw;
            // A row shorter than a vector takes along what follows: the gradients there are still to be written.
            let spills = used < LANES && bottom + LANES <= dx.len() && LANES / 2 <= dy.len();
            let width = if spills { LANES } else { used };
            let mut at = 0;
            while at + LANES <= width {
                let (upper, lower) = max_backward_piece(some(x, top + at), some(x, bottom + at), &dy[at / 2..]);
                dx[top + at..][..LANES].copy_from_slice(&upper);
                dx[bottom + at..][..LANES].copy_from_slice(&lower);
                // The last piece may repeat what the one before did: rows are short, and the rest would be much of them.
                at = if at + LANES < width { (at + LANES).min(width - LANES) } else { width };
            }
            while at < used {
                let [a, b, c, d] = [x[top + at], x[top + at + 1], x[bottom + at], x[bottom + at + 1]];
                let (upper, lower) = max_backward_piece(&[a, b], &[c, d], &dy[at / 2..]);
                dx[top + at..][..2].copy_from_slice(&upper);
                dx[bottom + at..][..2].copy_from_slice(&lower);
                at += 2;
            }
            dx[top + used..bottom].fill(zero);
            dx[bottom + used..bottom + iw].fill(zero);
            if h + 1 == oh {
                dx[bottom + iw..(plane + 1) * ih * iw].fill(zero);
            }
        }
    }
}

simd_fn! {
    /// The averages.
    pub(super) fn halve_avg[T: RealElement](s: &'a PoolShape, over: T::Wide, x: &'a [T], y: &'a mut [T]) {
        let (iw, ow, scale) = (s.input[2], s.output[2], T::Wide::ONE / over);
        each_row(s, |at, from| {
            let (top, bottom) = (pairs(&x[from..from + iw]), pairs(&x[from + iw..from + 2 * iw]));
            for (y, (a, b)) in y[at..at + ow].iter_mut().zip(top.iter().zip(bottom)) {
                *y = T::narrow(((a[0].wide() + a[1].wide()) + (b[0].wide() + b[1].wide())) * scale);
            }
        });
    }
}

simd_fn! {
    /// The gradient of the averages.
    pub(super) fn halve_avg_backward[T: RealElement](s: &'a PoolShape, over: T::Wide, dy: &'a [T], dx: &'a mut [T]) {
        let ([_, ih, iw], [_, oh, ow]) = (s.input, s.output);
        for (row, dx) in dx.chunks_exact_mut(iw).enumerate() {
            let (d, h) = (row / ih, row % ih / 2);
            if h >= oh {
                dx.fill(T::default());
                continue;
            }
            let dy = &dy[(d * oh + h) * ow..][..ow];
            for (dx, v) in dx.chunks_exact_mut(2).zip(dy) {
                dx.fill(T::narrow(v.wide() / over));
            }
            dx[2 * ow..].fill(T::default());
        }
    }
}
