"""From one mesh to another: each process of the new mesh gets its part from a process of the old one that has it.

A process that is none of a mesh has its tensors without values: ops on them compute nothing, and their gradients flow, without
values too, to where the process has a part again. So all processes run one program.
"""

from __future__ import annotations

import contextlib

from ... import _core
from ...autograd import PyLayer
from ..group import everybody
from ..outbox import Outbox
from ..parallel import get_rank
from .placement import Replicate
from .tensor import box_at, moved, wrap

# While a schedule says so, messages are on their way while this process computes on.
_sent: Outbox | None = None


@contextlib.contextmanager
def computing_on():
    """Inside, whoever sends goes on at once; at the end all has gone."""
    global _sent
    _sent = Outbox(everybody("reshard")._group)
    try:
        yield
        _sent.finish()
    finally:
        _sent = None


def _send(engine, tensor, to: int) -> None:
    if _sent is not None:
        _sent.send(tensor, to)
    else:
        engine.send(tensor, to, True)


def _carried(part, shape, old, before, new, after):
    """The part of a tensor on a new mesh that this process has, from the parts on the old one; no placement is partial."""
    here, engine = get_rank(), everybody("reshard")._group
    like = old.shape == new.shape and before == after
    if not like and old.coordinates() is not None:
        part = _core._plain(moved(wrap(part, old, before, shape), [Replicate()] * old.ndim)).detach()
    found = None
    holders = old.process_ids
    for at, to in enumerate(new.process_ids):
        # Where both meshes cut alike a process gets the part of its counterpart; else a box of the whole, its own if it has it.
        source = holders[at] if like else to if to in holders else holders[at % len(holders)]
        if here not in (source, to):
            continue
        offset, extents = box_at(shape, new, after, new.coordinates(to))
        if here == source:
            cut = tuple(slice(o, o + n) for o, n in zip(offset, extents))
            piece = (part if like or not cut else part[cut]).detach().clone()
            if to == here:
                found = piece
            else:
                _send(engine, piece.contiguous(), to)
        else:
            found = _core._room(extents, part.dtype, True)
            engine.recv(found, source, True)
    return _core._room(box_at(shape, new, after)[1], part.dtype, False) if found is None else found


class _Across(PyLayer):
    @staticmethod
    def forward(ctx, part, shape, old, before, new, after):
        ctx.told = shape, new, after, old, before
        return _carried(part.detach(), shape, old, before, new, after)

    @staticmethod
    def backward(ctx, grad):
        return _carried(grad.detach(), *ctx.told)


def between(tensor, mesh, placements: list):
    """The same values on another mesh; gradients take the way back. All processes of both meshes call it."""
    tensor = moved(tensor, [Replicate() if p.is_partial() else p for p in tensor.placements])
    after = [Replicate() if p.is_partial() else p for p in placements]
    shape, told = tensor.shape, (tensor.process_mesh, tensor.placements, mesh, after)
    found = wrap(_Across.apply(_core._plain(tensor), shape, *told), mesh, after, shape)
    return found if after == placements else moved(found, placements)
