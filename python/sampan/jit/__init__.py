"""Paddle's `jit`: programs as graphs that are saved, loaded and run without their code."""

from __future__ import annotations

from .saving import save
from .to_static import StaticFunction, enable_to_static, ignore_module, not_to_static, to_static

__all__ = [
    "TranslatedLayer",
    "enable_to_static",
    "ignore_module",
    "load",
    "not_to_static",
    "save",
    "set_code_level",
    "set_verbosity",
    "to_static",
]


def __getattr__(name: str):
    # It is a layer, and layers know `jit`.
    if name in ("TranslatedLayer", "load"):
        from . import translated

        return getattr(translated, name)
    raise AttributeError(f"module 'sampan.jit' has no attribute {name!r}")


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Does nothing: rewritten code is not shown."""


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Does nothing: rewritten code is not shown."""
