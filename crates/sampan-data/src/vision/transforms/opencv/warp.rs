//! Pictures seen through a mapping, at places in 32nds of a pixel.

use super::super::pixel::Pixels;
use super::super::resample::Interpolation;
use super::super::warp::Mapping;
use super::Sample;
use super::kernel::{count, shares};
use sampan_core::Element;
use std::sync::OnceLock;

/// Parts of a pixel.
const PARTS: usize = 32;

/// The shares of all neighbours, for each part of a pixel down and across: as floats, and in whole numbers of 2^-15.
struct Shares {
    floats: Vec<f32>,
    whole: Vec<i32>,
}

fn table(how: Interpolation) -> &'static Shares {
    static TABLES: [OnceLock<Shares>; 3] = [const { OnceLock::new() }; 3];
    let n = count(how);
    TABLES[n.ilog2() as usize - 1].get_or_init(|| {
        let lines: Vec<[f32; 8]> = (0..PARTS).map(|i| shares(how, i as f32 / PARTS as f32)).collect();
        let mut table = Shares { floats: Vec::new(), whole: Vec::new() };
        for (down, across) in lines.iter().flat_map(|down| lines.iter().map(move |across| (down, across))) {
            let floats: Vec<f32> = down[..n].iter().flat_map(|d| across[..n].iter().map(move |a| d * a)).collect();
            let mut whole: Vec<i32> = floats.iter().map(|w| (w * 32768.0).round_ties_even() as i32).collect();
            // What rounding lost or won goes to the largest or the smallest of the middle ones.
            let over = whole.iter().sum::<i32>() - 32768;
            let middle = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| (n / 2 + i) * n + n / 2 + j);
            let middle = middle.into_iter().filter(|&at| at < n * n && n > 2);
            let chosen = if over > 0 {
                middle.min_by_key(|&at| whole[at])
            } else {
                middle.reduce(|best, at| if whole[at] > whole[best] { at } else { best })
            };
            whole[chosen.unwrap_or(n * n - 1)] -= over;
            table.floats.extend(floats);
            table.whole.extend(whole);
        }
        table
    })
}

/// The old place of each new pixel, in `parts` of a pixel, row by row. The arithmetic is OpenCV's: 2^-10 for an affine
/// mapping, double precision from the start of each block for a perspective.
fn places(map: &Mapping, (height, width): (usize, usize), parts: usize, mut visit: impl FnMut(i32, i32)) {
    // Beyond an int it saturates, as a cast does.
    let round = |v: f64| v.round_ties_even() as i32;
    match *map {
        Mapping::Affine([a, b, c, d, e, f]) => {
            let (half, shift) = (512 / parts as i32, 10 - parts.ilog2());
            let across: Vec<(i32, i32)> =
                (0..width).map(|x| (round(a * x as f64 * 1024.0), round(d * x as f64 * 1024.0))).collect();
            for y in 0..height {
                let x0 = round((b * y as f64 + c) * 1024.0).wrapping_add(half);
                let y0 = round((e * y as f64 + f) * 1024.0).wrapping_add(half);
                across.iter().for_each(|(x, y)| visit(x0.wrapping_add(*x) >> shift, y0.wrapping_add(*y) >> shift));
            }
        }
        Mapping::Perspective([a, b, c, d, e, f, g, h]) => {
            let block = (1024 / height.min(16)).min(width);
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let (start, step, y) = ((x - x % block) as f64, (x % block) as f64, y as f64);
                let depth = g * start + h * y + 1.0 + g * step;
                let depth = if depth == 0.0 { 0.0 } else { parts as f64 / depth };
                let x = (a * start + b * y + c + a * step) * depth;
                visit(round(x), round((d * start + e * y + f + d * step) * depth));
            }
        }
    }
}

/// The mapping back, as OpenCV inverts it.
pub fn back([a, b, c, d, e, f]: [f64; 6]) -> [f64; 6] {
    let det = a * e - b * d;
    let over = if det == 0.0 { 0.0 } else { 1.0 / det };
    let [a, b, d, e] = [e * over, -b * over, -d * over, a * over];
    [a, b, -a * c - b * f, d, e, -d * c - e * f]
}

/// The picture by the nearest pixels; `fill` where there is none.
pub fn nearest<T: Element>(source: Pixels<'_, T>, size: (usize, usize), map: &Mapping, fill: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(size.0 * size.1 * source.channels);
    places(map, size, 1, |x, y| {
        let inside = (0..source.width as i32).contains(&x) && (0..source.height as i32).contains(&y);
        out.extend_from_slice(if inside { source.at(y as usize, x as usize) } else { fill });
    });
    out
}

/// The picture by 2×2, 4×4 or 8×8 pixels; `fill` is what stands around it.
pub fn mixed<T: Sample>(
    source: Pixels<'_, T>,
    size: (usize, usize),
    map: &Mapping,
    how: Interpolation,
    fill: &[T],
) -> Vec<T> {
    match count(how) {
        4 => from_squares::<T, 4>(source, size, map, table(how), fill),
        8 => from_squares::<T, 8>(source, size, map, table(how), fill),
        _ => from_squares::<T, 2>(source, size, map, table(how), fill),
    }
}

/// The same, from squares of `N` by `N` pixels.
fn from_squares<T: Sample, const N: usize>(
    source: Pixels<'_, T>,
    size: (usize, usize),
    map: &Mapping,
    table: &Shares,
    fill: &[T],
) -> Vec<T> {
    let (height, width, n, c) = (source.height as i64, source.width as i64, N as i64, source.channels);
    let line = source.width * c;
    let mut out = Vec::with_capacity(size.0 * size.1 * c);
    let mut around = vec![T::default(); N * N * c];
    places(map, size, PARTS, |x, y| {
        let part = (y as usize % PARTS * PARTS + x as usize % PARTS) * N * N;
        let (left, top) = ((x >> 5) as i64 + 1 - n / 2, (y >> 5) as i64 + 1 - n / 2);
        if left >= width || left + n <= 0 || top >= height || top + n <= 0 {
            return out.extend_from_slice(fill);
        }
        // Rows of the square: those of the picture, or copies where it reaches beyond the edge.
        let inside = left >= 0 && top >= 0 && left + n <= width && top + n <= height;
        let rows: [&[T]; N] = if inside {
            let first = (top as usize * source.width + left as usize) * c;
            std::array::from_fn(|i| &source.data[first + i * line..first + i * line + N * c])
        } else {
            for (at, pixel) in around.chunks_exact_mut(c).enumerate() {
                let (y, x) = (top + (at / N) as i64, left + (at % N) as i64);
                let inside = (0..width).contains(&x) && (0..height).contains(&y);
                pixel.copy_from_slice(if inside { source.at(y as usize, x as usize) } else { fill });
            }
            std::array::from_fn(|i| &around[i * N * c..(i + 1) * N * c])
        };
        let (whole, floats) = (&table.whole[part..part + N * N], &table.floats[part..part + N * N]);
        for k in 0..c {
            out.push(if T::BYTE {
                let share = |i: usize, j: usize| rows[i][j * c + k].to_i64() as i32 * whole[i * N + j];
                let sum: i32 = (0..N).map(|i| (0..N).map(|j| share(i, j)).sum::<i32>()).sum();
                T::from_i64(((sum + (1 << 14)) >> 15).clamp(0, 255) as i64)
            } else {
                let share = |i: usize, j: usize| rows[i][j * c + k].to_f64() * floats[i * N + j] as f64;
                T::nearest((0..N).map(|i| (0..N).map(|j| share(i, j)).sum::<f64>()).sum())
            });
        }
    });
    out
}
