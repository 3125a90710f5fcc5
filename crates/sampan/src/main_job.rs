//! The main job: LeNet on the bundled MNIST, with a run folder that holds everything.

use crate::hapi::callbacks::{EventLogger, LRScheduler, TrainLog};
use crate::hapi::{Model, Outcome, read_checkpoint};
use crate::plot::{self, Curve};
use crate::progress::mention;
use crate::run_log::RunLog;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, random};
use sampan_data::{Dataset, Mnist, Split, Subset};
use sampan_nn::lr::CosineAnnealingDecay;
use sampan_nn::metric::Accuracy;
use sampan_nn::{Adam, CrossEntropyLoss, Members};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Settings of a run; kept in its folder, so that a resumed run has the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Passes over the training images.
    pub epochs: usize,
    /// Images in a batch.
    pub batch_size: usize,
    /// Adam's first learning rate; it falls to zero along half a cosine.
    pub lr: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Use only the first images of each set.
    pub limit: Option<usize>,
    /// Steps between checkpoints inside an epoch.
    pub checkpoint_every: usize,
}

impl Settings {
    fn check(&self) -> Result<()> {
        let positive = |what: &str, n: usize| match n {
            0 => Err(Error::invalid(format!("{what} must be positive, got 0")).in_op("train")),
            _ => Ok(()),
        };
        positive("the batch size", self.batch_size)?;
        positive("the limit", self.limit.unwrap_or(1))?;
        positive("the number of steps between checkpoints", self.checkpoint_every)?;
        if !(self.lr.is_finite() && self.lr > 0.0) {
            let message = format!("the learning rate (--lr) must be a positive number, got {}", self.lr);
            return Err(Error::invalid(message).in_op("train"));
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { epochs: 5, batch_size: 64, lr: 0.002, seed: 0, limit: None, checkpoint_every: 100 }
    }
}

/// The files of a run.
#[derive(Clone, Debug)]
pub struct RunFolder(pub PathBuf);

impl RunFolder {
    /// From which `--resume` goes on.
    pub fn checkpoint(&self) -> PathBuf {
        self.0.join("checkpoint.safetensors")
    }
    /// The settings of the run.
    pub fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }
    /// The trained model, `.pdparams` and `.pdopt`.
    pub fn model(&self) -> PathBuf {
        self.0.join("model")
    }
    /// Loss, metrics and costs of each step.
    pub fn steps(&self) -> PathBuf {
        self.0.join("steps.jsonl")
    }
    /// The loss curve.
    pub fn picture(&self) -> PathBuf {
        self.0.join("loss.png")
    }
    /// A line every 50 steps, for people.
    pub fn log(&self) -> PathBuf {
        self.0.join("train.log")
    }

    /// Keeps other processes out until the file is dropped: two runs would write into each other's files.
    fn lock(&self) -> Result<File> {
        let path = self.0.join(".lock");
        let failed = |e: std::io::Error| {
            Error::new(Kind::External, format!("the folder {} cannot be used: {e}", self.0.display())).in_op("train")
        };
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is training in {}", self.0.display());
                let hint = "wait for it, or name another folder with --out";
                Err(Error::new(Kind::PreconditionNotMet, message).hint(hint).in_op("train"))
            }
            // Some file systems know no locks.
            _ => Ok(file),
        }
    }

    /// The settings of the run in this folder.
    pub fn read_settings(&self) -> Result<Settings> {
        let path = self.settings();
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let hint = "start a run without --resume, or name its folder with --out";
            Error::new(Kind::NotFound, format!("there is no run to go on with: {}: {e}", path.display())).hint(hint)
        })?;
        serde_json::from_str(&text)
            .map_err(|e| Error::invalid(format!("{} does not hold the settings of a run: {e}", path.display())))
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// All epochs done, with the share of test images read correctly.
    Finished {
        /// Share of test images read correctly.
        accuracy: f64,
    },
    /// Stopped from outside; the checkpoint holds the rest.
    Stopped {
        /// Epochs finished.
        epoch: usize,
        /// Batches of the next one finished.
        step: usize,
    },
}

fn mnist(split: Split, limit: Option<usize>) -> Result<Arc<dyn Dataset>> {
    let data = Mnist::new(split)?.normalized(&[127.5], &[127.5])?;
    Ok(match limit {
        Some(n) if n < data.len() => Arc::new(Subset::new(data, (0..n).collect())?),
        _ => Arc::new(data),
    })
}

