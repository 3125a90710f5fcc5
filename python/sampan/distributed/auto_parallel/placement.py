"""How a tensor lies along an axis of processes."""

from __future__ import annotations


class ReduceType:
    """How the parts of a `Partial` tensor become its value."""

    kRedSum, kRedMax, kRedMin, kRedProd, kRedAvg, kRedAny, kRedAll = range(7)


class Placement:
    """How a tensor lies along one axis of a mesh."""

    def is_shard(self, dim=None) -> bool:
        """Is it cut, along the axis `dim` of the tensor if one is given?"""
        return False

    def is_replicated(self) -> bool:
        """Has every process all of it?"""
        return False

    def is_partial(self) -> bool:
        """Is it the sum, or another reduction, of what the processes have?"""
        return False

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))


class Shard(Placement):
    """Cut along an axis of the tensor into parts, one in each process; the last ones may be smaller."""

    def __init__(self, dim: int):
        if not isinstance(dim, int):
            raise TypeError(f"(InvalidType) Shard: dim is the number of an axis, got {dim!r}.")
        self._dim = dim

    def is_shard(self, dim=None) -> bool:
        return dim is None or dim == self._dim

    def get_dim(self) -> int:
        """The axis of the tensor that is cut."""
        return self._dim

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"


class Replicate(Placement):
    """The same in every process."""

    def is_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"


_REDUCED = ("SUM", "MAX", "MIN", "PROD", "AVG", "ANY", "ALL")


class Partial(Placement):
    """Every process has a part of the whole shape; the value is their sum, or another reduction."""

    def __init__(self, reduce_type: int = ReduceType.kRedSum):
        if reduce_type not in range(5):
            raise ValueError(
                f"(InvalidArgument) Partial: reduce_type is kRedSum, kRedMax, kRedMin, kRedProd or kRedAvg, got {reduce_type!r}."
            )
        self._reduce_type = reduce_type

    def is_partial(self) -> bool:
        return True

    def reduce_type(self) -> int:
        """How the parts become the value."""
        return self._reduce_type

    def __repr__(self) -> str:
        return f"Partial(reduce_type={_REDUCED[self._reduce_type]})"


class DistAttr:
    """How a tensor lies on a mesh, by the names of the axes: `sharding_specs` has one for each axis of the tensor, or None where it
    is not cut."""

    def __init__(self, mesh, sharding_specs):
        names = mesh.dim_names
        for spec in sharding_specs:
            if spec is not None and spec not in names:
                raise ValueError(
                    f"(InvalidArgument) DistAttr: the mesh has no axis {spec!r}. Hint: {', '.join(names)}."
                )
        used = [spec for spec in sharding_specs if spec is not None]
        if len(set(used)) != len(used):
            raise ValueError(
                f"(InvalidArgument) DistAttr: an axis of the mesh cuts one axis of the tensor, got {sharding_specs}."
            )
        self.process_mesh, self.sharding_specs = mesh, list(sharding_specs)

    @property
    def dims_mapping(self) -> list[int]:
        """The axis of the mesh that cuts each axis of the tensor; -1 for none."""
        return [-1 if spec is None else self.process_mesh.dim_names.index(spec) for spec in self.sharding_specs]

    @property
    def placements(self) -> list[Placement]:
        """The same for `shard_tensor`."""
        cut = {spec: dim for dim, spec in enumerate(self.sharding_specs) if spec is not None}
        return [Shard(cut[name]) if name in cut else Replicate() for name in self.process_mesh.dim_names]

    def __repr__(self) -> str:
        return f"DistAttr({self.process_mesh}, sharding_specs {self.sharding_specs})"
