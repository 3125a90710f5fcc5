//! Resizing by filters that widen as the picture shrinks, first along rows, then along columns.

use super::pixel::{Pixel, Pixels, with_alpha};
use sampan_core::{Element, Result, bail};

/// How values between pixels are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interpolation {
    Nearest,
    Bilinear,
    Bicubic,
    Box,
    Hamming,
    Lanczos,
    Area,
}

use Interpolation::*;

impl Interpolation {
    /// From Paddle's word.
    pub fn parse(word: &str) -> Result<Interpolation> {
        Ok(match word {
            "nearest" => Nearest,
            "bilinear" => Bilinear,
            "bicubic" => Bicubic,
            "box" => Box,
            "hamming" => Hamming,
            "lanczos" => Lanczos,
            "area" => Area,
            _ => bail!(
                "interpolation must be 'nearest', 'bilinear', 'bicubic', 'box', 'hamming', 'lanczos' or 'area', got {word:?}"
            ),
        })
    }

    /// From the word, for rotations and the like. Lanczos and area are OpenCV's.
    pub fn parse_warp(word: &str) -> Result<Interpolation> {
        match word {
            "nearest" => Ok(Nearest),
            "bilinear" => Ok(Bilinear),
            "bicubic" => Ok(Bicubic),
            "lanczos" => Ok(Lanczos),
            "area" => Ok(Area),
            _ => bail!("interpolation must be 'nearest', 'bilinear' or 'bicubic', got {word:?}"),
        }
    }

    /// How far it reaches, in pixels of the smaller picture.
    fn reach(self) -> f64 {
        match self {
            Nearest | Box | Area => 0.5,
            Bilinear | Hamming => 1.0,
            Bicubic => 2.0,
            Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (x * std::f64::consts::PI).sin() / (x * std::f64::consts::PI) };
        let d = x.abs();
        match self {
            Nearest | Box | Area => (x > -0.5 && x <= 0.5) as u8 as f64,
            Bilinear => (1.0 - d).max(0.0),
            Hamming if d >= 1.0 => 0.0,
            Hamming => sinc(d) * (0.54 + 0.46 * (d * std::f64::consts::PI).cos()),
            // Keys' cubic with a = -0.5.
            Bicubic if d < 1.0 => (1.5 * d - 2.5) * d * d + 1.0,
            Bicubic if d < 2.0 => (((d - 5.0) * d + 8.0) * d - 4.0) * -0.5,
            Bicubic => 0.0,
            Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Lanczos => 0.0,
        }
    }
}

/// Which pixels of a line each new pixel is made of, and in what shares.
struct Taps<W> {
    /// First pixel, and the range of its weights.
    lines: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<W>,
}

fn taps<P: Pixel>(old: usize, new: usize, how: Interpolation) -> Taps<P::Weight> {
    let scale = old as f64 / new as f64;
    let stretch = scale.max(1.0);
    let reach = how.reach() * stretch;
    let mut taps = Taps { lines: Vec::with_capacity(new), weights: Vec::new() };
    let mut shares = Vec::new();
    for i in 0..new {
        let centre = (i as f64 + 0.5) * scale;
        let (first, end) = if how == Area {
            let (low, high) = (i as f64 * scale, (i + 1) as f64 * scale);
            (low as usize, (high.ceil() as usize).min(old))
        } else {
            ((centre - reach + 0.5).max(0.0) as usize, ((centre + reach + 0.5) as usize).min(old))
        };
        shares.clear();
        shares.extend((first..end).map(|x| {
            if how == Area {
                let (low, high) = (i as f64 * scale, (i + 1) as f64 * scale);
                (high.min((x + 1) as f64) - low.max(x as f64)).max(0.0)
            } else {
                how.weight((x as f64 - centre + 0.5) / stretch)
            }
        }));
        let total: f64 = shares.iter().sum();
        let total = if total == 0.0 { 1.0 } else { total };
        let start = taps.weights.len();
        taps.weights.extend(shares.iter().map(|w| P::weight(w / total)));
        taps.lines.push((first, start..taps.weights.len()));
    }
    taps
}

