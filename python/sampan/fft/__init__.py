"""Fourier transforms: Paddle's `fft`."""

from .. import _registry

globals().update(_registry.functions("fft"))
