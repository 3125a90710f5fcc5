"""What a program asks of NVIDIA's GPUs: Paddle's `device.cuda`. Without one, everything that needs it says what is missing."""

from __future__ import annotations

from ... import _core
from .. import (
    Event,
    Stream,
    _number,
    device,
    device_count,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_bf16_supported,
    manual_seed,
    stream_guard,
)
from .. import current_stream as _current_stream
from .. import empty_cache as _empty_cache
from . import graphs
from .graphs import cuda_graph


def current_stream(device=None) -> Stream:
    """The stream that ops of a GPU run on."""
    _number(device)
    return _current_stream()


def synchronize(device=None) -> None:
    """Waits for all work of a GPU."""
    _core._gpu_synchronize(_number(device))


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the GPU."""
    _empty_cache()


def memory_allocated(device=None) -> int:
    """Bytes that tensors hold on a GPU."""
    return _core._gpu_memory(_number(device))[0]


def memory_reserved(device=None) -> int:
    """Bytes that are held or kept for reuse on a GPU."""
    return _core._gpu_memory(_number(device))[1]


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held at once on a GPU."""
    return _core._gpu_memory(_number(device))[2]


def max_memory_reserved(device=None) -> int:
    """The most bytes that were held or kept for reuse at once on a GPU."""
    return _core._gpu_memory(_number(device))[3]


def reset_max_memory_allocated(device=None) -> None:
    """Starts the peak of memory anew."""
    _core._gpu_reset_peak(_number(device))


reset_max_memory_reserved = reset_max_memory_allocated


def memory_summary(device=None) -> str:
    """A table of the memory of a GPU."""
    number = _number(device)
    held, reserved, most_held, most_reserved = _core._gpu_memory(number)
    name, _, _, total = _core._gpu_info(number)
    rows = [("held by tensors", held, most_held), ("held or kept for reuse", reserved, most_reserved)]
    lines = [f"{name} (gpu:{number}), {total / 2**20:,.0f} MiB", f"{'MiB':24}{'now':>12}{'most':>12}"]
    return "\n".join(lines + [f"{what:24}{now / 2**20:12,.1f}{most / 2**20:12,.1f}" for what, now, most in rows])


def allow_tf32(products: bool | None = None, convolutions: bool | None = None) -> tuple[bool, bool]:
    """Says whether products and convolutions of float32 numbers may be rounded to TF32, ten bits of mantissa, which is several
    times as fast; what is left out stays. As it comes, convolutions may and products may not, and with
    `NVIDIA_TF32_OVERRIDE=0` in the environment neither may. Gives both settings."""
    now = _core._gpu_rounding()
    new = tuple(old if given is None else bool(given) for old, given in zip(now, (products, convolutions)))
    _core._gpu_set_rounding(*new)
    return new


def vmm_compact(device=None) -> None:
    """Gives memory that is kept for reuse back to the GPU: blocks in use are never moved."""
    _core._gpu_release(_number(device))


__all__ = [
    "Event",
    "Stream",
    "allow_tf32",
    "cuda_graph",
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
