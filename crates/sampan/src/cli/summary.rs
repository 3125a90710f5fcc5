//! `sampan summary`.

use crate::hapi::{InputSpec, flops, summary};
use clap::Args;
use sampan_core::{Error, Result};
use sampan_data::vision::models;
use std::process::ExitCode;

#[derive(Args)]
pub struct Summary {
    /// A network of the model zoo: lenet, resnet18, mobilenet_v3_small … (`list` names them all)
    #[arg(value_name = "MODEL")]
    model: String,
    /// Shape of the input, such as 1,3,224,224 [default: what the network is made for]
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    input: Option<Vec<usize>>,
    /// Show multiply-adds as well
    #[arg(long)]
    flops: bool,
}

impl Summary {
    pub fn run(self) -> Result<ExitCode> {
        if self.model == "list" {
            models::names().iter().try_for_each(super::say)?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(known) = models::find(&self.model) else {
            let message = format!("there is no network called {:?}", self.model);
            return Err(Error::invalid(message).hint("`sampan summary list` names them all").in_op("summary"));
        };
        let net = known.build()?;
        let input = [InputSpec::new(self.input.unwrap_or_else(|| known.input.to_vec()))];
        super::say(summary(&net, &input)?)?;
        if self.flops {
            super::say(flops(&net, &input)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
