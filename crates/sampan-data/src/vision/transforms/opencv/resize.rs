//! Resizing as OpenCV does: filters that do not widen as the picture shrinks, but for `area`.

use super::super::pixel::Pixels;
use super::super::resample::Interpolation;
use super::Sample;
use super::kernel::{count, shares};
use sampan_core::Element;
use std::collections::VecDeque;

/// How many old pixels one new pixel covers. The order of the divisions decides where ties fall.
fn scale(old: usize, new: usize) -> f64 {
    1.0 / (new as f64 / old as f64)
}

/// A picture at another size, each pixel copied from the one whose first corner it covers.
pub fn nearest<T: Element>(source: Pixels<'_, T>, height: usize, width: usize) -> Vec<T> {
    let places = |old: usize, new: usize| -> Vec<usize> {
        (0..new).map(|i| ((i as f64 * scale(old, new)) as usize).min(old - 1)).collect()
    };
    let (rows, columns) = (places(source.height, height), places(source.width, width));
    let mut out = Vec::with_capacity(height * width * source.channels);
    for y in rows {
        columns.iter().for_each(|&x| out.extend_from_slice(source.at(y, x)));
    }
    out
}

/// A picture at another size, by any rule but the nearest pixel.
pub fn mixed<T: Sample>(source: Pixels<'_, T>, height: usize, width: usize, how: Interpolation) -> Vec<T> {
    let (down, across) = (scale(source.height, height), scale(source.width, width));
    let whole = |s: f64| (s - s.round_ties_even()).abs() < f64::EPSILON;
    let whole = whole(down) && whole(across) && down >= 1.0 && across >= 1.0;
    // Halving by two pixels each way is their mean, whatever it is called.
    let halved = whole && (down.round(), across.round()) == (2.0, 2.0) && how == Interpolation::Bilinear;
    if halved || (how == Interpolation::Area && whole) {
        return blocks(source, height, width, down.round() as usize, across.round() as usize);
    }
    if how == Interpolation::Area && down >= 1.0 && across >= 1.0 {
        return covered(source, height, width);
    }
    if !T::BYTE || how == Interpolation::Bicubic {
        let taps = |old, new, within| taps(old, new, how, within, false, |w| w as f64);
        let (down, across) = (taps(source.height, height, false), taps(source.width, width, true));
        let add = |sum: f64, v: f64, w: f64| sum + v * w;
        let first = |sum, v, w| add(sum, T::to_f64(v), w);
        return match how {
            Interpolation::Bicubic => passes::<_, _, _, 4>(source, &down, &across, first, add, T::nearest),
            Interpolation::Lanczos => passes::<_, _, _, 8>(source, &down, &across, first, add, T::nearest),
            _ => passes::<_, _, _, 2>(source, &down, &across, first, add, T::nearest),
        };
    }
    // Bytes: shares are whole numbers of 2^-11.
    let whole = |w: f32| (w * 2048.0).round_ties_even();
    let byte = |v: i32| T::from_i64(v.clamp(0, 255) as i64);
    if how == Interpolation::Lanczos {
        let taps = |old, new, within| taps(old, new, how, within, true, |w| whole(w) as i64);
        let (down, across) = (taps(source.height, height, false), taps(source.width, width, true));
        let first = |sum: i64, v: T, w: i64| sum + v.to_i64() * w;
        let finish = |sum: i64| byte(((sum + (1 << 21)) >> 22) as i32);
        return passes::<_, _, _, 8>(source, &down, &across, first, |sum, v, w| sum + v * w, finish);
    }
    let taps = |old, new, within| taps(old, new, how, within, true, |w| whole(w) as i32);
    let (down, across) = (taps(source.height, height, false), taps(source.width, width, true));
    let first = |sum: i32, v: T, w: i32| sum + v.to_i64() as i32 * w;
    // Each product loses its lowest bits, so that it fits into 16.
    let second = |sum: i32, v: i32, w: i32| sum + ((w * (v >> 4)) >> 16);
    passes::<_, _, _, 2>(source, &down, &across, first, second, |sum| byte((sum + 2) >> 2))
}

/// Which pixels of a line each new pixel is made of, as many each as [`count`] says, and their shares.
struct Taps<W> {
    at: Vec<usize>,
    weights: Vec<W>,
}

/// `within`: a place before the first or behind the last pixel is that pixel. `narrow`: places are float32.
fn taps<W>(
    old: usize,
    new: usize,
    how: Interpolation,
    within: bool,
    narrow: bool,
    weight: impl Fn(f32) -> W,
) -> Taps<W> {
    let (n, scale, last) = (count(how), scale(old, new), old as i64 - 1);
    let mut taps = Taps { at: Vec::with_capacity(n * new), weights: Vec::with_capacity(n * new) };
    for i in 0..new {
        let (mut left, mut t) = if how == Interpolation::Area {
            // A picture that grows: whole pixels, mixed only where a new one lies across an edge.
            let left = (i as f64 * scale).floor();
            let t = ((i + 1) as f64 - (left + 1.0) * (new as f64 / old as f64)) as f32;
            (left as i64, if t <= 0.0 { 0.0 } else { t - t.floor() })
        } else {
            let at = (i as f64 + 0.5) * scale - 0.5;
            let at = if narrow { at as f32 as f64 } else { at };
            (at.floor() as i64, (at - at.floor()) as f32)
        };
        if within && n == 2 && !(0..last).contains(&left) {
            (left, t) = (left.clamp(0, last), 0.0);
        }
        for (k, w) in shares(how, t).into_iter().take(n).enumerate() {
            taps.at.push((left + 1 - n as i64 / 2 + k as i64).clamp(0, last) as usize);
            taps.weights.push(weight(w));
        }
    }
    taps
}

