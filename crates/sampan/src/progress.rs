//! The line that shows how training goes.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// With loss and one metric the line fits into 80 columns.
const WIDTH: usize = 20;
/// Cut a line at the edge of the terminal instead of going on in the next, where `\r` could not take it back; and undo.
const CUT: [&str; 2] = ["\x1b[?7l", "\x1b[?7h"];

pub use sampan_deploy::print_line as say;

/// Writes a line about how training goes, which goes on even if nobody can be told.
pub fn mention(line: impl std::fmt::Display) {
    let _ = say(line);
}

/// A progress line: `step  40/938 [>............] - loss: 0.0325 - acc: 0.9938 - ETA: 35s - 38ms/step`.
pub struct Progress {
    total: Option<usize>,
    /// Steps that were done before this began, in an epoch that goes on.
    before: usize,
    started: Instant,
    shown: Option<Instant>,
    /// The last step that was shown.
    last: usize,
    live: bool,
}

impl Progress {
    /// For that many steps, where the number is known.
    pub fn new(total: Option<usize>) -> Progress {
        let live = std::io::stdout().is_terminal();
        Progress { total, before: 0, started: Instant::now(), shown: None, last: 0, live }
    }

    /// Some steps were done earlier and count neither for the pace nor as new.
    pub fn starting_at(mut self, step: usize) -> Progress {
        self.before = step;
        self
    }

    /// A bar: a terminal sees one line that changes, ten times a second; elsewhere a line comes every tenth of the way.
    pub fn bar(&mut self, done: usize, figures: &[(String, f64)]) {
        let due = if self.live {
            self.shown.is_none_or(|t| t.elapsed() > Duration::from_millis(100))
        } else {
            done.is_multiple_of(self.total.map_or(100, |n| n.div_ceil(10)).max(1))
        };
        if due && Some(done) != self.total {
            let line = self.text(done, figures, true);
            let line = if self.live { CUT[0].to_string() + &line } else { line };
            self.show(done, &line, self.live);
        }
    }

    /// A line of its own every `every` steps.
    pub fn line_every(&mut self, every: usize, done: usize, figures: &[(String, f64)]) {
        if done.is_multiple_of(every) && Some(done) != self.total {
            let line = self.text(done, figures, false);
            self.show(done, &line, false);
        }
    }

    /// The last line, whatever was shown before.
    pub fn finish(&mut self, done: usize, figures: &[(String, f64)], bar: bool) {
        if done == self.last && !(self.live && bar) {
            return;
        }
        let line = self.text(done, figures, bar);
        self.show(done, &line, self.live && bar);
        if self.live && bar {
            mention("");
        }
    }

    fn show(&mut self, done: usize, line: &str, over: bool) {
        self.shown = Some(Instant::now());
        self.last = done;
        let mut out = std::io::stdout().lock();
        // As for `mention`.
        let _ = if over { write!(out, "\r{line}\x1b[K{}", CUT[1]) } else { writeln!(out, "{line}") };
        let _ = out.flush();
    }

    fn text(&self, done: usize, figures: &[(String, f64)], bar: bool) -> String {
        let mut line = match self.total {
            Some(total) => {
                let digits = total.to_string().len();
                let bar = if bar { format!(" [{}]", bar_of(done, total)) } else { String::new() };
                format!("step {done:>digits$}/{total}{bar}")
            }
            None => format!("step {done:3}"),
        };
        for (name, value) in figures {
            line += &if *value != 0.0 && value.abs() < 1e-3 {
                format!(" - {name}: {value:.4e}")
            } else {
                format!(" - {name}: {value:.4}")
            };
        }
        let each = self.started.elapsed().as_secs_f64() / done.saturating_sub(self.before).max(1) as f64;
        if let Some(total) = self.total.filter(|&n| done < n) {
            line += &format!(" - ETA: {}", clock(each * (total - done) as f64));
        }
        line + &pace(each)
    }
}

fn bar_of(done: usize, total: usize) -> String {
    let filled = done * WIDTH / total.max(1);
    let head = if done < total && filled > 0 { '>' } else { '=' };
    (0..WIDTH)
        .map(|i| match i + 1 {
            n if n < filled => '=',
            n if n == filled => head,
            _ => '.',
        })
        .collect()
}

/// `35s`, `2:05`, `1:02:05`.
fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    match s {
        0..=60 => format!("{s}s"),
        61..=3600 => format!("{}:{:02}", s / 60, s % 60),
        _ => format!("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60),
    }
}

fn pace(each: f64) -> String {
    if each >= 1.0 {
        format!(" - {each:.1}s/step")
    } else if each >= 1e-2 {
        format!(" - {:.0}ms/step", each * 1e3)
    } else if each >= 1e-3 {
        format!(" - {:.1}ms/step", each * 1e3)
    } else {
        format!(" - {:.0}us/step", each * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_reads_like_the_usual_one() {
        let figures = [("loss".to_string(), 0.0344), ("acc".to_string(), 0.991), ("small".to_string(), 1e-5)];
        let line = Progress::new(Some(938)).text(94, &figures, true);
        let start = "step  94/938 [=>..................] - loss: 0.0344 - acc: 0.9910 - small: 1.0000e-5 - ETA: ";
        assert!(line.starts_with(start), "{line}");
        assert!(line.ends_with("/step"));
        assert!(Progress::new(None).text(7, &[], false).starts_with("step   7 - "));
        assert_eq!(bar_of(938, 938), "=".repeat(WIDTH));
        assert_eq!((clock(35.9), clock(125.0), clock(3725.0)), ("35s".into(), "2:05".into(), "1:02:05".into()));
    }
}
