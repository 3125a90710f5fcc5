//! Chrome's trace format: a JSON file that Perfetto, `chrome://tracing` and we ourselves read.

use super::{Event, Input, Kind, Memory, Options, Recording};
use sampan_core::error::Kind as ErrorKind;
use sampan_core::{DType, Error, Result, Shape};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

const KINDS: [(Kind, &str); 8] = [
    (Kind::Op, "op"),
    (Kind::Gradient, "gradient"),
    (Kind::Layer, "layer"),
    (Kind::Backward, "backward"),
    (Kind::Optimizer, "optimizer"),
    (Kind::Loader, "loader"),
    (Kind::Step, "step"),
    (Kind::Range, "range"),
];

/// The whole file.
pub(super) fn write(recording: &Recording) -> String {
    let pid = std::process::id();
    let since_1970 = recording.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let about = json!({
        "started_ns": since_1970.as_nanos() as u64,
        "duration_ns": recording.duration,
        "live_at_start": recording.live_at_start,
        "dropped": recording.dropped,
        "capacity": recording.options.capacity,
        "shapes": recording.options.shapes,
        "memory": recording.options.memory,
    });
    let mut lines = Lines(format!("{{\"displayTimeUnit\": \"ms\", \"sampan\": {about}, \"traceEvents\": ["));
    lines.push(json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": "sampan"}}));
    for (tid, name) in recording.threads.iter().enumerate() {
        lines.push(json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}));
        lines
            .push(json!({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": tid}}));
    }
    let mut ends: Vec<u64> = Vec::new();
    let mut thread = u32::MAX;
    for (id, e) in recording.events.iter().enumerate() {
        if e.thread != thread {
            thread = e.thread;
            ends.clear();
        }
        while ends.last().is_some_and(|&end| end <= e.start) {
            ends.pop();
        }
        // Slices of a thread lie in each other; what crosses another's end has a track of its own.
        let crosses = ends.last().is_some_and(|&end| end < e.end());
        if !crosses {
            ends.push(e.end());
        }
        slices(e, id, pid, crosses, &mut lines);
        if e.kind == Kind::Step {
            lines.push(json!({"name": e.label(), "cat": "step", "ph": "i", "s": "p", "ts": micro(e.start), "pid": pid,
                "tid": e.thread}));
        }
    }
    counters(recording, pid, &mut lines);
    lines.0 + "\n]}\n"
}

/// The file as it grows, one object a line.
struct Lines(String);

impl Lines {
    fn push(&mut self, line: Value) {
        let comma = if self.0.ends_with('[') { "" } else { "," };
        let _ = write!(self.0, "{comma}\n{line}");
    }
}

/// The format counts microseconds; the nanoseconds stand behind the point.
fn micro(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn slices(e: &Event, id: usize, pid: u32, crosses: bool, lines: &mut Lines) {
    let (name, category) = (e.label(), category(e.kind));
    let common = json!({"name": name, "cat": category, "pid": pid, "tid": e.thread, "ts": micro(e.start)});
    let with = |more: Value| {
        let mut line = common.clone();
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        line
    };
    if crosses {
        lines.push(with(json!({"ph": "b", "id": id, "args": details(e)})));
        lines.push(with(json!({"ph": "e", "id": id, "ts": micro(e.end())})));
    } else {
        lines.push(with(json!({"ph": "X", "dur": micro(e.duration), "args": details(e)})));
    }
}

fn category(kind: Kind) -> &'static str {
    KINDS.iter().find(|(k, _)| *k == kind).map_or("range", |(_, name)| name)
}

/// What is shown when a slice is clicked.
fn details(e: &Event) -> Value {
    let mut args = Map::new();
    args.insert("depth".into(), e.depth.into());
    args.insert("call".into(), e.call.into());
    if let Some(layer) = &e.layer {
        args.insert("layer".into(), (**layer).into());
    }
    if let Some(inputs) = &e.inputs {
        let each = inputs.iter().map(|i| format!("{}={:?} {}", i.name, &i.shape[..], i.dtype));
        args.insert("inputs".into(), each.collect());
    }
    if let Some(m) = e.memory {
        args.insert("allocated".into(), m.allocated.into());
        args.insert("freed".into(), m.freed.into());
        args.insert("live".into(), m.live.into());
    }
    if e.multiply_adds > 0 {
        args.insert("multiply_adds".into(), e.multiply_adds.into());
        args.insert("GFLOP/s".into(), (2.0 * e.multiply_adds as f64 / e.duration.max(1) as f64).into());
    }
    Value::Object(args)
}

/// The track of live memory: a point wherever it changed.
fn counters(recording: &Recording, pid: u32, lines: &mut Lines) {
    if !recording.options.memory {
        return;
    }
    let mut points: Vec<(u64, u64)> =
        recording.events.iter().filter_map(|e| e.memory.map(|m| (e.end(), m.live))).collect();
    points.push((0, recording.live_at_start));
    points.sort_unstable();
    points.dedup_by_key(|(_, live)| *live);
    for (ts, live) in points {
        lines.push(json!({"name": "tensor memory", "ph": "C", "ts": micro(ts), "pid": pid, "args": {"bytes": live}}));
    }
}

/// Reads what [`write`] made.
pub(super) fn read(path: &Path) -> Result<Recording> {
    let fault = |kind: ErrorKind, what: String| {
        Error::new(kind, format!("cannot read {}: {what}", path.display())).in_op("load_profiler_result")
    };
    let text = std::fs::read_to_string(path).map_err(|e| fault(ErrorKind::External, e.to_string()))?;
    let foreign = || {
        fault(ErrorKind::InvalidArgument, "it is no trace that this profiler wrote".into())
            .hint("write one with export(path, format=\"json\") or save_trace(path)")
    };
    let file: Value = serde_json::from_str(&text).map_err(|_| foreign())?;
    parse(&file).ok_or_else(foreign)
}

fn parse(file: &Value) -> Option<Recording> {
    let about = file.get("sampan")?;
    let number = |name: &str| about.get(name).and_then(Value::as_u64);
    let flag = |name: &str| about.get(name).and_then(Value::as_bool);
    let mut recording = Recording {
        events: Vec::new(),
        threads: Vec::new(),
        started: SystemTime::UNIX_EPOCH + Duration::from_nanos(number("started_ns")?),
        duration: number("duration_ns")?,
        live_at_start: number("live_at_start")?,
        dropped: number("dropped")? as usize,
        options: Options { shapes: flag("shapes")?, memory: flag("memory")?, capacity: number("capacity")? as usize },
    };
    let lines = file.get("traceEvents")?.as_array()?;
    for line in lines {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        match text("ph")? {
            "M" if text("name")? == "thread_name" => {
                recording.threads.push(line.get("args")?.get("name")?.as_str()?.to_string());
            }
            "X" | "b" => recording.events.push(parse_event(line)?),
            // The end of the one that began last among those of its number.
            "e" => {
                let end = nano(line.get("ts")?)?;
                let start = |e: &&mut Event| Some(&*e.label()) == text("name") && e.duration == u64::MAX;
                let open = recording.events.iter_mut().rev().find(start)?;
                open.duration = end.saturating_sub(open.start);
            }
            _ => {}
        }
    }
    let known = recording.threads.len();
    recording.events.iter().all(|e| (e.thread as usize) < known && e.duration != u64::MAX).then_some(recording)
}

fn nano(v: &Value) -> Option<u64> {
    v.as_f64().map(|micro| (micro * 1e3).round() as u64)
}

fn parse_event(line: &Value) -> Option<Event> {
    let category = line.get("cat")?.as_str()?;
    let kind = KINDS.iter().find(|(_, name)| *name == category)?.0;
    let label = line.get("name")?.as_str()?;
    let name = if kind == Kind::Gradient { label.strip_suffix("_grad")? } else { label };
    let args = line.get("args")?;
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let memory = match (number("allocated"), number("freed"), number("live")) {
        (Some(allocated), Some(freed), Some(live)) => Some(Memory { allocated, freed, live }),
        _ => None,
    };
    let inputs = match args.get("inputs").and_then(Value::as_array) {
        Some(all) => Some(all.iter().map(|i| parse_input(i.as_str()?)).collect::<Option<Box<[Input]>>>()?),
        None => None,
    };
    Some(Event {
        kind,
        name: name.to_string().into(),
        start: nano(line.get("ts")?)?,
        duration: line.get("dur").map_or(Some(u64::MAX), nano)?,
        thread: u32::try_from(line.get("tid")?.as_u64()?).ok()?,
        depth: number("depth")? as u32,
        call: number("call")?,
        layer: args.get("layer").and_then(Value::as_str).map(Into::into),
        inputs,
        memory,
        multiply_adds: number("multiply_adds").unwrap_or(0),
    })
}

/// `x=[2, 3] float32`.
fn parse_input(text: &str) -> Option<Input> {
    let (name, rest) = text.split_once("=[")?;
    let (shape, dtype) = rest.split_once("] ")?;
    let extents = shape.split(", ").filter(|n| !n.is_empty());
    let shape = extents.map(|n| n.parse().ok()).collect::<Option<Shape>>()?;
    Some(Input { name: Cow::Owned(name.into()), shape, dtype: DType::from_name(dtype)? })
}
