//! Processes that compute together.

use crate::errors::{passing, raise, run};
use crate::tensor::PyTensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sampan_core::{Error, Result, Tensor};
use sampan_dist::launch::{Launch, launch};
use sampan_dist::{Buckets, Engine, Group, Options, ReduceOp, Reducer, Secret, StoreServer, Task, World, job};
use sampan_nn::Parameter;
use std::time::Duration;

/// Did somebody press Ctrl-C? Asked by calls that wait.
pub fn check_signals() -> Result<()> {
    Python::attach(|py| py.check_signals()).map_err(passing)
}

fn seconds(timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout)
        .map_err(|_| PyValueError::new_err(format!("(InvalidArgument) a timeout of {timeout} seconds.")))
}

fn reduce_op(op: usize) -> Result<ReduceOp> {
    let found = ReduceOp::ALL.get(op).copied();
    found.ok_or_else(|| Error::invalid(format!("there is no ReduceOp {op}")).hint("SUM, MAX, MIN, PROD or AVG"))
}

/// Work that was begun.
#[pyclass(name = "task", module = "sampan.distributed", frozen)]
pub struct PyTask(Task);

#[pymethods]
impl PyTask {
    /// Waits until it is done.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        run(py, || self.0.wait()).map(|()| true)
    }
    /// Waits until it is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.wait())
    }
    /// Is it done?
    fn is_completed(&self) -> bool {
        self.0.is_completed()
    }
    /// Was the caller made to wait?
    fn is_sync(&self) -> bool {
        false
    }
}

/// Processes that call collectives together.
#[pyclass(name = "ProcessGroup", module = "sampan._core", frozen)]
pub struct PyProcessGroup(Group);

type Given = Vec<Py<PyTensor>>;

fn tensors(given: &Given) -> Vec<Tensor> {
    given.iter().map(|t| t.get().tensor()).collect()
}

/// Calls a collective and waits, or gives a task.
macro_rules! call {
    ($self:ident, $py:ident, $sync:ident, $now:ident, $later:ident, ($($arg:expr),*)) => {
        match $sync {
            true => run($py, || $self.0.$now($($arg),*)).map(|()| PyTask(Task::done(Ok(())))),
            false => run($py, || Ok($self.0.$later($($arg),*))).map(PyTask),
        }
    };
}

#[pymethods]
impl PyProcessGroup {
    /// Its number.
    #[getter]
    fn id(&self) -> usize {
        self.0.id()
    }
    /// The rank of this process in the group; -1 if it is not a member.
    #[getter]
    fn rank(&self) -> i64 {
        self.0.rank().map_or(-1, |r| r as i64)
    }
    /// The ranks in the job of its members.
    #[getter]
    fn ranks(&self) -> Vec<usize> {
        self.0.ranks().to_vec()
    }
    /// How many processes it has.
    fn size(&self) -> usize {
        self.0.size()
    }
    /// The name of its engine.
    fn name(&self) -> &'static str {
        self.0.backend().0
    }
    /// Why this engine was chosen.
    fn why(&self) -> String {
        self.0.backend().1.to_string()
    }
    /// Ends the group for all its members.
    fn abort(&self, py: Python<'_>, why: &str) -> PyResult<()> {
        run(py, || {
            self.0.abort(why);
            Ok(())
        })
    }
    /// Waits until the collectives that were begun are done.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.finish())
    }
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.barrier())
    }
    fn all_reduce(&self, py: Python<'_>, tensor: &PyTensor, op: usize, sync: bool) -> PyResult<PyTask> {
        let (t, op) = (tensor.tensor(), reduce_op(op).map_err(|e| raise(e.in_op("all_reduce")))?);
        call!(self, py, sync, all_reduce, all_reduce_async, (&t, op))
    }
    fn reduce(&self, py: Python<'_>, tensor: &PyTensor, dst: usize, op: usize, sync: bool) -> PyResult<PyTask> {
        let (t, op) = (tensor.tensor(), reduce_op(op).map_err(|e| raise(e.in_op("reduce")))?);
        call!(self, py, sync, reduce, reduce_async, (&t, dst, op))
    }
    fn broadcast(&self, py: Python<'_>, tensor: &PyTensor, src: usize, sync: bool) -> PyResult<PyTask> {
        let t = tensor.tensor();
        call!(self, py, sync, broadcast, broadcast_async, (&t, src))
    }
    /// Gives many tensors of one process to all.
    fn broadcast_all(&self, py: Python<'_>, all: Given, src: usize) -> PyResult<()> {
        let all = tensors(&all);
        run(py, || self.0.broadcast_all(&all, src))
    }
    fn all_gather(&self, py: Python<'_>, outputs: Given, tensor: &PyTensor, sync: bool) -> PyResult<PyTask> {
        let (outputs, t) = (tensors(&outputs), tensor.tensor());
        call!(self, py, sync, all_gather_into, all_gather_into_async, (&outputs, &t))
    }
    fn gather(&self, py: Python<'_>, outputs: Given, tensor: &PyTensor, dst: usize, sync: bool) -> PyResult<PyTask> {
        let (outputs, t) = (tensors(&outputs), tensor.tensor());
        call!(self, py, sync, gather_into, gather_into_async, (&outputs, &t, dst))
    }
    fn scatter(&self, py: Python<'_>, tensor: &PyTensor, inputs: Given, src: usize, sync: bool) -> PyResult<PyTask> {
        let (inputs, t) = (tensors(&inputs), tensor.tensor());
        call!(self, py, sync, scatter, scatter_async, (&t, &inputs, src))
    }
    fn reduce_scatter(
        &self,
        py: Python<'_>,
        tensor: &PyTensor,
        inputs: Given,
        op: usize,
        sync: bool,
    ) -> PyResult<PyTask> {
        let (inputs, t) = (tensors(&inputs), tensor.tensor());
        let op = reduce_op(op).map_err(|e| raise(e.in_op("reduce_scatter")))?;
        call!(self, py, sync, reduce_scatter, reduce_scatter_async, (&t, &inputs, op))
    }
    fn all_to_all(&self, py: Python<'_>, outputs: Given, inputs: Given, sync: bool) -> PyResult<PyTask> {
        let (outputs, inputs) = (tensors(&outputs), tensors(&inputs));
        call!(self, py, sync, all_to_all, all_to_all_async, (&outputs, &inputs))
    }
    fn send(&self, py: Python<'_>, tensor: &PyTensor, dst: usize, sync: bool) -> PyResult<PyTask> {
        let t = tensor.tensor();
        call!(self, py, sync, send, send_async, (&t, dst))
    }
    fn recv(&self, py: Python<'_>, tensor: &PyTensor, src: usize, sync: bool) -> PyResult<PyTask> {
        let t = tensor.tensor();
        call!(self, py, sync, recv, recv_async, (&t, src))
    }
}

