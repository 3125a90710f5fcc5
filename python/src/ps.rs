//! The parameter server.

use crate::errors::{raise, run};
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_core::{DType, Error, Result, Tensor};
use sampan_dist::Secret;
use sampan_dist::ps::{Client, Pushed, Rule, Server, Spec};
use std::path::PathBuf;
use std::time::Duration;

/// Serves tables until every worker has left.
#[pyfunction]
pub fn _ps_serve(
    py: Python<'_>,
    address: &str,
    workers: usize,
    place: (usize, usize),
    folder: PathBuf,
    timeout: f64,
) -> PyResult<()> {
    run(py, || {
        let secret = Secret::from_env()?;
        Server::bind(address, secret, workers, place, folder, Duration::from_secs_f64(timeout))?.run()
    })
}

fn whole_numbers(ids: &Tensor) -> Result<Vec<u64>> {
    let ids: Vec<i64> = ids.try_cast(DType::Int64)?.try_to_vec()?;
    match ids.iter().find(|id| **id < 0) {
        Some(id) => Err(Error::invalid(format!("{id} is no id of a row"))),
        None => Ok(ids.into_iter().map(|id| id as u64).collect()),
    }
}

/// A worker's connections to the servers.
#[pyclass(name = "PsClient", module = "sampan._core", frozen)]
pub struct PyPsClient(Client);

#[pymethods]
impl PyPsClient {
    #[new]
    fn new(py: Python<'_>, addresses: Vec<String>, worker: usize, timeout: f64) -> PyResult<PyPsClient> {
        let connect = || Client::connect(&addresses, &Secret::from_env()?, worker, Duration::from_secs_f64(timeout));
        run(py, connect).map(PyPsClient)
    }
    /// Makes a table, or finds it there.
    fn create(
        &self,
        py: Python<'_>,
        name: String,
        dim: usize,
        rule: (String, [f64; 4]),
        l2: f64,
        range: f64,
        seed: u64,
        limit: usize,
    ) -> PyResult<()> {
        let rule = Rule::named(&rule.0, rule.1).map_err(raise)?;
        run(py, || self.0.create(&Spec { name, dim, rule, l2, range, seed, limit }))
    }
    /// The values of rows, one below the other.
    fn pull(&self, py: Python<'_>, table: &str, dim: usize, ids: &PyTensor, version: u64) -> PyResult<Py<PyAny>> {
        let ids = ids.tensor();
        let found = run(py, || {
            let ids = whole_numbers(&ids)?;
            let values = self.0.pull(table, dim, &ids, version)?;
            Ok(Tensor::from_vec(values, [ids.len(), dim]))
        })?;
        PyTensor::wrap(py, found)
    }
    /// Gives values of rows to their servers.
    fn push(
        &self,
        py: Python<'_>,
        table: &str,
        dim: usize,
        ids: &PyTensor,
        values: &PyTensor,
        lr: f64,
        how: &str,
    ) -> PyResult<()> {
        let (ids, values) = (ids.tensor(), values.tensor());
        let how = match how {
            "at_once" => Pushed::AtOnce,
            "together" => Pushed::Together,
            "added" => Pushed::Added,
            _ => Pushed::Set,
        };
        run(py, || {
            let values: Vec<f32> = values.detach().try_cast(DType::Float32)?.try_to_vec()?;
            self.0.push(table, dim, &whole_numbers(&ids)?, &values, lr, how)
        })
    }
    /// Waits until so many workers are here.
    fn barrier(&self, py: Python<'_>, name: &str, workers: usize) -> PyResult<()> {
        run(py, || self.0.barrier(name, workers))
    }
    /// Writes all tables into a folder.
    fn save(&self, py: Python<'_>, folder: &str) -> PyResult<()> {
        run(py, || self.0.save(folder))
    }
    /// Takes rows over that `save` wrote.
    fn load(&self, py: Python<'_>, folder: &str) -> PyResult<()> {
        run(py, || self.0.load(folder))
    }
    /// How many rows a table has, and how many of them are in memory.
    fn count(&self, py: Python<'_>, table: &str) -> PyResult<(u64, u64)> {
        run(py, || self.0.count(table))
    }
    /// Says that this worker is done.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.leave())
    }
}
