"""Tensors that stages of a pipeline give each other; shapes and dtypes go before them."""

from __future__ import annotations

import numpy

from .... import _core
from ...objects import _packed, _room, _unpacked
from ...outbox import Outbox


class Neighbours:
    """The stages before and after this one, which receive what it sends while it computes on."""

    def __init__(self, group):
        self._group = group._group
        self.stage, self.count = group.rank, group.nranks
        self._sent = Outbox(self._group)

    def send(self, value, stage: int) -> None:
        """Gives a tensor, or a tuple of tensors, to another stage."""
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if part is not None and not isinstance(part, _core.Tensor):
                raise TypeError(
                    f"(InvalidType) pipeline: stages give each other tensors, or tuples of them, got {type(part).__name__}."
                )
        told = [None if p is None else [p.dtype.name, list(p.shape), bool(p.stop_gradient)] for p in parts]
        head = _packed([isinstance(value, tuple), told])
        self._begin(_core.to_tensor_py(numpy.array([head.shape[0]])), stage)
        self._begin(head, stage)
        for part in parts:
            if part is not None:
                self._begin(part.detach(), stage)

    def _begin(self, tensor, stage: int) -> None:
        self._sent.send(tensor, self._group.ranks[stage])

    def receive(self, stage: int):
        """What another stage gives."""
        from .... import zeros

        source = self._group.ranks[stage]

        def filled(room):
            self._group.recv(room, source, True)
            return room

        size = filled(_core.to_tensor_py(numpy.zeros(1, "int64"))).item()
        several, told = _unpacked(filled(_room(size)))
        parts = []
        for about in told:
            part = None if about is None else filled(zeros(about[1], dtype=about[0]))
            if part is not None:
                part.stop_gradient = about[2]
            parts.append(part)
        return tuple(parts) if several else parts[0]

    def finish(self) -> None:
        """Waits until all that was sent has gone."""
        self._sent.finish()
