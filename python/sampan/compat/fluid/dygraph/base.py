"""`guard` and `to_variable`, where programs of 1.x import them from."""

from ...base.dygraph import disable_dygraph, enable_dygraph, enabled, grad, guard, no_grad, to_variable  # noqa: F401
