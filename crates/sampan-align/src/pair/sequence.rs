//! Alignment of two sequences of units: the best-scoring way to walk both in order, leaving out what has no partner.

use super::corrections::Corrections;
use super::units::Unit;
use crate::kinds;
use std::collections::HashSet;

pub(crate) struct Match {
    pub a: usize,
    pub b: usize,
    pub moved: bool,
    /// From 0 to 1.
    pub fit: f64,
}

/// The best score that two units can have.
const BEST: f64 = 12.0;

/// What two names have in common, from 0 to 1.
pub(crate) fn name_likeness(a: &str, b: &str) -> f64 {
    fn words(name: &str) -> Vec<String> {
        let word = |w: &str| match w {
            "downsample" | "shortcut" => "shortcut".to_string(),
            "norm" | "bn" => "bn".to_string(),
            "fc" | "linear" | "head" | "classifier" => "fc".to_string(),
            w => w.trim_end_matches('s').to_string(),
        };
        let name = name.split('@').next().unwrap_or(name).to_lowercase();
        let split = name.split(['.', '_', '/']).filter(|w| !w.is_empty());
        // `conv1` is `conv` and `1`.
        split
            .flat_map(|w| {
                let at = w.find(|c: char| c.is_ascii_digit()).unwrap_or(w.len());
                [&w[..at], &w[at..]].into_iter().filter(|p| !p.is_empty()).map(word).collect::<Vec<_>>()
            })
            .collect()
    }
    if a == b {
        return 1.0;
    }
    let (x, y) = (words(a), words(b));
    if x.is_empty() || y.is_empty() {
        return 0.0;
    }
    let mut rest = y.clone();
    let common = x.iter().filter(|w| rest.iter().position(|r| r == *w).map(|i| rest.remove(i)).is_some()).count();
    0.95 * (2 * common) as f64 / (x.len() + y.len()) as f64
}

fn close(a: &[f64; 4], b: &[f64; 4]) -> bool {
    let size = a[1].abs().max(b[1].abs()).max(a[0].abs()).max(1e-12);
    a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-3 * size || (x.is_nan() && y.is_nan()))
}

/// How well two units fit; less than zero: not at all.
fn score(a: &Unit, b: &Unit, corrections: &Corrections) -> f64 {
    if a.is_layer
        && let Some(wanted) = corrections.candidate(&a.layer)
    {
        return if b.is_layer && wanted.as_deref() == Some(&b.layer) { 4.0 * BEST } else { -BEST };
    }
    if b.is_layer && corrections.reference(&b.layer).is_some() {
        return -BEST;
    }
    if let Some(Some(wanted)) = corrections.candidate(&a.key) {
        return if wanted == b.key { 4.0 * BEST } else { -BEST };
    }
    // A mask in the making is no factor of the scores.
    if a.constant != b.constant && !kinds::is_glue(&a.kind) {
        return -BEST;
    }
    let unknown = |k: &str| matches!(k, "" | "matrix" | "norm" | "rnn");
    // Of another size, with other weights and another name: it belongs to a block that only one side has.
    let foreign =
        !a.output.is_empty() && a.output != b.output && !a.parameters.iter().any(|p| b.parameters.contains(p));
    if foreign && !kinds::is_glue(&a.kind) && name_likeness(&a.key, &b.key) < 0.5 {
        return -BEST;
    }
    let mut points = match (a.kind == b.kind, kinds::related(&a.kind, &b.kind)) {
        (true, _) if kinds::is_glue(&a.kind) => 1.0,
        (true, _) => 4.0,
        // A quotient is a product written otherwise; of another shape it is something else.
        (_, true) if kinds::is_arithmetic(&a.kind) && a.output != b.output => return -BEST,
        (_, true) if kinds::same_arithmetic(&a.kind, &b.kind) => 3.0,
        (_, true) => 2.0,
        _ if unknown(&a.kind) || unknown(&b.kind) => 1.0,
        // Layers of other classes with the same parameters: a linear layer for a convolution of 1 × 1.
        _ if !a.parameters.is_empty() && a.parameters == b.parameters => 0.5,
        _ => return -BEST,
    };
    if !a.parameters.is_empty() || !b.parameters.is_empty() {
        points += match a.parameters == b.parameters {
            true => 3.0,
            // One bias more or less, buffers that one side does not keep.
            false if a.parameters.iter().any(|p| b.parameters.contains(p)) => 1.0,
            false if a.kind == "mha" && b.kind == "mha" => 2.0,
            false if a.kind == b.kind => -1.0,
            false => -3.0,
        };
    }
    let glue = kinds::is_glue(&a.kind);
    if !a.output.is_empty() || !b.output.is_empty() {
        points += if a.output == b.output { 1.0 } else { -0.5 };
    }
    if let (Some(x), Some(y)) = (&a.stats, &b.stats) {
        points += if close(x, y) { if glue { 0.5 } else { 2.0 } } else { 0.0 };
    }
    points += name_likeness(&a.key, &b.key) * if glue { 0.5 } else { 2.0 };
    if a.is_layer && b.is_layer && a.layer == b.layer {
        points += 1.0;
    }
    points
}

