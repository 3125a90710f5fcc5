//! Pictures seen through a mapping: for each new pixel, where it comes from.

use super::pixel::{Pixel, Pixels, with_alpha};
use super::resample::Interpolation;
use sampan_core::Element;

/// Where the middle of a new pixel lies in the old picture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mapping {
    /// `x' = m0 x + m1 y + m2`, `y' = m3 x + m4 y + m5`.
    Affine([f64; 6]),
    /// The same, both over `m6 x + m7 y + 1`.
    Perspective([f64; 8]),
}

impl Mapping {
    /// Are all its numbers finite?
    pub fn is_finite(&self) -> bool {
        match self {
            Mapping::Affine(m) => m.iter().all(|v| v.is_finite()),
            Mapping::Perspective(m) => m.iter().all(|v| v.is_finite()),
        }
    }

    /// The place of the middle of pixel `(x, y)`.
    fn place(&self, x: usize, y: usize) -> (f64, f64) {
        let (x, y) = (x as f64 + 0.5, y as f64 + 0.5);
        match *self {
            Mapping::Affine([a, b, c, d, e, f]) => (a * x + b * y + c, d * x + e * y + f),
            Mapping::Perspective([a, b, c, d, e, f, g, h]) => {
                let depth = g * x + h * y + 1.0;
                ((a * x + b * y + c) / depth, (d * x + e * y + f) / depth)
            }
        }
    }

    /// All places in order, for the nearest pixel. Affine ones advance in 16.16 fixed point as Pillow's do where that
    /// is wide enough, or by addition where rows stay rows, so that ties fall the same way.
    fn walk(&self, height: usize, width: usize, mut visit: impl FnMut(i64, i64)) {
        let floor = |(x, y): (f64, f64)| (x.floor() as i64, y.floor() as i64);
        let Mapping::Affine(m) = *self else {
            return (0..height).for_each(|y| {
                (0..width).for_each(|x| {
                    let (x, y) = floor(self.place(x, y));
                    visit(x, y);
                })
            });
        };
        let [a, b, c, d, e, f] = m;
        let start = (c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5);
        let (h, w) = (height as f64, width as f64);
        let narrow = |x: f64, y: f64| (x * a + y * b + c).abs() < 32768.0 && (x * d + y * e + f).abs() < 32768.0;
        let straight = b == 0.0 && d == 0.0;
        if !straight && narrow(0.0, 0.0) && narrow(w, h) && narrow(0.0, h) && narrow(w, 0.0) {
            let fixed = |v: f64| (v * 65536.0 + 0.5).floor() as i64;
            let ([a, b, d, e], (mut row_x, mut row_y)) = ([a, b, d, e].map(fixed), (fixed(start.0), fixed(start.1)));
            for _ in 0..height {
                let (mut x, mut y) = (row_x, row_y);
                for _ in 0..width {
                    visit(x >> 16, y >> 16);
                    (x, y) = (x + a, y + d);
                }
                (row_x, row_y) = (row_x + b, row_y + e);
            }
            return;
        }
        let mut line = start;
        for _ in 0..height {
            let mut at = line;
            for _ in 0..width {
                let (x, y) = floor(at);
                visit(x, y);
                at = (at.0 + a, at.1 + d);
            }
            line = (line.0 + b, line.1 + e);
        }
    }
}

/// The picture by the nearest pixels; `fill` where there is none.
pub(super) fn nearest<T: Element>(source: Pixels<'_, T>, size: (usize, usize), map: &Mapping, fill: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(size.0 * size.1 * source.channels);
    map.walk(size.0, size.1, |x, y| {
        let inside = (0..source.width as i64).contains(&x) && (0..source.height as i64).contains(&y);
        out.extend_from_slice(if inside { source.at(y as usize, x as usize) } else { fill });
    });
    out
}

/// The picture by 2×2 pixels, fading into `fill` at its edge: what Paddle does to tensors.
pub(super) fn faded<P: Pixel>(source: Pixels<'_, P>, size: (usize, usize), map: &Mapping, fill: &[P]) -> Vec<P> {
    let (h, w) = (source.height as i64, source.width as i64);
    let mut out = Vec::with_capacity(size.0 * size.1 * source.channels);
    for (y, x) in (0..size.0).flat_map(|y| (0..size.1).map(move |x| (y, x))) {
        let (x, y) = map.place(x, y);
        let (x, y) = (x - 0.5, y - 0.5);
        if !((-1.0..w as f64).contains(&x) && (-1.0..h as f64).contains(&y)) {
            out.extend_from_slice(fill);
            continue;
        }
        let (left, top) = (x.floor(), y.floor());
        let (dx, dy) = (x - left, y - top);
        let shares = [(1.0 - dx) * (1.0 - dy), dx * (1.0 - dy), (1.0 - dx) * dy, dx * dy];
        let inside: [Option<usize>; 4] = std::array::from_fn(|i| {
            let (x, y) = (left as i64 + i as i64 % 2, top as i64 + i as i64 / 2);
            ((0..w).contains(&x) && (0..h).contains(&y)).then(|| (y * w + x) as usize * source.channels)
        });
        let weighted = |value: &dyn Fn(usize) -> f64| -> f64 {
            inside.iter().zip(shares).map(|(at, share)| at.map_or(0.0, |at| share * value(at))).sum()
        };
        let cover = weighted(&|_| 1.0);
        for c in 0..source.channels {
            let value = weighted(&|at| source.data[at + c].to_f64());
            out.push(P::cut(value * cover + (1.0 - cover) * fill[c].to_f64()));
        }
    }
    out
}

/// The picture by 2×2 or 4×4 pixels, those beyond the edge repeating it; `fill` where the middle lies outside.
pub(super) fn smooth<P: Pixel>(
    source: Pixels<'_, P>,
    size: (usize, usize),
    map: &Mapping,
    how: Interpolation,
    fill: &[P],
) -> Vec<P> {
    with_alpha(source, |source| {
        let (h, w) = (source.height as i64, source.width as i64);
        let mut out = Vec::with_capacity(size.0 * size.1 * source.channels);
        for (y, x) in (0..size.0).flat_map(|y| (0..size.1).map(move |x| (y, x))) {
            let (x, y) = map.place(x, y);
            if !((0.0..w as f64).contains(&x) && (0.0..h as f64).contains(&y)) {
                out.extend_from_slice(fill);
                continue;
            }
            let (x, y) = (x - 0.5, y - 0.5);
            let (left, top) = (x.floor() as i64, y.floor() as i64);
            let (dx, dy) = (x - left as f64, y - top as f64);
            let clip = |i: i64, n: i64| i.clamp(0, n - 1) as usize;
            for c in 0..source.channels {
                let at = |i: i64, j: i64| {
                    source.data[(clip(top + i, h) * source.width + clip(left + j, w)) * source.channels + c].to_f64()
                };
                out.push(P::cut(if how == Interpolation::Bicubic {
                    let line = |i: i64| cubic([at(i, -1), at(i, 0), at(i, 1), at(i, 2)], dx);
                    cubic([line(-1), line(0), line(1), line(2)], dy)
                } else {
                    let line = |i: i64| at(i, 0) + (at(i, 1) - at(i, 0)) * dx;
                    line(0) + (line(1) - line(0)) * dy
                }));
            }
        }
        out
    })
}

/// The cubic through four values with a slope factor of -1, between the second and the third.
fn cubic([a, b, c, d]: [f64; 4], t: f64) -> f64 {
    b + t * (c - a + t * (2.0 * (a - b) + c - d + t * (b - a + d - c)))
}
