//! The `sampan-deploy` command: a predictor and a server, for machines that train nothing.

use clap::{Parser, Subcommand};
use sampan_core::Result;
use sampan_deploy::{Infer, Info, More, Serve};
use std::process::ExitCode;

/// Runs saved networks (.pdmodel, .json, .onnx).
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
    /// Run a saved network on arrays.
    Infer(Infer),
    /// Answer requests over HTTP with the networks of a folder, by KServe's protocol.
    Serve(Serve),
    /// Say what a file holds, and draw networks.
    Info(Info),
}

impl Cli {
    fn run(self) -> Result<ExitCode> {
        if let Some(n) = self.threads {
            sampan_core::set_num_threads(n as usize);
        }
        match self.command {
            Command::Infer(c) => c.run(),
            Command::Serve(c) => c.run(),
            Command::Info(c) => c.run(&More::default()),
        }
    }
}

fn main() -> ExitCode {
    Cli::parse().run().unwrap_or_else(|e| {
        eprintln!("error: {e}");
        ExitCode::FAILURE
    })
}
