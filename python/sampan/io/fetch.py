"""Reads the samples of one batch, here or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _core
from .dataset import IterableDataset


@dataclass
class Task:
    """One batch to be made."""

    number: int
    """Its number in the pass."""
    place: int
    """Samples of the pass before it."""
    keys: Any
    """What the samples are asked for by; their number for an iterable data set, one key without batching."""


class End:
    """An iterable data set has no more samples."""


def _nothing(ordinal: int, key) -> None:
    """Nobody watches."""


class MapFetcher:
    """Samples by index."""

    def __init__(self, dataset, collate: Callable, batched: bool, seed: int):
        self.dataset, self.collate, self.batched, self.seed = dataset, collate, batched, seed

    def __call__(self, task: Task, watch: Callable = _nothing):
        """The batch of a task. `watch` is told about every sample before it is read."""
        dataset, seed, name = self.dataset, self.seed, type(self.dataset).__name__
        samples, keys = [], task.keys if self.batched else [task.keys]
        key = None
        try:
            for i, key in enumerate(keys):
                watch(i, key)
                samples.append(_core._read_sample(dataset, key, seed, task.place + i))
        except Exception as error:
            error.add_note(f"In: {name}[{key!r}], read by DataLoader for batch {task.number}")
            if isinstance(error, StopIteration):
                raise RuntimeError(f"(PreconditionNotMet) {name}[{key!r}] raised StopIteration.") from error
            raise
        return _collated(self.collate, samples if self.batched else samples[0], name, task, watch)


class StreamFetcher:
    """Samples one after the other."""

    def __init__(self, dataset, collate: Callable, batched: bool, seed: int, drop_last: bool, worker: int = 0):
        self.name, self.collate, self.batched, self.seed = type(dataset).__name__, collate, batched, seed
        self.drop_last, self.worker, self.place, self.ended = drop_last, worker, 0, False
        self.iterator = iter(dataset)

    def __call__(self, task: Task, watch: Callable = _nothing):
        """The next batch, or `End`."""
        samples: list = []
        size = task.keys if self.batched else 1
        try:
            while len(samples) < size and not self.ended:
                watch(len(samples), self.place)
                samples.append(_core._next_sample(self.iterator, self.seed, self.worker, self.place))
                self.place += 1
        except StopIteration:
            self.ended = True
        except Exception as error:
            self.ended = True
            error.add_note(f"In: sample {self.place} of {self.name}, read by DataLoader for batch {task.number}")
            raise
        if not samples or (self.drop_last and len(samples) < size):
            return End
        return _collated(self.collate, samples if self.batched else samples[0], self.name, task, watch)


def _collated(collate, samples, name: str, task: Task, watch: Callable):
    watch(-1, None)
    try:
        return collate(samples)
    except Exception as error:
        error.add_note(f"In: collate_fn of DataLoader, batch {task.number} of {name}")
        raise


def make_fetcher(dataset, collate: Callable, batched: bool, seed: int, drop_last: bool, worker: int = 0):
    """The fetcher for a data set."""
    if isinstance(dataset, IterableDataset):
        return StreamFetcher(dataset, collate, batched, seed, drop_last, worker)
    return MapFetcher(dataset, collate, batched, seed)
