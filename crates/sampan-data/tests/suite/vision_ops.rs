//! Boxes and regions against Paddle's answers, recorded by `scripts/vision_ops_golden.py`.

use safetensors::{Dtype, SafeTensors};
use sampan_core::{DType, Result, Tensor, Value, function};
use sampan_data::vision::ops::*;
use sampan_data::vision::transforms::{Image, Numbers};
use sampan_nn::{Layer, Members};

/// The sum weighted by sines.
fn weighted(y: &Tensor) -> Tensor {
    let weights: Vec<f32> = (0..y.numel()).map(|i| ((i + 1) as f32).sin()).collect();
    (y * &Tensor::from_vec(weights, y.shape())).sum(())
}

fn file() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vision_ops.safetensors");
    std::fs::read(path).expect("tests/vision_ops.safetensors is committed")
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
    let bytes = file();
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
        let turned = half.transpose([1, 0, 2]);
        let back = box_coder(&prior, [0.1, 0.2, 0.3, 0.4], &turned, "decode_center_size", normalized, 1).unwrap();
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
    let bytes = file();
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    let (x, count) = (golden.get("x"), golden.get("count"));
    let image = Tensor::from_vec(vec![0f32; 3600], [1, 3, 30, 40]);
    let part = |(boxes, _): (Tensor, Tensor)| boxes.get((0..2, 0..2));
    let variance = [0.1, 0.1, 0.2, 0.2];
    for (name, order) in [("plain", false), ("order", true)] {
        let found =
            prior_box(&x, &image, [4, 9], Some([8, 16].into()), [2, 3], variance, true, true, [0, 0], 0.5, order)
                .unwrap();
        golden.check(&format!("prior_box/{name}"), &part(found));
    }
    let found = prior_box(&x, &image, 5, None, 0.5, variance, false, false, [3, 4], 0.25, false).unwrap();
    golden.check("prior_box/steps", &part(found));
    for (word, offset) in [("True", true), ("False", false)] {
        let rois = golden.get(&format!("fpn/{word}/in"));
        let levels = distribute_fpn_proposals(&rois, 2, 4, 3, 50, offset, Some(&count)).unwrap();
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
fn losses_and_proposals_are_paddles() {
    let bytes = file();
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    let [boxes, labels, scores] = ["boxes", "labels", "scores"].map(|n| golden.get(&format!("yolo/{n}")));
    let pairs = [10, 13, 16, 30, 33, 23];
    for (i, (score, smooth, scale)) in [(None, true, 1.0), (Some(&scores), false, 1.2)].into_iter().enumerate() {
        let x = golden.get("yolo/x").requires_grad_();
        let loss = yolo_loss(&x, &boxes, &labels, &pairs, &[0, 2], 2, 0.3, 16, score, smooth, scale).unwrap();
        golden.check(&format!("yolo/{i}"), &loss);
        (&loss * &Tensor::new([0.3f32, -1.2])).sum(()).backward();
        golden.check(&format!("yolo/{i}/grad"), &x.grad().unwrap());
    }
    let (x, shared) = (golden.get("yolo/x"), golden.get("yolo/shared/boxes"));
    let loss = yolo_loss(&x, &shared, &labels, &pairs, &[0, 2], 2, 0.3, 16, None, true, 1.0).unwrap();
    golden.check("yolo/shared", &loss);
    let rpn = ["scores", "deltas", "sizes", "anchors", "variances"].map(|n| golden.get(&format!("rpn/{n}")));
    let [s, d, z, a, v] = rpn.each_ref();
    let plans = [
        (6000, 1000, 0.5, 0.1, 1.0, false),
        (30, 7, 0.8, 3.0, 0.9, true),
        (-1, 5, 0.0, 2.0, 1.0, false),
        (-1, -1, 0.3, 500.0, 1.0, false),
    ];
    for (i, (before, after, threshold, least, eta, pixel)) in plans.into_iter().enumerate() {
        let found = generate_proposals(s, d, z, a, v, before, after, threshold, least, eta, pixel, true).unwrap();
        golden.check(&format!("rpn/{i}/rois"), &found.rois);
        golden.check(&format!("rpn/{i}/probs"), &found.roi_probs);
        golden.check(&format!("rpn/{i}/num"), &found.rois_num.unwrap());
    }
    let (boxes, scores) = (golden.get("matrix/boxes"), golden.get("matrix/scores"));
    let found = [
        matrix_nms(&boxes, &scores, 0.2, 0.1, 8, 10, false, 2.0, 0, true, true, true),
        matrix_nms(&boxes, &scores, 0.1, 0.2, -1, -1, true, 1.5, -1, false, true, true),
        matrix_nms(&boxes, &scores, 2.0, 0.1, 3, 3, false, 2.0, 0, true, true, true),
    ];
    for (i, found) in found.into_iter().enumerate() {
        let found = found.unwrap();
        golden.check(&format!("matrix/{i}/out"), &found.out);
        golden.check(&format!("matrix/{i}/num"), &found.rois_num.unwrap());
        golden.check(&format!("matrix/{i}/index"), &found.index.unwrap());
    }
}

/// Every public function of Paddle's two modules can be called by its name, with its arguments and defaults.
#[test]
fn functions_take_paddles_arguments() {
    let bytes = file();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    for (name, wanted) in header.metadata().clone().unwrap() {
        let (module, name) = name.rsplit_once('.').unwrap();
        let function = function::find(module, name).unwrap_or_else(|| panic!("{module}.{name} is absent"));
        let plain = |text: &str| text.replace(' ', "");
        assert_eq!(plain(&function.takes().to_string()), plain(&format!("{name}({wanted})")));
        assert!(function.doc.contains("```"), "{name} has no runnable example");
    }
}

#[test]
fn functions_are_called_by_name() {
    let call = |module: &str, name: &str, positional: Vec<Value>, named: Vec<(&str, Value)>| {
        function::find(module, name).unwrap().call(positional, named)
    };
    let rois = Tensor::new([[0.0f32, 0.0, 300.0, 300.0], [0.0, 0.0, 20.0, 20.0]]);
    let found = call(
        "vision.ops",
        "distribute_fpn_proposals",
        vec![rois.into(), 2.into()],
        vec![("max_level", 5.into()), ("refer_level", 4.into()), ("refer_scale", 224.into())],
    );
    let Value::List(parts) = found.unwrap() else { panic!("a tuple is a list") };
    assert!(matches!(&parts[..], [Value::Tensors(rois), Value::Tensor(_), Value::Tensors(_)] if rois.len() == 4));

    // Numbers of either kind, lists of lists, and pictures whose axes are told.
    let picture = Tensor::new([[[1u8, 2, 3], [4, 5, 6]]]);
    let first = |v: Result<Value>| match v.unwrap() {
        Value::Tensor(t) => t.to_vec::<u8>(),
        other => panic!("{other:?}"),
    };
    let told = Value::Object(sampan_core::Object::new(Image::chw(&picture)));
    assert_eq!(first(call("vision.transforms", "hflip", vec![told], vec![])), [3, 2, 1, 6, 5, 4]);
    let square = |p: [[i64; 2]; 4]| Value::List(p.map(Value::from).to_vec());
    let (from, to) = (square([[0, 0], [2, 0], [2, 2], [0, 2]]), square([[2, 0], [2, 2], [0, 2], [0, 0]]));
    let small = Tensor::new([[1u8, 2], [3, 4]]);
    assert_eq!(first(call("vision.transforms", "perspective", vec![small.into(), from, to], vec![])), [3, 1, 4, 2]);
    let error = call("vision.transforms", "hflip", vec![1.into()], vec![]).unwrap_err().to_string();
    assert!(error.contains("hflip") && error.contains("`img` must be a picture"), "{error}");
    let fill = Value::from(Numbers::One(9.0));
    let padded = call("vision.transforms", "pad", vec![Tensor::new([[1u8]]).into(), 1.into()], vec![("fill", fill)]);
    assert_eq!(first(padded), [9, 9, 9, 9, 1, 9, 9, 9, 9]);
}

#[test]
fn layers_are_their_functions() {
    let bytes = file();
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    let [x, regions, count] = ["x", "regions", "count"].map(|n| golden.get(n));
    let inputs = [x, regions, count];
    let last = Tensor::new([false]);
    golden.check("roi_pool", &RoIPool::with([3, 2], |o| o.spatial_scale(0.5)).call_all(&inputs).unwrap()[0]);
    golden.check("psroi_pool", &PSRoIPool::with([3, 1], |o| o.spatial_scale(0.5)).call_all(&inputs).unwrap()[0]);
    let align = RoIAlign::with([3, 2], |o| o.spatial_scale(0.5));
    golden.check("roi_align/True/-1", &align.call_all(&inputs).unwrap()[0]);
    let four = [&inputs[..], &[last]].concat();
    golden.check("roi_align/False/-1", &align.call_all(&four).unwrap()[0]);
    assert!(align.call_all(&inputs[..2]).unwrap_err().to_string().contains("boxes_num"));

    let conv = DeformConv2D::with(4, 6, [3, 2], |o| o.stride(2).padding(1).deformable_groups(2).groups(2));
    let names: Vec<String> = conv.named_parameters().into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["weight", "bias"]);
    for (name, parameter) in conv.named_parameters() {
        parameter.set_value(&golden.get(&name)).unwrap();
    }
    let inputs = ["maps", "offset", "mask"].map(|n| golden.get(n));
    golden.check("deform_conv2d", &conv.call_all(&inputs).unwrap()[0]);
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
