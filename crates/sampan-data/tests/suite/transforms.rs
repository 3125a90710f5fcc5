//! Functional transforms against Paddle's answers, recorded by `scripts/transforms_golden.py`, and their errors.

use safetensors::SafeTensors;
use sampan_core::{DType, Error, Result, Tensor};
use sampan_data::vision::transforms::*;

fn read(golden: &SafeTensors, name: &str) -> Tensor {
    let view = golden.tensor(name).unwrap();
    let dtype = if view.dtype() == safetensors::Dtype::U8 { DType::UInt8 } else { DType::Float32 };
    Tensor::from_bytes(view.data(), dtype, view.shape()).unwrap()
}

const START: [[f64; 2]; 4] = [[0.0, 0.0], [10.0, 0.0], [10.0, 8.0], [0.0, 8.0]];
const END: [[f64; 2]; 4] = [[1.0, 2.0], [9.0, 1.0], [8.0, 7.0], [2.0, 8.0]];

/// The fill colours of the script.
fn fill(x: &Image, for_pad: bool) -> Vec<f64> {
    let x = x.tensor();
    match (x.shape(), x.dtype()) {
        ([_, _, 3], DType::Float32) => vec![10.0, 20.0, 30.0],
        (_, DType::Float32) if for_pad => vec![0.5],
        (_, DType::Float32) => vec![0.1, 0.2, 0.3],
        ([_, _], _) => vec![40.0],
        ([_, _, c], _) => [10.0, 20.0, 30.0, 40.0][..*c].to_vec(),
        _ => unreachable!(),
    }
}

fn size(text: &str) -> Vec<i64> {
    text.split('x').map(|n| n.parse().unwrap()).collect()
}

/// What sampan gives for a recorded name.
fn ours(x: &Image, array: bool, parts: &[&str]) -> Result<Tensor> {
    let number = |s: &str| s.parse::<f64>().unwrap();
    let ints: Vec<i64> = parts.iter().skip(1).filter_map(|s| s.parse().ok()).collect();
    match *parts {
        ["resize", how, to] => resize(x, size(to), how),
        ["rotate", how, angle, expand, center] => {
            let center = (!center.is_empty()).then(|| size(center)).map(|c| [c[0] as f64, c[1] as f64]);
            rotate(x, number(angle), how, expand == "1", center, fill(x, false))
        }
        ["affine", how, "a"] => affine(x, 25.0, [2, -3], 1.2, [10, 5], how, 0, None),
        ["affine", how, "b"] => affine(x, 0.0, [3, 1], 0.7, [0, 0], how, 0, None),
        ["affine", how, "c"] if array => affine(x, -14.0, [4, 9], 1.0, 20, how, 0, Some([1.0, 2.0])),
        ["affine", how, "c"] => affine(x, -140.0, [0, 0], 1.0, 20, how, 0, Some([1.0, 2.0])),
        ["perspective", how] => perspective(x, START, END, how, 0),
        ["perspective"] => perspective(x, START, END, "bilinear", fill(x, false)),
        ["pad", mode, "1"] => pad(x, 2, fill(x, true), mode),
        ["pad", mode, "2"] => pad(x, [3, 1], fill(x, true), mode),
        ["pad", mode, "4"] | ["pad", mode] => pad(x, [1, 2, 3, 4], fill(x, true), mode),
        ["pad", mode, "far"] => pad(x, [25, 20, 30, 40], fill(x, true), mode),
        ["crop"] => crop(x, 2, 3, 5, 4),
        ["crop", ..] => crop(x, ints[0], ints[1], ints[2], ints[3]),
        ["center_crop"] => center_crop(x, [7, 4]),
        ["center_crop", ..] => center_crop(x, ints),
        ["hflip"] => hflip(x),
        ["vflip"] => vflip(x),
        ["brightness", f] => adjust_brightness(x, number(f)),
        ["contrast", f] => adjust_contrast(x, number(f)),
        ["saturation", f] => adjust_saturation(x, number(f)),
        ["hue", f] => adjust_hue(x, number(f)),
        ["brightness"] => adjust_brightness(x, 1.7),
        ["contrast"] => adjust_contrast(x, 1.7),
        ["saturation"] => adjust_saturation(x, 1.7),
        ["hue"] => adjust_hue(x, 0.2),
        ["grayscale"] => to_grayscale(x, 1),
        ["grayscale", n] => to_grayscale(x, n.parse().unwrap()),
        ["to_tensor"] => to_tensor(x, "CHW"),
        ["normalize", order] => normalize(x.tensor(), [120, 110, 100], [60, 50, 40], "HWC", order == "bgr"),
        ["normalize"] => normalize(x.tensor(), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4], "CHW", false),
        ["erase"] if x.tensor().dtype() == DType::UInt8 => erase(x, 2, 3, 5, 4, Tensor::new([1u8, 2, 3]), false),
        ["erase"] => erase(x, 2, 3, 5, 4, Tensor::new([[[0.1f32]], [[0.2]], [[0.3]]]), false),
        ["rotate", "expand"] => rotate(x, -77.5, "bilinear", true, None, fill(x, false)),
        ["rotate", "center"] => rotate(x, 200.0, "bilinear", false, Some([3.0, 4.0]), fill(x, false)),
        ["rotate", how] => rotate(x, 30.0, how, false, None, fill(x, false)),
        ["affine", how] => affine(x, 25.0, [2, -3], 1.2, [10, 5], how, fill(x, false), None),
        _ => panic!("the script records {parts:?}, which this test does not know"),
    }
}

