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
from .nn.attr import ParamAttr, create_parameter  # noqa: E402

__version__ = "0.1.0"
