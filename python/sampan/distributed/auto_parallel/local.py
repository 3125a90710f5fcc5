"""Functions and layers that compute with this process's parts of distributed tensors."""

from __future__ import annotations

from ...nn.layer import Layer
from .api import dtensor_from_local, dtensor_to_local
from .tensor import OnMesh


def _wrapped(outputs, places: list, who: str):
    """Outputs as distributed tensors, each with its mesh and placements; None leaves one as it is."""
    many = isinstance(outputs, (list, tuple))
    found = list(outputs) if many else [outputs]
    if len(found) != len(places):
        raise ValueError(f"(InvalidArgument) {who}: {len(found)} outputs, but placements for {len(places)}.")
    made = [out if place is None else dtensor_from_local(out, *place) for out, place in zip(found, places)]
    return type(outputs)(made) if many else made[0]


def local_map(func, out_placements, in_placements=None, process_mesh=None, reshard_inputs=False):
    """A function of distributed tensors that calls `func` with this process's parts, and takes what it gives for parts of tensors
    with `out_placements`. `in_placements` are those that the inputs must have; with `reshard_inputs` they get them."""

    def wrapped(*args, **kwargs):
        mesh, given = process_mesh, list(args)
        places = list(in_placements) if in_placements is not None else [None] * len(given)
        tensors = [i for i, value in enumerate(given) if isinstance(value, OnMesh)]
        if in_placements is not None and len(places) != len(given):
            raise ValueError(f"(InvalidArgument) local_map: {len(given)} inputs, but placements for {len(places)}.")
        for i in tensors:
            value = given[i]
            mesh = value.process_mesh if mesh is None else mesh
            if value.process_mesh != mesh:
                raise ValueError(f"(InvalidArgument) local_map: input {i} lies on another mesh, {value.process_mesh}.")
            wanted = value.placements if places[i] is None else list(places[i])
            if wanted != value.placements and not reshard_inputs:
                raise ValueError(
                    f"(InvalidArgument) local_map: input {i} has the placements {value.placements}, {wanted} are required. "
                    "Hint: reshard_inputs=True."
                )
            given[i] = dtensor_to_local(value, mesh, wanted)
        if mesh is None and any(place is not None for place in out_placements):
            raise ValueError("(InvalidArgument) local_map: no input is distributed. Hint: give process_mesh.")
        outputs = func(*given, **kwargs)
        return _wrapped(outputs, [None if p is None else (mesh, p) for p in out_placements], "local_map")

    return wrapped


class LocalLayer(Layer):
    """A layer whose `forward` gets this process's parts of distributed tensors, and gives parts of distributed tensors:
    `out_dist_attrs` has a mesh and placements for each output, `grad_dist_attrs` those that each input gets first, or None."""

    def __init__(self, out_dist_attrs, grad_dist_attrs):
        super().__init__()
        self.out_dist_attrs, self.grad_dist_attrs = out_dist_attrs, grad_dist_attrs

    def __call__(self, *inputs, **kwargs):
        if len(inputs) != len(self.grad_dist_attrs):
            count = len(self.grad_dist_attrs)
            raise ValueError(f"(InvalidArgument) LocalLayer: {len(inputs)} inputs, but grad_dist_attrs for {count}.")
        parts = [
            dtensor_to_local(value, *(place or (value.process_mesh, value.placements)))
            if isinstance(value, OnMesh)
            else value
            for value, place in zip(inputs, self.grad_dist_attrs)
        ]
        return _wrapped(super().__call__(*parts, **kwargs), list(self.out_dist_attrs), "LocalLayer")
