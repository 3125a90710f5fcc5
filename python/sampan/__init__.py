"""Dynamic-graph deep learning with a Rust core; the names, arguments and semantics are PaddlePaddle's.

>>> import sampan
>>> x = sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
>>> (x @ x).sum().backward()
>>> x.grad.shape
[2, 2]
"""

from math import e, inf, nan, pi

from . import _core, _registry
from ._core import (
    Parameter,
    Tensor,
    dtype,
    from_dlpack,
    get_default_dtype,
    grad,
    is_grad_enabled,
    set_default_dtype,
    set_printoptions,
    to_dlpack,
)
from ._core import to_tensor_py as to_tensor

newaxis = None

globals().update(_registry.functions(""))

from . import _tensor, _types  # noqa: E402
from ._creation import (  # noqa: E402
    as_tensor,
    asarray,
    assign,
    broadcast_shape,
    broadcast_shapes,
    check_shape,
    create_parameter,
    from_numpy,
    numel,
    range,
    shape,
    tolist,
    where_,
)
from ._settings import (  # noqa: E402
    LazyGuard,
    disable_compat,
    disable_signal_handler,
    disable_static,
    enable_compat,
    enable_static,
    get_flags,
    in_dynamic_mode,
    set_flags,
)
from ._types import Size, finfo, iinfo, is_complex, is_floating_point, is_integer, is_tensor  # noqa: E402
from .framework import (  # noqa: E402
    Generator,
    enable_grad,
    get_cuda_rng_state,
    get_rng_state,
    load,
    no_grad,
    save,
    seed,
    set_cuda_rng_state,
    set_grad_enabled,
    set_rng_state,
)

globals().update(_types.objects())
globals().update(_types.TYPED)
manual_seed = seed

from . import device, linalg, nn, optimizer, version  # noqa: E402
from .device import (  # noqa: E402
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    CustomPlace,
    IPUPlace,
    XPUPinnedPlace,
    XPUPlace,
    device_guard,
    get_cudnn_version,
    get_default_device,
    get_device,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_custom_device,
    is_compiled_with_distribute,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
    set_default_device,
    set_device,
)
from .nn.attr import ParamAttr  # noqa: E402

cuda = device.cuda

from . import _interop  # noqa: E402, F401

__version__ = version.full_version
__git_commit__ = version.commit

# Modules, and names in them, that are imported when they are first used: `import sampan` stays quick.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import align, amp, autograd, callbacks, compat, distributed, distribution, fft, geometric, hapi, hub, incubate, inference
    from . import io, jit, metric, onnx
    from . import profiler, quantization, reader, regularizer, signal, static, sysconfig, tensor, text, utils, vision
    from .amp import autocast, get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_enabled
    from .distributed import DataParallel
    from .hapi import Model, flops, summary
    from .reader import batch
del TYPE_CHECKING
_LATER = dict.fromkeys(
    "align amp autograd callbacks compat distributed distribution fft geometric hapi hub incubate inference io jit metric onnx profiler quantization reader "
    "regularizer signal static sysconfig tensor text utils vision".split()
)
_LATER |= dict.fromkeys(
    "autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled".split(), "amp"
)
_LATER |= dict.fromkeys(("_C_ops", "_legacy_C_ops"))
_LATER |= {"DataParallel": "distributed", "Model": "hapi", "flops": "hapi", "summary": "hapi", "batch": "reader"}

# Names of Paddle's that nobody looks for in a list of them.
_KEPT_IN_COMPAT = {"common_ops_import": "common_ops_import", "core": "base.core", "pir": "pir"}


def __getattr__(name):
    import importlib

    if name in _KEPT_IN_COMPAT:
        return importlib.import_module(f"sampan.compat.{_KEPT_IN_COMPAT[name]}")
    if name not in _LATER:
        raise AttributeError(f"module 'sampan' has no attribute {name!r}")
    module = importlib.import_module(f"sampan.{_LATER[name] or name}")
    found = globals()[name] = getattr(module, name) if _LATER[name] else module
    return found


def __dir__():
    return sorted({*globals(), *_LATER})