/// Compares with what a file holds. `source`: the picture of that name as the transforms get it.
fn check(
    file: &str,
    array: bool,
    source: impl Fn(&SafeTensors, &str) -> Image,
    tolerance: impl Fn(&[&str], DType) -> f64,
) {
    let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).expect("it is committed");
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = golden.names();
    names.sort_unstable();
    let mut failures = Vec::new();
    for name in names.into_iter().filter(|n| !n.starts_with("in/")) {
        let parts: Vec<&str> = name.split('/').collect();
        let peer = read(&golden, name);
        let got = match ours(&source(&golden, parts[0]), array, &parts[1..]) {
            Ok(got) => got,
            Err(e) => {
                failures.push(format!("{name}: {e}"));
                continue;
            }
        };
        // Pillow's grey pictures have no channel axis, ours keep it where there was one.
        if got.dtype() != peer.dtype() || got.numel() != peer.numel() || got.shape()[..2] != peer.shape()[..2] {
            failures.push(format!(
                "{name}: {:?} {} against {:?} {}",
                got.shape(),
                got.dtype(),
                peer.shape(),
                peer.dtype()
            ));
            continue;
        }
        let pairs = got.to_f64_vec().into_iter().zip(peer.to_f64_vec());
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if worst > tolerance(&parts, got.dtype()) {
            failures.push(format!("{name}: off by {worst}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn results_are_paddles() {
    let exact = ["pad", "crop", "center_crop", "hflip", "vflip", "to_tensor", "erase", "normalize"];
    let source = |golden: &SafeTensors, name: &str| match name {
        "chw" => {
            let part = crop(&read(golden, "in/rgb"), 0, 0, 9, 12).unwrap();
            Image::from(&to_tensor(&part, "CHW").unwrap())
        }
        _ => Image::from(&read(golden, &format!("in/{name}"))),
    };
    check("transforms.safetensors", false, source, |parts, dtype| match dtype {
        DType::UInt8 if exact.contains(&parts[1]) || (parts.contains(&"nearest") && parts[0] != "chw") => 0.0,
        DType::UInt8 => 1.0,
        _ => 1e-5,
    });
}

/// Bytes come out with OpenCV's bits, but for bicubic resizing, which its builds for different processors round
/// differently themselves. Floats go up to 255.
#[test]
fn results_on_arrays_are_paddles() {
    let source = |golden: &SafeTensors, name: &str| Image::hwc(&read(golden, &format!("in/{name}"))).opencv();
    check("array_transforms.safetensors", true, source, |parts, dtype| match (dtype, parts) {
        (DType::UInt8, [_, "resize", "bicubic", _]) => 1.0,
        (DType::UInt8, _) => 0.0,
        _ => 1e-3,
    });
}

#[test]
fn area_keeps_the_mean() {
    let x = Tensor::from_vec(vec![0u8, 30, 60, 90, 120], [1, 5, 1]);
    assert_eq!(resize(&x, [1, 2], "area").unwrap().to_vec::<u8>(), [24, 96]);
}

#[test]
fn arrangements_agree() {
    let x = Tensor::from_vec((0..60).map(|v| v as f32 / 60.0).collect::<Vec<f32>>(), [4, 5, 3]);
    let turned = x.transpose([2, 0, 1]);
    let pairs: [fn(Image) -> Result<Tensor>; 6] = [
        |x| pad(x, [1, 2], [0.1, 0.2, 0.3], "constant"),
        |x| crop(x, -1, 1, 4, 3),
        |x| rotate(x, 90.0, "nearest", true, None, 0),
        |x| adjust_contrast(x, 1.3),
        |x| resize(x, [2, 3], "lanczos"),
        vflip,
    ];
    for (i, f) in pairs.iter().enumerate() {
        let (last, first) = (f(Image::hwc(&x)).unwrap(), f(Image::chw(&turned)).unwrap());
        assert_eq!(last.transpose([2, 0, 1]).to_vec::<f32>(), first.to_vec::<f32>(), "case {i}");
        // Several pictures at once are each treated alone.
        let many = f(Image::hwc(&sampan_core::ops::joining::stack(&[x.clone(), x.clone()], 0))).unwrap();
        assert_eq!(many.get(1).to_vec::<f32>(), last.to_vec::<f32>(), "case {i}");
    }
}

#[test]
fn joined_steps_give_the_same_bits() {
    let x = Tensor::from_vec((0..=255).cycle().take(300).collect::<Vec<u8>>(), [10, 10, 3]);
    let normal = || Normalize::with(|o| o.mean([0.485, 0.456, 0.406]).std([0.229, 0.224, 0.225]));
    let both = Compose::new(transforms![ToTensor::new(), normal()]).apply(&x).unwrap();
    let apart = normal().apply(&ToTensor::new().apply(&x).unwrap()).unwrap();
    assert_eq!((both.shape(), both.to_vec::<f32>()), (&[3, 10, 10][..], apart.to_vec::<f32>()));
}

#[test]
fn keys_say_which_fields_change() {
    let _alone = crate::alone();
    let sample = || vec![Tensor::new([[1u8, 2]]), Tensor::new([[3u8, 4]]), Tensor::new(7i64)];
    let values = |s: Vec<Tensor>| s.iter().map(Tensor::to_f64_vec).collect::<Vec<_>>();
    let flip = |keys: &[Key]| RandomHorizontalFlip::with(|o| o.prob(1.0).keys(keys));
    let first = flip(&[Key::Image]).apply_sample(sample()).unwrap();
    assert_eq!(values(first), [vec![2.0, 1.0], vec![3.0, 4.0], vec![7.0]]);
    let both = Compose::new(transforms![flip(&[Key::Image, Key::Image])]).apply_sample(sample()).unwrap();
    assert_eq!(values(both), [vec![2.0, 1.0], vec![4.0, 3.0], vec![7.0]]);
    assert!(flip(&[Key::Image, Key::Boxes]).apply_sample(sample()).is_err());
}

#[test]
fn the_registry_builds_transforms() {
    use sampan_core::{Value, class};
    let class = class::find("vision.transforms", "Resize").unwrap();
    let keys = Value::List(vec!["image".into()]);
    let object = class.make(vec![Value::Int(4)], vec![("interpolation", "box".into()), ("keys", keys)]).unwrap();
    let resize = object.downcast::<std::sync::Arc<dyn Transform>>().unwrap().clone();
    let compose = class::find("vision.transforms", "Compose").unwrap();
    let made = compose.make(vec![Value::List(vec![Value::Object(object)])], vec![]).unwrap();
    let made = made.downcast::<std::sync::Arc<dyn Transform>>().unwrap();
    let x = Tensor::from_vec(vec![8u8; 8 * 12], [8, 12]);
    assert_eq!(made.apply(&x).unwrap().shape(), resize.apply(&x).unwrap().shape());
    let wrong = class.make(vec![Value::Int(4)], vec![("keys", Value::List(vec!["sound".into()]))]);
    assert!(wrong.unwrap_err().to_string().contains("keys"));
}

#[test]
fn wrong_arguments_are_named() {
    let x = Tensor::from_vec(vec![0u8; 60], [4, 5, 3]);
    let cases: Vec<(Error, &str)> = vec![
        (resize(&x, [1, 2, 3], "bilinear").unwrap_err(), "resize: size"),
        (resize(&x, 0, "bilinear").unwrap_err(), "size must be positive"),
        (resize(&x, 2, "cubic").unwrap_err(), "'bicubic'"),
        (resize(&x, [1i64 << 40, 1 << 40], "box").unwrap_err(), "cannot be made"),
        (pad(&x, i64::MAX, 0, "edge").unwrap_err(), "cannot be made"),
        (crop(&x, 0, 0, i64::MAX, 1).unwrap_err(), "cannot be made"),
        (rotate(&x, f64::NAN, "nearest", true, None, 0).unwrap_err(), "finite"),
        (resize(&x.cast(DType::Int32), 2, "bilinear").unwrap_err(), "interpolation='nearest'"),
        (rotate(&x, 3.0, "lanczos", false, None, 0).unwrap_err(), "rotate: interpolation"),
        (rotate(&x, 3.0, "nearest", false, None, [1, 2]).unwrap_err(), "fill"),
        (affine(&x, 3.0, [1, 2], 0.0, 0, "nearest", 0, None).unwrap_err(), "scale must be positive"),
        (affine(&x, 3.0, [1, 2, 3], 1.0, 0, "nearest", 0, None).unwrap_err(), "translate"),
        (pad(&x, [1, 2, 3], 0, "constant").unwrap_err(), "padding must be one, two or four"),
        (pad(&x, -1, 0, "constant").unwrap_err(), "negative"),
        (pad(&x, 1, 0, "wrap").unwrap_err(), "padding_mode"),
        (perspective(&x, START, [[0.0; 2]; 4], "nearest", 0).unwrap_err(), "perspective"),
        (adjust_hue(&x, 0.6).unwrap_err(), "hue_factor"),
        (adjust_brightness(&x, -1.0).unwrap_err(), "brightness_factor"),
        (to_grayscale(&x, 2).unwrap_err(), "1 or 3"),
        (to_tensor(&x, "NCHW").unwrap_err(), "data_format"),
        (to_tensor(&Tensor::new([1u8]), "CHW").unwrap_err(), "axes"),
        (normalize(&x, [1, 2, 3], [1, 2, 3], "CHW", false).unwrap_err(), "data_format says"),
        (hflip(&Tensor::from_vec(Vec::<u8>::new(), [0, 4, 3])).unwrap_err(), "empty"),
        (RandomCrop::new(9).apply(&x).unwrap_err(), "pad_if_needed"),
        (RandomHorizontalFlip::try_with(|o| o.prob(1.5)).unwrap_err(), "prob"),
        (RandomResizedCrop::try_with(4, |o| o.scale([1.0, 0.5])).unwrap_err(), "scale"),
        (RandomErasing::try_with(|o| o.value("noise")).unwrap_err(), "'random'"),
        (RandomAffine::try_with(5, |o| o.translate([0.5, 2.0])).unwrap_err(), "translate"),
        (RandomRotation::try_new(-5).unwrap_err(), "degrees"),
        (HueTransform::try_new(0.7).unwrap_err(), "hue"),
        (BrightnessTransform::try_new(-0.1).unwrap_err(), "brightness"),
        (Normalize::try_with(|o| o.mean([0.1, 0.2]).std([1.0, 1.0, 1.0])).unwrap_err(), "mean and std"),
        (
            Compose::new(transforms![ToTensor::new(), RandomCrop::new(9)]).apply(&x).unwrap_err(),
            "Compose.transforms[1]",
        ),
    ];
    for (error, words) in cases {
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    }
}
