"""Streams and events. The processor finishes each op before the next line runs; a GPU works in the order of the calls, on one
stream, and the time between two events is that of the work between them."""

from __future__ import annotations

import time

from .. import _core


class Event:
    """A moment on a stream, for measuring the time between two of them."""

    def __init__(self, device=None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.device = _core._get_device() if device is None else _core._check_place(device)
        # On a GPU an event of its own; else the time at which it was recorded.
        self._gpu = None if self.device == "cpu" else _core.GpuEvent(int(self.device.rpartition(":")[2]))
        self._at: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Marks the moment, after all work that was begun before."""
        self._at = time.perf_counter()
        if self._gpu is not None:
            self._gpu.record()

    def query(self) -> bool:
        """Has all work before it been done?"""
        return self._gpu is None or self._gpu.query()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds to another event."""
        if self._at is None or end_event._at is None:
            raise RuntimeError("(PreconditionNotMet) elapsed_time: both events must be recorded first.")
        if self._gpu is not None and end_event._gpu is not None:
            return self._gpu.elapsed_time(end_event._gpu)
        return 1000.0 * (end_event._at - self._at)

    def synchronize(self) -> None:
        """Waits for the work before it."""
        if self._gpu is not None:
            self._gpu.synchronize()


class Stream:
    """An order of work; each device has one."""

    def __init__(self, device=None, priority: int = 2, stream_base=None):
        self.device = _core._get_device() if device is None else _core._check_place(device)

    def wait_event(self, event: Event) -> None:
        """Lets later work wait for an event."""

    def wait_stream(self, stream: Stream) -> None:
        """Lets later work wait for another stream."""

    def record_event(self, event: Event | None = None) -> Event:
        """Marks this moment."""
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Has all work been done?"""
        return self.record_event(Event(self.device)).query()

    def synchronize(self) -> None:
        """Waits for all work."""
        synchronize()


_CURRENT = Stream()


def current_stream(device=None) -> Stream:
    """The stream that ops run on."""
    if device is not None:
        _core._check_place(device)
    return _CURRENT


def set_stream(stream: Stream) -> Stream:
    """Runs ops on a stream; gives back the one before."""
    global _CURRENT
    before, _CURRENT = _CURRENT, stream
    return before


class stream_guard:
    """Runs ops inside on a stream."""

    def __init__(self, stream: Stream | None = None):
        self.stream = stream or _CURRENT

    def __enter__(self):
        self._before = set_stream(self.stream)
        return self

    def __exit__(self, *_):
        set_stream(self._before)
        return False


StreamContext = stream_guard


def synchronize(device=None) -> None:
    """Waits for all work of a device, of the current one by default."""
    name = _core._get_device() if device is None else f"gpu:{device}" if isinstance(device, int) else device
    name = _core._check_place(name)
    if name != "cpu":
        _core._gpu_synchronize(int(name.rpartition(":")[2]))
