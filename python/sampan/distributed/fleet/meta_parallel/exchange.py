"""Collectives with gradients, for layers that are cut into parts."""

from __future__ import annotations

from ....autograd import PyLayer
from ...communication import ReduceOp


def _sum(tensor, group):
    total = tensor.detach().clone()
    group._group.all_reduce(total, ReduceOp.SUM, True)
    return total


class _Copy(PyLayer):
    """The same values to all parts; their gradients are summed."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return _sum(grad, ctx.group)


class _Sum(PyLayer):
    """The sum over all parts; each gets the gradient."""

    @staticmethod
    def forward(ctx, x, group):
        return _sum(x, group)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class _Join(PyLayer):
    """The parts side by side along the last axis; each gets its part of the gradient."""

    @staticmethod
    def forward(ctx, x, group):
        from .... import concat, zeros

        ctx.group, ctx.size = group, x.shape[-1]
        parts = [zeros(x.shape, dtype=x.dtype) for _ in range(group.nranks)]
        group._group.all_gather(parts, x, True)
        return concat(parts, -1)

    @staticmethod
    def backward(ctx, grad):
        start = ctx.group.rank * ctx.size
        return grad[..., start : start + ctx.size].clone()


class _Part(PyLayer):
    """One part of the last axis; the gradients are put side by side."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group, size = group, x.shape[-1] // group.nranks
        return x[..., group.rank * size : (group.rank + 1) * size].clone()

    @staticmethod
    def backward(ctx, grad):
        return _Join.apply(grad, ctx.group)


def _call(function):
    return lambda x, group: function.apply(x, group) if group.nranks > 1 else x


copy_to_parts, sum_of_parts, join_parts, take_part = map(_call, (_Copy, _Sum, _Join, _Part))


def largest_of_parts(tensor, group):
    """The elementwise maximum over all parts, without a gradient."""
    largest = tensor.detach().clone()
    if group.nranks > 1:
        group._group.all_reduce(largest, ReduceOp.MAX, True)
    return largest
