"""The layers, sorted as Paddle's sources are: `nn.layer.conv`, `nn.layer.common` …"""

from . import pickling  # noqa: F401  (registers tensors)
from .container import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from .extra import AdaptiveLogSoftmaxWithLoss, SyncBatchNorm
from .layers import Layer
from .rnn import GRU, LSTM, RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNN, SimpleRNNCell
from .transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

from ... import _registry
from ..clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .builtin import BuiltinLayer

_registry.define(globals(), "nn", BuiltinLayer, __module__="sampan.nn")

from . import homes  # noqa: E402

homes.publish({name: cls for name, cls in list(globals().items()) if isinstance(cls, type) and issubclass(cls, Layer)})
globals().update({name: module for name, module in vars(homes).items() if type(module) is type(homes)})
__all__ = [name for name, cls in globals().items() if isinstance(cls, type) and cls is not BuiltinLayer]
