"""Tensors in lists, tuples and dicts."""

from __future__ import annotations

import copy
import dataclasses


def leaves(value, is_tensor) -> list:
    """The tensors of a value, from left to right."""
    found = []

    def see(v):
        if is_tensor(v):
            found.append(v)
        return v

    transform(value, see, is_tensor)
    return found


def parts(value, is_tensor, place: str = "") -> list:
    """All that is in a value, tensor or not, with where it is: `[("['a'][0]", 3), …]`."""
    if is_tensor(value):
        return [(place, value)]
    if isinstance(value, dict):
        inside = [(f"[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        inside = [(f".{n}", v) for n, v in zip(value._fields, value)]
    elif isinstance(value, (list, tuple)):
        inside = [(f"[{i}]", v) for i, v in enumerate(value)]
    elif _is_record(value):
        inside = [(f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        return [(place, value)]
    return [found for step, v in inside for found in parts(v, is_tensor, place + step)]


def _is_record(value) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def transform(value, change, is_tensor):
    """The value with `change(tensor)` in the place of each tensor."""
    if is_tensor(value):
        return change(value)
    if isinstance(value, dict):
        changed = {k: transform(v, change, is_tensor) for k, v in value.items()}
        return changed if type(value) is dict else _like(value, changed)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(transform(v, change, is_tensor) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(transform(v, change, is_tensor) for v in value)
    if _is_record(value):
        changed = copy.copy(value)
        for f in dataclasses.fields(value):
            # A frozen one too.
            object.__setattr__(changed, f.name, transform(getattr(value, f.name), change, is_tensor))
        return changed
    return value


def _like(value, changed):
    try:
        return type(value)(changed)
    except TypeError:
        return changed


def plain(value):
    """A setting as JSON has it, or None if it is nothing that a table would show."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)) and len(value) <= 16:
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())
    text = str(value)
    # dtypes and the like; an object's address would differ in every run.
    return text if len(text) <= 60 and " at 0x" not in text and "\n" not in text else None
