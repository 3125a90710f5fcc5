//! `sampan align`.

use super::say;
use clap::Args;
use sampan_align::{Corrections, Options, Recording, compare};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct Align {
    /// The reference: a recording (a folder), or a .npy file of reprod_log
    #[arg(value_name = "REFERENCE")]
    reference: PathBuf,
    /// The candidate: a recording or a file of the same kind
    #[arg(value_name = "CANDIDATE")]
    candidate: PathBuf,
    /// Checks to do: forward, data, metric, loss, optimizer, backward, training, initialisation (all by default)
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    check: Vec<String>,
    /// A file of corrections, one `layer of the reference = layer of the candidate` a line
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Write the report as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write forward_diff.log and its like, in reprod_log's words
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Difference that is still equal: relative for recordings; the mean for files of reprod_log (1e-6 by default there)
    #[arg(long, value_name = "NUMBER")]
    tolerance: Option<f64>,
    /// Show the pairs of layers, and compare nothing
    #[arg(long)]
    pairs: bool,
}

fn fault(what: &str, path: &std::path::Path, e: std::io::Error) -> Error {
    Error::new(Kind::External, format!("{} cannot be {what}: {e}", path.display())).in_op("align")
}

impl Align {
    pub fn run(self) -> Result<ExitCode> {
        let map = match &self.map {
            Some(path) => std::fs::read_to_string(path).map_err(|e| fault("read", path, e))?,
            None => String::new(),
        };
        let corrections = Corrections::parse(&map)?;
        let (a, b) = (Recording::load(&self.reference)?, Recording::load(&self.candidate)?);
        if self.pairs {
            let pairing = sampan_align::pair(&a.structure, &b.structure, &corrections)?;
            say(pairing.table(&a.structure, &b.structure).trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let options = Options { corrections, checks: Options::checks(&self.check)?, tolerance: self.tolerance };
        let report = compare(&a, &b, &options)?;
        if let Some(path) = &self.html {
            std::fs::write(path, report.html()).map_err(|e| fault("written", path, e))?;
        }
        if let Some(folder) = &self.logs {
            report.write_logs(folder)?;
        }
        say(report.text().trim_end())?;
        Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
