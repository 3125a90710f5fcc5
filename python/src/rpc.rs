//! Calls from one process to another.

use crate::errors::{raise, run};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sampan_core::Error;
use sampan_dist::rpc::{Answer, Calls, Worker};
use sampan_dist::{Options, Secret, World};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The processes that call each other.
#[pyclass(name = "Calls", module = "sampan._core", frozen)]
pub struct PyCalls(Calls);

type Told = (String, usize, String, u16);

fn told(w: &Worker) -> Told {
    (w.name.clone(), w.rank, w.host.clone(), w.port)
}

/// Whoever reaches an open address could call; on this machine alone that is for its users to know.
fn check_secret(master: &str) -> sampan_core::Result<()> {
    let host = master.rsplit_once(':').map_or(master, |(host, _)| host).trim_matches(['[', ']']);
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !local && Secret::from_env()?.is_empty() {
        let error = Error::new(sampan_core::error::Kind::PreconditionNotMet, "calls between machines need a secret");
        return Err(error.hint("set SAMPAN_SECRET or SAMPAN_SECRET_FILE on all machines").in_op("init_rpc"));
    }
    Ok(())
}

#[pymethods]
impl PyCalls {
    /// Meets the others; `answer` is called with the bytes of each call and gives those of its answer.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        rank: Option<usize>,
        size: Option<usize>,
        master: Option<String>,
        answer: Py<PyAny>,
    ) -> PyResult<PyCalls> {
        let answer: Answer = Arc::new(move |asked: &[u8]| {
            Python::attach(|py| {
                let given = answer.call1(py, (PyBytes::new(py, asked),));
                given.and_then(|bytes| bytes.extract::<Vec<u8>>(py)).unwrap_or_default()
            })
        });
        run(py, || {
            let world = World::from_env()?;
            let (rank, size) = (rank.unwrap_or(world.rank), size.unwrap_or(world.size));
            if rank >= size {
                return Err(Error::invalid(format!("rank {rank} is not one of {size} processes")).in_op("init_rpc"));
            }
            let (master, kept) = match master.or_else(|| std::env::var("PADDLE_MASTER_ENDPOINT").ok()) {
                Some(master) => (master, false),
                None => world.meeting_place()?,
            };
            check_secret(&master)?;
            Calls::start((&name, rank, size), &master, kept, Options::from_env()?.patience, answer)
        })
        .map(PyCalls)
    }
    /// What a worker answers; a limit of no seconds is none.
    fn call<'py>(&self, py: Python<'py>, to: &str, bytes: Vec<u8>, seconds: f64) -> PyResult<Bound<'py, PyBytes>> {
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero());
        let answer = run(py, || self.0.call(self.0.worker(to)?, &bytes, limit).map_err(|e| e.in_op("rpc")))?;
        Ok(PyBytes::new(py, &answer))
    }
    /// This process: name, rank, host and port.
    fn own(&self) -> Told {
        told(self.0.own())
    }
    fn worker(&self, name: &str) -> PyResult<Told> {
        self.0.worker(name).map(told).map_err(|e| raise(e.in_op("get_worker_info")))
    }
    fn workers(&self) -> Vec<Told> {
        self.0.workers().iter().map(told).collect()
    }
    /// Waits until nobody calls any more.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.finish())
    }
}
