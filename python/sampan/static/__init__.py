"""Descriptions of inputs that need not exist yet: Paddle's `static`."""

from .input import InputSpec

__all__ = ["InputSpec"]
