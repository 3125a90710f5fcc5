"""What observers and quanters have in common."""

from __future__ import annotations

import abc

from ..nn import Layer


class BaseQuanter(Layer, abc.ABC):
    """A layer that moves numbers to a grid of codes, or looks at them to find one.

    `scales()` is the number that the largest code stands for: one, or one for each place of `quant_axis()`.
    """

    @abc.abstractmethod
    def forward(self, input): ...

    @abc.abstractmethod
    def scales(self): ...

    @abc.abstractmethod
    def zero_points(self): ...

    @abc.abstractmethod
    def quant_axis(self): ...

    @abc.abstractmethod
    def bit_length(self): ...


class BaseObserver(BaseQuanter):
    """A quanter that only looks: what it is given it gives back, and its range follows from what it saw."""

    @abc.abstractmethod
    def cal_thresholds(self): ...
