"""The layers, sorted as Paddle's sources are: `nn.layer.conv`, `nn.layer.common` …"""

from . import pickling  # noqa: F401  (registers tensors)
from .container import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from .extra import AdaptiveLogSoftmaxWithLoss, SyncBatchNorm, TripletMarginWithDistanceLoss
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
from . import families
from .builtin import BuiltinLayer

# No layers, and written elsewhere.
ClipGradByGlobalNorm = ClipGradByNorm = ClipGradByValue = BeamSearchDecoder = None
_own = {"__module__": "sampan.nn", "__signature__": BuiltinLayer.__dict__["__signature__"]}
_registry.define(globals(), "nn", BuiltinLayer, families.BASES, **_own)
del ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, BeamSearchDecoder

from .homes import publish  # noqa: E402

# Layers that have a module of their own are found there.
_elsewhere = ("container", "layers", "ordered", "rnn", "transformer", "builtin")
_layers = {name: cls for name, cls in list(globals().items()) if isinstance(cls, type) and issubclass(cls, Layer)}
_shared = {cls.__name__: cls for cls in families.BASES.values()}
_here = {n: cls for n, cls in _layers.items() if cls.__module__.rpartition(".")[2] not in _elsewhere}
globals().update(publish(_here | _shared))
__all__ = [name for name in _layers if name != "BuiltinLayer"]
