//! TensorBoard's event files: records of a length, a checksum, a message and a checksum. The messages are protocol
//! buffers of a few fields, written by hand.

mod record;

use crate::fault::{Fault, Parse};
use crate::proto::{self, Field, Message};
use crate::read_file;
use sampan_core::{DType, Result, Tensor};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FORMAT: &str = "event file";
/// What is written reaches the file after so many events or so much time, whichever comes first.
const FLUSH_EVENTS: usize = 10;
const FLUSH_AFTER: Duration = Duration::from_secs(120);
const BUCKETS: usize = 30;

/// Appends events to a new file in a folder, which TensorBoard watches.
///
/// ```
/// let folder = std::env::temp_dir().join("sampan-io-doc-events");
/// let mut log = sampan_io::events::EventWriter::create(&folder)?;
/// log.scalar("loss", 0.5, 1)?;
/// log.flush()?;
/// assert_eq!(sampan_io::events::scalars(log.path())?[0].tag, "loss");
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct EventWriter {
    out: BufWriter<File>,
    path: PathBuf,
    pending: usize,
    flushed: Instant,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn host_name() -> String {
    let file = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = file.or_else(|| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok());
    let name = name.unwrap_or_default();
    let safe = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.trim().chars().filter(safe).take(64).collect();
    if name.is_empty() { "localhost".into() } else { name }
}

impl EventWriter {
    /// A new file in a folder, which is made if need be. Files of earlier runs stay as they are.
    pub fn create(folder: impl AsRef<Path>) -> Result<EventWriter> {
        let folder = folder.as_ref();
        EventWriter::open(folder).map_err(|e| e.into_error("events", FORMAT, Some(folder)))
    }

    /// A new file for a run that goes on: what earlier files say about `step` and later ones is cut off them, and a
    /// TensorBoard that has read it already forgets it.
    pub fn resume(folder: impl AsRef<Path>, step: i64) -> Result<EventWriter> {
        let folder = folder.as_ref();
        cut_from(folder, step).map_err(|e| e.into_error("events", FORMAT, Some(folder)))?;
        let mut writer = EventWriter::create(folder)?;
        // A session log whose status is "start".
        let start = Message::new().int(1, 1);
        writer.event(Message::new().int(2, step).message(7, &start))?;
        Ok(writer)
    }

    fn open(folder: &Path) -> Parse<EventWriter> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        std::fs::create_dir_all(folder)?;
        let (seconds, host, process) = (now() as u64, host_name(), std::process::id());
        let (file, path) = loop {
            let unique = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("events.out.tfevents.{seconds:010}.{host}.{process}.{unique}"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                opened => break (opened?, path),
            }
        };
        let mut writer = EventWriter { out: BufWriter::new(file), path, pending: 0, flushed: Instant::now() };
        record::write(&mut writer.out, &Message::new().double(1, now()).text(3, "brain.Event:2").0)?;
        writer.out.flush()?;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts everything said so far into the file.
    pub fn flush(&mut self) -> Result<()> {
        self.pending = 0;
        self.flushed = Instant::now();
        self.out.flush().map_err(|e| Fault::from(e).into_error("events", FORMAT, Some(&self.path)))
    }

    fn event(&mut self, event: Message) -> Result<()> {
        let event = Message::new().double(1, now()).append(event);
        record::write(&mut self.out, &event.0).map_err(|e| e.into_error("events", FORMAT, Some(&self.path)))?;
        self.pending += 1;
        if self.pending >= FLUSH_EVENTS || self.flushed.elapsed() >= FLUSH_AFTER { self.flush() } else { Ok(()) }
    }

    /// One value of a summary.
    fn value(&mut self, step: i64, value: Message) -> Result<()> {
        let summary = Message::new().message(1, &value);
        self.event(Message::new().int(2, step).message(5, &summary))
    }

    /// A point of a curve.
    pub fn scalar(&mut self, tag: &str, value: f32, step: i64) -> Result<()> {
        self.value(step, Message::new().text(1, tag).float(2, value))
    }

    /// A text, which TensorBoard shows as Markdown.
    pub fn text(&mut self, tag: &str, text: &str, step: i64) -> Result<()> {
        let plugin = Message::new().message(1, &Message::new().text(1, "text"));
        // A tensor of one string (type 7) and no axes: with an axis it would be shown as a table.
        let tensor = Message::new().int(1, 7).message(2, &Message::new()).text(8, text);
        self.value(step, Message::new().text(1, tag).message(8, &tensor).message(9, &plugin))
    }

    /// A picture as the bytes of a PNG file.
    pub fn image(&mut self, tag: &str, png: &[u8], step: i64) -> Result<()> {
        let bad = |why: &str| Fault::damaged(format!("{tag}: {why}")).into_error("events", "PNG", None);
        // Signature, length, "IHDR", width, height, depth, colour type.
        let header = png.first_chunk::<26>().filter(|h| h.starts_with(b"\x89PNG\r\n\x1a\n") && &h[12..16] == b"IHDR");
        let header = header.ok_or_else(|| bad("the bytes are no PNG picture"))?;
        let number = |at: usize| i64::from(u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes")));
        let channels = match header[25] {
            0 => 1,
            2 | 3 => 3,
            4 => 2,
            6 => 4,
            other => return Err(bad(&format!("{other} is no colour type"))),
        };
        let image = Message::new().int(1, number(20)).int(2, number(16)).int(3, channels).bytes(4, png);
        self.value(step, Message::new().text(1, tag).message(4, &image))
    }

    /// How the values of a tensor are spread, in 30 equal steps. Values that are not finite are left out.
    pub fn histogram(&mut self, tag: &str, values: &Tensor, step: i64) -> Result<()> {
        let values = values.detach().try_cast(DType::Float64)?.try_to_vec::<f64>()?;
        let histogram = histogram(values.into_iter().filter(|v| v.is_finite()).collect());
        self.value(step, Message::new().text(1, tag).message(5, &histogram))
    }
}

/// Cuts the event files of a folder before the first event of `step` or later, and a record that was not finished.
fn cut_from(folder: &Path, step: i64) -> Parse<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("events.out.tfevents.")) {
            continue;
        }
        let bytes = read_file(&path)?;
        let mut end = 0;
        let mut records = record::Records::new(&bytes);
        while let Some(record) = records.next() {
            // A file that is no event file is left alone.
            let Ok(record) = record else {
                end = bytes.len();
                break;
            };
            let of = proto::fields(record)
                .find_map(|f| if let Ok((2, Field::Varint(n))) = f { Some(n as i64) } else { None });
            if of.is_some_and(|of| of >= step) {
                break;
            }
            end = records.position();
        }
        if end < bytes.len() {
            OpenOptions::new().write(true).open(&path)?.set_len(end as u64)?;
        }
    }
    Ok(())
}

