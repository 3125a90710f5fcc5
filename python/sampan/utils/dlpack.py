"""Tensors shared with other libraries, without a copy, through the DLPack protocol."""

import sampan

__all__ = ["to_dlpack", "from_dlpack"]


def to_dlpack(x):
    """A capsule with the memory of `x`, which another library's `from_dlpack` takes once."""
    if not isinstance(x, sampan.Tensor):
        raise TypeError(f"to_dlpack: x must be a Tensor, but received {type(x).__name__} {x!r}")
    return x.__dlpack__()


def from_dlpack(dlpack, *, device=None, copy=None):
    """A Tensor on the memory of `dlpack`: a capsule, or any array with `__dlpack__`. `copy=True` gives it its own."""
    from sampan._core import _from_dlpack

    if not hasattr(dlpack, "__dlpack__") and type(dlpack).__name__ != "PyCapsule":
        raise TypeError(
            "from_dlpack: dlpack must be a capsule or an object with __dlpack__, "
            f"but received {type(dlpack).__name__} {dlpack!r}"
        )
    tensor = _from_dlpack(dlpack.__dlpack__() if hasattr(dlpack, "__dlpack__") else dlpack)
    tensor = tensor.clone().detach() if copy else tensor
    return tensor if device is None else tensor.to(device)
