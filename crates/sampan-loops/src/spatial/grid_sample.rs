//! Sampling images and volumes at places that a grid gives, with gradients by the image and by the grid.

use crate::parallel;
use crate::vmath::Real;
use crate::widen::RealElement;
use sampan_macros::by_dtype;

/// Sizes and rules of a sampling. `x` is `[batch, channels, input…]`, the grid `[batch, output…, axes]` with the
/// fastest axis first (x, y, z) in −1..1, the result `[batch, channels, output…]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridShape {
    /// Number of images.
    pub batch: usize,
    /// Channels of each.
    pub channels: usize,
    /// 2 or 3 spatial axes.
    pub axes: usize,
    /// Extents of the input, filled up with leading ones.
    pub input: [usize; 3],
    /// Output places of one image.
    pub points: usize,
    /// How values between pixels arise.
    pub mode: GridMode,
    /// What lies outside the image.
    pub outside: Outside,
    /// Do −1 and 1 mean the centres of the corner pixels, or their outer edges?
    pub align_corners: bool,
}

/// How values between pixels arise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GridMode {
    /// By distance to the neighbours on each axis.
    Linear,
    /// From the nearest pixel; halves go to the even one.
    Nearest,
}

/// What lies outside the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The nearest pixel of the border.
    Border,
    /// The image mirrored at its border.
    Reflection,
}

/// A coordinate on one axis: the pixel below it, how far it lies above that, and its derivative by the grid value.
#[derive(Clone, Copy)]
struct Place<T> {
    low: isize,
    above: T,
    slope: T,
}

impl GridShape {
    fn plane(&self) -> usize {
        self.input.iter().product()
    }

    /// Axis `a` of the grid (0 = x) along the input.
    fn place<T: Real>(&self, a: usize, g: T) -> Place<T> {
        let n = self.input[2 - a];
        let size = T::from_f64(n as f64);
        let (last, half) = (T::from_f64(n as f64 - 1.0), T::from_f64(0.5));
        let (mut v, mut slope) = if self.align_corners {
            ((g + T::ONE) * half * last, last * half)
        } else {
            (((g + T::ONE) * size - T::ONE) * half, size * half)
        };
        if self.outside == Outside::Reflection {
            // Edges of the mirrors: pixel centres or pixel borders.
            let shift = if self.align_corners { T::ZERO } else { half };
            let span = (last + shift + shift) * T::from_f64(2.0);
            if span > T::ZERO {
                let from = v + shift;
                if from < T::ZERO {
                    slope = -slope;
                }
                let extra = from.abs() - (from.abs() / span).floor() * span;
                let back = span - extra;
                if extra > back {
                    slope = -slope;
                }
                v = if extra > back { back } else { extra } - shift;
            } else {
                (v, slope) = (T::ZERO, T::ZERO);
            }
        }
        if self.outside != Outside::Zeros {
            if v < T::ZERO {
                (v, slope) = (T::ZERO, T::ZERO);
            } else if v > last {
                (v, slope) = (last, T::ZERO);
            }
        }
        // Far away is as good as just outside, and keeps integers small.
        let (far, near) = (last + T::from_f64(2.0), T::from_f64(-3.0));
        if v > far {
            v = far;
        } else if v < near {
            v = near;
        }
        match self.mode {
            GridMode::Linear => {
                let low = v.floor();
                Place { low: low.to_i64() as isize, above: v - low, slope }
            }
            GridMode::Nearest => Place { low: v.round().to_i64() as isize, above: T::ZERO, slope: T::ZERO },
        }
    }

    fn places<T: RealElement>(&self, grid: &[T], point: usize) -> [Place<T::Wide>; 3] {
        let none = Place { low: 0, above: T::Wide::ZERO, slope: T::Wide::ZERO };
        let mut out = [none; 3];
        for a in 0..self.axes {
            out[a] = self.place(a, grid[point * self.axes + a].wide());
        }
        out
    }

