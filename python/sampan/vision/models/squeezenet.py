"""SqueezeNet."""

from ._make import family

__all__ = family(globals(), "SqueezeNet")
