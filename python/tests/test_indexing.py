"""Reading and writing parts of a tensor, against NumPy."""

import numpy as np
import pytest
import sampan


def _slice(rng, n):
    def bound():
        return None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3))

    step = None if rng.random() < 0.4 else int(rng.choice([-3, -2, -1, 1, 2, 3]))
    return slice(bound(), bound(), step)


def _part(rng, n, lists):
    """One part of an index for an axis of extent n, and how many axes it uses."""
    kind = rng.choice(["int", "slice", "none", "list", "array"] if lists else ["int", "slice", "none"])
    if kind == "int" and n:
        return int(rng.integers(-n, n)), 1
    if kind in ("list", "array") and n:
        shape = (2, 3) if rng.random() < 0.3 else (3,)
        values = rng.integers(-n, n, shape)
        return (values if kind == "array" else values.tolist()), 1
    if kind == "none":
        return None, 0
    return _slice(rng, n), 1


def random_index(rng, shape):
    """An index of a few kinds of parts that NumPy takes for an array of this shape."""
    if shape and rng.random() < 0.1:
        return rng.random(shape) < 0.5
    lists, parts, axis = rng.random() < 0.4, [], 0
    count = int(rng.integers(0, len(shape) + 1))
    ellipsis = rng.random() < 0.3
    while axis < count:
        if ellipsis and rng.random() < 0.3:
            ellipsis = False
            axis = len(shape) - (count - axis)
            count = len(shape)
            parts.append(...)
            continue
        if lists and rng.random() < 0.15 and shape[axis]:
            parts.append(rng.random(shape[axis]) < 0.5)
            axis += 1
            continue
        part, used = _part(rng, shape[axis], lists)
        parts.append(part)
        axis += used
    return parts[0] if len(parts) == 1 else tuple(parts)


def outcome(f):
    """What a call gives: a value, or that it refused."""
    try:
        return f()
    except (IndexError, ValueError, TypeError):
        return None


@pytest.mark.parametrize("seed", range(4))
def test_reads_what_numpy_reads(seed):
    rng = np.random.default_rng(seed)
    for _ in range(400):
        shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 5, int(rng.integers(0, 5))))
        a = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
        index = random_index(rng, shape)
        want = outcome(lambda: a[index])
        got = outcome(lambda: sampan.to_tensor(a)[index])
        assert (want is None) == (got is None), (shape, index, want, got)
        if want is not None:
            assert list(np.shape(want)) == got.shape, (shape, index)
            assert np.array_equal(want, got.numpy()), (shape, index)


@pytest.mark.parametrize("seed", range(4))
def test_writes_what_numpy_writes(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(1, 4))))
        a = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
        t, index = sampan.to_tensor(a), random_index(rng, shape)
        part = outcome(lambda: a[index])
        if part is None:
            continue
        part = np.array(part)
        # Repeated positions have no order in which they are written.
        positions = np.arange(a.size).reshape(shape)[index]
        if len(np.unique(positions)) != np.size(positions):
            continue
        new_shape = tuple(1 if rng.random() < 0.3 else n for n in part.shape[int(rng.integers(0, part.ndim + 1)) :])
        new = rng.random(new_shape).astype(rng.choice(["float32", "float64", "int64"]))
        a[index] = new
        form = rng.choice(["array", "tensor", "list"])
        value = {"array": new, "tensor": sampan.to_tensor(new), "list": new.tolist()}[form] if new.size else new
        t[index] = value
        assert np.allclose(a, t.numpy()), (shape, index, new_shape, form)


def test_indices_may_be_tensors():
    a = np.arange(12.0, dtype="float32").reshape(3, 4)
    t = sampan.to_tensor(a)
    i = sampan.to_tensor([2, 0])
    assert np.array_equal(t[i].numpy(), a[[2, 0]])
    assert np.array_equal(t[i, sampan.to_tensor([1, -1])].numpy(), a[[2, 0], [1, -1]])
    assert np.array_equal(t[t > 5].numpy(), a[a > 5])
    assert t[sampan.to_tensor(1)].shape == [4]
    assert t[sampan.to_tensor(1) : sampan.to_tensor(3)].shape == [2, 4]
    assert np.array_equal(t[np.int64(1), np.int32(-1)].numpy(), a[1, -1])


def test_a_bool_is_a_mask_of_no_axes():
    t = sampan.ones([2, 3])
    assert t[True].shape == [1, 2, 3]
    assert t[False].shape == [0, 2, 3]


@pytest.mark.parametrize("index", [5, -4, (0, 4), (0, 0, 0), [3], (slice(None), [4])])
def test_positions_outside_raise_index_error(index):
    with pytest.raises(IndexError, match="OutOfRange"):
        sampan.ones([3, 4])[index]
    with pytest.raises(IndexError, match="OutOfRange"):
        sampan.ones([3, 4])[index] = 0.0


