//! Boxes and regions against Paddle's answers, recorded by `scripts/vision_ops_golden.py`.

use safetensors::{Dtype, SafeTensors};
use sampan_core::{DType, Result, Tensor};
use sampan_data::vision::ops::*;

/// The sum weighted by sines.
fn weighted(y: &Tensor) -> Tensor {
    let weights: Vec<f32> = (0..y.numel()).map(|i| ((i + 1) as f32).sin()).collect();
    (y * &Tensor::from_vec(weights, y.shape())).sum(())
}

struct Golden<'a>(SafeTensors<'a>);

impl Golden<'_> {
    fn get(&self, name: &str) -> Tensor {
        let view = self.0.tensor(name).unwrap();
        let dtype = match view.dtype() {
            Dtype::F32 => DType::Float32,
            Dtype::I32 => DType::Int32,
            Dtype::I64 => DType::Int64,
            other => panic!("{other:?}"),
        };
        Tensor::from_bytes(view.data(), dtype, view.shape()).unwrap()
    }

    fn check(&self, name: &str, ours: &Tensor) {
        let peer = self.get(name);
        assert_eq!((ours.shape(), ours.dtype()), (peer.shape(), peer.dtype()), "{name}");
        for (a, b) in ours.to_f64_vec().into_iter().zip(peer.to_f64_vec()) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{name}: {a} against {b}");
        }
    }

    /// The result, and the gradient of its sum weighted by sines.
    fn check_gradient(&self, name: &str, f: impl Fn(&Tensor) -> Result<Tensor>) {
        let x = self.get("x").requires_grad_();
        let y = f(&x).unwrap();
        self.check(name, &y);
        weighted(&y).backward();
        self.check(&format!("grad/{name}"), &x.grad().unwrap());
    }
}

#[test]
fn results_are_paddles() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vision_ops.safetensors");
    let bytes = std::fs::read(path).expect("tests/vision_ops.safetensors is committed");
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    let (boxes, scores, owners) = (golden.get("boxes"), golden.get("scores"), golden.get("owners"));
    for t in [0.1, 0.5] {
        let all = Some(&[0i64, 1, 2][..]);
        golden.check(&format!("nms/plain/{t}"), &nms(&boxes, t, None, None, None, None).unwrap());
        golden.check(&format!("nms/scores/{t}"), &nms(&boxes, t, Some(&scores), None, None, None).unwrap());
        golden.check(&format!("nms/owners/{t}"), &nms(&boxes, t, Some(&scores), Some(&owners), all, None).unwrap());
        golden.check(&format!("nms/top/{t}"), &nms(&boxes, t, Some(&scores), Some(&owners), all, Some(5)).unwrap());
    }
    let (prior, target, var) = (boxes.get(0..5), boxes.get(5..8), golden.get("var"));
    for (word, normalized) in [("True", true), ("False", false)] {
        let code = box_coder(&prior, Some(&var), &target, "encode_center_size", normalized, 0).unwrap();
        golden.check(&format!("box_coder/encode/{word}"), &code);
        let half = &code * 0.5;
        let back = box_coder(&prior, Some(&var), &half, "decode_center_size", normalized, 0).unwrap();
        golden.check(&format!("box_coder/decode/{word}"), &back);
        let same = Tensor::new([0.1f32, 0.2, 0.3, 0.4]);
        let turned = half.transpose([1, 0, 2]);
        let back = box_coder(&prior, Some(&same), &turned, "decode_center_size", normalized, 1).unwrap();
        golden.check(&format!("box_coder/axis/{word}"), &back);
    }
    let (regions, count) = (golden.get("regions"), golden.get("count"));
    for (word, aligned) in [("True", true), ("False", false)] {
        for ratio in [-1, 2] {
            golden.check_gradient(&format!("roi_align/{word}/{ratio}"), |x| {
                roi_align(x, &regions, &count, [3, 2], 0.5, ratio, aligned)
            });
        }
    }
    let leaves = ["maps", "offset", "weight", "bias", "mask"].map(|n| (n, golden.get(n).requires_grad_()));
    let [m, o, f, b, k] = leaves.each_ref().map(|(_, t)| t);
    let y = deform_conv2d(m, o, f, Some(b), [2, 2], 1, 1, 2, 2, Some(k)).unwrap();
    golden.check("deform_conv2d", &y);
    weighted(&y).backward();
    for (name, leaf) in &leaves {
        golden.check(&format!("grad/deform_conv2d/{name}"), &leaf.grad().unwrap());
    }
    golden.check_gradient("psroi_pool", |x| psroi_pool(x, &regions, &count, [3, 1], 0.5));
    golden.check_gradient("roi_pool", |x| roi_pool(x, &regions, &count, [3, 2], 0.5));
}

