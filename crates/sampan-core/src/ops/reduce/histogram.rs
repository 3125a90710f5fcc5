//! Counting elements in bins.

use crate::ops::prelude::*;
use sampan_kernels::cast;
use sampan_kernels::sort::{bincount as bincount_kernel, bincount_len, histogram as histogram_kernel, histogram_range};

/// The ends of a histogram, from the arguments or from the data.
fn range(x: &Tensor, lo: f64, hi: f64) -> Result<(f64, f64)> {
    ensure!(lo <= hi, "max must not be below min, got min={lo} and max={hi}");
    let x = x.contiguous();
    histogram_range(x.values().slice(), lo, hi)
        .ok_or_else(|| Error::invalid("the range of the data is not finite").hint("pass min and max"))
}

fn checked_bins(bins: i64) -> Result<usize> {
    ensure!(bins > 0, "bins must be positive, got {bins}");
    Ok(bins as usize)
}

/// How many elements fall into each of `bins` equal intervals from `min` to `max` (those of the data where both are
/// equal), or the sum of their weights; `density` divides by the total and the width. Others are left out.
///
/// ```
/// # use sampan_core::{Tensor, ops::histogram::HistogramOpts};
/// let x = Tensor::new([1.0f32, 2.0, 1.0]);
/// assert_eq!(x.histogram_with(HistogramOpts::new().bins(4).max(3.0)).to_vec::<i64>(), [0, 2, 1, 0]);
/// ```
#[op(non_diff, samples = histogram_samples, alias(x = input))]
fn histogram(
    cx: &Cx,
    input: &Tensor,
    #[opt(100)] bins: i64,
    #[opt(0.0)] min: f64,
    #[opt(0.0)] max: f64,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt(false)] density: bool,
) -> Result<Tensor> {
    let bins = checked_bins(bins)?;
    ensure!(min <= max, "max must not be below min, got min={min} and max={max}");
    ensure!(weight.is_none_or(|w| w.shape() == input.shape()), "weight must have the shape of input");
    let dtype = match weight {
        _ if density => DType::Float32,
        Some(w) => w.dtype(),
        None => DType::Int64,
    };
    let out = cx.out([bins], dtype)?;
    cx.cpu(|| {
        let (lo, hi) = range(input, min, max)?;
        let mut sums = vec![0.0f64; bins];
        let wide = |t: &Tensor| t.in_dtype(DType::Float64)?.in_rows();
        // Weighted elements go through f64, so that integers and floats may meet.
        match weight {
            Some(w) => {
                let (x, w) = (wide(input)?, wide(w)?);
                histogram_kernel(x.values().slice(), Some(w.values().slice()), lo, hi, &mut sums);
            }
            None => {
                let x = input.contiguous();
                histogram_kernel(x.values().slice(), None, lo, hi, &mut sums);
            }
        }
        if density {
            let total: f64 = sums.iter().sum();
            sums.iter_mut().for_each(|s| *s *= bins as f64 / (total * (hi - lo)));
        }
        cast::cast_row(sums[..].into(), out.values_mut().slice());
        Ok(())
    })?;
    Ok(out)
}

/// The `bins + 1` ends of the intervals of a histogram from `min` to `max`, or over the data where both are equal.
///
/// ```
/// # use sampan_core::{Tensor, ops::histogram::HistogramBinEdgesOpts};
/// let x = Tensor::new([1.0f32, 5.0]);
/// let edges = x.histogram_bin_edges_with(HistogramBinEdgesOpts::new().bins(4));
/// assert_eq!(edges.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0, 5.0]);
/// ```
#[op(non_diff, samples = edges_samples, alias(x = input))]
fn histogram_bin_edges(
    cx: &Cx,
    input: &Tensor,
    #[opt(100)] bins: i64,
    #[opt(0.0)] min: f64,
    #[opt(0.0)] max: f64,
) -> Result<Tensor> {
    let bins = checked_bins(bins)?;
    ensure!(min <= max, "max must not be below min, got min={min} and max={max}");
    let out = cx.out([bins + 1], DType::Float32)?;
    cx.cpu(|| {
        let from_data = min == max && input.numel() > 0;
        let (lo, hi) = if from_data { (input.min(()).to_f64(), input.max(()).to_f64()) } else { (min, max) };
        ensure!(lo.is_finite() && hi.is_finite(), "the range of the data is not finite; pass min and max");
        // Equal data lie in the middle of an interval of width one, as in NumPy.
        let (lo, hi) = if lo == hi { (lo - 0.5, hi + 0.5) } else { (lo, hi) };
        out.data_mut::<f32>()
            .slice()
            .copy_from_slice(&edges(lo, hi, bins).iter().map(|&e| e as f32).collect::<Vec<_>>());
        Ok(())
    })?;
    Ok(out)
}

