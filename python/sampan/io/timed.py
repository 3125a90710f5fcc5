"""Batches whose reading is timed while somebody wants to know."""

from __future__ import annotations

from .. import _core
from .._timer import benchmark

_TIMER = benchmark()


class TimedPass:
    """The batches of a pass, which `_next` makes."""

    _dataset: object = None

    def __iter__(self):
        return self

    def __next__(self):
        if not _TIMER.watches():
            return self._next()
        _TIMER.check_if_need_record(self._dataset)
        waiting = _core.ProfilerRange("DataLoader", "loader")
        _TIMER.before_reader()
        try:
            batch = self._next()
            _TIMER.after_reader()
            return batch
        finally:
            waiting.end()
