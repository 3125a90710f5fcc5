"""Where tensors live, as objects: `CPUPlace()`, and the others, which say what is missing here."""

from __future__ import annotations

from .. import _core
from ._libraries import find as _find_libraries


class Place:
    """A place for tensors; equal to any place of the same kind and number."""

    _kind = "undefined"
    _id = 0

    def __init__(self, other: Place | None = None):
        if other is not None:
            self._kind, self._id = other._kind, other._id

    def __repr__(self) -> str:
        return "Place(cpu)" if self._kind == "cpu" else f"Place({self._kind}:{self._id})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Place) and (self._kind, self._id) == (other._kind, other._id)

    def __hash__(self) -> int:
        return hash((self._kind, self._id))

    def is_cpu_place(self) -> bool:
        """Is it the processor?"""
        return self._kind == "cpu"

    def is_gpu_place(self) -> bool:
        """Is it a GPU?"""
        return self._kind == "gpu"

    def is_xpu_place(self) -> bool:
        """Is it an XPU?"""
        return self._kind == "xpu"

    def is_cuda_pinned_place(self) -> bool:
        """Is it memory of the host that a GPU can reach?"""
        return self._kind == "gpu_pinned"

    def is_custom_place(self) -> bool:
        """Is it a device of another kind?"""
        return False

    def get_device_id(self) -> int:
        """The number of the device."""
        return self._id

    gpu_device_id = xpu_device_id = custom_device_id = get_device_id

    def _equals(self, other) -> bool:
        return self == other


class CPUPlace(Place):
    """The processor."""

    _kind = "cpu"

    def __init__(self):
        pass


class CUDAPlace(Place):
    """A GPU of NVIDIA's."""

    _kind = "gpu"

    def __init__(self, id: int = 0):
        if not isinstance(id, int):
            raise TypeError(f"(InvalidType) CUDAPlace: the number of a GPU is needed, got {type(id).__name__}.")
        self._id = id
        _find_libraries()
        _core._check_place(f"{self._kind}:{id}")


class XPUPlace(CUDAPlace):
    """An accelerator of Kunlun's."""

    _kind = "xpu"


class IPUPlace(CUDAPlace):
    """An accelerator of Graphcore's."""

    _kind = "ipu"


class CUDAPinnedPlace(Place):
    """Memory of the host that a GPU can reach."""

    _kind = "gpu_pinned"

    def __init__(self):
        _core._check_place(self._kind)


class XPUPinnedPlace(CUDAPinnedPlace):
    """Memory of the host that an XPU can reach."""

    _kind = "xpu"


class CustomPlace(CUDAPlace):
    """A device of another kind."""

    def __init__(self, kind: str, id: int = 0):
        self._kind, self._id = kind, id
        _core._check_place(f"{kind}:{id}")


CPU = CPUPlace()


def _place(name: str) -> Place:
    """The place of a device's name."""
    return CPU if name == "cpu" else CUDAPlace(int(name.rpartition(":")[2]))
