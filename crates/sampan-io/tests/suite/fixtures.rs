//! Files that the real libraries wrote.

use crate::fixture;
use crate::ramp::ramp;
use sampan_core::{Complex64, Complex128, DType, Tensor};
use sampan_io::{Dict, Format, Object, describe, load, npy, pdiparams, pdparams, pickle, pth, safetensors};

fn same(name: &str, found: &Tensor, dtype: DType, shape: &[usize]) {
    assert_eq!(Object::from(found), Object::from(ramp(dtype, shape)), "{name}: {:?}", found);
}

fn dict(name: &str) -> Dict {
    let Object::Dict(dict) = load(fixture(name)).unwrap() else { panic!("{name} is no dict") };
    dict
}

#[test]
fn linear_of_every_protocol_and_paddle() {
    for name in ["linear_p2", "linear_p3", "linear_p4", "paddle2", "paddle1"] {
        let state = dict(&format!("{name}.pdparams"));
        assert_eq!(state.iter().map(|(k, _)| k.to_string()).collect::<Vec<_>>(), ["weight", "bias"], "{name}");
        let weight = state.get("weight").and_then(Object::as_tensor).unwrap();
        same(name, weight, DType::Float32, &[2, 3]);
        same(name, state.get("bias").and_then(Object::as_tensor).unwrap(), DType::Float32, &[3]);
        // Paddle 1.x kept no names.
        if name != "paddle1" {
            assert_eq!(weight.name(), "linear_0.w_0", "{name}");
        }
    }
}

#[test]
fn optimizer_state() {
    let state = dict("adam.pdopt");
    assert_eq!(state.len(), 9);
    let moment = state.get("linear_0.w_0_moment1_0").and_then(Object::as_tensor).unwrap();
    same("moment", moment, DType::Float32, &[2, 3]);
    let schedule = state.get("LR_Scheduler").and_then(Object::as_dict).unwrap();
    assert_eq!(schedule.get("last_epoch").and_then(Object::as_int), Some(0));
    assert_eq!(schedule.get("last_lr").and_then(Object::as_float), Some(0.1));
}

#[test]
fn every_dtype_of_every_library() {
    let safetensors = safetensors::load(fixture("dtypes.safetensors")).unwrap();
    assert_eq!(safetensors.notes["nöte"], "ü");
    let torch = pth::load(fixture("state.pth")).unwrap().tensors();
    let paddle = load(fixture("dtypes.pdparams")).unwrap().tensors();
    for dtype in DType::ALL.into_iter().filter(|d| !d.is_complex()) {
        for tensors in [&safetensors.tensors, &torch, &paddle] {
            same(dtype.name(), &tensors[dtype.name()], dtype, &[2, 3]);
        }
        if dtype != DType::BFloat16 {
            same("npy", &npy::load(fixture(&format!("{dtype}.npy"))).unwrap(), dtype, &[2, 3]);
        }
    }
    for tensors in [&torch, &paddle] {
        same("zero_d", &tensors["zero_d"], DType::Float32, &[]);
        same("empty", &tensors["empty"], DType::Float32, &[0, 3]);
    }
    same("zero_d", &safetensors.tensors["zero_d"], DType::Float32, &[]);
}

#[test]
fn values_of_any_form() {
    let bare = load(fixture("bare.pdtensor")).unwrap();
    let bare = bare.as_tensor().unwrap();
    same("bare", bare, DType::Int64, &[4]);
    assert_eq!(bare.name(), "bare");

    let nested = dict("nested.pdparams");
    let expected: [(&str, Object); 8] = [
        ("epoch", 7.into()),
        ("negative", (-70000).into()),
        ("large", (1i64 << 40).into()),
        ("loss", 0.25.into()),
        ("best", Object::None),
        ("done", true.into()),
        ("name", "löss".into()),
        ("scalar", 1.5.into()),
    ];
    expected.iter().for_each(|(k, v)| assert_eq!(nested.get(*k), Some(v), "{k}"));
    assert_eq!(nested.get(5), Some(&Object::List(vec![])));
    let first = &nested.get("items").unwrap().as_slice().unwrap()[0];
    assert_eq!(first.as_tensor().unwrap().name(), "first");
    let tensors = Object::from(nested).tensors();
    same("items.0", &tensors["items.0"], DType::Float32, &[2]);
    same("items.1.0", &tensors["items.1.0"], DType::BFloat16, &[3]);
    same("model.bias", &tensors["model.bias"], DType::BFloat16, &[3]);

    same("static graph", &load(fixture("dense.pdparams")).unwrap().tensors()["0"], DType::Float32, &[2, 2]);
    let raw = pickle::from_bytes(&std::fs::read(fixture("raw_p2.pkl")).unwrap()).unwrap();
    assert_eq!(raw, Object::List(vec![Object::Bytes(vec![0, 0xff]), Object::Bytes(vec![])]));
}

