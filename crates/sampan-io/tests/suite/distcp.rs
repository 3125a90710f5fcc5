//! Checkpoints of several processes: what Paddle wrote, round trips, and metadata made to do harm.

use crate::Folder;
use crate::ramp::ramp;
use sampan_core::{DType, Tensor};
use sampan_io::distcp::{self, Metadata, Piece, Wanted, load_metadata, read, read_whole, save_metadata};
use std::path::PathBuf;

fn theirs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/distcp")
}

fn wanted(key: &str, offset: &[usize], shape: &[usize]) -> Wanted {
    Wanted { key: key.into(), offset: offset.to_vec(), shape: shape.to_vec() }
}

#[test]
fn what_two_processes_of_paddle_wrote() {
    let metadata = load_metadata(theirs().join("0.metadata")).unwrap();
    let found = read_whole(theirs(), &metadata).unwrap().tensors();
    let expected: [(&str, DType, &[usize]); 4] = [
        ("rows", DType::Float32, &[6, 4]),
        ("uneven", DType::Int64, &[5, 3]),
        ("both.alike", DType::BFloat16, &[3]),
        ("flat", DType::Float32, &[2, 4]),
    ];
    assert_eq!(found.len(), expected.len());
    for (name, dtype, shape) in expected {
        assert_eq!(found[name].dtype(), dtype, "{name}");
        assert_eq!(found[name].to_bytes(), ramp(dtype, shape).to_bytes(), "{name}");
    }
    assert!(metadata.paths.contains(&("both.alike".into(), vec!["both".into(), "alike".into()])));
    // A box across both files, one inside of a flat part, and one without elements.
    let boxes = [wanted("rows", &[2, 1], &[3, 2]), wanted("flat", &[0, 3], &[2, 1]), wanted("rows", &[1, 0], &[0, 4])];
    let parts = read(theirs(), &metadata, &boxes).unwrap();
    assert_eq!(parts[0].to_vec::<f32>(), [3.5, 4.0, 5.5, 6.0, 7.5, 8.0]);
    assert_eq!(parts[1].to_vec::<f32>(), [0.5, 2.5]);
    assert_eq!(parts[2].shape(), [0, 4]);
}

#[test]
fn metadata_comes_back_as_it_was() {
    let folder = Folder::new();
    let metadata = load_metadata(theirs().join("0.metadata")).unwrap();
    save_metadata(folder.0.join("7.metadata"), &metadata).unwrap();
    assert_eq!(load_metadata(folder.0.join("7.metadata")).unwrap(), metadata);
}

fn piece(key: &str, offset: &[usize], shape: &[usize], whole: &[usize]) -> Piece {
    let (offset, shape, whole) = (offset.to_vec(), shape.to_vec(), whole.to_vec());
    Piece { key: key.into(), offset, shape, dtype: DType::Float32, whole, range: None, file: "0_0.distcp".into() }
}

#[test]
fn numbers_without_axes_and_boxes_in_three_axes() {
    let folder = Folder::new();
    let state = [("one", Tensor::new(4.5f32)), ("cube", ramp(DType::Float32, &[2, 2, 2]))];
    sampan_io::save(folder.0.join("0_0.distcp"), &state.into_iter().collect::<sampan_io::Dict>().into()).unwrap();
    let pieces = vec![piece("one", &[], &[], &[]), piece("cube", &[1, 0, 2], &[2, 2, 2], &[4, 4, 4])];
    let metadata = Metadata { pieces, paths: Vec::new() };
    let found = read(&folder.0, &metadata, &[wanted("one", &[], &[]), wanted("cube", &[2, 0, 2], &[1, 2, 1])]).unwrap();
    assert_eq!(found[0].to_f64(), 4.5);
    assert_eq!(found[1].to_vec::<f32>(), [1.0, 2.0]);
}

#[test]
fn what_is_not_there_is_said() {
    let folder = Folder::new();
    let state: sampan_io::Dict = [("w", ramp(DType::Float32, &[2, 2]))].into_iter().collect();
    sampan_io::save(folder.0.join("0_0.distcp"), &state.into()).unwrap();
    let says = |pieces: Vec<Piece>, want: Wanted, reason: &str| {
        let metadata = Metadata { pieces, paths: Vec::new() };
        let message = read(&folder.0, &metadata, &[want]).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    };
    let half = || vec![piece("w", &[0, 0], &[2, 2], &[4, 2])];
    says(half(), wanted("w", &[0, 0], &[4, 2]), "do not have all of w");
    says(half(), wanted("v", &[0], &[1]), "there is no v");
    // Little is read, so little memory is given, whatever is asked for.
    let huge = 1 << 40;
    says(vec![piece("w", &[0, 0], &[huge, huge], &[huge, huge])], wanted("w", &[0, 0], &[huge, huge]), "w");
    says(vec![piece("w", &[0, 0], &[2, 3], &[2, 3])], wanted("w", &[0, 0], &[2, 3]), "no such box");
    // A tensor of a file is one box, however often it is named: else a small file could ask for any memory.
    let rows = |n: usize| piece("w", &[2 * n, 0], &[2, 2], &[4, 2]);
    says(vec![rows(0), rows(1)], wanted("w", &[0, 0], &[4, 2]), "two boxes of w in one file");
    says(vec![rows(0), rows(0)], wanted("w", &[0, 0], &[4, 2]), "do not have all of w");
}

