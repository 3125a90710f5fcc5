"""`Profiler`: records a program, step by step, and tells where its time goes."""

from __future__ import annotations

import datetime
import json
import numbers
import os
import socket
import warnings
from collections.abc import Callable, Iterable

from .. import _core
from .._timer import Event, benchmark
from .record import RecordEvent, TracerEventType
from .states import RECORDING, ProfilerState, ProfilerTarget, SortedKeys, SummaryView, make_scheduler

# About 200 bytes each; what comes later is counted and dropped.
_CAPACITY = 1_000_000
_ORDERS = {"Total": "total", "Avg": "average", "Max": "max", "Min": "min"}


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """What to give as `on_trace_ready` to get a trace file in `dir_name`, for Perfetto or `chrome://tracing`.

    Args:
        dir_name: the folder; it is made if need be.
        worker_name: how the name of the file begins; by default with host and process.
    """
    dir_name = os.fspath(dir_name)
    try:
        os.makedirs(dir_name, exist_ok=True)
    except OSError as error:
        raise RuntimeError(
            f"(External) export_chrome_tracing: cannot make the folder {dir_name!r} for the trace: {error.strerror}."
        ) from error
    return _chrome_tracing(dir_name, worker_name)


def _chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    def save(prof: Profiler) -> None:
        worker = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
        prof.export(os.path.join(dir_name, f"{worker}_time_{now}.paddle_trace.json"), "json")

    return save


