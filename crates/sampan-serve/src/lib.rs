//! Saved networks behind HTTP: a folder of models, served by KServe's protocol (version 2, REST).
//!
//! A request is read into tensors, waits in the queue of its model for others to share a run with, and is answered with its
//! part of the results. What does not fit into the queue is refused at once. The folder is looked at again and again: new
//! versions are loaded beside the old ones, and requests that have begun keep the version they began with.

mod batch;
mod http;
mod metrics;
mod protocol;
mod repository;

pub use http::Server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of models: `name/version/files`, `name/files`, or files of one name.
    pub models: PathBuf,
    /// Where to listen.
    pub address: SocketAddr,
    /// Rows that share a run, at most; 1 switches batching off.
    pub max_batch: usize,
    /// How long a request waits for others to share a run with, where nothing else keeps it waiting.
    pub max_delay: Duration,
    /// Requests that wait for one model, at most; what comes then is refused with 429.
    pub queue: usize,
    /// Bytes of a request, at most.
    pub max_body: usize,
    /// How often the folder is looked at.
    pub reload: Duration,
    /// How long requests that have begun may take after the server was asked to stop.
    pub grace: Duration,
    /// A folder of files that are served under `/`, such as a page that calls the models.
    pub pages: Option<PathBuf>,
}

impl Options {
    /// The usual settings for a folder.
    pub fn new(models: impl Into<PathBuf>) -> Options {
        Options {
            models: models.into(),
            address: ([127, 0, 0, 1], 8000).into(),
            max_batch: 16,
            max_delay: Duration::ZERO,
            queue: 256,
            max_body: 64 << 20,
            reload: Duration::from_secs(2),
            grace: Duration::from_secs(30),
            pages: None,
        }
    }
}
