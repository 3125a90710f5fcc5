//! Interpolation along one axis at a time. A sparse table says which inputs each output mixes and with what weights;
//! images and volumes apply one table per axis, and gradients apply the transposed tables.

use crate::vmath::Real;
use crate::widen::{RealElement, Room, narrowed, widened};
use crate::{Buffer, parallel};
use sampan_macros::by_dtype;

/// How a new coordinate takes its value from old ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// The input at the rounded-down place.
    Nearest,
    /// The two neighbours by distance.
    Linear,
    /// Four neighbours by Keys' cubic with a = −0.75.
    Cubic,
    /// Average over the inputs that the output covers.
    Area,
}

/// Where outputs lie among inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Corners {
    /// First and last meet first and last (`align_corners=True`).
    Aligned,
    /// Pixels are areas, sampled at their centres (`align_mode=0`).
    HalfPixel,
    /// `scale × index` (`align_mode=1`).
    Asymmetric,
}

/// A sparse matrix with a row per output: `dst[o] = Σ weight · src[index]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    n_in: usize,
    first: Vec<usize>,
    index: Vec<usize>,
    weight: Vec<f64>,
}

impl Table {
    /// The table from `n_in` to `n_out` elements. `scale` is the `scale_factor` the user gave, if any; else it is the
    /// ratio of the extents.
    pub fn new(method: Method, corners: Corners, n_in: usize, n_out: usize, scale: Option<f64>) -> Table {
        assert!(n_in > 0 || n_out == 0, "interpolate: no input to take {n_out} outputs from");
        let mut rows = Vec::with_capacity(n_out);
        let ratio = ratio(corners, n_in, n_out, scale);
        let last = n_in.saturating_sub(1);
        for o in 0..n_out {
            let place = match corners {
                Corners::HalfPixel => ratio * (o as f64 + 0.5) - 0.5,
                _ => ratio * o as f64,
            };
            rows.push(match method {
                // In single precision like everybody else, so that ties fall the same way.
                Method::Nearest => {
                    let shift = if corners == Corners::Aligned { 0.5 } else { 0.0 };
                    vec![(((ratio as f32 * o as f32 + shift) as usize).min(last), 1.0)]
                }
                Method::Linear => {
                    let place = place.clamp(0.0, last as f64);
                    let low = place.floor();
                    vec![(low as usize, 1.0 - (place - low)), ((low as usize + 1).min(last), place - low)]
                }
                Method::Cubic => {
                    let low = place.floor();
                    let clamp = |i: f64| i.clamp(0.0, last as f64) as usize;
                    let weights = cubic(place - low);
                    (0..4).map(|i| (clamp(low + i as f64 - 1.0), weights[i])).collect()
                }
                Method::Area => {
                    let (begin, end) = (o * n_in / n_out, ((o + 1) * n_in).div_ceil(n_out));
                    (begin..end).map(|i| (i, 1.0 / (end - begin) as f64)).collect()
                }
            });
        }
        Table::from_rows(n_in, rows)
    }

    /// The table that widens its filter when it shrinks, so that no input is skipped: a triangle for
    /// [`Method::Linear`], else a cubic with a = −0.5.
    pub fn antialiased(method: Method, corners: Corners, n_in: usize, n_out: usize, scale: Option<f64>) -> Table {
        assert!(n_in > 0 || n_out == 0, "interpolate: no input to take {n_out} outputs from");
        let ratio = ratio(corners, n_in, n_out, scale);
        let (reach, stretch) = (if method == Method::Linear { 1.0 } else { 2.0 }, ratio.max(1.0));
        let filter = |x: f64| match method {
            Method::Linear => (1.0 - x.abs()).max(0.0),
            _ if x.abs() < 1.0 => near(x.abs(), -0.5),
            _ if x.abs() < 2.0 => far(x.abs(), -0.5),
            _ => 0.0,
        };
        let rows = (0..n_out).map(|o| {
            let center = ratio * (o as f64 + 0.5);
            let begin = (center - reach * stretch + 0.5).max(0.0) as usize;
            let end = ((center + reach * stretch + 0.5) as usize).min(n_in);
            let weights: Vec<f64> = (begin..end).map(|i| filter((i as f64 - center + 0.5) / stretch)).collect();
            let sum: f64 = weights.iter().sum();
            (begin..end).zip(weights).map(|(i, w)| (i, w / sum)).collect()
        });
        Table::from_rows(n_in, rows.collect())
    }

