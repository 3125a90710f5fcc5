//! Rows that wait on disk: a file of equal places.

use sampan_core::{Error, Result};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of rows. It has no name any more, so it goes with the process.
pub struct Disk {
    file: File,
    width: usize,
    places: HashMap<u64, u64>,
    free: Vec<u64>,
    end: u64,
}

fn failed(what: &str, e: &std::io::Error) -> Error {
    Error::new(sampan_core::error::Kind::Unavailable, format!("a row of a table could not be {what} the disk: {e}"))
}

impl Disk {
    /// An empty one, in a folder, for rows of `width` numbers.
    pub fn new(folder: &Path, width: usize) -> Result<Disk> {
        let path = folder.join(format!("sampan-rows-{}-{}", std::process::id(), crate::secret::token()?));
        let open = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = open.map_err(|e| Error::invalid(format!("rows cannot be kept in {folder:?}: {e}")))?;
        std::fs::remove_file(&path)?;
        Ok(Disk { file, width, places: HashMap::new(), free: Vec::new(), end: 0 })
    }

    /// Puts a row there.
    pub fn put(&mut self, id: u64, row: &[f32]) -> Result<()> {
        let place = self.free.last().copied().unwrap_or(self.end);
        let at = place * (self.width as u64) * 4;
        self.file.write_all_at(bytemuck::cast_slice(row), at).map_err(|e| failed("written to", &e))?;
        if self.free.pop().is_none() {
            self.end += 1;
        }
        self.places.insert(id, place);
        Ok(())
    }

    /// Reads a row, if it is there.
    pub fn get(&self, id: u64) -> Result<Option<Vec<f32>>> {
        let Some(place) = self.places.get(&id) else { return Ok(None) };
        let mut row = vec![0.0f32; self.width];
        let at = place * (self.width as u64) * 4;
        self.file.read_exact_at(bytemuck::cast_slice_mut(&mut row), at).map_err(|e| failed("read from", &e))?;
        Ok(Some(row))
    }

    /// Takes a row back, if it is there.
    pub fn take(&mut self, id: u64) -> Result<Option<Vec<f32>>> {
        let row = self.get(id)?;
        if row.is_some() {
            self.free.extend(self.places.remove(&id));
        }
        Ok(row)
    }

    /// The ids of the rows there.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.keys().copied()
    }

    /// How many rows are there.
    pub fn len(&self) -> usize {
        self.places.len()
    }
}