    /// Calls `f(corner, index, weights per axis)` for the corners around a place that lie inside the input.
    #[inline(always)]
    fn corners<A: Real>(&self, places: &[Place<A>; 3], mut f: impl FnMut(usize, usize, [A; 3])) {
        let count = if self.mode == GridMode::Nearest { 1 } else { 1 << self.axes };
        for corner in 0..count {
            let mut index = 0;
            let mut weights = [A::ONE; 3];
            let mut inside = true;
            for a in (0..3).rev() {
                let up = corner >> a & 1;
                let i = places[a].low + up as isize;
                inside &= i >= 0 && i < self.input[2 - a] as isize;
                index = index * self.input[2 - a] + i.max(0) as usize;
                weights[a] = if up == 1 { places[a].above } else { A::ONE - places[a].above };
            }
            if inside {
                f(corner, index, weights);
            }
        }
    }

    fn check(&self, x: usize, grid: usize, y: usize) {
        assert!((2..=3).contains(&self.axes) && (self.axes == 3 || self.input[0] == 1), "grid_sample: {self:?}");
        assert!(
            x == self.batch * self.channels * self.plane()
                && grid == self.batch * self.points * self.axes
                && y == self.batch * self.channels * self.points,
            "grid_sample: {x}, {grid} and {y} elements for {self:?}"
        );
    }

    /// The corners of every point of one image: `(point, index, weight)` grouped by point.
    fn table<T: RealElement>(&self, grid: &[T]) -> Vec<Vec<(usize, T::Wide)>> {
        parallel::map(self.points, 40, |p| {
            let mut row = Vec::with_capacity(1 << self.axes);
            self.corners(&self.places(grid, p), |_, i, w| row.push((i, w[0] * w[1] * w[2])));
            row
        })
    }
}

/// Samples `x` where `grid` says.
#[by_dtype(T in float)]
pub fn grid_sample<T: RealElement>(s: &GridShape, x: &[T], grid: &[T], y: &mut [T]) {
    s.check(x.len(), grid.len(), y.len());
    if y.is_empty() {
        return;
    }
    for (image, y) in y.chunks_exact_mut(s.channels * s.points).enumerate() {
        let table = s.table(&grid[image * s.points * s.axes..][..s.points * s.axes]);
        parallel::for_each_chunk_mut(y, s.points, 8, |c, y| {
            let x = &x[(image * s.channels + c) * s.plane()..][..s.plane()];
            for (y, row) in y.iter_mut().zip(&table) {
                let mut sum = T::Wide::ZERO;
                row.iter().for_each(|&(i, w)| sum += w * x[i].wide());
                *y = T::narrow(sum);
            }
        });
    }
}

/// The gradient of [`grid_sample`] by `x`.
#[by_dtype(T in float)]
pub fn grid_sample_backward_x<T: RealElement>(s: &GridShape, grid: &[T], dy: &[T], dx: &mut [T]) {
    s.check(dx.len(), grid.len(), dy.len());
    if dx.is_empty() {
        return;
    }
    for (image, dx) in dx.chunks_exact_mut(s.channels * s.plane()).enumerate() {
        let table = s.table(&grid[image * s.points * s.axes..][..s.points * s.axes]);
        parallel::for_each_chunk_mut(dx, s.plane(), 8, |c, dx| {
            let dy = &dy[(image * s.channels + c) * s.points..][..s.points];
            let mut wide = vec![T::Wide::ZERO; dx.len()];
            for (dy, row) in dy.iter().zip(&table) {
                row.iter().for_each(|&(i, w)| wide[i] += w * dy.wide());
            }
            dx.iter_mut().zip(&wide).for_each(|(o, v)| *o = T::narrow(*v));
        });
    }
}

