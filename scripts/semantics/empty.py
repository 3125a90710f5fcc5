"""Shapes of empty tensors."""
import itertools

from . import case

_SHAPES = [[0], [0, 3], [2, 0], [0, 0], [2, 0, 3], [4, 0, 6]]


def _shape(make):
    try:
        return list(make().shape)
    except ValueError:
        return "ValueError"


@case(each=[(s,) for s in _SHAPES if s != [0, 0]])
def reshapes(paddle, shape):
    """A zero is a zero here, and -1 beside it takes the other extents."""
    x = paddle.zeros(shape)
    to = [list(t) for t in itertools.product([-1, 0, 1, 2, 3], repeat=2) if t.count(-1) < 2]
    # With -1 PaddlePaddle asks for as many zeros as the input has; here more of them are no error.
    to += [[1, 0, -1], [1, -1, 0], [-1], [0], [0, 0, 0], [2, 0, -1], [-1, 1, 0], [0, 6, -1]]
    return {str(t): _shape(lambda: x.reshape(t)) for t in to}


@case(each=[(s,) for s in _SHAPES])
def other_shapes(paddle, shape):
    x = paddle.zeros(shape)
    return {
        "flatten": _shape(lambda: x.flatten()),
        "squeeze": _shape(lambda: x.squeeze()),
        "unsqueeze": _shape(lambda: x.unsqueeze([0, -1])),
        "tile": _shape(lambda: x.tile([2] * len(shape))),
        "expand": _shape(lambda: x.expand([4, *shape])),
        "transpose": _shape(lambda: x.transpose(list(range(len(shape)))[::-1])),
        "concat": _shape(lambda: paddle.concat([x, x], -1)),
        "stack": _shape(lambda: paddle.stack([x, x])),
        "nonzero": _shape(lambda: x.nonzero()),
        "sum": _shape(lambda: x.sum(-1)),
        "cumsum": _shape(lambda: x.cumsum()),
    }


def gradients(paddle):
    x = paddle.zeros([2, 0, 3])
    x.stop_gradient = False
    (x.reshape([0, -1]).sum() + x.flatten().sum()).backward()
    return x.grad


def taken_apart(paddle):
    x = paddle.zeros([0, 4])
    return [list(t.shape) for t in (x.unflatten(0, [0, -1]), x.unflatten(1, [2, -1]), x.reshape([-1, 2, 2]))]


@case(right=[0, 2], because="the axes of the indices come first, as in NumPy, also where there is nothing in them")
def a_mask_beside_a_tensor_without_axes(paddle):
    x = paddle.zeros([3, 4, 5])
    return list(x[paddle.to_tensor(0), -2:, paddle.to_tensor([False] * 5)].shape)
