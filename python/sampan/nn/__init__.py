"""Layers: Paddle's `nn`."""

from .._core import Parameter
from . import functional, init, initializer, utils
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from . import layer
from .layer import *  # noqa: F403
from .layer import homes
from .layer.layers import Layer
from .utils import spectral_norm

loss = homes.loss
Module, ModuleList, ModuleDict = Layer, LayerList, LayerDict  # noqa: F405
SiLU, HuberLoss = Silu, SmoothL1Loss  # noqa: F405
