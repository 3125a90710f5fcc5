"""Signals: Paddle's `signal`."""

from .. import _registry

globals().update(_registry.functions("signal"))
