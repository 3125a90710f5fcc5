//! What turns one tensor into the other: a factor, another order, a missing activation, a mask.

use crate::diff::slices;
use crate::recording::numbers;
use sampan_core::{DType, Tensor};

/// A relation that explains how the candidate's values come from the reference's.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// A word of the catalogue.
    pub cause: &'static str,
    /// The relation in words.
    pub sentence: String,
}

fn relation(cause: &'static str, sentence: impl Into<String>) -> Option<Relation> {
    Some(Relation { cause, sentence: sentence.into() })
}

const LIMIT: f64 = 2e-4;

fn same(x: &[f64], y: &[f64]) -> bool {
    x.len() == y.len() && !slices(x, y, LIMIT).differs
}

/// The activations that may be missing or stand for each other.
const ACTIVATIONS: &[(&str, fn(f64) -> f64)] = &[
    ("relu", |x| x.max(0.0)),
    ("relu6", |x| x.clamp(0.0, 6.0)),
    ("hardswish", |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
    ("hardsigmoid", |x| (x + 3.0).clamp(0.0, 6.0) / 6.0),
    ("silu", |x| x / (1.0 + (-x).exp())),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
    ("tanh", f64::tanh),
    ("gelu", |x| x * 0.5 * (1.0 + erf(x / std::f64::consts::SQRT_2))),
    ("gelu (tanh)", |x| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())),
    ("exp", f64::exp),
    ("leaky_relu", |x| if x < 0.0 { 0.01 * x } else { x }),
];

/// Abramowitz and Stegun 7.1.26 is too coarse here; a series and a continued fraction have all digits.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 6.0 {
        return x.signum();
    }
    let mut term = a;
    let mut sum = a;
    for n in 1..200 {
        term *= -a * a / n as f64;
        let part = term / (2 * n + 1) as f64;
        sum += part;
        if part.abs() < 1e-17 {
            break;
        }
    }
    (sum * 2.0 / std::f64::consts::PI.sqrt()).clamp(-1.0, 1.0) * x.signum()
}

