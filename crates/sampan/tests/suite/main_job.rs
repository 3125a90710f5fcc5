//! The main job on a cut of the data: it learns, and a stopped run goes on to the same bits.

use sampan::train::{Outcome, Settings, train};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

/// The generator belongs to the whole process, so runs that compare bits take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Folder(PathBuf, #[allow(dead_code)] MutexGuard<'static, ()>);
impl Folder {
    fn new(name: &str) -> Folder {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let path = std::env::temp_dir().join(format!("sampan-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path, turn)
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings(out: &Path) -> Settings {
    Settings { epochs: 2, batch_size: 64, lr: 0.002, seed: 1, limit: Some(1500), out: out.into(), resume: false }
}

fn weights(folder: &Path) -> Vec<u8> {
    let bytes = std::fs::read(folder.join("checkpoint.safetensors")).unwrap();
    // The header's metadata comes in any order; the tensors after it are what counts.
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

#[test]
fn learns_and_writes_its_files() {
    let folder = Folder::new("learns");
    let outcome = train(&settings(&folder.0), &AtomicBool::new(false)).unwrap();
    let Outcome::Finished(accuracy) = outcome else { panic!("{outcome:?}") };
    assert!(accuracy > 0.75, "accuracy {accuracy}");
    let log = std::fs::read_to_string(folder.0.join("log.jsonl")).unwrap();
    assert_eq!(log.lines().filter(|l| l.contains("\"loss\"")).count(), 48);
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits() {
    let folder = Folder::new("stopped");
    let (whole, parts) = (folder.0.join("whole"), folder.0.join("parts"));
    train(&settings(&whole), &AtomicBool::new(false)).unwrap();
    // Stops after every single step, as often as it takes.
    let mut run = settings(&parts);
    run.limit = Some(1500);
    let mut stops = 0;
    loop {
        match train(&run, &AtomicBool::new(stops < 5)).unwrap() {
            Outcome::Finished(_) => break,
            Outcome::Stopped(at) => assert_eq!((at.epoch, at.step), (0, stops + 1)),
        }
        stops += 1;
        run.resume = true;
    }
    assert_eq!(stops, 5);
    assert!(weights(&whole) == weights(&parts), "the resumed run ended with other weights");
}

#[test]
fn a_broken_checkpoint_is_refused_with_a_sentence() {
    let folder = Folder::new("broken");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("checkpoint.safetensors"), b"nonsense").unwrap();
    let mut run = settings(&folder.0);
    run.resume = true;
    let error = train(&run, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("checkpoint.safetensors") && error.contains("no checkpoint"), "{error}");
}
