"""Layers with quanters for what they read and for their weights."""

from __future__ import annotations

from ... import functional as F
from ..format import ConvertibleQuantedLayer

__all__ = ["QuantedConv2D", "QuantedLinear"]


class _Quanted(ConvertibleQuantedLayer):
    def __init__(self, layer, q_config):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = q_config.weight._instance(layer) if q_config.weight is not None else None
        self.activation_quanter = q_config.activation._instance(layer) if q_config.activation is not None else None

    def forward(self, input):
        if self.activation_quanter is not None:
            input = self.activation_quanter(input)
        return self._compute(input, self.weight if self.weight_quanter is None else self.weight_quanter(self.weight))

    def weights_to_quanters(self):
        return [("weight", "weight_quanter")]

    def activation_quanters(self):
        return ["activation_quanter"]


class QuantedLinear(_Quanted):
    """A `Linear` on a grid."""

    def _compute(self, x, weight):
        return F.linear(x, weight, self.bias)


class QuantedConv2D(_Quanted):
    """A `Conv2D` on a grid."""

    def __init__(self, layer, q_config):
        super().__init__(layer, q_config)
        for name in ("_stride", "_padding", "_dilation", "_groups", "_data_format", "_padding_mode"):
            setattr(self, name, getattr(layer, name, None))
        if self._padding_mode not in (None, "zeros"):
            raise NotImplementedError(f"(Unimplemented) QuantedConv2D: padding_mode is zeros, got {self._padding_mode!r}.")

    def _compute(self, x, weight):
        return F.conv2d(
            x, weight, self.bias, self._stride, self._padding, self._dilation, self._groups, self._data_format or "NCHW"
        )
