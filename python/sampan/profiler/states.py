"""What a profiler can be told: states, targets, orders and views."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum


class SummaryView(Enum):
    """The tables of `Profiler.summary`."""

    DeviceView = 0
    OverView = 1
    ModelView = 2
    DistributedView = 3
    KernelView = 4
    OperatorView = 5
    MemoryView = 6
    MemoryManipulationView = 7
    UDFView = 8


class ProfilerState(Enum):
    """What a profiler does in a step: nothing, get ready, record, or record and hand the result over at its end."""

    CLOSED = 0
    READY = 1
    RECORD = 2
    RECORD_AND_RETURN = 3


class ProfilerTarget(Enum):
    """Devices to profile. This build computes on the CPU."""

    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM_DEVICE = 3


class SortedKeys(Enum):
    """What the table of ops is sorted by. The GPU's times are the CPU's here."""

    CPUTotal = 0
    CPUAvg = 1
    CPUMax = 2
    CPUMin = 3
    GPUTotal = 4
    GPUAvg = 5
    GPUMax = 6
    GPUMin = 7


RECORDING = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """The state of each step: after `skip_first` steps, rounds of `closed`, `ready` and `record` steps.

    Args:
        closed: steps without the profiler.
        ready: steps before the recording.
        record: steps that are recorded; the last one hands the result over.
        repeat: rounds; 0 goes on until the profiler stops.
        skip_first: steps before the first round.

    >>> from sampan import profiler
    >>> states = profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1)
    >>> [states(step).name for step in range(5)]
    ['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']
    """
    given = {"closed": closed, "ready": ready, "record": record, "repeat": repeat, "skip_first": skip_first}
    for name, value in given.items():
        least = 1 if name == "record" else 0
        if not isinstance(value, int) or value < least:
            raise ValueError(
                f"(InvalidArgument) make_scheduler: {name} must be an integer of at least {least}, got {value!r}."
            )
    if ready == 0:
        warnings.warn("make_scheduler: ready=0 records from the first step on, which may be slower than the rest")

    def state_of(step: int) -> ProfilerState:
        if step < 0:
            raise ValueError(f"(InvalidArgument) make_scheduler: a step is not negative, got {step}.")
        rounds, place = divmod(step - skip_first, closed + ready + record)
        if step < skip_first or 0 < repeat <= rounds or place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        last = place == closed + ready + record - 1
        return ProfilerState.RECORD_AND_RETURN if last else ProfilerState.RECORD

    return state_of
