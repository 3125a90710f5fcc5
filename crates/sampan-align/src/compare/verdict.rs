//! What is asked, and what is answered.

use crate::Corrections;
use crate::diff::Diff;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use serde::Serialize;

/// A checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Check {
    Data,
    Forward,
    Metric,
    Loss,
    Backward,
    Optimizer,
    Training,
    Initialisation,
}

impl Check {
    /// All of them, in the order of a reproduction.
    pub const ALL: [Check; 8] = [
        Check::Data,
        Check::Forward,
        Check::Metric,
        Check::Loss,
        Check::Backward,
        Check::Optimizer,
        Check::Training,
        Check::Initialisation,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Check::Data => "data",
            Check::Forward => "forward",
            Check::Metric => "metric",
            Check::Loss => "loss",
            Check::Backward => "backward",
            Check::Optimizer => "optimizer",
            Check::Training => "training",
            Check::Initialisation => "initialisation",
        }
    }
}

/// What to compare, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Pairs that the user decided.
    pub corrections: Corrections,
    /// The checks to do; none means all.
    pub checks: Vec<Check>,
    /// Relative difference that is still equal; by dtype and depth if none is given.
    pub tolerance: Option<f64>,
}

impl Options {
    /// Checks by their names.
    pub fn checks(names: &[String]) -> Result<Vec<Check>> {
        let one = |name: &String| {
            let name = name.trim();
            let spelled = if name == "init" || name == "initialization" { "initialisation" } else { name };
            Check::ALL.into_iter().find(|c| c.name() == spelled).ok_or_else(|| {
                let known: Vec<_> = Check::ALL.iter().map(|c| c.name()).collect();
                Error::new(Kind::InvalidArgument, format!("there is no check {name:?}"))
                    .hint(format!("known are {}", known.join(", ")))
                    .in_op("align")
            })
        };
        names.iter().map(one).collect()
    }

    pub(crate) fn wants(&self, check: Check) -> bool {
        self.checks.is_empty() || self.checks.contains(&check)
    }
}

/// One difference: where it is, and why.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// The check that found it.
    pub check: String,
    /// `layer`, `function`, `between`, `data`, `loss`, `optimizer`, `learning rate`, `metric`, `initialisation`, `weights`.
    #[serde(rename = "where")]
    pub place: String,
    /// The layer or call of the reference.
    pub reference: String,
    /// The layer or call of the candidate.
    pub candidate: String,
    /// A word of the catalogue; empty if the cause is not known.
    pub cause: String,
    /// One sentence.
    pub sentence: String,
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// `confirmed`, `likely` or `unknown`.
    pub certainty: String,
    /// Does it show in the numbers of this run, or only in the settings?
    pub visible: bool,
    /// Settings, input and output of both sides: what, the reference's, the candidate's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<[String; 3]>,
    /// Its place in the order of execution.
    #[serde(skip)]
    pub order: usize,
    /// Kinds of calls between the layers that only the reference makes, and only the candidate.
    #[serde(skip)]
    pub lost: [Vec<String>; 2],
}

/// A tensor of both sides, as `reprod_log` lists them.
#[derive(Clone, Debug, Serialize)]
pub struct LogRow {
    /// Its name.
    pub key: String,
    /// The difference.
    #[serde(flatten)]
    pub diff: Diff,
}

/// What one check says.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// Passed?
    pub ok: bool,
    /// Tensors that it compared.
    pub rows: Vec<LogRow>,
}

/// A pair of calls with all that was compared.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The reference's call.
    pub reference: String,
    /// The candidate's.
    pub candidate: String,
    /// What it is.
    pub kind: String,
    /// Shape of the output.
    pub shape: Vec<usize>,
    /// Differences of the outputs as the models ran.
    pub natural: Option<Diff>,
    /// The candidate's call on the reference's input.
    pub forced: Option<Diff>,
    /// Gradients of the outputs as the models ran.
    pub gradient: Option<Diff>,
    /// Gradients of the call alone.
    pub local: Option<Diff>,
    /// `ok`, `fault` or `inherited`.
    pub verdict: String,
}

/// The verdict on two sides.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Name and version of the reference's library.
    pub reference: String,
    /// Name and version of the candidate's.
    pub candidate: String,
    /// Is nothing different?
    pub ok: bool,
    /// The differences, the first and surest first.
    pub findings: Vec<Finding>,
    /// The candidate's first call that diverges forward.
    pub first_forward: Option<String>,
    /// The candidate's first call that diverges on the way back.
    pub first_backward: Option<String>,
    /// The checks that were possible.
    pub checks: Vec<CheckResult>,
    /// The calls, pair by pair.
    pub rows: Vec<Row>,
    /// Losses of the two sides, step by step.
    pub losses: [Vec<f64>; 2],
    /// Learning rates of the two sides, step by step.
    pub rates: [Vec<f64>; 2],
    /// The step at which the losses part.
    pub parts_at: Option<usize>,
    /// The pairs as a table.
    pub pairs: String,
    /// What else is to be known, in sentences.
    pub notes: Vec<String>,
}
