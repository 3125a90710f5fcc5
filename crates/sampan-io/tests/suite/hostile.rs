//! Files made to do harm.

use sampan_core::DType;
use sampan_io::{npy, pdparams, pickle, safetensors};
use std::collections::BTreeMap;

fn refused(bytes: &[u8], reason: &str) {
    let message = pickle::from_bytes(bytes).unwrap_err().to_string();
    assert!(message.contains(reason), "{message}");
}

#[test]
fn no_code_is_run() {
    refused(b"cos\nsystem\n(S'touch /tmp/owned'\ntR.", "os.system");
    refused(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02ls\x85R.", "posix.system");
    refused(b"cbuiltins\neval\n(S'__import__(\"os\")'\n}tR.", "builtins.eval");
    refused(b"cbuiltins\neval\n(S'data'\n(S'data'\nI1\nS'x'\nI2\ndtR.", "builtins.eval");
    refused(b"(S'ls'\nios\nsystem\n.", "os.system");
    refused(b"(cos\nsystem\nS'ls'\no.", "os.system");
    // Even the way to a harmless value may not lead through a call of something unknown.
    refused(b"cos\ngetpid\n)R.", "os.getpid");
    refused(b"cnumpy\nndarray\n.", "numpy.ndarray");
    refused(b"\x80\x02K\x01Q.", "outside");
    refused(b"cbuiltins\ncomplex\n(F1\nF2\ntR.", "complex");
    refused(b"\x80\x02\x82\x01.", "extensions");
}

#[test]
fn lengths_are_not_believed() {
    refused(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "are announced");
    refused(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "are announced");
    refused(b"\x80\x02X\xff\xff\xff\xffa.", "are announced");
    refused(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.", "frame");
    refused(b"\x80\x02\x8b\xff\xff\xff\xff.", "are announced");
    refused(b"\x80\x02\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00.", "64 bits");
    refused(b"j\xff\xff\xff\xff.", "nothing was remembered");
    let mut header = u64::MAX.to_le_bytes().to_vec();
    header.extend(b"{}");
    assert!(safetensors::from_bytes(&header).is_err());
    let with = |descr: &str, shape: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        npy::from_bytes(&bytes)
    };
    assert!(with("<f8", "(9223372036854775807, 9223372036854775807)").is_err());
    assert!(with("<f8", "(1000000000000,)").is_err());
    assert!(with("<f8", "(0, 9223372036854775807, 2)").is_err());
    assert!(with("<f8", "(0, 3)").is_ok_and(|t| t.shape() == [0, 3]));
    assert!(with("<f8", &format!("({})", "1, ".repeat(65))).is_err());
    assert!(with("<f8", "(18446744073709551616,)").is_err());
}

#[test]
fn values_that_hold_themselves_or_each_other() {
    refused(b"]q\0h\0a.", "holds itself");
    refused(b"}q\0(K\x01h\0u.", "holds itself");
    let deep = [b"(".repeat(1_000_000), b"t".repeat(1_000_000), b".".to_vec()].concat();
    refused(&deep, "nested deeper");
    // A billion laughs: each list holds the one before ten times.
    let mut laughs = b"\x80\x02]q\0".to_vec();
    for i in 0..12u8 {
        laughs.extend([b']', b'q', i + 1, b'(']);
        laughs.extend([b'h', i].repeat(10));
        laughs.push(b'e');
    }
    laughs.push(b'.');
    refused(&laughs, "far more values");
    // The same with one long text.
    let mut texts = b"\x80\x02]q\0(".to_vec();
    texts.push(b'X');
    texts.extend((1u32 << 20).to_le_bytes());
    texts.extend(b"x".repeat(1 << 20));
    texts.extend(b"q\x01");
    texts.extend(b"h\x01".repeat(1000));
    texts.extend(b"e.");
    refused(&texts, "far more bytes");
    // A list copied again and again.
    let mut copies = b"\x80\x02(".to_vec();
    copies.extend(b"N".repeat(1 << 16));
    copies.extend(b"lq\0cbuiltins\nlist\nq\x01");
    copies.extend(b"h\x01h\0\x85R".repeat(1 << 10));
    copies.push(b'.');
    refused(&copies, "more than");
}

#[test]
fn zip_bombs() {
    // Claims of sizes that deflate cannot reach are refused before anything is unpacked.
    let zeros = BTreeMap::from([("z".to_string(), sampan_core::Tensor::zeros([1 << 16], DType::Float32))]);
    let honest = npy::npz_to_bytes(&zeros, true).unwrap();
    assert!(honest.len() < 4096 && npy::npz_from_bytes(&honest).is_ok());
    let size = (4u64 * (1 << 16) + 128).to_le_bytes();
    let places: Vec<usize> = (0..honest.len() - 8).filter(|&i| honest[i..i + 8] == size).collect();
    let mut bomb = honest.clone();
    places.iter().for_each(|&at| bomb[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes()));
    let message = npy::npz_from_bytes(&bomb).unwrap_err().to_string();
    assert!(message.contains("cannot unfold"), "{message}");
}

#[test]
fn views_larger_than_their_memory() {
    let state = pdparams::to_bytes(&sampan_core::Tensor::new([1.0f32]).into(), 2).unwrap();
    assert!(sampan_io::pth::from_bytes(&state).unwrap_err().to_string().contains("neither"));
    // torch.ones(1).expand(1 << 40), whose file is small.
    let bytes = std::fs::read(crate::fixture("legacy.pth")).unwrap();
    let shape = b"K\x02K\x03\x86";
    let at = bytes.windows(shape.len()).position(|w| w == shape).unwrap();
    let strides = b"K\x03K\x01\x86";
    let huge = [&b"\x8a\x05\0\0\0\0\x10K\x03\x86"[..]].concat();
    let mut hostile = bytes[..at].to_vec();
    hostile.extend(huge);
    let rest = &bytes[at + shape.len()..];
    let step = rest.windows(strides.len()).position(|w| w == strides).unwrap();
    hostile.extend(&rest[..step]);
    hostile.extend(b"K\0K\0\x86");
    hostile.extend(&rest[step + strides.len()..]);
    let message = sampan_io::pth::from_bytes(&hostile).unwrap_err().to_string();
    assert!(message.contains("far more bytes"), "{message}");
}