/// How values along one axis of a tensor lie in memory: outer count, length of the axis, inner count.
fn axis_layout(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The values with position `i` of an axis taken from `from(i)`.
fn along(v: &[f64], shape: &[usize], axis: usize, from: impl Fn(usize) -> usize) -> Vec<f64> {
    let (outer, n, inner) = axis_layout(shape, axis);
    let mut out = vec![0.0; v.len()];
    for o in 0..outer {
        for i in 0..n {
            let (to, at) = ((o * n + i) * inner, (o * n + from(i)) * inner);
            out[to..to + inner].copy_from_slice(&v[at..at + inner]);
        }
    }
    out
}

fn permuted(shape: &[usize], x: &[f64], y: &[f64]) -> Option<Relation> {
    for axis in 0..shape.len() {
        let n = shape[axis];
        if !(2..=4096).contains(&n) {
            continue;
        }
        if same(&along(x, shape, axis, |i| n - 1 - i), y) {
            let cause = if n == 3 || n == 4 { "channel_order" } else { "reversed" };
            return relation(cause, format!("axis {axis} runs backwards in the candidate ({n} entries)"));
        }
        for (by, word) in [(1, "ahead"), (n - 1, "behind")] {
            // The entry that is shifted in from outside may hold anything.
            let moved = along(x, shape, axis, |i| (i + by) % n);
            let (outer, _, inner) = axis_layout(shape, axis);
            let edge = if by == 1 { n - 1 } else { 0 };
            let inside = |v: &[f64]| -> Vec<f64> {
                (0..outer)
                    .flat_map(|o| (0..n).filter(move |i| *i != edge).map(move |i| (o * n + i) * inner))
                    .flat_map(|at| v[at..at + inner].to_vec())
                    .collect()
            };
            if n > 2 && same(&inside(&moved), &inside(y)) {
                return relation("off_by_one", format!("axis {axis} is one {word} in the candidate"));
            }
        }
    }
    None
}

/// The same elements in another order.
fn reordered(shape: &[usize], x: &[f64], y: &[f64]) -> Option<Relation> {
    let sorted = |v: &[f64]| {
        let mut s = v.to_vec();
        s.sort_by(f64::total_cmp);
        s
    };
    if !same(&sorted(x), &sorted(y)) {
        return None;
    }
    if shape.len() > 1 && shape[0] > 1 {
        let row = x.len() / shape[0];
        let rows = |v: &[f64]| -> Vec<Vec<f64>> { v.chunks(row).map(&sorted).collect() };
        let (p, q) = (rows(x), rows(y));
        if !p.iter().zip(&q).all(|(a, b)| same(a, b)) {
            return relation("sample_order", "the candidate has the same values in another order of the samples");
        }
    }
    relation(
        "element_order",
        "the candidate has the same elements in another order: axes are moved or flattened otherwise",
    )
}

/// `y = s · x + t` for all elements, or with a pair for each entry of an axis.
fn affine(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let n = x.len() as f64;
    if x.len() < 2 {
        return None;
    }
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let var: f64 = x.iter().map(|v| (v - mx).powi(2)).sum();
    if var <= 1e-18 {
        return None;
    }
    let s = x.iter().zip(y).map(|(a, b)| (a - mx) * (b - my)).sum::<f64>() / var;
    let t = my - s * mx;
    let fitted: Vec<f64> = x.iter().map(|v| s * v + t).collect();
    (same(y, &fitted) && s.abs() > 1e-9).then_some((s, t))
}

fn number(x: f64) -> String {
    let root = x * x;
    let inverse = 1.0 / x;
    if (x - x.round()).abs() < 1e-4 * x.abs() {
        format!("{}", x.round())
    } else if (inverse - inverse.round()).abs() < 1e-3 {
        format!("1/{}", inverse.round())
    } else if (1.0 / root - (1.0 / root).round()).abs() < 1e-2 && root < 1.0 {
        format!("1/√{}", (1.0 / root).round())
    } else if (root - root.round()).abs() < 1e-2 && root > 1.0 {
        format!("√{}", root.round())
    } else {
        format!("{x:.6}")
    }
}

/// One number everywhere on both sides, as in what a mask is made of.
fn constants(x: &[f64], y: &[f64]) -> Option<Relation> {
    let (&p, &q) = (x.first()?, y.first()?);
    if x.iter().any(|v| *v != p) || y.iter().any(|v| *v != q) {
        return None;
    }
    if p == -q {
        return relation("sign", format!("it is {q} everywhere instead of {p}: the sign is the opposite"));
    }
    relation("constant", format!("it is {q} everywhere instead of {p}"))
}

fn scaled(shape: &[usize], x: &[f64], y: &[f64]) -> Option<Relation> {
    if let Some((s, t)) = affine(x, y) {
        let scale = x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if t.abs() <= LIMIT * scale.max(1e-12) * s.abs() {
            if (s + 1.0).abs() < 1e-4 {
                return relation("sign", "the candidate has the opposite sign");
            }
            return relation("scale", format!("the candidate is {} times the reference", number(s)));
        }
        if (s - 1.0).abs() < 1e-4 {
            return relation("shift", format!("the candidate is the reference plus {}", number(t)));
        }
        return relation("affine", format!("the candidate is {} × the reference + {}", number(s), number(t)));
    }
    for axis in (0..shape.len()).filter(|&a| shape.len() > 1 && (2..=4096).contains(&shape[a])) {
        let (outer, n, inner) = axis_layout(shape, axis);
        if outer * inner < 3 {
            continue;
        }
        let one = |v: &[f64], i: usize| -> Vec<f64> {
            (0..outer).flat_map(|o| v[(o * n + i) * inner..(o * n + i + 1) * inner].to_vec()).collect()
        };
        let fits: Option<Vec<_>> = (0..n.min(64)).map(|i| affine(&one(x, i), &one(y, i))).collect();
        if let Some(f) = fits {
            let shown: Vec<String> = f.iter().take(3).map(|(s, t)| format!("{s:.4}·x {t:+.4}")).collect();
            let cause = if n <= 4 { "normalisation_constants" } else { "channel_affine" };
            return relation(
                cause,
                format!("each entry of axis {axis} is scaled and shifted on its own: {}", shown.join(", ")),
            );
        }
    }
    None
}

/// Colours in the opposite order, each scaled and shifted by constants that stayed where they were.
fn recoloured(shape: &[usize], x: &[f64], y: &[f64]) -> Option<Relation> {
    (0..shape.len()).filter(|&axis| shape[axis] == 3).find_map(|axis| {
        let flipped = along(x, shape, axis, |i| 2 - i);
        scaled(shape, &flipped, y)?;
        relation("channel_order", format!("axis {axis} runs backwards in the candidate, and each entry is scaled and shifted as the other order has it"))
    })
}

fn activated(x: &[f64], y: &[f64]) -> Option<Relation> {
    for (name, f) in ACTIVATIONS {
        let applied = |v: &[f64]| v.iter().map(|&x| f(x)).collect::<Vec<_>>();
        if same(&applied(y), x) {
            return relation(
                "activation_missing",
                format!("the reference is {name} of the candidate: {name} is missing there"),
            );
        }
        if same(y, &applied(x)) {
            return relation(
                "activation_extra",
                format!("the candidate is {name} of the reference: one {name} too many"),
            );
        }
    }
    None
}

fn masked(x: &[f64], y: &[f64]) -> Option<Relation> {
    let zeros = y.iter().zip(x).filter(|(y, x)| **y == 0.0 && **x != 0.0).count();
    let alive: Vec<(f64, f64)> =
        x.iter().zip(y).filter(|(x, y)| **y != 0.0 && x.abs() > 1e-12).map(|(x, y)| (*x, *y)).collect();
    if zeros == 0 || alive.len() < 4 || x.len() < 16 {
        return None;
    }
    let share = zeros as f64 / x.iter().filter(|v| **v != 0.0).count().max(1) as f64;
    let ratio = alive[0].1 / alive[0].0;
    if alive.iter().all(|(x, y)| (y / x - ratio).abs() < 1e-3 * ratio.abs())
        && (ratio - 1.0 / (1.0 - share)).abs() < 0.35
    {
        return relation(
            "dropout_active",
            format!(
                "{:.0} % of the candidate's values are zero and the others {} times as large: dropout is at work",
                share * 100.0,
                number(ratio)
            ),
        );
    }
    None
}

fn rounded(x: &Tensor, y: &Tensor, v: &[f64], w: &[f64]) -> Option<Relation> {
    let d = slices(v, w, LIMIT);
    if !d.remark.is_empty() || d.relative > 3e-2 {
        return None;
    }
    for (dtype, word) in [(DType::Float16, "float16"), (DType::BFloat16, "bfloat16")] {
        let exact = |t: &Tensor, v: &[f64]| {
            let through = t.try_cast(dtype).ok().and_then(|t| numbers(&t));
            through.is_some_and(|r| r.iter().zip(v).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())))
        };
        if exact(y, w) && !exact(x, v) {
            return relation("half_precision", format!("the candidate's values are those of {word}"));
        }
    }
    None
}

