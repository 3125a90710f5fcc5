//! Paths, ends of names, and files that appear whole or not at all.

use crate::Folder;
use crate::ramp::ramp;
use sampan_core::{DType, Tensor};
use sampan_io::events::{EventWriter, scalars};
use sampan_io::{Dict, Object, atomic, load, npy, save, set};
use std::path::Path;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_end_of_the_name_chooses_the_format() {
    let folder = Folder::new();
    let state: Object = Dict::from_iter([("weight", ramp(DType::Float32, &[2, 3]))]).into();
    for name in ["a.pdparams", "a.pdopt", "a.safetensors", "a.npz", "a.pth", "noend"] {
        let path = folder.0.join("made/on/the/way").join(name);
        save(&path, &state).unwrap();
        assert_eq!(load(&path).unwrap(), state, "{name}");
    }
    let one = Object::from(ramp(DType::Bool, &[3]));
    save(folder.0.join("a.npy"), &one).unwrap();
    assert_eq!(load(folder.0.join("a.npy")).unwrap(), one);
    // As `numpy.save` does it.
    save(folder.0.join("dict.npy"), &state).unwrap();
    assert_eq!(load(folder.0.join("dict.npy")).unwrap(), state);
    for (name, object, reason) in [("a.npy", &Object::Int(3), "one tensor"), ("a.onnx", &state, "not written")] {
        assert!(save(folder.0.join(name), object).unwrap_err().to_string().contains(reason));
    }
    let mixed: Object = Dict::from_iter([("epoch", 3i64)]).into();
    let message = save(folder.0.join("b.safetensors"), &mixed).unwrap_err().to_string();
    assert!(message.contains("b.safetensors") && message.contains("epoch is a int"), "{message}");
    assert!(!folder.0.join("b.safetensors").exists());
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_other() {
    let folder = Folder::new();
    let path = folder.0.join("kept.npy");
    npy::save(&path, &ramp(DType::Int64, &[2])).unwrap();
    let before = std::fs::read(&path).unwrap();
    let nothing = Tensor::meta([2], DType::Float32);
    let message = npy::save(&path, &nothing).unwrap_err().to_string();
    assert!(message.contains("kept.npy") && message.contains("meta tensor"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(&folder.0), ["kept.npy"]);
    // As a killed process would leave it.
    std::fs::write(folder.0.join(".kept.npy.1.0.partial"), b"half").unwrap();
    atomic::remove_leftovers(&folder.0);
    assert_eq!(names(&folder.0), ["kept.npy"]);
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = Folder::new();
    let message = atomic::write(&folder.0, b"x").unwrap_err().to_string();
    assert!(message.contains("a folder"), "{message}");
    let message = atomic::write(folder.0.join("a/.."), b"x").unwrap_err().to_string();
    assert!(message.contains("names no file"), "{message}");
    std::fs::write(folder.0.join("file"), b"").unwrap();
    let message = atomic::write(folder.0.join("file/below"), b"x").unwrap_err().to_string();
    assert!(message.contains("External") && message.contains("file/below"), "{message}");
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_permissions_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    std::fs::create_dir(folder.0.join("there")).unwrap();
    let (real, link) = (folder.0.join("there/real"), folder.0.join("link"));
    std::fs::write(&real, b"old").unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    atomic::write(&link, b"new").unwrap();
    assert_eq!(std::fs::read(&real).unwrap(), b"new");
    assert!(link.is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(atomic::write("/dev/null", b"x").unwrap_err().to_string().contains("no regular file"));
    #[cfg(target_os = "linux")]
    assert!(std::fs::OpenOptions::new().write(true).open("/dev/null").is_ok());
}

#[test]
fn many_writers_of_one_path() {
    let folder = Folder::new();
    let path = folder.0.join("shared");
    std::thread::scope(|scope| {
        for i in 0..8u8 {
            let path = &path;
            scope.spawn(move || atomic::write(path, &[i; 5000]).unwrap());
        }
    });
    let found = std::fs::read(&path).unwrap();
    assert!(found.len() == 5000 && found.iter().all(|b| *b == found[0]));
    assert_eq!(names(&folder.0), ["shared"]);
}

#[test]
fn errors_name_the_file_and_the_cause() {
    let folder = Folder::new();
    let message = load(folder.0.join("absent.pdparams")).unwrap_err().to_string();
    assert!(message.contains("absent.pdparams") && message.contains("No such file"), "{message}");
    assert!(load(&folder.0).unwrap_err().to_string().contains("there is a folder"));
    let path = folder.0.join("strange.bin");
    std::fs::write(&path, b"strange").unwrap();
    let message = load(&path).unwrap_err().to_string();
    assert!(message.contains("strange.bin") && message.contains("known are"), "{message}");
    let path = folder.0.join("short.npy");
    std::fs::write(&path, &npy::to_bytes(&ramp(DType::Float32, &[4])).unwrap()[..140]).unwrap();
    let message = load(&path).unwrap_err().to_string();
    assert!(
        message.contains("short.npy: npy, byte 128: an array of shape [4] takes 16 bytes, and 12 are there"),
        "{message}"
    );
}

#[test]
fn files_of_a_set_are_all_new_or_all_old() {
    let both = |n: i64| [("pdparams", Object::Int(n)), ("pdopt", Object::Int(n))];
    let files = ["pdparams", "pdopt"].map(|suffix| (suffix, format!(".net.{suffix}.1.0.partial")));
    // What a killed writer of the second set leaves: so many files of the new ones, the note or not, so many renamed.
    for (written, noted, renamed, expected) in
        [(1, false, 0, 1), (2, false, 0, 1), (2, true, 0, 2), (2, true, 1, 2), (2, true, 2, 2)]
    {
        let folder = Folder::new();
        let base = folder.0.join("net");
        set::save(&base, &both(1)).unwrap();
        set::save(folder.0.join("other"), &both(2)).unwrap();
        for (suffix, partial) in &files[..written] {
            std::fs::rename(folder.0.join(format!("other.{suffix}")), folder.0.join(partial)).unwrap();
        }
        if noted {
            let lines = files.iter().map(|(suffix, partial)| format!("{partial}\tnet.{suffix}\n"));
            std::fs::write(folder.0.join(".net.saving"), lines.collect::<String>()).unwrap();
        }
        for (suffix, partial) in &files[..renamed] {
            std::fs::rename(folder.0.join(partial), base.with_extension(suffix)).unwrap();
        }
        for suffix in ["pdopt", "pdparams"] {
            assert_eq!(
                load(base.with_extension(suffix)).unwrap(),
                Object::Int(expected),
                "{written} {noted} {renamed}"
            );
        }
        assert!(!folder.0.join(".net.saving").exists());
        // The next writer, and whoever cleans up, begin with what was left.
        set::save(&base, &both(3)).unwrap();
        atomic::remove_leftovers(&folder.0);
        assert_eq!(load(base.with_extension("pdopt")).unwrap(), Object::Int(3));
        assert!(names(&folder.0).iter().all(|n| !n.starts_with('.')), "{:?}", names(&folder.0));
    }
    // A note that names files elsewhere moves nothing.
    let folder = Folder::new();
    set::save(folder.0.join("net"), &both(1)).unwrap();
    std::fs::write(folder.0.join(".net.saving"), "net.pdopt\t../stolen\n").unwrap();
    load(folder.0.join("net.pdopt")).unwrap();
    assert!(set::save(folder.0.join("net"), &both(2)).unwrap_err().to_string().contains("which file goes where"));
}

#[test]
fn a_resumed_log_says_nothing_twice() {
    let folder = Folder::new();
    let steps = || {
        let mut found: Vec<(i64, f32)> = names(&folder.0)
            .iter()
            .flat_map(|n| scalars(folder.0.join(n)).unwrap())
            .map(|s| (s.step, s.value))
            .collect();
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        found
    };
    for (start, value) in [(1, 0.0), (3, 1.0), (2, 2.0)] {
        let mut log = EventWriter::resume(&folder.0, start).unwrap();
        (start..5).for_each(|step| log.scalar("loss", value, step).unwrap());
        log.flush().unwrap();
        // A record that a kill cut short.
        let mut bytes = std::fs::read(log.path()).unwrap();
        bytes.extend([9; 5]);
        std::fs::write(log.path(), bytes).unwrap();
    }
    assert_eq!(steps(), [(1, 0.0), (2, 2.0), (3, 2.0), (4, 2.0)]);
}
