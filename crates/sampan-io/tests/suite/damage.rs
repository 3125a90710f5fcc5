//! Files cut short and files with flipped bytes: an error or a value, never a panic and never much memory.

use sampan_io::{Format, events, npy, onnx, pdiparams, pdparams, pickle, pth, safetensors};

fn read(format: Format, bytes: &[u8]) -> bool {
    match format {
        Format::Paddle => pdparams::from_bytes(bytes).is_ok() | pickle::from_bytes(bytes).is_ok(),
        Format::PaddleBinary => pdiparams::from_bytes(bytes).is_ok(),
        Format::SafeTensors => safetensors::from_bytes(bytes).is_ok(),
        Format::Npy => npy::from_bytes(bytes).is_ok(),
        Format::Npz => npy::npz_from_bytes(bytes).is_ok(),
        Format::PyTorch => pth::from_bytes(bytes).is_ok(),
        Format::Onnx => onnx::from_bytes(bytes).is_ok(),
        Format::Events => events::scalars_from_bytes(bytes).is_ok(),
    }
}

fn fixtures() -> Vec<(String, Format, Vec<u8>)> {
    let files = std::fs::read_dir(crate::fixture("")).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = files
        .map(|p| {
            let bytes = std::fs::read(&p).unwrap();
            let format = Format::from_bytes(&bytes).or_else(|| Format::from_path(&p));
            (p.file_name().unwrap().to_string_lossy().into_owned(), format.expect("a known format"), bytes)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn cut_short_at_every_byte() {
    for (name, format, bytes) in fixtures() {
        assert_eq!(read(format, &bytes), !name.starts_with("refused"), "{name} whole");
        for len in 0..bytes.len() {
            let taken = read(format, &bytes[..len]);
            // A log that a killed process left is taken as far as it goes, Paddle's binary files end after any tensor, and
            // what follows the graph of an ONNX file says nothing about its weights; everything else is nothing without
            // its end.
            let open_ended = matches!(format, Format::Events | Format::PaddleBinary | Format::Onnx);
            assert!(!taken || open_ended, "{name} was taken with {len} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn flipped_bytes() {
    // Large tensors come from a range of addresses that is reserved with the first of them, up to the memory of the machine.
    drop(sampan_core::Tensor::zeros([1 << 20], sampan_core::DType::Float32));
    let before = peak_memory();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as usize
    };
    for (_, format, bytes) in fixtures() {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            for value in [0xff, bytes[at] ^ (1 << (random() % 8))] {
                damaged[at] = value;
                read(format, &damaged);
            }
        }
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random() % 6 {
                let at = random() % damaged.len();
                damaged[at] = random() as u8;
            }
            read(format, &damaged);
        }
    }
    assert!(peak_memory() - before < 1 << 20, "a damaged file asked for more than a gigabyte");
}

/// The most address space this process ever had, in kilobytes; 0 where the system does not tell.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmPeak:"));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}
