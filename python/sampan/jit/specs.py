"""Arguments of a traced function: which of them are tensors, and what is known of these."""

from __future__ import annotations

import copy
import dis
import os
import sys

from .. import _core

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def source() -> str | None:
    """The line of the program that is running, outside of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place(error: BaseException) -> str:
    """The line of the program in which an error arose, outside of this package."""
    found, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def line_of(code, name: str) -> str:
    """Where a function first names a variable or an attribute: `" (file:line)"`, or nothing."""
    if code is None:
        return ""
    lines = (i.positions.lineno for i in dis.get_instructions(code) if i.argval == name and i.positions.lineno)
    line = next(lines, None)
    return "" if line is None else f" ({code.co_filename}:{line})"


def is_spec(value) -> bool:
    """Does it stand for a tensor?"""
    from ..static import InputSpec

    return isinstance(value, (InputSpec, _core.Tensor)) or hasattr(value, "__array__") and hasattr(value, "shape")


def to_spec(value, name: str | None):
    """What is known of an input, from an `InputSpec`, a tensor or an array."""
    from ..static import InputSpec

    if isinstance(value, InputSpec):
        if value.dtype is None:
            raise TypeError(f"(InvalidType) InputSpec: the dtype of {value} is not known.")
        shape, dtype, own, stop = value.shape, value.dtype, value.name, value.stop_gradient
    elif isinstance(value, _core.Tensor):
        shape, dtype, own, stop = value.shape, value.dtype, None, False
    else:
        shape, dtype, own, stop = value.shape, str(value.dtype), None, False
    return (list(shape), dtype, own or name, stop)


def flatten(value, leaves: list, is_leaf):
    """A tree of lists, tuples and dicts with numbers in place of its leaves, which go into a list."""
    if is_leaf(value):
        leaves.append(value)
        return _Leaf(len(leaves) - 1)
    if isinstance(value, dict):
        return _like(value, {key: flatten(item, leaves, is_leaf) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        items = [flatten(item, leaves, is_leaf) for item in value]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items) if isinstance(value, tuple) else items
    return value


def _like(value, entries: dict):
    """A dict of the same class with other values; a class may take anything to make one, but can be copied."""
    if type(value) is dict:
        return entries
    made = copy.copy(value)
    for key, item in entries.items():
        made[key] = item
    return made


def unflatten(tree, leaves):
    """The tree with leaves in place of the numbers."""
    if isinstance(tree, _Leaf):
        return leaves[tree.at]
    if isinstance(tree, dict):
        return _like(tree, {key: unflatten(item, leaves) for key, item in tree.items()})
    if isinstance(tree, (list, tuple)):
        items = [unflatten(item, leaves) for item in tree]
        if hasattr(tree, "_fields"):
            return type(tree)(*items)
        return type(tree)(items) if isinstance(tree, tuple) else items
    return tree


class _Leaf:
    """The place of a tensor in a tree."""

    def __init__(self, at: int):
        self.at = at


def tensors_of(value) -> list:
    """The tensors in a tree."""
    found: list = []
    flatten(value, found, lambda v: isinstance(v, _core.Tensor))
    return found
