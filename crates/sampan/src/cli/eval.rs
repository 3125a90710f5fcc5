//! `sampan eval`.

use super::{say, weights};
use crate::main_job::test_images;
use clap::Args;
use sampan_core::Result;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct Eval {
    /// A run folder, a checkpoint or a file of weights
    #[arg(long, default_value = "runs/lenet", value_name = "PATH")]
    model: PathBuf,
    /// Use only the first N test images
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

impl Eval {
    pub fn run(self) -> Result<ExitCode> {
        let mut model = weights::load(&self.model)?;
        let test = test_images(self.limit.map(|n| n as usize))?;
        let logs = model.evaluate(test.clone(), 256, 1)?;
        let scores = model.predict(test.clone(), 256, 0)?.swap_remove(0);
        let answers = scores.try_argmax(-1)?.to_vec::<i64>();
        // [right, all] for each digit.
        let mut digits = [[0usize; 2]; 10];
        for (i, answer) in answers.into_iter().enumerate() {
            let label = test.get(i)?[1].try_item()?.to_i64();
            let Some(digit) = digits.get_mut(label as usize) else { continue };
            digit[1] += 1;
            digit[0] += (answer == label) as usize;
        }
        say(format!("test loss {:.4}", logs.get("loss").unwrap_or(f64::NAN)))?;
        say(format!("test accuracy {:.2} %", logs.get("acc").unwrap_or(f64::NAN) * 100.0))?;
        say("by digit:")?;
        for (digit, [right, all]) in digits.iter().enumerate().filter(|(_, d)| d[1] > 0) {
            say(format!("  {digit}  {:6.2} %  ({right} of {all})", *right as f64 * 100.0 / *all as f64))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