#[test]
fn binary_tensors() {
    let one = load(fixture("binary.pdtensor")).unwrap();
    same("binary", one.as_tensor().unwrap(), DType::BFloat16, &[2, 3]);
    let program = pdiparams::load(fixture("program.pdiparams")).unwrap();
    same("bias", &program[0], DType::Float32, &[3]);
    same("weight", &program[1], DType::Float32, &[2, 3]);
    same("complex", load(fixture("complex.pdiparams")).unwrap().as_tensor().unwrap(), DType::Complex64, &[2, 3]);
}

#[test]
fn tensors_in_parts() {
    let state = dict("parts.pdparams");
    assert_eq!(state.len(), 2);
    let big = state.get("big").and_then(Object::as_tensor).unwrap();
    same("big", big, DType::Float32, &[2, 3]);
    assert_eq!(big.name(), "linear_0.w_0");
}

#[test]
fn every_pickle_protocol() {
    for protocol in 0..=5 {
        let value = load(fixture(&format!("protocol{protocol}.pkl"))).unwrap();
        let value = value.as_dict().unwrap();
        same("a", value.get("a").and_then(Object::as_tensor).unwrap(), DType::Float32, &[2, 3]);
        same("f", value.get("f").and_then(Object::as_tensor).unwrap(), DType::Float32, &[2, 3]);
        assert_eq!(value.get("n"), Some(&Object::Int(-5)), "{protocol}");
        assert_eq!(value.get("x"), Some(&Object::Float(0.5)), "{protocol}");
        assert_eq!(value.get("t"), Some(&Object::Tuple(vec![1.into(), "ü\n".into()])), "{protocol}");
        assert_eq!(value.get("l"), Some(&Object::List(vec![true.into(), Object::None])), "{protocol}");
    }
}

#[test]
fn arrays_of_every_layout() {
    let npy = |name: &str| npy::load(fixture(&format!("{name}.npy"))).unwrap();
    same("fortran", &npy("fortran"), DType::Float32, &[2, 3, 4]);
    same("big_endian", &npy("big_endian"), DType::Float32, &[2, 3]);
    same("fortran_big_endian", &npy("fortran_big_endian"), DType::Int16, &[2, 3]);
    same("zero_d", &npy("zero_d"), DType::Int64, &[]);
    same("empty", &npy("empty"), DType::Float32, &[0, 3]);
    same("version2", &npy("version2"), DType::Float32, &[2, 3]);
    same("version3", &npy("version3"), DType::Float32, &[2, 3]);
    assert_eq!(npy("uint16").to_vec::<i32>(), [0, 1, 2, 3]);
    assert_eq!(npy("uint32").to_vec::<i64>(), [0, 1, 2, 3]);
    assert_eq!(npy("uint64").to_vec::<i64>(), [0, 1, 2, 3]);
    for name in ["stored.npz", "deflated.npz"] {
        let arrays = npy::load_npz(fixture(name)).unwrap();
        assert_eq!(arrays.len(), 3);
        same("a", &arrays["a"], DType::Float32, &[2, 3]);
        same("b", &arrays["b"], DType::Int64, &[3]);
        same("c", &arrays["folder/c"], DType::Bool, &[]);
    }
}

#[test]
fn views_and_checkpoints_of_pytorch() {
    let state = pth::load(fixture("state.pth")).unwrap().tensors();
    let whole = ramp(DType::Float32, &[4, 4]).to_vec::<f32>();
    assert_eq!(state["sliced"].to_vec::<f32>(), [whole[4], whole[6], whole[8], whole[10]]);
    assert_eq!(state["transposed"].to_vec::<f32>(), ramp(DType::Float32, &[3, 2]).t().to_vec::<f32>());
    assert_eq!(state["expanded"].to_vec::<f32>()[..5], [-1.0, -1.0, -1.0, -1.0, -0.5]);
    assert_eq!(state["uint16"].to_vec::<i32>(), [0, 1, 2]);
    same("parameter", &state["parameter"], DType::Float32, &[2]);
    same("tied", &state["tied"], DType::Float32, &[2, 3]);

    let checkpoint = pth::load(fixture("checkpoint.pth")).unwrap();
    let entries = checkpoint.as_dict().unwrap();
    assert_eq!(entries.get("epoch"), Some(&Object::Int(3)));
    assert_eq!(entries.get("dtype"), Some(&Object::from("torch.float16")));
    assert_eq!(entries.get("size"), Some(&Object::Tuple(vec![2.into(), 3.into()])));
    let tensors = checkpoint.tensors();
    assert_eq!(tensors["model.weight"].shape(), [2, 2]);
    assert_eq!(tensors["optimizer.state.1.exp_avg"].shape(), [2]);

    let legacy = pth::load(fixture("legacy.pth")).unwrap().tensors();
    same("a", &legacy["a"], DType::Float32, &[2, 3]);
    assert_eq!(legacy["b"].to_vec::<i64>(), [-1, 0, 1]);
    same("c", &legacy["c"], DType::Float16, &[2]);
}

