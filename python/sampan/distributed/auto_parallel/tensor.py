"""Tensors that lie on a mesh of processes, each of which has a part."""

from __future__ import annotations

from ... import _core
from .mesh import ProcessMesh
from ..parallel import get_rank
from .moves import Absent, Gather, Reduce, ReduceTake, Spread, Take, Turn, spans
from .placement import Partial, Placement, ReduceType, Replicate, Shard


def checked(mesh, placements, ndim: int) -> list[Placement]:
    """One placement for each axis of a mesh; axes that are not named have all of the tensor."""
    if not isinstance(mesh, ProcessMesh):
        raise TypeError(f"(InvalidType) a ProcessMesh is needed, got {type(mesh).__name__}.")
    found = list(placements)
    if len(found) > mesh.ndim or not all(isinstance(p, Placement) for p in found):
        raise ValueError(
            f"(InvalidArgument) placements: one of Shard, Replicate and Partial for each of the {mesh.ndim} axes of the mesh, "
            f"got {found}."
        )
    found += [Replicate() for _ in range(mesh.ndim - len(found))]
    for i, placement in enumerate(found):
        if placement.is_shard():
            dim = placement.get_dim()
            if not -ndim <= dim < ndim:
                raise ValueError(f"(InvalidArgument) placements: {placement} of a tensor with {ndim} axes.")
            found[i] = Shard(dim % ndim)
    return found


def level(mesh, placements: list, dim: int, extent: int, axis: int) -> int:
    """The extent of an axis of the tensor that this process's line along `axis` of the mesh shares."""
    for i, here in zip(range(axis), mesh.coordinates()):
        if placements[i].is_shard(dim):
            start, end = spans(extent, mesh.shape[i])[here]
            extent = end - start
    return extent


def box_at(shape: list, mesh, placements: list, place=None) -> tuple[list[int], list[int]]:
    """Where the part of the process at a place of a mesh begins, and its extents; without a place, those of the first one."""
    offset, extents = [0] * len(shape), list(shape)
    for axis, (placement, here) in enumerate(zip(placements, place or [0] * mesh.ndim)):
        if placement.is_shard():
            dim = placement.get_dim()
            start, end = spans(extents[dim], mesh.shape[axis])[here]
            offset[dim], extents[dim] = offset[dim] + start, end - start
    return offset, extents


class OnMesh:
    """What a distributed tensor or parameter is asked."""

    process_mesh: ProcessMesh
    placements: list[Placement]

    def _is_initialized(self) -> bool:
        """Is this process one of the mesh? Else it has no values of the tensor."""
        return self.process_mesh.coordinates() is not None

    def _place(self, mesh, placements, shape):
        self.__dict__.update(process_mesh=mesh, placements=list(placements), _whole_shape=list(shape))
        return self

    def is_dist(self) -> bool:
        """Does it lie on a mesh?"""
        return True

    @property
    def shape(self) -> list[int]:
        """The shape of the whole."""
        return list(self._whole_shape)

    @property
    def size(self) -> int:
        """The number of elements of the whole."""
        count = 1
        for extent in self._whole_shape:
            count *= extent
        return count

    @property
    def _local_shape(self) -> list[int]:
        """The shape of this process's part."""
        return _core._plain(self).shape

    def _local_value(self):
        """This process's part."""
        return _core._plain(self)

    @property
    def grad(self):
        """The gradient: cut as the tensor is, else the same in every process."""
        found = _core._plain(self).grad
        if found is None:
            return None
        placements = [Replicate() if p.is_partial() else p for p in self.placements]
        return wrap(found, self.process_mesh, placements, self._whole_shape)

    @grad.setter
    def grad(self, value):
        if value is not None:
            placements = [Replicate() if p.is_partial() else p for p in self.placements]
            value = _core._plain(moved(on(value, self.process_mesh), placements))
        _core._plain(self).grad = value

    def whole(self):
        """The whole as a plain tensor. All processes of the mesh call it."""
        if not self._is_initialized():
            raise RuntimeError(
                f"(PreconditionNotMet) process {get_rank()} has no values of a tensor on another mesh, {self.process_mesh}. Hint: "
                "dist.reshard brings it to a mesh with this process; x._is_initialized() asks."
            )
        return _core._plain(moved(self, [Replicate()] * self.process_mesh.ndim))

    def numpy(self, *args, **kwargs):
        return self.whole().numpy(*args, **kwargs)

    def item(self, *args):
        return self.whole().item(*args)

    def tolist(self):
        return self.whole().tolist()

    def __array__(self, *args, **kwargs):
        return self.whole().__array__(*args, **kwargs)

    def __len__(self) -> int:
        return self._whole_shape[0]

    def __bool__(self) -> bool:
        return bool(self.whole())

    def __float__(self) -> float:
        return float(self.whole())

    def __int__(self) -> int:
        return int(self.whole())

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def detach(self):
        return wrap(_core._plain(self).detach(), self.process_mesh, self.placements, self._whole_shape)

    def clone(self):
        return wrap(_core._plain(self).clone(), self.process_mesh, self.placements, self._whole_shape)

    def set_value(self, value) -> None:
        """Takes over values of the whole, or those of a distributed tensor."""
        from ... import to_tensor

        value = value if isinstance(value, _core.Tensor) else to_tensor(value, dtype=self.dtype)
        if not self._is_initialized():
            return
        _core._plain(self).set_value(_core._plain(moved(on(value, self.process_mesh), self.placements)).detach())

    def __repr__(self) -> str:
        mesh, here = self.process_mesh, self._is_initialized()
        head, _, values = repr(self.whole() if here else _core._plain(self)).partition("\n")
        ids = ",".join(map(str, mesh.process_ids))
        where = f"process_mesh={{shape: {mesh.shape}, process_ids: [{ids}], dim_names: [{','.join(mesh.dim_names)}]}}"
        told = f"{where}, placements={self.placements}"
        if not here:
            return f"{head.removesuffix(')')}, {told}, without values in this process)"
        return f"{head} {told}, GlobalDenseTensor=\n{values}"

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self)

    def __deepcopy__(self, memo):
        made = wrap(_core._plain(self).detach().clone(), self.process_mesh, self.placements, self._whole_shape)
        made.stop_gradient = self.stop_gradient
        return made


