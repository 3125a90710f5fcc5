"""MobileNet, version 3."""

from ._make import family

__all__ = family(globals(), "MobileNetV3Small", "MobileNetV3Large")
