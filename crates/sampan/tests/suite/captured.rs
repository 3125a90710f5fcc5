//! Steps of training that are recorded and done again: the same bits as without.

use crate::Folder;
use sampan::core::{Captured, amp};
use sampan::nn::lr::Schedule;
use sampan::nn::{ParamGroup, lr};
use sampan::prelude::*;

/// What a run of training left: losses, parameters and buffers, states of the optimizer, the place of the random numbers.
type Left = (Vec<Vec<u8>>, Vec<(String, Vec<u8>)>, Vec<Vec<u8>>, (u64, u64), u64);

struct Run {
    net: Box<dyn Layer>,
    opt: Optimizer,
    schedule: Option<Schedule>,
    step: Option<Captured>,
    losses: Vec<Vec<u8>>,
    half: bool,
}

impl Run {
    fn new(
        captured: bool,
        net: fn() -> Box<dyn Layer>,
        opt: fn(Vec<Parameter>) -> (Optimizer, Option<Schedule>),
    ) -> Run {
        random::seed(7);
        let net = net();
        let (opt, schedule) = opt(net.parameters());
        Run { net, opt, schedule, step: captured.then(Captured::default), losses: Vec::new(), half: false }
    }

    /// One step; `y` holds classes, or numbers to come close to.
    fn learn(&mut self, x: &Tensor, y: &Tensor) {
        let Run { net, opt, schedule, step, half, .. } = self;
        let mut body = |given: &[Tensor]| {
            let out = match half {
                true => amp::auto_cast(DType::BFloat16, || net.call(&given[0]))?,
                false => net.call(&given[0])?,
            };
            let loss = match given[1].dtype() {
                DType::Int64 => out.try_cross_entropy(&given[1])?,
                _ => (&out * &out).mean(()),
            };
            loss.try_backward(None, false)?;
            opt.step()?;
            opt.clear_grad();
            schedule.iter().for_each(Schedule::step);
            Ok(vec![loss])
        };
        let given = [x.clone(), y.clone()];
        let loss = match step {
            Some(step) => step.call("", &given, body).unwrap(),
            None => body(&given).unwrap(),
        };
        self.losses.push(loss[0].to_bytes());
    }

    fn left(self) -> Left {
        if let Some(step) = &self.step {
            assert_eq!(step.why_not(), None);
            assert!(!step.nodes().is_empty());
        }
        let bytes = |t: &Tensor| t.to_bytes();
        let net = self.net.state_dict().into_iter().map(|(name, t)| (name, bytes(&t))).collect();
        let states = self.opt.accumulators().unwrap().iter().map(|(_, _, t)| bytes(t)).collect();
        (self.losses, net, states, random::state(), self.opt.steps())
    }
}

/// Compares runs with and without a record, driven in the same way.
fn same(
    net: fn() -> Box<dyn Layer>,
    opt: fn(Vec<Parameter>) -> (Optimizer, Option<Schedule>),
    drive: impl Fn(&mut Run),
) -> Left {
    let _turn = Folder::new("captured");
    let run = |captured| {
        let mut run = Run::new(captured, net, opt);
        drive(&mut run);
        run.left()
    };
    let (eager, captured) = (run(false), run(true));
    for (i, (a, b)) in eager.0.iter().zip(&captured.0).enumerate() {
        assert_eq!(a, b, "the loss of step {i}");
    }
    for ((name, a), (_, b)) in eager.1.iter().zip(&captured.1) {
        assert!(a == b, "{name} differs");
    }
    assert!(eager == captured, "states of the optimizer, random numbers or steps differ");
    eager
}

fn pictures(run: &mut Run, n: usize, steps: usize) {
    for i in 0..steps {
        let x = Tensor::arange(0, (n * 784) as i64, 1).cast(DType::Float32).reshape([n, 1, 28, 28]);
        let x = (x * (0.37 + i as f64)).sin();
        let y = Tensor::arange(0, n as i64, 1) % 10;
        run.learn(&x, &y);
    }
}

fn rows(run: &mut Run, shape: &[usize], steps: usize) {
    for i in 0..steps {
        let n: usize = shape.iter().product();
        let x = (Tensor::arange(0, n as i64, 1).cast(DType::Float32).reshape(shape) * (0.11 + i as f64)).sin();
        run.learn(&x, &Tensor::zeros([1], DType::Float32));
    }
}

