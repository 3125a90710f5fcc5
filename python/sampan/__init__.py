"""Dynamic-graph deep learning with a Rust core; the names, arguments and semantics are PaddlePaddle's.

>>> import sampan
>>> x = sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
>>> (x @ x).sum().backward()
>>> x.grad.shape
[2, 2]
"""

from . import _core, _registry
from ._core import (
    Parameter,
    Tensor,
    dtype,
    get_default_dtype,
    grad,
    is_grad_enabled,
    set_default_dtype,
)
from ._core import to_tensor_py as to_tensor

globals().update(_registry.functions(""))

from . import _tensor  # noqa: E402
from .framework import (  # noqa: E402
    enable_grad,
    get_rng_state,
    load,
    no_grad,
    save,
    seed,
    set_grad_enabled,
    set_rng_state,
)

bool = _core._dtype("bool")
uint8 = _core._dtype("uint8")
int8 = _core._dtype("int8")
int16 = _core._dtype("int16")
int32 = _core._dtype("int32")
int64 = _core._dtype("int64")
float16 = _core._dtype("float16")
bfloat16 = _core._dtype("bfloat16")
float32 = _core._dtype("float32")
float64 = _core._dtype("float64")

from . import linalg, nn, optimizer  # noqa: E402
from .nn.attr import ParamAttr  # noqa: E402

from . import _interop  # noqa: E402, F401

__version__ = "0.1.0"

# Modules, and names in them, that are imported when they are first used: `import sampan` stays quick.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import callbacks, compat, distributed, distribution, hapi, hub, reader, static, sysconfig, utils, version
    from .distributed import DataParallel
    from .hapi import Model, flops, summary
    from .reader import batch
del TYPE_CHECKING
_LATER = dict.fromkeys("callbacks compat distributed distribution hapi hub reader static sysconfig utils version".split())
_LATER |= {"DataParallel": "distributed", "Model": "hapi", "flops": "hapi", "summary": "hapi", "batch": "reader"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'sampan' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"sampan.{_LATER[name] or name}")
    found = globals()[name] = getattr(module, name) if _LATER[name] else module
    return found


def __dir__():
    return sorted({*globals(), *_LATER})
