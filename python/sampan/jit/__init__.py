"""Paddle's `jit`: decorators that mark what is to be compiled. Everything runs eagerly here, to the same results."""

from __future__ import annotations

from .to_static import StaticFunction, enable_to_static, ignore_module, not_to_static, to_static

__all__ = [
    "enable_to_static",
    "ignore_module",
    "load",
    "not_to_static",
    "save",
    "set_code_level",
    "set_verbosity",
    "to_static",
]


def _not_yet(name: str, hint: str):
    return NotImplementedError(f"(Unimplemented) jit.{name}: programs are not saved as graphs yet. Hint: {hint}")


def save(layer, path, input_spec=None, **configs):
    """Not there yet."""
    raise _not_yet(
        "save", "sampan.save(layer.state_dict(), 'net.pdparams') keeps the parameters; build the network from its "
        "code again."
    )


def load(path, **configs):
    """Not there yet."""
    raise _not_yet(
        "load", "build the network from its code and call net.set_state_dict(sampan.load('net.pdparams'))."
    )


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Does nothing: no code is rewritten."""


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Does nothing: no code is rewritten."""