#[test]
fn complex_numbers() {
    for name in ["complex.npy", "complex.pth", "complex.pdparams"] {
        let found = load(fixture(name)).unwrap();
        let found = found.as_tensor().cloned().unwrap_or_else(|| found.tensors()["c"].clone());
        let expected = [Complex64::new(1.0, 2.0), Complex64::new(-0.5, 0.0)];
        assert_eq!(found.to_vec::<Complex64>(), expected, "{name}");
    }
    let swapped = npy::load(fixture("complex_big_endian.npy")).unwrap();
    assert_eq!(swapped.to_vec::<Complex128>(), [Complex128::new(1.0, 2.0), Complex128::new(-0.5, 0.0)]);
}

#[test]
fn what_is_no_data_is_refused_in_a_sentence() {
    for (name, reason) in [
        ("refused_struct.npy", "structures"),
        ("refused_object.npy", "Python objects"),
        ("refused_text.npy", "strings"),
        ("refused_module.pth", "torch.nn.modules.linear.Linear"),
    ] {
        let message = load(fixture(name)).unwrap_err().to_string();
        assert!(message.contains(reason) && message.contains(name), "{message}");
    }
}

#[test]
fn scalars_of_events() {
    let scalars = sampan_io::events::scalars(fixture("events.out.tfevents.0000000001.host.1.0")).unwrap();
    let found: Vec<_> = scalars.iter().map(|s| (s.tag.as_str(), s.step, s.wall_time, s.value)).collect();
    let expected = [
        ("loss", 0, 2.0, 1.0),
        ("loss", 1, 2.0, 0.5),
        ("loss", 2, 2.0, 1.0 / 3.0),
        ("new/form", 9, 3.0, 0.5),
        ("new/form", 9, 3.0, 0.25),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_file_is_known_by_its_contents() {
    for (name, format) in [
        ("linear_p4.pdparams", Format::Paddle),
        ("program.pdiparams", Format::PaddleBinary),
        ("dtypes.safetensors", Format::SafeTensors),
        ("float32.npy", Format::Npy),
        ("stored.npz", Format::Npz),
        ("state.pth", Format::PyTorch),
        ("legacy.pth", Format::PyTorch),
        ("events.out.tfevents.0000000001.host.1.0", Format::Events),
    ] {
        assert_eq!(Format::from_bytes(&std::fs::read(fixture(name)).unwrap()), Some(format), "{name}");
        assert_eq!(Format::from_path(fixture(name)), Some(format), "{name}");
    }
}

#[test]
fn a_description_lists_what_is_there() {
    let description = describe(fixture("adam.pdopt")).unwrap();
    assert_eq!(description.format, Format::Paddle);
    let moment = &description.entries[0];
    assert_eq!(
        (moment.name.as_str(), moment.dtype, &moment.shape[..], moment.bytes),
        ("linear_0.w_0_moment1_0", Some(DType::Float32), &[2, 3][..], 24)
    );
    assert_eq!(description.numel(), 22);
    let rate = description.entries.last().unwrap();
    assert_eq!((rate.name.as_str(), rate.summary.as_str()), ("LR_Scheduler.last_lr", "0.1"));
}

#[test]
fn a_header_describes_as_the_whole_file_does() {
    for name in ["dtypes.safetensors", "float16.npy"] {
        let description = describe(fixture(name)).unwrap();
        let tensors = load(fixture(name)).unwrap().tensors();
        assert_eq!(description.entries.len(), tensors.len(), "{name}");
        for entry in description.entries {
            let tensor = &tensors[&entry.name];
            assert_eq!((entry.dtype, &entry.shape[..]), (Some(tensor.dtype()), tensor.shape()), "{name}");
            assert_eq!(entry.bytes, tensor.to_bytes().len(), "{name}");
        }
        let folder = crate::Folder::new();
        let short = folder.0.join(name);
        let bytes = std::fs::read(fixture(name)).unwrap();
        std::fs::write(&short, &bytes[..bytes.len() - 1]).unwrap();
        assert!(describe(&short).unwrap_err().to_string().contains("by its header"), "{name}");
    }
}

#[test]
fn paddle_takes_uint16_for_bfloat16_and_pickle_does_not() {
    let state = Dict::from_iter([("w", ramp(DType::BFloat16, &[2]))]);
    let bytes = pdparams::to_bytes(&state.into(), 4).unwrap();
    let plain = pickle::from_bytes(&bytes).unwrap();
    assert_eq!(plain.tensors()["w"].dtype(), DType::Int32);
}