    /// Joins equal neighbours and leaves zero weights out.
    fn from_rows(n_in: usize, rows: Vec<Vec<(usize, f64)>>) -> Table {
        let mut t = Table { n_in, first: vec![0], index: vec![], weight: vec![] };
        for row in rows {
            let start = t.index.len();
            for (i, w) in row {
                match t.index[start..].last() {
                    Some(&last) if last == i => *t.weight.last_mut().expect("as many weights as indices") += w,
                    _ if w == 0.0 => (),
                    _ => {
                        t.index.push(i);
                        t.weight.push(w);
                    }
                }
            }
            t.first.push(t.index.len());
        }
        t
    }

    /// Number of inputs.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Number of outputs.
    pub fn n_out(&self) -> usize {
        self.first.len() - 1
    }

    /// The table of the gradient, from outputs back to inputs.
    pub fn transposed(&self) -> Table {
        let mut rows = vec![vec![]; self.n_in];
        for o in 0..self.n_out() {
            for t in self.first[o]..self.first[o + 1] {
                rows[self.index[t]].push((o, self.weight[t]));
            }
        }
        Table::from_rows(self.n_out(), rows)
    }

    fn is_identity(&self) -> bool {
        self.n_in == self.n_out()
            && self.index.len() == self.n_in
            && self.index.iter().enumerate().all(|(i, &x)| i == x)
            && self.weight.iter().all(|&w| w == 1.0)
    }
}

/// How far apart outputs lie among inputs.
fn ratio(corners: Corners, n_in: usize, n_out: usize, scale: Option<f64>) -> f64 {
    match (corners, scale) {
        (Corners::Aligned, _) if n_out > 1 => (n_in as f64 - 1.0) / (n_out as f64 - 1.0),
        (Corners::Aligned, _) => 0.0,
        (_, Some(scale)) if scale > 0.0 => 1.0 / scale,
        _ => n_in as f64 / n_out as f64,
    }
}

/// Keys' cubic within a distance of 1.
fn near(x: f64, a: f64) -> f64 {
    ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
}

/// Keys' cubic between distances of 1 and 2.
fn far(x: f64, a: f64) -> f64 {
    ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
}

/// Keys' cubic at distances `1 + t`, `t`, `1 − t` and `2 − t`.
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    [far(1.0 + t, A), near(t, A), near(1.0 - t, A), far(2.0 - t, A)]
}

/// Applies a table along the middle axis of `[outer, n_in, inner]`, giving `[outer, n_out, inner]`.
fn apply_axis<T: Real>(table: &Table, outer: usize, inner: usize, src: &[T], dst: &mut [T]) {
    let (n_in, n_out) = (table.n_in, table.n_out());
    assert!(src.len() == outer * n_in * inner && dst.len() == outer * n_out * inner, "interpolate: sizes do not fit");
    if dst.is_empty() {
        return;
    }
    let weight: Vec<T> = table.weight.iter().map(|&w| T::from_f64(w)).collect();
    let taps = |o: usize| table.first[o]..table.first[o + 1];
    let cost = 2 * (table.index.len() / n_out + 1);
    if inner == 1 {
        let rows = (4096 / n_out).max(1);
        return parallel::for_each_chunk_mut(dst, rows * n_out, cost, |piece, dst| {
            for (i, dst) in dst.chunks_exact_mut(n_out).enumerate() {
                let src = &src[(piece * rows + i) * n_in..][..n_in];
                for (o, dst) in dst.iter_mut().enumerate() {
                    let mut sum = T::ZERO;
                    taps(o).for_each(|t| sum += weight[t] * src[table.index[t]]);
                    *dst = sum;
                }
            }
        });
    }
    let rows = (4096 / inner).max(1);
    parallel::for_each_chunk_mut(dst, rows * inner, cost, |piece, dst| {
        for (i, dst) in dst.chunks_exact_mut(inner).enumerate() {
            let (outer, o) = ((piece * rows + i) / n_out, (piece * rows + i) % n_out);
            dst.fill(T::ZERO);
            for t in taps(o) {
                let src = &src[(outer * n_in + table.index[t]) * inner..][..inner];
                dst.iter_mut().zip(src).for_each(|(d, s)| *d += weight[t] * *s);
            }
        }
    });
}

/// Applies one table to each axis of `[planes, spatial…, inner]`; the last axis first. `inner` is 1 for channels-first
/// data. Half types are widened once and rounded once.
#[by_dtype(T in float)]
pub fn resample<T: RealElement>(tables: &[Table], planes: usize, inner: usize, src: &[T], dst: &mut [T]) {
    let (n_in, n_out) = tables.iter().fold((1, 1), |(i, o), t| (i * t.n_in(), o * t.n_out()));
    assert!(
        src.len() == planes * n_in * inner && dst.len() == planes * n_out * inner,
        "interpolate: {} and {} elements for {planes} planes of {n_in} and {n_out}, {inner} inner",
        src.len(),
        dst.len()
    );
    let [rs, rd] = &mut <[Room; 2]>::default();
    let src = widened(src, rs);
    narrowed(dst, rd, |dst| apply(tables, planes, inner, src, dst));
}

