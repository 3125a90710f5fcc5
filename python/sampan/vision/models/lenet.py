"""LeNet."""

from ._make import family

__all__ = family(globals(), "LeNet")
