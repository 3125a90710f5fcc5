"""Orders of samples, and samples in groups."""

import collections

import numpy as np
import pytest

import sampan
from sampan.io import (
    BatchSampler,
    DistributedBatchSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def test_one_seed_decides_every_order():
    def orders():
        sampan.seed(11)
        return [
            list(RandomSampler(range(50))),
            list(RandomSampler(range(50), replacement=True, num_samples=80)),
            list(SubsetRandomSampler([3, 1, 4, 15, 9])),
            list(WeightedRandomSampler([1.0, 2.0, 3.0], 30)),
            list(BatchSampler(range(20), shuffle=True, batch_size=6)),
        ]

    first, second = orders(), orders()
    assert first == second
    shuffled, drawn, some, weighted, batches = first
    assert sorted(shuffled) == list(range(50)) and shuffled != list(range(50))
    assert len(drawn) == 80 and len(set(drawn)) < 50 and set(drawn) <= set(range(50))
    assert sorted(some) == [1, 3, 4, 9, 15] and set(weighted) == {0, 1, 2}
    assert [len(b) for b in batches] == [6, 6, 6, 2]
    assert list(RandomSampler(range(50))) != shuffled


def test_random_sampler_arguments():
    assert len(RandomSampler(range(9), num_samples=4)) == 4 == len(set(RandomSampler(range(9), num_samples=4)))
    assert list(RandomSampler(range(9), num_samples=3, generator=iter([5, 5, 2, 7]))) == [5, 5, 2]
    assert list(RandomSampler(range(9), generator=iter([1]))) == [1]
    with pytest.raises(ValueError, match="num_samples 10 must be at most the 9"):
        RandomSampler(range(9), num_samples=10)
    with pytest.raises(ValueError, match="positive integer, got 0"):
        RandomSampler([])
    with pytest.raises(TypeError, match="replacement must be a bool, got 1"):
        RandomSampler(range(9), replacement=1)


def test_weights():
    sampan.seed(0)
    counts = collections.Counter(WeightedRandomSampler(np.array([0.1, 0.0, 0.9]), 2000))
    assert counts[1] == 0 and 140 < counts[0] < 260
    assert sorted(WeightedRandomSampler([0.2, 0.5, 0.3], 3, replacement=False)) == [0, 1, 2]
    rows = WeightedRandomSampler(sampan.to_tensor([[0.0, 1.0], [1.0, 0.0]]), 3)
    assert list(rows) == [1, 1, 1, 0, 0, 0] and len(rows) == 6
    for weights, draws, replacement in (([-1.0, 2.0], 1, True), ([0.0, 0.0], 1, True), ([1.0, 0.0], 2, False)):
        with pytest.raises(ValueError, match="WeightedRandomSampler"):
            WeightedRandomSampler(weights, draws, replacement)
    with pytest.raises(ValueError, match="at least one index"):
        SubsetRandomSampler([])


def test_batches():
    assert list(BatchSampler(range(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    dropped = BatchSampler(sampler=SequenceSampler(range(5)), batch_size=2, drop_last=True)
    assert list(dropped) == [[0, 1], [2, 3]] and len(dropped) == 2 and len(BatchSampler(range(5), batch_size=2)) == 3

    class Backwards(Sampler):
        def __iter__(self):
            return iter(range(len(self.data_source))[::-1])

        def __len__(self):
            return len(self.data_source)

    assert list(BatchSampler(sampler=Backwards(range(3)), batch_size=2)) == [[2, 1], [0]]
    for arguments in (
        {},
        {"dataset": range(3), "sampler": [1]},
        {"sampler": [1], "shuffle": True},
        {"dataset": range(3), "batch_size": 0},
        {"dataset": range(3), "batch_size": True},
    ):
        with pytest.raises(ValueError, match="BatchSampler"):
            BatchSampler(**arguments)
    with pytest.raises(TypeError, match="no indices"):
        BatchSampler(IterableDataset())
    with pytest.raises(TypeError, match="drop_last must be a bool"):
        BatchSampler(range(3), drop_last=1)


# Recorded from Paddle 3.3.1: DistributedBatchSampler(range(11), 2, 3, rank, shuffle=True), first and second epoch.
PADDLE = {
    0: ([[6, 0], [1, 7]], [[2, 3], [0, 7]]),
    1: ([[4, 10], [9, 3]], [[4, 10], [0, 9]]),
    2: ([[2, 8], [0, 5]], [[1, 6], [8, 5]]),
}


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_each_process_its_part(rank):
    sampler = DistributedBatchSampler(range(11), 2, 3, rank, shuffle=True)
    first, second = list(sampler), list(sampler)
    assert (first, second) == PADDLE[rank]
    sampler.set_epoch(0)
    assert list(sampler) == first and len(sampler) == 2


def test_the_launcher_tells_the_place(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert list(DistributedBatchSampler(range(7), 2)) == [[2, 3], [6, 0]]
    assert list(DistributedBatchSampler(range(3), 4, num_replicas=8, rank=7)) == [[1]]
    assert len(DistributedBatchSampler(range(7), 3, drop_last=True)) == 1
    with pytest.raises(ValueError, match=r"rank must lie in \[0, num_replicas\). Received 2 of 2"):
        DistributedBatchSampler(range(7), 2, rank=2)
