//! The table of ops, and that of the user's ranges.

use super::table::{self, Text, Unit};
use super::{Event, Kind, Profile};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

/// What a table is sorted by; the largest comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The time of all calls, with what they call.
    #[default]
    Total,
    /// The time of all calls, without what they call.
    Own,
    /// The time of one call.
    Average,
    /// The longest call.
    Max,
    /// The shortest call.
    Min,
    /// The number of calls.
    Calls,
    /// The name, from a to z.
    Name,
}

/// One line: all calls of one op. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The op; `conv2d_grad` is the gradient of `conv2d`.
    pub name: String,
    /// How deep it lies in the calls of the user's: 0 for those themselves.
    pub level: usize,
    /// Shapes and dtypes it was given, in a table by shape.
    pub inputs: String,
    /// The thread, in a table by thread.
    pub thread: Option<u32>,
    /// How often it was called.
    pub calls: u64,
    /// With what it calls.
    pub total: u64,
    /// Without what it calls.
    pub own: u64,
    /// The shortest call.
    pub min: u64,
    /// The longest call.
    pub max: u64,
    /// The part of all ops' time.
    pub share: f64,
    /// Multiply-adds, where they are known.
    pub multiply_adds: u64,
    /// Bytes of tensors made.
    pub allocated: u64,
    /// Bytes given back.
    pub freed: u64,
}

impl Row {
    /// The time of one call.
    pub fn average(&self) -> u64 {
        self.total / self.calls.max(1)
    }
}

/// A table to be made: of ops as the user and the walk backwards call them.
#[derive(Clone)]
pub struct Ops<'a> {
    profile: &'a Profile,
    of_ranges: bool,
    sort: SortBy,
    detail: bool,
    by_shape: bool,
    by_thread: bool,
    limit: usize,
    unit: Unit,
}

/// What is added up in one line: the names from the user's call inwards, the shapes, the thread.
type Key = (Vec<String>, String, Option<u32>);

#[derive(Default)]
struct Sum {
    /// Times by call: the gradients of a composite are several events, and one call.
    times: HashMap<u64, u64>,
    own: u64,
    multiply_adds: u64,
    allocated: u64,
    freed: u64,
}

