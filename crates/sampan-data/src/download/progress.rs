//! How far a download is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Bytes, rate and time left on stderr: a line that is written over on a terminal, one line at the end elsewhere.
pub(super) struct Progress {
    start: Instant,
    shown: Instant,
    /// Bytes that were there before.
    before: u64,
    total: Option<u64>,
    quiet: bool,
    terminal: bool,
}

const EVERY: Duration = Duration::from_millis(200);

impl Progress {
    pub fn new(before: u64, total: Option<u64>, quiet: bool) -> Progress {
        let now = Instant::now();
        Progress { start: now, shown: now, before, total, quiet, terminal: std::io::stderr().is_terminal() }
    }

    pub fn show(&mut self, bytes: u64) {
        if !self.quiet && self.terminal && self.shown.elapsed() >= EVERY {
            self.shown = Instant::now();
            eprint!("\r{}\x1b[K", self.line(bytes));
            let _ = std::io::stderr().flush();
        }
    }

    pub fn finish(&self, bytes: u64) {
        if !self.quiet {
            let back = if self.terminal { "\r\x1b[K" } else { "" };
            eprintln!("{back}{}", self.line(bytes));
        }
    }

    fn line(&self, bytes: u64) -> String {
        let rate = (bytes - self.before) as f64 / self.start.elapsed().as_secs_f64().max(1e-3);
        match self.total {
            Some(total) if bytes < total && rate > 0.0 => {
                let left = (total - bytes) as f64 / rate;
                format!("{} of {} at {}/s, {left:.0} s left", amount(bytes as f64), amount(total as f64), amount(rate))
            }
            _ => format!("{} at {}/s", amount(bytes as f64), amount(rate)),
        }
    }
}

fn amount(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn amounts() {
        assert_eq!([999.0, 1500.0, 2.5e6, 3e9].map(super::amount), ["999 B", "1.5 kB", "2.5 MB", "3.00 GB"]);
    }
}
