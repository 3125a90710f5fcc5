"""Processes that call collectives together."""

from __future__ import annotations

import datetime
import os
import sys

from .. import _core

# Where pip puts MPICH.
os.environ.setdefault("SAMPAN_MPI_PREFIX", sys.prefix)
# Paddle's half hour.
_TIMEOUT = datetime.timedelta(minutes=30)


class Group:
    """Processes of a job that call collectives together; made by `new_group`."""

    def __init__(self, process_group, name=None):
        self._group, self._name = process_group, name

    @property
    def rank(self) -> int:
        """The number of this process in the group; -1 if it is not a member."""
        return self._group.rank

    @property
    def ranks(self) -> list[int]:
        """The numbers in the job of its processes."""
        return self._group.ranks

    @property
    def nranks(self) -> int:
        """How many processes it has."""
        return self._group.size()

    @property
    def world_size(self) -> int:
        """How many processes it has; -1 where this one is not a member."""
        return self.nranks if self.rank >= 0 else -1

    @property
    def name(self):
        """Its name."""
        return self._name

    @property
    def id(self) -> int:
        """Its number."""
        return self._group.id

    @property
    def process_group(self):
        """What does the work."""
        return self._group

    @property
    def backend(self) -> str:
        """The engine: shared_memory, tcp, gloo, nccl, mpi, or none where there is one process."""
        return self._group.name()

    @property
    def backend_reason(self) -> str:
        """Why this engine was chosen."""
        return self._group.why()

    def is_member(self) -> bool:
        """Is this process one of several in the group?"""
        return self.rank >= 0 and self.nranks >= 2

    def get_group_rank(self, rank: int) -> int:
        """The number in the group of a process of the job; -1 where this one is not a member."""
        return self.ranks.index(rank) if self.is_member() else -1

    def get_global_rank(self, rank: int) -> int:
        """The number in the job of a process of the group; -1 where this one is not a member."""
        return self.ranks[rank] if self.is_member() else -1

    def __repr__(self) -> str:
        ranks = ", ".join(map(str, self.ranks))
        return f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: {ranks}; name: {self.name}"


_groups: dict[int, Group] = {}


def everybody(op: str) -> Group:
    """The group of all processes, which have met."""
    if 0 not in _groups or not _core._dist_is_initialized():
        _groups[0] = Group(_core._dist_group(0, op), "_default_pg")
    return _groups[0]


def of(group: Group | None, op: str):
    """The engine's group for an argument `group`; None where this process has no part in it."""
    group = everybody(op) if group is None else group
    # Paddle's programs also give `group.process_group`.
    return getattr(group, "_group", group) if group.rank >= 0 else None


def new_group(ranks=None, backend=None, timeout=_TIMEOUT, nccl_comm_init_option=0, nccl_config=None) -> Group:
    """A group of some processes, all of them by default. Every process of the job calls it, members or not.

    `backend` is auto, shared_memory, tcp, gloo, nccl or mpi; `timeout` is how long a call may wait for a process.
    """
    return group_in_order(None if ranks is None else sorted(ranks), backend, timeout)


def group_in_order(ranks, backend=None, timeout=_TIMEOUT) -> Group:
    """`new_group` whose processes have the numbers in which they are named."""
    made = _core._dist_new_group(ranks, backend, timeout.total_seconds())
    _groups[made.id] = Group(made, f"_default_pg{made.id}")
    return _groups[made.id]


def create_nccl_config(nccl_config: dict | None = None) -> None:
    """Nothing: NCCL has no settings here, as in Paddle for processors; `nccl_config` of `new_group` takes it."""


def get_group(id: int = 0) -> Group:
    """The group with a number; 0 is that of all processes."""
    if id == 0:
        return everybody("get_group")
    if id not in _groups:
        raise ValueError(f"(InvalidArgument) get_group: there is no group {id}. Hint: new_group makes one.")
    return _groups[id]


def get_backend(group: Group | None = None) -> str:
    """The engine of a group, in capitals as Paddle has it."""
    return (everybody("get_backend") if group is None else group).backend.upper()


def destroy_process_group(group: Group | None = None) -> None:
    """Forgets a group; without one, all of them: processes may meet again by `init_parallel_env`."""
    if group is None or group.id == 0:
        _groups.clear()
        _core._dist_destroy()
    else:
        _groups.pop(group.id, None)


def is_initialized() -> bool:
    """Have the processes met?"""
    return _core._dist_is_initialized()


def is_available() -> bool:
    """Is there a `distributed`?"""
    return True