def is_elsewhere(value) -> bool:
    """Is it a distributed tensor that this process has no part of?"""
    return isinstance(value, OnMesh) and not value._is_initialized()


class DistTensor(OnMesh, _core.Tensor):
    """A tensor that lies on a mesh of processes; `shard_tensor` makes one."""


class DistParameter(OnMesh, _core.Parameter):
    """A parameter that lies on a mesh of processes."""


def wrap(tensor, mesh, placements, shape):
    """A plain tensor, fresh from a call, as the part of a distributed one."""
    tensor = _core._plain(tensor)
    tensor.__class__ = DistTensor
    return tensor._place(mesh, placements, shape)


def on(tensor, mesh):
    """A tensor on a mesh; a plain one has the same values in every process."""
    if isinstance(tensor, OnMesh):
        if tensor.process_mesh != mesh:
            raise ValueError(
                f"(InvalidArgument) tensors on different meshes, {tensor.process_mesh} and {mesh}, cannot be combined. Hint: "
                "dist.reshard brings one to the other."
            )
        return tensor
    return wrap(tensor, mesh, [Replicate()] * mesh.ndim, tensor.shape)


def _nested(placements: list, axis: int, dims: list[int]) -> bool:
    return any(i != axis and p.is_shard() and p.get_dim() in dims for i, p in enumerate(placements))


def moved(tensor, target: list):
    """The same values with other placements."""
    mesh, now, shape = tensor.process_mesh, list(tensor.placements), tensor._whole_shape
    if now == target:
        return tensor
    if mesh.coordinates() is None:
        return wrap(Absent.apply(_core._plain(tensor), box_at(shape, mesh, target)[1]), mesh, target, shape)
    touched = {i for i in range(mesh.ndim) if now[i] != target[i]}
    # Where two axes of the mesh cut one axis of the tensor, the inner one is cut anew with the outer one.
    for i in range(mesh.ndim):
        cut = {p.get_dim() for j in touched if j < i for p in (now[j], target[j]) if p.is_shard()}
        if now[i].is_shard() and now[i].get_dim() in cut:
            touched.add(i)
    value = _core._plain(tensor)
    for i in sorted(touched, reverse=True):
        engine, old, new = mesh.get_group(i)._group, now[i], target[i]
        dims = [p.get_dim() for p in (old, new) if p.is_shard()]
        direct = new.is_shard() and not _nested(now, i, dims) and not _nested(target, i, dims)
        if old.is_shard():
            extent = level(mesh, now, old.get_dim(), shape[old.get_dim()], i)
            if direct and old != new:
                value, now[i] = Turn.apply(value, engine, old.get_dim(), new.get_dim(), extent), new
            else:
                value, now[i] = Gather.apply(value, engine, old.get_dim(), extent), Replicate()
        elif old.is_partial():
            if direct and old.reduce_type() == ReduceType.kRedSum:
                value, now[i] = ReduceTake.apply(value, engine, new.get_dim()), new
            else:
                value, now[i] = Reduce.apply(value, engine, old.reduce_type()), Replicate()
    for i in sorted(touched):
        engine, new = mesh.get_group(i)._group, target[i]
        if now[i] == new:
            continue
        if new.is_shard():
            value = Take.apply(value, engine, new.get_dim())
        elif new == Partial():
            value = Spread.apply(value, engine)
        elif new.is_partial() and new.reduce_type() == ReduceType.kRedProd:
            raise NotImplementedError("(Unimplemented) reshard: a tensor does not become a product of parts.")
        now[i] = new
    return wrap(value, mesh, target, shape)
