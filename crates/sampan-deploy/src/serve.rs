//! `serve`.

use clap::Args;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Answers requests over HTTP with the networks of a folder.
#[derive(Args)]
#[cfg_attr(not(feature = "serve"), allow(dead_code))]
pub struct Serve {
    /// The folder of models: name/version/files, name/files, or files of one name (.pdmodel or .json, .pdiparams; .onnx)
    #[arg(value_name = "FOLDER")]
    models: PathBuf,
    /// The address to listen at; 0.0.0.0 for all of this machine's
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen at; 0 chooses one
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Rows of requests that share a run, at most
    #[arg(long, value_name = "ROWS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    max_batch: u32,
    /// Microseconds that a request waits for others to share a run with, where nothing else keeps it waiting
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    max_delay: u64,
    /// Requests that wait for one model, at most; others are refused
    #[arg(long, value_name = "REQUESTS", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    queue: u32,
    /// Megabytes of one request, at most
    #[arg(long, value_name = "MEGABYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_body: u32,
    /// Seconds between looks at the folder
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    reload: f64,
    /// A folder of files to serve under /, such as a page that calls the models
    #[arg(long, value_name = "FOLDER")]
    pages: Option<PathBuf>,
}

fn failed(message: String) -> Error {
    Error::new(Kind::External, message).in_op("serve")
}

impl Serve {
    /// Says that there is no server.
    #[cfg(not(feature = "serve"))]
    pub fn run(self) -> Result<ExitCode> {
        let how =
            "cargo install --path crates/sampan --features serve, or cargo run --release -p sampan --features serve";
        Err(failed("this command was built without the server".into()).hint(how))
    }

    /// Does it, until the process is asked to end.
    #[cfg(feature = "serve")]
    pub fn run(self) -> Result<ExitCode> {
        use sampan_serve::{Options, Server};
        use std::time::Duration;

        let say = |line: &str| {
            // Whoever closed the stream wants no lines.
            let _ = crate::say(line);
        };
        let reload = Duration::try_from_secs_f64(self.reload)
            .map_err(|_| failed(format!("--reload is a number of seconds, got {}", self.reload)))?;
        let options = Options {
            address: (self.host, self.port).into(),
            max_batch: self.max_batch as usize,
            max_delay: Duration::from_micros(self.max_delay),
            queue: self.queue as usize,
            max_body: (self.max_body as usize) << 20,
            reload,
            pages: self.pages,
            ..Options::new(self.models)
        };
        let server = Server::new(options, say).map_err(|e| failed(e.to_string()))?;
        let address = server.address().map_err(|e| failed(e.to_string()))?;
        crate::say(format!("listening at http://{address}"))?;
        server.run(std::future::pending(), say).map_err(|e| failed(e.to_string()))?;
        Ok(ExitCode::SUCCESS)
    }
}
