//! Training in one call.

use crate::Folder;
use sampan::data::sampler::RandomOptions;
use sampan::data::{BatchSampler, DataLoader, Dataset, FnDataset, RandomSampler, TensorDataset};
use sampan::hapi::callbacks::{Better, EarlyStopping, History, LRScheduler, ReduceLROnPlateau};
use sampan::hapi::{Callback, Logs, Loss, Model, Outcome, loss_fn};
use sampan::nn::lr::StepDecay;
use sampan::nn::metric::Accuracy;
use sampan::nn::{Adam, CrossEntropyLoss, Dropout, Layer, Linear, MSELoss, Members, ReLU, SGD, Sequential};
use sampan::{Result, Tensor, random};
use std::sync::{Arc, Mutex};

/// Points in two rings, told apart by their distance.
fn rings(n: usize) -> TensorDataset {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let (angle, outer) = (i as f32 * 2.4, i % 2);
        let r = if outer == 1 { 2.0 } else { 1.0 };
        points.extend([r * angle.cos(), r * angle.sin()]);
        labels.push(outer as i64);
    }
    TensorDataset::new(vec![Tensor::from_vec(points, [n, 2]), Tensor::from_vec(labels, [n, 1])]).unwrap()
}

fn net() -> Sequential {
    Sequential::new().push(Linear::new(2, 16)).push(ReLU::new()).push(Dropout::new(0.1)).push(Linear::new(16, 2))
}

fn model(lr: f64) -> Model {
    random::seed(5);
    let mut model = Model::new(sampan::nn::unique_name::guard(net));
    model.prepare(Adam::new(lr, model.parameters()), CrossEntropyLoss::new(), [Accuracy::new()]);
    model
}

fn weights(model: &Model) -> Vec<Vec<f32>> {
    model.parameters().iter().map(|p| p.tensor().to_vec::<f32>()).collect()
}

#[test]
fn fit_evaluate_predict() {
    let _turn = Folder::new("fit");
    let mut model = model(0.02);
    let history = Arc::new(Mutex::new(History::default()));
    let fit = model.fit(rings(200)).eval_data(rings(50)).batch_size(16).epochs(15).verbose(0).callback(history.clone());
    assert_eq!(fit.run().unwrap(), Outcome::Finished);
    let logs = model.evaluate(rings(100), 32, 0).unwrap();
    assert!(logs.get("acc").unwrap() > 0.95 && logs.samples == 100, "{logs:?}");
    // A ragged last batch counts by its samples: the loss is that of all at once.
    let whole = model.evaluate(rings(100), 100, 0).unwrap();
    assert!((whole.get("loss").unwrap() - logs.get("loss").unwrap()).abs() < 1e-6);
    let outputs = model.predict(rings(10), 4, 0).unwrap();
    assert_eq!(outputs[0].shape(), [10, 2]);
    let history = history.lock().unwrap();
    assert_eq!((history.train.len(), history.eval.len()), (15 * 13, 15));
    assert!(history.train_curve("loss")[0].1 > history.train_curve("loss").last().unwrap().1);
}

/// The same as `fit`, by hand.
#[test]
fn fit_is_the_loop_one_would_write() {
    let _turn = Folder::new("loop");
    let mut fitted = model(0.02);
    fitted.fit(rings(64)).batch_size(16).epochs(2).verbose(0).run().unwrap();
    random::seed(5);
    let net = sampan::nn::unique_name::guard(net);
    let mut adam = Adam::new(0.02, net.parameters());
    let loader = DataLoader::new(rings(64), 16, true).unwrap();
    for _ in 0..2 {
        for batch in loader.iter() {
            let batch = batch.unwrap();
            let loss = net.call(&batch[0]).unwrap().cross_entropy(&batch[1]);
            loss.backward();
            adam.step().unwrap();
            adam.clear_grad();
        }
    }
    let by_hand: Vec<Vec<f32>> = net.parameters().iter().map(|p| p.tensor().to_vec::<f32>()).collect();
    assert_eq!(weights(&fitted), by_hand);
}

