"""The devices of this machine: Paddle's `device`."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from ._libraries import find as _find_libraries
from ._places import CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, IPUPlace, Place, XPUPinnedPlace, XPUPlace, _place
from ._streams import Event, Stream, StreamContext, current_stream, set_stream, stream_guard, synchronize


def set_device(device: str | Place) -> Place:
    """Chooses the device on which tensors are made: `'cpu'`, `'gpu'` or `'gpu:0'`, `'gpu:1'`, …"""
    _find_libraries()
    return _place(_core._set_device(device))


def get_device(input=None) -> str | int:
    """The device on which tensors are made; of a tensor, the number of its GPU, -1 for the processor."""
    if input is None:
        return _core._get_device()
    name = _core._device_of(input)
    return -1 if name == "cpu" else int(name.rpartition(":")[2])


set_default_device = set_device
get_default_device = get_device


class device_guard:
    """Makes tensors on a device inside."""

    def __init__(self, device: str | Place | None = None):
        self._device = None if device is None else _core._check_place(device)

    def __enter__(self):
        self._before = _core._get_device()
        if self._device is not None:
            _core._set_device(self._device)
        return self

    def __exit__(self, *_):
        _core._set_device(self._before)
        return False


class device(device_guard):
    """Makes tensors on a device inside; a number is that of an accelerator."""

    def __init__(self, device: str | int | Place | None = None):
        super().__init__(f"gpu:{device}" if isinstance(device, int) else device)


def get_all_device_type() -> list[str]:
    """Kinds of devices that can be used here."""
    return ["cpu", "gpu"] if device_count() else ["cpu"]


def get_all_custom_device_type() -> list[str]:
    """Kinds of devices that came from plugins."""
    return []


def get_available_device() -> list[str]:
    """Devices that are here."""
    return ["cpu", *(f"gpu:{i}" for i in range(device_count()))]


def get_available_custom_device() -> list[str]:
    """Devices of plugins that are here."""
    return []


def device_count() -> int:
    """How many GPUs are here."""
    _find_libraries()
    return _core._gpu_count()[0]


def is_available() -> bool:
    """Is there a GPU?"""
    return device_count() > 0


def _no(_kind: str | None = None) -> bool:
    """False: there is none of that."""
    return False


def is_compiled_with_cuda() -> bool:
    """Can NVIDIA's GPUs be used? Every build can; the question is whether this machine has one."""
    return is_available()


is_compiled_with_rocm = is_compiled_with_xpu = is_compiled_with_ipu = _no
is_compiled_with_cinn = is_compiled_with_custom_device = is_compiled_with_distribute = _no
is_current_stream_capturing = _no


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Does the GPU compute in bfloat16?"""
    return is_available()


def get_cudnn_version() -> int | None:
    """The version of cuDNN, such as 91400, or None without it."""
    if not device_count():
        return None
    _find_libraries()
    return _core._cudnn_version()


def _number(device=None) -> int:
    """The number of a GPU, from a number, a name or a place; the current one by default."""
    _find_libraries()
    name = _core._check_place("gpu" if device is None else f"gpu:{device}" if isinstance(device, int) else device)
    if name == "cpu":
        raise ValueError("(InvalidArgument) the processor has none of this. Hint: name a GPU, such as 'gpu:0'.")
    return int(name.rpartition(":")[2])


class _DeviceProperties(NamedTuple):
    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device=None) -> _DeviceProperties:
    """Name, capability, memory and multiprocessors of a GPU."""
    name, (major, minor), multiprocessors, memory = _core._gpu_info(_number(device))
    return _DeviceProperties(name, major, minor, memory, multiprocessors)


def get_device_name(device=None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    """The capability of a GPU."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def _memory(device, on_gpu: int, on_cpu: int) -> int:
    """A figure of the memory of a device, of the current one by default."""
    name = _core._get_device() if device is None else f"gpu:{device}" if isinstance(device, int) else device
    return _core._memory()[on_cpu] if str(name) in ("cpu", "Place(cpu)") else _core._gpu_memory(_number(name))[on_gpu]


def memory_allocated(device=None) -> int:
    """Bytes that tensors hold now."""
    return _memory(device, 0, 0)


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held at once since the last reset."""
    return _memory(device, 2, 1)


def memory_reserved(device=None) -> int:
    """Bytes that are held or kept for reuse."""
    return _memory(device, 1, 0)


def max_memory_reserved(device=None) -> int:
    """The most bytes that were held or kept for reuse since the last reset."""
    return _memory(device, 3, 1)


def reset_max_memory_allocated(device=None) -> None:
    """Starts the peak of memory anew from what is held now."""
    _core._reset_peak()
    if device is not None or _core._get_device() != "cpu":
        _core._gpu_reset_peak(_number(device))


reset_max_memory_reserved = reset_peak_memory_stats = reset_max_memory_allocated


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system, and to the GPU if one is used."""
    _core._release_cache()
    if _core._get_device() != "cpu":
        _core._gpu_release(_number())


def get_stream_from_external(data_ptr: int, device=None) -> Stream:
    """A stream that another library made."""
    get_device_properties(device)


def ipc_collect() -> None:
    """Nothing to do: no memory is shared between processes."""


def get_rng_state(device=None):
    """The state of the random numbers."""
    from ..framework import get_rng_state

    return get_rng_state(device)[0]


def set_rng_state(new_state, device=None) -> None:
    """Goes back to a state of the random numbers."""
    from ..framework import set_rng_state

    set_rng_state([new_state], device)


def manual_seed(seed: int) -> None:
    """Starts the random numbers anew."""
    from ..framework import seed as start

    start(seed)


from . import cuda  # noqa: E402, F401
