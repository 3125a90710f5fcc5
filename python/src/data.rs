//! Data sets and the loader of the core, and what the package's own loader needs of it.

use crate::errors::{self, raise};
use crate::tensor::PyTensor;
use crate::value;
use crate::vision::PyPipeline;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sampan_core::{DType, Result, Tensor, Value, random};
use sampan_data::download::{self, Download};
use sampan_data::vision::datasets::ImageSet;
use sampan_data::{
    Batch, Cifar10, Cifar100, DataLoader, Dataset, FashionMnist, Flowers, IndexBatches, LoaderIter, LoaderState, Mnist,
    TensorDataset, UciHousing, default_collate,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The fields of a batch as a list of tensors.
fn fields(py: Python<'_>, batch: Batch) -> PyResult<Py<PyAny>> {
    let tensors = batch.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, tensors)?.into_any().unbind())
}

/// A data set of the core, which is read without the interpreter's lock.
#[pyclass(name = "RustDataset", module = "sampan._core", frozen)]
pub struct PyDataset(Arc<dyn Dataset>);

#[pymethods]
impl PyDataset {
    /// Tensors with one row for each sample.
    #[staticmethod]
    fn of_tensors(tensors: Vec<PyRef<'_, PyTensor>>) -> PyResult<PyDataset> {
        let tensors = tensors.iter().map(|t| t.tensor().detach()).collect();
        Ok(PyDataset(Arc::new(TensorDataset::new(tensors).map_err(raise)?)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The fields of one sample.
    fn get(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
        let data = self.0.clone();
        fields(py, errors::run(py, move || data.get(index))?)
    }

    /// The fields of many samples, stacked.
    fn batch(&self, py: Python<'_>, indices: Vec<usize>) -> PyResult<Py<PyAny>> {
        let data = self.0.clone();
        let read = move || match data.batch(&indices) {
            Some(batch) => batch,
            None => default_collate(indices.iter().map(|&i| data.get(i)).collect::<Result<_>>()?),
        };
        fields(py, errors::run(py, read)?)
    }
}

/// Images of one size with labels, in memory.
#[pyclass(name = "ImageSet", module = "sampan._core", frozen)]
pub struct PyImageSet(ImageSet);

#[pymethods]
impl PyImageSet {
    fn __len__(&self) -> usize {
        self.0.len()
    }
    /// Channels, height and width of an image.
    #[getter]
    fn extents(&self) -> [usize; 3] {
        self.0.extents()
    }
    /// The classes of all images.
    fn labels(&self) -> Vec<i64> {
        self.0.labels()
    }
    /// The bytes of an image, pixel after pixel.
    fn image<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.bytes(index).map_err(raise)?))
    }
    /// The set whose images are float32 of a shape: every byte becomes what the table of its channel says.
    fn tabulated(&self, tables: Vec<[f32; 256]>, shape: Vec<usize>, channels_last: bool) -> PyResult<PyDataset> {
        let set = self.0.clone().tabulated(tables, shape, channels_last).map_err(raise)?;
        Ok(PyDataset(Arc::new(set)))
    }
    /// The set whose images went through transforms of the core. They are given `[H, W]` where there is one channel, as
    /// float32 if `floats` says so. `arrays`: they are arrays, not Pillow's pictures, and come out as float32.
    fn transformed(&self, pipeline: PyRef<'_, PyPipeline>, floats: bool, arrays: bool) -> PyDataset {
        let run = pipeline.on_values(arrays);
        let [channels, height, width] = self.0.extents();
        let cast = |t: Tensor, on: bool| if on { t.try_cast(DType::Float32) } else { Ok(t) };
        let transform = move |image: &Tensor| {
            let image = if channels == 1 { image.try_reshape([height, width])? } else { image.clone() };
            cast(run(cast(image, floats)?)?, arrays)
        };
        PyDataset(Arc::new(self.0.clone().with_transform(Arc::new(transform))))
    }
}

/// MNIST: two files in the idx format, or without them the digits that are part of this library.
#[pyfunction]
#[pyo3(signature = (mode, files = None))]
pub fn _mnist(py: Python<'_>, mode: &str, files: Option<(PathBuf, PathBuf)>) -> PyResult<PyImageSet> {
    let split = mode.parse().map_err(raise)?;
    let open = move || match files {
        Some((images, labels)) => Mnist::open(images, labels),
        None => Mnist::new(split),
    };
    Ok(PyImageSet(errors::run(py, open)?.into()))
}

/// Fashion-MNIST: two files in the idx format.
#[pyfunction]
pub fn _fashion_mnist(py: Python<'_>, files: (PathBuf, PathBuf)) -> PyResult<PyImageSet> {
    Ok(PyImageSet(errors::run(py, move || FashionMnist::open(files.0, files.1))?.into()))
}

/// CIFAR-10 or CIFAR-100 from its archive.
#[pyfunction]
pub fn _cifar(py: Python<'_>, file: PathBuf, mode: &str, classes: usize) -> PyResult<PyImageSet> {
    let split = mode.parse().map_err(raise)?;
    let open = move || match classes {
        100 => Cifar100::open(file, split).map(ImageSet::from),
        _ => Cifar10::open(file, split).map(ImageSet::from),
    };
    Ok(PyImageSet(errors::run(py, open)?))
}

