"""Layers: Paddle's `nn`."""

from .. import _registry
from .._core import Parameter
from . import functional, init, initializer, utils
from .builtin import BuiltinLayer
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .containers import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from .layer import Layer
from .rnn import RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from .transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from .utils import spectral_norm

_registry.define(globals(), "nn", BuiltinLayer)

Module, ModuleList, ModuleDict = Layer, LayerList, LayerDict
