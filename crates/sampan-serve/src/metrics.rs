//! Counters of one model, as Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper ends of the bins of latencies, in seconds.
const BINS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What happened to the requests of a model.
#[derive(Default)]
pub(crate) struct Metrics {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) runs: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) waiting: AtomicU64,
    compute: AtomicU64,
    latency: AtomicU64,
    bins: [AtomicU64; BINS.len()],
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Metrics {
    /// A request was answered after that time.
    pub(crate) fn answer(&self, time: Duration) {
        self.answered.fetch_add(1, Relaxed);
        self.latency.fetch_add(micros(time), Relaxed);
        if let Some(bin) = BINS.iter().position(|end| time.as_secs_f64() <= *end) {
            self.bins[bin].fetch_add(1, Relaxed);
        }
    }

    /// The model ran once for so many rows.
    pub(crate) fn run(&self, rows: usize, time: Duration) {
        self.runs.fetch_add(1, Relaxed);
        self.rows.fetch_add(rows as u64, Relaxed);
        self.compute.fetch_add(micros(time), Relaxed);
    }
}

/// All counters of all models, one name after the other.
pub(crate) fn text(models: &[(String, String, std::sync::Arc<Metrics>)]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Metrics) -> f64| {
        let _ = writeln!(text, "# HELP sampan_{name} {help}\n# TYPE sampan_{name} {kind}");
        for (model, version, m) in models {
            let _ = writeln!(text, "sampan_{name}{{model=\"{model}\",version=\"{version}\"}} {}", value(m));
        }
    };
    let seconds = |v: &AtomicU64| v.load(Relaxed) as f64 / 1e6;
    family("requests_total", "counter", "Requests that were answered.", &|m| m.answered.load(Relaxed) as f64);
    family("failures_total", "counter", "Requests that could not be computed.", &|m| m.failed.load(Relaxed) as f64);
    family("refused_total", "counter", "Requests that found the queue full.", &|m| m.refused.load(Relaxed) as f64);
    family("runs_total", "counter", "Runs, each of one or more requests.", &|m| m.runs.load(Relaxed) as f64);
    family("rows_total", "counter", "Rows of all runs.", &|m| m.rows.load(Relaxed) as f64);
    family("waiting", "gauge", "Requests that wait or are computed.", &|m| m.waiting.load(Relaxed) as f64);
    family("compute_seconds_total", "counter", "Time in runs.", &|m| seconds(&m.compute));
    let _ = writeln!(
        text,
        "# HELP sampan_latency_seconds From a request to its answer.\n# TYPE sampan_latency_seconds histogram"
    );
    for (model, version, m) in models {
        let (labels, mut sum) = (format!("model=\"{model}\",version=\"{version}\""), 0);
        for (end, bin) in BINS.iter().zip(&m.bins) {
            sum += bin.load(Relaxed);
            let _ = writeln!(text, "sampan_latency_seconds_bucket{{{labels},le=\"{end}\"}} {sum}");
        }
        let all = m.answered.load(Relaxed);
        let _ = writeln!(text, "sampan_latency_seconds_bucket{{{labels},le=\"+Inf\"}} {all}");
        let _ = writeln!(text, "sampan_latency_seconds_sum{{{labels}}} {}", seconds(&m.latency));
        let _ = writeln!(text, "sampan_latency_seconds_count{{{labels}}} {all}");
    }
    text
}