/// The ends of `bins` equal intervals.
fn edges(lo: f64, hi: f64, bins: usize) -> Vec<f64> {
    (0..=bins).map(|i| if i == bins { hi } else { lo + (hi - lo) * i as f64 / bins as f64 }).collect()
}

/// A histogram of points, one in each row of `x`: how many lie in each cell of a grid, or the sum of their weights, and
/// then the edges along each axis. `bins` is a number, one for each axis, or the edges themselves; `ranges` holds the ends
/// of each axis one after the other.
///
/// ```
/// # use sampan_core::{Tensor, ops::histogram::HistogramddOpts};
/// let x = Tensor::new([[0.0f32, 1.0], [1.0, 0.0], [2.0, 2.0]]);
/// let parts = x.histogramdd_with(HistogramddOpts::new().bins(2));
/// assert_eq!(parts[0].to_vec::<f32>(), [0.0, 1.0, 1.0, 1.0]);
/// assert_eq!(parts[1].to_vec::<f32>(), [0.0, 1.0, 2.0]);
/// ```
#[op(non_diff, samples = dd_samples, peer = "lambda x, bins=10, ranges=None, density=False, weights=None: (lambda h, e: [h, *e])(*paddle.histogramdd(x, tuple(bins) if isinstance(bins, list) and isinstance(bins[0], paddle.Tensor) else bins, ranges, density, weights))", results("hist", "edges..."))]
fn histogramdd(
    cx: &Cx,
    x: &Tensor,
    #[opt(10)] bins: &Value,
    #[opt(None)] ranges: Option<&[f64]>,
    #[opt(false)] density: bool,
    #[opt(None)] weights: Option<&Tensor>,
) -> Result<Vec<Tensor>> {
    ensure!(x.ndim() >= 2, "x must hold points in its last axis, as in [N, D], got {:?}", x.shape());
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("points must be floats, got {}", x.dtype())).hint("cast x first"));
    }
    let axes = x.dim(-1);
    let lead = &x.shape()[..x.ndim() - 1];
    ensure!(weights.is_none_or(|w| w.shape() == lead), "weights must have the shape {lead:?}, one for each point");
    ensure!(ranges.is_none_or(|r| r.len() == 2 * axes), "ranges must hold two numbers for each of the {axes} axes");
    let counts: Vec<usize> = match bins {
        Value::Int(n) => vec![checked_bins(*n)?; axes],
        Value::Ints(n) => n.iter().map(|&n| checked_bins(n)).collect::<Result<_>>()?,
        Value::Tensors(ts) => {
            ensure!(ts.iter().all(|t| t.ndim() == 1 && t.numel() >= 2), "edges must be 1-D with at least two values");
            ts.iter().map(|t| t.numel() - 1).collect()
        }
        other => return Err(Error::dtype(format!("bins must be an int, ints or edges, got {}", other.type_name()))),
    };
    ensure!(counts.len() == axes, "bins must be given for each of the {axes} axes, got {}", counts.len());
    let mut out = vec![cx.out(&counts, x.dtype())?];
    for &n in &counts {
        out.push(cx.out([n + 1], x.dtype())?);
    }
    cx.cpu(|| {
        let points = x.try_cast(DType::Float64)?.to_vec::<f64>();
        let weights = weights.map(|w| Ok::<_, Error>(w.try_cast(DType::Float64)?.to_vec::<f64>())).transpose()?;
        let all: Vec<Vec<f64>> = (0..axes)
            .map(|a| match (bins, ranges) {
                (Value::Tensors(ts), _) => Ok(ts[a].try_cast(DType::Float64)?.to_vec::<f64>()),
                (_, Some(r)) => {
                    ensure!(r[2 * a] <= r[2 * a + 1], "the range of axis {a} ends before it starts");
                    Ok(edges(r[2 * a], r[2 * a + 1], counts[a]))
                }
                (_, None) => {
                    let column = || points.iter().skip(a).step_by(axes);
                    let (lo, hi) = column().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
                    let (lo, hi) = if lo > hi { (0.0, 1.0) } else { (lo, hi) };
                    ensure!(column().all(|v| v.is_finite()), "the range of axis {a} is not finite; pass ranges");
                    Ok(edges(lo, hi, counts[a]))
                }
            })
            .collect::<Result<_>>()?;
        let mut sums = vec![0.0f64; counts.iter().product()];
        for (i, point) in points.chunks_exact(axes.max(1)).enumerate() {
            if let Some(cell) = cell(point, &all) {
                sums[cell] += weights.as_ref().map_or(1.0, |w| w[i]);
            }
        }
        if density {
            let total: f64 = sums.iter().sum();
            for (i, s) in sums.iter_mut().enumerate() {
                *s /= total * volume(i, &all);
            }
        }
        let fill = |t: &Tensor, v: &[f64]| cast::cast_row(v.into(), t.values_mut().slice());
        fill(&out[0], &sums);
        out[1..].iter().zip(&all).for_each(|(t, e)| fill(t, e));
        Ok(())
    })?;
    Ok(out)
}

