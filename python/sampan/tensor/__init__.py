"""Paddle's `tensor`: the functions of the top of the package, under the names of the files that Paddle keeps them in."""

from __future__ import annotations

import sys
import types

from .. import _creation, _registry
from .._core import Tensor, to_tensor_py as to_tensor

globals().update(_registry.functions("linalg"))
globals().update(_registry.functions(""))
for _name in ("asarray", "as_tensor", "assign", "create_parameter", "numel", "range", "shape", "tolist", "where_"):
    globals()[_name] = getattr(_creation, _name)


def create_tensor(dtype, name=None, persistable: bool = False) -> Tensor:
    """An empty tensor, to be filled by `assign(x, output)`."""
    made = Tensor(0, dtype=dtype)
    made.persistable = persistable
    if name is not None:
        made.name = name
    return made


class _Callable(types.ModuleType):
    """A module that makes a tensor when it is called, as `paddle.tensor` is both."""

    def __call__(self, data, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
        """A tensor of anything that holds numbers, with memory of its own."""
        data = data.detach().clone() if isinstance(data, Tensor) else data
        made = _creation.as_tensor(data, dtype, device, requires_grad, pin_memory)
        made.stop_gradient = not requires_grad
        return made


sys.modules[__name__].__class__ = _Callable

# `paddle.tensor.math.add` and its like: one module under all the names.
for _name in "array attribute creation einsum linalg logic manipulation math ops random search stat to_string".split():
    sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]
    globals().setdefault(_name, sys.modules[__name__])