#[test]
fn detectors_are_paddles() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vision_ops.safetensors");
    let bytes = std::fs::read(path).expect("tests/vision_ops.safetensors is committed");
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    let (x, count) = (golden.get("x"), golden.get("count"));
    let image = Tensor::from_vec(vec![0f32; 3600], [1, 3, 30, 40]);
    let part = |(boxes, _): (Tensor, Tensor)| boxes.get((0..2, 0..2));
    let variance = [0.1, 0.1, 0.2, 0.2];
    for (name, order) in [("plain", false), ("order", true)] {
        let found =
            prior_box(&x, &image, [4, 9], &[8.0, 16.0], [2, 3], variance, true, true, [0, 0], 0.5, order).unwrap();
        golden.check(&format!("prior_box/{name}"), &part(found));
    }
    let found = prior_box(&x, &image, 5, &[], 0.5, variance, false, false, [3, 4], 0.25, false).unwrap();
    golden.check("prior_box/steps", &part(found));
    for (word, offset) in [("True", true), ("False", false)] {
        let rois = golden.get(&format!("fpn/{word}/in"));
        let levels = distribute_fpn_proposals(&rois, 2, 4, 3, 50, offset, &count).unwrap();
        golden.check(&format!("fpn/{word}/rois"), &sampan_core::ops::joining::concat(&levels.rois, 0));
        golden.check(&format!("fpn/{word}/restore"), &levels.restore_index);
        golden.check(&format!("fpn/{word}/numbers"), &sampan_core::ops::joining::stack(&levels.rois_num, 0));
    }
    let (head, sizes, anchors) = (golden.get("head"), golden.get("sizes"), [10, 13, 16, 30]);
    let plain = head.get((.., 0..14));
    let found = [
        yolo_box(&plain, &sizes, &anchors, 2, 0.4, 32, true, 1.2, false, 0.5).unwrap(),
        yolo_box(&head, &sizes, &anchors, 2, 0.4, 32, false, 1.0, true, 0.3).unwrap(),
    ];
    for (i, (boxes, scores)) in found.iter().enumerate() {
        golden.check(&format!("yolo_box/{i}/boxes"), boxes);
        golden.check(&format!("yolo_box/{i}/scores"), scores);
    }
}

#[test]
fn wrong_arguments_are_named() {
    let (x, boxes, two) =
        (Tensor::from_vec(vec![0f32; 16], [1, 1, 4, 4]), Tensor::new([[0f32; 4]]), Tensor::new([2i32]));
    let cases = [
        (nms(&x, 0.3, None, None, None, None), "boxes must be"),
        (nms(&boxes, 0.3, Some(&Tensor::new([1f32, 2.0])), None, None, None), "scores"),
        (nms(&boxes, 0.3, Some(&Tensor::new([1f32])), Some(&Tensor::new([0i64])), None, None), "categories"),
        (box_coder(&boxes, None, &boxes, "both", true, 0), "code_type"),
        (box_coder(&boxes, None, &boxes, "decode_center_size", true, 0), "[N, M, 4]"),
        (roi_align(&x, &boxes, &two, 2, 1.0, -1, true), "adds up to 2"),
        (roi_pool(&x, &boxes, &two, 0, 1.0), "output_size"),
        (deform_conv2d(&x, &x, &x, None, 1, 0, 1, 1, 1, None), "offset must have shape"),
        (decode_jpeg(&Tensor::new([1u8, 2]), "rgb"), "decode_jpeg"),
        (read_file("/no/such/file"), "/no/such/file"),
    ];
    for (result, words) in cases {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{words:?} is not in: {error}");
    }
}
