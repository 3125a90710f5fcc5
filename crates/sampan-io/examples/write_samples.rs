//! Writes one file of every kind into a folder, for the real libraries to load: see `scripts/io_fixtures.py --check`.

#[path = "../tests/suite/ramp.rs"]
mod ramp;

use ramp::ramp;
use sampan_core::{DType, Result, Tensor};
use sampan_io::events::EventWriter;
use sampan_io::{Dict, Object, npy, pdiparams, pdparams, pickle, safetensors};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The smallest picture with two pixels, one row.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x01\x08\0\0\0\0\xd1I V\0\0\0\x0bIDATx\xdac`\xf8\x0f\0\x01\x02\x01\0\xd1\x1a\xcb\x8f\0\0\0\0IEND\xaeB`\x82";

fn every_dtype() -> BTreeMap<String, Tensor> {
    DType::ALL.into_iter().map(|d| (d.name().to_string(), ramp(d, &[2, 3]))).collect()
}

fn paddle(out: &Path) -> Result<()> {
    let mut state: Dict = every_dtype().into_iter().collect();
    state.insert("zero_d", ramp(DType::Float32, &[]));
    state.insert("empty", ramp(DType::Float32, &[0, 3]));
    state.get("float32").and_then(Object::as_tensor).expect("just put in").set_name("named.w_0");
    let state = Object::from(state);
    let raw = |b: &[u8]| Object::Bytes(b.to_vec());
    let plain =
        vec![raw(b"\0\xff"), raw(b""), raw(&[0x80; 300]), "x".repeat(300).into(), (-1).into(), (-1i64 << 40).into()];
    for protocol in 2..=4 {
        pdparams::save_with(out.join(format!("dtypes_p{protocol}.pdparams")), &state, protocol)?;
        let bytes = pickle::to_bytes(&plain.clone().into(), protocol)?;
        sampan_io::atomic::write(out.join(format!("plain_p{protocol}.pkl")), &bytes)?;
    }
    // What Paddle wrote, read and written again.
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (from, to) in [
        ("linear_p4.pdparams", "linear.pdparams"),
        ("adam.pdopt", "adam.pdopt"),
        ("bare.pdtensor", "bare.pdtensor"),
        ("nested.pdparams", "nested.pdparams"),
    ] {
        sampan_io::save(out.join(to), &sampan_io::load(fixtures.join(from))?)?;
    }
    let tensors: Vec<_> = DType::ALL.into_iter().map(|d| ramp(d, &[2, 3])).collect();
    for (dtype, tensor) in DType::ALL.into_iter().zip(&tensors) {
        pdiparams::save(out.join(format!("{dtype}.pdtensor")), std::slice::from_ref(tensor))?;
    }
    pdiparams::save(out.join("program.pdiparams"), &[ramp(DType::Float32, &[3]), ramp(DType::Float32, &[2, 3])])
}

fn numpy(out: &Path) -> Result<()> {
    for (name, tensor) in every_dtype() {
        npy::save(out.join(format!("{name}.npy")), &tensor)?;
    }
    npy::save(out.join("zero_d.npy"), &ramp(DType::Int64, &[]))?;
    npy::save(out.join("empty.npy"), &ramp(DType::Float32, &[0, 3]))?;
    let arrays = [("a", ramp(DType::Float32, &[2, 3])), ("ünter/b", ramp(DType::Int64, &[3]))];
    let arrays = arrays.map(|(k, t)| (k.to_string(), t)).into_iter().collect();
    npy::save_npz(out.join("stored.npz"), &arrays, false)?;
    npy::save_npz(out.join("deflated.npz"), &arrays, true)
}

fn events(out: &Path) -> Result<()> {
    let mut log = EventWriter::create(out.join("run"))?;
    for step in 0..6 {
        log.scalar("loss", step as f32 / 2.0, step)?;
    }
    log.text("notes", "a **text**", 0)?;
    log.image("picture", PNG, 0)?;
    log.histogram("weights", &ramp(DType::Float32, &[6]), 0)?;
    log.flush()?;
    // TensorBoard takes files in the order of their names, which hold the second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    EventWriter::resume(out.join("run"), 3)?.scalar("loss", 9.0, 3)
}

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::args().nth(1).expect("usage: write_samples FOLDER"));
    paddle(&out)?;
    numpy(&out)?;
    let mut tensors = every_dtype();
    tensors.retain(|_, t| t.dtype() != DType::Complex128);
    tensors.insert("zero_d".into(), ramp(DType::Float32, &[]));
    tensors.insert("empty".into(), ramp(DType::Float32, &[0, 3]));
    let notes =
        [("format", "sampan"), ("nöte", "ü")].map(|(k, v)| (k.to_string(), v.to_string())).into_iter().collect();
    safetensors::save(out.join("dtypes.safetensors"), &tensors, &notes)?;
    events(&out)
}
