"""Layers: Paddle's `nn`."""

from .. import _registry
from .._core import Parameter
from . import functional, init, initializer, utils
from .builtin import BuiltinLayer
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .containers import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from .extra import AdaptiveLogSoftmaxWithLoss, SyncBatchNorm
from .layer import Layer
from .rnn import GRU, LSTM, RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNN, SimpleRNNCell
from .transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from . import pickling  # noqa: F401  (registers tensors)
from .utils import spectral_norm

_registry.define(globals(), "nn", BuiltinLayer)

Module, ModuleList, ModuleDict = Layer, LayerList, LayerDict
