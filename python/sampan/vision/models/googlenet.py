"""GoogLeNet, the first Inception."""

from ._make import family

__all__ = family(globals(), "GoogLeNet")
