"""Tensors and layers put on a mesh of processes."""

from __future__ import annotations

from ... import _core
from ...nn.layer import builtin
from ...optimizer import builtin as optimizers
from ..parallel import get_world_size
from .across import between
from .calls import handle
from .layers import forward_of
from .mesh import ProcessMesh
from .optimizer import step_of
from .placement import Replicate, Shard
from .tensor import DistParameter, DistTensor, OnMesh, box_at, checked, moved, wrap


def _teach() -> None:
    """From the first distributed tensor on, ops and layers know that there are some."""
    if builtin.forward_elsewhere is None:
        builtin.forward_elsewhere, optimizers.step_elsewhere = forward_of, step_of
        _core._set_elsewhere((DistTensor, DistParameter), handle)


def _is_member(mesh) -> bool:
    """Is this process one of a mesh? All of its processes must be there."""
    if mesh.coordinates() is None and max(mesh.process_ids) >= get_world_size():
        raise RuntimeError(
            f"(PreconditionNotMet) the mesh has process {max(mesh.process_ids)}, but there are {get_world_size()}."
        )
    return mesh.coordinates() is not None


def shard_tensor(data, mesh, placements, dtype=None, place=None, stop_gradient=None):
    """A distributed tensor with the values of `data`, which every process gives whole; each keeps its part.

    >>> import sampan
    >>> import sampan.distributed as dist
    >>> mesh = dist.ProcessMesh([0], dim_names=["x"])
    >>> x = dist.shard_tensor(sampan.ones([4, 2]), mesh, [dist.Shard(0)])
    >>> x.shape, x.placements
    ([4, 2], [Shard(dim=0)])
    """
    from ... import to_tensor

    tensor = (
        data if isinstance(data, _core.Tensor) and dtype is None and place is None else to_tensor(data, dtype, place)
    )
    if isinstance(tensor, OnMesh):
        raise ValueError("(InvalidArgument) shard_tensor: the tensor is distributed already. Hint: dist.reshard.")
    placements = checked(mesh, placements, tensor.ndim)
    _teach()
    stop = stop_gradient if stop_gradient is not None else getattr(data, "stop_gradient", True)
    if not _is_member(mesh):
        part = _core._room(box_at(tensor.shape, mesh, placements)[1], tensor.dtype, False)
    else:
        whole = wrap(tensor.detach().clone(), mesh, [Replicate()] * mesh.ndim, tensor.shape)
        part = _core._plain(moved(whole, placements)).detach()
    if isinstance(data, _core.Parameter):
        made = DistParameter(part)
        for name, value in data.__dict__.items():
            setattr(made, name, value)
        made.name = data.name
        made._place(mesh, placements, tensor.shape)
    else:
        made = wrap(part, mesh, placements, tensor.shape)
    made.stop_gradient = stop
    return made


def dtensor_from_fn(fn, mesh, placements, *args, **kwargs):
    """A distributed tensor that a function makes, such as `sampan.ones`."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def dtensor_from_local(local_tensor, mesh, placements):
    """A distributed tensor of which every process gives its part, all as large."""
    placements = checked(mesh, placements, local_tensor.ndim)
    _teach()
    if not _is_member(mesh):
        local_tensor = _core._room(local_tensor.shape, local_tensor.dtype, False)
    shape = list(local_tensor.shape)
    for axis, placement in enumerate(placements):
        if placement.is_shard():
            shape[placement.get_dim()] *= mesh.shape[axis]
    return wrap(local_tensor, mesh, placements, shape)


def dtensor_to_local(dist_tensor, mesh=None, placements=None):
    """This process's part of a distributed tensor."""
    return _core._plain(dist_tensor if mesh is None else reshard(dist_tensor, mesh, placements))


def reshard(dist_tensor, mesh, placements):
    """The same values with other placements, or on another mesh; gradients take the way back. From one mesh to another all
    processes of both call it; one that is none of the new mesh gets a tensor without values."""
    if not isinstance(dist_tensor, OnMesh):
        raise TypeError("(InvalidType) reshard: a distributed tensor is needed. Hint: dist.shard_tensor makes one.")
    placements = checked(mesh, placements, len(dist_tensor.shape))
    found = (
        moved(dist_tensor, placements) if mesh == dist_tensor.process_mesh else between(dist_tensor, mesh, placements)
    )
    return found.detach() if found is dist_tensor and dist_tensor.stop_gradient else found


def unshard_dtensor(dist_tensor):
    """The whole of a distributed tensor as a plain one, in every process."""
    return dist_tensor.whole()


