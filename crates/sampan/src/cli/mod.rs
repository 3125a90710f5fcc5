//! What the command understands.

mod align;
mod convert;
mod eval;
mod info;
mod predict;
mod summary;
mod train;
mod weights;

use clap::{Parser, Subcommand};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::process::ExitCode;

/// Dynamic-graph deep learning with a Rust core.
#[derive(Parser)]
#[command(version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Threads to compute with (all cores by default); results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

#[derive(Subcommand)]
enum Command {
    /// Train LeNet on the bundled MNIST digits, with no network and nothing to download.
    Train(train::Train),
    /// Judge a trained LeNet on the MNIST test images.
    Eval(eval::Eval),
    /// Read digits from image files.
    Predict(predict::Predict),
    /// Say what a file of tensors holds: checkpoints, .pdparams, .pdopt, .safetensors, .npy, .npz, .pth.
    Info(info::Info),
    /// Compare two recordings of `sampan.align`, or two files of reprod_log: where do they part, and why?
    Align(align::Align),
    /// Make the weights of one framework or format those of another: .pth, .pdparams, .safetensors, .npz, .onnx, .pdiparams.
    Convert(convert::Convert),
    /// Show the layers of a network with shapes and parameters.
    Summary(summary::Summary),
}

/// Writes a line of the answer to standard output.
fn say(line: impl std::fmt::Display) -> Result<()> {
    sampan::progress::say(line)
        .map_err(|e| Error::new(Kind::External, format!("cannot write to standard output: {e}")).in_op("sampan"))
}

/// Does what the command line says.
pub fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    if let Some(n) = cli.threads {
        sampan_core::set_num_threads(n as usize);
    }
    match cli.command {
        Command::Train(c) => c.run(),
        Command::Eval(c) => c.run(),
        Command::Predict(c) => c.run(),
        Command::Info(c) => c.run(),
        Command::Align(c) => c.run(),
        Command::Convert(c) => c.run(),
        Command::Summary(c) => c.run(),
    }
}
