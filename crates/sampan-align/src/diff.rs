//! How much two tensors differ, and how much they may.

use crate::recording::numbers;
use sampan_core::{DType, Tensor};
use serde::Serialize;

/// The difference of two tensors.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diff {
    /// Mean of the absolute differences.
    pub mean: f64,
    /// The greatest absolute difference.
    pub max: f64,
    /// The least.
    pub min: f64,
    /// The greatest, relative to the greatest value of the reference.
    pub relative: f64,
    /// Is it more than rounding explains?
    pub differs: bool,
    /// What keeps the tensors from being compared, or how they were brought into one form.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// Relative difference that one operation of a dtype may have; a chain of them has more.
pub fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-9,
        DType::Float16 => 5e-3,
        DType::BFloat16 => 4e-2,
        _ => 5e-5,
    }
}

/// Tolerance after a number of layers.
pub fn tolerance(a: DType, b: DType, depth: usize, asked: Option<f64>) -> f64 {
    asked.unwrap_or_else(|| rounding(a).max(rounding(b)) * (1.0 + depth as f64).sqrt())
}

/// All orders of the axes.
fn orders(n: usize) -> Vec<Vec<i64>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for rest in orders(n - 1) {
        for at in 0..=rest.len() {
            let mut order = rest.clone();
            order.insert(at, n as i64 - 1);
            found.push(order);
        }
    }
    found
}

/// The candidate's tensor in the reference's shape, if it holds the same elements under other axes.
fn same_form(a: &Tensor, b: &Tensor, limit: f64) -> Option<(Tensor, String)> {
    if a.shape() == b.shape() {
        return Some((b.clone(), String::new()));
    }
    let without_ones = |t: &Tensor| t.shape().iter().copied().filter(|&d| d != 1).collect::<Vec<_>>();
    let target: Vec<i64> = a.shape().iter().map(|&d| d as i64).collect();
    if without_ones(a) == without_ones(b) {
        return Some((b.try_reshape(target).ok()?, String::new()));
    }
    if a.numel() != b.numel() || a.ndim() != b.ndim() || a.ndim() > 4 {
        return None;
    }
    // Images with channels last, sequences with the batch second: only if the values agree is it that.
    for order in orders(a.ndim()) {
        let Ok(turned) = b.try_transpose(order.clone()) else { continue };
        if turned.shape() == a.shape() && !values(a, &turned, limit).differs {
            return Some((turned, format!("axes in the order {order:?}")));
        }
    }
    None
}

fn values(a: &Tensor, b: &Tensor, limit: f64) -> Diff {
    // A real number is a complex one without its second part.
    let complex = a.dtype().is_complex() || b.dtype().is_complex();
    let parts = |t: &Tensor| match (complex, t.dtype().is_complex()) {
        (false, _) => numbers(t),
        (true, true) => numbers(&t.try_as_real().ok()?),
        (true, false) => Some(numbers(t)?.into_iter().flat_map(|x| [x, 0.0]).collect()),
    };
    match (parts(a), parts(b)) {
        (Some(x), Some(y)) => exact(a, b).unwrap_or_else(|| slices(&x, &y, limit)),
        _ => Diff { differs: true, remark: "the values cannot be read as numbers".into(), ..Diff::default() },
    }
}

/// Integers that are not the same but become so as floats; `None` if there are no such.
fn exact(a: &Tensor, b: &Tensor) -> Option<Diff> {
    if a.dtype() != DType::Int64 || b.dtype() != DType::Int64 {
        return None;
    }
    let (x, y) = (a.try_to_vec::<i64>().ok()?, b.try_to_vec::<i64>().ok()?);
    let apart = |(p, q): (&i64, &i64)| (p != q && *p as f64 == *q as f64).then(|| p.abs_diff(*q));
    let max = x.iter().zip(&y).filter_map(apart).max()? as f64;
    let scale = x.iter().map(|v| v.unsigned_abs()).max()?.max(1) as f64;
    Some(Diff { mean: max / x.len() as f64, max, relative: max / scale, differs: true, ..Diff::default() })
}

/// What is said of a number that only one side has.
pub(crate) const ONE_NAN: &str = "NaN on one side alone";

/// The difference of two rows of numbers of one length.
pub(crate) fn slices(x: &[f64], y: &[f64], limit: f64) -> Diff {
    let bad = |v: &[f64]| v.iter().filter(|x| x.is_nan()).count();
    let (nan_x, nan_y) = (bad(x), bad(y));
    let (mut sum, mut max, mut min, mut scale) = (0.0f64, 0.0f64, f64::INFINITY, 0.0f64);
    let mut infinite = false;
    let mut same_nan = nan_x == nan_y;
    for (&p, &q) in x.iter().zip(y) {
        if p.is_nan() || q.is_nan() {
            same_nan &= p.is_nan() && q.is_nan();
            continue;
        }
        let d = if p == q { 0.0 } else { (p - q).abs() };
        infinite |= d.is_infinite();
        sum += d;
        max = max.max(d);
        min = min.min(d);
        if p.is_finite() {
            scale = scale.max(p.abs());
        }
    }
    let n = x.len().max(1) as f64;
    let relative = if nan_x != nan_y || !same_nan {
        f64::INFINITY
    } else if max == 0.0 {
        0.0
    } else {
        max / scale.max(1e-12)
    };
    let mut remark = String::new();
    if nan_x != nan_y {
        remark = format!("{nan_x} NaN in the reference, {nan_y} in the candidate");
    } else if infinite {
        remark = "one side is infinite where the other is not".into();
    }
    let differs = !same_nan || infinite || (relative > limit && max > 1e-9);
    Diff { mean: sum / n, max, min: if min.is_finite() { min } else { 0.0 }, relative, differs, remark }
}

/// Compares two tensors; `limit` is the relative difference that is still equal.
pub fn diff(a: &Tensor, b: &Tensor, limit: f64) -> Diff {
    match same_form(a, b, limit) {
        Some((b, remark)) => {
            let mut d = values(a, &b, limit);
            if !remark.is_empty() {
                d.remark = remark;
            }
            d
        }
        None => Diff {
            mean: f64::INFINITY,
            max: f64::INFINITY,
            min: f64::INFINITY,
            relative: f64::INFINITY,
            differs: true,
            remark: format!("shapes {:?} and {:?}", a.shape(), b.shape()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_no_difference_and_nan_on_one_side_is() {
        let a = Tensor::new([1.0f32, 2.0, 3.0]);
        assert!(!diff(&a, &Tensor::new([1.0f32, 2.0, 3.00001]), 5e-5).differs);
        let d = diff(&a, &Tensor::new([1.0f32, f32::NAN, 3.0]), 5e-5);
        assert!(d.differs && d.remark.contains("1 in the candidate"), "{d:?}");
        assert!(diff(&a, &Tensor::new([1.0f32, 2.0]), 5e-5).remark.contains("shapes"));
    }

    #[test]
    fn other_axes_are_the_same_tensor_only_if_the_values_are() {
        let a = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let d = diff(&a, &a.t(), 5e-5);
        assert!(!d.differs && d.remark.contains("axes"), "{d:?}");
        assert!(diff(&a, &(a.t() * 2.0f32), 5e-5).differs);
    }
}
