"""The functions with which programs for Paddle 2 profile; `sampan.profiler` has the tools behind them."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

from ..profiler import Profiler, get_profiler

__all__ = ["Profiler", "get_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]

_STATES = ("CPU", "GPU", "All")
_OPTIONS = ("Default", "OpDetail", "AllOpDetail")
_ORDERS = {None: "total", "default": "total", "total": "total", "calls": "calls", "max": "max", "min": "min"}
_ORDERS |= {"ave": "average"}
_running: list[tuple[Profiler, bool]] = []


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Begins to record; `stop_profiler` prints the table. A profiler that runs goes on.

    Args:
        state: `CPU`, `GPU` or `All`; this build has the CPU.
        tracer_option: `Default`, or `OpDetail` and `AllOpDetail` for the ops inside ops.
    """
    if state not in _STATES:
        raise ValueError(f"(InvalidArgument) start_profiler: state must be one of {_STATES}, got {state!r}.")
    if tracer_option not in _OPTIONS:
        raise ValueError(
            f"(InvalidArgument) start_profiler: tracer_option must be one of {_OPTIONS}, got {tracer_option!r}."
        )
    if state == "GPU":
        warnings.warn("start_profiler: there is no GPU in this build, the CPU is profiled")
    if not _running:
        running = Profiler(on_trace_ready=lambda _: None)
        running.start()
        _running.append((running, tracer_option != "Default"))


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:
    """Ends the recording, prints its ops and writes a trace.

    Args:
        sorted_key: `calls`, `total`, `max`, `min` or `ave`.
        profile_path: the file for the trace, in Chrome's format.
    """
    if sorted_key not in _ORDERS:
        known = [key for key in _ORDERS if key]
        raise ValueError(f"(InvalidArgument) stop_profiler: sorted_key must be one of {known}, got {sorted_key!r}.")
    if _running:
        running, detail = _running.pop()
        running.stop()
        print(running.profiler_result.ops(_ORDERS[sorted_key], detail))
        running.export(profile_path)


def reset_profiler() -> None:
    """Forgets what was recorded so far, and goes on."""
    if _running:
        running, detail = _running.pop()
        running.stop()
        start_profiler("CPU", "OpDetail" if detail else "Default")


@contextmanager
def profiler(
    state: str, sorted_key: str | None = None, profile_path: str = "/tmp/profile", tracer_option: str = "Default"
):
    """Records a `with` block: `start_profiler` before it, `stop_profiler` after it."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)
