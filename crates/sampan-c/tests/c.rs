//! The library as C programs see it: the header agrees with the functions, the example runs, wrong calls are answers.

use sampan_c::*;
use sampan_core::{DType, Tensor as Values};
use sampan_graph::{Predictor, Spec, paddle, trace};
use sampan_nn::layers::{Linear, ReLU};
use sampan_nn::{Layer, sequential};
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};

const HEADER: &str = include_str!("../include/sampan.h");

/// A folder of a test's own, and a network of two inputs in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sampan-c-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Folder(path)
    }

    fn network(&self) -> Predictor {
        let net = sequential![Linear::new(4, 8), ReLU::new(), Linear::new(8, 3)];
        let any = |name| Spec::new([None, Some(4)], DType::Float32).named(name);
        let both = |x: &[Values]| Ok(vec![net.call(&x[0])?, x[0].try_add(&x[1])?.try_argmax(Some(1))?]);
        let graph = trace(both, &[any("x"), any("y")]).unwrap();
        paddle::save(&graph, self.0.join("net"), &[]).unwrap();
        Predictor::new(&graph).unwrap()
    }

    fn load(&self) -> *mut Model {
        let path = CString::new(self.0.join("net.pdmodel").to_str().unwrap()).unwrap();
        let mut model = null_mut();
        // SAFETY: text and a place.
        assert_eq!(unsafe { sampan_model_load(path.as_ptr(), &mut model) }, Status::Ok, "{}", said());
        model
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn said() -> String {
    // SAFETY: it is text until the next failure of this thread.
    unsafe { CStr::from_ptr(sampan_last_error()) }.to_string_lossy().into_owned()
}

fn tensor(values: &[f32], dims: &[i64]) -> Tensor {
    let (data, rank) = (values.as_ptr().cast::<c_void>(), dims.len());
    Tensor { data, bytes: size_of_val(values), dims: dims.as_ptr(), rank, dtype: 8 }
}

/// Compiles a C program against the header and the library that this test was built beside.
fn compile(source: &Path, to: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = std::env::current_exe().unwrap();
    let libraries = test.parent().unwrap();
    let made = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(here.join("include"))
        .arg(source)
        .arg("-L")
        .arg(libraries)
        .arg("-lsampan_c")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(to)
        .output()
        .expect("the system has a C compiler, which Rust links with too");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Names of functions in the header: what stands before a parenthesis.
fn functions() -> Vec<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    let code = HEADER.lines().filter(|l| l.ends_with(';') || l.ends_with(',')).filter(|l| l.contains('('));
    code.map(|l| l.split('(').next().unwrap().rsplit(|c| !plain(c)).next().unwrap()).collect()
}

#[test]
fn the_header_says_what_the_library_has() {
    let names = functions();
    let sources = [include_str!("../src/lib.rs"), include_str!("../src/errors.rs"), include_str!("../src/model.rs")];
    let all = [&sources[..], &[include_str!("../src/types.rs")]].concat().concat();
    let exported = all.matches("#[unsafe(no_mangle)]").count();
    assert_eq!(names.len(), exported, "{names:?}");
    assert!(names.iter().all(|n| all.contains(&format!("fn {n}("))), "{names:?}");

    for (i, dtype) in DType::ALL.iter().enumerate() {
        let line = format!("SAMPAN_{} = {i}", dtype.name().to_uppercase());
        assert!(HEADER.contains(&line), "{line}");
        assert_eq!(sampan_dtype_size(i as i32), dtype.size());
    }
    assert_eq!((sampan_dtype_size(-1), sampan_dtype_size(DType::ALL.len() as i32)), (0, 0));
    let statuses = [
        (Status::InvalidArgument, "INVALID_ARGUMENT"),
        (Status::InvalidType, "INVALID_TYPE"),
        (Status::OutOfRange, "OUT_OF_RANGE"),
        (Status::NotFound, "NOT_FOUND"),
        (Status::Precondition, "PRECONDITION"),
        (Status::Unimplemented, "UNIMPLEMENTED"),
        (Status::Unavailable, "UNAVAILABLE"),
        (Status::NotFinite, "NOT_FINITE"),
        (Status::External, "EXTERNAL"),
        (Status::Internal, "INTERNAL"),
    ];
    for (status, name) in statuses {
        assert!(HEADER.contains(&format!("SAMPAN_{name} = {}", status as i32)), "{name}");
    }

    // A C compiler lays structs out as Rust does, and finds every function.
    let folder = Folder::new("layout");
    let mut text = String::from("#include <sampan.h>\n#include <stdio.h>\nint main(void) {\n");
    let mut fields = Vec::new();
    macro_rules! same {
        ($rust:ident as $c:literal: $($field:ident),*) => {
            text += concat!("printf(\"%zu \", sizeof(", $c, "));\n");
            fields.push(size_of::<$rust>());
            $(
                text += concat!("printf(\"%zu \", offsetof(", $c, ", ", stringify!($field), "));\n");
                fields.push(std::mem::offset_of!($rust, $field));
            )*
        };
    }
    same!(Port as "sampan_port": name, dims, rank, dtype);
    same!(Tensor as "sampan_tensor": data, bytes, dims, rank, dtype);
    same!(Buffer as "sampan_buffer": data, bytes);
    text += "printf(\"%zu \", sizeof(sampan_status));\n";
    fields.push(size_of::<Status>());
    names.iter().for_each(|n| text += &format!("if (!(void (*)(void)){n}) return 1;\n"));
    text += "return 0; }\n";
    let (source, program) = (folder.0.join("layout.c"), folder.0.join("layout"));
    // Asking a function whether it is there is no mistake here.
    std::fs::write(&source, format!("#pragma GCC diagnostic ignored \"-Waddress\"\n{text}")).unwrap();
    compile(&source, &program);
    let found = output(&mut Command::new(program));
    assert_eq!(found.split_whitespace().map(|n| n.parse::<usize>().unwrap()).collect::<Vec<_>>(), fields);
}

#[test]
fn the_example_runs() {
    let folder = Folder::new("example");
    let predictor = folder.network();
    let program = folder.0.join("infer");
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy/infer.c"), &program);
    let found = output(Command::new(&program).arg(folder.0.join("net.json")));
    let ramp = Values::from_vec(vec![0.0f32, 0.25, 0.5, 0.75], [1, 4]);
    let expected = predictor.run(&[ramp.clone(), ramp]).unwrap();
    let numbers = expected[0].to_vec::<f32>().iter().map(|v| format!(" {v:.4}")).collect::<String>();
    assert_eq!(found, format!("input x [1, 4]\ninput y [1, 4]\noutput 0 [1, 3]{numbers}\noutput 1 [1]\n"));

    let missing = Command::new(&program).arg(folder.0.join("other.pdmodel")).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("(NotFound) load: "), "{missing:?}");
}

