"""Layers that move numbers to a grid while a network learns."""

from __future__ import annotations

from ... import _C_ops, abs, max, no_grad
from ...nn.initializer import Constant
from ..base import BaseQuanter
from ..factory import QuanterFactory

__all__ = ["FakeQuanterWithAbsMaxObserver"]


class FakeQuanterWithAbsMaxObserverLayer(BaseQuanter):
    """Numbers on the grid of their largest magnitude, averaged over the batches; gradients pass as they are."""

    def __init__(self, layer, name=None, moving_rate=0.9, bit_length=8, dtype="float32"):
        super().__init__()
        self._moving_rate, self._bit_length = moving_rate, bit_length
        for kept, value in (("_scale", 0.001), ("_state", 1.0), ("_accum", 1.0)):
            made = self.create_parameter([1], dtype=dtype, default_initializer=Constant(value))
            made.stop_gradient = True
            setattr(self, kept, made)

    def forward(self, input):
        if self.training:
            with no_grad():
                largest = max(abs(input)).reshape([1]).cast(self._scale.dtype)
                self._state.set_value(self._moving_rate * self._state + 1)
                self._accum.set_value(self._moving_rate * self._accum + largest)
                self._scale.set_value(self._accum / self._state)
        top = 2 ** (self._bit_length - 1) - 1
        return _C_ops.fake_quantize_dequantize(input, self._scale / top, 0, float(-top - 1), float(top))

    def bit_length(self):
        return self._bit_length

    def quant_axis(self):
        return -1

    def scales(self):
        return self._scale

    def zero_points(self):
        return None


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Codes of the largest magnitude, averaged with `moving_rate`."""

    def __init__(self, moving_rate=0.9, bit_length=8, dtype="float32", name=None):
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

    def _get_class(self):
        return FakeQuanterWithAbsMaxObserverLayer
