"""Data sets and those made of data sets."""

import numpy as np
import pytest

import sampan
from sampan.io import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, start, stop):
        self.values = range(start, stop)

    def __getitem__(self, i):
        return self.values[i]

    def __len__(self):
        return len(self.values)


class Pairs(Numbers):
    def __getitem__(self, i):
        return self.values[i], -self.values[i]


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        yield from range(self.n)


def test_what_a_subclass_must_write():
    with pytest.raises(NotImplementedError, match="Dataset must define __getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__len__"):
        len(Dataset())
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())
    with pytest.raises(RuntimeError, match="no index"):
        Count(2)[0]
    with pytest.raises(RuntimeError, match="no length"):
        len(Count(2))


def test_tensors_as_samples():
    data = TensorDataset([sampan.arange(6).reshape([3, 2]), np.array([7, 8, 9])])
    image, label = data[-1]
    assert len(data) == 3 and image.tolist() == [4, 5] and label == 9
    with pytest.raises(ValueError, match=r"same first extent. Received \[3\], \[2\]"):
        TensorDataset([sampan.ones([3]), sampan.ones([2])])
    with pytest.raises(ValueError, match="at least one axis"):
        TensorDataset([])


def test_fields_side_by_side():
    both = ComposeDataset([Pairs(0, 3), Numbers(5, 8)])
    assert len(both) == 3 and both[1] == (1, -1, 6)
    with pytest.raises(ValueError, match=r"same length. Received \[3, 2\]"):
        ComposeDataset([Numbers(0, 3), Numbers(0, 2)])
    with pytest.raises(TypeError, match=r"datasets\[1\] must be a Dataset and no IterableDataset, got Count"):
        ComposeDataset([Numbers(0, 3), Count(3)])


def test_one_after_the_other():
    assert list(ChainDataset([Count(2), Count(3)])) == [0, 1, 0, 1, 2]
    joined = ConcatDataset([Numbers(0, 3), Numbers(10, 12)])
    assert [joined[i] for i in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    assert joined.cumulative_sizes == [3, 5]
    with pytest.raises(IndexError, match="index 5 is out of range for 5"):
        joined[5]
    with pytest.raises(ValueError, match="index -6"):
        joined[-6]
    with pytest.raises(ValueError, match="list is empty"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="must be a IterableDataset, got Numbers"):
        ChainDataset([Numbers(0, 1)])


def test_parts_at_random():
    sampan.seed(3)
    parts = random_split(Numbers(0, 10), [7, 3])
    again = sorted(v for part in parts for v in (part[i] for i in range(len(part))))
    assert again == list(range(10)) and [len(p) for p in parts] == [7, 3]
    sampan.seed(3)
    assert random_split(Numbers(0, 10), [7, 3])[1].indices == parts[1].indices
    assert [len(p) for p in random_split(range(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]
    with pytest.raises(ValueError, match="must add up to the 10 samples.*up to 9"):
        random_split(range(10), [7, 2])
    with pytest.raises(ValueError, match="fraction 0 must lie in"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="part 1 is empty"):
        random_split(range(3), [1.0, 0.0])
    assert Subset(Numbers(5, 9), [3, 0])[0] == 8