/// [`resample`] in the computing type.
fn apply<T: Real>(tables: &[Table], planes: usize, mut inner: usize, src: &[T], dst: &mut [T]) {
    let mut left = tables.iter().filter(|t| !t.is_identity()).count();
    if left == 0 {
        return dst.copy_from_slice(src);
    }
    let mut between: Option<Buffer> = None;
    for (axis, table) in tables.iter().enumerate().rev() {
        if !table.is_identity() {
            left -= 1;
            let outer = planes * tables[..axis].iter().map(Table::n_in).product::<usize>();
            let from = between.as_ref().map_or(src, |b| b.as_slice());
            if left == 0 {
                return apply_axis(table, outer, inner, from, dst);
            }
            let mut next = Buffer::uninit(outer * table.n_out() * inner * size_of::<T>());
            apply_axis::<T>(table, outer, inner, from, next.as_mut_slice());
            between = Some(next);
        }
        inner *= table.n_out();
    }
}

/// The gradient of [`resample`] by `src`.
#[by_dtype(T in float)]
pub fn resample_backward<T: RealElement>(tables: &[Table], planes: usize, inner: usize, dy: &[T], dx: &mut [T]) {
    let transposed: Vec<Table> = tables.iter().map(Table::transposed).collect();
    resample_of(&transposed, planes, inner, dy, dx);
}

#[cfg(test)]
mod tests {
    use super::*;
    use Corners::*;
    use Method::*;

    fn line(method: Method, corners: Corners, n: usize, scale: Option<f64>) -> Vec<f64> {
        let mut y = vec![0.0; n];
        resample_of(&[Table::new(method, corners, 5, n, scale)], 1, 1, &[3.0, 1.0, 4.0, 1.0, 5.0], &mut y);
        y
    }

    fn close(a: &[f64], b: &[f64]) {
        assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
    }

    #[test]
    fn values_of_paddle() {
        close(&line(Nearest, Asymmetric, 3, None), &[3., 1., 1.]);
        close(&line(Nearest, Asymmetric, 8, None), &[3., 3., 1., 1., 4., 1., 1., 5.]);
        close(&line(Nearest, HalfPixel, 6, Some(1.3)), &[3., 3., 1., 4., 1., 1.]);
        close(&line(Linear, HalfPixel, 8, None), &[3., 2.125, 1.1875, 3.0625, 3.0625, 1.1875, 3.25, 5.]);
        close(&line(Linear, HalfPixel, 6, Some(1.3)), &[3., 1.692308, 2.269231, 3.423077, 1.115384, 3.923077]);
        close(&line(Linear, Asymmetric, 8, None), &[3., 1.75, 1.75, 3.625, 2.5, 1.5, 4., 5.]);
        close(&line(Linear, Asymmetric, 1, None), &[3.]);
        close(&line(Linear, Aligned, 3, None), &[3., 4., 5.]);
        close(&line(Linear, Aligned, 1, None), &[3.]);
        close(
            &line(Cubic, HalfPixel, 8, None),
            &[3.185669, 1.898132, 1.07489, 3.354553, 3.253845, 0.992493, 3.038513, 5.371338],
        );
        close(&line(Cubic, HalfPixel, 6, Some(1.3)), &[3.13544, 1.324519, 2.26219, 3.687429, 0.986302, 3.894701]);
        close(&line(Cubic, Aligned, 6, Some(1.3)), &[3., 1.064, 3.016, 2.872, 1.416, 5.]);
        close(&line(Area, HalfPixel, 3, None), &[2., 2., 3.]);
        close(&line(Area, HalfPixel, 8, None), &[3., 2., 1., 2.5, 2.5, 1., 3., 5.]);
    }

    #[test]
    fn gradients_are_transposes() {
        for method in [Nearest, Linear, Cubic, Area] {
            let tables = [(3, 5), (4, 4), (6, 2)].map(|(i, o)| Table::new(method, HalfPixel, i, o, None));
            for inner in [1, 3] {
                let x: Vec<f64> = (0..2 * 72 * inner).map(|v| (v * 37 % 11) as f64).collect();
                let dy: Vec<f64> = (0..2 * 40 * inner).map(|v| (v * 53 % 13) as f64).collect();
                let (mut y, mut dx) = (vec![0.0; dy.len()], vec![0.0; x.len()]);
                resample_of(&tables, 2, inner, &x, &mut y);
                resample_backward_of(&tables, 2, inner, &dy, &mut dx);
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                assert!((dot(&y, &dy) - dot(&x, &dx)).abs() < 1e-8);
            }
        }
    }
}
