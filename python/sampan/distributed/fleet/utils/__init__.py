"""Helpers of `fleet`."""

from .fs import LocalFS
from .recompute import recompute, recompute_sequential

__all__ = ["LocalFS", "recompute", "recompute_sequential"]
