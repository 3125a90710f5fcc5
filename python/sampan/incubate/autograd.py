"""Derivatives of functions: Paddle's `incubate.autograd`."""

from __future__ import annotations

from ..autograd import functional as _functional
from ..autograd.functional import jvp, vjp

__all__ = ["Hessian", "Jacobian", "disable_prim", "enable_prim", "grad", "jvp", "prim_enabled", "vjp"]


def _flat(tensors, batched: bool):
    """Several tensors as one row, or one row a case."""
    from .. import concat

    items = list(tensors) if isinstance(tensors, (tuple, list)) else [tensors]
    rows = [t.reshape([t.shape[0], -1] if batched else [-1]) for t in items]
    return rows[0] if len(rows) == 1 else concat(rows, axis=-1)


class Jacobian:
    """The Jacobian matrix of a function at `xs`; several inputs or outputs stand side by side."""

    def __init__(self, func, xs, is_batched: bool = False):
        from .. import concat

        items = list(xs) if isinstance(xs, (tuple, list)) else [xs]
        leaves = [x.detach() for x in items]
        for leaf in leaves:
            leaf.stop_gradient = False
        ys = _flat(func(*leaves), is_batched)
        parts = [_functional.Jacobian(ys, x, is_batched)[:] for x in leaves]
        head = list(ys.shape)
        self._value = concat([p.reshape([*head, -1]) for p in parts], axis=-1)

    @property
    def shape(self):
        """The extents of its axes."""
        return self._value.shape

    def __getitem__(self, index):
        return self._value[index]


class Hessian(Jacobian):
    """The matrix of second derivatives of a function that gives one number (or one a case)."""

    def __init__(self, func, xs, is_batched: bool = False):
        from .. import grad as first_grad

        def gradients(*inputs):
            return tuple(first_grad(func(*inputs), list(inputs), create_graph=True))

        super().__init__(gradients, xs, is_batched)


def grad(outputs, inputs, grad_outputs=None):
    """The gradients of outputs with respect to inputs, which can be differentiated again."""
    from .. import grad as plain

    found = plain(outputs, inputs, grad_outputs, create_graph=True)
    return found if isinstance(inputs, (tuple, list)) else found[0]


def enable_prim() -> None:
    """Does nothing: every gradient is written in differentiable ops already."""


def disable_prim() -> None:
    """Does nothing; see `enable_prim`."""


def prim_enabled() -> bool:
    """Is a second way to write gradients switched on? There is only one."""
    return False
