"""First values of parameters: Paddle's `nn.initializer`."""

from __future__ import annotations

from ... import _registry


class Initializer:
    """Makes the first values of a parameter."""

    _definition = None

    def __init__(self, *args, **kwargs):
        if self._definition is not None:
            self._core, self._settings = self._definition.make(*args, **kwargs)

    def __call__(self, param, block=None):
        """Fills a parameter."""
        param.set_value(self._core.init(param.shape, param.dtype))
        return param


_registry.define(globals(), "nn.initializer", Initializer)
