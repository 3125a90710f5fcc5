"""Processes in a box with named axes."""

from __future__ import annotations

import numpy

from ..group import group_in_order
from ..parallel import get_rank, get_world_size, init_parallel_env

# Groups along the axes, by shape and processes: a mesh that is made again uses them again.
_LINES: dict[tuple, list] = {}


class ProcessMesh:
    """Processes in a box with named axes. All processes of the job make it together.

    >>> import sampan.distributed as dist
    >>> mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
    >>> mesh.shape, mesh.process_ids
    ([2, 2], [0, 1, 2, 3])
    """

    def __init__(self, mesh=None, dim_names=None, shape=None, process_ids=None):
        if mesh is None:
            if shape is None or process_ids is None:
                raise ValueError("(InvalidArgument) ProcessMesh: mesh, or shape and process_ids, are needed.")
            mesh = numpy.array(process_ids).reshape(shape)
        self._mesh = numpy.array(mesh._mesh if isinstance(mesh, ProcessMesh) else mesh)
        if self._mesh.ndim == 0 or not numpy.issubdtype(self._mesh.dtype, numpy.integer):
            raise ValueError(
                "(InvalidArgument) ProcessMesh: the mesh is a list of numbers of processes, nested as its axes."
            )
        ids = self.process_ids
        if len(set(ids)) != len(ids) or min(ids) < 0:
            raise ValueError(
                f"(InvalidArgument) ProcessMesh: the processes must be different and not negative, got {ids}."
            )
        names = [f"d{i}" for i in range(self._mesh.ndim)] if dim_names is None else list(dim_names)
        if len(names) != self._mesh.ndim or len(set(names)) != len(names):
            raise ValueError(
                f"(InvalidArgument) ProcessMesh: dim_names {names} do not name {self._mesh.ndim} axes, each with its own."
            )
        self._names = names
        if get_world_size() > 1 and max(ids) < get_world_size():
            init_parallel_env()
            self._lines()

    @property
    def mesh(self):
        """The processes as an array."""
        return self._mesh

    @property
    def shape(self) -> list[int]:
        """The extents of the axes."""
        return list(self._mesh.shape)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self._mesh.ndim

    @property
    def dim_names(self) -> list[str]:
        """The names of the axes."""
        return self._names

    @property
    def process_ids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(i) for i in self._mesh.reshape(-1)]

    @property
    def size(self) -> int:
        """How many processes it has."""
        return self._mesh.size

    def get_dim_size(self, dim_name) -> int:
        """The extent of an axis."""
        return self.shape[self._axis(dim_name)]

    def _axis(self, name) -> int:
        if isinstance(name, int) and -self.ndim <= name < self.ndim:
            return name % self.ndim
        if name not in self._names:
            raise ValueError(
                f"(InvalidArgument) ProcessMesh: there is no axis {name!r}. Hint: {', '.join(self._names)}."
            )
        return self._names.index(name)

    def get_mesh_with_dim(self, dim_name, index=None):
        """The mesh with an axis in front, or what lies at an index of it."""
        at = self._axis(dim_name)
        moved = numpy.moveaxis(self._mesh, at, 0)
        names = [dim_name, *(name for name in self._names if name != dim_name)]
        return (
            ProcessMesh(moved, names)
            if index is None
            else ProcessMesh(numpy.atleast_1d(moved[index]), names[1:] or [dim_name])
        )

    def get_rank_by_dim_and_process_id(self, dim_name, process_id) -> int:
        """The place of a process along an axis; -1 if it is none of them."""
        found = numpy.argwhere(self._mesh == process_id)
        return int(found[0][self._axis(dim_name)]) if len(found) else -1

    def get_submesh_with_dim(self, dim_name):
        """The line of processes along an axis in which this process is."""
        at, here = self._axis(dim_name), self.coordinates()
        line = self._mesh[tuple(slice(None) if i == at else here[i] for i in range(self.ndim))]
        return ProcessMesh(line, [dim_name])

    def coordinates(self, rank: int | None = None) -> list[int] | None:
        """The place of a process, of this one if none is named; None if it is none of them."""
        found = numpy.argwhere(self._mesh == (get_rank() if rank is None else rank))
        return [int(i) for i in found[0]] if len(found) else None

    def _lines(self) -> list:
        key = tuple(self.shape), tuple(self.process_ids)
        if key not in _LINES:
            found = []
            for axis in range(self.ndim):
                own = None
                for line in numpy.moveaxis(self._mesh, axis, -1).reshape(-1, self.shape[axis]):
                    group = group_in_order(line.tolist())
                    own = group if get_rank() in line else own
                found.append(own)
            _LINES[key] = found
        return _LINES[key]

    def get_group(self, dim_name=None):
        """The group of this process along an axis; without one, that of a mesh with a single axis."""
        if dim_name is None and self.ndim > 1:
            raise ValueError(
                "(InvalidArgument) ProcessMesh.get_group: the mesh has several axes. Hint: dim_name says which."
            )
        axis = 0 if dim_name is None else self._axis(dim_name)
        if max(self.process_ids) >= get_world_size():
            raise RuntimeError(
                f"(PreconditionNotMet) the mesh has process {max(self.process_ids)}, but there are {get_world_size()}."
            )
        return self._lines()[axis]

    def __getitem__(self, index):
        part = self._mesh[index]
        names = self._names[self.ndim - part.ndim :] if part.ndim else [self._names[-1]]
        return ProcessMesh(part if part.ndim else [int(part)], names)

    def __eq__(self, other) -> bool:
        return isinstance(other, ProcessMesh) and numpy.array_equal(self._mesh, other._mesh)

    def __ne__(self, other) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self.shape), tuple(self.process_ids)))

    def __repr__(self) -> str:
        return f"shape {self.shape}, process_ids {self.process_ids}, dim_names {self._names}"


_current: ProcessMesh | None = None


def get_mesh() -> ProcessMesh | None:
    """The mesh of the whole program, as `set_mesh` named it."""
    return _current


def set_mesh(mesh: ProcessMesh) -> None:
    """Names the mesh of the whole program."""
    global _current
    _current = mesh
