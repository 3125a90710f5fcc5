"""Functions of the user's that the core calls."""

from __future__ import annotations

import functools
import types
import weakref


def known_weakly(value):
    """A function for the core that leads to `value`, which the Python object beside it keeps.

    The garbage collector does not look into the core: a function that the core kept, and that holds the optimizer or the
    model, would never be forgotten. Anything but a function stays as it is.
    """
    if not isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return value
    link = weakref.ref(value)

    def call(*args):
        return link()(*args)

    return call


def all_known_weakly(values: dict) -> dict:
    """`known_weakly` of every value."""
    return {name: known_weakly(value) for name, value in values.items()}
