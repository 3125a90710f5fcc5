"""A network cut into the stages of a pipeline, each on its own part of a mesh: its axis `pp`."""

from __future__ import annotations

import enum
import re

from .api import reshard
from .calls import _mapped
from .placement import Replicate, Shard
from .tensor import OnMesh


class SplitPoint(enum.Enum):
    """Where a pipeline is cut: before a layer or after it."""

    BEGINNING = 0
    END = 1


class Stages:
    """The stages of a network: the mesh of each, and which layer is in which."""

    def __init__(self, model, mesh, told: dict):
        self.whole, self.count = mesh, mesh.get_dim_size("pp")
        self.meshes = [mesh.get_mesh_with_dim("pp", stage) for stage in range(self.count)]
        # A process that is none of the mesh computes nothing, in no stage.
        here = mesh.coordinates()
        self.own = None if here is None else here[mesh._axis("pp")]
        names = [name for name, _ in model.named_sublayers()]
        cuts = self._cuts(names, told.get("split_spec"))
        self._stage_of = {name: sum(cut <= at for cut in cuts) for at, name in enumerate(names)}
        spec = told.get("global_spec")
        self._everywhere = [spec] if isinstance(spec, str) else list(spec or ())

    def _cuts(self, names: list[str], spec) -> list[int]:
        """The first layer of each stage but the first."""
        if isinstance(spec, str):
            row = [at for at, name in enumerate(names) if re.fullmatch(re.escape(spec) + r"\.\d+", name)]
            if len(row) < self.count:
                raise ValueError(
                    f"(InvalidArgument) parallelize: split_spec {spec!r} names {len(row)} layers, for {self.count} stages."
                )
            return [row[len(row) * stage // self.count] for stage in range(1, self.count)]
        if not isinstance(spec, dict) or not all(isinstance(point, SplitPoint) for point in spec.values()):
            raise TypeError(
                "(InvalidType) parallelize: split_spec is the name of a row of layers, or a dict of SplitPoint by names of layers."
            )
        cuts = set()
        for key, point in spec.items():
            at = [i for i, name in enumerate(names) if key == name or re.fullmatch(key, name)]
            if not at:
                raise ValueError(f"(InvalidArgument) parallelize: split_spec names {key!r}, which no layer is called.")
            for i in at:
                inner = sum(name.startswith(names[i] + ".") for name in names)
                cuts.add(i if point is SplitPoint.BEGINNING else i + 1 + inner)
        if len(cuts) != self.count - 1:
            raise ValueError(
                f"(InvalidArgument) parallelize: split_spec cuts the network into {len(cuts) + 1} stages, the axis pp of the mesh "
                f"has {self.count}."
            )
        return sorted(cuts)

    def _range(self, name: str) -> tuple[int, int]:
        """The first and the last stage that has a part of a layer."""
        inner = [stage for other, stage in self._stage_of.items() if other == name or other.startswith(name + ".")]
        return min(inner), max(inner)

    def following(self) -> int:
        """How many stages come after that of this process. Where layers are in all stages, the processes exchange what goes in and
        out of them, and do everything in one order: all count as the first one."""
        if self._everywhere:
            return self.count - 1
        return 0 if self.own is None else self.count - 1 - self.own

    def mesh_of(self, name: str, whole):
        """The mesh of the parameters of a layer; layers above several stages, and those of `global_spec`, are everywhere."""
        ways = name.split(".")
        above = [".".join(ways[: i + 1]) for i in range(len(ways))]
        if any(one == spec or re.fullmatch(spec, one) for spec in self._everywhere for one in above):
            return whole
        first, last = self._range(name) if name in self._stage_of else (0, self.count - 1)
        return self.meshes[first] if first == last else whole

    def connect(self, model) -> None:
        """What comes to a layer from another stage is brought to the mesh of its own."""
        for name, layer in model.named_sublayers():
            first, last = self._range(name)
            above = name.rpartition(".")[0]
            spread = not above or self._range(above)[0] != self._range(above)[1]
            if first == last and spread:
                mesh = self.mesh_of(name, self.whole)
                layer.register_forward_pre_hook(_bringing(mesh), prepend=True, with_kwargs=True)


def _bringing(mesh):
    def bring(tensor):
        return brought(tensor, mesh)

    def hook(layer, args, kwargs):
        return _mapped(tuple(args), bring), {key: _mapped(value, bring) for key, value in kwargs.items()}

    return hook


def brought(tensor, mesh):
    """A distributed tensor on a mesh, cut along the axes that both meshes have as it was."""
    if not isinstance(tensor, OnMesh) or tensor.process_mesh == mesh:
        return tensor
    old = dict(zip(tensor.process_mesh.dim_names, tensor.placements))
    kept = [old.get(name, Replicate()) for name in mesh.dim_names]
    return reshard(tensor, mesh, [p if isinstance(p, Shard) else Replicate() for p in kept])
