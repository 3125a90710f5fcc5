//! `sampan train`.

use super::say;
use crate::main_job::{Ended, RunFolder, Settings, train};
use clap::Args;
use sampan_core::{Device, Error, Result, device};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const AFTER_HELP: &str = "\
The folder then holds
  checkpoint.safetensors   from which --resume goes on to the bit
  model.pdparams, .pdopt   the trained model; Paddle reads them as well
  loss.png                 the loss curve
  train.log, steps.jsonl   figures and costs of the steps
  events.out.tfevents.*    the same for TensorBoard: tensorboard --logdir FOLDER

Examples
  sampan train                          5 epochs, about 20 seconds on two cores
  sampan train --epochs 1 --limit 5000  a quick try
  sampan train --device gpu             on the first GPU
  sampan train --resume                 go on after Ctrl-C, a crash or a kill";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Train {
    /// Passes over the 60,000 training images [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Images in a batch [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: Option<u32>,
    /// First learning rate of Adam; it falls to zero along half a cosine [default: 0.002]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Seed of everything random: the same seed gives the same bits, with any number of threads [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use only the first N images of the training and of the test set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Save a checkpoint after every N steps, besides the one after each epoch [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint_every: Option<u32>,
    /// Where everything goes
    #[arg(long, default_value = "runs/lenet", value_name = "FOLDER")]
    out: PathBuf,
    /// Go on with the run in that folder, with the settings it was started with
    #[arg(long)]
    resume: bool,
    /// Where to compute: cpu, or gpu (gpu:0, gpu:1, …), where a step is one launch
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: String,
    /// Print nothing but the result
    #[arg(long, short)]
    quiet: bool,
}

/// Which settings differ, as options: `--epochs 6, the run has 5`.
fn differences(wanted: &Settings, base: &Settings) -> String {
    let fields = |s: &Settings| serde_json::to_value(s).expect("numbers become JSON");
    let (wanted, base) = (fields(wanted), fields(base));
    let names = base.as_object().into_iter().flatten().filter(|(name, value)| wanted[name.as_str()] != **value);
    let lines = names.map(|(name, value)| {
        let given = &wanted[name.as_str()];
        let had = if value.is_null() { "none".to_string() } else { value.to_string() };
        format!("--{} {given}, the run has {had}", name.replace('_', "-"))
    });
    lines.collect::<Vec<_>>().join("; ")
}

impl Train {
    fn settings(&self) -> Result<Settings> {
        let base = if self.resume { RunFolder(self.out.clone()).read_settings()? } else { Settings::default() };
        let wanted = Settings {
            epochs: self.epochs.map_or(base.epochs, |n| n as usize),
            batch_size: self.batch_size.map_or(base.batch_size, |n| n as usize),
            lr: self.lr.unwrap_or(base.lr),
            seed: self.seed.unwrap_or(base.seed),
            limit: self.limit.map_or(base.limit, |n| Some(n as usize)),
            checkpoint_every: self.checkpoint_every.map_or(base.checkpoint_every, |n| n as usize),
        };
        if self.resume && wanted != base {
            let message = "the run was started with other settings, so it would not end in the same bits";
            return Err(Error::invalid(message)
                .received(differences(&wanted, &base))
                .hint("leave these options out, or start a new run in another folder")
                .in_op("train"));
        }
        Ok(wanted)
    }

    pub fn run(self) -> Result<ExitCode> {
        let settings = self.settings()?;
        device::set_default(Device::named(&self.device).map_err(|e| e.in_op("train"))?);
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        // The second Ctrl-C ends the program at once, for those who do not want to wait for the checkpoint.
        let handler = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        if let Err(e) = handler {
            eprintln!("warning: Ctrl-C will not save a checkpoint: {e}");
        }
        let out = self.out.display();
        match train(&settings, &self.out, self.resume, if self.quiet { 0 } else { 1 }, stop)? {
            Ended::Finished { accuracy } => {
                say(format!("test accuracy {:.2} %", accuracy * 100.0))?;
                say(format!("model, checkpoint, log and loss.png are in {out}"))?;
                Ok(ExitCode::SUCCESS)
            }
            Ended::Stopped { epoch, step } => {
                say(format!("\nstopped after {epoch} epochs and {step} steps; saved in {out}"))?;
                say(format!("go on with: sampan train --resume --out {out}"))?;
                Ok(ExitCode::from(130))
            }
        }
    }
}