/// The gradient of [`grid_sample`] by the grid; zero for the nearest pixel.
#[by_dtype(T in float)]
pub fn grid_sample_backward_grid<T: RealElement>(s: &GridShape, x: &[T], grid: &[T], dy: &[T], dgrid: &mut [T]) {
    s.check(x.len(), grid.len(), dy.len());
    assert_eq!(grid.len(), dgrid.len(), "grid_sample: the gradient has the size of the grid");
    parallel::for_each_chunk_mut(dgrid, 256 * s.axes, 8 * s.channels, |piece, dgrid| {
        for (i, out) in dgrid.chunks_exact_mut(s.axes).enumerate() {
            let at = piece * 256 + i;
            let (image, point) = (at / s.points, at % s.points);
            let places = s.places(grid, at);
            let mut sum = [T::Wide::ZERO; 3];
            if s.mode == GridMode::Linear {
                s.corners(&places, |corner, index, w| {
                    let mut along = T::Wide::ZERO;
                    for c in 0..s.channels {
                        let plane = image * s.channels + c;
                        along += dy[plane * s.points + point].wide() * x[plane * s.plane() + index].wide();
                    }
                    for a in 0..s.axes {
                        let others = w[(a + 1) % 3] * w[(a + 2) % 3];
                        let sign = if corner >> a & 1 == 1 { T::Wide::ONE } else { -T::Wide::ONE };
                        sum[a] += sign * others * along;
                    }
                });
            }
            for a in 0..s.axes {
                out[a] = T::narrow(sum[a] * places[a].slope);
            }
        }
    });
}