/// The test images.
pub fn test_images(limit: Option<usize>) -> Result<Arc<dyn Dataset>> {
    mnist(Split::Test, limit)
}

/// A model of the main job's kind, ready to train, evaluate and predict.
pub fn model(settings: &Settings) -> Result<Model> {
    random::seed(settings.seed);
    // Parameters get the same names however many networks the process has made before.
    let net = sampan_nn::unique_name::guard(crate::lenet::LeNet5::new);
    let images = settings.limit.unwrap_or(usize::MAX).min(60_000);
    let steps = settings.epochs.saturating_mul(images.div_ceil(settings.batch_size)).clamp(1, i64::MAX as usize);
    let schedule = CosineAnnealingDecay::try_new(settings.lr, steps as i64)?;
    let adam = Adam::try_new(&schedule, net.parameters())?;
    let mut model = Model::new(net);
    model.prepare(adam, CrossEntropyLoss::new(), [Accuracy::new()]);
    // Without a GPU this changes nothing.
    model.set_cuda_graph(true);
    Ok(model)
}

/// Trains until the end or until `stop` is set. Everything is kept in `folder`.
pub fn train(settings: &Settings, folder: &Path, resume: bool, verbose: usize, stop: Arc<AtomicBool>) -> Result<Ended> {
    settings.check()?;
    let files = RunFolder(folder.to_path_buf());
    std::fs::create_dir_all(folder).map_err(|e| {
        Error::new(Kind::External, format!("the folder {} cannot be made: {e}", folder.display())).in_op("train")
    })?;
    let _lock = files.lock()?;
    sampan_io::atomic::remove_leftovers(folder);
    let training = mnist(Split::Train, settings.limit)?;
    let test = test_images(settings.limit)?;
    let mut model = model(settings)?;
    model.set_interrupt(stop);
    let mut done = 0;
    // A run that was killed before its first checkpoint has lost nothing but time: it starts again.
    let goes_on = resume && files.checkpoint().exists();
    if goes_on {
        let at = read_checkpoint(&files.checkpoint())?.position;
        done = at.global_step;
        if at.epoch >= settings.epochs && verbose > 0 {
            mention("the run is finished already; there is nothing left to train");
        }
    } else {
        if files.settings().exists() && verbose > 0 {
            mention(format!("the earlier run in {} is replaced", folder.display()));
        }
        // Nothing of an older run must be taken for this one's.
        let model = |suffix: &str| files.model().with_extension(suffix);
        for file in [files.checkpoint(), files.log(), files.picture(), model("pdparams"), model("pdopt")] {
            let _ = std::fs::remove_file(file);
        }
        let text = serde_json::to_string_pretty(settings).expect("numbers become JSON");
        sampan_io::atomic::write(files.settings(), text.as_bytes())?;
    }
    let history = Arc::new(Mutex::new(RunLog::open(files.steps(), done)?));
    let mut fit = model
        .fit(training)
        .eval_data(test.clone())
        .batch_size(settings.batch_size)
        .epochs(settings.epochs)
        .log_freq(100)
        .verbose(verbose)
        .callback(LRScheduler::by_step())
        .callback(history.clone())
        .callback(TrainLog::new(files.log(), 50))
        .callback(EventLogger::resuming(folder, done))
        .checkpoint(files.checkpoint())
        .checkpoint_every(settings.checkpoint_every);
    if goes_on {
        fit = fit.resume(files.checkpoint());
    }
    if fit.run()? == Outcome::Interrupted {
        let at = model.position();
        return Ok(Ended::Stopped { epoch: at.epoch, step: at.step });
    }
    model.save(files.model(), true)?;
    let history = history.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // A short run keeps its shape.
    let window = (history.train("loss").len() / 20).clamp(1, 50);
    let mut curves = Curve::new("training loss", history.train("loss").to_vec()).smoothed(window).to_vec();
    curves.push(Curve::new("test loss", history.eval("loss").to_vec()));
    plot::curves(&files.picture(), "LeNet on MNIST", "step", "loss", &curves)?;
    let accuracy = match history.eval("acc").last() {
        Some((_, accuracy)) => *accuracy,
        // A finished run that was resumed has nothing to do but to judge.
        None => model.evaluate(test, 256, 0)?.get("acc").unwrap_or(0.0),
    };
    Ok(Ended::Finished { accuracy })
}
