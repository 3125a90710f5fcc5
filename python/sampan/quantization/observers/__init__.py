"""Layers that look at numbers to find their range."""

from __future__ import annotations

from ... import abs, max, maximum, to_tensor, where, zeros_like
from ..base import BaseObserver
from ..factory import ObserverFactory

__all__ = ["AbsmaxObserver", "GroupWiseWeightObserver"]


class _Observer(BaseObserver):
    def __init__(self, layer, quant_bits=8):
        super().__init__()
        self._quant_bits = quant_bits
        self._max = self._scale = None

    def forward(self, input):
        found = self._range(input.detach())
        self._max = found if self._max is None or not self._keeps else maximum(found, self._max)
        return input

    def cal_thresholds(self):
        self._scale = self._max

    def scales(self):
        self.cal_thresholds()
        return self._scale

    def zero_points(self):
        return None if self.scales() is None else zeros_like(self._scale)

    def quant_axis(self):
        return -1

    def bit_length(self):
        return self._quant_bits


class AbsmaxObserverLayer(_Observer):
    """The largest magnitude so far."""

    _keeps = True

    def _range(self, x):
        return max(abs(x))


class AbsmaxObserver(ObserverFactory):
    """The largest magnitude that was seen."""

    def __init__(self, quant_bits=8):
        super().__init__(quant_bits=quant_bits)

    def _get_class(self):
        return AbsmaxObserverLayer


class GroupWiseWeightObserverLayer(_Observer):
    """The largest magnitude of each group of inputs of a matrix."""

    _keeps = False

    def __init__(self, layer, quant_bits=8, group_size=128):
        super().__init__(layer, quant_bits)
        if group_size not in (64, 128):
            raise ValueError(f"(InvalidArgument) GroupWiseWeightObserver: group_size is 64 or 128, got {group_size}.")
        self.group_size = group_size

    def _range(self, x):
        if x.ndim != 2 or x.shape[0] % self.group_size:
            raise ValueError(
                f"(InvalidArgument) GroupWiseWeightObserver: a matrix of a multiple of {self.group_size} rows is expected, got "
                f"shape {list(x.shape)}."
            )
        groups = x.reshape([x.shape[0] // self.group_size, self.group_size, x.shape[1]])
        largest = max(abs(groups), axis=1)
        return where(largest == 0, to_tensor(1e-8, dtype=largest.dtype), largest)


class GroupWiseWeightObserver(ObserverFactory):
    """One range for each group of rows of a matrix."""

    def __init__(self, quant_bits=8, group_size=128):
        super().__init__(quant_bits=quant_bits, group_size=group_size)

    def _get_class(self):
        return GroupWiseWeightObserverLayer
