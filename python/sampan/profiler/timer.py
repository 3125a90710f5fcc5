"""The timer, under Paddle's name."""

from .._timer import Benchmark, Event, benchmark

__all__ = ["Benchmark", "Event", "benchmark"]