/// Finds what turns `x`, the reference's, into `y`, the candidate's.
pub fn explain(x: &Tensor, y: &Tensor) -> Option<Relation> {
    let (v, w) = (numbers(x)?, numbers(y)?);
    if x.shape() != y.shape() {
        if x.numel() != y.numel() {
            return None;
        }
        return reordered(&[], &v, &w).map(|r| Relation {
            cause: "axis_order",
            sentence: format!("{} (shapes {:?} and {:?})", r.sentence, x.shape(), y.shape()),
        });
    }
    let (nx, ny) = (v.iter().any(|x| x.is_nan()), w.iter().any(|x| x.is_nan()));
    if nx != ny {
        let side = if ny { "candidate" } else { "reference" };
        return relation("not_finite", format!("the {side} has NaN where the other side has numbers"));
    }
    if same(&v, &w) {
        return None;
    }
    if w.iter().all(|y| *y == 0.0) {
        return relation("zero", "the candidate is zero everywhere");
    }
    rounded(x, y, &v, &w)
        .or_else(|| permuted(x.shape(), &v, &w))
        .or_else(|| masked(&v, &w))
        .or_else(|| constants(&v, &w))
        .or_else(|| scaled(x.shape(), &v, &w))
        .or_else(|| recoloured(x.shape(), &v, &w))
        .or_else(|| activated(&v, &w))
        .or_else(|| reordered(x.shape(), &v, &w))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        let v: Vec<f32> = (0..n).map(|i| ((i * i) as f32 * 0.37).sin() * 3.0 + 0.1).collect();
        Tensor::new(v).reshape(shape.iter().map(|&d| d as i64).collect::<Vec<_>>())
    }

    #[test]
    fn relations_are_found() {
        let x = wave(&[2, 3, 4, 4]);
        let cases = [
            (x.clone() * 0.125f32, "scale"),
            (-x.clone(), "sign"),
            (x.flip(1), "channel_order"),
            (x.flip(1) * Tensor::new([[[1.0f32]], [[2.0]], [[0.5]]]) + 0.25f32, "channel_order"),
            (x.transpose([0, 1, 3, 2]), "element_order"),
            (x.sigmoid(), "activation_extra"),
            (x.cast(DType::Float16).cast(DType::Float32), "half_precision"),
        ];
        for (y, want) in cases {
            assert_eq!(explain(&x, &y).map(|r| r.cause), Some(want));
        }
        assert_eq!(explain(&x.relu(), &x).map(|r| r.cause), Some("activation_missing"));
        assert_eq!(explain(&x, &x), None);
        let full = |value: f32| Tensor::full([3, 3], value, DType::Float32);
        assert_eq!(explain(&full(-1e9), &full(1e9)).map(|r| r.cause), Some("sign"));
    }

    #[test]
    fn erf_is_exact() {
        assert!(
            (erf(0.5) - 0.520_499_877_813_046_5).abs() < 1e-15 && (erf(-2.0) + 0.995_322_265_018_952_7).abs() < 1e-12
        );
    }
}
