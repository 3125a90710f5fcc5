//! The core of the Python package `sampan`: tensors, ops and classes of the registries as Python objects.
//!
//! Nothing here computes; arguments are bound, the interpreter's lock is released, and the core is called.

mod array;
mod autograd;
mod cache;
mod class;
mod dtype;
mod errors;
mod files;
mod layer;
mod object;
mod op;
mod param;
mod python_layer;
mod runtime;
mod tensor;
mod value;

// Linked for the classes it registers.
use sampan_data as _;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

static METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// `types.MethodType`.
pub(crate) fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    METHOD.get_or_try_init(py, || py.import("types")?.getattr("MethodType").map(Bound::unbind)).map(|m| m.bind(py))
}

/// A name that lives as long as the process, kept once.
pub(crate) fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.insert(new);
    new
}

/// The native part of the package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::array::to_tensor_py;
    #[pymodule_export]
    use crate::autograd::{
        _apply_function, _hessian, _jacobian, _set_grad_enabled, PyHook, backward, grad, is_grad_enabled,
    };
    #[pymodule_export]
    use crate::class::{PyClassDef, PyObject, classes};
    #[pymodule_export]
    use crate::dtype::{_dtype, PyDType};
    #[pymodule_export]
    use crate::files::{_load, _save};
    #[pymodule_export]
    use crate::layer::{PyLayerBase, PyRustLayer};
    #[pymodule_export]
    use crate::object::{
        _param_attr, _regularizer, _set_settings, _settings, PyBase, PyInitializer, PyMetric, PyOptimizer, PySchedule,
    };
    #[pymodule_export]
    use crate::op::{PyOp, op, op_info, ops};
    #[pymodule_export]
    use crate::param::{
        _apply_clip, _calculate_gain, _cast_in_place, _python_initializer, _set_global_initializer, _unique_name,
        clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters,
    };
    #[pymodule_export]
    use crate::runtime::{
        _random_state, _set_random_state, get_default_dtype, num_threads, seed, set_default_dtype, set_num_threads,
    };
    #[pymodule_export]
    use crate::tensor::{PyParameter, PyTensor};
}
