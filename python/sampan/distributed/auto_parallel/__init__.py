"""Tensors that lie on a mesh of processes: Paddle's auto-parallel, on the collectives of this package."""

from .api import (
    ShardDataloader,
    dtensor_from_fn,
    dtensor_from_local,
    dtensor_to_local,
    reshard,
    shard_dataloader,
    shard_layer,
    shard_tensor,
    unshard_dtensor,
)
from .local import LocalLayer, local_map
from .mesh import ProcessMesh, get_mesh, set_mesh
from .model import DistModel, Strategy, to_static
from .optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer, shard_scaler
from .parallelize import parallelize, to_distributed
from .placement import DistAttr, Partial, Placement, ReduceType, Replicate, Shard
from .plans import (
    ColWiseParallel,
    ContextParallel,
    ConvParallel,
    PrepareContextParallel,
    PrepareLayerInput,
    PrepareLayerOutput,
    RowWiseParallel,
    SequenceParallelBegin,
    SequenceParallelDisable,
    SequenceParallelEnable,
    SequenceParallelEnd,
)
from .stages import SplitPoint

__all__ = [
    "ColWiseParallel",
    "ContextParallel",
    "ConvParallel",
    "DistAttr",
    "DistModel",
    "LocalLayer",
    "Partial",
    "Placement",
    "PrepareContextParallel",
    "PrepareLayerInput",
    "PrepareLayerOutput",
    "ProcessMesh",
    "ReduceType",
    "Replicate",
    "RowWiseParallel",
    "SequenceParallelBegin",
    "SequenceParallelDisable",
    "SequenceParallelEnable",
    "SequenceParallelEnd",
    "Shard",
    "ShardDataloader",
    "ShardingStage1",
    "ShardingStage2",
    "ShardingStage3",
    "SplitPoint",
    "Strategy",
    "dtensor_from_fn",
    "dtensor_from_local",
    "dtensor_to_local",
    "get_mesh",
    "local_map",
    "parallelize",
    "reshard",
    "set_mesh",
    "shard_dataloader",
    "shard_layer",
    "shard_optimizer",
    "shard_scaler",
    "shard_tensor",
    "to_distributed",
    "to_static",
    "unshard_dtensor",
]
