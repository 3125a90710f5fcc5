//! The main job on a cut of the data: it learns, and a stopped run goes on to the same bits.

use crate::Folder;
use sampan::main_job::{Ended, Settings, train};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn settings() -> Settings {
    Settings { epochs: 2, seed: 1, limit: Some(1500), ..Settings::default() }
}

fn run(folder: &Path, resume: bool, stop: bool) -> sampan::Result<Ended> {
    train(&settings(), folder, resume, 0, Arc::new(AtomicBool::new(stop)))
}

#[test]
fn learns_and_writes_its_files() {
    let folder = Folder::new("learns");
    let ended = run(folder.path(), false, false).unwrap();
    let Ended::Finished { accuracy } = ended else { panic!("{ended:?}") };
    assert!(accuracy > 0.75, "accuracy {accuracy}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let steps = String::from_utf8(read("steps.jsonl")).unwrap();
    assert_eq!(steps.lines().filter(|l| l.contains("\"train\"")).count(), 48);
    assert_eq!(steps.lines().filter(|l| l.contains("\"eval\"")).count(), 2);
    let log = String::from_utf8(read("train.log")).unwrap();
    assert!(log.contains("[epoch 0, iter 24][TRAIN]avg_samples: ") && log.contains("avg_reader_cost: "), "{log}");
    assert!(read("loss.png").starts_with(b"\x89PNG"));
    let model = sampan::io::load(folder.path().join("model.pdparams")).unwrap().tensors();
    assert_eq!(model["features.0.weight"].shape(), [6, 1, 5, 5]);
    let events = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.path());
    let events = events.into_iter().find(|p| p.to_string_lossy().contains("tfevents")).expect("an event file");
    let scalars = sampan::io::events::scalars(events).unwrap();
    assert_eq!(scalars.iter().filter(|s| s.tag == "train/loss").count(), 48);
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits() {
    let folder = Folder::new("stopped");
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    run(&whole, false, false).unwrap();
    // Stops after every single step, then again in the second epoch.
    for stops in 0.. {
        match run(&parts, stops > 0, stops < 5).unwrap() {
            Ended::Finished { .. } => break,
            Ended::Stopped { epoch, step } => assert_eq!((epoch, step), (0, stops + 1)),
        }
    }
    let weights = |folder: &Path| std::fs::read(folder.join("model.pdparams")).unwrap();
    assert!(weights(&whole) == weights(&parts), "the resumed run ended with other weights");
    let lines = |folder: &Path| std::fs::read_to_string(folder.join("steps.jsonl")).unwrap().lines().count();
    assert_eq!(lines(&whole), lines(&parts), "a step is logged once");
}

/// A second run in the folder waits for nothing and breaks nothing.
#[test]
fn one_run_at_a_time() {
    let folder = Folder::new("locked");
    let held = std::fs::File::create(folder.path().join(".lock")).unwrap();
    held.lock().unwrap();
    let error = run(folder.path(), false, false).unwrap_err().to_string();
    assert!(error.contains("another process is training") && error.contains("--out"), "{error}");
    held.unlock().unwrap();
    std::fs::write(folder.path().join(".checkpoint.safetensors.1.0.partial"), b"half").unwrap();
    run(folder.path(), false, true).unwrap();
    assert!(!folder.path().join(".checkpoint.safetensors.1.0.partial").exists(), "what a kill left is removed");
}

#[test]
fn broken_and_absent_runs_are_refused_with_a_sentence() {
    let folder = Folder::new("broken");
    std::fs::write(folder.path().join("checkpoint.safetensors"), b"nonsense").unwrap();
    let error = run(folder.path(), true, false).unwrap_err().to_string();
    assert!(error.contains("checkpoint.safetensors"), "{error}");
    // A file of tensors that is no checkpoint.
    let tensors = std::collections::BTreeMap::from([("a".to_string(), sampan::Tensor::new([1.0f32]))]);
    let path = folder.path().join("checkpoint.safetensors");
    sampan::io::safetensors::save(&path, &tensors, &Default::default()).unwrap();
    let error = run(folder.path(), true, false).unwrap_err().to_string();
    assert!(error.contains("no checkpoint of a run"), "{error}");
}
