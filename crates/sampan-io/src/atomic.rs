//! Files that appear whole or not at all.

use crate::fault::{Fault, Parse};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file whole or not at all: beside its place first, to the disk, and then renamed. Folders on the way are made.
/// Whoever is killed in between leaves the old file as it was.
///
/// ```
/// let path = std::env::temp_dir().join("sampan-io-doc").join("notes.txt");
/// sampan_io::atomic::write(&path, b"kept")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"kept");
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> sampan_core::Result<()> {
    let path = path.as_ref();
    replace(path, |out| Ok(out.write_all(bytes)?)).map_err(|e| e.into_error("save", "cannot write", Some(path)))
}

/// Like [`write`], for contents that are made as they are written.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Parse<()>) -> Parse<()> {
    let target = target_of(path)?;
    let temporary = write_beside(&target, fill)?;
    if let Err(e) = std::fs::rename(&temporary, &target) {
        let _ = std::fs::remove_file(&temporary);
        return Err(e.into());
    }
    Ok(sync_folder(folder_of(&target))?)
}

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file to the disk under another name in the same folder, ready to be renamed to `target`.
pub(crate) fn write_beside(target: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Parse<()>) -> Parse<PathBuf> {
    let folder = folder_of(target);
    std::fs::create_dir_all(folder)?;
    let (temporary, file) = create_beside(target, folder)?;
    let written = fill_and_sync(file, target, fill);
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.map(|()| temporary)
}

/// Where the bytes are to go: a link is followed, as opening it would.
pub(crate) fn target_of(path: &Path) -> Parse<PathBuf> {
    if path.file_name().is_none() {
        return Err(Fault::damaged("the path names no file"));
    }
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = if found.is_dir() { "a folder" } else { "no regular file" };
            Err(Fault::damaged(format!("there is {what} at this path, which cannot be replaced")))
        }
        Ok(_) => Ok(path.canonicalize()?),
        Err(_) => Ok(path.to_path_buf()),
    }
}

/// A new file that no other writer has.
fn create_beside(target: &Path, folder: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // A name may have 255 bytes at most, and ours is longer than the one asked for.
    let name: String = name.chars().take(50).collect();
    loop {
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{name}.{}.{unique}.partial", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => return Ok((temporary, opened?)),
        }
    }
}

/// Removes what writers that were killed left in a folder. Nobody else may be writing there.
pub fn remove_leftovers(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    crate::set::finish_all(folder);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(".partial") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn fill_and_sync(file: File, target: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Parse<()>) -> Parse<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(|e| e.into_error())?;
    if let Ok(old) = std::fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    Ok(file.sync_all()?)
}

/// The new name reaches the disk with the folder that holds it.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some file systems cannot do it; the file is in its place all the same.
        Err(e) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Err(e),
        _ => Ok(()),
    }
}
