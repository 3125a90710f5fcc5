//! 18 · The high-level API: the whole loop in one call.
//!
//! `Model` holds a network with its optimizer, loss and metrics: `prepare`, `fit`, `evaluate`, `predict`. Callbacks do what
//! a loop of your own would do in between: stop early, keep the best weights, write logs, and what you think of yourself.
//! `summary` and `flops` tell what a network costs before it runs.

mod common;
use sampan::prelude::*;
use std::sync::{Arc, Mutex};

/// A callback of our own: the fastest and the slowest batch.
#[derive(Default)]
struct Pace {
    seconds: Vec<f64>,
}

impl Callback for Pace {
    fn on_train_batch_end(&mut self, _: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.seconds.push(logs.batch_cost);
        Ok(())
    }

    fn on_train_end(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        self.seconds.sort_by(f64::total_cmp);
        let [fastest, .., slowest] = self.seconds[..] else { return Ok(()) };
        println!("a batch took from {:.1} to {:.1} ms", 1000.0 * fastest, 1000.0 * slowest);
        Ok(())
    }
}

fn main() -> Result<()> {
    random::seed(0);
    let net = Arc::new(LeNet::new());
    println!("{}", summary(&net, &[InputSpec::new([1, 1, 28, 28])])?);
    println!("{} multiply-adds for one picture", flops(&net, &[InputSpec::new([1, 1, 28, 28])])?.total);

    let (train, test) = (common::digits(Split::Train)?, Arc::new(common::digits(Split::Test)?));
    let folder = common::folder("18_high_level")?;
    let history = Arc::new(Mutex::new(callbacks::History::default()));
    let mut model = Model::new(net);
    model.prepare(Adam::new(0.001, model.parameters()), CrossEntropyLoss::new(), [Accuracy::with(|o| o.topk([1, 2]))]);
    model
        .fit(train)
        .eval_data(test.clone())
        .batch_size(64)
        .epochs(common::full_or_quick(5, 1))
        .log_freq(200)
        .callback(callbacks::EarlyStopping::new("acc_top1").patience(1).save_best_model(&folder))
        .callback(callbacks::EventLogger::new(&folder))
        .callback(history.clone())
        .callback(Pace::default())
        .run()?;

    let curve = history.lock().expect("nobody failed while holding it").train_curve("loss");
    println!("the loss fell from {:.3} to {:.3}", curve[0].1, curve[curve.len() - 1].1);

    model.load(folder.join("best_model"), false, false)?;
    let logs = model.evaluate(test.clone(), 256, 0)?;
    println!("test accuracy {:.2} %", 100.0 * logs.get("acc_top1").unwrap_or(0.0));

    let scores = model.predict(test, 256, 0)?;
    println!("the first test images read: {:?}", &scores[0].argmax(-1).to_vec::<i64>()[..10]);
    Ok(())
}
