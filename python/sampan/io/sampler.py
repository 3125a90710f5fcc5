"""In which order samples are read. Random orders come from the package's generator, so `sampan.seed` decides them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence, Sized
from typing import Generic, TypeVar

from .. import _core
from .dataset import IterableDataset

T = TypeVar("T")


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[T]):
    """An order of samples; subclasses write `__iter__` and `__len__`.

    >>> from sampan.io import Sampler
    >>> class Backwards(Sampler):
    ...     def __iter__(self):
    ...         return iter(range(len(self.data_source) - 1, -1, -1))
    >>> list(Backwards(range(3)))
    [2, 1, 0]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    def __iter__(self):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} must define __iter__(self).")


class SequenceSampler(Sampler[int]):
    """0, 1, 2, …"""

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A shuffled order, or with `replacement` random draws; `generator` is an iterator that gives indices instead.

    >>> import sampan
    >>> sorted(sampan.io.RandomSampler(range(5)))
    [0, 1, 2, 3, 4]
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples=None, generator=None) -> None:
        super().__init__(data_source)
        if not isinstance(replacement, bool):
            raise TypeError(f"(InvalidType) RandomSampler: replacement must be a bool, got {replacement!r}.")
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not _is_count(self.num_samples):
            raise ValueError(
                f"(InvalidArgument) RandomSampler: num_samples must be a positive integer, got {self.num_samples!r}."
            )
        if not replacement and self.num_samples > len(data_source):
            raise ValueError(
                f"(InvalidArgument) RandomSampler: num_samples {self.num_samples} must be at most the "
                f"{len(data_source)} samples without replacement."
            )

    @property
    def num_samples(self) -> int:
        """Indices in a pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.generator:
            return (index for _, index in zip(range(self.num_samples), self.generator))
        if self.replacement:
            return iter(_core.op("randint")(0, n, [self.num_samples]).tolist())
        return iter(_core.op("randperm")(n).tolist()[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, of one axis, or of two: then `num_samples` draws for each row.

    >>> import sampan
    >>> list(sampan.io.WeightedRandomSampler([0.0, 2.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(self, weights, num_samples: int, replacement: bool = True) -> None:
        if not _is_count(num_samples):
            raise ValueError(
                f"(InvalidArgument) WeightedRandomSampler: num_samples must be a positive integer, got {num_samples!r}."
            )
        if not isinstance(replacement, bool):
            raise TypeError(f"(InvalidType) WeightedRandomSampler: replacement must be a bool, got {replacement!r}.")
        self.weights, self.num_samples, self.replacement = weights, num_samples, replacement
        table = self._table()
        if table.ndim > 2 or not bool((table >= 0).all()) or not bool(table.isfinite().all()):
            raise ValueError(
                "(InvalidArgument) WeightedRandomSampler: weights must have one axis or two, and be finite and not "
                f"negative. Received shape {table.shape}."
            )
        fewest = int((table > 0).cast("int64").sum(-1).min())
        if fewest < (1 if replacement else num_samples):
            raise ValueError(
                "(InvalidArgument) WeightedRandomSampler: each row needs a positive weight, and without replacement as "
                f"many as num_samples={num_samples}; a row has {fewest}."
            )

    def _table(self):
        return _core.to_tensor_py(self.weights, "float64")

    def __iter__(self):
        draws = _core.op("multinomial")(self._table(), self.num_samples, self.replacement)
        return iter(draws.flatten().tolist())

    def __len__(self) -> int:
        return self.num_samples * (len(self.weights) if self._table().ndim == 2 else 1)


class SubsetRandomSampler(Sampler[int]):
    """Given indices in a random order, each once."""

    def __init__(self, indices: Sequence[int]) -> None:
        if len(indices) == 0:
            raise ValueError("(InvalidArgument) SubsetRandomSampler: expected at least one index.")
        super().__init__()
        self.indices = indices

    def __iter__(self):
        return (self.indices[i] for i in _core.op("randperm")(len(self.indices)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler[Sequence[int]]):
    """The indices of a sampler, or of a data set in order or shuffled, in groups of `batch_size`.

    >>> from sampan.io import BatchSampler
    >>> list(BatchSampler(range(5), batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Sized | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (sampler is None):
            raise ValueError("(InvalidArgument) BatchSampler: set dataset or sampler, and not both.")
        if isinstance(dataset, IterableDataset):
            raise TypeError("(InvalidType) BatchSampler: an IterableDataset has no indices.")
        if sampler is not None and not isinstance(sampler, Iterable):
            raise TypeError(f"(InvalidType) BatchSampler: sampler must be iterable, got {type(sampler).__name__}.")
        if sampler is not None and shuffle:
            raise ValueError("(InvalidArgument) BatchSampler: shuffle must be False where a sampler decides the order.")
        _check_batches("BatchSampler", batch_size, shuffle, drop_last)
        self.sampler = sampler if dataset is None else RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last

    def __iter__(self):
        return _groups(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return _count(len(self.sampler), self.batch_size, self.drop_last)


def _check_batches(what: str, batch_size, shuffle, drop_last) -> None:
    if not _is_count(batch_size):
        raise ValueError(f"(InvalidArgument) {what}: batch_size must be a positive integer, got {batch_size!r}.")
    for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
        if not isinstance(value, bool):
            raise TypeError(f"(InvalidType) {what}: {name} must be a bool, got {value!r}.")


def _count(samples: int, batch_size: int, drop_last: bool) -> int:
    return samples // batch_size if drop_last else -(-samples // batch_size)


def _groups(indices: Iterable[int], size: int, drop_last: bool):
    group: list[int] = []
    for index in indices:
        group.append(index)
        if len(group) == size:
            yield group
            group = []
    if group and not drop_last:
        yield group


class DistributedBatchSampler(BatchSampler):
    """Batches for one of several processes, with the same number of samples for each: the first samples come again
    until the total can be divided. The order is Paddle's: `shuffle` draws it from the number of the epoch, which counts up by
    itself, so that it is the same in every process.

    >>> from sampan.io import DistributedBatchSampler
    >>> list(DistributedBatchSampler(range(7), batch_size=2, num_replicas=2, rank=1))
    [[2, 3], [6, 0]]
    """

    # Gives the seed of each epoch's order, the same in every process, instead of the number of the epoch.
    _draw = None

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        what = "DistributedBatchSampler"
        _check_batches(what, batch_size, shuffle, drop_last)
        # The launcher tells every process its place.
        ranks = int(os.environ.get("PADDLE_TRAINERS_NUM", 1)) if num_replicas is None else num_replicas
        rank = int(os.environ.get("PADDLE_TRAINER_ID", 0)) if rank is None else rank
        if not _is_count(ranks) or ranks > 2**20 or not isinstance(rank, int) or not 0 <= rank < ranks:
            raise ValueError(
                f"(InvalidArgument) {what}: rank must lie in [0, num_replicas). Received {rank!r} of {ranks!r}."
            )
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.nranks, self.local_rank, self.epoch = ranks, rank, 0
        self.num_samples = math.ceil(len(dataset) / ranks)
        self.total_size = self.num_samples * ranks

    def __iter__(self):
        samples = len(self.dataset)
        order = [i % samples for i in range(self.total_size)]
        if self.shuffle:
            import numpy as np

            np.random.RandomState(self.epoch if self._draw is None else self._draw()).shuffle(order)
            self.epoch += 1
        # Processes take full batches in turn; the rest is divided evenly.
        round_size = self.batch_size * self.nranks
        whole = self.total_size - self.total_size % round_size
        mine: list[int] = []
        for start in range(self.local_rank * self.batch_size, whole, round_size):
            mine += order[start : start + self.batch_size]
        share = (self.total_size - whole) // self.nranks
        mine += order[whole + self.local_rank * share : whole + (self.local_rank + 1) * share]
        return _groups(mine, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return _count(self.num_samples, self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, which decides its order."""
        self.epoch = epoch
