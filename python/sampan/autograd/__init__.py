"""Gradients: Paddle's `autograd`."""

from __future__ import annotations

from .._core import backward, grad
from ..framework import enable_grad, no_grad, set_grad_enabled
from .functional import hessian, jacobian
from .py_layer import Function, PyLayer, PyLayerContext, saved_tensors_hooks

__all__ = [
    "Function",
    "PyLayer",
    "PyLayerContext",
    "backward",
    "hessian",
    "jacobian",
    "saved_tensors_hooks",
]
