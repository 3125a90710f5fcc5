"""The timer of training loops: the costs of reading and of whole steps, and the samples a second.

It is a part of the profiler that data loaders know, without the rest of it.
"""

from __future__ import annotations

import time

from . import _core

# The first steps warm up and are not counted in the summary.
SKIPPED = 10


class _Average:
    """The average since the last time somebody asked."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.times, self.seconds, self.samples = 0, 0.0, 0

    def add(self, seconds: float, samples: int = 0) -> None:
        self.times += 1
        self.seconds += seconds
        self.samples += samples

    def seconds_each(self) -> float:
        return self.seconds / self.times if self.times else 0.0

    def rate(self, of_samples: bool) -> float:
        amount = self.samples if of_samples else self.times
        return amount / self.seconds if self.seconds else 0.0


class _Records:
    """Largest, smallest and sum of a number."""

    def __init__(self) -> None:
        self.max, self.min, self.total = 0.0, float("inf"), 0.0

    def add(self, value: float) -> None:
        self.max, self.min, self.total = max(self.max, value), min(self.min, value), self.total + value

    def row(self, average: float) -> tuple[float, float, float]:
        return average, self.max, self.min if self.total else 0.0


class Event:
    """One task that is timed, such as training; an evaluation within it is another."""

    def __init__(self) -> None:
        self.reader_average, self.batch_average = _Average(), _Average()
        self.reader_records, self.batch_records, self.speed_records = _Records(), _Records(), _Records()
        self.steps = 0
        self.samples = 0
        self.of_samples = True
        self.speed_unit = "samples/s"
        self.dataset: object = None
        self.need_record = True

    def record_reader(self, seconds: float) -> None:
        self.reader_average.add(seconds)
        if self.steps >= SKIPPED:
            self.reader_records.add(seconds)

    def record_batch(self, seconds: float, samples: int | None) -> None:
        if samples is None:
            self.of_samples, self.speed_unit = False, "steps/s"
        self.batch_average.add(seconds, samples or 0)
        self.steps += 1
        if self.steps > SKIPPED:
            self.batch_records.add(seconds)
            self.samples += samples or 0
            self.speed_records.add((samples or 0 if self.of_samples else 1) / max(seconds, 1e-9))

    def summary(self) -> str:
        """The table; empty where there were too few steps."""
        counted = self.steps - SKIPPED
        if counted <= 0:
            return ""
        reader, batch = self.reader_records.total / counted, self.batch_records.total / counted
        speed = (self.samples if self.of_samples else counted) / max(self.batch_records.total, 1e-9)
        lines = ["Perf Summary".center(100, "=")]
        if reader:
            lines.append(f"Reader Ratio: {100 * reader / batch:.3f}%")
        lines.append(f"Time Unit: s, IPS Unit: {self.speed_unit}")
        lines.append(_line("", "avg", "max", "min"))
        rows = [("batch_cost", self.batch_records.row(batch)), ("ips", self.speed_records.row(speed))]
        if reader:
            rows.insert(0, ("reader_cost", self.reader_records.row(reader)))
        lines += [_line(name, *(f"{value:.5f}" for value in values)) for name, values in rows]
        return "\n".join(lines)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.center(15) for cell in cells) + " |"


class Benchmark:
    """Times the steps of training loops. Loaders tell it of reading, `Profiler.step` of steps; tasks may nest."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._step_began = self._reading_began = 0.0

    @property
    def current_event(self) -> Event | None:
        return self.events[-1] if self.events else None

    def begin(self) -> Event:
        """A task begins."""
        self.events.append(Event())
        self._step_began = time.perf_counter()
        return self.events[-1]

    def forget(self, event: Event) -> None:
        """A task that nobody will end."""
        self.events = [other for other in self.events if other is not event]

    def before_reader(self) -> None:
        """A batch is asked for."""
        self._reading_began = time.perf_counter()

    def after_reader(self) -> None:
        """The batch is there."""
        event = self.current_event
        if event is not None and event.need_record:
            event.record_reader(time.perf_counter() - self._reading_began)

    def step(self, num_samples: int | None = None) -> None:
        """A step is done."""
        event = self.current_event
        if event is not None and event.need_record:
            now = time.perf_counter()
            event.record_batch(now - self._step_began, num_samples)
            self._step_began = now

    def step_info(self, unit: str) -> str:
        """The averages since the last call."""
        event = self.current_event
        if event is None:
            raise RuntimeError("(PreconditionNotMet) step_info: the profiler was not started. Hint: call start() first.")
        message = ""
        if event.reader_average.times:
            message += f" reader_cost: {event.reader_average.seconds_each():.5f} s"
        if event.batch_average.times:
            event.speed_unit = f"{unit}/s" if event.of_samples else "steps/s"
            message += f" batch_cost: {event.batch_average.seconds_each():.5f} s"
            message += f" ips: {event.batch_average.rate(event.of_samples):.3f} {event.speed_unit}"
        event.reader_average.reset()
        event.batch_average.reset()
        return message

    def end(self) -> None:
        """The task ends: its summary is printed."""
        if self.events:
            summary = self.events.pop().summary()
            if summary:
                print(summary)
            self._step_began = time.perf_counter()

    def check_if_need_record(self, dataset: object) -> None:
        """A pass over a data set begins: another set than the task's own pauses the timer until that one is back."""
        event = self.current_event
        if event is None:
            return
        if event.dataset is None:
            event.dataset = dataset
        was, event.need_record = event.need_record, event.dataset is dataset
        if event.need_record and not was:
            self._step_began = time.perf_counter()

    def watches(self) -> bool:
        """Does anybody want to know of reading?"""
        return bool(self.events) or _core._profiler_on()


_BENCHMARK = Benchmark()


def benchmark() -> Benchmark:
    """The one timer of the process."""
    return _BENCHMARK