fn gap(unit: &Unit) -> f64 {
    if kinds::is_glue(&unit.kind) { 0.0 } else { -0.5 }
}

/// Pairs in order, then those that are left over and stand elsewhere.
pub(crate) fn match_units(a: &[Unit], b: &[Unit], corrections: &Corrections) -> Vec<Match> {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return Vec::new();
    }
    let width = m + 1;
    let mut best = vec![0.0f64; (n + 1) * width];
    let mut scores = vec![0.0f32; n * m];
    for i in 0..n {
        for j in 0..m {
            scores[i * m + j] = score(&a[i], &b[j], corrections) as f32;
        }
    }
    for i in 1..=n {
        best[i * width] = best[(i - 1) * width] + gap(&a[i - 1]);
    }
    for j in 1..=m {
        best[j] = best[j - 1] + gap(&b[j - 1]);
    }
    for i in 1..=n {
        for j in 1..=m {
            let pair = best[(i - 1) * width + j - 1] + f64::from(scores[(i - 1) * m + j - 1]);
            let skip_a = best[(i - 1) * width + j] + gap(&a[i - 1]);
            let skip_b = best[i * width + j - 1] + gap(&b[j - 1]);
            best[i * width + j] = pair.max(skip_a).max(skip_b);
        }
    }
    let mut found = Vec::new();
    let (mut i, mut j) = (n, m);
    while i > 0 && j > 0 {
        let here = best[i * width + j];
        let points = f64::from(scores[(i - 1) * m + j - 1]);
        if here == best[(i - 1) * width + j - 1] + points && points > 0.0 {
            found.push(Match { a: i - 1, b: j - 1, moved: false, fit: (points / BEST).clamp(0.0, 1.0) });
            (i, j) = (i - 1, j - 1);
        } else if here == best[(i - 1) * width + j] + gap(&a[i - 1]) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    found.reverse();
    moved(a, b, &scores, &mut found);
    found
}

/// What is left on both sides and fits well runs in another order.
fn moved(a: &[Unit], b: &[Unit], scores: &[f32], found: &mut Vec<Match>) {
    let m = b.len();
    let (used_a, used_b): (HashSet<usize>, HashSet<usize>) = found.iter().map(|f| (f.a, f.b)).unzip();
    let left = |used: &HashSet<usize>, units: &[Unit]| -> Vec<usize> {
        (0..units.len()).filter(|i| !used.contains(i) && !kinds::is_glue(&units[*i].kind)).collect()
    };
    let (left_a, left_b) = (left(&used_a, a), left(&used_b, b));
    let mut candidates: Vec<(f32, usize, usize)> = Vec::new();
    for &i in &left_a {
        for &j in &left_b {
            let s = scores[i * m + j];
            // A function has no weights that would tell it apart: only the same one in the same layer is the same.
            let sure = if a[i].parameters.is_empty() {
                a[i].kind == b[j].kind && name_likeness(&a[i].key, &b[j].key) > 0.6 && a[i].is_layer && b[j].is_layer
            } else {
                s >= 4.0
            };
            if sure && s > 0.0 {
                candidates.push((s, i, j));
            }
        }
    }
    candidates.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)).then(x.2.cmp(&y.2)));
    let (mut used_a, mut used_b) = (HashSet::new(), HashSet::new());
    for (s, i, j) in candidates {
        if !used_a.contains(&i) && !used_b.contains(&j) {
            used_a.insert(i);
            used_b.insert(j);
            found.push(Match { a: i, b: j, moved: true, fit: (f64::from(s) / BEST).clamp(0.0, 1.0) });
        }
    }
}
