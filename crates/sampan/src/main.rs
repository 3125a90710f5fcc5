//! The `sampan` command.

use clap::{Args, Parser, Subcommand};
use sampan::train::{Outcome, Settings, train};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Dynamic-graph deep learning with a Rust core.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train LeNet on the bundled MNIST digits, with no network and nothing to download.
    Train(TrainArgs),
}

#[derive(Args)]
struct TrainArgs {
    /// Passes over the 60,000 training images.
    #[arg(long, default_value_t = 5)]
    epochs: usize,
    /// Images in a batch.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: u32,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.001)]
    lr: f64,
    /// Seed of everything random: the same seed gives the same bits, with any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Use only the first N images of the training and of the test set.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Where the checkpoint and the log go.
    #[arg(long, default_value = "runs/lenet", value_name = "FOLDER")]
    out: PathBuf,
    /// Go on from the checkpoint in that folder.
    #[arg(long)]
    resume: bool,
    /// Threads to compute with (all cores by default).
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let Command::Train(args) = Cli::parse().command;
    if let Some(n) = args.threads {
        sampan::core::set_num_threads(n);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // The second Ctrl-C ends the program at once, for those who do not want to wait for the checkpoint.
    let handler = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(e) = handler {
        eprintln!("Ctrl-C will not save a checkpoint: {e}");
    }
    let settings = Settings {
        epochs: args.epochs,
        batch_size: args.batch_size as usize,
        lr: args.lr,
        seed: args.seed,
        limit: args.limit,
        out: args.out.clone(),
        resume: args.resume,
    };
    match train(&settings, &stop) {
        Ok(Outcome::Finished(accuracy)) => {
            println!("test accuracy {:.2} %", accuracy * 100.0);
            println!("checkpoint and log are in {}", args.out.display());
            ExitCode::SUCCESS
        }
        Ok(Outcome::Stopped(at)) => {
            println!("\nstopped after epoch {} and {} steps; saved in {}", at.epoch, at.step, args.out.display());
            println!("go on with: sampan train --resume --out {}", args.out.display());
            ExitCode::from(130)
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
