"""Layers that are cut into parts, and networks that are cut into stages, one in each process."""

from .layers import ColumnParallelLinear, ParallelCrossEntropy, RowParallelLinear, VocabParallelEmbedding
from .pipeline import PipelineParallel
from .pipeline_layers import LayerDesc, PipelineLayer, SharedLayerDesc

__all__ = [
    "ColumnParallelLinear",
    "LayerDesc",
    "ParallelCrossEntropy",
    "PipelineLayer",
    "PipelineParallel",
    "RowParallelLinear",
    "SharedLayerDesc",
    "VocabParallelEmbedding",
]
