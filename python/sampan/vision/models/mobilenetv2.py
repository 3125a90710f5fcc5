"""MobileNet, version 2."""

from ._make import family

__all__ = family(globals(), "MobileNetV2")
