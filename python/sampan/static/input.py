"""Shape, dtype and name of an input."""

from __future__ import annotations

from .. import _core

__all__ = ["InputSpec"]


class InputSpec:
    """What an input of a network looks like; None or -1 stands for any extent.

    >>> from sampan.static import InputSpec
    >>> InputSpec([None, 784], "float32", "x")
    InputSpec(shape=(-1, 784), dtype=sampan.float32, name=x, stop_gradient=False)
    """

    def __init__(self, shape, dtype="float32", name: str | None = None, stop_gradient: bool = False):
        self.shape = self._verify(shape)
        self.dtype = None if dtype is None else _core.to_tensor_py(0, dtype).dtype
        self.name = name
        self.stop_gradient = stop_gradient

    @staticmethod
    def _verify(shape) -> tuple[int, ...]:
        if not isinstance(shape, (list, tuple)):
            raise TypeError(f"(InvalidType) InputSpec: shape is a tuple or list, received {type(shape).__name__}.")
        for i, extent in enumerate(shape):
            if extent is not None and (not isinstance(extent, int) or isinstance(extent, bool)):
                raise ValueError(f"(InvalidArgument) InputSpec: shape[{i}] should be an int, received {type(extent).__name__}: {extent}.")
        return tuple(-1 if extent is None or extent < -1 else extent for extent in shape)

    @classmethod
    def from_tensor(cls, tensor, name: str | None = None) -> InputSpec:
        """The description of a tensor."""
        if not isinstance(tensor, _core.Tensor):
            raise ValueError(f"(InvalidArgument) InputSpec.from_tensor: expected a Tensor, received {type(tensor).__name__}.")
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray, name: str | None = None) -> InputSpec:
        """The description of a NumPy array."""
        return cls(ndarray.shape, ndarray.dtype.name, name)

    def batch(self, batch_size) -> InputSpec:
        """Puts an extent in front of the shape."""
        if isinstance(batch_size, (list, tuple)):
            if len(batch_size) != 1:
                raise ValueError(f"(InvalidArgument) InputSpec.batch: expected one extent, received {batch_size}.")
            batch_size = batch_size[0]
        elif not isinstance(batch_size, int):
            raise TypeError(f"(InvalidType) InputSpec.batch: batch_size shall be an int, received {type(batch_size).__name__}.")
        self.shape = (batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Takes the first extent off the shape."""
        if not self.shape:
            raise ValueError("(InvalidArgument) InputSpec.unbatch: the shape is empty.")
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, name={self.name}, "
            f"stop_gradient={self.stop_gradient})"
        )

    # The name does not count: inputs of one shape and dtype share a compiled program.
    def __hash__(self) -> int:
        return hash((self.shape, str(self.dtype), self.stop_gradient))

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field) == getattr(other, field) for field in ("shape", "dtype", "name", "stop_gradient")
        )
