//! Where two sides part, and why.

use crate::{Row, none, recording, row, wave};
use sampan_align::{Check, Options, Recording, Report, Tensors, compare};
use sampan_core::{Tensor, Value};
use serde_json::json;

fn report(a: &Recording, b: &Recording) -> Report {
    compare(a, b, &Options::default()).unwrap()
}

fn linear<'r>(name: &'r str, weight: &Tensor, out_first: bool, output: &Tensor) -> Row<'r> {
    let kept = if out_first { weight.t() } else { weight.clone() };
    Row { parameters: vec![("weight", kept)], ..row(name, "Linear", none(), output) }
}

#[test]
fn two_sides_that_agree_are_aligned() {
    let (x, w) = (wave(&[3, 4]), wave(&[4, 4]));
    let y = x.matmul(&w);
    let side = |name: &str, first| {
        recording(name, &x, &[linear("fc", &w, first, &y), row("act", "GELU", none(), &y.gelu(false))])
    };
    let r = report(&side("torch", true), &side("sampan", false));
    assert!(r.ok, "{}", r.text());
    assert!(r.checks.iter().any(|c| c.check == Check::Forward && c.ok));
}

#[test]
fn a_weight_that_was_not_transposed_is_named() {
    let (x, w) = (wave(&[3, 4]), wave(&[4, 4]));
    let (y, z) = (x.matmul(&w), x.matmul(&w.t()));
    let a = recording("torch", &x, &[linear("fc", &w, true, &y), row("act", "GELU", none(), &y.gelu(false))]);
    let b = recording("sampan", &x, &[linear("head", &w.t(), false, &z), row("act", "GELU", none(), &z.gelu(false))]);
    let r = report(&a, &b);
    assert_eq!(r.first_forward.as_deref(), Some("head"));
    assert_eq!(r.findings[0].cause, "linear_transposed", "{}", r.text());
    assert_eq!(r.findings.len(), 1, "what follows is inherited: {}", r.text());
}

#[test]
fn a_setting_that_explains_the_numbers_is_confirmed() {
    let x = wave(&[1, 1, 6, 6]);
    let pool = |exclusive: bool| {
        let op = sampan_core::op::find("avg_pool2d").unwrap();
        let named = vec![
            ("x", Value::Tensor(x.clone())),
            ("kernel_size", Value::Int(3)),
            ("stride", Value::Int(2)),
            ("padding", Value::Int(1)),
            ("exclusive", Value::Bool(exclusive)),
        ];
        let args = op.bind(Vec::new(), named).unwrap();
        sampan_core::dispatch::dispatch(op, args).unwrap().into_iter().next().unwrap()
    };
    let a = recording(
        "torch",
        &x,
        &[row("pool", "AvgPool2d", json!({"kernel_size": 3, "stride": 2, "padding": 1}), &pool(false))],
    );
    let b = recording(
        "paddle",
        &x,
        &[row(
            "pool",
            "AvgPool2D",
            json!({"kernel_size": 3, "stride": 2, "padding": 1, "exclusive": true}),
            &pool(true),
        )],
    );
    let r = report(&a, &b);
    let f = &r.findings[0];
    assert_eq!((f.cause.as_str(), f.certainty.as_str()), ("avgpool_exclusive", "confirmed"), "{}", r.text());
}

#[test]
fn a_missing_activation_is_found_between_the_layers() {
    let (x, w) = (wave(&[3, 4]), wave(&[4, 4]));
    let y = x.matmul(&w);
    let (p, q) = (y.relu().matmul(&w), y.matmul(&w));
    let a = recording(
        "torch",
        &x,
        &[linear("a", &w, true, &y), row("act", "ReLU", none(), &y.relu()), linear("b", &w, true, &p)],
    );
    let b = recording("sampan", &x, &[linear("a", &w, false, &y), linear("b", &w, false, &q)]);
    let r = report(&a, &b);
    assert_eq!(
        (r.findings[0].cause.as_str(), r.findings[0].place.as_str()),
        ("activation_missing", "between"),
        "{}",
        r.text()
    );
    assert_eq!(r.findings[0].reference, "act");
}

#[test]
fn nan_on_one_side_is_a_sentence() {
    let x = wave(&[3, 4]);
    let bad = x.clone() * f32::NAN;
    let a = recording("torch", &x, &[row("act", "Tanh", none(), &x.tanh())]);
    let b = recording("sampan", &x, &[row("act", "Custom", none(), &bad)]);
    let r = report(&a, &b);
    assert!(!r.ok && r.text().contains("NaN"), "{}", r.text());
    assert!(r.html().contains("NaN"));
}

#[test]
fn files_of_reprod_log_get_its_verdict_and_its_log() {
    let side = |shift: f32| {
        let mut tensors = Tensors::default();
        tensors.insert("logits".into(), wave(&[4, 4]) + shift);
        let mut r = Recording::default();
        r.sections.insert("forward".into(), tensors);
        r
    };
    assert!(report(&side(0.0), &side(0.0)).ok);
    let r = report(&side(0.0), &side(1e-3));
    assert!(!r.ok);
    let log = r.checks[0].log();
    assert!(
        log.contains("root INFO: logits: \n")
            && log.contains("mean diff: check passed: False")
            && log.ends_with("diff check failed\n"),
        "{log}"
    );
    let loose = Options { tolerance: Some(1e-2), ..Options::default() };
    assert!(compare(&side(0.0), &side(1e-3), &loose).unwrap().ok);
}

#[test]
fn a_schedule_that_is_stepped_at_every_batch_is_told_from_one_of_epochs() {
    let side = |rates: &[f64]| {
        let mut r = recording("torch", &wave(&[2]), &[]);
        let mut tensors = Tensors::default();
        rates.iter().enumerate().for_each(|(i, x)| tensors.insert(format!("lr_{i}"), Tensor::new(*x)));
        r.sections.insert("lr".into(), tensors);
        r
    };
    let r = report(&side(&[0.4, 0.4, 0.4, 0.2, 0.2, 0.2]), &side(&[0.4, 0.2, 0.1, 0.05, 0.025, 0.0125]));
    assert_eq!(r.findings[0].cause, "lr_per_epoch_or_step", "{}", r.text());
}

#[test]
fn the_page_is_whole() {
    let x = wave(&[3, 4]);
    let side = |name: &str, y: &Tensor| recording(name, &x, &[row("<act>", "ReLU", none(), y)]);
    let page = report(&side("torch", &x.relu()), &side("sampan", &x.tanh())).html();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("&lt;act&gt;") && page.contains("<svg") && !page.contains("<script"));
}
