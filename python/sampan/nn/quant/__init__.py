"""Layers that compute on a grid of codes: Paddle's `nn.quant`."""

from . import format, qat, stub
from .stub import QuanterStub, Stub

__all__ = ["QuanterStub", "Stub", "format", "qat", "stub"]
