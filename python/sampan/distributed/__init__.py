"""Processes that train together, on one machine or many: Paddle's `distributed`."""

from . import auto_parallel, fleet, rpc, stream
from .auto_parallel import *  # noqa: F403
from .checkpoint import load_merged_state_dict, load_state_dict, save_state_dict
from .communication import (
    P2POp,
    ReduceOp,
    all_gather,
    all_reduce,
    alltoall,
    alltoall_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
    wait,
)
from .gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from .group import (
    Group,
    create_nccl_config,
    destroy_process_group,
    get_backend,
    get_group,
    is_available,
    is_initialized,
    new_group,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .parallel import (
    DataParallel,
    ParallelEnv,
    ParallelMode,
    ParallelStrategy,
    get_rank,
    get_world_size,
    init_parallel_env,
)
from .fleet.meta_parallel.layers import split
from .sharded_weight import ShardedStateDict, ShardedWeight, build_sharded_state_dict, shard_weight
from .sharding import group_sharded_parallel, save_group_sharded_model
from .spawning import spawn

__all__ = [
    *auto_parallel.__all__,
    "DataParallel",
    "Group",
    "P2POp",
    "ParallelEnv",
    "ParallelMode",
    "ParallelStrategy",
    "ReduceOp",
    "ShardedStateDict",
    "ShardedWeight",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "auto_parallel",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "build_sharded_state_dict",
    "create_nccl_config",
    "destroy_process_group",
    "fleet",
    "gather",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "group_sharded_parallel",
    "init_parallel_env",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "load_merged_state_dict",
    "load_state_dict",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "rpc",
    "save_group_sharded_model",
    "save_state_dict",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "shard_weight",
    "spawn",
    "split",
    "stream",
    "wait",
]


def __getattr__(name):
    if name != "collective":
        raise AttributeError(f"module 'sampan.distributed' has no attribute {name!r}")
    # A file of Paddle's.
    from ..compat import collective

    return collective