/// The corners around each place: their flat indices `[batch, corners, points]` (0 outside), whether they lie inside (1 or
/// 0), and for each value of the grid how far it lies above its lower pixel and how fast that grows. What a composite of
/// gathers and products needs to sample with gradients of any order.
#[by_dtype(T in float)]
pub fn grid_corners<T: RealElement>(
    s: &GridShape,
    grid: &[T],
    index: &mut [i64],
    inside: &mut [T],
    above: &mut [T],
    slope: &mut [T],
) {
    let count = 1 << s.axes;
    assert!(index.len() == s.batch * s.points * count && inside.len() == index.len(), "grid_sample: corners");
    assert!(above.len() == grid.len() && slope.len() == grid.len(), "grid_sample: sizes of {s:?}");
    index.fill(0);
    inside.fill(T::default());
    for at in 0..s.batch * s.points {
        let (image, point) = (at / s.points, at % s.points);
        let places = s.places(grid, at);
        s.corners(&places, |corner, i, _| {
            let to = (image * count + corner) * s.points + point;
            (index[to], inside[to]) = (i as i64, T::narrow(T::Wide::ONE));
        });
        for a in 0..s.axes {
            above[at * s.axes + a] = T::narrow(places[a].above);
            slope[at * s.axes + a] = T::narrow(places[a].slope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GridMode::*;
    use Outside::*;

    const X: [f64; 10] = [3., 1., 4., 1., 5., 2., 7., 1., 8., 2.];
    const GRID: [f64; 18] =
        [-1., -1., 1., 1., -0.75, 0., -0.25, 0., 0.25, -1., 1.7, 0.3, -1.9, -1.6, 3.3, 0.1, -2.2, 1.2];

    fn shape(mode: GridMode, outside: Outside, align_corners: bool) -> GridShape {
        GridShape { batch: 1, channels: 1, axes: 2, input: [1, 2, 5], points: 9, mode, outside, align_corners }
    }

    fn close(a: &[f64], b: &[f64]) {
        assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
    }

    #[test]
    fn values_of_paddle() {
        for (mode, outside, align, expected) in [
            (Nearest, Zeros, true, [3., 2., 3., 4., 4., 0., 0., 0., 0.]),
            (Nearest, Border, false, [3., 2., 3., 1., 1., 2., 3., 2., 2.]),
            (Nearest, Reflection, true, [3., 2., 3., 4., 4., 8., 4., 7., 1.]),
            (Nearest, Reflection, false, [3., 2., 3., 1., 1., 8., 4., 2., 8.]),
            (Linear, Zeros, true, [3., 2., 3.25, 3.25, 2.5, 0., 0., 0., 0.]),
            (Linear, Zeros, false, [0.75, 0.5, 2.6875, 3.4375, 1.0625, 0., 0., 0., 0.]),
            (Linear, Border, true, [3., 2., 3.25, 3.25, 2.5, 3.05, 3., 3.35, 2.]),
            (Linear, Border, false, [3., 2., 2.6875, 3.4375, 2.125, 2.6, 3., 3.2, 2.]),
            (Linear, Reflection, true, [3., 2., 3.25, 3.25, 2.5, 4.15, 3.04, 3.56, 3.7]),
            (Linear, Reflection, false, [3., 2., 2.6875, 3.4375, 2.125, 5.35, 3.175, 2.95, 4.5]),
        ] {
            let mut y = [0.0; 9];
            grid_sample_of(&shape(mode, outside, align), &X, &GRID, &mut y);
            close(&y, &expected);
        }
    }

    #[test]
    fn gradients_of_paddle() {
        let s = shape(Linear, Reflection, false);
        let (mut dx, mut dg) = ([0.0; 10], [0.0; 18]);
        grid_sample_backward_x_of(&s, &GRID, &[1.0; 9], &mut dx);
        close(&dx, &[1.7375, 0.7, 1.2875, 0.775, 0., 0.8875, 0.55, 0.9625, 1.1, 1.]);
        grid_sample_backward_grid_of(&s, &X, &GRID, &[1.0; 9], &mut dg);
        let expected =
            [0., 0., 0., 0., 3.75, -0.125, -3.75, 2.625, -7.5, 0., -12.5, 4.5, -5.25, 0.75, 5.5, 0.75, -17.5, 0.];
        close(&dg, &expected);
        let s = shape(Linear, Border, true);
        grid_sample_backward_grid_of(&s, &X, &GRID, &[1.0; 9], &mut dg);
        close(&dg, &[-4., -0.5, -4., -1., 3., 1.25, -3., 0.75, -6., 1., 0., -1.5, 0., 0., 0., -1.5, 0., 0.]);
    }

    #[test]
    fn volumes_and_strange_places() {
        let x: Vec<f64> = (0..2 * 24).map(|v| (v * 37 % 11) as f64).collect();
        let grid = [0.1, -0.2, 0.3, f64::INFINITY, 0.0, 0.0, -0.6, 0.5, 1.05, 1e300, -1e300, 0.0];
        let s = GridShape {
            batch: 1,
            channels: 2,
            axes: 3,
            input: [2, 3, 4],
            points: 4,
            mode: Linear,
            outside: Zeros,
            align_corners: false,
        };
        let dy: Vec<f64> = (0..8).map(|v| v as f64 - 2.0).collect();
        let (mut y, mut dg) = ([0.0; 8], [0.0; 12]);
        grid_sample_of(&s, &x, &grid, &mut y);
        assert!(y.iter().all(|v| v.is_finite()) && y[1] == 0.0 && y[3] == 0.0);
        grid_sample_backward_grid_of(&s, &x, &grid, &dy, &mut dg);
        for i in [0, 1, 2, 6, 7, 8] {
            let at = |e: f64| {
                let (mut g, mut y) = (grid, [0.0; 8]);
                g[i] += e;
                grid_sample_of(&s, &x, &g, &mut y);
                y.iter().zip(&dy).map(|(a, b)| a * b).sum::<f64>()
            };
            let numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((numeric - dg[i]).abs() < 1e-5, "{i}: {numeric} {}", dg[i]);
        }
        let mut dx = vec![0.0; 48];
        grid_sample_backward_x_of(&s, &grid, &dy, &mut dx);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((dot(&dx, &x) - dot(&dy, &y)).abs() < 1e-9);
    }
}
