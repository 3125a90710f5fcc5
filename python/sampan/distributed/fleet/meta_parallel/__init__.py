"""Layers that are cut into parts, and networks that are cut into stages, one in each process."""

from .layers import ColumnParallelLinear, ParallelCrossEntropy, RowParallelLinear, VocabParallelEmbedding
from .pipeline import PipelineParallel
from .pipeline_layers import LayerDesc, PipelineLayer, SharedLayerDesc
from .random import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed

__all__ = [
    "ColumnParallelLinear",
    "LayerDesc",
    "ParallelCrossEntropy",
    "PipelineLayer",
    "PipelineParallel",
    "RNGStatesTracker",
    "RowParallelLinear",
    "SharedLayerDesc",
    "VocabParallelEmbedding",
    "get_rng_state_tracker",
    "model_parallel_random_seed",
]
