"""What a program says about its inputs: the part of Paddle's `static` that eager programs use."""

from __future__ import annotations

from .._core import Tensor as Variable
from .._creation import create_parameter
from . import amp, nn
from .guards import cpu_places, device_guard, name_scope
from .input import InputSpec
from .io import load_inference_model, normalize_program, save_inference_model

__all__ = [
    "InputSpec",
    "Variable",
    "amp",
    "cpu_places",
    "create_parameter",
    "device_guard",
    "load_inference_model",
    "name_scope",
    "nn",
    "normalize_program",
    "save_inference_model",
]


class _Missing(AttributeError, NotImplementedError):
    """Both, so that `hasattr` and `from … import` can be asked."""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise _Missing(
        f"(Unimplemented) sampan.static.{name}: static graphs are not part of sampan yet. "
        "Hint: write the program eagerly; every line runs as it is written."
    )
