"""What is known about an input before there is one."""

from __future__ import annotations

from .. import _core


def _extent(i: int, extent) -> int:
    if extent is None:
        return -1
    if isinstance(extent, bool) or not hasattr(extent, "__index__"):
        raise ValueError(
            f"(InvalidArgument) InputSpec: shape[{i}] is an int or None, got {type(extent).__name__} {extent!r}."
        )
    return max(extent.__index__(), -1)


class InputSpec:
    """Shape, dtype and name of an input; None or -1 in the shape stands for any extent.

    >>> import sampan
    >>> sampan.static.InputSpec([None, 784], "float32", "x").shape
    (-1, 784)
    """

    def __init__(self, shape, dtype="float32", name: str | None = None, stop_gradient: bool = False):
        if not isinstance(shape, (list, tuple)):
            raise TypeError(f"(InvalidType) InputSpec: shape is a list or tuple, got {type(shape).__name__}.")
        self.shape = tuple(_extent(i, extent) for i, extent in enumerate(shape))
        self.dtype = None if dtype is None else _core._dtype(dtype)
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor, name: str | None = None) -> InputSpec:
        """What a tensor is like."""
        if not isinstance(tensor, _core.Tensor):
            raise ValueError(f"(InvalidArgument) from_tensor: a Tensor is needed, got {type(tensor).__name__}.")
        return cls(list(tensor.shape), tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray, name: str | None = None) -> InputSpec:
        """What an array is like."""
        return cls(list(ndarray.shape), str(ndarray.dtype), name)

    def batch(self, batch_size) -> InputSpec:
        """Puts an axis in front, in place."""
        if isinstance(batch_size, (list, tuple)):
            if len(batch_size) != 1:
                raise ValueError(f"(InvalidArgument) batch: one batch_size is needed, got {len(batch_size)}.")
            batch_size = batch_size[0]
        elif isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise TypeError(f"(InvalidType) batch: batch_size is an int, got {type(batch_size).__name__}.")
        self.shape = (_extent(0, batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Takes the first axis away, in place."""
        if not self.shape:
            raise ValueError("(InvalidArgument) unbatch: the shape has no axis to take away.")
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, name={self.name}, "
            f"stop_gradient={self.stop_gradient})"
        )

    def __hash__(self) -> int:
        # Without the name: inputs of the same kind are the same to a program.
        return hash((self.shape, self.dtype, self.stop_gradient))

    def __eq__(self, other) -> bool:
        if type(self) is not type(other):
            return False
        return all(getattr(self, a) == getattr(other, a) for a in ("shape", "dtype", "name", "stop_gradient"))
