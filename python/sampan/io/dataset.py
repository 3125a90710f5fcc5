"""What data can be loaded from: by index, or one sample after the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from .. import _core

T = TypeVar("T")


class Dataset(Generic[T]):
    """Samples that can be asked for by index; subclasses write `__getitem__` and `__len__`.

    >>> from sampan.io import Dataset
    >>> class Squares(Dataset):
    ...     def __getitem__(self, i):
    ...         return i * i
    ...     def __len__(self):
    ...         return 10
    >>> Squares()[3]
    9
    """

    def __init__(self) -> None:
        pass

    def __getitem__(self, idx: int) -> T:
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} must define __getitem__(self, idx).")

    def __len__(self) -> int:
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} must define __len__(self).")


class NoLength(RuntimeError, ValueError, TypeError):
    """Something has no length. `list(…)` takes a `TypeError` for an answer, and goes on; the others are Paddle's."""


class IterableDataset(Dataset[T]):
    """Samples that come one after the other; subclasses write `__iter__`.

    With several workers every worker runs the whole iteration: share the samples out by `get_worker_info`, or each
    sample comes once per worker.

    >>> from sampan.io import DataLoader, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         yield from range(5)
    >>> [batch.tolist() for batch in DataLoader(Count(), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __iter__(self):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} must define __iter__(self).")

    def __getitem__(self, idx):
        raise RuntimeError(f"(PreconditionNotMet) {type(self).__name__} is an IterableDataset: it has no index.")

    def __len__(self):
        raise NoLength(f"(PreconditionNotMet) {type(self).__name__} is an IterableDataset: it has no length.")


def _data_sets(given: Iterable, what: str, kind: type, but: type | None = None) -> list:
    """A checked list of data sets."""
    datasets = list(given)
    if not datasets:
        raise ValueError(f"(InvalidArgument) {what}: expected at least one data set, the list is empty.")
    for i, d in enumerate(datasets):
        if not isinstance(d, kind) or (but and isinstance(d, but)):
            wanted = f"a {kind.__name__}" + (f" and no {but.__name__}" if but else "")
            raise TypeError(f"(InvalidType) {what}: datasets[{i}] must be {wanted}, got {type(d).__name__}.")
    return datasets


class TensorDataset(Dataset):
    """Tensors with one row for each sample; each tensor is a field.

    >>> import sampan
    >>> data = sampan.io.TensorDataset([sampan.ones([4, 2]), sampan.arange(4)])
    >>> len(data), data[3][1].item()
    (4, 3)
    """

    def __init__(self, tensors: Sequence) -> None:
        tensors = list(tensors)
        if not tensors or any(len(t.shape) == 0 for t in tensors):
            raise ValueError("(InvalidArgument) TensorDataset: expected tensors with at least one axis.")
        rows = [int(t.shape[0]) for t in tensors]
        if len(set(rows)) > 1:
            raise ValueError(
                "(InvalidArgument) TensorDataset: all tensors must have the same first extent. "
                f"Received {', '.join(str(list(t.shape)) for t in tensors)}."
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def _rust(self):
        if all(isinstance(t, _core.Tensor) for t in self.tensors):
            return _core.RustDataset.of_tensors(self.tensors), None
        return None


class ComposeDataset(Dataset):
    """The fields of several data sets of one length, side by side.

    >>> import sampan
    >>> a, b = (sampan.io.TensorDataset([sampan.full([3, 2], v)]) for v in (1.0, 2.0))
    >>> len(sampan.io.ComposeDataset([a, b])[0])
    2
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = _data_sets(datasets, "ComposeDataset", Dataset, but=IterableDataset)
        lengths = [len(d) for d in self.datasets]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"(InvalidArgument) ComposeDataset: all data sets must have the same length. Received {lengths}."
            )

    def __getitem__(self, idx):
        fields: list[Any] = []
        for d in self.datasets:
            sample = d[idx]
            fields.extend(sample) if isinstance(sample, (list, tuple)) else fields.append(sample)
        return tuple(fields)

    def __len__(self) -> int:
        return len(self.datasets[0])


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets: Sequence[IterableDataset]) -> None:
        self.datasets = _data_sets(datasets, "ChainDataset", IterableDataset)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)


class ConcatDataset(Dataset[T]):
    """The samples of several data sets, one set after the other.

    >>> import sampan
    >>> a, b = (sampan.io.TensorDataset([sampan.full([3], v)]) for v in (1.0, 2.0))
    >>> both = sampan.io.ConcatDataset([a, b])
    >>> len(both), both[3][0].item()
    (6, 2.0)
    """

    @staticmethod
    def cumsum(sequence: Sequence) -> list[int]:
        """Running totals of the lengths."""
        return list(itertools.accumulate(len(s) for s in sequence))

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = _data_sets(datasets, "ConcatDataset", object, but=IterableDataset)
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __getitem__(self, idx: int) -> T:
        place = idx + len(self) if idx < 0 else idx
        if place < 0:
            raise ValueError(f"(InvalidArgument) ConcatDataset: index {idx} is out of range for {len(self)} samples.")
        part = bisect.bisect_right(self.cumulative_sizes, place)
        if part == len(self.datasets):
            raise IndexError(f"(OutOfRange) ConcatDataset: index {idx} is out of range for {len(self)} samples.")
        return self.datasets[part][place - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class Subset(Dataset[T]):
    """Some samples of a data set.

    >>> from sampan.io import Subset
    >>> list(Subset(range(10, 20), [0, 3]))
    [10, 13]
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: int) -> T:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)

    def _rust(self):
        inner = rust_source(self.dataset)
        if inner is None:
            return None
        source, mapping = inner
        own = [int(i) for i in self.indices]
        length = len(self.dataset)
        own = [i + length if i < 0 else i for i in own]
        return source, own if mapping is None else [mapping[i] for i in own]


def random_split(dataset: Dataset[T], lengths: Sequence[int | float], generator: Any = None) -> list[Subset[T]]:
    """Cuts a data set into parts at random. `lengths` are numbers of samples, or fractions that add up to 1; samples
    that are left over by fractions go to the parts in turn.

    >>> import sampan
    >>> [len(part) for part in sampan.io.random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    lengths, total = list(lengths), len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"(InvalidArgument) random_split: fraction {i} must lie in [0, 1], got {fraction}.")
        lengths = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(lengths)):
            lengths[i % len(lengths)] += 1
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(f"random_split: part {i} is empty.", stacklevel=2)
    if sum(lengths) != total:
        raise ValueError(
            f"(InvalidArgument) random_split: the lengths must add up to the {total} samples of the data set. "
            f"Received {lengths}, which add up to {sum(lengths)}."
        )
    order = _core.op("randperm")(total).tolist() if total else []
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def rust_source(dataset):
    """The data set of the core with the same samples, and where each sample lies in it (None: in the same place). None
    where samples are made by Python."""
    source = getattr(dataset, "_rust", None)
    # A subclass that reads samples in its own way has to be asked.
    own = getattr(type(dataset).__getitem__, "__module__", "") if source else ""
    return source() if own.startswith("sampan.") else None
