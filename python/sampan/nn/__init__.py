"""Layers: Paddle's `nn`."""

from .. import _registry
from . import functional, initializer
from .layer import BuiltinLayer, Layer, ParameterList, LayerDict, LayerList, Sequential

_registry.define(globals(), "nn", BuiltinLayer)
