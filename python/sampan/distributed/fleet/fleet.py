"""The entry points of `fleet`."""

from __future__ import annotations

import os

from ..communication import barrier
from ..parallel import (
    DataParallel,
    ParallelEnv,
    get_rank,
    get_world_size,
    init_parallel_env,
)
from ..scaler import agreeing
from .role_maker import PaddleCloudRoleMaker
from .strategy import DistributedStrategy
from .topology import AXES, CommunicateTopology, HybridCommunicateGroup


class Fleet:
    """What was said by `init`."""

    def __init__(self):
        self._strategy: DistributedStrategy | None = None
        self._groups: HybridCommunicateGroup | None = None
        # With parameter servers: what this process is.
        self._server = None

    def init(self, role_maker=None, is_collective=False, strategy=None, log_level="INFO") -> Fleet:
        """Meets the other processes and lays them out as `strategy.hybrid_configs` says; or, with a role maker that is not
        collective (`PaddleCloudRoleMaker` without anything), makes this process a worker or a parameter server."""
        self._strategy = strategy or DistributedStrategy()
        if role_maker is None and not is_collective:
            role_maker = PaddleCloudRoleMaker()
        self._server = None
        if role_maker is not None and not role_maker._is_collective:
            from ..ps import ParameterServer

            self._server = ParameterServer(role_maker, self._strategy)
            return self
        init_parallel_env()
        degrees = self._strategy.hybrid_configs
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
        """A network whose gradients become means over the processes that share the data; a `PipelineLayer` gets
        `train_batch` and `eval_batch`."""
        from .meta_parallel import PipelineLayer, PipelineParallel

        if self._server is not None:
            return self._server.take_model(model)
        groups, told = self._ready(), self._strategy
        if told.sync_batch_norm:
            from ...nn import SyncBatchNorm

            model = SyncBatchNorm.convert_sync_batchnorm(model)
        if isinstance(model, PipelineLayer):
            return PipelineParallel(model, groups, told)
        if groups.get_pipe_parallel_world_size() > 1:
            raise TypeError(
                "(InvalidType) fleet.distributed_model: a pipeline is a PipelineLayer. Hint: describe the network as one, or "
                "set pp_degree to 1."
            )
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

        if self._server is not None:
            if strategy is not None:
                self._server.take_strategy(strategy)
            return self._server.take_optimizer(optimizer)
        return HybridParallelOptimizer(optimizer, self._ready())

    def distributed_scaler(self, scaler):
        """The scaler; processes that hold different parts of a network skip the same steps."""
        groups = self._ready()
        return agreeing(scaler, [groups.get_model_parallel_group(), groups.get_pipe_parallel_group()])

    def worker_index(self) -> int:
        """The number of this process; -1 for a server."""
        return get_rank() if self._server is None else self._server.role._worker_index()

    def worker_num(self) -> int:
        """How many processes train."""
        return get_world_size() if self._server is None else self._server.role._worker_num()

    def is_first_worker(self) -> bool:
        """Is this rank 0?"""
        return self.worker_index() == 0

    def is_worker(self) -> bool:
        """Does this process train?"""
        return self._server is None or self._server.role._is_worker()

    def is_server(self) -> bool:
        """Is this process a parameter server?"""
        return not self.is_worker()

    def server_num(self) -> int:
        """How many parameter servers there are."""
        return self._served().role._server_num()

    def server_index(self) -> int:
        """The number of this server; -1 for a worker."""
        return self._served().role._server_index()

    def server_endpoints(self, to_string=False):
        """The addresses of the parameter servers."""
        found = self._served().role._get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def _served(self):
        if self._server is None:
            raise RuntimeError(
                "(PreconditionNotMet) fleet: this training has no parameter servers. Hint: fleet.init(PaddleCloudRoleMaker()), "
                "started by `launch --server_num 1 --worker_num 2`."
            )
        return self._server

    def init_server(self, dirname=None, var_names=None, **kwargs) -> None:
        """Makes this server ready; rows that do not fit into memory wait in the folder `SAMPAN_PS_DIR`."""
        self._served()

    def run_server(self) -> None:
        """Serves until every worker has called `stop_worker`."""
        self._served().serve(os.environ.get("SAMPAN_PS_DIR"))

    def init_worker(self, scopes=None, dirname=None) -> None:
        """Connects this worker to the servers. All begin with the parameters of the first worker, or with what
        `save_persistables` wrote into `dirname`."""
        self._served().connect(dirname)

    def stop_worker(self) -> None:
        """This worker is done; the servers end when all are."""
        self._served().leave()

    def save_persistables(self, executor=None, dirname=None, main_program=None, mode=0) -> None:
        """Writes the tables of all servers into a folder. One worker calls it, between steps."""
        if dirname is None:
            executor, dirname = None, executor
        self._served().save(dirname)

    def worker_endpoints(self, to_string=False):
        """The addresses of all processes."""
        found = ParallelEnv().trainer_endpoints
        return ",".join(found) if to_string else found

    def barrier_worker(self) -> None:
        """Waits for all processes."""
        if self._server is not None:
            self._server.barrier("barrier_worker")
        else:
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
is_server, server_num, server_index, server_endpoints = (
    fleet.is_server, fleet.server_num, fleet.server_index, fleet.server_endpoints
)  # fmt: skip
init_server, run_server, init_worker, stop_worker = (
    fleet.init_server, fleet.run_server, fleet.init_worker, fleet.stop_worker
)  # fmt: skip
save_persistables = fleet.save_persistables
is_worker, worker_endpoints, barrier_worker = fleet.is_worker, fleet.worker_endpoints, fleet.barrier_worker
rank, nranks, world_size, local_rank = fleet.rank, fleet.nranks, fleet.world_size, fleet.local_rank
