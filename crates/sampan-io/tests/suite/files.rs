//! Paths, ends of names, and files that appear whole or not at all.

use crate::Folder;
use crate::ramp::ramp;
use sampan_core::{DType, Tensor};
use sampan_io::{Dict, Object, atomic, load, npy, save};
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
    for name in ["a.pdparams", "a.pdopt", "a.safetensors", "a.npz", "noend"] {
        let path = folder.0.join("made/on/the/way").join(name);
        save(&path, &state).unwrap();
        assert_eq!(load(&path).unwrap(), state, "{name}");
    }
    let one = Object::from(ramp(DType::Bool, &[3]));
    save(folder.0.join("a.npy"), &one).unwrap();
    assert_eq!(load(folder.0.join("a.npy")).unwrap(), one);
    for (name, reason) in [("a.npy", "one tensor"), ("a.pth", "not written")] {
        assert!(save(folder.0.join(name), &state).unwrap_err().to_string().contains(reason));
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
