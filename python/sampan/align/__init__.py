"""Two implementations of one network side by side: what they do, which layer is which, where they part, and why.

The sides are models of PyTorch, Paddle, sampan and ONNX Runtime, any two of them.

>>> import sampan
>>> from sampan import align, nn
>>> one = nn.Sequential(nn.Linear(4, 3), nn.GELU())
>>> other = nn.Sequential(nn.Linear(4, 3), nn.GELU(approximate=True))
>>> other.set_state_dict(one.state_dict())
([], [])
>>> report = align.align(one, other, sampan.randn([2, 4]).numpy())
>>> report.first_forward, report.findings[0].cause
('1', 'gelu_approximation')
"""

from ._align import align
from ._bisect import bisect
from ._convert import Conversion, convert_weights
from ._pairing import LayerPair, Pairing, ParameterPair, Transform, copy_weights, pair, structure
from ._recorder import Recorder, record
from ._recording import Recording, load
from ._report import Finding, Report, compare

__all__ = [
    "Conversion",
    "Finding",
    "LayerPair",
    "Pairing",
    "ParameterPair",
    "Recorder",
    "Recording",
    "Report",
    "Transform",
    "align",
    "bisect",
    "compare",
    "convert_weights",
    "copy_weights",
    "load",
    "pair",
    "record",
    "structure",
]