def export_protobuf(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """Paddle's protobuf files are not written; `export_chrome_tracing` writes traces that Perfetto opens."""
    raise _no_protobuf("export_protobuf")


def _no_protobuf(who: str) -> NotImplementedError:
    return NotImplementedError(
        f"(Unimplemented) {who}: Paddle's protobuf format is not written. "
        'Hint: use export_chrome_tracing(dir_name) or export(path, format="json").'
    )


def _scheduler(given) -> Callable[[int], ProfilerState]:
    if given is None:
        return lambda step: ProfilerState.RECORD
    if callable(given):
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(n, int) for n in given):
        start, end = given
        if end > start and end > 0:
            start = max(start, 0)
            ready = int(start >= 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return make_scheduler(closed=max(start - 1, 0), ready=ready, record=end - start, repeat=1)
    raise ValueError(
        "(InvalidArgument) Profiler: scheduler must be a function of the step, or a pair (start, end) with start < end, "
        f"got {given!r}."
    )


def _targets(given: Iterable[ProfilerTarget] | None) -> set[ProfilerTarget]:
    wanted = set(given) if given else {ProfilerTarget.CPU}
    for target in wanted:
        if not isinstance(target, ProfilerTarget):
            raise TypeError(f"(InvalidType) Profiler: targets must hold ProfilerTarget values, got {target!r}.")
    for target in sorted(wanted - {ProfilerTarget.CPU}, key=lambda t: t.value):
        warnings.warn(f"Profiler: there is no {target.name} in this build, {target} is left out; the CPU is profiled")
    return {ProfilerTarget.CPU}


class Profiler:
    """Records what a program does, in the steps that `scheduler` chooses.

    Args:
        targets: devices; this build has the CPU alone, and leaves others out with a warning.
        scheduler: a function from the number of a step to its `ProfilerState`, such as `make_scheduler` gives; a pair
            `(start, end)` for the steps from start up to end; None to record from start to stop.
        on_trace_ready: called with the profiler when a recording is complete; by default a trace is written to
            `./profiler_log/`.
        record_shapes: note the shapes and dtypes of each call's inputs; the table of ops then has a line for each.
        profile_memory: note the bytes that each call makes and gives back.
        timer_only: time steps and reading alone, without a recording.
        emit_nvtx: taken for Paddle's sake; there are no NVIDIA tools to talk to.
        custom_device_types: taken for Paddle's sake.
        with_flops: `summary` also prints the work of each layer.

    >>> import sampan
    >>> from sampan import profiler
    >>> net = sampan.nn.Linear(4, 2)
    >>> with profiler.Profiler(scheduler=(1, 3), on_trace_ready=lambda p: None) as p:
    ...     for step in range(4):
    ...         net(sampan.ones([8, 4])).mean().backward()
    ...         p.step()
    >>> [name for name in ("linear", "linear_grad") if name in p.profiler_result.ops()]
    ['linear', 'linear_grad']
    """

    def __init__(
        self,
        *,
        targets: Iterable[ProfilerTarget] | None = None,
        scheduler: Callable[[int], ProfilerState] | tuple[int, int] | None = None,
        on_trace_ready: Callable[[Profiler], None] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        timer_only: bool = False,
        emit_nvtx: bool = False,
        custom_device_types: list[str] = [],
        with_flops: bool = False,
    ) -> None:
        self.targets = _targets(targets)
        self.scheduler = _scheduler(scheduler)
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise TypeError(
                f"(InvalidType) Profiler: on_trace_ready must be a function of the profiler, got {on_trace_ready!r}."
            )
        # Unlike a folder the user names, this one is made when there is something to write.
        self.on_trace_ready = on_trace_ready or _chrome_tracing("./profiler_log/")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.timer_only = timer_only
        self.emit_nvtx = emit_nvtx
        self.custom_device_types = custom_device_types
        self.with_flops = with_flops
        self.step_num = 0
        self.previous_state = ProfilerState.CLOSED
        self.current_state = self.scheduler(0)
        self.record_event: RecordEvent | None = None
        self.profiler_result: _core.ProfilerResult | None = None
        self._recording = False
        self._task: Event | None = None

    def __del__(self) -> None:
        # One that was lost between start and stop must not block the next.
        if getattr(self, "_task", None) is not None:
            benchmark().forget(self._task)
            if self._recording:
                _core._profiler_stop()

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        self.stop()

    def start(self) -> None:
        """Begins, with step 0."""
        self.step_num, self.current_state = 0, self.scheduler(0)
        if not self.timer_only and self.current_state in RECORDING:
            self._record()
        self._task = benchmark().begin()
        self._begin_step()

    def stop(self) -> None:
        """Ends; what was recorded since the last result is handed to `on_trace_ready`."""
        if self._task is None:
            return
        self._task = None
        benchmark().end()
        if self.timer_only:
            return
        if self.step_num == 0:
            self._end_step()
        if self.current_state == ProfilerState.READY:
            warnings.warn("Profiler: stopped while it was ready to record, nothing was recorded")
        self.current_state = ProfilerState.CLOSED
        self._finish()
        # What came after the last step is not a step: it ends when nothing records any more.
        self._end_step()

    def step(self, num_samples: int | None = None) -> None:
        """One step is done, the next begins.

        Args:
            num_samples: samples in the step, for the throughput that `step_info` tells.
        """
        if num_samples is not None and (not isinstance(num_samples, numbers.Real) or num_samples < 0):
            raise ValueError(
                f"(InvalidArgument) Profiler.step: num_samples must be a number of samples, got {num_samples!r}."
            )
        benchmark().step(num_samples)
        if self.timer_only:
            return
        self._end_step()
        self.previous_state = self.current_state
        self.step_num += 1
        self.current_state = self.scheduler(self.step_num)
        if not isinstance(self.current_state, ProfilerState):
            raise TypeError(
                f"(InvalidType) Profiler: the scheduler must return a ProfilerState, got {self.current_state!r}."
            )
        self._change(self.previous_state, self.current_state)
        self._begin_step()

    def step_info(self, unit: str | None = None) -> str:
        """The averages of reading, step and throughput since the last call, such as
        ` reader_cost: 0.00014 s batch_cost: 0.00441 s ips: 907.009 images/s`.

        Args:
            unit: what `num_samples` of `step` counts; `samples` by default.
        """
        return benchmark().step_info(unit or "samples")

    def export(self, path: str = "", format: str = "json") -> None:
        """Writes the last recording to a file, whole or not at all.

        Args:
            path: the file.
            format: `json`, Chrome's trace format. `pb`, Paddle's protobuf, is not written.
        """
        if format == "pb":
            raise _no_protobuf("Profiler.export")
        if format != "json":
            raise ValueError(f"(InvalidArgument) Profiler.export: format must be 'json', got {format!r}.")
        if not os.fspath(path):
            raise ValueError("(InvalidArgument) Profiler.export: path names no file. Hint: export('trace.json').")
        if self.profiler_result is None:
            warnings.warn("Profiler.export: nothing was recorded yet, no file is written")
        else:
            self.profiler_result.save(path)

    def summary(
        self,
        sorted_by: SortedKeys = SortedKeys.CPUTotal,
        op_detail: bool = True,
        thread_sep: bool = False,
        time_unit: str = "ms",
        views: SummaryView | list[SummaryView] | None = None,
    ) -> None:
        """Prints the last recording as tables: an overview, the layers, the ops, the user's ranges.

        Args:
            sorted_by: the order of ops.
            op_detail: show below each op those that it calls.
            thread_sep: a line for each op and thread.
            time_unit: `s`, `ms`, `us` or `ns`.
            views: the tables to print; None for all.
        """
        if not isinstance(sorted_by, SortedKeys):
            raise TypeError(f"(InvalidType) Profiler.summary: sorted_by must be a SortedKeys, got {sorted_by!r}.")
        result = self.profiler_result
        if result is None:
            warnings.warn("Profiler.summary: nothing was recorded yet. Hint: call stop() first")
            return
        wanted = [views] if isinstance(views, SummaryView) else list(SummaryView) if views is None else views
        if sorted_by.name.startswith("GPU"):
            warnings.warn(f"Profiler.summary: there is no GPU in this build, {sorted_by} sorts by the CPU's times")
        tables = []
        if SummaryView.OverView in wanted or SummaryView.ModelView in wanted:
            tables.append(result.overview(time_unit))
        if SummaryView.ModelView in wanted:
            tables.append(result.layers(time_unit))
        if SummaryView.OperatorView in wanted or (SummaryView.MemoryView in wanted and self.profile_memory):
            order = _ORDERS[sorted_by.name[3:]]
            tables.append(result.ops(order, op_detail, thread_sep, self.record_shapes, time_unit))
        if SummaryView.UDFView in wanted:
            tables.append(result.ranges(time_unit))
        if self.with_flops:
            flops = sum(event["flops"] for event in result.events())
            tables.append(f"{flops / 1e9:.3f} GFLOP in products and convolutions")
        print("\n".join(table for table in tables if table))

    def _record(self) -> None:
        _core._profiler_start(self.record_shapes, self.profile_memory, _CAPACITY)
        self._recording = True

    def _finish(self, hand_over: bool = True) -> None:
        if not self._recording:
            return
        self._recording = False
        result = _core._profiler_stop()
        if hand_over:
            self.profiler_result = result
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        self.record_event = RecordEvent(f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep)
        self.record_event.begin()

    def _end_step(self) -> None:
        if self.record_event is not None:
            self.record_event.end()
            self.record_event = None

    def _change(self, before: ProfilerState, now: ProfilerState) -> None:
        if before == ProfilerState.RECORD and now not in RECORDING:
            warnings.warn(
                f"Profiler: the scheduler goes from RECORD to {now.name}, what was recorded is dropped. "
                "Hint: the last step to record is RECORD_AND_RETURN"
            )
            self._finish(hand_over=False)
        elif before == ProfilerState.READY and now == ProfilerState.CLOSED:
            warnings.warn("Profiler: the scheduler goes from READY to CLOSED, nothing was recorded")
        elif before == ProfilerState.RECORD_AND_RETURN:
            self._finish()
        if now in RECORDING and before != ProfilerState.RECORD:
            self._record()


def get_profiler(config_path: str) -> Profiler:
    """A profiler with the arguments of a JSON file: `targets`, `scheduler` as a pair, `timer_only`, `record_shapes`,
    `profile_memory` and `with_flops`."""
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    known = {"targets", "scheduler", "timer_only", "record_shapes", "profile_memory", "with_flops"}
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(f"(InvalidArgument) get_profiler: {config_path} sets {unknown}, known are {sorted(known)}.")
    if "targets" in config:
        config["targets"] = [ProfilerTarget[name.upper()] for name in config["targets"]]
    return Profiler(**config)
