"""`DataLoader`: a data set in batches."""

from __future__ import annotations

import itertools
import sys
import warnings
import weakref
from collections.abc import Callable

from .. import _core
from .collate import as_tensors, default_collate_fn, default_convert_fn, to_tensors
from .dataset import IterableDataset, NoLength, rust_source
from .fetch import End, Task, make_fetcher
from .sampler import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .timed import TimedPass

# Samplers that end.
_FINITE = (SequenceSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


class DataLoader:
    """Reads a data set in batches.

    The order, and what the package's random transforms draw, depend on the data set, the sampler and `sampan.seed`
    alone, and not on the number of workers. Data sets of tensors and the built-in ones with their usual transforms are
    read by threads of the core; all others in this process or, with `num_workers`, by processes that are forked from
    it. An error in a worker is raised here, with the worker's traceback and the index of the sample; a worker that is
    killed is an error at once.

    Args:
        dataset: a `Dataset`, an `IterableDataset`, or anything with `__getitem__` and `__len__`.
        feed_list: taken for Paddle's sake.
        places: taken for Paddle's sake.
        return_list: taken for Paddle's sake; a batch has the form of a sample, with lists for sequences.
        batch_sampler: which samples make up each batch, instead of `batch_size`, `shuffle` and `drop_last`.
        batch_size: samples in a batch, or None for samples as they are.
        shuffle: a new random order in every pass.
        drop_last: leave out a last batch that is not full.
        collate_fn: makes a batch of a list of samples.
        num_workers: processes (or threads, for built-in data sets) that read ahead; 0 reads in this process.
        use_buffer_reader: let a thread of the core read ahead where it can.
        reader_buffer_size: taken for Paddle's sake.
        prefetch_factor: batches that each worker may be ahead.
        use_shared_memory: send arrays of workers through shared memory, not in messages.
        timeout: seconds to wait for a batch of a worker before that is an error; 0 for as long as it takes.
        worker_init_fn: called with its number in each worker before its first sample.
        persistent_workers: keep the workers from one pass to the next. A new pass then ends the one before it.

    >>> import sampan
    >>> data = sampan.io.TensorDataset([sampan.arange(5)])
    >>> [batch[0].tolist() for batch in sampan.io.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset,
        feed_list=None,
        places=None,
        return_list: bool = True,
        batch_sampler: BatchSampler | None = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        for name, value, least in (
            ("num_workers", num_workers, 0),
            ("prefetch_factor", prefetch_factor, 1),
            ("timeout", timeout, 0),
        ):
            if value < least:
                raise ValueError(f"(InvalidArgument) DataLoader: {name} must be at least {least}, got {value!r}.")
        if num_workers > 0 and not sys.platform.startswith("linux"):
            warnings.warn("DataLoader: worker processes need Linux; the data is read in this process.", stacklevel=2)
            num_workers = 0
        self.dataset = dataset
        self.feed_list, self.places, self.return_list = feed_list, places, return_list
        self.collate_fn, self.worker_init_fn = collate_fn, worker_init_fn
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.use_buffer_reader, self.reader_buffer_size = use_buffer_reader, reader_buffer_size
        self.use_shared_memory = use_shared_memory and num_workers > 0
        self.drop_last = drop_last
        self._shuffle = shuffle
        self._persistent_workers = persistent_workers
        self._crew = None
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or batch_sampler is not None):
            what = "shuffle" if shuffle else "batch_sampler"
            raise ValueError(
                f"(InvalidArgument) DataLoader: an IterableDataset decides its own order, {what} must not be set. "
                "Hint: shuffle within its __iter__."
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
            raise ValueError(
                "(InvalidArgument) DataLoader: batch_size, shuffle and drop_last must not be set beside batch_sampler. "
                f"Received {batch_size!r}, {shuffle!r}, {drop_last!r}."
            )
        self.batch_size = batch_size if batch_sampler is None else None
        if batch_size is not None and batch_sampler is None:
            if not isinstance(batch_size, int) or batch_size < 1:
                raise ValueError(
                    "(InvalidArgument) DataLoader: batch_size must be a positive integer, or None for no batching, got "
                    f"{batch_size!r}."
                )
            if not self._iterable:
                batch_sampler = BatchSampler(dataset, None, bool(shuffle), batch_size, bool(drop_last))
        self.batch_sampler = batch_sampler
        self.auto_collate_batch = batch_sampler is not None or batch_size is not None

    def __len__(self) -> int:
        if self._iterable:
            raise NoLength("(InvalidArgument) DataLoader: an IterableDataset has no length.")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self):
        batches = self._pass()
        # Who times the reading tells training from evaluation by the data.
        batches._dataset = self.dataset
        return batches

    def _pass(self):
        fast = self._fast_pass()
        if fast is not None:
            return fast
        tasks = self._tasks()
        seed = _core._derive_seed(*_core._pass_place(), 0)
        collate = self.collate_fn or (default_collate_fn if self.auto_collate_batch else default_convert_fn)
        if self.num_workers == 0:
            fetch = make_fetcher(self.dataset, collate, self.auto_collate_batch, seed, self.drop_last)
            # What was stacked is new; what a function of the user's gives may be his own.
            convert = as_tensors if collate is default_collate_fn else to_tensors
            return Pass(self, map(convert, _made(fetch, tasks)))
        return self._process_pass(collate, tasks, seed)

    def __call__(self):
        return iter(self)

    def _process_pass(self, collate: Callable, tasks, seed: int):
        from .processes import Crew, ProcessPass

        crew = self._crew
        if crew is None or crew.stopped:
            crew = Crew(self, collate)
            if self._persistent_workers:
                self._crew = crew
                weakref.finalize(self, crew.stop)
        arguments = (self.timeout, self.prefetch_factor, self.__len__, self._persistent_workers)
        return ProcessPass(crew, tasks, seed, *arguments)

    def _order(self):
        """What each batch is asked for by."""
        if self._iterable:
            return itertools.repeat(self.batch_size)
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        return iter(RandomSampler(self.dataset) if self._shuffle else SequenceSampler(self.dataset))

    def _tasks(self):
        # The order is drawn now, not when the first batch is asked for.
        order = self._order()

        def tasks():
            place = 0
            for number, keys in enumerate(order):
                yield Task(number, place, keys)
                place += len(keys) if isinstance(keys, (list, tuple)) else 1

        return tasks()

    def _fast_pass(self):
        """A pass by threads of the core, where the data set is one of the core's and nothing of it is Python's."""
        batches, sampler = self.batch_sampler, getattr(self.batch_sampler, "sampler", None)
        # A sampler of the user's may go on for ever, or follow what happens between two batches.
        plain = type(batches) is BatchSampler and type(sampler) in _FINITE
        finite = plain or type(batches) is DistributedBatchSampler
        if self.collate_fn is not None or self.worker_init_fn is not None or not finite:
            return None
        source = rust_source(self.dataset)
        if source is None:
            return None
        data, mapping = source

        size, in_range = len(self.dataset), type(sampler) in (SequenceSampler, type(None))
        in_range = in_range or (type(sampler) is RandomSampler and sampler.generator is None)

        def indices(keys):
            if not in_range:
                keys = [k + size if k < 0 else k for k in map(int, keys)]
                if not all(0 <= k < size for k in keys):
                    name = type(self.dataset).__name__
                    raise IndexError(f"(OutOfRange) {name} has {size} samples, the sampler asks for {keys}.")
            return keys if mapping is None else [mapping[k] for k in keys]

        arguments = self.num_workers, self.prefetch_factor, self.use_buffer_reader, float(self.timeout)
        order = [indices(keys) for keys in batches]
        return Pass(self, _core.RustPass(data, order, *arguments, _core._pass_place()))


def _made(fetch: Callable, tasks):
    for task in tasks:
        batch = fetch(task)
        if batch is End:
            return
        yield batch


class Pass(TimedPass):
    """The batches of one pass."""

    def __init__(self, loader: DataLoader, batches):
        self._loader, self._batches = loader, batches

    def _next(self):
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)
