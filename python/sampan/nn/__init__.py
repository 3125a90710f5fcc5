"""Layers: Paddle's `nn`."""

from .._core import Parameter
from . import functional, init, initializer, layer, quant, utils
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .decode import BeamSearchDecoder, dynamic_decode
from .layer import *  # noqa: F403
from .layer import LayerDict, LayerList, SmoothL1Loss, loss
from .layer.layers import Layer
from .utils import spectral_norm

Module, ModuleList, ModuleDict = Layer, LayerList, LayerDict
HuberLoss = SmoothL1Loss
