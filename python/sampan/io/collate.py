"""Samples to a batch, and a batch to tensors."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Mapping, Sequence

from .. import _core


def _is_ndarray(value) -> bool:
    # Who has an array has imported NumPy; nobody else need wait for it.
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def default_collate_fn(batch: Sequence):
    """Stacks each field of the samples: numbers and arrays become arrays, tensors a tensor, dicts a dict and sequences a
    list of what their fields become; strings stay a list.

    >>> from sampan.io.collate import default_collate_fn
    >>> default_collate_fn([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': array([1, 2]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, _core.Tensor):
        return _core._stack(list(batch))
    if _is_ndarray(first) or isinstance(first, numbers.Number):
        import numpy as np

        return np.stack(batch, axis=0) if _is_ndarray(first) else np.array(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        counts = {len(sample) for sample in batch}
        if len(counts) > 1:
            raise RuntimeError(
                "(PreconditionNotMet) DataLoader: all samples of a batch must have the same number of fields. "
                f"Received {sorted(counts)}."
            )
        return [default_collate_fn(fields) for fields in zip(*batch)]
    raise TypeError(
        "(InvalidType) DataLoader: a sample may hold tensors, arrays, numbers, strings, dicts and lists of them, got "
        f"{type(first).__name__}. Hint: convert it in a transform (ToTensor for images), or set collate_fn."
    )


def default_convert_fn(batch):
    """What is done to a sample without batching: nothing, but sequences become lists and mappings dicts."""
    if _is_ndarray(batch) or isinstance(batch, (_core.Tensor, str, bytes)):
        return batch
    if isinstance(batch, Mapping):
        return {key: default_convert_fn(value) for key, value in batch.items()}
    if isinstance(batch, Sequence):
        return [default_convert_fn(value) for value in batch]
    return batch


def replace_arrays(batch, replace: Callable):
    """The batch with what `replace` makes of its arrays and tensors. Sequences become lists and mappings dicts; what they
    hold besides stays as it is."""
    if isinstance(batch, _core.Tensor) or _is_ndarray(batch):
        return replace(batch)
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, Mapping):
        return {key: replace_arrays(value, replace) for key, value in batch.items()}
    if isinstance(batch, Sequence):
        return [replace_arrays(value, replace) for value in batch]
    return batch


def to_tensors(batch):
    """The batch with tensors for its arrays."""
    return replace_arrays(batch, lambda a: a if isinstance(a, _core.Tensor) else _core.to_tensor_py(a))