/// The cell of a grid that a point lies in. The last cell of each axis includes its end.
fn cell(point: &[f64], edges: &[Vec<f64>]) -> Option<usize> {
    let mut cell = 0;
    for (&v, e) in point.iter().zip(edges) {
        let last = e.len() - 1;
        if !(v >= e[0] && v <= e[last]) {
            return None;
        }
        cell = cell * last + (e.partition_point(|&e| e <= v) - 1).min(last - 1);
    }
    Some(cell)
}

/// The volume of a cell.
fn volume(mut cell: usize, edges: &[Vec<f64>]) -> f64 {
    let mut volume = 1.0;
    for e in edges.iter().rev() {
        let i = cell % (e.len() - 1);
        cell /= e.len() - 1;
        volume *= e[i + 1] - e[i];
    }
    volume
}

/// How often each number occurs in the 1-D `x` of nonnegative integers, or the sum of the weights at its places; at
/// least `minlength` numbers.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 3, 1]).bincount(None).to_vec::<i64>(), [0, 2, 0, 1]);
/// ```
#[op(non_diff, samples = bincount_samples)]
fn bincount(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] weights: Option<&Tensor>,
    #[opt(0)] minlength: i64,
) -> Result<Tensor> {
    cx.needs_values()?;
    ensure!(x.ndim() == 1, "x must be 1-D, got {:?}", x.shape());
    ensure!(minlength >= 0, "minlength must not be negative, got {minlength}");
    if !x.dtype().is_int() {
        return Err(Error::dtype(format!("x must hold integers, got {}", x.dtype())));
    }
    ensure!(weights.is_none_or(|w| w.shape() == x.shape()), "weights must have the shape of x");
    let x = x.in_dtype(DType::Int64)?.in_rows()?;
    let data = x.data::<i64>();
    let len = bincount_len(data.slice(), minlength as usize)
        .map_err(|e| Error::invalid(format!("x must not be negative, but x[{}] is {}", e.position, e.value)))?;
    ensure!(len <= 1 << 31, "x holds {}, and counts up to that would not fit in memory", len - 1);
    let dtype = match weights {
        None => DType::Int64,
        Some(w) if w.dtype() == DType::Float32 => DType::Float32,
        Some(_) => DType::Float64,
    };
    let out = cx.out([len], dtype)?;
    match weights {
        None => bincount_kernel(data.slice(), None, out.values_mut().slice()),
        Some(w) => {
            let w = w.in_dtype(DType::Float64)?.in_rows()?;
            bincount_kernel(data.slice(), Some(w.data::<f64>().slice()), out.values_mut().slice());
        }
    }
    Ok(out)
}

fn histogram_samples() -> Vec<Sample> {
    let x = || values(vec![1.0f32, 2.0, 1.0, 5.0], [4]);
    vec![
        sample![x(), 4],
        sample![x(), 4; max = 3.0],
        sample![x(), 4; max = 3.0, weight = positive([4])],
        sample![x(), 4; max = 5.0, density = true],
        sample![x(), 4; max = 5.0, density = true, weight = positive([4])],
        sample![ints([2, 5], 0, 9), 3; min = 1.0, max = 7.0],
        sample![values(vec![1.0f32, 1.0], [2]), 4],
        sample![randn([0, 3]), 4],
    ]
}
fn edges_samples() -> Vec<Sample> {
    vec![
        sample![values(vec![1.0f32, 2.0, 1.0, 5.0], [4]), 4],
        sample![values(vec![1.0f32, 2.0], [2]), 4; max = 3.0],
        sample![values(vec![1i64, 2, 1], [3]), 2],
        sample![values(vec![1.0f32, 1.0], [2]), 2],
    ]
}
fn dd_samples() -> Vec<Sample> {
    let x = || values(vec![0.0f32, 1.0, 1.0, 0.0, 2.0, 0.0, 2.0, 2.0], [4, 2]);
    let cuts = || vec![values(vec![0.0f32, 1.0, 3.0], [3]), values(vec![0.0f32, 1.5, 2.0], [3])];
    vec![
        sample![x(), [3, 3]],
        sample![x(), 2; ranges = [0.0, 1.0, 0.0, 1.0]],
        sample![x(), 2; density = true],
        sample![x(), cuts(); weights = positive([4])],
        sample![randn([2, 3, 2]), 2],
    ]
}
fn bincount_samples() -> Vec<Sample> {
    vec![
        sample![ints([9], 0, 5)],
        sample![ints([5], 0, 4); weights = positive([5])],
        sample![ints([5], 0, 4); weights = ints([5], 0, 9)],
        sample![ints([4], 0, 3); minlength = 6],
        sample![ints([0], 0, 3); minlength = 2],
    ]
}