fn mlp() -> Box<dyn Layer> {
    Box::new(sequential![Linear::new(12, 8), Sigmoid::new(), Linear::new(8, 8), ReLU::new(), Linear::new(8, 3)])
}

fn lenet() -> Box<dyn Layer> {
    Box::new(sequential![
        Conv2D::new(1, 6, 5),
        BatchNorm2D::new(6),
        ReLU::new(),
        MaxPool2D::with(2, |o| o.stride(2)),
        Conv2D::new(6, 16, 5),
        ReLU::new(),
        MaxPool2D::with(2, |o| o.stride(2)),
        Flatten::new(),
        Linear::new(256, 32),
        Dropout::new(0.3),
        Linear::new(32, 10)
    ])
}

fn encoder() -> Box<dyn Layer> {
    Box::new(TransformerEncoder::new(TransformerEncoderLayer::new(16, 2, 32), 2))
}

fn lstm() -> Box<dyn Layer> {
    Box::new(LSTM::new(6, 5))
}

fn gru() -> Box<dyn Layer> {
    Box::new(GRU::with(6, 5, |o| o.num_layers(2).dropout(0.2)))
}

fn adam(p: Vec<Parameter>) -> (Optimizer, Option<Schedule>) {
    (Adam::new(0.01, p), None)
}

#[test]
fn mlp_by_every_optimizer() {
    let all: [fn(Vec<Parameter>) -> (Optimizer, Option<Schedule>); 9] = [
        |p| (SGD::new(0.1, p), None),
        |p| (SGD::with(0.1, p, |o| o.weight_decay(L2Decay(0.01))), None),
        |p| (Momentum::with(0.1, p, |o| o.use_nesterov(true)), None),
        adam,
        |p| (AdamW::new(0.01, p), None),
        |p| (RMSProp::new(0.01, p), None),
        |p| (Lamb::new(0.01, p), None),
        |p| (Adam::with(0.01, p, |o| o.grad_clip(ClipGradByGlobalNorm::new(0.05))), None),
        |p| (Adam::with(0.01, p, |o| o.grad_clip(ClipGradByNorm::new(0.01))), None),
    ];
    for opt in all {
        same(mlp, opt, |run| rows(run, &[5, 12], 9));
    }
}

#[test]
fn pictures_with_dropout_and_statistics() {
    let left = same(lenet, adam, |run| pictures(run, 4, 7));
    assert_eq!(left.4, 7);
}

#[test]
fn sequences() {
    same(encoder, |p| (AdamW::new(0.01, p), None), |run| rows(run, &[2, 7, 16], 6));
    same(lstm, adam, |run| rows(run, &[3, 4, 6], 6));
    same(gru, adam, |run| rows(run, &[3, 4, 6], 6));
}

#[test]
fn schedules_and_learning_rates() {
    let decayed: fn(Vec<Parameter>) -> (Optimizer, Option<Schedule>) = |p| {
        let schedule = lr::StepDecay::new(0.1, 3);
        (Momentum::new(&schedule, p), Some(schedule))
    };
    same(mlp, decayed, |run| rows(run, &[5, 12], 10));
    same(mlp, adam, |run| {
        rows(run, &[5, 12], 4);
        run.opt.set_lr(0.5).unwrap();
        rows(run, &[5, 12], 3);
    });
}

#[test]
fn half_precision() {
    same(lenet, adam, |run| {
        run.half = true;
        pictures(run, 4, 6);
    });
}

#[test]
fn other_shapes_are_recorded_apart() {
    same(lenet, adam, |run| {
        for n in [4, 3, 4, 3, 4, 3, 4, 3, 5, 4] {
            pictures(run, n, 1);
        }
        if let Some(step) = &run.step {
            assert_eq!(step.nodes().len(), 2);
        }
    });
}

