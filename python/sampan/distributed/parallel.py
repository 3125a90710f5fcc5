"""Who takes part, and a network that all of them train."""

from __future__ import annotations

import contextlib
import os

from ..nn.layer import Layer

_begun = False


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


def only_one(what: str, processes: int | None = None) -> None:
    """Raises an error unless there is one process."""
    processes = get_world_size() if processes is None else processes
    if processes > 1:
        raise NotImplementedError(
            f"(Unimplemented) {what}: {processes} processes are to train together; sampan trains in one process for now."
        )


def init_parallel_env() -> None:
    """Meets the other processes; alone there is nobody to meet."""
    global _begun
    only_one("init_parallel_env")
    _begun = True


def is_initialized() -> bool:
    """Was `init_parallel_env` called?"""
    return _begun


def is_available() -> bool:
    """Is there a `distributed`?"""
    return True


def spawn(func, args=(), nprocs=-1, join=True, daemon=False, **options):
    """Runs `func(*args)` in `nprocs` new processes; one, for now."""
    import multiprocessing

    nprocs = 1 if nprocs == -1 else nprocs
    only_one("spawn", nprocs)
    process = multiprocessing.get_context("spawn").Process(target=func, args=args, daemon=daemon)
    process.start()
    if join:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"(PreconditionNotMet) spawn: the process ended with code {process.exitcode}.")
    return process


class DataParallel(Layer):
    """A network whose gradients are the means over all processes; of one, its own. Its state has the network's names."""

    def __init__(
        self, layers, strategy=None, comm_buffer_size=25, last_comm_buffer_size=1, find_unused_parameters=False, group=None
    ):
        super().__init__(layers.full_name() + "_data_parallel")
        only_one("DataParallel")
        self._layers = layers

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
        yield

    def state_dict(self, *args, **kwargs):
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, *args, **kwargs):
        return self._layers.set_state_dict(state_dict, *args, **kwargs)

    set_dict = load_dict = set_state_dict
