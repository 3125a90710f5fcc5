//! Picture files.

use sampan_core::Tensor;
use sampan_data::vision::image::*;

fn temporary(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("sampan-data-{}-{name}", std::process::id()))
}

#[test]
fn what_is_saved_is_loaded() {
    let path = temporary("saved.png");
    let colours = Tensor::from_vec((0..24).map(|v| v * 10).collect::<Vec<u8>>(), [2, 4, 3]);
    save(&colours, &path).unwrap();
    assert_eq!(load(&path).unwrap().to_vec::<u8>(), colours.to_vec::<u8>());
    assert_eq!(decode(&std::fs::read(&path).unwrap()).unwrap().to_vec::<u8>(), colours.to_vec::<u8>());
    let blue_first = image_load(&path, Some("cv2")).unwrap();
    assert_eq!(blue_first.to_vec::<u8>(), colours.flip(-1).to_vec::<u8>());
    assert_eq!(image_load(&path, Some("tensor")).unwrap().shape(), [3, 2, 4]);
    let bytes = sampan_data::vision::ops::read_file(path.to_str().unwrap()).unwrap();
    let decoded = sampan_data::vision::ops::decode_jpeg(&bytes, "unchanged").unwrap();
    assert_eq!(decoded.to_vec::<u8>(), colours.transpose([2, 0, 1]).to_vec::<u8>());
    assert_eq!(sampan_data::vision::ops::decode_jpeg(&bytes, "gray").unwrap().shape(), [1, 2, 4]);
    // Floats from 0 to 1, channels first, and grey.
    save(&(colours.cast(sampan_core::DType::Float32) / 255.0).transpose([2, 0, 1]).contiguous(), &path).unwrap();
    assert_eq!(load(&path).unwrap().to_vec::<u8>(), colours.to_vec::<u8>());
    let grey = Tensor::new([[0u8, 100, 200]]);
    save(&grey, &path).unwrap();
    assert_eq!(image_load(&path, None).unwrap().shape(), [1, 3]);
    assert_eq!(load(&path).unwrap().to_vec::<u8>(), [0, 0, 0, 100, 100, 100, 200, 200, 200]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn broken_files_are_errors() {
    let path = temporary("broken.png");
    std::fs::write(&path, b"no picture").unwrap();
    assert!(load(&path).unwrap_err().to_string().contains("broken.png"));
    std::fs::remove_file(&path).unwrap();
    assert!(load(&path).is_err());
    assert!(decode(&[0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0]).is_err());
    assert!(image_load(&path, Some("turtle")).is_err());
    assert!(set_image_backend("turtle").is_err());
    assert_eq!(get_image_backend(), "pil");
}

/// A BMP file: `tail` follows the first 40 bytes of the header (masks, palette), then come the rows.
fn bmp(header: u32, [width, height]: [i32; 2], bits: u16, compression: u32, tail: &[u8], rows: &[u8]) -> Vec<u8> {
    let start = 54 + tail.len() as u32;
    let mut bytes = b"BM".to_vec();
    for word in [start + rows.len() as u32, 0, start, header, width as u32, height as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([1u16.to_le_bytes(), bits.to_le_bytes()].concat());
    for word in [compression, rows.len() as u32, 0, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    [bytes.as_slice(), tail, rows].concat()
}

#[test]
fn rare_kinds_are_read_as_elsewhere() {
    let colours: Vec<u8> = (0..1024u32).map(|i| (i * 37 % 251) as u8).collect();
    let rows: Vec<u8> = (0..96u32).map(|i| (i * 101 % 253) as u8).collect();
    let masks = |masks: &[u32]| masks.iter().flat_map(|m| m.to_le_bytes()).collect::<Vec<u8>>();
    let runs = [6, 3, 0, 0, 2, 5, 0, 3, 1, 2, 3, 0, 0, 0, 0, 2, 1, 1, 2, 9, 0, 0, 3, 1, 0, 1];
    let narrow_runs = [7, 0x35, 0, 0, 3, 0x12, 0, 4, 0x12, 0x34, 0, 0, 0, 5, 0x12, 0x34, 0x50, 0, 2, 0x99, 0, 1];
    let files = [
        bmp(40, [6, 4], 8, 1, &colours, &runs),
        bmp(40, [7, 3], 4, 2, &colours[..64], &narrow_runs),
        bmp(40, [9, 3], 1, 0, &colours[..8], &rows),
        bmp(40, [3, 3], 4, 0, &colours[..64], &rows),
        bmp(40, [3, -3], 16, 0, &[], &rows),
        bmp(40, [3, 3], 16, 3, &masks(&[0xf800, 0x7e0, 0x1f]), &rows),
        bmp(56, [3, 3], 16, 3, &masks(&[0xf00, 0xf0, 0xf, 0xf000]), &rows),
        bmp(40, [4, 3], 32, 0, &[], &rows),
        bmp(40, [3, -2], 24, 0, &[], &rows),
        b"P1\n# bits\n3 2\n1 0 1\n011".to_vec(),
        b"P2 3 2 1000\n0 1 2 3 999 1000\n".to_vec(),
        [b"P4 9 2 ".as_slice(), &rows[..4]].concat(),
        [b"P5 3 2 100 ".as_slice(), &[0, 1, 50, 99, 100, 7]].concat(),
        [b"P6 1 2 65535\n".as_slice(), &rows[..12]].concat(),
        [b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n".as_slice(), &rows[..8]].concat(),
    ];
    for (i, bytes) in files.iter().enumerate() {
        let elsewhere = ::image::load_from_memory(bytes).unwrap();
        let picture = decode(bytes).unwrap();
        assert_eq!(picture.shape(), [elsewhere.height() as usize, elsewhere.width() as usize, 3], "file {i}");
        assert_eq!(picture.to_vec::<u8>(), elsewhere.to_rgb8().into_raw(), "file {i}");
        // Cut short, they are errors or pictures, but never a panic.
        (0..bytes.len()).for_each(|end| drop(decode(&bytes[..end])));
    }
}
