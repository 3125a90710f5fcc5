"""Inception, version 3."""

from ._make import family

__all__ = family(globals(), "InceptionV3")
