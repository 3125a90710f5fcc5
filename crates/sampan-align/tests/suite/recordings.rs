//! Recordings as files: round trips, and files that are not what they say.

use crate::{none, recording, row, wave};
use sampan_align::{Recording, Structure};
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sampan-align-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn what_is_saved_is_loaded() {
    let path = folder("round");
    let x = wave(&[2, 3]);
    let made = recording("torch", &x, &[row("act", "ReLU", none(), &x.relu())]);
    made.save(&path).unwrap();
    let read = Recording::load(&path).unwrap();
    assert_eq!(read.structure.to_json(), made.structure.to_json());
    assert_eq!(read.tensor("forward", "act").unwrap().to_vec::<f32>(), x.relu().to_vec::<f32>());
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn damaged_recordings_get_a_sentence() {
    let path = folder("damaged");
    let x = wave(&[64, 3]);
    recording("torch", &x, &[row("act", "ReLU", none(), &x.relu())]).save(&path).unwrap();
    let file = path.join("forward.npy");
    let bytes = std::fs::read(&file).unwrap();
    for cut in [0, 5, 40, 130, 200, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&file, &bytes[..cut]).unwrap();
        let error = Recording::load(&path).err().unwrap_or_else(|| panic!("{cut} bytes were read")).to_string();
        assert!(error.contains("forward.npy"), "{error}");
    }
    std::fs::write(&file, &bytes).unwrap();
    std::fs::write(path.join("structure.json"), "{\"format\": 1, \"side\": \"to").unwrap();
    let error = Recording::load(&path).err().unwrap().to_string();
    assert!(error.contains("structure.json") && error.contains("record it again"), "{error}");
    std::fs::remove_dir_all(&path).unwrap();
    assert!(Recording::load(&path).err().unwrap().to_string().contains("there is no recording"));
    assert!(Structure::from_json("{\"format\": 99, \"side\": \"x\"}").unwrap_err().to_string().contains("format 99"));
}

#[test]
fn a_pickle_that_wants_to_run_something_is_refused() {
    // numpy.save's header, and a pickle that calls os.system.
    let path = folder("evil").with_extension("npy");
    let mut bytes = b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (), }".to_vec();
    bytes.resize(10 + 118 - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(b"\x80\x03cos\nsystem\nX\x02\x00\x00\x00ls\x85R.");
    std::fs::write(&path, bytes).unwrap();
    assert!(Recording::load(&path).is_err());
    std::fs::remove_file(path).unwrap();
}
