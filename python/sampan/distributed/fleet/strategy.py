"""What a parallel training is told."""

from __future__ import annotations

_DEGREES = {"dp_degree": -1, "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1, "sep_degree": 1}
# Settings that this package understands; a strategy of Paddle has many more, for graphs and other devices.
_KNOWN = {
    "find_unused_parameters": False,
    "fuse_grad_size_in_MB": 32,
    "last_comm_group_size_MB": 1,
    "sync_batch_norm": False,
    "tensor_parallel": False,
    "tensor_parallel_configs": {},
    "sharding": False,
    "sharding_configs": {},
    "pipeline": False,
    "pipeline_configs": {},
    "gradient_scale_configs": {"scale_strategy": "avg"},
    # Parameter servers: together, or each worker at once; with `k_steps` above 0 geo-SGD.
    "a_sync": True,
    "a_sync_configs": {"k_steps": -1},
}
# Settings of other engines and of graphs, which may be set and change nothing here.
_IDLE = (
    "amp amp_configs auto build_strategy conv_workspace_size_limit cudnn_exhaustive_search "
    "cudnn_batchnorm_spatial_persistent elastic fp16_allreduce fuse_all_reduce_ops fuse_grad_size_in_num heter_ccl_mode "
    "hierarchical_allreduce_inter_nranks nccl_comm_num recompute recompute_configs sync_nccl_allreduce "
    "use_hierarchical_allreduce without_graph_optimization"
).split()


class DistributedStrategy:
    """What a parallel training is told. `hybrid_configs` says how many processes share which work: `dp_degree` (data),
    `mp_degree` (layers cut in parts), `sharding_degree` (states of the optimizer)."""

    def __init__(self):
        self.__dict__["_told"] = dict(_KNOWN)
        self.__dict__["_hybrid"] = dict(_DEGREES)

    @property
    def hybrid_configs(self) -> dict:
        """How many processes share which work."""
        return self._hybrid

    @hybrid_configs.setter
    def hybrid_configs(self, told: dict):
        for name, value in told.items():
            if name.endswith("_degree") and (not isinstance(value, int) or value == 0 or value < -1):
                raise ValueError(f"(InvalidArgument) hybrid_configs: {name} is a number of processes, got {value!r}.")
            self._hybrid[name] = value

    def __getattr__(self, name):
        if name in self.__dict__.get("_told", {}):
            return self._told[name]
        if name in _IDLE:
            return {} if name.endswith("_configs") else False
        raise AttributeError(f"DistributedStrategy has no setting {name!r}")

    def __setattr__(self, name, value):
        if name == "hybrid_configs":
            type(self).hybrid_configs.fset(self, value)
        elif name in _KNOWN or name in _IDLE:
            self._told[name] = value
        else:
            raise AttributeError(
                f"(InvalidArgument) DistributedStrategy: there is no setting {name!r} here. Hint: "
                f"{', '.join(['hybrid_configs', *_KNOWN])}."
            )