#[test]
fn modes_frozen_parameters_and_states_that_are_loaded() {
    same(lenet, adam, |run| {
        pictures(run, 4, 4);
        run.net.eval();
        pictures(run, 4, 2);
        run.net.train();
        pictures(run, 4, 2);
        run.net.parameters()[0].set_trainable(false);
        pictures(run, 4, 2);
        run.net.parameters()[0].set_trainable(true);
        let (state, opt) = (run.net.state_dict(), run.opt.state_dict().unwrap());
        let kept: Vec<(String, Tensor)> = state.into_iter().map(|(n, t)| (n, t.try_clone_data().unwrap())).collect();
        pictures(run, 4, 2);
        run.net.set_state_dict(&kept.into_iter().collect()).unwrap();
        // What is loaded is not what the record knows, though somebody still holds that.
        run.opt.set_state_dict(&opt).unwrap();
        pictures(run, 4, 3);
        let p = run.net.parameters()[1].clone();
        let before = p.replace(p.tensor().try_clone_data().unwrap().requires_grad_());
        pictures(run, 4, 3);
        // What is put back is what the first records know.
        p.replace(before);
        pictures(run, 4, 3);
    });
}

#[test]
fn more_parameters_later() {
    fn first(p: Vec<Parameter>) -> (Optimizer, Option<Schedule>) {
        (Adam::new(0.01, p[..2].to_vec()), None)
    }
    same(mlp, first, |run| {
        rows(run, &[5, 12], 4);
        let rest = run.net.parameters()[2..].to_vec();
        rest.iter().for_each(Parameter::clear_grad);
        run.opt.add_param_group(ParamGroup::new(rest)).unwrap();
        rows(run, &[5, 12], 4);
    });
}

#[test]
fn gradients_that_add_up() {
    let _turn = Folder::new("captured-sums");
    let run = |captured: bool| {
        random::seed(7);
        let net = mlp();
        let mut opt = Adam::new(0.01, net.parameters());
        let mut step = Captured::default();
        let mut seen = Vec::new();
        for i in 0..12 {
            let x = Tensor::full([5, 12], 0.1 * i as f64, DType::Float32);
            let last = i % 3 == 2;
            let mut body = |given: &[Tensor]| {
                let loss = net.call(&given[0])?.square().mean(());
                loss.try_backward(None, false)?;
                if last {
                    opt.step()?;
                    opt.clear_grad();
                }
                Ok(vec![loss])
            };
            let loss = match captured {
                true => step.call(if last { "last" } else { "" }, &[x], body).unwrap(),
                false => body(&[x]).unwrap(),
            };
            seen.push(loss[0].to_bytes());
            seen.extend(net.parameters().iter().filter_map(|p| p.grad()).map(|g| g.to_bytes()));
        }
        assert_eq!(step.why_not(), None);
        // Into nothing, into a sum, and with a step.
        assert!(!captured || step.nodes().len() == 3, "{:?}", step.nodes());
        (seen, net.state_dict().into_values().map(|t| t.to_bytes()).collect::<Vec<_>>())
    };
    assert!(run(false) == run(true));
}

#[test]
fn what_cannot_be_recorded_is_called_and_named() {
    let w = Tensor::new([2.0f32]).requires_grad_();
    let x = Tensor::new([3.0f32]);
    let why = |f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>| {
        let mut step = Captured::default();
        for _ in 0..5 {
            step.call("", std::slice::from_ref(&x), f).unwrap();
        }
        assert!(step.nodes().is_empty());
        step.why_not().expect("a reason").to_string()
    };
    assert!(why(&|x| Ok(vec![&x[0] * x[0].to_f64()])).contains("read"));
    assert!(why(&|x| Ok(vec![&x[0] * &w])).contains("differentiated"));
    assert!(why(&|_| Ok(vec![Tensor::new([1.0f32]) * 2.0])).contains("host"));
    assert!(why(&|x| Ok(vec![x[0].nonzero(false).into()])).contains("depends on values"));
    let kept = std::cell::RefCell::new(Vec::new());
    let mut step = Captured::default();
    for _ in 0..5 {
        let keep = |x: &[Tensor]| {
            kept.borrow_mut().push(&x[0] * 2.0);
            Ok(Vec::new())
        };
        step.call("", std::slice::from_ref(&x), keep).unwrap();
    }
    assert!(step.nodes().is_empty() && kept.borrow().len() == 5);
}

