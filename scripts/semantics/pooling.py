"""Pooling at the edges, where no window lies in the padding and the padding is the same on both sides."""
import itertools

import numpy as np

from . import case

_X = np.random.RandomState(0).randn(1, 2, 5, 6).astype("float32")


def _both(paddle, f, x):
    """What comes out, and the gradient of its sum weighted by 1, 2, 3 …"""
    x = paddle.to_tensor(x, stop_gradient=False)
    y = f(x)
    out = y if isinstance(y, (list, tuple)) else [y]
    weights = np.arange(1, out[0].size + 1, dtype="float32").reshape(out[0].shape)
    (out[0] * paddle.to_tensor(weights)).sum().backward()
    return [*out, x.grad]


_SIZES = list(itertools.product([2, 3], [1, 2, 3], [0, 1], [False, True]))
# With these a window begins behind the input.
_OUTSIDE = [(2, 2, 1, True), (2, 3, 1, True), (3, 3, 1, True)]


@case(each=[s for s in _SIZES if s not in _OUTSIDE])
def one_axis(paddle, kernel, stride, padding, ceil):
    f, x = paddle.nn.functional, _X[0, :, :, 0]
    return [
        _both(paddle, lambda x: f.avg_pool1d(x, kernel, stride, padding, exclusive, ceil), x[None])
        for exclusive in (False, True)
    ] + [_both(paddle, lambda x: f.max_pool1d(x, kernel, stride, padding, ceil_mode=ceil), x[None])]


@case(each=[(3, 2, 1, False), (3, 1, 1, True), ((2, 3), 2, (0, 1), False), (3, 2, 0, True), (4, 3, 1, False)])
def two_axes(paddle, kernel, stride, padding, ceil):
    f, options, last = paddle.nn.functional, {"ceil_mode": ceil}, _X.transpose(0, 2, 3, 1).copy()
    return {
        "all": _both(paddle, lambda x: f.avg_pool2d(x, kernel, stride, padding, exclusive=False, **options), _X),
        "valid": _both(paddle, lambda x: f.avg_pool2d(x, kernel, stride, padding, **options), _X),
        "max": _both(paddle, lambda x: f.max_pool2d(x, kernel, stride, padding, **options), _X),
        "last": _both(paddle, lambda x: f.avg_pool2d(x, kernel, stride, padding, data_format="NHWC", **options), last),
    }


@case(each=[(0, 1), (0, 3), (1, 3)])
def divisors(paddle, padding, divisor):
    f = paddle.nn.functional
    return _both(paddle, lambda x: f.avg_pool2d(x, 3, 2, padding, exclusive=False, divisor_override=divisor), _X)


@case(each=[(0, 1), (1, 1), (1, 2)])
def masks(paddle, padding, stride):
    f = paddle.nn.functional
    return [
        _both(paddle, lambda x: f.max_pool2d(x, 3, stride, padding, return_mask=True), _X),
        _both(paddle, lambda x: f.max_pool3d(x, 2, stride, padding, return_mask=True), _X[None]),
    ]


@case(each=[1, 2, 3, 4])
def adaptive(paddle, size):
    f = paddle.nn.functional
    return [
        _both(paddle, lambda x: f.adaptive_avg_pool2d(x, [size, None]), _X),
        _both(paddle, lambda x: f.adaptive_max_pool2d(x, size, return_mask=True), _X),
        _both(paddle, lambda x: f.adaptive_avg_pool3d(x, size), _X[None]),
        _both(paddle, lambda x: f.adaptive_avg_pool1d(x, size), _X[0]),
    ]
