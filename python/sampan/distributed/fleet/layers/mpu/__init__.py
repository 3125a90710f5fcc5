"""Layers that are cut into parts, where Paddle's programs look for them."""

from ...meta_parallel.layers import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
    split,
)
from ...meta_parallel.random import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed

__all__ = [
    "ColumnParallelLinear",
    "ParallelCrossEntropy",
    "RNGStatesTracker",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "get_rng_state_tracker",
    "model_parallel_random_seed",
    "split",
]
