"""The names of Paddle 1.x: `import paddle.fluid as fluid`, for programs with dynamic graphs.

Layers take the arguments of 1.5 (a name first, sizes of inputs found at the first call) and those of 1.7 and 1.8.
"""

from ... import _core
from ...nn.attr import ParamAttr
from ...utils import unique_name
from .. import _late
from ..base import core, data_feeder, framework
from ..base.core import is_compiled_with_cuda
from ..base.dygraph import disable_dygraph, enable_dygraph, enable_imperative
from ..base.framework import in_dygraph_mode
from . import clip, dygraph, initializer, io, layers, metrics, optimizer, regularizer
from .dygraph import load_dygraph, save_dygraph
from .io import DataFeeder

Tensor = Variable = LoDTensor = _core.Tensor
embedding, one_hot = layers.embedding, layers.one_hot


def cpu_places(device_count=None):
    """Places of the processor."""
    import sampan

    return [sampan.CPUPlace()] * (device_count or 1)


__getattr__ = _late.names(
    __name__,
    {
        "CPUPlace": "sampan:CPUPlace",
        "CUDAPlace": "sampan:CUDAPlace",
        "CUDAPinnedPlace": "sampan:CUDAPinnedPlace",
        "set_flags": "sampan:set_flags",
        "get_flags": "sampan:get_flags",
        "param_attr": "sampan.nn.attr",
        "install_check": "sampan.utils.install_check",
        "profiler": "sampan.utils.profiler",
    },
    "sampan has the dynamic graphs of paddle.fluid; programs, executors and readers of static graphs are not part of "
    "it. Hint: write the network as a fluid.dygraph.Layer and call it.",
)
