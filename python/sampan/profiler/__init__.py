"""The profiler: where the time and the memory of a program go.

>>> import sampan
>>> from sampan import profiler
>>> with profiler.Profiler(on_trace_ready=lambda p: None) as p:
...     y = sampan.ones([2, 2]) @ sampan.ones([2, 2])
>>> "matmul" in p.profiler_result.ops()
True
"""

from .._timer import benchmark
from .profiler import (
    Profiler,
    export_chrome_tracing,
    export_protobuf,
    get_profiler,
)
from .record import RecordEvent, TracerEventType, load_profiler_result
from .states import ProfilerState, ProfilerTarget, SortedKeys, SummaryView, make_scheduler

__all__ = [
    "ProfilerState",
    "ProfilerTarget",
    "make_scheduler",
    "export_chrome_tracing",
    "export_protobuf",
    "Profiler",
    "RecordEvent",
    "load_profiler_result",
    "SortedKeys",
    "SummaryView",
]
