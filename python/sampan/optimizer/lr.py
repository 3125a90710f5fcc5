"""Learning rates that follow the epochs: Paddle's `optimizer.lr`."""

from __future__ import annotations

from .. import _registry


class LRScheduler:
    """A learning rate that follows the epochs."""

    _definition = None

    def __init__(self, *args, **kwargs):
        self._core, self._settings = self._definition.make(*args, **kwargs)

    def __call__(self):
        return self._core.last_lr

    def step(self, epoch=None):
        """The next epoch."""
        self._core.step(epoch)


_registry.define(globals(), "optimizer.lr", LRScheduler)
