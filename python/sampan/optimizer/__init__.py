"""Optimizers: Paddle's `optimizer`."""

from __future__ import annotations

from .. import _registry
from . import lr


class Optimizer:
    """Changes parameters by their gradients."""

    _definition = None

    def __init__(self, *args, **kwargs):
        self._core, self._settings = self._definition.make(*args, **kwargs)

    def step(self, closure=None):
        """Changes the parameters by their gradients."""
        return self._core.step(closure)

    def clear_grad(self, set_to_zero=True):
        """Forgets the gradients."""
        self._core.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """One step."""
        self._core.step()
        return None, []

    def get_lr(self):
        """The learning rate now."""
        return self._core.get_lr()

    def set_lr(self, value):
        """Sets the learning rate."""
        self._core.set_lr(float(value))

    def state_dict(self):
        """Everything it remembers."""
        return self._core.state_dict()

    def set_state_dict(self, state_dict):
        """Goes on from what it remembered."""
        self._core.set_state_dict(state_dict)


_registry.define(globals(), "optimizer", Optimizer)