#[test]
fn many_threads_share_a_model() {
    let folder = Folder::new("threads");
    let predictor = folder.network();
    let model = folder.load();
    assert!(sampan_threads() > 0);
    std::thread::scope(|scope| {
        for k in 0..8usize {
            let (address, predictor) = (model as usize, &predictor);
            scope.spawn(move || {
                let mut own = null_mut();
                // SAFETY: a model that lives until all threads are done, and a place.
                assert_eq!(unsafe { sampan_model_clone(address as *const Model, &mut own) }, Status::Ok);
                for rows in 1..10usize {
                    let values: Vec<f32> = (0..rows * 4).map(|i| (i * (k + 3) % 17) as f32 - 8.0).collect();
                    let given = Values::from_vec(values.clone(), [rows, 4]);
                    let expected = predictor.run(&[given.clone(), given]).unwrap();
                    let dims = [rows as i64, 4];
                    let inputs = [tensor(&values, &dims), tensor(&values, &dims)];
                    let (mut floats, mut ints) = (vec![0f32; rows * 3], vec![0i64; rows]);
                    let buffers = [
                        Buffer { data: floats.as_mut_ptr().cast(), bytes: size_of_val(&floats[..]) },
                        Buffer { data: ints.as_mut_ptr().cast(), bytes: size_of_val(&ints[..]) },
                    ];
                    // SAFETY: all pointers are to what the lengths say.
                    let status = unsafe { sampan_model_run_into(own, inputs.as_ptr(), 2, buffers.as_ptr(), 2) };
                    assert_eq!(status, Status::Ok, "{}", said());
                    assert_eq!(floats, expected[0].to_vec::<f32>());
                    assert_eq!(ints, expected[1].to_vec::<i64>());
                }
                // SAFETY: a model of this thread alone.
                unsafe { sampan_model_free(own) };
            });
        }
    });
    // SAFETY: nobody uses it any more.
    unsafe { sampan_model_free(model) };
}

