"""Numbers at the edges: large logits, infinities, rows of nothing but NaN."""
import numpy as np

from . import case

_INF, _NAN = float("inf"), float("nan")


def _leaf(paddle, values, dtype="float32"):
    return paddle.to_tensor(np.array(values, dtype), stop_gradient=False)


def _with_gradient(result, x):
    result.sum().backward()
    return result, x.grad


def cross_entropy_of_large_logits(paddle):
    x = _leaf(paddle, [[1e8, 1e8]])
    return _with_gradient(paddle.nn.functional.cross_entropy(x, paddle.to_tensor([0])), x)


@case(right=[-0.693147182, -0.693147182, -2e8], because="PaddlePaddle keeps logits within 64 of the largest")
def log_softmax_of_large_logits(paddle):
    return paddle.nn.functional.log_softmax(_leaf(paddle, [1e8, 1e8, -1e8])).tolist()


@case(each=[1e16, 1e20, 1e30, -3e38])
def angles(paddle, x):
    x = _leaf(paddle, [x])
    return paddle.sin(x), paddle.cos(x), paddle.tan(x)


@case(each=["elu", "selu"])
def slope_at_infinity(paddle, name):
    x = _leaf(paddle, [_INF, -_INF])
    return _with_gradient(getattr(paddle.nn.functional, name)(x), x)


@case(right=[[_INF, 0.0], [0.0, _INF]], because="PaddlePaddle multiplies infinite logits by zero and gets NaN")
def logits_without_end(paddle):
    x = _leaf(paddle, [_INF, -_INF])
    loss = lambda y: paddle.nn.functional.binary_cross_entropy_with_logits(x, paddle.full([2], y), reduction="none")
    return loss(0.0).tolist(), loss(1.0).tolist()


@case(right=[1.0, _NAN, _NAN], because="PaddlePaddle forgets the NaN")
def logcumsumexp_keeps_nan(paddle):
    return paddle.logcumsumexp(_leaf(paddle, [1.0, _NAN, _INF])).tolist()


def nanmedian_of_nothing_but_nan(paddle):
    x = _leaf(paddle, [[_NAN, _NAN, _NAN, _NAN], [1, 2, 3, _NAN]])
    value, index = paddle.nanmedian(x, axis=1, mode="min")
    return value, index, _with_gradient(value, x)[1]


@case(each=[False, True])
def nanmedian_of_all(paddle, keepdim):
    return paddle.nanmedian(_leaf(paddle, [_NAN, _NAN]), mode="min", keepdim=keepdim)


@case(right=1e20, because="the sum of squares overflows there")
def deviation_of_large_numbers(paddle):
    return paddle.std(_leaf(paddle, [1e20, -1e20]), unbiased=False).item()
