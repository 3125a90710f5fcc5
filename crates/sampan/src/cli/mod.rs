//! What the `sampan` command understands; `python -m sampan` hands its words on to it.

mod align;
mod convert;
mod eval;
mod launch;
mod predict;
mod quantize;
mod summary;
mod train;
mod weights;

use clap::{Parser, Subcommand};
use sampan_core::Result;
use sampan_deploy::say;
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
    /// Run a saved network (.pdmodel, .json, .onnx) on arrays, without Python.
    Infer(sampan_deploy::Infer),
    /// Answer requests over HTTP with the networks of a folder, by KServe's protocol.
    Serve(sampan_deploy::Serve),
    /// Say what a file holds: networks (.pdmodel, .json), checkpoints, .pdparams, .pdopt, .safetensors, .npy, .npz, .pth.
    Info(sampan_deploy::Info),
    /// Compare two recordings of `sampan.align`, or two files of reprod_log: where do they part, and why?
    Align(align::Align),
    /// Make the weights of one framework or format those of another: .pth, .pdparams, .safetensors, .npz, .onnx, .pdiparams.
    Convert(convert::Convert),
    /// Make a network smaller and faster: weights, or all that its layers compute with, in eight bits or half precision.
    Quantize(quantize::Quantize),
    /// Run a program in several processes, on one machine or many.
    Launch(launch::Launch),
    /// Show the layers of a network with shapes and parameters.
    Summary(summary::Summary),
}

/// Does what a command line says, its first word the command's own name; an error is a sentence on standard error.
pub fn run(line: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers, and whoever closed the stream wants none.
            let _ = e.print();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    cli.run().unwrap_or_else(|e| {
        eprintln!("error: {e}");
        ExitCode::FAILURE
    })
}

impl Cli {
    fn run(self) -> Result<ExitCode> {
        if let Some(n) = self.threads {
            sampan_core::set_num_threads(n as usize);
        }
        match self.command {
            Command::Train(c) => c.run(),
            Command::Eval(c) => c.run(),
            Command::Predict(c) => c.run(),
            Command::Infer(c) => c.run(),
            Command::Serve(c) => c.run(),
            Command::Info(c) => c.run(&weights::MORE),
            Command::Align(c) => c.run(),
            Command::Convert(c) => c.run(),
            Command::Quantize(c) => c.run(),
            Command::Launch(c) => c.run(),
            Command::Summary(c) => c.run(),
        }
    }
}
