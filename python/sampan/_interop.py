"""What lets libraries that take arrays take tensors, such as Pillow's pictures."""

from __future__ import annotations

from ._core import Tensor


def _array_interface(self) -> dict:
    """The elements as NumPy's array interface describes them."""
    array = self.numpy()
    # The array itself is the memory, so that it lives as long as whoever uses it.
    return {**array.__array_interface__, "data": array, "strides": array.strides}


def _tobytes(self) -> bytes:
    """The bytes of the elements, row by row."""
    return self.numpy().tobytes()


Tensor.__array_interface__ = property(_array_interface)
Tensor.tobytes = _tobytes
