//! Whole passes over data: training, evaluation, prediction.

use super::callbacks::{LRScheduler, ModelCheckpoint, ProgBarLogger};
use super::{Callback, Logs, Model, checkpoint};
use sampan_core::{Error, Result, Tensor};
use sampan_data::{BatchSource, DataLoader};
use std::path::PathBuf;
use std::time::Instant;

/// How a training run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs were done, or a callback ended it.
    Finished,
    /// It was interrupted from outside; a checkpoint holds the rest.
    Interrupted,
}

/// Settings of a training run; [`run`](Fit::run) starts it.
pub struct Fit<'a> {
    model: &'a mut Model,
    train: BatchSource,
    eval: Option<BatchSource>,
    batch_size: usize,
    epochs: usize,
    eval_freq: usize,
    log_freq: usize,
    save_dir: Option<PathBuf>,
    save_freq: usize,
    verbose: usize,
    drop_last: bool,
    shuffle: bool,
    num_workers: usize,
    callbacks: Vec<Box<dyn Callback>>,
    accumulate: usize,
    num_iters: Option<usize>,
    checkpoint: Option<PathBuf>,
    checkpoint_every: Option<usize>,
    resume: Option<PathBuf>,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = |$s:ident, $v:ident| $set:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $v: $ty) -> Self {
            let $s = &mut self;
            $set;
            self
        }
    )*};
}

impl Fit<'_> {
    settings! {
        /// Evaluated on after epochs.
        eval_data: impl Into<BatchSource> = |s, v| s.eval = Some(v.into());
        /// Samples in a batch, where data sets are given; 1 unless said otherwise.
        batch_size: usize = |s, v| s.batch_size = v;
        /// Passes over the training data, counted from the start of the whole run.
        epochs: usize = |s, v| s.epochs = v;
        /// Evaluate after every so many epochs.
        eval_freq: usize = |s, v| s.eval_freq = v.max(1);
        /// Show progress every so many steps.
        log_freq: usize = |s, v| s.log_freq = v.max(1);
        /// Save `<epoch>.pdparams` and `.pdopt` in this folder, and `final` at the end.
        save_dir: impl Into<PathBuf> = |s, v| s.save_dir = Some(v.into());
        /// Save after every so many epochs.
        save_freq: usize = |s, v| s.save_freq = v.max(1);
        /// 0 says nothing, 1 shows a bar, 2 prints lines.
        verbose: usize = |s, v| s.verbose = v;
        /// Leave out a last batch that is not full.
        drop_last: bool = |s, v| s.drop_last = v;
        /// Take the training data in random order; true unless said otherwise.
        shuffle: bool = |s, v| s.shuffle = v;
        /// Threads that load data.
        num_workers: usize = |s, v| s.num_workers = v;
        /// Adds a callback; they are called in the order they were added. A learning rate's schedule goes on after every
        /// batch unless one of them moves it.
        callback: impl Callback + 'static = |s, v| s.callbacks.push(Box::new(v));
        /// Let the gradients of so many batches add up before each change of the parameters.
        accumulate_grad_batches: usize = |s, v| s.accumulate = v.max(1);
        /// Stop after so many steps, counted from the start of the whole run.
        num_iters: usize = |s, v| s.num_iters = Some(v);
        /// Keep one file, written after every epoch and when interrupted, from which [`resume`](Fit::resume) goes on.
        checkpoint: impl Into<PathBuf> = |s, v| s.checkpoint = Some(v.into());
        /// Write that file after every so many steps as well.
        checkpoint_every: usize = |s, v| s.checkpoint_every = Some(v.max(1));
        /// Go on from a checkpoint: the same model, optimizer, data and settings end in the same bits.
        resume: impl Into<PathBuf> = |s, v| s.resume = Some(v.into());
    }

    /// Trains.
    pub fn run(self) -> Result<Outcome> {
        let Fit { model, train, eval, mut callbacks, .. } = self;
        if train.is_empty() {
            return Err(no_batches("train on").in_op("fit"));
        }
        let train = train.into_loader(self.batch_size, self.shuffle, self.drop_last, self.num_workers)?;
        let eval = eval.map(|e| e.into_loader(self.batch_size, false, false, self.num_workers)).transpose()?;
        if train.is_empty() || eval.as_ref().is_some_and(DataLoader::is_empty) {
            return Err(no_batches(if train.is_empty() { "train on" } else { "evaluate on" }).in_op("fit"));
        }
        if let Some(folder) = self.save_dir {
            callbacks.push(Box::new(ModelCheckpoint::new(self.save_freq, folder).verbose(self.verbose > 0)));
        }
        if !callbacks.iter().any(|c| c.moves_schedule()) {
            callbacks.push(Box::new(LRScheduler::by_step()));
        }
        callbacks.insert(0, Box::new(ProgBarLogger::new(self.log_freq, self.verbose)));
        let mut run = Run {
            epochs: self.epochs,
            accumulate: self.accumulate,
            num_iters: self.num_iters.unwrap_or(usize::MAX),
            checkpoint: self.checkpoint,
            checkpoint_every: self.checkpoint_every.unwrap_or(usize::MAX),
            callbacks,
        };
        model.stop_training = false;
        model.position = Default::default();
        run.each(model, |c, m| c.on_train_begin(m, &Logs::default()))?;
        if let Some(path) = &self.resume {
            checkpoint::load(path, model, &mut run.callbacks)?;
            if model.position.loader.is_none() {
                train.set_sampler_state(&model.position.sampler)?;
            }
        }
        let mut last = Logs::default();
        while run.goes_on(model) {
            let epoch = model.position.epoch;
            let interrupted;
            (last, interrupted) = run.epoch(model, &train)?;
            if interrupted {
                run.save(model)?;
                return Ok(Outcome::Interrupted);
            }
            if let Some(eval) = &eval
                && (epoch + 1).is_multiple_of(self.eval_freq)
            {
                eval.set_epoch(epoch as u64);
                let logs = evaluate(model, eval, &mut run.callbacks)?;
                last.values.extend(logs.values.into_iter().map(|(n, v)| (format!("eval_{n}"), v)));
            }
            run.save(model)?;
            // The flag may have been set during the evaluation.
            if model.interrupted() && run.goes_on(model) {
                return Ok(Outcome::Interrupted);
            }
        }
        run.each(model, |c, m| c.on_train_end(m, &last))?;
        Ok(Outcome::Finished)
    }
}

