//! The line that shows how training goes.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: usize = 30;

/// A progress line: `step 10/938 [>....] - loss: 0.0325 - acc: 0.9938 - ETA: 35s - 38ms/step`.
pub struct Progress {
    total: usize,
    started: Instant,
    shown: Instant,
    live: bool,
}

impl Progress {
    /// For that many steps.
    pub fn new(total: usize) -> Progress {
        let now = Instant::now();
        Progress { total, started: now, shown: now, live: std::io::stdout().is_terminal() }
    }

    /// Shows step `done` (counted from one) with some figures. A terminal sees one line that changes; a file gets a line
    /// every tenth of the way.
    pub fn step(&mut self, done: usize, figures: &[(&str, f64)]) {
        let last = done == self.total;
        let due = if self.live {
            self.shown.elapsed() > Duration::from_millis(100)
        } else {
            done.is_multiple_of(self.total.div_ceil(10).max(1))
        };
        if !due && !last {
            return;
        }
        self.shown = Instant::now();
        let line = self.line(done, figures);
        if self.live {
            print!("\r{line}\x1b[K{}", if last { "\n" } else { "" });
        } else {
            println!("{line}");
        }
        // A closed pipe is no reason to stop training.
        let _ = std::io::stdout().flush();
    }

    fn line(&self, done: usize, figures: &[(&str, f64)]) -> String {
        let filled = done * WIDTH / self.total.max(1);
        let bar: String = (0..WIDTH)
            .map(|i| match i {
                i if i < filled => '=',
                i if i == filled => '>',
                _ => '.',
            })
            .collect();
        let digits = self.total.to_string().len();
        let mut line = format!("step {done:>digits$}/{} [{bar}]", self.total);
        for (name, value) in figures {
            line += &if *value != 0.0 && value.abs() < 1e-3 {
                format!(" - {name}: {value:.4e}")
            } else {
                format!(" - {name}: {value:.4}")
            };
        }
        let each = self.started.elapsed().as_secs_f64() / done.max(1) as f64;
        if done < self.total {
            line += &format!(" - ETA: {:.0}s", each * (self.total - done) as f64);
        }
        line + &format!(" - {:.1}ms/step", each * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_reads_like_the_usual_one() {
        let line = Progress::new(938).line(40, &[("loss", 0.0344), ("acc", 0.991)]);
        assert!(line.starts_with("step  40/938 [=>............................] - loss: 0.0344 - acc: 0.9910 - ETA: "));
        assert!(line.ends_with("ms/step"));
    }
}
