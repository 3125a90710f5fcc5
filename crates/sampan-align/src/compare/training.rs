//! Learning rates and losses, step by step.

use super::{Check, CheckResult, Context, Finding, LogRow, Report};
use crate::diff::{Diff, ONE_NAN};
use crate::recording::numbers;
use crate::{Recording, Tensors};

/// Values of a section in the order of their steps.
fn series(side: &Recording, section: &str) -> Vec<f64> {
    let step = |key: &str| key.rsplit('_').next().and_then(|n| n.parse::<usize>().ok());
    let Some(tensors) = side.section(section) else { return Vec::new() };
    let mean = |t: &Tensors, key: &str| {
        let v = t.get(key).and_then(numbers).unwrap_or_default();
        v.iter().sum::<f64>() / v.len().max(1) as f64
    };
    // A file of losses may hold learning rates beside them.
    let own = |key: &str| !key.contains('_') || !key.starts_with("lr") || section == "lr";
    let mut found: Vec<(usize, f64)> = tensors
        .iter()
        .filter(|(k, _)| own(k))
        .enumerate()
        .map(|(i, (k, _))| (step(k).unwrap_or(i), mean(tensors, k)))
        .collect();
    found.sort_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

fn close(x: f64, y: f64, limit: f64) -> bool {
    (x - y).abs() <= limit * x.abs().max(y.abs()) || (x.is_nan() && y.is_nan()) || x == y
}

fn rows(name: &str, x: &[f64], y: &[f64], limit: f64) -> Vec<LogRow> {
    let row = |(i, (x, y)): (usize, (&f64, &f64))| {
        let d = (x - y).abs();
        let diff = Diff {
            mean: d,
            max: d,
            min: d,
            relative: d / x.abs().max(1e-12),
            differs: !close(*x, *y, limit),
            remark: if x.is_nan() == y.is_nan() { String::new() } else { ONE_NAN.into() },
        };
        LogRow { key: format!("{name}_{i}"), diff }
    };
    x.iter().zip(y).enumerate().map(row).collect()
}

/// How one schedule follows from the other.
fn schedule(x: &[f64], y: &[f64]) -> (&'static str, String) {
    let n = x.len().min(y.len());
    let same = |f: &dyn Fn(usize) -> Option<(f64, f64)>| {
        let pairs: Vec<(f64, f64)> = (0..n).filter_map(f).collect();
        pairs.len() >= 2 && pairs.iter().all(|(p, q)| close(*p, *q, 1e-5)) && pairs.iter().any(|p| p.0 != pairs[0].0)
    };
    for k in 2..=n {
        for (fast, slow, words) in [(y, x, ["candidate", "reference"]), (x, y, ["reference", "candidate"])] {
            if same(&|i| slow.get(i * k).map(|p| (*p, fast[i]))) {
                let sentence = format!(
                    "the {}'s schedule runs {k} times as fast as the {}'s: one is stepped at every batch, the other at every epoch",
                    words[0], words[1]
                );
                return ("lr_per_epoch_or_step", sentence);
            }
        }
    }
    let constant = |v: &[f64]| v.iter().all(|a| close(*a, v[0], 1e-6));
    if constant(x) != constant(y) && close(x[0], y[0], 1e-6) {
        let (moves, stays) = if constant(y) { ("reference", "candidate") } else { ("candidate", "reference") };
        let sentence = format!(
            "the {moves}'s learning rate changes from step to step and the {stays}'s does not: one is stepped at every batch, the other at every epoch or never"
        );
        return ("lr_per_epoch_or_step", sentence);
    }
    if same(&|i| Some((*x.get(i + 1)?, y[i]))) {
        return ("lr_off_by_one", "the candidate's schedule is one step ahead".into());
    }
    if same(&|i| Some((x[i], *y.get(i + 1)?))) {
        return ("lr_off_by_one", "the candidate's schedule is one step behind".into());
    }
    let k = y[0] / x[0];
    if (0..n).all(|i| close(y[i], k * x[i], 1e-5)) {
        return ("lr_scaled", format!("every learning rate of the candidate is {k:.6} times the reference's"));
    }
    ("lr_schedule", "the schedules differ".into())
}

/// Where the learning rates part.
pub(crate) fn rates(cx: &Context<'_>, report: &mut Report) {
    report.rates = [series(cx.a, "lr"), series(cx.b, "lr")];
    let [x, y] = &report.rates;
    if !x.is_empty() && !y.is_empty() {
        let first = x.iter().zip(y).position(|(p, q)| !close(*p, *q, 1e-6));
        if let Some(n) = first {
            let (cause, sentence) = schedule(x, y);
            report.findings.push(Finding {
                check: "optimizer".into(),
                place: "learning rate".into(),
                reference: format!("lr_{n}"),
                candidate: format!("lr_{n}"),
                cause: cause.into(),
                sentence: format!("the learning rates part at step {n} ({:.6e} and {:.6e}): {sentence}", x[n], y[n]),
                certainty: "confirmed".into(),
                visible: true,
                ..Finding::default()
            });
        }
    }
    for (side, name) in [(cx.a, "reference"), (cx.b, "candidate")] {
        if let Some(note) = side.structure.notes.iter().find(|n| n.starts_with("the training stopped")) {
            report.findings.push(Finding {
                check: "training".into(),
                place: "training".into(),
                reference: "training".into(),
                candidate: "training".into(),
                cause: "error".into(),
                sentence: format!("the {name} does not get to the end: {note}"),
                certainty: "confirmed".into(),
                visible: true,
                ..Finding::default()
            });
        }
    }
}

/// Where the losses part.
pub(crate) fn losses(cx: &Context<'_>, report: &mut Report, strangers: bool) {
    report.losses = [series(cx.a, "losses"), series(cx.b, "losses")];
    let [x, y] = &report.losses;
    // Losses of `reprod_log` are its check of the way back.
    let plain = cx.a.structure.layers.is_empty();
    if plain || x.is_empty() || y.is_empty() || strangers || cx.random {
        return;
    }
    let limit = cx.asked.unwrap_or(1e-3);
    report.parts_at = x.iter().zip(y).position(|(p, q)| {
        // Nothing is larger than NaN, and it is no rounding either.
        !close(*p, *q, limit) && ((p - q).abs() > 1e-6 || p.is_nan() || q.is_nan())
    });
    let rows = rows("loss", x, y, limit);
    // A setting without effect on the first step, such as a momentum, has one on the later ones.
    if let Some(n) = report.parts_at
        && !report.findings.iter().any(|f| f.visible)
        && let Some(setting) = report.findings.iter_mut().find(|f| f.place == "optimizer")
    {
        setting.visible = true;
        setting.sentence += &format!("; the losses part at step {n}");
    }
    if let Some(n) = report.parts_at
        && !report.findings.iter().any(|f| f.visible)
    {
        report.findings.push(Finding {
            check: "training".into(),
            place: "loss".into(),
            reference: format!("loss_{n}"),
            candidate: format!("loss_{n}"),
            sentence: format!(
                "the losses part at step {n} ({:.6} and {:.6}); `align.bisect` finds the first tensor that differs there",
                x[n], y[n]
            ),
            certainty: "unknown".into(),
            visible: true,
            order: n,
            ..Finding::default()
        });
    }
    report.checks.push(CheckResult { check: Check::Training, ok: report.parts_at.is_none(), rows });
}