/// A training run.
struct Run {
    epochs: usize,
    accumulate: usize,
    num_iters: usize,
    checkpoint: Option<PathBuf>,
    checkpoint_every: usize,
    callbacks: Vec<Box<dyn Callback>>,
}

impl Run {
    fn each(
        &mut self,
        model: &mut Model,
        mut f: impl FnMut(&mut dyn Callback, &mut Model) -> Result<()>,
    ) -> Result<()> {
        self.callbacks.iter_mut().try_for_each(|c| f(c.as_mut(), model))
    }

    fn goes_on(&self, model: &Model) -> bool {
        let at = &model.position;
        at.epoch < self.epochs && at.global_step < self.num_iters && !model.stop_training
    }

    fn save(&self, model: &Model) -> Result<()> {
        self.checkpoint.as_ref().map_or(Ok(()), |path| model.save_checkpoint(path, &self.callbacks))
    }

    /// One pass over the training data, or what is left of it, and whether it was interrupted. The position moves on to
    /// the next epoch at its end, and keeps the place inside this one if it was ended early.
    fn epoch(&mut self, model: &mut Model, loader: &DataLoader) -> Result<(Logs, bool)> {
        let epoch = model.position.epoch;
        model.metrics.iter_mut().for_each(|m| m.reset());
        let mut batches = match model.position.loader.take() {
            Some(state) => {
                let metrics = std::mem::take(&mut model.position.metrics);
                model.metrics.iter_mut().zip(&metrics).for_each(|(m, state)| m.set_state(state));
                loader.resume(&state)?
            }
            None => {
                // Counted from the start of the run, so that a resumed one draws the same random transforms.
                loader.set_epoch(epoch as u64);
                loader.iter()
            }
        };
        let steps = loader.len();
        let mut logs = Logs { steps, epochs: self.epochs, step: model.position.step, ..Logs::default() };
        self.each(model, |c, m| c.on_epoch_begin(m, epoch, &logs))?;
        loop {
            let started = Instant::now();
            let Some(batch) = batches.next().transpose()? else { break };
            logs.reader_cost = started.elapsed().as_secs_f64();
            let step = logs.step;
            self.each(model, |c, m| c.on_train_batch_begin(m, step, &logs))?;
            let (inputs, labels) = model.split(&batch)?;
            logs.lr = model.optimizer().map_or(0.0, |o| o.get_lr());
            let update = (step + 1).is_multiple_of(self.accumulate) || steps == Some(step + 1);
            let report = model.train_batch(inputs, labels, update)?;
            logs.step += 1;
            count(&mut logs, &batch, report.losses, report.metrics, started);
            drop(batch);
            model.position.step += 1;
            model.position.global_step += 1;
            self.each(model, |c, m| c.on_train_batch_end(m, step, &logs))?;
            let (interrupted, ends) = (model.interrupted(), !self.goes_on(model));
            // The epoch's last step is covered by the checkpoint after the epoch.
            let inside = steps != Some(logs.step);
            if interrupted || (inside && (ends || logs.step.is_multiple_of(self.checkpoint_every))) {
                model.position.loader = Some(batches.state());
                model.position.metrics = model.metrics.iter().map(|m| m.state()).collect();
                if interrupted {
                    return Ok((logs, true));
                }
                if !ends {
                    self.save(model)?;
                    model.position.loader = None;
                }
            }
            if ends {
                break;
            }
        }
        if logs.step == 0 {
            return Err(no_batches("train on").in_op("fit"));
        }
        self.each(model, |c, m| c.on_epoch_end(m, epoch, &logs))?;
        if model.position.loader.is_none() {
            model.position.epoch += 1;
            model.position.step = 0;
            model.position.sampler = loader.sampler_state();
        }
        Ok((logs, false))
    }
}