#[test]
fn an_error_comes_through_and_leaves_the_record_usable() {
    let mut step = Captured::default();
    let mut loss = |labels: [i64; 2]| {
        let given = [Tensor::new([[1.0f32, 2.0], [2.0, 1.0]]), Tensor::new(labels)];
        let found = step.call("", &given, |g| Ok(vec![no_grad(|| g[0].try_cross_entropy(&g[1]))?]));
        found.map(|t| t[0].to_f64())
    };
    let good = (0..4).map(|_| loss([0, 1]).unwrap()).last().unwrap();
    assert!(loss([0, 7]).unwrap_err().to_string().contains('7'));
    assert_eq!(loss([0, 1]).unwrap(), good);
}

#[test]
fn arguments_are_told_from_what_was_there_before() {
    let y = Tensor::new([10.0f32]);
    let mut step = Captured::default();
    let mut add = |a: &Tensor, b: &Tensor| {
        let sum = step.call("", &[a.clone(), b.clone()], |g| Ok(vec![&g[0] + &g[1] + &y])).unwrap();
        sum[0].to_f64()
    };
    // All three are one tensor while it is recorded.
    assert_eq!((0..4).map(|_| add(&y, &y)).last(), Some(30.0));
    assert_eq!(add(&Tensor::new([1.0f32]), &Tensor::new([2.0f32])), 13.0);
    y.set_value(&Tensor::new([20.0f32]));
    assert_eq!(add(&Tensor::new([1.0f32]), &Tensor::new([2.0f32])), 23.0);
}

#[test]
fn what_was_given_stays_as_it_is() {
    let w = Tensor::new([2.0f32, 3.0]).requires_grad_();
    let mut step = Captured::default();
    let mut kept = Vec::new();
    for i in 0..12 {
        let x = Tensor::full([2], i as f64, DType::Float32);
        let given = step.call("", &[x], |x| {
            let y = &x[0] * &w;
            y.sum(()).backward();
            let gradient = w.grad().expect("one was computed");
            w.clear_grad();
            Ok(vec![y.sum(()), y.reshape([2, 1]), gradient * 2.0])
        });
        let mut given = given.unwrap();
        // Some hold all of it, some a part, some write into it, and some nothing: memory is used again where nobody looks.
        match i % 4 {
            0 => kept.push((i, given)),
            1 => kept.push((i, vec![given.remove(0)])),
            2 => drop(given[0].add_(100.0)),
            _ => {}
        }
    }
    assert_eq!((step.why_not(), step.nodes().len()), (None, 1));
    for (i, given) in kept {
        let i = i as f32;
        assert_eq!(given[0].to_f64() as f32, 5.0 * i);
        if let [_, y, gradient] = &given[..] {
            assert_eq!((y.to_vec::<f32>(), gradient.to_vec::<f32>()), (vec![2.0 * i, 3.0 * i], vec![2.0 * i; 2]));
        }
    }
}

#[test]
fn a_number_that_is_a_tensor_is_read_each_time() {
    let like = Tensor::new([0.0f32; 3]);
    let mut step = Captured::default();
    for i in 0..6 {
        let number = Tensor::new(i as f32);
        let given = step.call("", &[number], |x| Ok(vec![like.full_like(&x[0]) + like.clip(&x[0], 9.0)])).unwrap();
        assert_eq!(given[0].to_vec::<f32>(), [2.0 * i as f32; 3]);
    }
}

#[test]
fn a_model_with_the_flag_learns_the_same() {
    let _turn = Folder::new("captured-model");
    let run = |on: bool| {
        random::seed(3);
        let mut model = Model::new(lenet());
        model.prepare(Adam::new(0.01, model.parameters()), CrossEntropyLoss::new(), [Accuracy::new()]);
        model.set_capture(on);
        let x = Tensor::randn([12, 1, 28, 28]);
        let data = TensorDataset::new(vec![x, Tensor::arange(0, 12, 1) % 10]).unwrap();
        model.fit(data).epochs(3).batch_size(4).verbose(0).run().unwrap();
        assert_eq!(model.why_not_captured(), None);
        model.network().state_dict().into_values().map(|t| t.to_bytes()).collect::<Vec<_>>()
    };
    assert!(run(false) == run(true));
}
