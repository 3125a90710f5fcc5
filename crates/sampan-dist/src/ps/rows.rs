//! The rows of a table: those used last in memory, the others on disk.

use super::disk::Disk;
use super::rule::Rule;
use sampan_core::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"sampanPS";

struct Row {
    data: Box<[f32]>,
    /// How often it stands in the queue of those to go.
    queued: u32,
}

/// Rows by their ids.
pub struct Rows {
    dim: usize,
    rule: Rule,
    /// New values lie between minus this and this.
    range: f64,
    seed: u64,
    hot: HashMap<u64, Row>,
    /// Ids in the order of their use; who stands here again was used since.
    queue: VecDeque<u64>,
    /// The most rows in memory.
    limit: usize,
    folder: PathBuf,
    disk: Option<Disk>,
}

/// A number that depends on its arguments alone, evenly in [0, 1): new rows are the same on any server, in any order.
fn drawn(seed: u64, id: u64, at: u64) -> f64 {
    let mut x = seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ at.wrapping_mul(0xD1B5_4A32_D192_ED03);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

impl Rows {
    /// No rows yet.
    pub fn new(dim: usize, rule: Rule, range: f64, seed: u64, limit: usize, folder: PathBuf) -> Rows {
        let (hot, queue) = (HashMap::new(), VecDeque::new());
        Rows { dim, rule, range, seed, hot, queue, limit: limit.max(1), folder, disk: None }
    }

    fn width(&self) -> usize {
        self.dim + self.rule.state(self.dim)
    }

    fn new_row(&self, id: u64) -> Vec<f32> {
        let mut row = vec![0.0; self.width()];
        let (values, state) = row.split_at_mut(self.dim);
        if self.range != 0.0 {
            for (at, value) in values.iter_mut().enumerate() {
                *value = ((drawn(self.seed, id, at as u64) * 2.0 - 1.0) * self.range) as f32;
            }
        }
        self.rule.begin(state);
        row
    }

    /// The row with an id, in memory.
    fn row(&mut self, id: u64) -> Result<&mut [f32]> {
        if !self.hot.contains_key(&id) {
            let found = self.disk.as_mut().map_or(Ok(None), |d| d.take(id))?;
            let room = self.make_room();
            // Where the disk is full nothing new comes; a row that has left its place there stays in memory.
            if found.is_none() {
                room?;
            }
            let data = found.unwrap_or_else(|| self.new_row(id)).into_boxed_slice();
            self.hot.insert(id, Row { data, queued: 0 });
        }
        // Short of the limit nobody has to go, and nobody needs to stand in the queue twice.
        let full = self.hot.len() >= self.limit;
        let row = self.hot.get_mut(&id).expect("it was put there");
        if row.queued == 0 || full {
            row.queued += 1;
            self.queue.push_back(id);
        }
        Ok(&mut row.data)
    }

    /// Those whose last use is longest ago go to disk, until there is room for one more. Who cannot go stays.
    fn make_room(&mut self) -> Result<()> {
        while self.hot.len() >= self.limit {
            let width = self.width();
            let disk = match &mut self.disk {
                Some(disk) => disk,
                none => none.insert(Disk::new(&self.folder, width)?),
            };
            let Some(&id) = self.queue.front() else { break };
            if let Some(row) = self.hot.get_mut(&id) {
                if row.queued == 1 {
                    disk.put(id, &row.data)?;
                    self.hot.remove(&id);
                } else {
                    row.queued -= 1;
                }
            }
            self.queue.pop_front();
        }
        Ok(())
    }

    /// The values of a row.
    pub fn read(&mut self, id: u64, out: &mut Vec<f32>) -> Result<()> {
        let dim = self.dim;
        out.extend_from_slice(&self.row(id)?[..dim]);
        Ok(())
    }

    /// Changes a row by its gradient.
    pub fn learn(&mut self, id: u64, lr: f64, l2: f64, grad: &[f32]) -> Result<()> {
        let rule = self.rule;
        rule.apply(lr, l2, self.row(id)?, grad);
        Ok(())
    }

    /// Adds to a row.
    pub fn add(&mut self, id: u64, values: &[f32]) -> Result<()> {
        self.row(id)?.iter_mut().zip(values).for_each(|(a, b)| *a += b);
        Ok(())
    }

    /// Sets the values of a row.
    pub fn set(&mut self, id: u64, values: &[f32]) -> Result<()> {
        self.row(id)?[..values.len()].copy_from_slice(values);
        Ok(())
    }

    /// How many there are, and how many of them in memory.
    pub fn counts(&self) -> (usize, usize) {
        (self.hot.len() + self.disk.as_ref().map_or(0, Disk::len), self.hot.len())
    }

    /// Writes all rows beside a file's place, and then puts them there.
    pub fn save(&self, path: &Path) -> Result<()> {
        let beside = path.with_extension("new");
        let written = self.write(&beside).and_then(|()| Ok(std::fs::rename(&beside, path)?));
        written.inspect_err(|_| drop(std::fs::remove_file(&beside)))
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let total = self.counts().0 as u64;
        file.write_all(MAGIC)?;
        for number in [self.dim as u64, self.width() as u64, total] {
            file.write_all(&number.to_le_bytes())?;
        }
        let mut ids: Vec<u64> = self.hot.keys().copied().chain(self.disk.iter().flat_map(Disk::ids)).collect();
        ids.sort_unstable();
        for id in ids {
            let cold;
            let row: &[f32] = match (self.hot.get(&id), &self.disk) {
                (Some(row), _) => &row.data,
                (None, Some(disk)) => {
                    cold = disk.get(id)?.unwrap_or_default();
                    &cold
                }
                (None, None) => continue,
            };
            file.write_all(&id.to_le_bytes())?;
            file.write_all(bytemuck::cast_slice(row))?;
        }
        Ok(file.into_inner().map_err(|e| e.into_error())?.sync_all()?)
    }

    /// Takes rows over that `save` wrote; `mine` says which of them.
    pub fn load(&mut self, path: &Path, mine: impl Fn(u64) -> bool) -> Result<()> {
        let wrong = |what: &str| Error::invalid(format!("{path:?} is not a table of this kind: {what}"));
        let length = std::fs::metadata(path)?.len();
        let mut file = BufReader::new(File::open(path)?);
        let mut head = [0u8; 32];
        file.read_exact(&mut head).map_err(|_| wrong("it is too short"))?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        if &head[..8] != MAGIC {
            return Err(wrong("it begins with other words"));
        }
        if (number(8), number(16)) != (self.dim as u64, self.width() as u64) {
            return Err(wrong(&format!(
                "its rows have {} values and {} numbers, expected {} and {}",
                number(8),
                number(16),
                self.dim,
                self.width()
            )));
        }
        let size = 8 + 4 * self.width() as u64;
        if number(24).checked_mul(size).and_then(|n| n.checked_add(32)) != Some(length) {
            return Err(wrong("its length is not that of its rows"));
        }
        let mut row = vec![0.0f32; self.width()];
        for _ in 0..number(24) {
            let mut id = [0; 8];
            file.read_exact(&mut id)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut row))?;
            let id = u64::from_le_bytes(id);
            if mine(id) {
                self.row(id)?.copy_from_slice(&row);
            }
        }
        Ok(())
    }
}
