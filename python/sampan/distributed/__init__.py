"""Processes that train together, on the processors of one machine: Paddle's `distributed`."""

from .collective import ReduceOp, all_gather, all_reduce, barrier, broadcast, reduce, scatter
from .parallel import (
    DataParallel,
    ParallelEnv,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_available,
    is_initialized,
)
from .spawning import spawn

__all__ = [
    "DataParallel",
    "ParallelEnv",
    "ReduceOp",
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
    "scatter",
    "spawn",
]