#[test]
fn pieces_that_overlap_hide_no_hole() {
    let folder = Folder::new();
    let save = |rank: usize, rows: usize| {
        let state: sampan_io::Dict = [("w", ramp(DType::Float32, &[rows, 5]))].into_iter().collect();
        sampan_io::save(folder.0.join(format!("{rank}_0.distcp")), &state.into()).unwrap();
    };
    for (rank, rows) in [4, 4, 1].into_iter().enumerate() {
        save(rank, rows);
    }
    let at = |rank: usize, row: usize, rows: usize| {
        let file = format!("{rank}_0.distcp");
        Piece { file, ..piece("w", &[row, 0], &[rows, 5], &[6, 5]) }
    };
    let read = |pieces: &[Piece]| {
        let metadata = Metadata { pieces: pieces.to_vec(), paths: Vec::new() };
        read(&folder.0, &metadata, &[wanted("w", &[0, 0], &[6, 5])])
    };
    let twice = [at(0, 0, 4), at(1, 1, 4)];
    assert!(read(&twice).unwrap_err().to_string().contains("do not have all of w"));
    let [first, second] = twice;
    let found = read(&[first, second, at(2, 5, 1)]).unwrap();
    assert_eq!(found[0].to_vec::<f32>()[25..], ramp(DType::Float32, &[1, 5]).to_vec::<f32>());
}

#[test]
fn boxes_that_begin_at_one_place_are_told_apart_by_their_shapes() {
    let folder = Folder::new();
    let held = [ramp(DType::Float32, &[0, 3]), ramp(DType::Float32, &[2, 3]), ramp(DType::Float32, &[1, 3])];
    let mut pieces = Vec::new();
    for (rank, tensor) in held.iter().enumerate() {
        let file = format!("{rank}_0.distcp");
        let state: sampan_io::Dict = [("w", tensor.clone())].into_iter().collect();
        sampan_io::save(folder.0.join(&file), &state.into()).unwrap();
        pieces.push(Piece { file, ..piece("w", &[0, 0], tensor.shape(), &[2, 3]) });
    }
    save_metadata(folder.0.join("0.metadata"), &Metadata { pieces: pieces.clone(), paths: Vec::new() }).unwrap();
    let metadata = load_metadata(folder.0.join("0.metadata")).unwrap();
    assert_eq!(metadata.pieces, pieces);
    assert_eq!(read_whole(&folder.0, &metadata).unwrap().tensors()["w"].to_bytes(), held[1].to_bytes());
}

#[test]
fn what_has_no_elements_keeps_its_dtype() {
    let folder = Folder::new();
    let state: sampan_io::Dict = [("none", ramp(DType::Int64, &[0, 2]))].into_iter().collect();
    sampan_io::save(folder.0.join("0_0.distcp"), &state.into()).unwrap();
    let pieces = vec![Piece { dtype: DType::Int64, ..piece("none", &[0, 0], &[0, 2], &[0, 2]) }];
    let found = read(&folder.0, &Metadata { pieces, paths: Vec::new() }, &[wanted("none", &[0, 0], &[0, 2])]).unwrap();
    assert_eq!((found[0].dtype(), found[0].shape()), (DType::Int64, &[0, 2][..]));
}

#[test]
fn metadata_is_data() {
    let whole = std::fs::read(theirs().join("0.metadata")).unwrap();
    let folder = Folder::new();
    let path = folder.0.join("0.metadata");
    let says = |bytes: &[u8], reason: &str| {
        std::fs::write(&path, bytes).unwrap();
        let message = load_metadata(&path).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    };
    says(b"cos\nsystem\n(S'ls'\ntR}b.", "Metadata is not");
    says(b"cos\nsystem\n)R}b.", "nothing was run");
    let elsewhere = |name: &[u8; 10]| {
        let mut bytes = whole.clone();
        let at = bytes.windows(10).position(|w| w == b"0_0.distcp").unwrap();
        bytes[at..at + 10].copy_from_slice(name);
        bytes
    };
    says(&elsewhere(b"../0.files"), "no name of a file in this folder");
    says(&elsewhere(b"/etc/hosts"), "no name of a file in this folder");
    // However it is damaged: an error, or metadata whose boxes lie where they say.
    for at in 0..whole.len() {
        for change in [0x01, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(metadata) = distcp::load_metadata(&path) {
                let _ = read_whole(theirs(), &metadata);
            }
        }
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(load_metadata(&path).is_err());
    }
}