class Ties:
    """Parameters that several layers share, which stay one when layers get others in their places."""

    def __init__(self, model):
        places: dict[int, list] = {}
        for path, layer in model.named_sublayers(include_self=True):
            for key, parameter in layer._parameters.items():
                if parameter is not None and not isinstance(parameter, OnMesh):
                    places.setdefault(id(parameter), []).append((path, layer, key, parameter))
        self._shared = [found for found in places.values() if len(found) > 1]

    def tie(self, where=None) -> None:
        """Puts the distributed parameter that one of the layers has into all of them; `where` gives the mesh of a layer."""
        for places in self._shared:
            # Whoever was given a parameter of another name shares no more.
            places = [place for place in places if getattr(place[1]._parameters.get(place[2]), "name", None) == place[3].name]
            found = [p for p in (layer._parameters[key] for _, layer, key, _ in places) if isinstance(p, OnMesh)]
            if not found:
                continue
            names, made = " and ".join(f"{path}.{key}".lstrip(".") for path, _, key, _ in places), found[0]
            meshes = [*(p.process_mesh for p in found), *(where(path) for path, *_ in places if where)]
            if any(mesh != made.process_mesh for mesh in meshes):
                raise ValueError(
                    f"(InvalidArgument) {names} are one parameter, and cannot lie on different meshes or in different stages. "
                    "Hint: global_spec names layers that are in all stages."
                )
            if any(p.placements != made.placements for p in found):
                raise ValueError(
                    f"(InvalidArgument) {names} are one parameter, and cannot be cut in different ways. Hint: cut it in one of "
                    "the layers."
                )
            for _, layer, key, _ in places:
                setattr(layer, key, made)


def put_layer(layer, mesh) -> None:
    """Puts the parameters and buffers of a layer that are not on a mesh yet on one, the same in every process of it."""
    for key, parameter in list(layer._parameters.items()):
        if parameter is not None and not isinstance(parameter, OnMesh):
            setattr(layer, key, shard_tensor(parameter, mesh, []))
    for key, buffer in list(layer._buffers.items()):
        if buffer is not None and not isinstance(buffer, OnMesh):
            layer._buffers[key] = shard_tensor(buffer, mesh, [])


def shard_layer(layer, process_mesh, shard_fn=None, input_fn=None, output_fn=None):
    """Puts the parameters and buffers of a layer on a mesh, in place. `shard_fn(name, sublayer, mesh)` cuts those that it wants
    to; the others are the same in every process. `input_fn(inputs, mesh)` and `output_fn(outputs, mesh)` change what goes in
    and comes out."""
    if not isinstance(process_mesh, ProcessMesh):
        raise ValueError(
            f"(InvalidArgument) shard_layer: process_mesh is a ProcessMesh, got {type(process_mesh).__name__}."
        )
    ties, layers = Ties(layer), list(layer.named_sublayers(include_self=True))
    for name, inner in layers:
        if shard_fn is not None:
            shard_fn(name, inner, process_mesh)
    # What is cut in one layer is so in all that share it.
    ties.tie()
    for _, inner in layers:
        put_layer(inner, process_mesh)
    ties.tie()
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, process_mesh))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


class ShardDataloader:
    """A loader whose batches lie on a mesh, cut along an axis of it; or each tensor of a batch on a mesh of its own."""

    def __init__(self, dataloader, meshes, input_keys=None, shard_dims=None, is_dataset_splitted=False):
        many = list(meshes) if isinstance(meshes, (list, tuple)) else [meshes]
        dims = list(shard_dims) if isinstance(shard_dims, (list, tuple)) else [shard_dims] * len(many)
        if len(dims) != len(many):
            raise ValueError(
                f"(InvalidArgument) shard_dataloader: {len(dims)} shard_dims for {len(many)} meshes; one for each is needed."
            )
        self._loader, self._keys, self._split = dataloader, input_keys, is_dataset_splitted
        self._places = []
        for mesh, dim in zip(many, dims):
            placements = [Replicate() for _ in range(mesh.ndim)]
            if dim is not None:
                placements[mesh._axis(dim)] = Shard(0)
            self._places.append((mesh, placements))

    def __len__(self) -> int:
        return len(self._loader)

    def _placed(self, at: int, value):
        if isinstance(value, (list, tuple)):
            return [self._placed(at, part) for part in value]
        place = self._places[min(at, len(self._places) - 1)]
        return (dtensor_from_local if self._split else shard_tensor)(value, *place)

    def __iter__(self):
        for batch in self._loader:
            if isinstance(batch, dict):
                keys = self._keys or list(batch)
                yield {key: self._placed(keys.index(key) if key in keys else 0, value) for key, value in batch.items()}
            else:
                yield [self._placed(at, value) for at, value in enumerate(batch)]


def shard_dataloader(
    dataloader, meshes, input_keys=None, shard_dims=None, is_dataset_splitted=False, dense_tensor_idx=None
):
    """A loader whose batches lie on a mesh: cut along `shard_dims`, an axis of it, or the same in every process. Of several meshes
    the first is for the first tensor of a batch, or the first of `input_keys` where batches are dicts, and so on. With
    `is_dataset_splitted` each process has read its own share already."""
    return ShardDataloader(dataloader, meshes, input_keys, shard_dims, is_dataset_splitted)
