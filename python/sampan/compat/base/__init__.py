"""What programs use of `paddle.base`, the old ground floor of Paddle: places, modes, checks."""

from ... import _core
from ...nn.attr import ParamAttr
from ...utils import unique_name
from .. import _late
from . import core, data_feeder, dygraph, framework
from .core import is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu
from .framework import Variable, get_flags, in_dygraph_mode, in_dynamic_or_pir_mode, in_pir_mode, set_flags

Tensor = _core.Tensor

__getattr__ = _late.names(
    __name__,
    {
        "CPUPlace": "sampan:CPUPlace",
        "CUDAPlace": "sampan:CUDAPlace",
        "CUDAPinnedPlace": "sampan:CUDAPinnedPlace",
        "enable_dygraph": "sampan:disable_static",
        "disable_dygraph": "sampan:enable_static",
    },
    "sampan has dynamic graphs only; programs, executors and scopes of static graphs are not part of it.",
)
