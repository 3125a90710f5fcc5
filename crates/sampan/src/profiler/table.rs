//! Tables as text.

use std::fmt;

/// In what a table shows times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    #[default]
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
        }
    }

    /// A number of nanoseconds in this unit.
    pub(super) fn show(self, nanoseconds: u64) -> String {
        match self {
            Unit::Seconds => format!("{:.6}", nanoseconds as f64 / 1e9),
            Unit::Milliseconds => format!("{:.3}", nanoseconds as f64 / 1e6),
            Unit::Microseconds => format!("{:.2}", nanoseconds as f64 / 1e3),
            Unit::Nanoseconds => nanoseconds.to_string(),
        }
    }
}

/// A part of a whole as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// `part / whole`, zero of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// 10⁹ floating-point operations a second, or nothing where they are not known.
pub(super) fn speed(multiply_adds: u64, nanoseconds: u64) -> String {
    match multiply_adds {
        0 => String::new(),
        n => format!("{:.2}", 2.0 * n as f64 / nanoseconds.max(1) as f64),
    }
}

/// Bytes as people read them.
pub(super) fn bytes(n: u64) -> String {
    let (n, units) = (n as f64, ["B", "KiB", "MiB", "GiB", "TiB"]);
    let power = if n < 1024.0 { 0 } else { ((n.log2() / 10.0) as usize).min(units.len() - 1) };
    let value = n / 1024f64.powi(power as i32);
    if power == 0 { format!("{value} B") } else { format!("{value:.1} {}", units[power]) }
}

/// Columns that hold words.
const WORDS: [&str; 7] = ["Part", "Op", "Range", "Layer", "Type", "Thread", "Inputs"];

/// A table: words to the left, numbers to the right.
pub(super) struct Text {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Text {
    pub fn new(title: String, header: &[&str]) -> Text {
        Text { title, rows: vec![header.iter().map(|h| h.to_string()).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        // A column in which nothing stands is left out.
        let used: Vec<usize> = (0..columns)
            .filter(|&c| c == 0 || self.rows.len() == 1 || self.rows[1..].iter().any(|r| !r[c].is_empty()))
            .collect();
        let width = |c: usize| self.rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = used.iter().map(|&c| width(c)).collect();
        let line = "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
        writeln!(f, "{}\n{line}", self.title)?;
        for (i, row) in self.rows.iter().enumerate() {
            let cells = used.iter().zip(&widths).map(|(&c, &w)| match WORDS.contains(&self.rows[0][c].as_str()) {
                true => format!("{:<w$}", row[c]),
                false => format!("{:>w$}", row[c]),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
            if i == 0 {
                writeln!(f, "{line}")?;
            }
        }
        writeln!(f, "{line}")
    }
}
