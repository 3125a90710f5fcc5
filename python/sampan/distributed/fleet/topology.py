"""How processes lie along the axes of a hybrid training."""

from __future__ import annotations

import itertools

from ..group import new_group
from ..parallel import ParallelMode, get_rank, get_world_size

# The order in which Paddle lays processes out: neighbours share a layer, then a shard, a stage, the data.
AXES = ("data", "pipe", "sharding", "sep", "model")


class CommunicateTopology:
    """Processes as the cells of a box with named axes."""

    def __init__(self, hybrid_group_names=AXES, dims=(1, 1, 1, 1, 1)):
        self._names, self._dims = list(hybrid_group_names), list(dims)
        self._cells = list(itertools.product(*(range(n) for n in self._dims)))

    def get_hybrid_group_names(self) -> list[str]:
        """The axes."""
        return self._names

    def get_dim(self, axis_name: str) -> int:
        """The extent of an axis."""
        return self._dims[self._names.index(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        """How many processes there are."""
        return len(self._cells)

    def get_rank(self, **place) -> int:
        """The process at a place."""
        return self._cells.index(tuple(place[name] for name in self._names))

    def get_coord(self, rank: int) -> tuple:
        """The place of a process."""
        return self._cells[rank]

    def get_axis_list(self, axis_name: str, index: int) -> list[int]:
        """The processes at an index of an axis."""
        at = self._names.index(axis_name)
        return [rank for rank, cell in enumerate(self._cells) if cell[at] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The lines of processes along an axis."""
        at = self._names.index(axis_name)
        lines: dict[tuple, list[int]] = {}
        for rank, cell in enumerate(self._cells):
            lines.setdefault(cell[:at] + cell[at + 1 :], []).append(rank)
        return list(lines.values())

    def get_rank_from_stage(self, global_rank: int, **place) -> int:
        """The process at the place of another but for some axes."""
        cell = dict(zip(self._names, self._cells[global_rank])) | place
        return self.get_rank(**cell)


class HybridCommunicateGroup:
    """The groups of this process along each axis. All processes make it together."""

    def __init__(self, topology: CommunicateTopology):
        if topology.world_size() != get_world_size():
            raise ValueError(
                f"(InvalidArgument) fleet: hybrid_configs needs {topology.world_size()} processes, there are "
                f"{get_world_size()}. Hint: their product is the number of processes; dp_degree=-1 takes what is left."
            )
        self._topo, self.global_rank = topology, get_rank()
        self._groups = {axis: self._line(axis) for axis in topology.get_hybrid_group_names()}

    def _line(self, axis: str):
        own = None
        for ranks in self._topo.get_comm_list(axis):
            group = new_group(ranks)
            own = group if self.global_rank in ranks else own
        return own

    def topology(self) -> CommunicateTopology:
        """Where processes lie."""
        return self._topo

    def get_global_rank(self) -> int:
        """The number of this process."""
        return self.global_rank

    def get_parallel_mode(self) -> int:
        """What is done in parallel besides the data."""
        if self._topo.get_dim("pipe") > 1:
            return ParallelMode.PIPELINE_PARALLEL
        if self._topo.get_dim("model") > 1:
            return ParallelMode.TENSOR_PARALLEL
        if self._topo.get_dim("sharding") > 1:
            return ParallelMode.SHARDING_PARALLEL
        return ParallelMode.DATA_PARALLEL


def _ask(axis: str, name: str) -> None:
    questions = {
        f"get_{name}_parallel_group": (lambda self: self._groups[axis], "The group along the axis."),
        f"get_{name}_parallel_rank": (lambda self: self._groups[axis].rank, "The number of this process along the axis."),
        f"get_{name}_parallel_world_size": (lambda self: self._topo.get_dim(axis), "How many processes are along the axis."),
        f"get_{name}_parallel_group_src_rank": (lambda self: self._groups[axis].ranks[0], "The first process along the axis."),
    }
    for method, (answer, text) in questions.items():
        answer.__name__, answer.__doc__ = method, text
        setattr(HybridCommunicateGroup, method, answer)


for _axis, _name in zip(AXES, ("data", "pipe", "sharding", "sep", "model")):
    _ask(_axis, _name)
HybridCommunicateGroup.get_stage_id = HybridCommunicateGroup.get_pipe_parallel_rank
