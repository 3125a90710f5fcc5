//! Running statistics of batch normalisation after a step.

use super::is_buffer;
use super::updates::Step;
use crate::compare::{Context, Finding, Report};
use crate::settings;

/// Names the layers whose statistics move otherwise.
pub(super) fn compare(cx: &Context<'_>, all: &[Step], report: &mut Report) {
    let mut noted = false;
    let inherited = report.findings.iter().any(|f| f.visible && f.check == "forward");
    for s in all.iter().filter(|s| is_buffer(cx, &s.pair.candidate)) {
        if !s.differs(false) || s.ours < 1e-9 {
            continue;
        }
        let variance = s.pair.candidate.ends_with("_variance") || s.pair.candidate.ends_with("running_var");
        let (x, y) = (cx.a.structure.layer(&s.pair.reference_layer), cx.b.structure.layer(&s.pair.candidate_layer));
        let set = x.zip(y).and_then(|(x, y)| {
            let all = settings::differences(("batch_norm", "batch_norm"), cx.sides(), (&x.config, &y.config), 4);
            all.into_iter().find(|d| d.cause == "bn_momentum")
        });
        // After a fault before it, a layer sees other values.
        if set.is_none() && inherited {
            continue;
        }
        if set.is_none() && variance {
            // PyTorch keeps the variance of a population, n / (n - 1) times that of the batch; Paddle that of the batch.
            if !noted && cx.sides().0 != cx.sides().1 {
                report.notes.push(format!(
                    "{}: PyTorch's running variance is n / (n - 1) times Paddle's; it shows with small batches and is no mistake",
                    s.pair.candidate
                ));
                noted = true;
            }
            continue;
        }
        let sentence = match (&set, s.ratio) {
            (Some(d), _) => format!(
                "its running statistics move otherwise: the share of the new batch is {} in the reference and {} in the candidate; \
                 Paddle's momentum is one minus PyTorch's",
                d.reference, d.candidate
            ),
            (None, Some(k)) => format!("its running statistics move {k:.3} times as fast as the reference's"),
            _ => "its running statistics move otherwise than the reference's".into(),
        };
        if report.findings.iter().any(|f| f.candidate == s.pair.candidate_layer && f.visible) {
            continue;
        }
        report.findings.retain(|f| !(f.candidate == s.pair.candidate_layer && f.cause == "bn_momentum"));
        report.findings.push(Finding {
            check: "optimizer".into(),
            place: "layer".into(),
            reference: s.pair.reference_layer.clone(),
            candidate: s.pair.candidate_layer.clone(),
            cause: if set.is_some() || s.ratio.is_some() { "bn_momentum".into() } else { String::new() },
            sentence: format!("{}: {sentence}", s.pair.candidate_layer),
            certainty: "confirmed".into(),
            visible: true,
            ..Finding::default()
        });
    }
}
