"""What programs ask Paddle's core."""

from types import SimpleNamespace

from ... import _core
from .. import _late


def is_compiled_with_cuda() -> bool:
    """Can this build use a GPU of NVIDIA's?"""
    return False


is_compiled_with_rocm = is_compiled_with_xpu = is_compiled_with_ipu = is_compiled_with_mkldnn = is_compiled_with_cuda
is_compiled_with_cinn = is_compiled_with_dist = is_compiled_with_custom_device = is_compiled_with_cuda


def get_cuda_device_count() -> int:
    """GPUs that can be used."""
    return 0


eager = SimpleNamespace(Tensor=_core.Tensor)
# Dtypes by the names that they had in descriptions of variables.
VarDesc = SimpleNamespace(
    VarType=SimpleNamespace(
        BOOL=_core._dtype("bool"),
        UINT8=_core._dtype("uint8"),
        INT8=_core._dtype("int8"),
        INT16=_core._dtype("int16"),
        INT32=_core._dtype("int32"),
        INT64=_core._dtype("int64"),
        FP16=_core._dtype("float16"),
        BF16=_core._dtype("bfloat16"),
        FP32=_core._dtype("float32"),
        FP64=_core._dtype("float64"),
    )
)

__getattr__ = _late.names(
    __name__,
    {"CPUPlace": "sampan:CPUPlace", "CUDAPlace": "sampan:CUDAPlace", "CUDAPinnedPlace": "sampan:CUDAPinnedPlace"},
    "it is a part of Paddle's core that sampan's does not have.",
)
