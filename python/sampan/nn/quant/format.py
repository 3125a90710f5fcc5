"""Codes and the numbers they stand for, as layers that a saved network has."""

from __future__ import annotations

from ... import _C_ops, to_tensor, zeros
from ..layer.layers import Layer


def _kept(layer, name, value):
    """A number that is saved with a layer, and not trained."""
    value = value.detach().cast("float32") if hasattr(value, "detach") else to_tensor(value, dtype="float32")
    layer.register_buffer(name, value.reshape([-1]) if value.ndim == 0 else value.clone())


class _Grid(Layer):
    def __init__(self, scales, zero_point=None, quant_axis=None, bit_length=8):
        super().__init__()
        if bit_length != 8:
            raise NotImplementedError(f"(Unimplemented) {type(self).__name__}: codes have 8 bits, got {bit_length}.")
        _kept(self, "_scales", scales)
        _kept(self, "_zero_point", zeros([1]) if zero_point is None else zero_point)
        if self._scales.ndim > 1:
            raise NotImplementedError(f"(Unimplemented) {type(self).__name__}: one range, or one for each place of an axis.")
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._bit_length = bit_length

    @classmethod
    def from_quanter(cls, quanter):
        return cls(quanter.scales(), quanter.zero_points(), quanter.quant_axis(), quanter.bit_length())

    def _step(self):
        return self._scales.scale(1 / 127), None, self._quant_axis if self._scales.shape[0] > 1 else 0


class LinearQuanter(_Grid):
    """Numbers as codes."""

    def forward(self, input):
        return _C_ops.quantize_linear(input, *self._step())


class LinearDequanter(_Grid):
    """Codes as numbers."""

    def forward(self, input):
        return _C_ops.dequantize_linear(input, *self._step())


class LinearQuanterDequanter(Layer):
    """Numbers to a grid and back; a weight is on it already."""

    def __init__(self, quanter, dequanter):
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    def forward(self, input):
        if self._quanter is not None:
            input = self._quanter(input)
        return input if self._dequanter is None else self._dequanter(input)

    @staticmethod
    def from_quanter(quanter):
        return LinearQuanterDequanter(LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter))


class ConvertibleQuantedLayer(Layer):
    """A layer on a grid that can be made one for inference."""

    def __init__(self):
        super().__init__()
        self.converted = False

    def weights_to_quanters(self):
        """Pairs of the names of a weight and of its quanter."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} names no weights.")

    def activation_quanters(self):
        """The names of the quanters of what it reads."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} names no quanters.")

    def _convert(self, remain_weight=False):
        if self.converted:
            return
        for weight, name in self.weights_to_quanters():
            quanter = getattr(self, name)
            if quanter is None:
                continue
            if quanter.scales() is None:
                # Nothing went through it: the weight itself tells its range.
                quanter(getattr(self, weight))
            grid = LinearQuanterDequanter.from_quanter(quanter)
            if remain_weight:
                self.add_sublayer(name, grid)
                continue
            codes = grid._quanter(getattr(self, weight).detach())
            del self._parameters[weight]
            self.register_buffer(weight, codes)
            self.add_sublayer(name, LinearQuanterDequanter(None, grid._dequanter))
        for name in self.activation_quanters():
            quanter = getattr(self, name)
            if quanter is not None and quanter.scales() is not None:
                self.add_sublayer(name, LinearQuanterDequanter.from_quanter(quanter))
        self.converted = True
