//! The report as text.

use crate::Report;

impl Report {
    /// The report as text: the verdict, the findings, and the first calls that differ.
    pub fn text(&self) -> String {
        let mut out =
            vec![format!("{} (reference) and {} (candidate): {}", self.reference, self.candidate, self.verdict())];
        for check in &self.checks {
            let worst = check.rows.iter().map(|r| r.diff.relative).fold(0.0, f64::max);
            let sign = if check.ok { "ok  " } else { "FAIL" };
            out.push(format!(
                "  {sign} {:<14} {:>4} tensors, worst relative difference {worst:.2e}",
                check.check.name(),
                check.rows.len()
            ));
        }
        if let Some(first) = &self.first_forward {
            out.push(format!("the first layer that diverges forward is {first}"));
        }
        if let Some(first) = &self.first_backward {
            out.push(format!("the first layer that diverges backward is {first}"));
        }
        if let Some(n) = self.parts_at {
            out.push(format!("the losses part at step {n}"));
        }
        for (i, f) in self.findings.iter().enumerate() {
            let cause = if f.cause.is_empty() { String::new() } else { format!(" [{}, {}]", f.cause, f.certainty) };
            out.push(format!("{}. {}{cause}", i + 1, f.sentence));
            out.extend(f.evidence.iter().map(|e| format!("   - {e}")));
            if i == 0 {
                for [what, a, b] in &f.detail {
                    out.push(format!("   {what}:"));
                    out.push(format!("     reference {a}"));
                    out.push(format!("     candidate {b}"));
                }
            }
        }
        out.extend(self.notes.iter().map(|n| format!("note: {n}")));
        out.join("\n") + "\n"
    }

    pub(super) fn verdict(&self) -> String {
        let visible = self.findings.iter().filter(|f| f.visible).count();
        let silent = self.findings.len() - visible;
        match (self.ok, visible, silent) {
            (true, ..) => "aligned".into(),
            (_, 0, 0) => "not aligned".into(),
            (_, 0, n) => format!("equal in this run, but {n} settings differ"),
            (_, n, 0) => format!("{n} differences"),
            (_, n, m) => format!("{n} differences, and {m} settings that do not show"),
        }
    }
}
