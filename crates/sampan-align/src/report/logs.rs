//! Verdicts in `reprod_log`'s words.

use crate::{CheckResult, Report};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `2021/09/28 01:07:44` in UTC.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // The civil calendar from a count of days, with years that begin in March.
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}/{month:02}/{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// A number as Python prints it.
fn python(x: f64) -> String {
    if x == 0.0 {
        "0.0".into()
    } else if x.abs() < 1e-4 || x.abs() >= 1e16 {
        let text = format!("{x:e}");
        match text.split_once("e-") {
            Some((m, e)) if e.len() == 1 => format!("{m}e-0{e}"),
            _ => text,
        }
    } else {
        format!("{x:?}")
    }
}

impl CheckResult {
    /// The log of the check, as `ReprodDiffHelper.report` writes it.
    pub fn log(&self) -> String {
        let stamp = format!("[{}] root INFO: ", now());
        let mut lines = Vec::new();
        for row in &self.rows {
            let passed = if row.diff.differs { "False" } else { "True" };
            lines.push(format!("{stamp}{}: ", row.key));
            lines.push(format!("{stamp}\tmean diff: check passed: {passed}, value: {}", python(row.diff.mean)));
        }
        lines.push(format!("{stamp}diff check {}", if self.ok { "passed" } else { "failed" }));
        lines.join("\n") + "\n"
    }
}

impl Report {
    /// Writes `forward_diff.log` and its like into a folder, one for each check; gives their paths.
    pub fn write_logs(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let folder = folder.as_ref();
        let fault = |e: std::io::Error| {
            Error::new(Kind::External, format!("the logs cannot be written to {}: {e}", folder.display()))
                .in_op("align")
        };
        std::fs::create_dir_all(folder).map_err(fault)?;
        let mut written = Vec::new();
        for check in &self.checks {
            let path = folder.join(format!("{}_diff.log", check.check.name()));
            std::fs::write(&path, check.log()).map_err(fault)?;
            written.push(path);
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_python_does() {
        for (x, want) in
            [(0.0, "0.0"), (0.3336232304573059, "0.3336232304573059"), (1e-6, "1e-06"), (2.5e-12, "2.5e-12")]
        {
            assert_eq!(python(x), want);
        }
    }
}
