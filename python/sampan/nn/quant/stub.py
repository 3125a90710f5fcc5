"""Places in a network where numbers go to a grid."""

from __future__ import annotations

from ..layer.layers import Layer
from .format import ConvertibleQuantedLayer


class Stub(Layer):
    """A place for a quanter, where a function and no layer computes. It gives what it is given.

    Its own `observer` is a factory of quanters; without one it is the one that the configuration has for it.
    """

    def __init__(self, observer=None):
        super().__init__()
        self._observer = observer

    def forward(self, input):
        return input


class QuanterStub(ConvertibleQuantedLayer):
    """What a `Stub` becomes."""

    def __init__(self, layer, q_config):
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input):
        return input if self._observer is None else self._observer(input)

    def weights_to_quanters(self):
        return []

    def activation_quanters(self):
        return ["_observer"]
