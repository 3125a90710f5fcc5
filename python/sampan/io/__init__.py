"""Data sets, samplers and the loader: Paddle's `io`.

>>> import sampan
>>> from sampan.io import DataLoader, Dataset
>>> class Squares(Dataset):
...     def __getitem__(self, i):
...         return float(i), float(i * i)
...     def __len__(self):
...         return 5
>>> [x.shape for x, y in DataLoader(Squares(), batch_size=2)]
[[2], [2], [1]]
"""

import os as _os

from .. import _core
from .dataset import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .loader import DataLoader
from .sampler import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .worker import get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "get_worker_info",
    "random_split",
]

# A forked child has none of the threads that its parent's ops run on.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_core._after_fork)
    # Nor can it use a GPU that its parent used: what a worker makes is the processor's.
    _os.register_at_fork(after_in_child=lambda: _core._set_device("cpu"))
