"""Tools: Paddle's `utils`."""

from . import dlpack  # noqa: F401
