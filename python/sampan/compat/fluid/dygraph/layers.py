"""`fluid.dygraph.Layer`."""

from __future__ import annotations

import weakref

from ....nn import layer as new

_LIVING: weakref.WeakSet = weakref.WeakSet()


class Layer(new.Layer):
    """A part of a network. Optimizers without a list of parameters find those of all living layers."""

    def __init__(self, name_scope=None, dtype="float32"):
        super().__init__(name_scope, dtype)
        _LIVING.add(self)


def living_parameters() -> list:
    """The parameters of all living layers, each once, in the order of their names."""
    found = {id(p): p for layer in list(_LIVING) for p in layer.parameters()}
    return sorted(found.values(), key=lambda p: p.name)
