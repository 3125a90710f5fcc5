"""Who takes part, and a network that all of them train."""

from __future__ import annotations

import contextlib
import os

from ..nn.layer import Layer
from .group import Group

_group: Group | None = None


class ParallelEnv:
    """Who takes part, as whoever started the processes wrote it into the environment."""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return int(os.environ.get("PADDLE_TRAINER_ID", "0"))

    local_rank = rank

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))

    nranks = world_size

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return 0

    dev_id = device_id

    @property
    def current_endpoint(self) -> str:
        """The address of this process."""
        return os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def trainer_endpoints(self) -> list[str]:
        """The addresses of all processes."""
        return os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")


def get_rank(group=None) -> int:
    """The number of this process."""
    return ParallelEnv().rank


def get_world_size(group=None) -> int:
    """How many processes train together."""
    return ParallelEnv().world_size


def init_parallel_env() -> Group:
    """Meets the other processes, which were started by `launch` or `spawn`; alone there is nobody to meet."""
    global _group
    if _group is None:
        env = ParallelEnv()
        _group = Group(env.rank, env.world_size, env.trainer_endpoints[0])
        if env.world_size > 1:
            from .. import _core

            # They share the processor; results do not depend on the number of threads.
            _core.set_num_threads(max(1, (os.cpu_count() or 1) // env.world_size))
    return _group


def is_initialized() -> bool:
    """Was `init_parallel_env` called?"""
    return _group is not None


def is_available() -> bool:
    """Is there a `distributed`?"""
    return True


def group() -> Group:
    """The processes that have met."""
    if _group is None and get_world_size() > 1:
        raise RuntimeError("(PreconditionNotMet) the processes have not met. Hint: call init_parallel_env() first.")
    return init_parallel_env()


class DataParallel(Layer):
    """A network that several processes train on data of their own: they begin with the parameters of rank 0, and every
    gradient is the mean over all. Its state has the names of the network inside.

    All processes must run the same `backward`, with the same parameters taking part.
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
        self.__dict__["_syncs"] = True
        if get_world_size() > 1:
            self._begin_alike()

    def _begin_alike(self) -> None:
        from .collective import ReduceOp, broadcast, reduced

        for tensor in (*self._layers.parameters(), *self._layers.buffers()):
            broadcast(tensor, 0)

        def averaged(name):
            return lambda grad: reduced(grad, ReduceOp.AVG, tag=name) if self._syncs else None

        for name, parameter in self._layers.named_parameters():
            if not parameter.stop_gradient:
                parameter.register_hook(averaged(name))

    def forward(self, *inputs, **kwargs):
        return self._layers(*inputs, **kwargs)

    def scale_loss(self, loss):
        """The loss as it is; gradients are averaged."""
        return loss

    def apply_collective_grads(self) -> None:
        """Gradients are averaged in `backward`."""

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients inside stay this process's own."""
        before, self.__dict__["_syncs"] = self._syncs, False
        try:
            yield
        finally:
            self.__dict__["_syncs"] = before

    def state_dict(self, *args, **kwargs):
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, *args, **kwargs):
        return self._layers.set_state_dict(state_dict, *args, **kwargs)

    set_dict = load_dict = set_state_dict
