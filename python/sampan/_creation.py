"""Tensors from other things, and questions about shapes, beyond what single ops do."""

from __future__ import annotations

import math

from . import _core, _registry
from ._core import Tensor
from ._core import to_tensor_py as to_tensor

_OPS = _registry.functions("")
_PLAIN = _registry.plain_functions("")

broadcast_shape = _PLAIN["broadcast_shape"]


def as_tensor(data, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor of anything that holds numbers; a tensor that fits already is given back as it is."""
    if device is not None:
        _core._check_place(device)
    if pin_memory:
        _core._check_place("gpu_pinned")
    if isinstance(data, Tensor) and (dtype is None or data.dtype == dtype):
        return data
    return to_tensor(data, dtype, stop_gradient=not requires_grad)


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of anything that holds numbers; a NumPy array shares its memory unless `copy` says otherwise."""
    if device is not None:
        _core._check_place(device)
    if isinstance(obj, Tensor) and not copy:
        return obj if dtype is None else obj.astype(dtype)
    if copy is False:
        return from_numpy(obj)
    return to_tensor(obj, dtype, stop_gradient=not requires_grad)


def from_numpy(ndarray) -> Tensor:
    """A tensor on the memory of an array: a change of one is seen in the other. Read-only arrays are copied.

    >>> import numpy, sampan
    >>> a = numpy.zeros(2); t = sampan.from_numpy(a); a[0] = 7
    >>> t.tolist()
    [7.0, 0.0]
    """
    if not hasattr(ndarray, "__array_interface__"):
        raise TypeError(f"(InvalidType) from_numpy: a numpy.ndarray is needed, got {type(ndarray).__name__}. Hint: to_tensor.")
    return _core._share_array(ndarray)


def assign(x, output=None) -> Tensor:
    """A copy of a tensor, or a tensor of numbers, lists or arrays; into `output` where there is one."""
    made = _OPS["assign"](x if isinstance(x, Tensor) else to_tensor(x))
    if output is None:
        return made
    output._replace(made)
    return output


def create_parameter(shape, dtype, name=None, attr=None, is_bias: bool = False, default_initializer=None):
    """A parameter of its own, outside any layer."""
    base = _core.Base(_core._unique_name("create_parameter"), dtype)
    made = base.parameter(_ints(shape), attr, is_bias, default_initializer)
    if name is not None and made is not None:
        made.name = name
    return made


def _ints(shape) -> list[int]:
    if isinstance(shape, Tensor):
        return shape.tolist()
    return [int(n) for n in ([shape] if isinstance(shape, int) else shape)]


def range(start=0, end=None, step=1, dtype=None, name=None):
    """Numbers from `start` to `end`, which is included: `range(0, 2)` is 0, 1, 2."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"(InvalidArgument) range: no step of {step} leads from {start} to {end}.")
    count = math.floor((end - start) / step) + 1
    return (_OPS["arange"](count) * step + start).astype(dtype or _core.get_default_dtype())


def numel(x, name=None) -> Tensor:
    """The number of elements, as a 0-d tensor."""
    return _need(x, "numel").numel()


def shape(input) -> Tensor:
    """The shape, as a tensor of int64."""
    extents = _need(input, "shape").shape
    if _core._is_tracing() and extents:
        # Each as a call, so that a graph knows which extent it is.
        return _OPS["concat"]([_OPS["full"]([1], n, "int64") for n in extents])
    return to_tensor(extents, "int64")


def tolist(x):
    """The values as nested lists."""
    return _need(x, "tolist").tolist()


def _need(x, asker: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"(InvalidType) {asker}: a Tensor is needed, got {type(x).__name__}.")
    return x


def broadcast_shapes(*shapes) -> list[int]:
    """The shape that all shapes broadcast to."""
    return _PLAIN["broadcast_shapes"]([list(shape) for shape in shapes])


def check_shape(shape, op_name: str, expected_shape_type=(list, tuple, Tensor), expected_element_type=(int, Tensor), expected_tensor_dtype=("int32", "int64")) -> None:
    """Raises a TypeError unless it can be a shape."""
    if not isinstance(shape, expected_shape_type):
        raise TypeError(f"(InvalidType) {op_name}: a shape is a list of integers, got {type(shape).__name__}.")
    if isinstance(shape, Tensor):
        if shape.dtype.name not in expected_tensor_dtype:
            raise TypeError(f"(InvalidType) {op_name}: a shape holds {' or '.join(expected_tensor_dtype)}, got {shape.dtype.name}.")
        return
    for n in shape:
        if not isinstance(n, expected_element_type):
            raise TypeError(f"(InvalidType) {op_name}: a shape is a list of integers, got {type(n).__name__} in it.")


def where_(condition, x=None, y=None, name=None) -> Tensor:
    """Writes into `x` the elements of `y` where the condition does not hold."""
    _need(x, "where_")[...] = _OPS["where"](condition, x, y)
    return x
