"""Paddle's `fleet`: one place from which a program asks for data, tensor, pipeline and sharded parallel training."""

from . import meta_parallel, metrics, utils
from .data_generator import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator
from .fleet import (
    Fleet,
    barrier_worker,
    distributed_model,
    distributed_optimizer,
    distributed_scaler,
    fleet,
    get_hybrid_communicate_group,
    init,
    init_server,
    init_worker,
    is_first_worker,
    is_server,
    is_worker,
    local_rank,
    nranks,
    rank,
    run_server,
    save_persistables,
    server_endpoints,
    server_index,
    server_num,
    stop_worker,
    worker_endpoints,
    worker_index,
    worker_num,
    world_size,
)
from .role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from .strategy import DistributedStrategy
from .topology import CommunicateTopology, HybridCommunicateGroup
from .util import UtilBase
from .utils import recompute

util = UtilBase()

__all__ = [
    "CommunicateTopology",
    "DataGenerator",
    "DistributedStrategy",
    "Fleet",
    "HybridCommunicateGroup",
    "MultiSlotDataGenerator",
    "MultiSlotStringDataGenerator",
    "PaddleCloudRoleMaker",
    "Role",
    "UserDefinedRoleMaker",
    "UtilBase",
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "distributed_scaler",
    "fleet",
    "get_hybrid_communicate_group",
    "init",
    "init_server",
    "init_worker",
    "is_first_worker",
    "is_server",
    "is_worker",
    "local_rank",
    "meta_parallel",
    "metrics",
    "nranks",
    "rank",
    "recompute",
    "run_server",
    "save_persistables",
    "server_endpoints",
    "server_index",
    "server_num",
    "stop_worker",
    "util",
    "utils",
    "worker_endpoints",
    "worker_index",
    "worker_num",
    "world_size",
]
