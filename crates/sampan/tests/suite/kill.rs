//! A run that is killed again and again ends in the same bits as one that was not.

use crate::Folder;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KILLS: usize = 50;

fn start(folder: &Path, resume: bool) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sampan"));
    command.args(["train", "--quiet", "--epochs", "4", "--batch-size", "32", "--limit", "256", "--seed", "3"]);
    command.args(["--checkpoint-every", "3", "--out"]).arg(folder);
    if resume {
        command.arg("--resume");
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts")
}

/// What the run left: the trained model and its optimizer, and what its logs speak of, each as often as they do.
type Left = (Vec<u8>, Vec<u8>, Vec<String>);

fn finish(child: Child, folder: &Path) -> Left {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    // Costs differ from run to run; the beginning of a line says which step it is about.
    let mut said: Vec<String> =
        text("train.log").lines().map(|l| l.split("avg_").next().unwrap_or_default().to_string()).collect();
    said.extend(text("steps.jsonl").lines().map(|l| l.split(",\"values").next().unwrap_or_default().to_string()));
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    for path in entries.filter(|p| p.to_string_lossy().contains("tfevents")) {
        said.extend(sampan_io::events::scalars(path).unwrap().iter().map(|s| format!("{} {}", s.tag, s.step)));
    }
    said.sort();
    (read("model.pdparams"), read("model.pdopt"), said)
}

#[test]
fn killed_anywhere_a_run_ends_in_the_same_bits() {
    let folder = Folder::new("kill");
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let began = std::time::Instant::now();
    let expected = finish(start(&whole, false), &whole);
    let whole_time = began.elapsed();
    // Where the kills fall is the machine's chance; a fixed sequence of delays would always hit the same places.
    let mut state = std::process::id() as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let (mut kills, mut finished) = (0, 0);
    let mut resume = false;
    while kills < KILLS {
        let mut child = start(&killed, resume);
        std::thread::sleep(Duration::from_secs_f64(whole_time.as_secs_f64() * 0.8 * random()));
        if child.try_wait().unwrap().is_some() {
            assert!(finish(child, &killed) == expected, "after {kills} kills the weights or the logs differ");
            finished += 1;
            resume = false;
            std::fs::remove_dir_all(&killed).unwrap();
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // Before the settings are written there is no run yet.
        resume = killed.join("settings.json").exists();
    }
    assert!(finish(start(&killed, resume), &killed) == expected, "after {kills} kills the weights or the logs differ");
    println!("{kills} kills, {} finished runs, all with the same bits", finished + 1);
}