fn no_batches(what_for: &str) -> Error {
    let message = format!("there is no data to {what_for}: the loader gives no batches");
    Error::invalid(message).hint("look at the length of the data set, and at drop_last with a large batch_size")
}

fn count(logs: &mut Logs, batch: &[Tensor], losses: Vec<f64>, metrics: Vec<(String, f64)>, started: Instant) {
    logs.batch_size = batch.first().and_then(|t| t.shape().first().copied()).unwrap_or(1);
    logs.samples += logs.batch_size;
    let name = |i: usize| if losses.len() == 1 { "loss".into() } else { format!("loss{i}") };
    logs.values = losses.iter().enumerate().map(|(i, l)| (name(i), *l)).chain(metrics).collect();
    logs.batch_cost = started.elapsed().as_secs_f64();
}

/// One pass over data to judge by. The loss is the mean over all samples.
fn evaluate(model: &mut Model, loader: &DataLoader, callbacks: &mut [Box<dyn Callback>]) -> Result<Logs> {
    let mut logs = Logs { steps: loader.len(), ..Logs::default() };
    callbacks.iter_mut().try_for_each(|c| c.on_eval_begin(model, &logs))?;
    model.metrics.iter_mut().for_each(|m| m.reset());
    let mut sums: Vec<f64> = Vec::new();
    let mut batches = loader.iter();
    loop {
        let started = Instant::now();
        let Some(batch) = batches.next().transpose()? else { break };
        logs.reader_cost = started.elapsed().as_secs_f64();
        let (inputs, labels) = model.split(&batch)?;
        let report = model.eval_batch(inputs, labels)?;
        sums.resize(report.losses.len(), 0.0);
        let (step, before) = (logs.step, logs.samples as f64);
        logs.step += 1;
        let losses = report.losses.clone();
        count(&mut logs, &batch, report.losses, report.metrics, started);
        let n = logs.samples as f64;
        for ((sum, loss), slot) in sums.iter_mut().zip(losses).zip(&mut logs.values) {
            *sum = (*sum * before + loss * (n - before)) / n;
            slot.1 = *sum;
        }
        callbacks.iter_mut().try_for_each(|c| c.on_eval_batch_end(model, step, &logs))?;
    }
    if logs.step == 0 {
        return Err(no_batches("evaluate on").in_op("evaluate"));
    }
    callbacks.iter_mut().try_for_each(|c| c.on_eval_end(model, &logs))?;
    Ok(logs)
}

impl Model {
    /// Settings of a training run on data; [`run`](Fit::run) starts it.
    pub fn fit(&mut self, train_data: impl Into<BatchSource>) -> Fit<'_> {
        Fit {
            model: self,
            train: train_data.into(),
            eval: None,
            batch_size: 1,
            epochs: 1,
            eval_freq: 1,
            log_freq: 10,
            save_dir: None,
            save_freq: 1,
            verbose: 2,
            drop_last: false,
            shuffle: true,
            num_workers: 0,
            callbacks: Vec::new(),
            accumulate: 1,
            num_iters: None,
            checkpoint: None,
            checkpoint_every: None,
            resume: None,
        }
    }

    /// Loss (the mean over all samples) and metrics on data.
    pub fn evaluate(&mut self, data: impl Into<BatchSource>, batch_size: usize, verbose: usize) -> Result<Logs> {
        let loader = data.into().into_loader(batch_size, false, false, 0)?;
        evaluate(self, &loader, &mut [Box::new(ProgBarLogger::new(10, verbose))])
    }

    /// The network's outputs for all samples, joined along the first axis.
    pub fn predict(&mut self, data: impl Into<BatchSource>, batch_size: usize, verbose: usize) -> Result<Vec<Tensor>> {
        let loader = data.into().into_loader(batch_size, false, false, 0)?;
        let mut callbacks: [Box<dyn Callback>; 1] = [Box::new(ProgBarLogger::new(10, verbose))];
        let mut logs = Logs { steps: loader.len(), ..Logs::default() };
        callbacks.iter_mut().try_for_each(|c| c.on_predict_begin(self, &logs))?;
        let mut parts: Vec<Vec<Tensor>> = Vec::new();
        for batch in loader.iter() {
            let (started, batch) = (Instant::now(), batch?);
            let outputs = self.predict_batch(self.split(&batch)?.0)?;
            parts.resize_with(outputs.len(), Vec::new);
            outputs.into_iter().zip(&mut parts).for_each(|(o, p)| p.push(o));
            let step = logs.step;
            logs.step += 1;
            count(&mut logs, &batch, Vec::new(), Vec::new(), started);
            callbacks.iter_mut().try_for_each(|c| c.on_predict_batch_end(self, step, &logs))?;
        }
        callbacks.iter_mut().try_for_each(|c| c.on_predict_end(self, &logs))?;
        if parts.is_empty() {
            return Err(no_batches("predict from").in_op("predict"));
        }
        parts.iter().map(|p| sampan_core::ops::joining::try_concat(p, 0)).collect()
    }
}
