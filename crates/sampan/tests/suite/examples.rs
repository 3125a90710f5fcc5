//! Every program of the course runs, on a cut of the data.

use crate::Folder;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The programs, and words that each prints only when it has come to its end.
const COURSE: [(&str, &str); 18] = [
    ("01_linear_regression", "nearest digit right"),
    ("02_data_sync", "validation loss"),
    ("03_data_async", "the same bits for any number of workers"),
    ("04_mlp", "nearest digit right"),
    ("05_cnn", "nearest digit right"),
    ("06_cross_entropy", "read as"),
    ("07_optimizers", "learning rate 0.000020"),
    ("08_debugging", "a NaN: (NotFinite) log"),
    ("09_evaluation", "right digit down, answer across"),
    ("10_regularisation", "against overfitting: L2 decay and dropout"),
    ("11_loss_curve", "events: "),
    ("12_resume", "weights are the same to the bit"),
    ("13_fine_tuning", "from scratch: test accuracy"),
    ("14_image_folder", "is a digit_"),
    ("15_custom_function", "answers [0, 1, 1, 0]"),
    ("16_transformer", "written: one person can "),
    ("17_lstm", "hovercraft"),
    ("18_high_level", "the first test images read"),
];

/// Samples for each program.
const LIMIT: &str = "300";

/// Where Cargo puts the programs: beside the folder of the tests.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps").join("examples")
}

#[test]
fn the_course_is_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(&folder).expect("the course lies in examples/").map(|f| f.unwrap().path());
    let rust = files.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let found: BTreeSet<String> = rust.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(found, COURSE.iter().map(|(name, _)| name.to_string()).collect());
    for readme in ["README.md", "README.zh-CN.md"] {
        let text = std::fs::read_to_string(folder.join(readme)).expect("the course has a table");
        COURSE.iter().for_each(|(name, _)| assert!(text.contains(name), "{readme} does not name {name}"));
    }
}

/// The tutorial is run as doc tests; its translation must not fall behind.
#[test]
fn the_translated_tutorial_has_the_same_programs() {
    let code = |file: &str| -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        let text = std::fs::read_to_string(path).expect("the tutorial lies in docs/");
        text.split("```").skip(1).step_by(2).map(String::from).collect()
    };
    assert_eq!(code("tutorial.md"), code("tutorial.zh-CN.md"));
    assert!(code("tutorial.md").len() > 3);
}

/// Two at a time, each in the same folder for what it leaves behind.
#[test]
fn every_program_of_the_course_runs() {
    let folder = Folder::new("examples");
    let next = Mutex::new(COURSE.iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((name, words)) = { next.lock().unwrap().next() } {
                    if let Err(why) = run(name, words, folder.path()) {
                        failures.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn run(name: &str, words: &str, folder: &Path) -> Result<(), String> {
    let program = programs().join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let run = Command::new(&program).current_dir(folder).env("SAMPAN_EXAMPLE_LIMIT", LIMIT).output();
    let run =
        run.map_err(|e| format!("{}: {e}; build it with: cargo build -p sampan --examples", program.display()))?;
    let (printed, said) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if run.status.success() && printed.contains(words) {
        return Ok(());
    }
    Err(format!("{name}: {}, wanted {words:?}\n{printed}\n{said}", run.status))
}

/// The program of `examples/deploy`; its siblings in C and Python have tests of their own.
#[test]
fn a_saved_network_runs() {
    use sampan::graph::{Spec, paddle, trace};
    use sampan::prelude::*;
    let folder = Folder::new("deploy");
    let net = Linear::new(4, 2);
    let spec = Spec::new([None, Some(4)], DType::Float32).named("x");
    let graph = trace(|x| Ok(vec![net.call(&x[0])?]), &[spec]).unwrap();
    paddle::save(&graph, folder.path().join("net"), &[]).unwrap();
    let ran = Command::new(programs().join("infer")).arg(folder.path().join("net.json")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let expected = net.call(&Tensor::new([[0.0f32, 0.25, 0.5, 0.75]])).unwrap().to_vec::<f32>();
    let words = format!("input x [1, 4]\noutput 0 [1, 2] {:.4} {:.4}\n", expected[0], expected[1]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), words);
}