@pytest.mark.parametrize("index", ["a", 1.5, {}, object(), [1.5], ["a"], 2**70, slice("a"), slice(1.5)])
def test_what_is_no_index_is_refused(index):
    with pytest.raises((TypeError, IndexError, ValueError, OverflowError)):
        sampan.ones([3, 4])[index]


def test_assignment_casts_and_broadcasts():
    t = sampan.zeros([2, 3], dtype="int64")
    t[0] = 2.9
    t[1] = [1.5, 2.5, 3.5]
    assert t.tolist() == [[2, 2, 2], [1, 2, 3]]
    t[:, 1] = True
    assert t.tolist() == [[2, 1, 2], [1, 1, 3]]
    t[t > 1] = 0
    assert t.tolist() == [[0, 1, 0], [1, 1, 0]]
    with pytest.raises(ValueError, match="InvalidArgument"):
        t[0] = [1, 2]


def test_a_write_through_a_slice_reaches_the_whole():
    t = sampan.zeros([3, 2])
    t[1].fill_(5.0)
    t[:, 0].add_(sampan.ones([3]))
    assert t.tolist() == [[1.0, 0.0], [6.0, 5.0], [1.0, 0.0]]


def test_gradients_of_reads_and_writes():
    x = sampan.arange(6, dtype="float32").reshape([2, 3])
    x.stop_gradient = False
    (x[:, ::2] * 2 + x[[0, 0], [1, 1]].sum()).sum().backward()
    assert x.grad.tolist() == [[2.0, 8.0, 2.0], [2.0, 0.0, 2.0]]
    x.clear_grad()
    y = x * 1
    y[0] = 7.0
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_iteration_membership_and_length():
    t = sampan.to_tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    assert len(t) == 2 and 3 in t and 5 not in t and None not in t
    for f in (lambda: len(t[0, 0]), lambda: list(t[0, 0]), lambda: reversed(t[0, 0])):
        with pytest.raises(TypeError, match="0-d"):
            f()


def test_rows_are_made_when_they_are_asked_for():
    t = sampan.arange(6).reshape([3, 2])
    rows = iter(t)
    assert next(rows).tolist() == [0, 1] and rows.__length_hint__() == 2
    t[1] = 9
    assert next(rows).tolist() == [9, 9]
    next(rows)[0] = 7
    assert t.tolist() == [[0, 1], [9, 9], [7, 5]] and next(rows, None) is None and next(rows, None) is None
    assert [row.tolist() for row in reversed(t)] == t.tolist()[::-1]
    first, *others = t
    assert first.tolist() == [0, 1] and len(others) == 2 and list(sampan.zeros([0, 2])) == []
    with pytest.raises(ValueError, match="unpack"):
        first, second = t
    assert sum(sampan.to_tensor([3, 1])).item() == 4 and max(sampan.to_tensor([3, 1])).item() == 3


@pytest.mark.parametrize("walk", [iter, reversed])
def test_gradients_flow_through_rows(walk):
    x = sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    sum((row * k).sum() for k, row in enumerate(walk(x), 1)).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]][:: 1 if walk is iter else -1]
    with sampan.no_grad():
        assert all(row.stop_gradient for row in x)


EMPTY = [  # A mask without a true element, beside slices and indices: the shapes of NumPy.
    "none", "none, 1:", ":, columns", ":, columns, 1:", "none, ..., 0", "1:, columns", "..., planes", "0, columns",
    "none, :, planes", ":2, columns, ::2", "none[:, None] & columns, 1:", "none, columns, planes", "[], 1:",
]


@pytest.mark.parametrize("index", EMPTY)
def test_shapes_of_empty_masks(index):
    x = np.arange(60.0).reshape(3, 4, 5)
    masks = {"none": np.zeros(3, bool), "columns": np.zeros(4, bool), "planes": np.zeros(5, bool)}
    ours = {name: sampan.to_tensor(mask) for name, mask in masks.items()}
    want = eval(f"x[{index}]", {"x": x, **masks})
    t = sampan.to_tensor(x, stop_gradient=False)
    got = eval(f"x[{index}]", {"x": t, **ours})
    assert got.shape == list(want.shape) and got.size == 0
    got.sum().backward()
    assert not t.grad.numpy().any()
    exec(f"x[{index}] = 5.0", {"x": x, **masks})
    t = sampan.to_tensor(np.arange(60.0).reshape(3, 4, 5))
    exec(f"x[{index}] = 5.0", {"x": t, **ours})
    assert np.array_equal(t.numpy(), x)
