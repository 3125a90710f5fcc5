//! Networks in eight bits: what the codes cost, that plans, replays and files agree, and what cannot be done.

use sampan_core::ops::conv::Conv2dOpts;
use sampan_core::{DType, Tensor, random};
use sampan_data::vision::models;
use sampan_graph::quantize::{self, Calibration, Method};
use sampan_graph::{Graph, Predictor, Spec, onnx, paddle, trace};
use sampan_nn::Layer;

fn randn(shape: impl AsRef<[usize]>) -> Tensor {
    Tensor::randn(shape.as_ref())
}

/// The largest difference, as a part of the largest number.
fn apart(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
    let scale = b.iter().fold(1e-6f64, |m, v| m.max(v.abs()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / scale
}

/// Few channels, many, groups, one channel a group, strides, dilation, a sum, pools, rows.
fn network() -> Graph {
    random::own(3);
    let conv = |o: usize, i: usize, k: usize| (randn([o, i, k, k]).scale(0.3), randn([o]));
    let (a, b, c, d, e) = (conv(6, 3, 3), conv(20, 6, 3), conv(20, 5, 3), conv(20, 1, 3), conv(20, 20, 1));
    let (w, v) = (randn([20, 7]), randn([5, 7]));
    let program = |x: &[Tensor]| {
        let with = |x: &Tensor, (w, b): &(Tensor, Tensor), f: fn(Conv2dOpts) -> Conv2dOpts| {
            x.conv2d_with(w, Some(b), f(Conv2dOpts::new()))
        };
        let y = with(&x[0], &a, |o| o.padding(1)).relu();
        let y = with(&y, &b, |o| o.stride(2).padding(1)).relu().max_pool2d(2);
        let sum = with(&y, &c, |o| o.groups(4).padding(2).dilation(2)).hardswish();
        let one = with(&sum, &d, |o| o.groups(20).padding(1));
        let y = (with(&one, &e, |o| o) + &y).relu();
        let y = y.mean([2, 3]).matmul(&w).tanh();
        Ok(vec![y.matmul_with(&v, sampan_core::ops::matmul::MatmulOpts::new().transpose_y(true))])
    };
    trace(program, &[Spec::new([None, Some(3), None, None], DType::Float32).named("image")]).unwrap()
}

fn fixed(graph: &Graph, method: Method) -> Graph {
    let mut calibration = Calibration::new(graph, method).unwrap();
    random::own(4);
    for _ in 0..3 {
        calibration.feed(&[randn([4, 3, 19, 22])]).unwrap();
    }
    calibration.finish().unwrap()
}

#[test]
fn all_ways_and_all_files() {
    random::own(0);
    let graph = network();
    let folder = std::env::temp_dir().join(format!("sampan-quantize-{}", std::process::id()));
    let small = [
        ("minmax", fixed(&graph, Method::MinMax), 0.15, true),
        ("percentile", fixed(&graph, Method::Percentile(99.999)), 0.2, true),
        ("average", fixed(&graph, Method::MovingAverage(0.5)), 0.2, true),
        ("dynamic", quantize::dynamic(&graph).unwrap(), 0.15, true),
        ("int8", quantize::weights(&graph, DType::Int8).unwrap(), 0.08, false),
        ("fp16", quantize::weights(&graph, DType::Float16).unwrap(), 0.01, false),
        ("bf16", quantize::weights(&graph, DType::BFloat16).unwrap(), 0.05, false),
    ];
    for (name, small, most, codes) in small {
        assert!(
            quantize::bytes(&small) * 10 < quantize::bytes(&graph) * if name.ends_with("16") { 6 } else { 4 },
            "{name}"
        );
        assert_eq!(quantize::count(&small).0, if codes { 7 } else { 0 }, "{name}");
        let prefix = folder.join(name);
        paddle::save(&small, &prefix, &[]).unwrap();
        onnx::save(&small, prefix.with_extension("onnx"), onnx::Options::default()).unwrap();
        let parameters = prefix.with_extension("pdiparams");
        let files = [
            paddle::load_files(&prefix.with_extension("pdmodel"), &parameters).unwrap(),
            paddle::load_files(&prefix.with_extension("json"), &parameters).unwrap(),
            onnx::load(prefix.with_extension("onnx")).unwrap().graph().unwrap(),
        ];
        for shape in [[2, 3, 19, 22], [1, 3, 12, 9], [0, 3, 12, 12]] {
            let x = randn(shape);
            let wanted = small.run(&[x.clone()]).unwrap().remove(0);
            let apart_by = apart(&wanted, &graph.run(&[x.clone()]).unwrap()[0]);
            assert!(apart_by < most, "{name}: {apart_by}");
            for (k, read) in [&small].into_iter().chain(&files).enumerate() {
                let again = read.run(&[x.clone()]).unwrap().remove(0);
                // A number between two codes may go to either.
                assert!(apart(&again, &wanted) < 0.03, "{name}, file {k}, replayed");
                let predictor = Predictor::new(read).unwrap();
                let planned = predictor.run(&[x.clone()]).unwrap().remove(0);
                assert!(apart(&planned, &wanted) < 0.03, "{name}, file {k}, planned: {}", apart(&planned, &wanted));
                let steps = predictor.describe(&[x.clone()]).unwrap();
                assert!(!steps.contains("replayed"), "{name}: {steps}");
                if codes && shape[0] > 0 {
                    assert!(
                        steps.contains("conv2d int8") && steps.contains("linear int8"),
                        "{name}, file {k}: {steps}"
                    );
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn codes_stay_codes_between_layers() {
    random::own(0);
    let net: Box<dyn Layer> = Box::new(models::resnet18());
    random::own(5);
    net.train();
    net.call_all(&[randn([2, 3, 40, 40])]).unwrap();
    net.eval();
    let graph = trace(|x| net.call_all(x), &[Spec::new([None, Some(3), None, None], DType::Float32)]).unwrap();
    let x = randn([2, 3, 64, 64]);
    let mut calibration = Calibration::new(&graph, Method::MinMax).unwrap();
    calibration.feed(&[x.clone()]).unwrap();
    let small = calibration.finish().unwrap();
    assert_eq!(quantize::count(&small), (21, 21));
    let predictor = Predictor::new(&small).unwrap();
    let steps = predictor.describe(&[x.clone()]).unwrap();
    assert_eq!(steps.matches("conv2d int8").count(), 20, "{steps}");
    assert_eq!(steps.matches("conv2d int8").count() - steps.matches("+ activation to codes").count(), 4, "{steps}");
    assert!(steps.contains("pool Max of codes") && steps.matches("to codes").count() <= 19, "{steps}");
    let (a, b) = (predictor.run(&[x.clone()]).unwrap(), small.run(&[x.clone()]).unwrap());
    assert!(apart(&a[0], &b[0]) < 0.05);
    assert!(apart(&b[0], &graph.run(&[x]).unwrap()[0]) < 0.2);
}

#[test]
fn samples_do_not_disturb_each_other() {
    random::own(0);
    let graph = network();
    let predictor = Predictor::new(&quantize::dynamic(&graph).unwrap()).unwrap();
    let x = sampan_core::ops::joining::concat(&[randn([1, 3, 12, 12]), randn([1, 3, 12, 12]).scale(100.0)], 0);
    let both = predictor.run(&[x.clone()]).unwrap().remove(0);
    let alone = predictor.run(&[x.try_slice([0i64], [0i64], [1i64]).unwrap()]).unwrap().remove(0);
    assert_eq!(both.to_vec::<f32>()[..5], alone.to_vec::<f32>()[..]);
}

#[test]
fn what_cannot_be_done_is_said() {
    random::own(0);
    let says = |result: sampan_core::Result<Graph>, words: &str| {
        let error = result.expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    let spec = || [Spec::new([None, Some(4)], DType::Float32).named("x")];
    let plain = trace(|x| Ok(vec![x[0].exp().relu()]), &spec()).unwrap();
    says(quantize::dynamic(&plain), "no layer that can be quantised");
    says(Calibration::new(&plain, Method::MinMax).map(|_| plain.clone()), "no layer that can be quantised");
    says(quantize::weights(&plain, DType::Int8), "no float32 weights");
    let w = randn([4, 8]);
    let graph = trace(|x| Ok(vec![x[0].matmul(&w)]), &spec()).unwrap();
    says(quantize::weights(&graph, DType::Int64), "float16, bfloat16 or int8");
    says(quantize::dynamic(&quantize::dynamic(&graph).unwrap()), "quantised already");
    says(Calibration::new(&graph, Method::MinMax).unwrap().finish(), "no calibration data");
    says(Calibration::new(&graph, Method::Percentile(0.0)).map(|_| graph.clone()), "percentile");
    says(Calibration::new(&graph, Method::MovingAverage(1.0)).map(|_| graph.clone()), "rate");
    let feed = |x: Tensor| {
        let mut calibration = Calibration::new(&graph, Method::MinMax)?;
        calibration.feed(&[x])?;
        calibration.finish()
    };
    says(feed(Tensor::new([[1.0f32, f32::NAN, 0.0, 0.0]])), "`x` holds NaN");
    says(feed(randn([2, 5])), "has shape");
    says(feed(Tensor::new([[1i64, 2, 3, 4]])), "input `x` is float32");
    // Nothing but zeros is no reason to fail.
    let zeros = feed(Tensor::zeros([2, 4], DType::Float32)).unwrap();
    assert!(zeros.run(&[randn([3, 4])]).unwrap()[0].to_f64_vec().iter().all(|v| v.is_finite()));
    let bad = Tensor::new([[f32::INFINITY; 8]; 4]);
    let graph = trace(|x| Ok(vec![x[0].matmul(&bad)]), &spec()).unwrap();
    says(quantize::dynamic(&graph), "NaN or infinity");
    says(quantize::weights(&graph, DType::Float16), "NaN or infinity");
}

/// The arithmetic of codes in a `.json` is taken for codes only where these compute the same.
#[test]
fn arithmetic_that_is_like_codes_stays_what_it_computes() {
    random::own(0);
    let folder = std::env::temp_dir().join(format!("sampan-arithmetic-{}", std::process::id()));
    let codes = |x: &Tensor, step: &Tensor| (x / step).round(0).clip(-128.0, 127.0);
    let there_and_back = |x: &Tensor, step: &Tensor| codes(x, step) * step;
    let step = |s: &Tensor| s.scale(1.0 / 127.0);
    let both = |codes: Tensor, step: Tensor| &codes * step + &codes;
    let several = Tensor::new([0.5f32, 1.0, 2.0, 4.0]);
    let one = |shape: &[i64]| Tensor::new([2.0f32]).reshape(shape);
    let weight = Tensor::new([1i8, -2, 3, 127, 5, 6, -7, 8, 9, 10, 11, -12, 13, 14, 15, 16]).reshape([4, 4]);
    type Case<'a> = (&'a str, Box<dyn Fn(&Tensor) -> Tensor + 'a>, bool);
    let cases: Vec<Case> = vec![
        ("one step", Box::new(|x| there_and_back(x, &step(&one(&[1])))), true),
        ("along an axis", Box::new(|x| there_and_back(x, &step(&several).reshape([1, -1, 1]))), true),
        ("of weights", Box::new(|x| x.matmul(&(weight.cast(DType::Float32) * step(&several).reshape([-1, 1])))), true),
        ("along the last axis", Box::new(|x| there_and_back(x, &step(&several))), false),
        ("weights along the last axis", Box::new(|x| x.matmul(&(weight.cast(DType::Float32) * step(&several)))), false),
        ("fewer axes", Box::new(|x| there_and_back(x, &step(&several).reshape([-1, 1]))), false),
        ("more axes", Box::new(|x| there_and_back(x, &step(&one(&[1, 1, 1, 1])))), false),
        (
            "wider",
            Box::new(|x| there_and_back(&x.mean([1]).reshape([2, 1, 4]), &step(&several).reshape([1, -1, 1]))),
            false,
        ),
        (
            "doubles",
            Box::new(|x| there_and_back(&x.cast(DType::Float64), &step(&one(&[1]).cast(DType::Float64)))),
            false,
        ),
        ("not decoded", Box::new(|x| codes(x, &step(&one(&[1])))), false),
        ("decoded and read", Box::new(|x| both(codes(x, &step(&one(&[1]))), step(&one(&[1])))), false),
    ];
    let mut x = Tensor::randn([2, 4, 4]).to_vec::<f32>();
    for (name, program, taken) in cases {
        let graph = trace(|x| Ok(vec![program(&x[0])]), &[Spec::new([2, 4, 4].map(Some), DType::Float32)]).unwrap();
        paddle::save(&graph, folder.join("net"), &[]).unwrap();
        // Paddle has `reshape` with the -1 that it was given.
        let file = folder.join("net.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(r##""0.a_i64","D":4}"##, r##""0.a_i64","D":-1}"##)).unwrap();
        let read = paddle::load_files(&file, &folder.join("net.pdiparams")).unwrap();
        let found = read.calls.iter().any(|c| c.op.name == "dequantize_linear" || c.op.name == "quantize_linear");
        assert_eq!(found, taken, "{name}");
        (x[3], x[5]) = if taken { (0.0, 9.0) } else { (f32::NAN, f32::INFINITY) };
        let x = Tensor::new(x.as_slice()).reshape([2, 4, 4]);
        let (got, wanted) = (read.run(&[x.clone()]).unwrap().remove(0), program(&x));
        assert_eq!((got.shape(), got.dtype()), (wanted.shape(), wanted.dtype()), "{name}");
        let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-5 || a.is_nan() && b.is_nan();
        assert!(got.to_f64_vec().iter().zip(&wanted.to_f64_vec()).all(near), "{name}: {got:?} {wanted:?}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// What others wrote, and what they computed with it (`scripts/quantize/record.py`).
#[test]
fn files_of_others() {
    random::own(0);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quantised");
    let answers = |name: &str| sampan_io::load(folder.join(name)).unwrap().tensors();
    let theirs = answers("onnxruntime.npz");
    for (name, wanted) in theirs.iter().filter(|(name, _)| *name != "x") {
        let model = onnx::load(folder.join(name).with_extension("onnx")).unwrap();
        let x = theirs["x"].clone();
        assert!(apart(&model.run(&[x.clone()]).unwrap()[0], wanted) < 1e-5, "{name}");
        let predictor = Predictor::new(&model.graph().unwrap()).unwrap();
        let got = predictor.run(&[x.clone()]).unwrap();
        assert!(apart(&got[0], wanted) < 0.01, "{name}: {}", apart(&got[0], wanted));
        let steps = predictor.describe(&[x]).unwrap();
        assert_eq!(
            steps.contains("conv2d int8") && steps.contains("linear int8"),
            name.starts_with("qdq"),
            "{name}: {steps}"
        );
    }
    let theirs = answers("paddle-ptq.npz");
    let (program, parameters) = (folder.join("paddle-ptq.pdmodel"), folder.join("paddle-ptq.pdiparams"));
    let graph = paddle::load_files(&program, &parameters).unwrap();
    assert!(apart(&graph.run(&[theirs["x"].clone()]).unwrap()[0], &theirs["y"]) < 1e-5);
    let predictor = Predictor::new(&graph).unwrap();
    assert!(apart(&predictor.run(&[theirs["x"].clone()]).unwrap()[0], &theirs["y"]) < 1e-5);
    let steps = predictor.describe(&[theirs["x"].clone()]).unwrap();
    assert!(steps.contains("conv2d int8") && steps.contains("linear int8"), "{steps}");
}