/// Meets the other processes of the job.
#[pyfunction]
pub fn _dist_init(py: Python<'_>) -> PyResult<PyProcessGroup> {
    run(py, || Ok(PyProcessGroup(job::init_parallel_env_with(Options::from_env()?)?.everybody())))
}

/// Have processes met?
#[pyfunction]
pub fn _dist_is_initialized() -> bool {
    job::current().is_some()
}

/// A group by its number: 0 is everybody. None if there is none.
#[pyfunction]
pub fn _dist_group(py: Python<'_>, id: usize, op: &str) -> PyResult<Option<PyProcessGroup>> {
    run(py, || Ok(job::require(op)?.group(id).map(PyProcessGroup)))
}

/// A group of some processes.
#[pyfunction]
pub fn _dist_new_group(
    py: Python<'_>,
    ranks: Option<Vec<usize>>,
    backend: Option<&str>,
    timeout: Option<f64>,
) -> PyResult<PyProcessGroup> {
    let timeout = timeout.map(seconds).transpose()?;
    run(py, || {
        let job = job::require("new_group")?;
        let ranks = ranks.unwrap_or_else(|| (0..job.world().size).collect());
        let engine = Engine::named(backend.unwrap_or("auto")).map_err(|e| e.in_op("new_group"))?;
        job.new_group(ranks, engine, timeout.unwrap_or(job.timeout())).map(PyProcessGroup)
    })
}

/// Leaves the job.
#[pyfunction]
pub fn _dist_destroy(py: Python<'_>) -> PyResult<()> {
    run(py, || {
        job::destroy();
        Ok(())
    })
}

/// Rank, number of processes, the same on this machine, and who started them.
#[pyfunction]
pub fn _dist_world() -> PyResult<(usize, usize, usize, usize, &'static str)> {
    let w = World::from_env().map_err(raise)?;
    Ok((w.rank, w.size, w.local_rank, w.local_size, w.launcher))
}

/// Runs a program in several processes, as a command line says; its exit code.
#[pyfunction]
pub fn _dist_launch(py: Python<'_>, arguments: Vec<String>, python: &str) -> PyResult<i32> {
    run(py, || {
        let options = Launch::parse(&arguments, python)?;
        let interrupted = || check_signals().is_err();
        launch(&options, &interrupted)
    })
}

/// Where processes meet; kept until it is dropped.
#[pyclass(name = "StoreServer", module = "sampan._core", frozen)]
pub struct PyStoreServer(StoreServer);

#[pymethods]
impl PyStoreServer {
    #[new]
    fn new(py: Python<'_>, address: &str, secret: String) -> PyResult<PyStoreServer> {
        run(py, || StoreServer::start(address, Secret::new(secret))).map(PyStoreServer)
    }
    /// The port.
    #[getter]
    fn port(&self) -> u16 {
        self.0.port()
    }
}

/// Makes gradients the means over processes while `backward` runs.
#[pyclass(name = "Reducer", module = "sampan._core", frozen)]
pub struct PyReducer(Reducer);

#[pymethods]
impl PyReducer {
    #[new]
    fn new(
        group: &PyProcessGroup,
        parameters: Vec<(String, Py<PyTensor>)>,
        bytes: usize,
        last_bytes: usize,
        find_unused: bool,
    ) -> PyReducer {
        let watched = |(name, t): &(String, Py<PyTensor>)| {
            let t = t.get();
            (name.clone(), t.parameter().unwrap_or_else(|| Parameter::of(t.tensor())))
        };
        let parameters: Vec<(String, Parameter)> = parameters.iter().map(watched).collect();
        PyReducer(Reducer::new(&group.0, &parameters, Buckets { bytes, last_bytes, find_unused }))
    }
    /// Before each forward.
    fn prepare(&self) {
        self.0.prepare();
    }
    /// Reduces gradients, or does not; what was before.
    fn set_active(&self, on: bool) -> bool {
        self.0.set_active(on)
    }
    /// How many parameters each bucket has.
    fn buckets(&self) -> Vec<usize> {
        self.0.buckets()
    }
}
