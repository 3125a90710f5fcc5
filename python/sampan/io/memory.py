"""Memory that a worker writes and its parent reads: files without a name, which vanish with the processes."""

from __future__ import annotations

import mmap
import os

from .. import _core

_ALIGN = 64
# Dtypes of NumPy that a tensor can take over byte by byte.
_PLAIN = frozenset("bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split())


class Block:
    """A piece of shared memory that grows."""

    def __init__(self):
        self._file = os.memfd_create("sampan-loader")
        self._map: mmap.mmap | None = None

    def _open(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            if self._map is not None:
                self._map.close()
            self._map = mmap.mmap(self._file, size)
        return self._map

    def reserve(self, size: int) -> mmap.mmap:
        """Memory to write, of at least `size` bytes. Too little memory is an error here and not a signal later."""
        if self._map is None or len(self._map) < size:
            os.posix_fallocate(self._file, 0, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        return self._open(os.fstat(self._file).st_size)

    def read(self, offset: int, size: int) -> bytes:
        """A copy of what the other process wrote."""
        memory = self._map
        if memory is None or len(memory) < offset + size:
            memory = self._open(os.fstat(self._file).st_size)
        return memory[offset : offset + size]

    def close(self) -> None:
        """Gives the memory back."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Stored:
    """An array of a batch on its way to the parent."""

    __slots__ = ("place",)

    def __init__(self, place: tuple):
        self.place = place


class Writer:
    """Puts the arrays of a batch into a block; without a block they travel in the message."""

    def __init__(self, block: Block | None):
        self.block, self.used, self.waiting = block, 0, []

    def put(self, array):
        """What stands for an array in the message."""
        import numpy as np

        if isinstance(array, _core.Tensor):
            dtype, array = array.dtype.name, array.numpy()
        else:
            dtype = array.dtype.name
            if dtype not in _PLAIN or not array.dtype.isnative:
                return array
        shape, size = list(array.shape), array.nbytes
        if self.block is None or size == 0:
            return Stored((np.ascontiguousarray(array).tobytes(), 0, 0, dtype, shape))
        offset = self.used
        self.used = -(-(offset + size) // _ALIGN) * _ALIGN
        self.waiting.append((offset, array))
        return Stored((None, offset, size, dtype, shape))

    def write(self) -> None:
        """Copies the arrays, all at once, so that the block grows at most once a batch."""
        if not self.waiting:
            return
        import numpy as np

        memory = self.block.reserve(self.used)
        for offset, array in self.waiting:
            np.copyto(np.ndarray(array.shape, array.dtype, buffer=memory, offset=offset), array)


def take(block: Block | None, place: tuple):
    """The tensor of an array that was stored."""
    data, offset, size, dtype, shape = place
    return _core._tensor_of_bytes(block.read(offset, size) if data is None else data, dtype, shape)
