"""What `fit`, `evaluate` and `predict` read: datasets, loaders, and any iterable of batches."""

from __future__ import annotations

from .. import _core


def as_list(value) -> list:
    """A list of what was given: nothing, one thing, or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def to_loader(data, batch_size, shuffle=False, drop_last=False, num_workers=0):
    """A loader of a dataset, in whose order `sampan.seed` decides; anything else is read as it is."""
    if isinstance(data, (list, tuple)):
        return data
    from ..distributed import get_rank, get_world_size
    from ..io import BatchSampler, DataLoader, Dataset, DistributedBatchSampler, IterableDataset

    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size=batch_size, drop_last=drop_last, num_workers=num_workers, return_list=True)
    if not isinstance(data, Dataset):
        return data
    # Alone it is what `DataLoader(data, shuffle=…)` is. Processes share one order, which the first one draws.
    if (count := get_world_size()) == 1:
        sampler = BatchSampler(data, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)
    else:
        # Whoever started the processes: the sampler by itself knows `launch` alone.
        sampler = DistributedBatchSampler(data, batch_size, count, get_rank(), shuffle, drop_last)
        sampler._draw = _common_seed
    return DataLoader(data, batch_sampler=sampler, num_workers=num_workers, return_list=True)


def _common_seed() -> int:
    """A number from the generator of the first process, for all of them."""
    from ..distributed import broadcast, init_parallel_env

    init_parallel_env()
    drawn = _core.op("randint")(0, 2**31 - 1, [1])
    broadcast(drawn, 0)
    return int(drawn.item())


def length(loader) -> int | None:
    """How many batches there are, if that is known."""
    try:
        return len(loader)
    except Exception:
        return None


def flatten(batch) -> list:
    """All inputs and labels of a batch: `[x, y]`, `([x1, x2], [y])` and dicts are fine."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if not isinstance(batch, (list, tuple)):
        return [batch]
    return [part for item in batch for part in flatten(item)]


def samples_in(parts: list) -> int:
    """How many samples a batch holds."""
    shape = getattr(parts[0], "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else 1


def tensors(parts) -> list:
    """Tensors of inputs that may be arrays, lists or numbers."""
    return [part if isinstance(part, _core.Tensor) else _core.to_tensor_py(part) for part in as_list(parts)]


def with_last(batches):
    """Each batch, and whether it is the last."""
    batches = iter(batches)
    try:
        batch = next(batches)
    except StopIteration:
        return
    for following in batches:
        yield batch, False
        batch = following
    yield batch, True
