//! The core of the Python package `sampan`: tensors, ops and classes of the registries as Python objects.
//!
//! Nothing here computes; arguments are bound, the interpreter's lock is released, and the core is called.

mod align;
mod amp;
mod array;
mod autograd;
mod cache;
mod class;
mod convert;
mod data;
mod device;
mod dist;
mod distcp;
mod dlpack;
mod doc;
mod dtype;
mod elsewhere;
mod errors;
mod events;
mod files;
mod function;
mod graph;
mod guards;
mod hook;
mod layer;
mod memory;
mod object;
mod onnx;
mod op;
mod operators;
mod optimizer;
mod param;
mod profiler;
mod ps;
mod pylayer;
mod python_layer;
mod recording;
mod rows;
mod rpc;
mod runtime;
mod tensor;
mod value;
mod values;
mod vision;
mod watch;

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
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        sampan_core::dispatch::hide_callers();
        sampan_nn::lr::set_printer(crate::watch::print);
        sampan_dist::interrupt::set_check(crate::dist::check_signals);
        Ok(())
    }
    /// The version of this build.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::align::{_align_compare, _align_pair, _hear_calls, _stop_hearing, _tensor_id, PyRecording, PyReport};
    #[pymodule_export]
    use crate::amp::{_amp_policy, _count_numerics, _set_check_nan_inf, _swap_amp, _unscale, PyPolicy};
    #[pymodule_export]
    use crate::array::{_from_bytes, _share_array, to_tensor_py};
    #[pymodule_export]
    use crate::autograd::{
        _hessian, _jacobian, _jacobian_product, _pop_saved_hooks, _push_saved_hooks, _recompute, _set_grad_enabled,
        backward, grad, is_grad_enabled,
    };
    #[pymodule_export]
    use crate::class::{PyClassDef, PyObject, classes};
    #[pymodule_export]
    use crate::convert::{_command, _convert_weights, _weights_in, _weights_of, PyStructure};
    #[pymodule_export]
    use crate::data::{
        _after_fork, _cifar, _data_home, _derive_seed, _download, _fashion_mnist, _flowers, _mnist, _next_sample,
        _pass_place, _read_sample, _stack, _uci_housing, PyDataset, PyImageSet, PyPass,
    };
    #[pymodule_export]
    use crate::device::{
        _cudnn_version, _device_of, _get_device, _gpu_count, _gpu_folders, _gpu_info, _gpu_memory, _gpu_release,
        _gpu_reset_peak, _gpu_rounding, _gpu_set_rounding, _gpu_stood_in, _gpu_synchronize, _move, _move_in_place,
        _set_deterministic, _set_device, check_place,
    };
    #[pymodule_export]
    use crate::dist::{
        _dist_destroy, _dist_group, _dist_init, _dist_is_initialized, _dist_launch, _dist_new_group, _dist_world,
        PyProcessGroup, PyReducer, PyStoreServer, PyTask,
    };
    #[pymodule_export]
    use crate::distcp::PyCheckpoint;
    #[pymodule_export]
    use crate::dlpack::{from_dlpack, to_dlpack};
    #[pymodule_export]
    use crate::dtype::{_dtype, PyDType};
    #[pymodule_export]
    use crate::elsewhere::{_plain, _room, _set_elsewhere};
    #[pymodule_export]
    use crate::events::PyEventWriter;
    #[pymodule_export]
    use crate::files::{_finish_set, _load, _load_bytes, _save, _save_bytes, _save_set};
    #[pymodule_export]
    use crate::function::{_function, _functions, PyFunction};
    #[pymodule_export]
    use crate::graph::{
        _aside, _cond, _is_traced, _is_tracing, _trace, _walked_while_traced, _while, PyCalibration, PyGraph,
        PyPredictor,
    };
    #[pymodule_export]
    use crate::guards::{_call_from_records, PyAgain, PyKept, PyMarked, PySnapshot};
    #[pymodule_export]
    use crate::hook::PyHook;
    #[pymodule_export]
    use crate::layer::{PyLayerBase, PyRustLayer};
    #[pymodule_export]
    use crate::object::{_param_attr, _regularizer, PyBase, PyInitializer, PyMetric};
    #[pymodule_export]
    use crate::onnx::PyOnnxModel;
    #[pymodule_export]
    use crate::op::{PyOp, op, op_info, ops};
    #[pymodule_export]
    use crate::optimizer::{_python_schedule, _set_setting, _settings, PyOptimizer, PySchedule};
    #[pymodule_export]
    use crate::param::{
        _apply_clip, _calculate_gain, _cast_in_place, _python_initializer, _set_global_initializer, _unique_name,
        clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters,
    };
    #[pymodule_export]
    use crate::profiler::{_profile_load, _profiler_on, _profiler_start, _profiler_stop, PyProfile, PyRange};
    #[pymodule_export]
    use crate::ps::{_ps_serve, PyPsClient};
    #[pymodule_export]
    use crate::pylayer::_apply_layer;
    #[pymodule_export]
    use crate::recording::{_afterwards, _is_recording, PyCaptured, PyEvent};
    #[pymodule_export]
    use crate::rows::PyRows;
    #[pymodule_export]
    use crate::rpc::PyCalls;
    #[pymodule_export]
    use crate::runtime::{
        _check_nan_inf, _memory, _random_bits, _random_state, _release_cache, _reset_peak, _set_random_state,
        get_default_dtype, num_threads, seed, set_default_dtype, set_num_threads, set_printoptions,
    };
    #[pymodule_export]
    use crate::tensor::{PyParameter, PyTensor};
    #[pymodule_export]
    use crate::vision::{_image_load, _model_arguments, _models, PyPictureFunction, PyPipeline};
    #[pymodule_export]
    use crate::watch::{_report_numerics, _start_op_stats, _stop_op_stats, _stop_report_numerics};
}