#[test]
fn results_outlive_their_model() {
    let folder = Folder::new("results");
    let predictor = folder.network();
    let model = folder.load();
    let values = [1f32, -2.0, 3.0, 0.5];
    let inputs = [tensor(&values, &[1, 4]), tensor(&values, &[1, 4])];
    let mut results = null_mut();
    let mut found = tensor(&[], &[]);
    // SAFETY: all pointers are to what the lengths say, and what is given back is used no more.
    unsafe {
        assert_eq!(sampan_model_run(model, inputs.as_ptr(), 2, &mut results), Status::Ok);
        sampan_model_free(model);
        assert_eq!(sampan_results_count(results), 2);
        assert_eq!(sampan_results_get(results, 0, &mut found), Status::Ok);
        let given = Values::from_vec(values.to_vec(), [1, 4]);
        let expected = predictor.run(&[given.clone(), given]).unwrap()[0].to_vec::<f32>();
        assert_eq!(std::slice::from_raw_parts(found.data.cast::<f32>(), found.bytes / 4), expected);
        assert_eq!(std::slice::from_raw_parts(found.dims, found.rank), [1, 3]);
        assert_eq!(sampan_results_get(results, 2, &mut found), Status::OutOfRange);
        sampan_results_free(results);
    }
}

#[test]
fn wrong_calls_are_answers() {
    let folder = Folder::new("wrong");
    folder.network();
    let model = folder.load();
    let values = [1f32, -2.0, 3.0, 0.5];
    let good = tensor(&values, &[1, 4]);
    let run = |inputs: &[Tensor]| {
        let mut results = null_mut();
        // SAFETY: where pointers are not null they are to what the lengths say.
        let status = unsafe { sampan_model_run(model, inputs.as_ptr(), inputs.len(), &mut results) };
        assert!(results.is_null(), "a failure gives nothing");
        (status, said())
    };
    let wrong = [
        (Tensor { dtype: 99, ..good }, Status::InvalidType, "input 1 (y): 99 is the number of no dtype"),
        (Tensor { dtype: -1, ..good }, Status::InvalidType, "no dtype"),
        (Tensor { dtype: 4, ..good }, Status::InvalidType, "int32"),
        (Tensor { data: null(), ..good }, Status::InvalidArgument, "data is NULL"),
        (Tensor { dims: null(), ..good }, Status::InvalidArgument, "dims is NULL"),
        (
            Tensor { bytes: 12, ..good },
            Status::InvalidArgument,
            "12 bytes do not fill a float32 tensor of shape [1, 4]",
        ),
        (Tensor { bytes: usize::MAX, ..good }, Status::InvalidArgument, "bytes do not fill"),
        (Tensor { rank: usize::MAX, ..good }, Status::InvalidArgument, "cannot have a length"),
        (tensor(&values, &[-1, 4]), Status::InvalidArgument, "[-1, 4]"),
        (tensor(&values, &[1 << 62, 1 << 62]), Status::InvalidArgument, "bytes do not fill"),
        (tensor(&values, &[4, 1]), Status::InvalidArgument, "[4, 1]"),
        (tensor(&values, &[4]), Status::InvalidArgument, "[4]"),
    ];
    for (input, expected, words) in wrong {
        let (status, text) = run(&[good, input]);
        assert!(status == expected && text.contains(words), "{status:?} {text}, not {expected:?} {words}");
    }
    assert_eq!(run(&[good]).0, Status::InvalidArgument);
    assert_eq!(run(&[]).1, "(InvalidArgument) run: the model takes 2 inputs, got 0.");
    // Shapes that do not go together are found by the network.
    let three = [values, values, values].concat();
    let two = [values, values].concat();
    assert_eq!(run(&[tensor(&two, &[2, 4]), tensor(&three, &[3, 4])]).0, Status::InvalidArgument);
    // SAFETY: nulls, and pointers to what the lengths say.
    unsafe {
        let mut results = null_mut();
        assert_eq!(sampan_model_run(null(), &good, 1, &mut results), Status::InvalidArgument);
        assert_eq!(sampan_model_run(model, null(), 2, &mut results), Status::InvalidArgument);
        assert_eq!(sampan_model_run(model, &good, 1, null_mut()), Status::InvalidArgument);
        let (mut floats, mut port) = ([7f32; 4], std::mem::zeroed());
        let buffer = Buffer { data: floats.as_mut_ptr().cast(), bytes: 16 };
        let inputs = [good, good];
        assert_eq!(sampan_model_run_into(model, inputs.as_ptr(), 2, &buffer, 1), Status::InvalidArgument);
        assert!(said().contains("2 outputs, got 1"), "{}", said());
        let nowhere = Buffer { data: null_mut(), bytes: 8 };
        let small = [Buffer { bytes: 12, ..buffer }, nowhere];
        assert_eq!(sampan_model_run_into(model, inputs.as_ptr(), 2, small.as_ptr(), 2), Status::InvalidArgument);
        assert!(said().contains("output 1 is int64 of shape [1], 8 bytes; its buffer has 8, at NULL"), "{}", said());
        assert_eq!(floats, [7.0; 4], "a failure writes nothing");

        assert_eq!(sampan_model_input(model, 2, &mut port), Status::OutOfRange);
        assert_eq!(sampan_model_input(model, 0, null_mut()), Status::InvalidArgument);
        assert_eq!(sampan_model_output(null(), 0, &mut port), Status::InvalidArgument);
        assert_eq!(sampan_model_output(model, 1, &mut port), Status::Ok);
        assert_eq!((CStr::from_ptr(port.name), port.rank, *port.dims, port.dtype), (c"output_1", 1, -1, 5));
        assert_eq!((sampan_model_inputs(null()), sampan_model_outputs(null())), (0, 0));
        assert_eq!(sampan_results_count(null()), 0);
        sampan_results_free(null_mut());
        sampan_model_free(null_mut());

        let mut other = null_mut();
        assert_eq!(sampan_model_load(null(), &mut other), Status::InvalidArgument);
        assert_eq!(sampan_model_load(c"there/is/none.onnx".as_ptr(), &mut other), Status::NotFound, "{}", said());
        assert_eq!(sampan_model_load(c"\xff.onnx".as_ptr(), &mut other), Status::InvalidArgument);
        assert_eq!(sampan_model_load(c"x".as_ptr(), null_mut()), Status::InvalidArgument);
        assert_eq!(sampan_model_clone(null(), &mut other), Status::InvalidArgument);
        assert!(other.is_null());
        assert_eq!(sampan_set_threads(0), Status::OutOfRange);
        assert!(!CStr::from_ptr(sampan_version()).is_empty());
        sampan_model_free(model);
    }
    // Each thread has its own last error.
    assert!(said().contains("threads"));
    assert_eq!(std::thread::spawn(said).join().unwrap(), "");
}
