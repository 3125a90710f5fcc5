"""Limits on gradients: Paddle's `nn.ClipGradBy…`."""

from __future__ import annotations

from .. import _core, _registry


class ClipGradBase:
    """A limit on gradients: for an optimizer's `grad_clip`, or called with pairs of parameter and gradient."""

    _definition = None

    def __init__(self, *args, **kwargs):
        self._core, self._settings = self._definition.make(*args, **kwargs)

    def __call__(self, params_grads):
        """New pairs whose gradients keep the limit; a parameter whose `need_clip` is off keeps its gradient."""
        return _core._apply_clip(self._core, list(params_grads))

    def __getattr__(self, name):
        settings = self.__dict__.get("_settings", {})
        if name in settings:
            return settings[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __reduce__(self):
        return _remake, (type(self), self._settings)

    def __str__(self):
        inner = ", ".join(f"{name}={value}" for name, value in self._settings.items())
        return f"{type(self).__name__}({inner})"


def _remake(cls, settings):
    return cls(**settings)


class ClipGradByValue(ClipGradBase):
    _definition = _registry.classes("nn")["ClipGradByValue"]
    __doc__ = _definition.doc

    @property
    def min(self):
        """The smallest value."""
        low = self._settings["min"]
        return -self._settings["max"] if low is None else low


class ClipGradByNorm(ClipGradBase):
    _definition = _registry.classes("nn")["ClipGradByNorm"]
    __doc__ = _definition.doc


class ClipGradByGlobalNorm(ClipGradBase):
    _definition = _registry.classes("nn")["ClipGradByGlobalNorm"]
    __doc__ = _definition.doc
