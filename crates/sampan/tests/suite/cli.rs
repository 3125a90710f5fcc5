//! The command as a person uses it.

use crate::Folder;
use std::process::{Command, Output, Stdio};

fn sampan(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sampan")).args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fails with one sentence that holds these words.
fn refused(args: &[&str], words: &[&str]) {
    let output = sampan(args);
    let error = text(&output.stderr);
    assert!(!output.status.success(), "{args:?} succeeded");
    assert!(!error.contains("panicked"), "{args:?}: {error}");
    words.iter().for_each(|w| assert!(error.contains(w), "{args:?} should say {w:?}: {error}"));
}

#[test]
fn from_training_to_a_read_digit() {
    let folder = Folder::new("cli");
    let run = folder.path().join("run");
    let out = run.to_str().unwrap();
    let trained = sampan(&["train", "--epochs", "3", "--limit", "3000", "--out", out]);
    let shown = text(&trained.stdout);
    assert!(trained.status.success(), "{}", text(&trained.stderr));
    assert!(shown.contains("Epoch 3/3") && shown.contains("test accuracy") && shown.contains("loss.png"), "{shown}");

    let judged = sampan(&["eval", "--model", out, "--limit", "500"]);
    assert!(text(&judged.stdout).contains("test accuracy"), "{}", text(&judged.stderr));

    // A digit of the test set, as a picture file, dark on light and twice as large.
    let digits = sampan::data::Mnist::new(sampan::data::Split::Test).unwrap();
    let sample = sampan::data::Dataset::get(&digits, 0).unwrap();
    let large = sampan::data::vision::transforms::resize(&sample[0], [56, 56], "nearest").unwrap();
    let inverted = large.cast(sampan::DType::Float32) * -1.0 + 255.0;
    let picture = folder.path().join("seven.png");
    sampan::data::vision::image::save(&inverted.cast(sampan::DType::UInt8), &picture).unwrap();
    let picture = picture.to_str().unwrap();
    let read = sampan(&["predict", picture, "--model", out]);
    assert!(text(&read.stdout).contains("seven.png: 7 ("), "{}{}", text(&read.stdout), text(&read.stderr));

    // A small digit in the corner of a large picture is found; a blank one is not read.
    let corner = sampan::data::vision::transforms::pad(&large, [30, 200, 300, 100], 0, "constant").unwrap();
    let small = folder.path().join("corner.png");
    sampan::data::vision::image::save(&corner, &small).unwrap();
    let read = sampan(&["predict", small.to_str().unwrap(), "--model", out]);
    assert!(text(&read.stdout).contains("corner.png: 7 ("), "{}{}", text(&read.stdout), text(&read.stderr));
    let blank = folder.path().join("blank.png");
    sampan::data::vision::image::save(&sampan::Tensor::zeros([9, 9, 1], sampan::DType::UInt8), &blank).unwrap();
    refused(&["predict", blank.to_str().unwrap(), "--model", out], &["blank.png", "nothing is drawn"]);

    let file = run.join("checkpoint.safetensors");
    let held = sampan(&["info", file.to_str().unwrap(), out]);
    let held = text(&held.stdout);
    assert!(held.contains("3 epochs and 0 steps done") && held.contains("features.0.weight"), "{held}");

    // The network as a file that runs without this program, and is run by it.
    let network = folder.path().join("models").join("digits.pdmodel");
    let written = sampan(&["convert", out, "--to", network.to_str().unwrap()]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let array = folder.path().join("x.npy");
    let x = (sample[0].cast(sampan::DType::Float32) * (1.0 / 127.5) - 1.0).reshape([1, 1, 28, 28]);
    sampan::io::npy::save(&array, &x).unwrap();
    let run = sampan(&["infer", network.to_str().unwrap(), "--input", array.to_str().unwrap(), "--profile"]);
    let shown = text(&run.stdout);
    assert!(
        shown.contains("output 0: [1, 10] float32") && shown.contains("ms  conv2d"),
        "{shown}{}",
        text(&run.stderr)
    );

    refused(
        &["train", "--resume", "--out", out, "--batch-size", "32"],
        &["other settings", "--batch-size 32, the run has 64", "Hint"],
    );
    refused(&["predict", "no-such.png", "--model", out], &["no-such.png"]);
    let broken = folder.path().join("broken.png");
    std::fs::write(&broken, b"no picture").unwrap();
    refused(&["predict", broken.to_str().unwrap(), "--model", out], &["broken.png"]);
    refused(&["info", broken.to_str().unwrap()], &["broken.png"]);
    std::fs::write(&broken, b"").unwrap();
    refused(&["info", broken.to_str().unwrap(), folder.path().to_str().unwrap()], &["is empty", "no trained model in"]);
    refused(&["eval", "--model", broken.to_str().unwrap()], &["broken.png"]);
}

/// Training does not end because nobody listens, but an answer that could not be given is an error.
#[cfg(unix)]
#[test]
fn standard_output_that_is_closed_or_full() {
    let folder = Folder::new("cli-output");
    let start = |out: &str, stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sampan"));
        command.args(["train", "--epochs", "1", "--limit", "200", "--out"]).arg(folder.path().join(out));
        command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut closed = start("closed", Stdio::piped());
    drop(closed.stdout.take());
    let closed = closed.wait_with_output().unwrap();
    assert!(closed.status.success(), "{}", text(&closed.stderr));
    assert!(folder.path().join("closed/model.pdparams").exists());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let full = start("full", full.into()).wait_with_output().unwrap();
    assert!(!full.status.success() && text(&full.stderr).contains("standard output"), "{}", text(&full.stderr));
    assert!(folder.path().join("full/model.pdparams").exists());
}

#[test]
fn wrong_arguments_get_a_sentence() {
    let folder = Folder::new("cli-wrong");
    let out = folder.path().to_str().unwrap();
    refused(&["train", "--resume", "--out", out], &["no run to go on with", "Hint"]);
    refused(&["train", "--lr", "-1", "--out", out], &["--lr", "positive"]);
    refused(&["train", "--epochs", "0", "--out", out], &["--epochs"]);
    refused(&["train", "--batch-size", "0", "--out", out], &["--batch-size"]);
    refused(&["train", "--out", "/proc/no/such"], &["/proc/no/such"]);
    refused(&["eval", "--model", out], &["no trained model", "sampan train"]);
    refused(&["info", "no-such-file"], &["no-such-file"]);
    refused(&["summary", "resnet19"], &["resnet19", "list"]);
    refused(&["fly"], &["fly"]);
    refused(&["serve", "/no/such/folder"], &["serve"]);
    let help = text(&sampan(&["train", "--help"]).stdout);
    assert!(help.contains("--resume") && help.contains("Examples"), "{help}");
    let table = text(&sampan(&["summary", "lenet", "--flops"]).stdout);
    assert!(table.contains("Total params: 61,610") && table.contains("Total Flops: 347560"), "{table}");
}

#[test]
fn recordings_and_files_of_reprod_log_are_compared() {
    use sampan::align::{Recording, Tensors};
    let folder = Folder::new("align");
    let write = |name: &str, shift: f32| {
        let mut tensors = Tensors::default();
        tensors.insert("logits".into(), sampan::Tensor::new([1.0f32, 2.0, 3.0]) + shift);
        let mut recording = Recording::default();
        recording.sections.insert("forward".into(), tensors);
        let path = folder.path().join(name);
        recording.save(&path).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (a, b, c) = (write("a", 0.0), write("b", 0.0), write("c", 0.5));
    assert!(sampan(&["align", &a, &b]).status.success());
    let (page, logs) = (folder.path().join("page.html"), folder.path().join("log"));
    let failed = sampan(&["align", &a, &c, "--html", page.to_str().unwrap(), "--logs", logs.to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stdout).contains("logits"), "{}", text(&failed.stdout));
    assert!(
        page.is_file() && std::fs::read_to_string(logs.join("forward_diff.log")).unwrap().contains("diff check failed")
    );
    let one = format!("{a}/forward.npy");
    assert!(sampan(&["align", &one, &format!("{b}/forward.npy")]).status.success());
    refused(&["align", &a, "/nowhere"], &["there is no recording", "/nowhere"]);
    refused(&["align", &a, &b, "--check", "sideways"], &["sideways", "forward"]);
    refused(&["align", &a, &b, "--map", "/nowhere/map.txt"], &["/nowhere/map.txt"]);
}

#[test]
fn weights_change_their_framework_and_come_back() {
    let folder = Folder::new("convert");
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let net = sampan::data::vision::models::find("lenet").unwrap().build().unwrap();
    let state: sampan::io::Dict = sampan::nn::Members::state_dict(&net).into_iter().collect();
    sampan::io::save(at("a.pdparams"), &state.into()).unwrap();
    for (from, to) in
        [("a.pdparams", "b.pth"), ("b.pth", "c.npz"), ("c.npz", "d.safetensors"), ("d.safetensors", "e.pdparams")]
    {
        let done = sampan(&[
            "convert",
            &at(from),
            "--to",
            &at(to),
            "--model",
            "lenet",
            "--from",
            if from == "a.pdparams" { "paddle" } else { "torch" },
            "--as",
            if to == "e.pdparams" { "paddle" } else { "torch" },
        ]);
        assert!(done.status.success(), "{from}: {}", text(&done.stderr));
        assert!(text(&done.stdout).contains("fc.0.weight"), "{}", text(&done.stdout));
    }
    let read = |name: &str| sampan::io::load(at(name)).unwrap().tensors();
    let (a, b, e) = (read("a.pdparams"), read("b.pth"), read("e.pdparams"));
    assert_eq!(b["fc.0.weight"].shape(), [120, 400]);
    for (key, tensor) in &a {
        assert_eq!(tensor.to_vec::<f32>(), e[key].to_vec::<f32>(), "{key}");
    }
    let quiet = sampan(&[
        "convert",
        &at("b.pth"),
        "--to",
        &at("e.pdparams"),
        "--model",
        "lenet",
        "-q",
        "--report",
        &at("account.json"),
    ]);
    assert_eq!(text(&quiet.stdout).lines().count(), 1);
    assert!(std::fs::read_to_string(at("account.json")).unwrap().contains("transposed"));

    let old = std::fs::read(at("e.pdparams")).unwrap();
    refused(&["convert", &at("b.pth"), "--to", &at("e.pdparams"), "--model", "alexnet"], &["convert"]);
    refused(
        &["convert", &at("b.pth"), "--to", &at("e.pdparams"), "--model", "nonet"],
        &["neither a network nor a file"],
    );
    refused(&["convert", &at("b.pth"), "--to", &at("e.txt"), "--model", "lenet"], &["does not tell the format"]);
    std::fs::write(at("bad.map"), "fc.0 -> fc.1").unwrap();
    refused(
        &["convert", &at("b.pth"), "--to", &at("e.pdparams"), "--model", "lenet", "--map", &at("bad.map")],
        &["line 1"],
    );
    assert_eq!(std::fs::read(at("e.pdparams")).unwrap(), old);
}

#[test]
fn a_saved_network_runs_without_python() {
    use sampan::graph::{Spec, paddle, trace};
    use sampan::{DType, Tensor};
    let folder = Folder::new("infer");
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let w = Tensor::new([[1.0f32, -1.0], [0.5, 2.0]]);
    w.set_name("w");
    let spec = Spec::new([None, Some(2)], DType::Float32).named("image");
    let graph = trace(|x| Ok(vec![x[0].matmul(&w).relu()]), &[spec]).unwrap();
    paddle::save(&graph, at("net"), &[]).unwrap();
    let x = Tensor::new([[1.0f32, 2.0], [-3.0, 1.0], [0.0, 1.0]]);
    sampan::io::npy::save(at("x.npy"), &x).unwrap();
    for model in ["net", "net.pdmodel", "net.json"] {
        let ran = sampan(&["infer", &at(model), "--input", &at("x.npy"), "--output", &at("y.npy"), "--repeat", "2"]);
        assert!(ran.status.success() && text(&ran.stdout).contains("[3, 2] float32"), "{}", text(&ran.stderr));
        assert_eq!(sampan::io::npy::load(at("y.npy")).unwrap().to_vec::<f32>(), [2.0, 3.0, 0.0, 5.0, 0.5, 2.0]);
    }
    let shown = text(&sampan(&["infer", &at("net"), "--input", &format!("image={}", at("x.npy"))]).stdout);
    assert!(shown.contains("output 0") && shown.contains("0.5"), "{shown}");
    let held = text(&sampan(&["info", &at("net.pdmodel"), &at("net.json")]).stdout);
    assert!(held.contains("input   image [any, 2] float32") && held.contains("matmul 1, relu 1"), "{held}");
    let drawn = sampan(&["info", &at("net.json"), "--svg", &at("net.svg"), "--html", &at("net.html")]);
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let page = std::fs::read_to_string(at("net.html")).unwrap();
    assert!(page.contains(std::fs::read_to_string(at("net.svg")).unwrap().trim()), "the page holds the picture");
    refused(&["info", &at("net.json"), &at("net.pdmodel"), "--svg", &at("net.svg")], &["one network"]);
    refused(&["info", &at("x.npy"), "--svg", &at("other.svg")], &["x.npy"]);
    refused(&["infer", &at("none"), "--input", &at("x.npy")], &["none", "without an ending"]);
    refused(
        &["infer", &at("net"), "--input", &at("x.npy"), "--input", &at("x.npy")],
        &["more files than inputs", "image"],
    );
}
