"""ONNX files: networks written as them, and read as layers."""

from __future__ import annotations

from .export import export
from .load import OnnxLayer, load

__all__ = ["export", "load"]
