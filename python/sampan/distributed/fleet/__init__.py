"""Paddle's `fleet`: one place from which a program asks for data, tensor and sharded parallel training."""

from . import meta_parallel
from .fleet import (
    Fleet,
    barrier_worker,
    distributed_model,
    distributed_optimizer,
    distributed_scaler,
    get_hybrid_communicate_group,
    init,
    is_first_worker,
    is_worker,
    local_rank,
    nranks,
    rank,
    worker_endpoints,
    worker_index,
    worker_num,
    world_size,
)
from .strategy import DistributedStrategy
from .topology import CommunicateTopology, HybridCommunicateGroup

__all__ = [
    "CommunicateTopology",
    "DistributedStrategy",
    "Fleet",
    "HybridCommunicateGroup",
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "distributed_scaler",
    "get_hybrid_communicate_group",
    "init",
    "is_first_worker",
    "is_worker",
    "local_rank",
    "meta_parallel",
    "nranks",
    "rank",
    "worker_endpoints",
    "worker_index",
    "worker_num",
    "world_size",
]
