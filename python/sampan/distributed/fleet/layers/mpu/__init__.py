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


def __getattr__(name):
    # Files of Paddle's.
    homes = {
        "mp_layers": "sampan.distributed.fleet.meta_parallel.layers",
        "mp_ops": "sampan.compat.collective",
        "random": "sampan.distributed.fleet.meta_parallel.random",
    }
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module(homes[name])
