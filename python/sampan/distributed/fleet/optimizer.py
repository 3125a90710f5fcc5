"""The optimizer of a hybrid training."""

from __future__ import annotations

from ..sharding import ShardedOptimizer
from .topology import HybridCommunicateGroup


class HybridParallelOptimizer(ShardedOptimizer):
    """An optimizer whose states are shared out along the axis `sharding`, and whose clipping counts the parts of layers
    that are cut along the axis `model` together."""

    def __init__(self, optimizer, groups: HybridCommunicateGroup):
        super().__init__(
            optimizer,
            groups.get_sharding_parallel_group(),
            [groups.get_model_parallel_group()],
            stages=groups.get_pipe_parallel_group(),
        )
