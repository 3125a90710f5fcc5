"""Optimizers: Paddle's `optimizer`."""

from __future__ import annotations

from .. import _registry
from . import _parameter, lr
from .builtin import BuiltinOptimizer
from .optimizer import Optimizer

__all__ = ["Optimizer", "lr"]
__all__ += _registry.define(globals(), "optimizer", BuiltinOptimizer)