/// One row: `C` channels at once, `step` values from pixel to pixel.
fn row<P: Pixel, const C: usize>(source: &[P], out: &mut [P], step: usize, taps: &Taps<P::Weight>) {
    for (i, (first, range)) in taps.lines.iter().enumerate() {
        let mut sums = [P::ZERO; C];
        for (k, &w) in taps.weights[range.clone()].iter().enumerate() {
            let pixel = &source[(first + k) * step..][..C];
            for c in 0..C {
                sums[c] = P::add(sums[c], pixel[c], w);
            }
        }
        for c in 0..C {
            out[i * step + c] = P::finish(sums[c]);
        }
    }
}

fn along_rows<P: Pixel>(source: Pixels<'_, P>, width: usize, how: Interpolation) -> Vec<P> {
    let taps = taps::<P>(source.width, width, how);
    let step = source.channels;
    let mut out = vec![P::default(); source.height * width * step];
    for (from, to) in source.data.chunks_exact(source.width * step).zip(out.chunks_exact_mut(width * step)) {
        match step {
            3 => row::<P, 3>(from, to, step, &taps),
            4 => row::<P, 4>(from, to, step, &taps),
            _ => (0..step).for_each(|c| row::<P, 1>(&from[c..], &mut to[c..], step, &taps)),
        }
    }
    out
}

fn along_columns<P: Pixel>(source: Pixels<'_, P>, height: usize, how: Interpolation) -> Vec<P> {
    let taps = taps::<P>(source.height, height, how);
    let line = source.width * source.channels;
    let mut out = Vec::with_capacity(height * line);
    let mut sums = vec![P::ZERO; line];
    for (first, range) in &taps.lines {
        sums.fill(P::ZERO);
        for (k, &w) in taps.weights[range.clone()].iter().enumerate() {
            for (sum, &pixel) in sums.iter_mut().zip(&source.data[(first + k) * line..][..line]) {
                *sum = P::add(*sum, pixel, w);
            }
        }
        out.extend(sums.iter().map(|&s| P::finish(s)));
    }
    out
}

/// A picture at another size, by any filter but the nearest pixel.
pub(super) fn filtered<P: Pixel>(source: Pixels<'_, P>, height: usize, width: usize, how: Interpolation) -> Vec<P> {
    let rows = |source: Pixels<'_, P>| {
        if width == source.width { source.data.to_vec() } else { along_rows(source, width, how) }
    };
    let columns = |source: Pixels<'_, P>| {
        if height == source.height { source.data.to_vec() } else { along_columns(source, height, how) }
    };
    // The order decides the rounding in between. Pillow starts with the columns where that drops many more rows.
    let columns_first = (source.height as i64 - height as i64) > (2 * (source.width as i64 - width as i64)).max(0);
    with_alpha(source, |source| {
        if columns_first {
            rows(Pixels { data: &columns(source), height, ..source })
        } else {
            columns(Pixels { data: &rows(source), width, ..source })
        }
    })
}

/// A picture at another size, each pixel copied from the one whose place it takes.
pub(super) fn nearest<T: Element>(source: Pixels<'_, T>, height: usize, width: usize) -> Vec<T> {
    let places = |old: usize, new: usize| {
        let scale = old as f64 / new as f64;
        // Steps are added up as Pillow does, so that ties fall the same way.
        let mut at = scale * 0.5;
        let next = move |_| {
            let place = (at as usize).min(old - 1);
            at += scale;
            place
        };
        (0..new).map(next).collect::<Vec<usize>>()
    };
    let (rows, columns) = (places(source.height, height), places(source.width, width));
    let mut out = Vec::with_capacity(height * width * source.channels);
    for y in rows {
        columns.iter().for_each(|&x| out.extend_from_slice(source.at(y, x)));
    }
    out
}
