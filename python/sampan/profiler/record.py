"""Ranges of the user's own."""

from __future__ import annotations

import os
import warnings
from contextlib import ContextDecorator
from enum import Enum

from .. import _core


class TracerEventType(Enum):
    """Kinds of events, as Paddle numbers them."""

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    CudaRuntime = 3
    Kernel = 4
    Memcpy = 5
    Memset = 6
    UserDefined = 7
    OperatorInner = 8
    Forward = 9
    Backward = 10
    Optimization = 11
    Communication = 12
    PythonOp = 13
    PythonUserDefined = 14


_KINDS = {
    TracerEventType.Dataloader: "loader",
    TracerEventType.ProfileStep: "step",
    TracerEventType.Forward: "range",
    TracerEventType.Backward: "backward",
    TracerEventType.Optimization: "optimizer",
    TracerEventType.PythonOp: "range",
    TracerEventType.PythonUserDefined: "range",
}


class RecordEvent(ContextDecorator):
    """A named range of time: a `with` block, from `begin()` to `end()`, or the calls of a function it decorates.

    It is noted while a profiler records, and costs next to nothing otherwise.

    Args:
        name: what tables and traces call it.
        event_type: its kind; the default is a range of the user's.

    >>> import sampan
    >>> from sampan import profiler
    >>> with profiler.Profiler(on_trace_ready=lambda p: None) as p:
    ...     with profiler.RecordEvent("addition"):
    ...         y = sampan.ones([2]) + 1
    >>> "addition" in p.profiler_result.ranges()
    True
    """

    def __init__(self, name: str, event_type: TracerEventType = TracerEventType.PythonUserDefined) -> None:
        if not isinstance(name, str):
            raise TypeError(f"(InvalidType) RecordEvent: name must be a str, got {type(name).__name__}.")
        self.name = name
        self.event_type = event_type
        self.event: _core.ProfilerRange | None = None

    def _recreate_cm(self) -> RecordEvent:
        # Each call of a decorated function is a range of its own, also where it calls itself.
        return RecordEvent(self.name, self.event_type)

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.end()

    def begin(self) -> None:
        """The range begins."""
        if not _core._profiler_on():
            return
        kind = _KINDS.get(self.event_type)
        if kind is None:
            known = ", ".join(t.name for t in _KINDS)
            warnings.warn(f"RecordEvent: {self.event_type} is not for users and is not recorded; use one of {known}")
            return
        self.event = _core.ProfilerRange(self.name, kind)

    def end(self) -> None:
        """The range ends."""
        if self.event is not None:
            self.event.end()
            self.event = None


def load_profiler_result(filename: str) -> _core.ProfilerResult:
    """Reads what `Profiler.export(path, format="json")` wrote.

    Paddle reads its protobuf files here, which this package does not know.
    """
    path = os.fspath(filename)
    if path.endswith(".pb"):
        raise NotImplementedError(
            "(Unimplemented) load_profiler_result: Paddle's protobuf files are not read. "
            'Hint: write with export(path, format="json").'
        )
    return _core._profile_load(path)
