"""Pooling at the edges: uneven padding, windows that reach beyond it, divisors. PaddlePaddle 3.3.1 answers with NaN or
-3.4e38 where a window lies in the padding, and takes the padding in front for that behind; the rule here is NumPy's
below."""

import itertools

import numpy as np
import pytest

import sampan
import sampan.nn.functional as F


def windows(n, kernel, stride, before, after, ceil):
    """(start, end) of each window along one axis, in places of the unpadded input; none begins behind the input."""
    room = n + before + after - kernel
    count = (-(-room // stride) if ceil else room // stride) + 1
    starts = [i * stride - before for i in range(count)]
    return [(s, min(s + kernel, n + after)) for s in starts if s < n or not ceil]


def pooled(x, kernel, stride, pads, ceil, exclusive, divisor=None):
    """Means over windows, and the gradient of their sum weighted by 1, 2, 3 …"""
    axes = [windows(n, k, s, *p, ceil) for n, k, s, p in zip(x.shape, kernel, stride, pads)]
    out, grad = np.zeros([len(a) for a in axes]), np.zeros(x.shape)
    for place, i in zip(np.ndindex(*out.shape), itertools.count(1)):
        spans = [a[j] for a, j in zip(axes, place)]
        inside = tuple(slice(max(s, 0), min(e, n)) for (s, e), n in zip(spans, x.shape))
        over = x[inside].size if exclusive else np.prod([e - s for s, e in spans])
        over = divisor or over
        out[place] = x[inside].sum() / over
        grad[inside] += i / over
    return out, grad


PADS = [[(0, 0), (1, 1)], [(1, 2), (0, 1)], [(2, 0), (0, 2)], [(1, 0), (0, 2)], [(2, 1), (1, 2)], [(0, 1), (1, 0)]]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("kernel, stride", [((3, 3), (2, 2)), ((3, 4), (2, 3)), ((4, 4), (3, 3)), ((3, 3), (1, 3))])
@pytest.mark.parametrize("ceil, exclusive", list(itertools.product([False, True], repeat=2)))
def test_means_over_uneven_padding(pads, kernel, stride, ceil, exclusive):
    x = np.random.RandomState(0).randn(5, 6)
    t = sampan.to_tensor(x[None, None], stop_gradient=False)
    y = F.avg_pool2d(t, kernel, stride, [*pads[0], *pads[1]], ceil_mode=ceil, exclusive=exclusive)
    want, grad = pooled(x, kernel, stride, pads, ceil, exclusive)
    np.testing.assert_allclose(y.numpy()[0, 0], want, rtol=1e-12)
    (y * sampan.arange(1, y.size + 1, dtype="float64").reshape(y.shape)).sum().backward()
    np.testing.assert_allclose(t.grad.numpy()[0, 0], grad, rtol=1e-12)


@pytest.mark.parametrize("ceil, exclusive", list(itertools.product([False, True], repeat=2)))
def test_means_along_one_and_three_axes(ceil, exclusive):
    x = np.random.RandomState(1).randn(4, 5, 3)
    pads = [(1, 0), (0, 1), (1, 1)]
    y = F.avg_pool3d(sampan.to_tensor(x[None, None]), 2, 2, [1, 0, 0, 1, 1, 1], ceil_mode=ceil, exclusive=exclusive)
    want, _ = pooled(x, [2] * 3, [2] * 3, pads, ceil, exclusive)
    np.testing.assert_allclose(y.numpy()[0, 0], want, rtol=1e-12)
    y = F.avg_pool1d(sampan.to_tensor(x[:1, :, 0]).unsqueeze(0), 3, 2, 1, ceil_mode=ceil, exclusive=exclusive)
    want, _ = pooled(x[0, :, 0], [3], [2], [(1, 1)], ceil, exclusive)
    np.testing.assert_allclose(y.numpy()[0, 0], want, rtol=1e-12)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_divisor_of_ones_own_is_taken_everywhere(exclusive):
    x = np.random.RandomState(2).randn(5, 6)
    y = F.avg_pool2d(sampan.to_tensor(x[None, None]), 3, 2, 1, divisor_override=5, exclusive=exclusive)
    want, _ = pooled(x, (3, 3), (2, 2), [(1, 1)] * 2, False, exclusive, 5)
    np.testing.assert_allclose(y.numpy()[0, 0], want, rtol=1e-12)
