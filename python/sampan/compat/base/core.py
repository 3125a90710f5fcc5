"""What programs ask Paddle's core."""

from types import SimpleNamespace

from ... import _core
from ...device import cuda, is_compiled_with_cuda, is_compiled_with_rocm
from ...device import device_count as get_cuda_device_count
from .. import _late

# Devices are the CPU and GPUs of NVIDIA's.
is_compiled_with_xpu = is_compiled_with_ipu = is_compiled_with_mkldnn = is_compiled_with_rocm
is_compiled_with_cinn = is_compiled_with_dist = is_compiled_with_custom_device = is_compiled_with_rocm


def get_cublas_switch() -> bool:
    """May products of float32 matrices be rounded to TF32 on a GPU?"""
    return _core._gpu_rounding()[0]


def set_cublas_switch(on: bool) -> None:
    """Says whether products of float32 matrices may be rounded to TF32 on a GPU."""
    cuda.allow_tf32(products=on)


def get_cudnn_switch() -> bool:
    """May convolutions of float32 numbers be rounded to TF32 on a GPU?"""
    return _core._gpu_rounding()[1]


def set_cudnn_switch(on: bool) -> None:
    """Says whether convolutions of float32 numbers may be rounded to TF32 on a GPU."""
    cuda.allow_tf32(convolutions=on)


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
