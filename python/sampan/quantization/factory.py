"""Quanters that are made when the layer they belong to is there."""

from __future__ import annotations

import sys


class QuanterFactory:
    """The arguments of a quanter; `_get_class` says which."""

    def __init__(self, *args, **kwargs):
        self._args, self._kwargs = args, kwargs

    @property
    def args(self):
        return self._args

    @property
    def kwargs(self):
        return self._kwargs

    def _get_class(self):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} says no class of quanters.")

    def _instance(self, layer):
        return self._get_class()(layer, *self._args, **self._kwargs)

    def __repr__(self):
        words = [*map(str, self._args), *(f"{k}={v}" for k, v in self._kwargs.items())]
        return f"{type(self).__name__}({','.join(words)})"


ObserverFactory = QuanterFactory


def quanter(class_name: str):
    """Decorates a quanter's class: its module gets a factory of this name.

    >>> from sampan.quantization import BaseQuanter, quanter
    >>> @quanter("Nothing")
    ... class NothingLayer(BaseQuanter):
    ...     def __init__(self, layer, bits=8):
    ...         super().__init__()
    ...         self.bits = bits
    ...     def forward(self, x): return x
    ...     def scales(self): return None
    ...     def zero_points(self): return None
    ...     def quant_axis(self): return -1
    ...     def bit_length(self): return self.bits
    >>> Nothing(bits=4)
    Nothing(bits=4)
    """

    def decorate(target):
        made = type(class_name, (QuanterFactory,), {"_get_class": lambda self: target, "__module__": target.__module__})
        # Where the decorator was written, which a class in a test or notebook need not have as its module.
        home = sys._getframe(1).f_globals
        home[class_name] = made
        if "__all__" in home:
            home["__all__"].append(class_name)
        return target

    return decorate
