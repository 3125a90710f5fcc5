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
