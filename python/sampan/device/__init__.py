"""The devices of this machine: Paddle's `device`."""

from __future__ import annotations

from .. import _core
from ._places import CPU, CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, IPUPlace, Place, XPUPinnedPlace, XPUPlace
from ._streams import Event, Stream, StreamContext, current_stream, set_stream, stream_guard, synchronize


def set_device(device: str | Place) -> Place:
    """Chooses the device on which tensors are made; without a GPU this is `'cpu'`."""
    _core._check_place(device)
    return CPU


def get_device(input=None) -> str | int:
    """The device on which tensors are made; of a tensor, the number of its GPU, -1 for the processor."""
    return "cpu" if input is None else -1


set_default_device = set_device
get_default_device = get_device


class device_guard:
    """Makes tensors on a device inside."""

    def __init__(self, device: str | Place | None = None):
        if device is not None:
            _core._check_place(device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class device(device_guard):
    """Makes tensors on a device inside; a number is that of an accelerator."""

    def __init__(self, device: str | int | Place | None = None):
        super().__init__(f"gpu:{device}" if isinstance(device, int) else device)


def get_all_device_type() -> list[str]:
    """Kinds of devices that this build can use."""
    return ["cpu"]


def get_all_custom_device_type() -> list[str]:
    """Kinds of devices that came from plugins."""
    return []


def get_available_device() -> list[str]:
    """Devices that are here."""
    return ["cpu"]


def get_available_custom_device() -> list[str]:
    """Devices of plugins that are here."""
    return []


def device_count() -> int:
    """How many accelerators are here."""
    return 0


def is_available() -> bool:
    """Is there an accelerator?"""
    return False


def _no(_kind: str | None = None) -> bool:
    """False: this build computes on the processor."""
    return False


is_compiled_with_cuda = is_compiled_with_rocm = is_compiled_with_xpu = is_compiled_with_ipu = _no
is_compiled_with_cinn = is_compiled_with_custom_device = is_compiled_with_distribute = _no
is_current_stream_capturing = is_bf16_supported = _no


def get_cudnn_version() -> int | None:
    """The version of cuDNN, or None without it."""
    return None


def get_device_properties(device=None):
    """Name and memory of an accelerator."""
    _core._check_place("gpu" if device is None or isinstance(device, int) else device)
    raise ValueError("(InvalidArgument) get_device_properties: the processor has none. Hint: name an accelerator.")


def get_device_name(device=None) -> str:
    """The name of an accelerator."""
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    """The capability of an accelerator."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def memory_allocated(device=None) -> int:
    """Bytes that tensors hold now."""
    return _core._memory()[0]


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held at once since the last reset."""
    return _core._memory()[1]


memory_reserved, max_memory_reserved = memory_allocated, max_memory_allocated


def reset_max_memory_allocated(device=None) -> None:
    """Starts the peak of memory anew from what is held now."""
    _core._reset_peak()


reset_max_memory_reserved = reset_peak_memory_stats = reset_max_memory_allocated


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system."""
    _core._release_cache()


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
