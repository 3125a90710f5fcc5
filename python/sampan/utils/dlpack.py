"""Tensors of other libraries on the same memory."""

from .._core import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
