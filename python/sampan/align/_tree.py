"""Tensors in lists, tuples and dicts."""

from __future__ import annotations


def leaves(value, is_tensor) -> list:
    """The tensors of a value, from left to right."""
    found = []

    def see(v):
        if is_tensor(v):
            found.append(v)
        return v

    transform(value, see, is_tensor)
    return found


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
