//! Plans: the results of the graph, for any shape and from any thread.

use sampan_core::{DType, Result, Tensor, random};
use sampan_data::vision::models;
use sampan_graph::{Graph, Predictor, Spec, trace};
use sampan_nn::{LSTM, Layer, TransformerEncoder, TransformerEncoderLayer};

fn close(name: &str, got: &[Tensor], wanted: &[Tensor]) {
    assert_eq!(got.len(), wanted.len(), "{name}");
    for (a, b) in got.iter().zip(wanted) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{name}");
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let scale = b.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4 * scale, "{name}: {worst} of {scale}");
    }
}

fn traced(net: &dyn Layer, spec: Spec) -> Graph {
    net.eval();
    trace(|x| net.call_all(x), &[spec]).unwrap()
}

/// A network whose statistics are no longer those it was made with.
fn lived(net: &dyn Layer, shape: &[usize]) -> Graph {
    random::own(5);
    net.train();
    for _ in 0..2 {
        net.call_all(&[Tensor::randn(shape)]).unwrap();
    }
    traced(net, Spec::new([None, Some(3), None, None], DType::Float32))
}

#[test]
fn networks_of_images() {
    random::own(0);
    let zoo: [(&str, Box<dyn Layer>); 7] = [
        ("resnet18", Box::new(models::resnet18())),
        ("resnet50", Box::new(models::resnet50())),
        ("mobilenet_v3_small", Box::new(models::mobilenet_v3_small())),
        ("mobilenet_v2", Box::new(models::mobilenet_v2())),
        ("densenet121", Box::new(models::densenet121())),
        ("squeezenet1_1", Box::new(models::squeezenet1_1())),
        ("shufflenet_v2_x0_5", Box::new(models::shufflenet_v2_x0_5())),
    ];
    for (name, net) in zoo {
        let graph = lived(&*net, &[2, 3, 64, 64]);
        let predictor = Predictor::new(&graph).unwrap();
        for shape in [[1, 3, 64, 64], [3, 3, 72, 80]] {
            let x = Tensor::randn(shape);
            for _ in 0..2 {
                close(name, &predictor.run(&[x.clone()]).unwrap(), &graph.run(&[x.clone()]).unwrap());
            }
            let text = predictor.describe(&[x]).unwrap();
            assert!(text.contains("conv2d") && !text.contains("replayed"), "{name}: {text}");
        }
    }
}

#[test]
fn sequences() {
    random::own(0);
    let encoder = TransformerEncoder::new(TransformerEncoderLayer::new(32, 4, 64), 2);
    let lstm = LSTM::with(24, 40, |o| o.num_layers(2));
    for (name, net, width) in [("encoder", &encoder as &dyn Layer, 32), ("lstm", &lstm, 24)] {
        let graph = traced(net, Spec::new([None, None, Some(width)], DType::Float32));
        let predictor = Predictor::new(&graph).unwrap();
        for (batch, steps) in [(1, 5), (3, 9)] {
            let x = Tensor::randn([batch, steps, width]);
            close(name, &predictor.run(&[x.clone()]).unwrap(), &graph.run(&[x.clone()]).unwrap());
            let text = predictor.describe(&[x]).unwrap();
            assert!(!text.contains("replayed"), "{name}: {text}");
        }
    }
}

/// Whether an LSTM goes the way of its own, and where its results are asked for.
#[test]
fn recurrent_layers() {
    random::own(0);
    for (direction, time_major, layers) in [("forward", false, 2), ("bidirect", true, 1), ("bidirect", false, 2)] {
        let lstm = LSTM::with(24, 21, |o| o.num_layers(layers).direction(direction).time_major(time_major));
        (&lstm as &dyn Layer).eval();
        for asked in 1..=3 {
            let outputs = |x: &[Tensor]| Ok(lstm.call_all(x)?.into_iter().take(asked).collect());
            let graph = trace(outputs, &[Spec::new([None, None, Some(24)], DType::Float32)]).unwrap();
            let predictor = Predictor::new(&graph).unwrap();
            for (batch, steps) in [(1, 5), (7, 1), (13, 4)] {
                let x = Tensor::randn([batch, steps, 24]);
                close(direction, &predictor.run(&[x.clone()]).unwrap(), &graph.run(&[x.clone()]).unwrap());
                let text = predictor.describe(&[x]).unwrap();
                assert_eq!(text.contains(&format!("LSTM, layer {}", layers - 1)), asked < 3, "{asked}: {text}");
            }
        }
    }
}

