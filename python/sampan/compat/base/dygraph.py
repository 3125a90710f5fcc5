"""Dynamic graphs as they were once switched on: `guard` and `to_variable`."""

from __future__ import annotations

import contextlib

from ... import _core
from ...framework import no_grad

# A package to programs that import from its files: `paddle.base.dygraph.base`.
__path__: list[str] = []
no_grad_ = no_grad
grad = _core.grad


@contextlib.contextmanager
def guard(place=None):
    """Once switched dynamic graphs on; here they always are. A place is used inside."""
    import sampan

    device = getattr(sampan, "device", None)
    if place is None or not hasattr(device, "get_device"):
        yield
        return
    before = device.get_device()
    device.set_device(_device_of(place))
    try:
        yield
    finally:
        device.set_device(before)


def _device_of(place) -> str:
    """`CPUPlace()` as `cpu`, `CUDAPlace(1)` as `gpu:1`."""
    kind = type(place).__name__
    if kind == "CUDAPlace":
        number = place.get_device_id() if hasattr(place, "get_device_id") else 0
        return f"gpu:{number}"
    return "cpu"


def to_variable(value, name=None, zero_copy=None, dtype=None):
    """A tensor of an array, a list or a number; a tensor stays the same."""
    if isinstance(value, _core.Tensor):
        return value if dtype is None else value.astype(dtype)
    made = _core.to_tensor_py(value, dtype)
    if name is not None:
        made.name = name
    return made


def enabled() -> bool:
    """Are graphs dynamic? Always."""
    return True


def enable_dygraph(place=None) -> None:
    """Graphs are always dynamic."""


enable_imperative = enable_dygraph


def disable_dygraph() -> None:
    """There is nothing but dynamic graphs."""
    raise NotImplementedError("(Unimplemented) disable_dygraph: sampan has dynamic graphs only.")
