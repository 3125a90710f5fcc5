//! Several files that belong together, such as `NAME.pdparams` and `NAME.pdopt`: all of them new or all of them old, even
//! if the writer is killed between two of them.
//!
//! The new files are written beside their places first. Then a note, `.NAME.saving`, says which file goes where: from that
//! moment the new ones count. Whoever finds the note does the renaming that is left to do. The files themselves are those
//! that Paddle writes and reads.

use crate::fault::{Fault, Parse};
use crate::{Object, atomic, pdparams};
use sampan_core::Result;
use std::path::{Path, PathBuf};

/// Writes `BASE.SUFFIX` for each suffix, in Paddle's format: all of them or none.
///
/// ```
/// use sampan_io::{Object, set};
/// let base = std::env::temp_dir().join("sampan-io-doc").join("net");
/// set::save(&base, &[("pdparams", Object::Int(1)), ("pdopt", Object::Int(2))])?;
/// assert!(matches!(sampan_io::load(base.with_extension("pdopt"))?, Object::Int(2)));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn save(base: impl AsRef<Path>, files: &[(&str, Object)]) -> Result<()> {
    let base = base.as_ref();
    write(base, files).map_err(|e| e.into_error("save", "cannot write", Some(base)))
}

fn write(base: &Path, files: &[(&str, Object)]) -> Parse<()> {
    finish(base)?;
    let mut written: Vec<(PathBuf, PathBuf)> = Vec::new();
    let all = files.iter().try_for_each(|(suffix, object)| {
        let target = with_suffix(base, suffix);
        atomic::target_of(&target)?;
        written.push((pdparams::save_beside(&target, object)?, target));
        Ok(())
    });
    let note = all.and_then(|()| {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lines: String = written.iter().map(|(new, target)| format!("{}\t{}\n", name(new), name(target))).collect();
        atomic::replace(&note_of(base), |out| Ok(std::io::Write::write_all(out, lines.as_bytes())?))
    });
    if note.is_err() {
        // The old files stay as they are.
        for (new, _) in &written {
            let _ = std::fs::remove_file(new);
        }
    }
    note?;
    finish(base)
}

/// `BASE.SUFFIX`, whatever other dots there are in the name.
fn with_suffix(base: &Path, suffix: &str) -> PathBuf {
    let mut name = base.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(suffix);
    base.with_file_name(name)
}

fn note_of(base: &Path) -> PathBuf {
    let name = base.file_name().unwrap_or_default().to_string_lossy();
    base.with_file_name(format!(".{name}.saving"))
}

/// Does the renaming that a killed writer of `BASE` left to do; nothing if there is none.
fn finish(base: &Path) -> Parse<()> {
    let note = note_of(base);
    let lines = match std::fs::read_to_string(&note) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        lines => lines?,
    };
    let folder = atomic::folder_of(base);
    for line in lines.lines() {
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        let Some((new, target)) = line.split_once('\t').filter(|(new, target)| plain(new) && plain(target)) else {
            return Err(Fault::damaged(format!("{} does not say which file goes where", note.display())));
        };
        match std::fs::rename(folder.join(new), folder.join(target)) {
            // Done before the writer was killed, or by another reader just now.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
    }
    atomic::sync_folder(folder)?;
    match std::fs::remove_file(&note) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}

/// Completes the set that a file belongs to before it is looked for. What cannot be done here fails in the reading.
pub fn finish_around(path: impl AsRef<Path>) {
    let path = path.as_ref();
    if path.file_stem().is_some() {
        let _ = finish(&path.with_extension(""));
    }
}

/// Completes every set in a folder.
pub(crate) fn finish_all(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if let Some(base) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".saving")) {
            let _ = finish(&folder.join(base));
        }
    }
}