#[test]
fn accumulated_batches_are_one_large_batch() {
    let _turn = Folder::new("accumulate");
    let run = |batch: usize, accumulate: usize| {
        random::seed(1);
        let mut model = Model::new(Linear::new(2, 1));
        // A sum, so that parts add up to the whole.
        let loss =
            loss_fn(|outputs, labels| (&outputs[0] - labels[0].cast(sampan::DType::Float32)).square().try_sum(()));
        model.prepare(SGD::new(0.001, model.parameters()), loss, Vec::<Accuracy>::new());
        let fit = model.fit(rings(24)).batch_size(batch).shuffle(false).accumulate_grad_batches(accumulate);
        fit.verbose(0).run().unwrap();
        weights(&model).concat()
    };
    let (whole, parts) = (run(12, 1), run(4, 3));
    whole.iter().zip(&parts).for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{whole:?} {parts:?}"));
}

/// Interrupts after a number of steps.
struct Interrupt(Arc<std::sync::atomic::AtomicBool>, usize);
impl Callback for Interrupt {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, _: &Logs) -> Result<()> {
        if model.global_step() == self.1 {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }
}

const EVAL: usize = 1000;

/// Interrupts in the evaluation after a number of steps, which is that plus `EVAL`.
struct InterruptAfterEval(Arc<std::sync::atomic::AtomicBool>, usize);
impl Callback for InterruptAfterEval {
    fn on_eval_end(&mut self, model: &mut Model, _: &Logs) -> Result<()> {
        if model.global_step() + EVAL == self.1 {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn a_run_resumes_to_the_bit_with_schedule_dropout_plateau_and_accumulation() {
    let folder = Folder::new("resume");
    let file = folder.path().join("checkpoint.safetensors");
    let build = || {
        random::seed(9);
        let mut model = Model::new(sampan::nn::unique_name::guard(net));
        let schedule = StepDecay::with(0.05, 4, |o| o.gamma(0.7));
        model.prepare(Adam::new(&schedule, model.parameters()), CrossEntropyLoss::new(), [Accuracy::new()]);
        model
    };
    // Each sample is moved a little, by chance.
    let shaken = || rings(60).map(|s| Ok(vec![&s[0] + sampan::ops::random::rand([2]) * 0.1, s[1].clone()]));
    let run = |model: &mut Model, resume: bool, stop_at: usize| {
        let history = Arc::new(Mutex::new(History::default()));
        let flag = Arc::new(std::sync::atomic::AtomicBool::new(false));
        model.set_interrupt(flag.clone());
        // A sampler with a generator of its own.
        let order = RandomOptions { generator: Some(4), ..RandomOptions::default() };
        let order = BatchSampler::new(RandomSampler::with(60, order).unwrap(), 8, false).unwrap();
        let loader = DataLoader::builder(shaken()).batch_sampler(order).build().unwrap();
        let fit = model.fit(loader).eval_data(rings(20)).batch_size(8).epochs(3).verbose(0);
        let fit = fit.callback(EarlyStopping::new("loss").patience(5).verbose(false)).callback(history.clone());
        let fit = fit.callback(Interrupt(flag.clone(), stop_at)).callback(InterruptAfterEval(flag, stop_at));
        let fit = fit.accumulate_grad_batches(3).checkpoint(&file);
        // A callback more must not disturb the others' states.
        let fit = if resume { fit.callback(LRScheduler::by_step()).resume(&file) } else { fit };
        let outcome = fit.run().unwrap();
        (outcome, history.lock().unwrap().train.clone())
    };
    let mut whole = build();
    let (outcome, figures) = run(&mut whole, false, usize::MAX);
    assert_eq!(outcome, Outcome::Finished);
    // The last one between two epochs.
    for stop_at in [1, 7, 8, 11, 16, 23, EVAL + 16] {
        let mut first = build();
        assert_eq!(run(&mut first, false, stop_at).0, Outcome::Interrupted);
        // A new process would have drawn other numbers by now.
        let mut second = build();
        random::seed(12345);
        let (outcome, rest) = run(&mut second, true, usize::MAX);
        assert_eq!(outcome, Outcome::Finished);
        assert_eq!(weights(&whole), weights(&second), "stopped at {stop_at}");
        // Metrics too are those of the whole epoch.
        assert_eq!(figures[stop_at % EVAL..], rest, "stopped at {stop_at}");
    }
}

#[test]
fn a_limit_of_steps_and_an_early_stop_hold_for_the_whole_run() {
    let folder = Folder::new("limits");
    let file = folder.path().join("checkpoint.safetensors");
    let run = |model: &mut Model, resume: bool, steps: usize, patience: usize| {
        let fit = model.fit(rings(32)).eval_data(rings(8)).batch_size(8).epochs(6).num_iters(steps).verbose(0);
        let fit = fit.checkpoint_every(100).checkpoint(&file);
        let fit = fit.callback(EarlyStopping::new("loss").patience(patience).verbose(false));
        if resume { fit.resume(&file) } else { fit }.run().unwrap();
        model.global_step()
    };
    let mut whole = model(0.01);
    run(&mut whole, false, 11, 100);
    // Stopped inside an epoch, it goes on there.
    assert_eq!(run(&mut model(0.01), false, 6, 100), 6);
    let mut parts = model(0.01);
    assert_eq!(run(&mut parts, true, 11, 100), 11);
    assert_eq!(weights(&whole), weights(&parts));
    assert_eq!(run(&mut model(0.01), true, 11, 100), 11, "there is nothing left to do");
    // With a learning rate of zero nothing gets better.
    assert_eq!(run(&mut model(0.0), false, 100, 2), 12);
    assert_eq!(run(&mut model(0.0), true, 100, 2), 12, "its patience was at an end");
    assert_eq!(run(&mut model(0.0), true, 100, 3), 16);
}

#[test]
fn losses_of_different_shapes_each_count_once() {
    struct Two;
    impl Loss for Two {
        fn losses(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
            let apart = (&outputs[0] - &labels[0]).square();
            Ok(vec![apart.clone(), apart.try_mean(())?])
        }
    }
    let _turn = Folder::new("losses");
    let mut model = Model::new(Linear::new(2, 1));
    model.prepare(SGD::new(0.1, model.parameters()), Two, Vec::<Accuracy>::new());
    let (x, y) = ([Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])], [Tensor::new([[1.0f32], [2.0]])]);
    let apart = (model.network().call(&x[0]).unwrap() - &y[0]).square();
    (apart.sum(()) + apart.mean(())).backward();
    let expected = model.parameters()[0].grad().unwrap().to_vec::<f32>();
    model.parameters().iter().for_each(|p| p.clear_grad());
    model.train_batch(&x, &y, false).unwrap();
    assert_eq!(model.parameters()[0].grad().unwrap().to_vec::<f32>(), expected);
}

#[test]
fn callbacks_act() {
    let _turn = Folder::new("callbacks");
    // Nothing can improve with a learning rate of zero.
    let mut stuck = model(0.0);
    let history = Arc::new(Mutex::new(History::default()));
    let stop = EarlyStopping::new("loss").patience(2).mode(Better::Smaller).verbose(false);
    let fit = stuck.fit(rings(32)).eval_data(rings(16)).batch_size(16).epochs(10).verbose(0);
    fit.callback(stop).callback(history.clone()).run().unwrap();
    assert_eq!(history.lock().unwrap().eval.len(), 3, "one best, then two without improvement");

    let mut plateau = model(1e-12);
    let lower = ReduceLROnPlateau::new("loss").factor(0.5).unwrap().patience(1).min_lr(2e-13).verbose(false);
    let fit = plateau.fit(rings(32)).eval_data(rings(16)).batch_size(16).epochs(6).verbose(0);
    fit.callback(lower).run().unwrap();
    assert_eq!(plateau.optimizer().unwrap().get_lr(), 2e-13);
    assert!(ReduceLROnPlateau::new("loss").factor(1.5).is_err());

    let mut few = model(0.01);
    few.fit(rings(64)).batch_size(4).epochs(5).num_iters(7).verbose(0).run().unwrap();
    assert_eq!(few.global_step(), 7);
}

#[test]
fn saved_models_load_again_and_say_what_does_not_fit() {
    let folder = Folder::new("save");
    let mut first = model(0.02);
    first.fit(rings(32)).batch_size(8).epochs(1).save_dir(folder.path()).verbose(0).run().unwrap();
    assert!(folder.path().join("0.pdparams").exists() && folder.path().join("final.pdopt").exists());
    let mut second = model(0.02);
    second.load(folder.path().join("final"), false, false).unwrap();
    assert_eq!(weights(&first), weights(&second));
    // A dot belongs to the name, unless it is that of one of the files.
    first.save(folder.path().join("v1.5"), true).unwrap();
    second.load(folder.path().join("v1.5"), false, false).unwrap();
    second.load(folder.path().join("v1.5.pdparams"), false, false).unwrap();
    assert!(first.save(folder.path().join(""), true).unwrap_err().to_string().contains("a name for the files"));
    let (a, b) = (first.optimizer().unwrap().state_dict().unwrap(), second.optimizer().unwrap().state_dict().unwrap());
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    let mut other = Model::new(Linear::new(2, 2));
    let error = other.load(folder.path().join("final"), false, true).unwrap_err().to_string();
    assert!(error.contains("weight is missing") && error.contains("0.weight is unexpected"), "{error}");
    other.load(folder.path().join("final"), true, true).unwrap();
}

#[test]
fn mistakes_are_sentences() {
    let _turn = Folder::new("mistakes");
    let mut bare = Model::new(Linear::new(2, 2));
    let error = bare.fit(rings(4)).verbose(0).run().unwrap_err().to_string();
    assert!(error.contains("optimizer and a loss") && error.contains("prepare"), "{error}");
    let error = model(0.1).fit(rings(4)).batch_size(8).drop_last(true).verbose(0).run().unwrap_err().to_string();
    assert!(error.contains("no data to train on") && error.contains("drop_last"), "{error}");
    let error = model(0.1).fit(rings(4)).eval_data(rings(0)).verbose(0).run().unwrap_err().to_string();
    assert!(error.contains("no data to evaluate on"), "{error}");
    let mut wrong = Model::new(Linear::new(3, 2));
    wrong.prepare(SGD::new(0.1, wrong.parameters()), MSELoss::new(), Vec::<Accuracy>::new());
    let error = wrong.fit(rings(4)).verbose(0).run().unwrap_err().to_string();
    assert!(error.contains("Linear") && error.contains("[3, 2]"), "{error}");
    let failing =
        FnDataset::new(
            4,
            |i| if i == 2 { sampan::bail!("the disk is gone") } else { Ok(vec![Tensor::new([i as f32])]) },
        );
    let mut fits = Model::new(Linear::new(1, 1));
    let error = fits.predict(failing.named("numbers"), 2, 0).unwrap_err().to_string();
    assert!(error.contains("numbers") && error.contains('2') && error.contains("the disk is gone"), "{error}");
}

/// Counts the memory of the whole process, so it runs in one of its own.
#[test]
fn fit_keeps_no_tensors_alive() {
    const ALONE: &str = "SAMPAN_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let run = child.args(["--exact", "hapi::fit_keeps_no_tensors_alive"]).env(ALONE, "1").output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    let mut model = model(0.01);
    model.fit(rings(400)).batch_size(8).epochs(1).verbose(0).run().unwrap();
    let before = sampan_kernels::buffer::bytes_in_use();
    model.fit(rings(400)).batch_size(8).epochs(3).verbose(0).run().unwrap();
    assert!(sampan_kernels::buffer::bytes_in_use() <= before, "tensors of finished steps are alive");
}
