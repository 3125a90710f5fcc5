"""The entry points of `fleet`."""

from __future__ import annotations

from ..communication import barrier
from ..parallel import DataParallel, ParallelEnv, get_rank, get_world_size, init_parallel_env
from .strategy import DistributedStrategy
from .topology import AXES, CommunicateTopology, HybridCommunicateGroup


class Fleet:
    """What was said by `init`."""

    def __init__(self):
        self._strategy: DistributedStrategy | None = None
        self._groups: HybridCommunicateGroup | None = None

    def init(self, role_maker=None, is_collective=False, strategy=None, log_level="INFO") -> Fleet:
        """Meets the other processes and lays them out as `strategy.hybrid_configs` says."""
        if role_maker is not None and not getattr(role_maker, "_is_collective", True) or not (is_collective or role_maker):
            raise NotImplementedError(
                "(Unimplemented) fleet.init: there is no parameter server here. Hint: fleet.init(is_collective=True)."
            )
        init_parallel_env()
        self._strategy = strategy or DistributedStrategy()
        degrees = self._strategy.hybrid_configs
        if degrees["pp_degree"] > 1:
            raise NotImplementedError(
                "(Unimplemented) fleet.init: there is no pipeline here. Hint: pp_degree=1; mp_degree cuts layers."
            )
        others = degrees["mp_degree"] * degrees["pp_degree"] * degrees["sharding_degree"] * degrees["sep_degree"]
        data = degrees["dp_degree"] if degrees["dp_degree"] > 0 else max(1, get_world_size() // others)
        named = {"data": data, "model": degrees["mp_degree"]}
        dims = [named.get(axis) or degrees[{"pipe": "pp_degree"}.get(axis, f"{axis}_degree")] for axis in AXES]
        self._groups = HybridCommunicateGroup(CommunicateTopology(AXES, dims))
        return self

    def _ready(self) -> HybridCommunicateGroup:
        if self._groups is None:
            raise RuntimeError("(PreconditionNotMet) fleet: nothing was said yet. Hint: fleet.init(is_collective=True).")
        return self._groups

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        """The groups of this process."""
        return self._ready()

    def distributed_model(self, model):
        """A network whose gradients become means over the processes that share the data."""
        groups, told = self._ready(), self._strategy
        if told.sync_batch_norm:
            from ...nn import SyncBatchNorm

            model = SyncBatchNorm.convert_sync_batchnorm(model)
        shared = groups.get_data_parallel_group()
        if groups.get_sharding_parallel_world_size() > 1:
            # Processes that share the optimizer's state see other data as well.
            shared = groups.get_sharding_parallel_group() if shared.nranks == 1 else None
            if shared is None:
                raise NotImplementedError(
                    "(Unimplemented) fleet: dp_degree and sharding_degree above one at once. Hint: use one of them."
                )
        if shared.nranks == 1:
            return model
        return DataParallel(
            model,
            comm_buffer_size=told.fuse_grad_size_in_MB,
            last_comm_buffer_size=told.last_comm_group_size_MB,
            find_unused_parameters=told.find_unused_parameters,
            group=shared,
        )

    def distributed_optimizer(self, optimizer, strategy=None):
        """An optimizer for this layout: its states are shared out along the axis `sharding`, and its clipping counts the
        parts of cut layers together."""
        from .optimizer import HybridParallelOptimizer

        return HybridParallelOptimizer(optimizer, self._ready())

    def distributed_scaler(self, scaler):
        """The scaler as it is: reduced gradients are alike, so all processes skip the same steps."""
        return scaler

    def worker_index(self) -> int:
        """The number of this process."""
        return get_rank()

    def worker_num(self) -> int:
        """How many processes there are."""
        return get_world_size()

    def is_first_worker(self) -> bool:
        """Is this rank 0?"""
        return get_rank() == 0

    def is_worker(self) -> bool:
        """Does this process train?"""
        return True

    def worker_endpoints(self, to_string=False):
        """The addresses of all processes."""
        found = ParallelEnv().trainer_endpoints
        return ",".join(found) if to_string else found

    def barrier_worker(self) -> None:
        """Waits for all processes."""
        barrier()

    def local_rank(self) -> int:
        """The number of this process on its machine."""
        return ParallelEnv()._local_rank

    rank, nranks, world_size = worker_index, worker_num, worker_num


fleet = Fleet()
init = fleet.init
distributed_model, distributed_optimizer = fleet.distributed_model, fleet.distributed_optimizer
distributed_scaler, get_hybrid_communicate_group = fleet.distributed_scaler, fleet.get_hybrid_communicate_group
worker_index, worker_num, is_first_worker = fleet.worker_index, fleet.worker_num, fleet.is_first_worker
is_worker, worker_endpoints, barrier_worker = fleet.is_worker, fleet.worker_endpoints, fleet.barrier_worker
rank, nranks, world_size, local_rank = fleet.rank, fleet.nranks, fleet.world_size, fleet.local_rank
