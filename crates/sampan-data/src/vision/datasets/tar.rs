//! Entries of tar archives, compressed with gzip or not.

use crate::files::file_error;
use flate2::read::GzDecoder;
use sampan_core::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The most that one entry may hold: no file of these data sets comes near it, a hostile archive stops there.
const MOST: u64 = 1 << 28;

fn is_gzip(file: &mut File) -> std::io::Result<bool> {
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(magic == [0x1f, 0x8b])
}

fn broken(path: &Path, e: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{} is no tar archive that can be read: {e}", path.display()))
        .hint("the file may be cut short: delete it and download it again")
}

/// Runs `visit` on the name and the reader of every file in the archive.
pub(super) fn for_each_file(path: &Path, mut visit: impl FnMut(&str, &mut dyn Read) -> Result<()>) -> Result<()> {
    let mut file = File::open(path).map_err(|e| file_error(path, e))?;
    let gzip = is_gzip(&mut file).map_err(|e| file_error(path, e))?;
    let file = BufReader::with_capacity(1 << 16, file);
    let bytes: Box<dyn Read> = if gzip { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut archive = tar::Archive::new(bytes);
    for entry in archive.entries().map_err(|e| broken(path, e))? {
        let entry = entry.map_err(|e| broken(path, e))?;
        if entry.header().entry_type().is_file() {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            visit(&name, &mut entry.take(MOST))?;
        }
    }
    Ok(())
}

/// All of an entry.
pub(super) fn read_all(path: &Path, reader: &mut dyn Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| broken(path, e))?;
    Ok(bytes)
}

/// Where each file of an uncompressed archive lies: name, first byte, number of bytes.
pub(super) fn table_of_contents(path: &Path) -> Result<Vec<(String, u64, u64)>> {
    let mut file = File::open(path).map_err(|e| file_error(path, e))?;
    if is_gzip(&mut file).map_err(|e| file_error(path, e))? {
        return Err(broken(path, "it is compressed").hint("unpack it with gunzip: single images are read from it"));
    }
    let mut archive = tar::Archive::new(file);
    let mut table = Vec::new();
    for entry in archive.entries_with_seek().map_err(|e| broken(path, e))? {
        let entry = entry.map_err(|e| broken(path, e))?;
        if entry.header().entry_type().is_file() {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            table.push((name, entry.raw_file_position(), entry.size()));
        }
    }
    Ok(table)
}

/// A piece of a file. It is not longer than the file, whatever the archive says.
pub(super) fn read_at(path: &Path, start: u64, size: u64) -> Result<Vec<u8>> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(size.min(MOST)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|e| file_error(path, e))?;
    if bytes.len() as u64 != size {
        return Err(broken(path, format!("expected {size} bytes at {start}, it has {}", bytes.len())));
    }
    Ok(bytes)
}
