"""Linear algebra: Paddle's `linalg`."""

from .. import _registry

globals().update(_registry.functions("linalg"))

matmul = _registry.functions("")["matmul"]
