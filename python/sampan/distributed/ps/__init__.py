"""Training with parameter servers: embeddings whose rows lie on servers. `fleet` starts and steers it."""

from .embedding import SparseEmbedding
from .runtime import ParameterServer

__all__ = ["ParameterServer", "SparseEmbedding"]