impl<'a> Ops<'a> {
    pub(super) fn new(profile: &'a Profile) -> Ops<'a> {
        Ops {
            profile,
            of_ranges: false,
            sort: SortBy::Total,
            detail: false,
            by_shape: false,
            by_thread: false,
            limit: usize::MAX,
            unit: Unit::Milliseconds,
        }
    }

    pub(super) fn ranges(profile: &'a Profile) -> Ops<'a> {
        Ops { of_ranges: true, ..Ops::new(profile) }
    }

    /// Sorted in another way.
    pub fn sort(mut self, by: SortBy) -> Self {
        self.sort = by;
        self
    }

    /// With the ops that each op calls, below it.
    pub fn detail(mut self, on: bool) -> Self {
        self.detail = on;
        self
    }

    /// One line for each op and shapes of its inputs; needs a recording with shapes.
    pub fn by_shape(mut self, on: bool) -> Self {
        self.by_shape = on;
        self
    }

    /// One line for each op and thread.
    pub fn by_thread(mut self, on: bool) -> Self {
        self.by_thread = on;
        self
    }

    /// Only so many of the outermost lines.
    pub fn limit(mut self, lines: usize) -> Self {
        self.limit = lines;
        self
    }

    /// Times in another unit.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    fn sums(&self) -> HashMap<Key, Sum> {
        let (events, tree) = (&self.profile.recording.events, &self.profile.tree);
        let mut keys: Vec<Option<Key>> = Vec::with_capacity(events.len());
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        for (i, e) in events.iter().enumerate() {
            let key = match e.kind {
                Kind::Range if self.of_ranges => Some((vec![e.name.to_string()], String::new(), self.thread(e))),
                Kind::Op | Kind::Gradient if !self.of_ranges => match tree.call_around(events, i) {
                    None => {
                        let shapes = if self.by_shape { shapes(e) } else { String::new() };
                        Some((vec![e.label().into_owned()], shapes, self.thread(e)))
                    }
                    // The parent came first.
                    Some(around) => keys[around].clone().filter(|_| self.detail).map(|(mut path, shapes, thread)| {
                        path.push(e.label().into_owned());
                        (path, shapes, thread)
                    }),
                },
                _ => None,
            };
            if let Some(key) = &key {
                let sum = sums.entry(key.clone()).or_default();
                let outermost = e.kind == Kind::Gradient && key.0.len() == 1;
                let call = if outermost { e.call } else { u64::MAX - i as u64 };
                *sum.times.entry(call).or_default() += e.duration;
                sum.own += if self.of_ranges { e.duration } else { tree.place(i).own };
                sum.multiply_adds += tree.place(i).multiply_adds;
                let memory = e.memory.unwrap_or_default();
                sum.allocated += memory.allocated;
                sum.freed += memory.freed;
            }
            keys.push(key);
        }
        sums
    }

    fn thread(&self, e: &Event) -> Option<u32> {
        self.by_thread.then_some(e.thread)
    }

    /// The lines, sorted; what an op calls follows it.
    pub fn rows(&self) -> Vec<Row> {
        let sums = self.sums();
        let whole: u64 = sums.iter().filter(|(k, _)| k.0.len() == 1).flat_map(|(_, s)| s.times.values()).sum();
        let whole = if self.of_ranges { self.profile.recording.duration } else { whole };
        let mut children: HashMap<Key, Vec<(Key, Row)>> = HashMap::new();
        for (key, sum) in sums {
            let row = row(&key, &sum, whole);
            let mut around = key.clone();
            around.0.pop();
            children.entry(around).or_default().push((key, row));
        }
        let outermost: Vec<Key> = children.keys().filter(|k| k.0.is_empty()).cloned().collect();
        let mut tops: Vec<(Key, Row)> = outermost.iter().filter_map(|k| children.remove(k)).flatten().collect();
        self.order(&mut tops);
        tops.truncate(self.limit);
        let mut rows = Vec::new();
        // A stack instead of recursion, the first on top.
        tops.reverse();
        while let Some((key, row)) = tops.pop() {
            rows.push(row);
            let mut inner = children.remove(&key).unwrap_or_default();
            self.order(&mut inner);
            tops.extend(inner.into_iter().rev());
        }
        rows
    }

    fn order(&self, rows: &mut [(Key, Row)]) {
        rows.sort_by(|(_, a), (_, b)| {
            let by = match self.sort {
                SortBy::Total => b.total.cmp(&a.total),
                SortBy::Own => b.own.cmp(&a.own),
                SortBy::Average => b.average().cmp(&a.average()),
                SortBy::Max => b.max.cmp(&a.max),
                SortBy::Min => b.min.cmp(&a.min),
                SortBy::Calls => b.calls.cmp(&a.calls),
                SortBy::Name => Ordering::Equal,
            };
            // Always the same order, whatever the hash.
            a.thread.cmp(&b.thread).then(by).then_with(|| a.name.cmp(&b.name)).then_with(|| a.inputs.cmp(&b.inputs))
        });
    }
}

fn row(key: &Key, sum: &Sum, whole: u64) -> Row {
    let (path, inputs, thread) = key;
    let total = sum.times.values().sum();
    Row {
        name: path.last().cloned().unwrap_or_default(),
        level: path.len() - 1,
        inputs: if path.len() == 1 { inputs.clone() } else { String::new() },
        thread: *thread,
        calls: sum.times.len() as u64,
        total,
        own: sum.own,
        min: sum.times.values().copied().min().unwrap_or(0),
        max: sum.times.values().copied().max().unwrap_or(0),
        share: table::share(total, whole),
        multiply_adds: sum.multiply_adds,
        allocated: sum.allocated,
        freed: sum.freed,
    }
}

/// The inputs of a call as a line: `x=[32, 10] float32, weight=[10, 4] float32`.
pub(super) fn shapes(e: &Event) -> String {
    let inputs = e.inputs.iter().flatten();
    inputs.map(|i| format!("{}={:?} {}", i.name, &i.shape[..], i.dtype)).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Ops<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.of_ranges { "Ranges" } else { "Ops" };
        let rows = self.rows();
        let header = [
            if self.of_ranges { "Range" } else { "Op" },
            "Thread",
            "Calls",
            "Total",
            "Self",
            "Average",
            "Min",
            "Max",
            "Share",
            "GFLOP/s",
            "Allocated",
            "Freed",
            "Inputs",
        ];
        let mut text = Text::new(format!("{what} (time in {})", self.unit.symbol()), &header);
        let memory = self.profile.recording.options.memory;
        for r in rows {
            let time = |t: u64| self.unit.show(t);
            let bytes = |n: u64| if memory { table::bytes(n) } else { String::new() };
            let thread = r.thread.and_then(|t| self.profile.recording.threads.get(t as usize)).cloned();
            text.row(vec![
                format!("{}{}", "  ".repeat(r.level), r.name),
                thread.unwrap_or_default(),
                r.calls.to_string(),
                time(r.total),
                if self.of_ranges { String::new() } else { time(r.own) },
                time(r.average()),
                time(r.min),
                time(r.max),
                table::percent(r.share),
                table::speed(r.multiply_adds, r.total),
                bytes(r.allocated),
                bytes(r.freed),
                r.inputs,
            ]);
        }
        write!(f, "{text}{}", self.profile.warning())
    }
}
