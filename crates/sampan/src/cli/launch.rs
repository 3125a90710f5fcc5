//! `sampan launch`.

use clap::Args;
use sampan_core::Result;
use sampan_dist::launch::{self, Launch as Plan};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Launch {
    /// Options, the program and its arguments; --help lists the options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

impl Launch {
    pub fn run(self) -> Result<ExitCode> {
        let plan = match Plan::parse(&self.arguments, "python3") {
            Err(e) if self.arguments.iter().any(|a| a == "--help" || a == "-h") => {
                super::say(e.message())?;
                return Ok(ExitCode::SUCCESS);
            }
            plan => plan?,
        };
        let pressed = Arc::new(AtomicBool::new(false));
        let heard = pressed.clone();
        let handler = ctrlc::set_handler(move || heard.store(true, Ordering::Relaxed));
        if let Err(e) = handler {
            eprintln!("launch: Ctrl-C will end this process at once, and the others with it ({e})");
        }
        let code = launch::launch(&plan, &|| pressed.load(Ordering::Relaxed))?;
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}
