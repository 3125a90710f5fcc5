//! The caches of attention as the named tuples that Python knows.

use crate::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use sampan_core::Tensor;
use sampan_nn::AttentionCache;

static CACHES: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

/// The named tuples of keys and values that attention keeps: `Cache` and `StaticCache`.
fn caches(py: Python<'_>) -> PyResult<&(Py<PyAny>, Py<PyAny>)> {
    CACHES.get_or_try_init(py, || {
        let home = py.import("sampan.nn.layer.transformer")?;
        Ok((home.getattr("Cache")?.unbind(), home.getattr("StaticCache")?.unbind()))
    })
}

/// The cache that a named tuple is, if it is one.
pub fn read(value: &Bound<'_, PyTuple>) -> PyResult<Option<AttentionCache>> {
    let py = value.py();
    let (growing, fixed) = caches(py)?;
    let (growing, fixed) = (value.is_instance(growing.bind(py))?, value.is_instance(fixed.bind(py))?);
    if !growing && !fixed {
        return Ok(None);
    }
    let part = |i| -> PyResult<Tensor> { Ok(value.get_item(i)?.cast::<PyTensor>()?.borrow().tensor()) };
    let (k, v) = (part(0)?, part(1)?);
    Ok(Some(if growing { AttentionCache::Growing(k, v) } else { AttentionCache::Static(k, v) }))
}

/// A cache as the named tuple that Python knows.
pub fn to_python(py: Python<'_>, cache: &AttentionCache) -> PyResult<Py<PyAny>> {
    let (growing, fixed) = caches(py)?;
    let class = if matches!(cache, AttentionCache::Growing(..)) { growing } else { fixed };
    let (k, v) = cache.parts();
    class.call1(py, (PyTensor::wrap(py, k.clone())?, PyTensor::wrap(py, v.clone())?))
}
