"""Who takes part, and a network that all of them train."""

from __future__ import annotations

import contextlib
import os

from .. import _core
from ..nn.layer import Layer
from .group import Group, everybody

_MEGABYTE = 1024 * 1024


class ParallelEnv:
    """Who takes part, as whoever started the processes wrote it into the environment: `launch` or `spawn`, torchrun, MPI
    or Slurm."""

    def __init__(self):
        self._rank, self._size, self._local_rank, self._local_size, self._launcher = _core._dist_world()

    @property
    def rank(self) -> int:
        """The number of this process."""
        return self._rank

    @property
    def local_rank(self) -> int:
        """Paddle's other name of `rank`."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return self._size

    nranks = world_size

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return int(os.environ.get("FLAGS_selected_gpus", "0").split(",")[0])

    dev_id = device_id

    @property
    def device_type(self) -> str:
        """The kind of a custom device; none here."""
        return ""

    @property
    def current_endpoint(self) -> str:
        """The address of this process."""
        return os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def trainer_endpoints(self) -> list[str]:
        """The addresses of all processes."""
        return os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")

    @property
    def nrings(self) -> int:
        """How many rings NCCL uses."""
        return int(os.environ.get("FLAGS_nccl_nrings", "1"))

    @property
    def pg_timeout(self) -> int:
        """How long a group waits for a process, in milliseconds."""
        return int(os.environ.get("PADDLE_PG_TIMEOUT", "1800000"))


class ParallelMode:
    """Kinds of parallel training."""

    DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE_PARALLEL, SHARDING_PARALLEL = range(4)


class ParallelStrategy:
    """Numbers of a parallel training, as Paddle 1 had them."""

    def __init__(self):
        env = ParallelEnv()
        self.nranks, self.local_rank = env.nranks, env.local_rank
        self.trainer_endpoints, self.current_endpoint = env.trainer_endpoints, env.current_endpoint


def get_rank(group: Group | None = None) -> int:
    """The number of this process, in the job or in a group."""
    return group.rank if group is not None else _core._dist_world()[0]


def get_world_size(group: Group | None = None) -> int:
    """How many processes train together, in the job or in a group."""
    return group.world_size if group is not None else _core._dist_world()[1]


def init_parallel_env(nccl_config=None) -> Group:
    """Meets the other processes, which were started by `launch`, `spawn`, torchrun, MPI or Slurm; alone there is nobody to
    meet."""
    _core._dist_init()
    if "FLAGS_selected_gpus" in os.environ:
        from ..device import get_device, set_device

        # The launcher gave each process a device; whoever asked for a GPU meant that one.
        if get_device().startswith("gpu"):
            set_device(f"gpu:{ParallelEnv().device_id}")
    return everybody("init_parallel_env")


class DataParallel(Layer):
    """A network that several processes train on data of their own: they begin with the parameters and buffers of the first
    one, and in `backward` every gradient becomes the mean over all. Its state has the names of the network inside.

    Gradients are put together in buckets of `comm_buffer_size` megabytes and reduced while `backward` still computes
    others; the last bucket, for whose reduction nothing is left to do, has `last_comm_buffer_size`. All processes must
    run the same `backward`, with the same parameters taking part, unless `find_unused_parameters` is set.
    """

    def __init__(
        self,
        layers,
        strategy=None,
        comm_buffer_size=25,
        last_comm_buffer_size=1,
        find_unused_parameters=False,
        group=None,
    ):
        super().__init__(layers.full_name() + "_data_parallel")
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters
        self.__dict__["_reducer"] = None
        if group is None and get_world_size() == 1:
            return
        group = everybody("DataParallel") if group is None else group
        if group.rank < 0:
            raise RuntimeError(
                "(PreconditionNotMet) DataParallel: this process is not a member of the group. Hint: make the network "
                "parallel in the processes of the group only."
            )
        engine = getattr(group, "_group", group)
        engine.broadcast_all([*layers.parameters(), *layers.buffers()], engine.ranks[0])
        named = [(name, p) for name, p in layers.named_parameters() if not p.stop_gradient]
        sizes = int(comm_buffer_size * _MEGABYTE), int(last_comm_buffer_size * _MEGABYTE)
        self.__dict__["_reducer"] = _core.Reducer(engine, named, *sizes, find_unused_parameters)

    def forward(self, *inputs, **kwargs):
        if self._reducer is not None:
            self._reducer.prepare()
        return self._layers(*inputs, **kwargs)

    def scale_loss(self, loss):
        """The loss as it is; gradients are averaged."""
        return loss

    def apply_collective_grads(self) -> None:
        """Gradients are averaged in `backward`."""

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients inside stay this process's own; the next reduction takes them along."""
        if self._reducer is None:
            yield
            return
        before = self._reducer.set_active(False)
        try:
            yield
        finally:
            self._reducer.set_active(before)

    def state_dict(self, *args, **kwargs):
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, *args, **kwargs):
        return self._layers.set_state_dict(state_dict, *args, **kwargs)

    set_dict = load_dict = set_state_dict
