//! What became of every key.

use super::pairing::Reason;
use super::structure::Convention;
use serde::Serialize;
use std::fmt;

/// One key of the target and where its values come from.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Keys of the source: several, where the target keeps in one tensor what the source keeps in three.
    pub sources: Vec<String>,
    /// Key of the target.
    pub target: String,
    /// Shapes of the sources.
    pub from: Vec<Vec<usize>>,
    /// Shape of the target.
    pub to: Vec<usize>,
    /// `as it is`, `transposed`, `reshaped`, and which part of the source, if it is one.
    pub how: String,
    /// Why they are a pair.
    pub reason: String,
}

/// What became of every key of both sides.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The source, in a word.
    pub source: String,
    /// The target, in a word.
    pub target: String,
    /// How the weights lie on the two sides.
    pub conventions: (String, String),
    /// The keys of the target that have values, in its order.
    pub rows: Vec<Row>,
    /// Keys of the source that the target has no use for, with the reason.
    pub dropped: Vec<(String, String)>,
    /// Keys of the target that were made, with their values in words.
    pub made: Vec<(String, String)>,
    /// Keys of the target that keep the values they have, because the mapping says so.
    pub left: Vec<String>,
    /// Keys of the source without a place.
    pub unused: Vec<String>,
    /// Keys of the target without values.
    pub missing: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

pub(super) fn how(part: Option<(usize, usize)>, turned: bool, reshaped: bool) -> String {
    let mut words = Vec::new();
    words.extend(part.map(|(i, n)| format!("part {} of {n}", i + 1)));
    words.extend(turned.then(|| "transposed".to_string()));
    words.extend(reshaped.then(|| "reshaped".to_string()));
    if words.is_empty() { "as it is".into() } else { words.join(", ") }
}

impl Report {
    /// Did every key of both sides find its place?
    pub fn complete(&self) -> bool {
        self.unused.is_empty() && self.missing.is_empty()
    }

    /// All of it as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The numbers alone, in a line.
    pub fn summary(&self) -> String {
        let count = |what: &str| self.rows.iter().filter(|r| r.how.contains(what)).count();
        let reasons = [Reason::Name, Reason::Order, Reason::End, Reason::OnlyOne, Reason::Mapping].map(|reason| {
            let n = self.rows.iter().filter(|r| r.reason == reason.to_string()).count();
            (n > 0).then(|| format!("{n} by {reason}"))
        });
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        let extra = |n: usize, what: &str| if n > 0 { format!(", {n} {what}") } else { String::new() };
        format!(
            "{} keys ({}), {} transposed{}{}{}{}{}",
            self.rows.len(),
            reasons.join(", "),
            count("transposed"),
            extra(self.made.len(), "made"),
            extra(self.dropped.len(), "dropped"),
            extra(self.left.len(), "left as they are"),
            extra(self.unused.len(), "of the source without a place"),
            extra(self.missing.len(), "of the target without values"),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = &self.conventions;
        writeln!(f, "{} ({from}'s way) to {} ({to}'s way)", self.source, self.target)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))?;
        let left: Vec<String> = self.rows.iter().map(|r| r.sources.join(" + ")).collect();
        let width = left.iter().map(String::len).max().unwrap_or(0).min(60);
        let middle = self.rows.iter().map(|r| r.target.len()).max().unwrap_or(0).min(60);
        for (row, left) in self.rows.iter().zip(&left) {
            let (target, to, how, reason) = (&row.target, &row.to, &row.how, &row.reason);
            writeln!(f, "  {left:width$} -> {target:middle$}  {:?} -> {to:?}  {how}; {reason}", row.from[0])?;
        }
        let mut list = |title: &str, lines: Vec<String>| -> fmt::Result {
            if !lines.is_empty() {
                writeln!(f, "{title}")?;
            }
            lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
        };
        let with_reason = |v: &[(String, String)]| v.iter().map(|(key, why)| format!("{key}: {why}")).collect();
        list("made:", with_reason(&self.made))?;
        list("dropped:", with_reason(&self.dropped))?;
        list("left as they are, with the target's own values:", self.left.clone())?;
        list("in the source alone:", self.unused.clone())?;
        list("in the target alone:", self.missing.clone())?;
        write!(f, "{}", self.summary())
    }
}

pub(super) fn word(convention: Option<Convention>) -> String {
    convention.map_or("anybody".to_string(), |c| c.to_string())
}
