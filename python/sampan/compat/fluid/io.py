"""Loaders fed by generators."""

from __future__ import annotations

from ... import _core, reader
from ..base.dygraph import to_variable


class GeneratorLoader:
    """Reads the batches of a generator ahead, in a thread, and gives them as lists of tensors."""

    def __init__(self, capacity=None, return_list=True, drop_last=True):
        self._capacity = capacity or 2
        self._return_list = return_list
        self._drop_last = drop_last
        self._reader = None

    def set_batch_generator(self, reader, places=None):
        """Takes a function that gives a generator of batches: tuples of arrays."""
        self._reader = reader
        return self

    def set_sample_list_generator(self, reader, places=None):
        """Takes a function that gives a generator of lists of samples, as `paddle.batch` makes them."""

        def batches():
            for samples in reader():
                yield _stacked(samples)

        return self.set_batch_generator(batches, places)

    def set_sample_generator(self, reader_, batch_size, drop_last=True, places=None):
        """Takes a function that gives a generator of samples."""
        return self.set_sample_list_generator(reader.batch(reader_, batch_size, drop_last), places)

    def __iter__(self):
        if self._reader is None:
            raise RuntimeError(
                "(PreconditionNotMet) DataLoader: there is no generator. Hint: call set_batch_generator first."
            )
        for batch in reader.buffered(self._reader, self._capacity)():
            yield [to_variable(part) for part in (batch if isinstance(batch, (list, tuple)) else [batch])]

    def __call__(self):
        return iter(self)


def _stacked(samples) -> list:
    import numpy

    rows = [sample if isinstance(sample, (list, tuple)) else (sample,) for sample in samples]
    return [numpy.stack([numpy.asarray(part) for part in column]) for column in zip(*rows)]


class DataLoader:
    """Makes loaders of generators."""

    @staticmethod
    def from_generator(
        feed_list=None,
        capacity=None,
        use_double_buffer=True,
        iterable=True,
        return_list=False,
        use_multiprocess=False,
        drop_last=True,
    ) -> GeneratorLoader:
        """A loader that keeps up to `capacity` batches ready."""
        if not iterable:
            raise NotImplementedError("(Unimplemented) from_generator: iterable=False is for static graphs only.")
        return GeneratorLoader(capacity, return_list, drop_last)


class PyReader(GeneratorLoader):
    """The loader of 1.4 and 1.5."""

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False):
        super().__init__(capacity, return_list)

    decorate_sample_generator = GeneratorLoader.set_sample_generator
    decorate_sample_list_generator = GeneratorLoader.set_sample_list_generator
    decorate_batch_generator = GeneratorLoader.set_batch_generator


class DataFeeder:
    """Turns lists of samples into tensors by name."""

    def __init__(self, feed_list, place=None, program=None):
        self._names = [getattr(item, "name", item) for item in feed_list]

    def feed(self, iterable) -> dict[str, _core.Tensor]:
        """A tensor for each name."""
        return {name: to_variable(part) for name, part in zip(self._names, _stacked(iterable))}


batch = reader.batch