/// Along rows, then along columns, with `N` pixels for each new one.
fn passes<T: Copy, W: Copy, S: Copy + Default, const N: usize>(
    source: Pixels<'_, T>,
    down: &Taps<W>,
    across: &Taps<W>,
    first: impl Fn(S, T, W) -> S,
    second: impl Fn(S, S, W) -> S,
    finish: impl Fn(S) -> T,
) -> Vec<T> {
    let (c, width) = (source.channels, across.at.len() / N);
    let along = |y: usize, line: &mut Vec<S>| {
        let row = &source.data[y * source.width * c..(y + 1) * source.width * c];
        line.clear();
        for (at, weights) in across.at.chunks_exact(N).zip(across.weights.chunks_exact(N)) {
            let pixels: [&[T]; N] = std::array::from_fn(|i| &row[at[i] * c..at[i] * c + c]);
            line.extend((0..c).map(|k| (0..N).fold(S::default(), |sum, i| first(sum, pixels[i][k], weights[i]))));
        }
    };
    // The lines that the last new row was made of; the next one needs most of them again.
    let mut lines: VecDeque<(usize, Vec<S>)> = VecDeque::new();
    let mut out = Vec::with_capacity(down.at.len() / N * width * c);
    for (at, weights) in down.at.chunks_exact(N).zip(down.weights.chunks_exact(N)) {
        for &y in at {
            if !lines.iter().any(|(known, _)| *known == y) {
                let free = if lines.len() == N { lines.pop_front() } else { None };
                let mut line = free.map_or_else(Vec::new, |(_, line)| line);
                along(y, &mut line);
                lines.push_back((y, line));
            }
        }
        let parts: [&[S]; N] = std::array::from_fn(|i| {
            let line = lines.iter().find(|(known, _)| *known == at[i]);
            &line.expect("it was made above").1[..width * c]
        });
        out.extend(
            (0..width * c).map(|x| finish((0..N).fold(S::default(), |sum, i| second(sum, parts[i][x], weights[i])))),
        );
    }
    out
}

/// Each new pixel the mean of a block of old ones.
fn blocks<T: Sample>(source: Pixels<'_, T>, height: usize, width: usize, down: usize, across: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(height * width * source.channels);
    let share = 1.0 / (down * across) as f32;
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for k in 0..source.channels {
            let rows = (y * down..(y + 1) * down).flat_map(|y| (x * across..(x + 1) * across).map(move |x| (y, x)));
            let sum: f64 = rows.map(|(y, x)| source.at(y, x)[k].to_f64()).sum();
            out.push(match T::BYTE {
                // Two by two: halves go up.
                true if down * across == 4 && down == 2 => T::from_i64((sum as i64 + 2) >> 2),
                true => T::nearest((sum as f32 * share) as f64),
                false => T::nearest(sum / (down * across) as f64),
            });
        }
    }
    out
}

/// Each new pixel the mean of what it covers, parts of pixels included.
fn covered<T: Sample>(source: Pixels<'_, T>, height: usize, width: usize) -> Vec<T> {
    let parts = |old: usize, new: usize| -> Vec<Vec<(usize, f32)>> {
        let scale = scale(old, new);
        let one = |i: usize| {
            let (from, to) = (i as f64 * scale, i as f64 * scale + scale);
            let cell = scale.min(old as f64 - from);
            let last = (to.floor() as usize).min(old - 1);
            let first = (from.ceil() as usize).min(last);
            let mut parts = Vec::new();
            if first as f64 - from > 1e-3 {
                parts.push((first - 1, ((first as f64 - from) / cell) as f32));
            }
            parts.extend((first..last).map(|i| (i, (1.0 / cell) as f32)));
            if to - last as f64 > 1e-3 {
                parts.push((last, ((to - last as f64).min(1.0).min(cell) / cell) as f32));
            }
            parts
        };
        (0..new).map(one).collect()
    };
    let (rows, columns) = (parts(source.height, height), parts(source.width, width));
    let c = source.channels;
    let (mut line, mut sums, mut out) = (vec![0f32; width * c], vec![0f32; width * c], Vec::new());
    for parts in rows {
        sums.fill(0.0);
        for (y, down) in parts {
            for (x, parts) in columns.iter().enumerate() {
                for k in 0..c {
                    line[x * c + k] =
                        parts.iter().fold(0.0, |sum, &(x, share)| sum + source.at(y, x)[k].to_f64() as f32 * share);
                }
            }
            sums.iter_mut().zip(&line).for_each(|(sum, v)| *sum += down * v);
        }
        out.extend(sums.iter().map(|&sum| T::nearest(sum as f64)));
    }
    out
}
