"""Options of arithmetic that Paddle took over from torch: `add(x, y, alpha=2)`, `divide(x, y, rounding_mode="floor")`."""

from __future__ import annotations

from . import _core
from ._core import Tensor


def call(name: str, inplace: bool, args: tuple, kwargs: dict):
    """Calls `add`, `subtract` or `divide` with such an option."""
    kwargs = dict(kwargs)
    if name == "divide":
        return _divide(inplace, args, kwargs, kwargs.pop("rounding_mode", None))
    x, y = _operands(name, args, kwargs, "alpha")
    alpha = kwargs.pop("alpha", 1)
    return _core.op(name + "_" if inplace else name)(x, y if alpha == 1 else y * alpha, **kwargs)


def _operands(name: str, args: tuple, kwargs: dict, option: str) -> list:
    operands = list(args)
    for names in (("x", "input"), ("y", "other"))[len(operands) :]:
        found = next((n for n in names if n in kwargs), None)
        if found is None:
            raise TypeError(f"(InvalidType) {name}: argument `{names[0]}` is missing. Hint: {name}(x, y, {option}).")
        operands.append(kwargs.pop(found))
    return operands[:2]


def _divide(inplace: bool, args: tuple, kwargs: dict, mode: str | None):
    if mode not in (None, "floor", "trunc"):
        raise ValueError(f"(InvalidArgument) divide: rounding_mode must be None, 'floor' or 'trunc', got {mode!r}.")
    x, y = _operands("divide", args, kwargs, "rounding_mode")
    if mode is None:
        return _core.op("divide_" if inplace else "divide")(x, y, **kwargs)
    if mode == "floor":
        result = _core.op("floor_divide")(x, y)
    else:
        result = _core.op("trunc")(x / y)
        integers = all("int" in v.dtype.name if isinstance(v, Tensor) else isinstance(v, int) for v in (x, y))
        result = result.astype(x.dtype) if integers else result
    if inplace:
        x[...] = result
        return x
    return result
