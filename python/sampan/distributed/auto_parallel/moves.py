"""From one placement to another, along one axis of a mesh, with gradients.

The gradient of a cut tensor is cut as it is; that of a replicated one, and that of a partial one, is replicated.
"""

from __future__ import annotations

from ... import _core
from ...autograd import PyLayer
from ..communication import ReduceOp


def spans(extent: int, count: int) -> list[tuple[int, int]]:
    """Where the parts of an axis begin and end: as large as the first, the last ones smaller or empty."""
    size = -(-extent // count)
    return [(min(i * size, extent), min((i + 1) * size, extent)) for i in range(count)]


def _cut(x, dim: int, start: int, end: int):
    return x[(slice(None),) * dim + (slice(start, end),)].clone()


def _exchanged(engine, rooms: list, parts: list) -> list:
    engine.all_to_all(rooms, parts, True)
    return rooms


class Gather(PyLayer):
    """Parts to the whole; each gets its part of the gradient."""

    @staticmethod
    def forward(ctx, x, engine, dim, extent):
        from ... import concat, zeros

        x = x.detach().contiguous()
        ctx.told = engine, dim, extent
        shape = x.shape
        rooms = [
            zeros([*shape[:dim], end - start, *shape[dim + 1 :]], dtype=x.dtype)
            for start, end in spans(extent, engine.size())
        ]
        return concat(_exchanged(engine, rooms, [x] * engine.size()), dim)

    @staticmethod
    def backward(ctx, grad):
        engine, dim, extent = ctx.told
        return _cut(grad, dim, *spans(extent, engine.size())[engine.rank])


class Take(PyLayer):
    """The whole to parts; the gradients are put together."""

    @staticmethod
    def forward(ctx, x, engine, dim):
        ctx.told = engine, dim, x.shape[dim]
        return _cut(x.detach(), dim, *spans(x.shape[dim], engine.size())[engine.rank])

    @staticmethod
    def backward(ctx, grad):
        return Gather.apply(grad, *ctx.told)


class Reduce(PyLayer):
    """Partial to the whole; each gets the gradient."""

    @staticmethod
    def forward(ctx, x, engine, op):
        ctx.told = engine, op
        total = x.detach().clone()
        engine.all_reduce(total, op, True)
        return total

    @staticmethod
    def backward(ctx, grad):
        engine, op = ctx.told
        if op in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD):
            raise NotImplementedError("(Unimplemented) reshard: only sums and means of partial tensors have gradients.")
        return grad.clone() if op == ReduceOp.SUM else grad / engine.size()


class ReduceTake(PyLayer):
    """Partial to parts; the gradients are put together."""

    @staticmethod
    def forward(ctx, x, engine, dim):
        ctx.told = engine, dim, x.shape[dim]
        x, places = x.detach(), spans(x.shape[dim], engine.size())
        parts = [_cut(x, dim, start, end) for start, end in places]
        if len({tuple(part.shape) for part in parts}) > 1:
            total = x.clone()
            engine.all_reduce(total, ReduceOp.SUM, True)
            return _cut(total, dim, *places[engine.rank])
        mine = parts[engine.rank].clone()
        engine.reduce_scatter(mine, parts, ReduceOp.SUM, True)
        return mine

    @staticmethod
    def backward(ctx, grad):
        return Gather.apply(grad, *ctx.told)


class Spread(PyLayer):
    """The whole to a sum of parts: the first process has all of it. Each gets the gradient."""

    @staticmethod
    def forward(ctx, x, engine):
        from ... import zeros_like

        x = x.detach()
        return x.clone() if engine.rank == 0 else zeros_like(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class Turn(PyLayer):
    """Cut along one axis to cut along another, and the gradient back."""

    @staticmethod
    def forward(ctx, x, engine, old, new, extent):
        from ... import concat, zeros

        x = x.detach()
        ctx.told = engine, new, old, x.shape[new]
        mine = spans(x.shape[new], engine.size())
        parts = [_cut(x, new, start, end) for start, end in mine]
        rooms = []
        for start, end in spans(extent, engine.size()):
            shape = list(x.shape)
            shape[old], shape[new] = end - start, mine[engine.rank][1] - mine[engine.rank][0]
            rooms.append(zeros(shape, dtype=x.dtype))
        return concat(_exchanged(engine, rooms, parts), old)

    @staticmethod
    def backward(ctx, grad):
        return Turn.apply(grad, *ctx.told)


class Copy(PyLayer):
    """A replicated tensor for parts of a computation: their gradients are summed."""

    @staticmethod
    def forward(ctx, x, engine):
        ctx.engine = engine
        return x.detach().clone()

    @staticmethod
    def backward(ctx, grad):
        return Reduce.apply(grad, ctx.engine, ReduceOp.SUM)


class Absent(PyLayer):
    """A tensor without values, of a mesh that this process is none of, with other extents of a part."""

    @staticmethod
    def forward(ctx, x, extents):
        ctx.shape = x.shape
        return _core._room(extents, x.dtype, False)

    @staticmethod
    def backward(ctx, grad):
        return _core._room(ctx.shape, grad.dtype, False)
