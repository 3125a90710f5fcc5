"""What a program asks of CUDA before it decides: there is none here, and whatever needs one says so."""

from __future__ import annotations

from ... import _core
from .. import (
    Event,
    Stream,
    device,
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    manual_seed,
    stream_guard,
)

_GPU = "gpu"


def _missing(name: str, doc: str):
    def needs_gpu(*_args, **_kwargs):
        _core._check_place(_GPU)

    needs_gpu.__name__ = needs_gpu.__qualname__ = name
    needs_gpu.__doc__ = doc
    return needs_gpu


current_stream = _missing("current_stream", "The stream that ops of a GPU run on.")
synchronize = _missing("synchronize", "Waits for all work of a GPU.")
get_device_properties = _missing("get_device_properties", "Name and memory of a GPU.")
get_device_name = _missing("get_device_name", "The name of a GPU.")
get_device_capability = _missing("get_device_capability", "The capability of a GPU.")
memory_allocated = _missing("memory_allocated", "Bytes that tensors hold on a GPU.")
max_memory_allocated = _missing("max_memory_allocated", "The most bytes that tensors held at once on a GPU.")
memory_reserved = _missing("memory_reserved", "Bytes that are reserved on a GPU.")
max_memory_reserved = _missing("max_memory_reserved", "The most bytes that were reserved at once on a GPU.")
reset_max_memory_allocated = _missing("reset_max_memory_allocated", "Starts the peak of memory anew.")
reset_max_memory_reserved = _missing("reset_max_memory_reserved", "Starts the peak of memory anew.")
memory_summary = _missing("memory_summary", "A table of the memory of a GPU.")
vmm_compact = _missing("vmm_compact", "Compacts the memory of a GPU.")

__all__ = [
    "Event",
    "Stream",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "stream_guard",
    "synchronize",
    "vmm_compact",
]
