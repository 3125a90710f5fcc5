"""Processes that train together: Paddle's `distributed`. This is the part for one process, so that programs which ask how
many there are run as they stand; more than one is an error that says so."""

from .collective import all_gather, all_reduce, barrier, broadcast, reduce
from .parallel import DataParallel, ParallelEnv, get_rank, get_world_size, init_parallel_env, is_available, is_initialized, spawn

__all__ = [
    "DataParallel",
    "ParallelEnv",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_available",
    "is_initialized",
    "reduce",
    "spawn",
]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: sampan trains in one process for now.")
