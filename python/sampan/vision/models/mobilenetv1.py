"""MobileNet, version 1."""

from ._make import family

__all__ = family(globals(), "MobileNetV1")
