//! How the processes of a group come to have the same memory.

use super::SharedMemory;
use super::layout::{self, Layout};
use crate::secret;
use crate::store::Store;
use crate::sys::{Segment, SegmentName, Watched};
use crate::wire::unavailable;
use parking_lot::Mutex;
use sampan_core::Result;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A word is looked at so often before sleeping, where every process has a core: some tens of microseconds.
const SPINS: u32 = 4096;
/// And so often where processes are more than cores.
const FEW_SPINS: u32 = 128;

fn write_name(name: &SegmentName, nonce: &[u8]) -> Vec<u8> {
    let text = match name {
        SegmentName::Descriptor(pid, fd) => format!("{pid} {fd}"),
        SegmentName::File(path) => path.display().to_string(),
    };
    [nonce, text.as_bytes()].concat()
}

fn read_name(bytes: &[u8]) -> Option<(SegmentName, &[u8])> {
    let (nonce, text) = bytes.split_at_checked(16)?;
    let text = std::str::from_utf8(text).ok()?;
    let name = match text.split_once(' ') {
        Some((pid, fd)) => SegmentName::Descriptor(pid.parse().ok()?, fd.parse().ok()?),
        None => SegmentName::File(PathBuf::from(text)),
    };
    Some((name, nonce))
}

impl SharedMemory {
    /// Meets the others in a store and shares memory with them. An error, the same on all of them, where they cannot.
    pub fn connect(
        store: &Store,
        rank: usize,
        size: usize,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<SharedMemory> {
        let layout = Layout::new(size);
        let mut problem = String::new();
        // Memory without a name is best; where processes may not look into each other, a file will do.
        for (named, key) in [(false, "memory"), (true, "file")] {
            let found = Self::share(store, rank, &layout, named, key, deadline);
            let pid = std::process::id();
            let told = match &found {
                Ok(_) => format!("{pid}"),
                Err(e) => format!("no {}", e.message()),
            };
            let answers = store.gather(&format!("{key}-answers"), rank, size, told.as_bytes(), deadline)?;
            let answers: Vec<String> = answers.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
            let pids: Vec<u32> = answers.iter().filter_map(|a| a.parse().ok()).collect();
            // All have it, or have given up.
            if let (0, Ok((_, SegmentName::File(path)))) = (rank, &found) {
                let _ = std::fs::remove_file(path);
            }
            if let (Ok((segment, _)), true) = (found, pids.len() == size) {
                let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
                let locks = || (0..size).map(|_| Mutex::new(())).collect();
                return Ok(SharedMemory {
                    rank,
                    size,
                    segment,
                    layout,
                    peers: pids.into_iter().map(Watched::new).collect(),
                    timeout,
                    spins: if size <= cores { SPINS } else { FEW_SPINS },
                    round: Mutex::new(0),
                    sending: locks(),
                    taking: locks(),
                });
            }
            let (r, why) = answers.iter().enumerate().find(|(_, a)| a.starts_with("no ")).unwrap_or((0, &problem));
            problem = format!("rank {r}: {}", why.trim_start_matches("no "));
        }
        Err(unavailable(format!("memory cannot be shared ({problem})")))
    }

    fn share(
        store: &Store,
        rank: usize,
        layout: &Layout,
        named: bool,
        key: &str,
        deadline: Instant,
    ) -> Result<(Segment, SegmentName)> {
        if rank == 0 {
            let made = Segment::create(layout.len(), named)
                .and_then(|(segment, name)| segment.reserve(layout.always()).map(|()| (segment, name)));
            let (segment, name) = made.inspect_err(|_| drop(store.set(key, b"")))?;
            let nonce: [u8; 16] = secret::random()?;
            // SAFETY: nobody else knows the memory yet.
            unsafe { segment.write(layout::NONCE) }.copy_from_slice(&nonce);
            store.set(key, &write_name(&name, &nonce))?;
            return Ok((segment, name));
        }
        let told = store.get(key, deadline.saturating_duration_since(Instant::now()))?;
        let (name, nonce) = read_name(&told).ok_or_else(|| unavailable("rank 0 has no memory to share"))?;
        let segment = Segment::open(&name, layout.len())?;
        // SAFETY: rank 0 wrote these bytes before it told anybody, and they are never written again.
        if unsafe { segment.read(layout::NONCE) } != nonce {
            return Err(unavailable("the memory that was found is not the one that was meant"));
        }
        Ok((segment, name))
    }
}