/// Files and labels of the flowers, from the three files they are published in.
#[pyfunction]
pub fn _flowers(
    py: Python<'_>,
    data: PathBuf,
    labels: PathBuf,
    setid: PathBuf,
    mode: &str,
) -> PyResult<Vec<(PathBuf, i64)>> {
    let split = mode.parse().map_err(raise)?;
    Ok(errors::run(py, move || Flowers::open(data, labels, setid, split))?.files().collect())
}

/// The houses of Boston from their file.
#[pyfunction]
pub fn _uci_housing(py: Python<'_>, file: PathBuf, mode: &str) -> PyResult<PyDataset> {
    let split = mode.parse().map_err(raise)?;
    Ok(PyDataset(Arc::new(errors::run(py, move || UciHousing::open(file, split))?)))
}

/// Batches that were chosen before.
struct Chosen(Vec<Vec<usize>>);

impl IndexBatches for Chosen {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
        Ok(Box::new(self.0.clone().into_iter()))
    }
}

/// One pass over a data set of the core: its batches, made ahead by threads.
#[pyclass(name = "RustPass", module = "sampan._core", frozen)]
pub struct PyPass(Mutex<LoaderIter>);

#[pymethods]
impl PyPass {
    /// `batches` holds the indices of each batch; `threads` make them, each `ahead` batches before they are asked for.
    /// `random` is the place in the generator that [`_pass_place`] gave.
    #[new]
    fn new(
        py: Python<'_>,
        dataset: PyRef<'_, PyDataset>,
        batches: Vec<Vec<usize>>,
        threads: usize,
        ahead: usize,
        buffered: bool,
        timeout: f64,
        random: (u64, u64),
    ) -> PyResult<PyPass> {
        let builder = DataLoader::builder(dataset.0.clone())
            .batch_sampler(Chosen(batches))
            .num_workers(threads)
            .prefetch_factor(ahead)
            .use_buffer_reader(buffered)
            .timeout(Duration::try_from_secs_f64(timeout).unwrap_or(Duration::ZERO));
        let start = LoaderState { random, ..LoaderState::default() };
        errors::run(py, move || Ok(PyPass(Mutex::new(builder.build()?.resume(&start)?))))
    }
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = errors::run(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).next().transpose())?;
        next.map(|batch| fields(py, batch)).transpose()
    }
}

/// The seed and the place in the generator that decide what is drawn in one pass over data; the generator moves on.
#[pyfunction]
pub fn _pass_place() -> (u64, u64) {
    random::reserve(1)
}

/// `dataset[key]` with a generator of the sample's own: what is drawn depends on the seed of the pass, the sample and its
/// place in the order, and not on who reads it.
#[pyfunction]
pub fn _read_sample<'py>(
    dataset: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    seed: u64,
    place: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let index = key.extract::<i64>().unwrap_or(0) as u64;
    random::with_state((random::derive(seed, index, place), 0), || dataset.get_item(key))
}

/// The next sample of an iterator, with a generator of its own.
#[pyfunction]
pub fn _next_sample<'py>(
    iterator: &Bound<'py, PyAny>,
    seed: u64,
    worker: u64,
    place: u64,
) -> PyResult<Bound<'py, PyAny>> {
    random::with_state((random::derive(seed, worker, place), 0), || iterator.call_method0("__next__"))
}

/// A seed made of a seed and two numbers.
#[pyfunction]
pub fn _derive_seed(seed: u64, a: u64, b: u64) -> u64 {
    random::derive(seed, a, b)
}

/// Tensors stacked along a new first axis; they are not recorded.
#[pyfunction]
pub fn _stack(py: Python<'_>, tensors: Vec<PyRef<'_, PyTensor>>) -> PyResult<Py<PyAny>> {
    let samples: Vec<Vec<Tensor>> = tensors.iter().map(|t| vec![t.tensor().detach()]).collect();
    let batch = errors::run(py, move || default_collate(samples))?;
    value::to_python(py, &batch.into_iter().next().map_or(Value::None, Value::Tensor))
}

/// For the child of a `fork`: its ops run on the calling thread.
#[pyfunction]
pub fn _after_fork() {
    sampan_kernels::parallel::after_fork();
    sampan_core::profiler::after_fork();
}

/// Where downloaded data sets lie.
#[pyfunction]
pub fn _data_home() -> PathBuf {
    download::data_home()
}

/// The path of a file behind an address, downloaded into a folder if it is not there with this md5 sum.
#[pyfunction]
#[pyo3(signature = (url, folder, md5 = None))]
pub fn _download(py: Python<'_>, url: String, folder: PathBuf, md5: Option<String>) -> PyResult<PathBuf> {
    let mut download = Download::new([url]).folder(folder);
    if let Some(md5) = md5 {
        download = download.md5(md5);
    }
    errors::run(py, move || download.fetch())
}
