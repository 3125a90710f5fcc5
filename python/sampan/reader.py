"""Readers of the old kind, functions that give a generator of samples, and what is made of them: Paddle's `reader`."""

from __future__ import annotations

import itertools
import queue
import random
import threading

__all__ = [
    "cache",
    "map_readers",
    "buffered",
    "compose",
    "chain",
    "shuffle",
    "firstn",
    "xmap_readers",
    "ComposeNotAligned",
]


def batch(reader, batch_size: int, drop_last: bool = False):
    """A reader of lists of `batch_size` samples.

    >>> import sampan
    >>> list(sampan.batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    batch_size = int(batch_size)
    if batch_size <= 0:
        raise ValueError(f"(InvalidArgument) batch: batch_size should be a positive integer, received {batch_size}.")

    def batch_reader():
        samples = iter(reader())
        while group := list(itertools.islice(samples, batch_size)):
            if len(group) == batch_size or not drop_last:
                yield group

    return batch_reader


def cache(reader):
    """A reader that keeps all samples in memory after the first use."""
    kept = None

    def cached():
        nonlocal kept
        if kept is None:
            kept = tuple(reader())
        yield from kept

    return cached


def map_readers(func, *readers):
    """A reader of `func` of the samples of several readers."""

    def mapped():
        yield from map(func, *[reader() for reader in readers])

    return mapped


def shuffle(reader, buf_size: int):
    """A reader that mixes each `buf_size` samples."""

    def shuffled():
        samples = iter(reader())
        while group := list(itertools.islice(samples, buf_size)):
            random.shuffle(group)
            yield from group

    return shuffled


def chain(*readers):
    """A reader of the samples of one reader after another."""

    def chained():
        for reader in readers:
            yield from reader()

    return chained


class ComposeNotAligned(ValueError):
    """Readers that were to be composed have different lengths."""


def compose(*readers, check_alignment: bool = True):
    """A reader of the samples of several readers side by side, as one tuple."""
    end = object()

    def composed():
        rows = itertools.zip_longest if check_alignment else zip
        options = {"fillvalue": end} if check_alignment else {}
        for row in rows(*[reader() for reader in readers], **options):
            if any(part is end for part in row):
                raise ComposeNotAligned("(InvalidArgument) compose: the readers have different lengths.")
            yield tuple(itertools.chain.from_iterable(part if isinstance(part, tuple) else (part,) for part in row))

    return composed


def buffered(reader, size: int):
    """A reader that reads up to `size` samples ahead in a thread."""
    end = object()

    def ahead():
        waiting: queue.Queue = queue.Queue(maxsize=max(size, 1))
        gone = threading.Event()

        def put(item) -> bool:
            while not gone.is_set():
                try:
                    waiting.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        def read():
            problem = None
            try:
                for sample in reader():
                    if not put((sample, None)):
                        return
            except BaseException as error:  # Raised where the sample is wanted.
                problem = error
            put((end, problem))

        threading.Thread(target=read, daemon=True).start()
        try:
            while True:
                sample, problem = waiting.get()
                if problem is not None:
                    raise problem
                if sample is end:
                    return
                yield sample
        finally:
            gone.set()

    return ahead


def firstn(reader, n: int):
    """A reader of the first `n` samples."""

    def first():
        yield from itertools.islice(reader(), n)

    return first


def xmap_readers(mapper, reader, process_num: int, buffer_size: int, order: bool = False):
    """A reader of `mapper` of the samples, computed by `process_num` threads; they come in order."""

    def mapped():
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max(process_num, 1)) as pool:
            samples, waiting = iter(reader()), []
            for sample in samples:
                waiting.append(pool.submit(mapper, sample))
                if len(waiting) > max(buffer_size, 1):
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()

    return mapped