fn program(f: impl Fn(&Tensor) -> Result<Vec<Tensor>>, shape: &[Option<usize>]) -> Graph {
    trace(|x| f(&x[0]), &[Spec::new(shape.to_vec(), DType::Float32)]).unwrap()
}

#[test]
fn odd_programs() {
    random::own(1);
    let (w, k) = (Tensor::randn([16, 16]), Tensor::randn([20, 16, 3, 3]));
    let any = [None, Some(16), None, None];
    let graphs: Vec<(&str, Graph)> = vec![
        ("chain", program(|x| Ok(vec![(x * 2.0 + x).tanh() * x.sigmoid() - 1.0]), &any)),
        ("broadcast", program(|x| Ok(vec![x + x.mean([2, 3]).reshape([-1, 16, 1, 1])]), &any)),
        ("twice", program(|x| Ok(vec![x.conv2d(&k, None).relu(), x.conv2d(&k, None).relu() * 2.0]), &any)),
        (
            "sum of both",
            program(
                |x| {
                    let y = x.conv2d(&k, None);
                    Ok(vec![&y + &y.relu(), y])
                },
                &any,
            ),
        ),
        ("itself", program(|x| Ok(vec![x.clone(), x.flatten(1, -1)]), &any)),
        (
            "turned",
            program(
                |x| Ok(vec![x.transpose([0, 2, 3, 1]).matmul(&w).transpose([0, 3, 1, 2]).transpose([0, 2, 3, 1])]),
                &any,
            ),
        ),
        ("constant", program(|x| Ok(vec![w.clone(), x.sum(())]), &any)),
        ("integers", program(|x| Ok(vec![x.argmax(1), x.cast(DType::Int64)]), &any)),
        ("softmax", program(|x| Ok(vec![x.softmax(1), x.max_pool2d(2)]), &any)),
    ];
    for (name, graph) in graphs {
        let predictor = Predictor::new(&graph).unwrap();
        for (n, h, w) in [(2, 7, 9), (1, 4, 4)] {
            let x = Tensor::randn([n, 16, h, w]);
            close(name, &predictor.run(&[x.clone()]).unwrap(), &graph.run(&[x.clone()]).unwrap());
            // What is not contiguous is read all the same.
            let x = Tensor::randn([n, h, w, 16]).transpose([0, 3, 1, 2]);
            close(name, &predictor.run(&[x.clone()]).unwrap(), &graph.run(&[x]).unwrap());
        }
    }
}

#[test]
fn results_are_the_callers() {
    random::own(0);
    let graph = program(|x| Ok(vec![x.relu()]), &[None]);
    let predictor = Predictor::new(&graph).unwrap();
    let first = predictor.run(&[Tensor::new([1.0f32, -1.0])]).unwrap();
    let second = predictor.run(&[Tensor::new([5.0f32, 6.0])]).unwrap();
    assert_eq!((first[0].to_vec::<f32>(), second[0].to_vec::<f32>()), (vec![1.0, 0.0], vec![5.0, 6.0]));
    assert!(first[0].stop_gradient());
    let error = predictor.run(&[Tensor::new([1i64])]).unwrap_err();
    assert!(error.to_string().contains("int64"), "{error}");
    // What draws random numbers draws others each time.
    let random = Predictor::new(&program(|x| Ok(vec![x.dropout(0.5)]), &[None])).unwrap();
    let x = Tensor::ones([256], DType::Float32);
    let draw = || random.run(&[x.clone()]).unwrap()[0].to_vec::<f32>();
    assert_ne!(draw(), draw());
}

#[test]
fn many_threads_and_many_shapes() {
    random::own(0);
    let net = models::mobilenet_v3_small();
    let graph = lived(&net, &[2, 3, 32, 32]);
    let predictor = Predictor::new(&graph).unwrap();
    let x: Vec<Tensor> = (0..24).map(|i| Tensor::randn([1 + i % 3, 3, 32 + i, 40])).collect();
    let wanted: Vec<Vec<Tensor>> = x.iter().map(|x| graph.run(&[x.clone()]).unwrap()).collect();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (predictor, x, wanted) = (predictor.clone(), &x, &wanted);
            scope.spawn(move || {
                for round in 0..3 {
                    for i in 0..x.len() {
                        let i = (i * 5 + part + round) % x.len();
                        close("mobilenet", &predictor.run(&[x[i].clone()]).unwrap(), &wanted[i]);
                    }
                }
            });
        }
    });
}