fn histogram(values: Vec<f64>) -> Message {
    let (mut low, mut high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
    if values.is_empty() {
        (low, high) = (0.0, 0.0);
    }
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    let (mut limits, mut counts) = (vec![high], vec![values.len() as f64]);
    // Halves, for the difference of two large numbers may not be finite.
    let width = (high / 2.0 - low / 2.0) / BUCKETS as f64 * 2.0;
    if width > 0.0 {
        limits = (1..=BUCKETS).map(|i| if i == BUCKETS { high } else { low + width * i as f64 }).collect();
        counts = vec![0.0; BUCKETS];
        values.iter().for_each(|&v| counts[(((v / 2.0 - low / 2.0) / width * 2.0) as usize).min(BUCKETS - 1)] += 1.0);
    }
    let message = Message::new().double(1, low).double(2, high).double(3, values.len() as f64);
    message.double(4, sum).double(5, squares).doubles(6, &limits).doubles(7, &counts)
}

/// A point of a curve, as it was logged.
#[derive(Clone, PartialEq, Debug)]
pub struct Scalar {
    /// The curve.
    pub tag: String,
    /// The step.
    pub step: i64,
    /// Seconds since 1970.
    pub wall_time: f64,
    /// The value.
    pub value: f32,
}

impl From<Scalar> for crate::Object {
    fn from(s: Scalar) -> crate::Object {
        let (wall_time, value) = (crate::Object::Float(s.wall_time), crate::Object::Float(s.value.into()));
        let entries = [("tag", s.tag.into()), ("step", s.step.into()), ("wall_time", wall_time), ("value", value)];
        entries.into_iter().collect::<crate::Dict>().into()
    }
}

/// The scalars of a file, in the order they were logged. A last record that was cut short, as a killed process leaves
/// it, is passed over; a damaged one is an error.
pub fn scalars(path: impl AsRef<Path>) -> Result<Vec<Scalar>> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("events", FORMAT, Some(path)))
}

/// The scalars of a file in memory.
pub fn scalars_from_bytes(bytes: &[u8]) -> Result<Vec<Scalar>> {
    decode(bytes).map_err(|e| e.into_error("events", FORMAT, None))
}

/// Does it look like an event file?
pub(crate) fn is(bytes: &[u8]) -> bool {
    let mut records = record::Records::new(bytes);
    matches!(records.next(), Some(Ok(first)) if proto::fields(first).any(|f| matches!(f, Ok((3, Field::Bytes(b))) if b.starts_with(b"brain.Event"))))
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Vec<Scalar>> {
    let mut found = Vec::new();
    for record in record::Records::new(bytes) {
        let (mut wall_time, mut step, mut summaries) = (0.0, 0, Vec::new());
        for field in proto::fields(record?) {
            match field? {
                (1, Field::Fixed64(bits)) => wall_time = f64::from_bits(bits),
                (2, Field::Varint(v)) => step = v as i64,
                (5, Field::Bytes(summary)) => summaries.push(summary),
                _ => {}
            }
        }
        for summary in summaries {
            for value in proto::fields(summary) {
                if let (1, Field::Bytes(value)) = value?
                    && let Some((tag, value)) = scalar(value)?
                {
                    found.push(Scalar { tag, step, wall_time, value });
                }
            }
        }
    }
    Ok(found)
}

/// Tag and number of a value, if it is a number: the plain form, or a tensor of one float as newer writers have it.
fn scalar(value: &[u8]) -> Parse<Option<(String, f32)>> {
    let (mut tag, mut number) = (String::new(), None);
    for field in proto::fields(value) {
        match field? {
            (1, Field::Bytes(name)) => tag = String::from_utf8_lossy(name).into_owned(),
            (2, Field::Fixed32(bits)) => number = Some(f32::from_bits(bits)),
            (8, Field::Bytes(tensor)) => number = float_tensor(tensor)?,
            _ => {}
        }
    }
    Ok(number.map(|n| (tag, n)))
}

fn float_tensor(tensor: &[u8]) -> Parse<Option<f32>> {
    let (mut float, mut number) = (false, None);
    for field in proto::fields(tensor) {
        match field? {
            (1, Field::Varint(dtype)) => float = dtype == 1,
            (5, Field::Fixed32(bits)) => number = Some(f32::from_bits(bits)),
            (4 | 5, Field::Bytes(raw)) => number = raw.try_into().ok().map(f32::from_le_bytes),
            _ => {}
        }
    }
    Ok(number.filter(|_| float))
}
