"""The slope of a function where it has a kink, and of two equal numbers."""
import numpy as np

from . import case


def _slope(paddle, function, *arrays):
    leaves = [paddle.to_tensor(np.array(a, "float32"), stop_gradient=False) for a in arrays]
    function(*leaves).sum().backward()
    return [t.grad for t in leaves]


_POINTS = [0.0, 1.0, -1.0, 3.0, -3.0, 6.0]
_ACTIVATIONS = "relu relu6 leaky_relu elu celu selu hardtanh hardswish hardsigmoid softshrink thresholded_relu".split()


@case(each=_ACTIVATIONS)
def of_an_activation(paddle, name):
    return _slope(paddle, getattr(paddle.nn.functional, name), _POINTS)


@case(each=[0.0, 0.3, -0.5])
def of_leaky_relu(paddle, slope):
    return _slope(paddle, lambda x: paddle.nn.functional.leaky_relu(x, slope), _POINTS)


def of_prelu(paddle):
    return _slope(paddle, paddle.nn.functional.prelu, _POINTS, [0.25])


@case(each=[False, True])
def of_rrelu(paddle, training):
    return _slope(paddle, lambda x: paddle.nn.functional.rrelu(x, 0.2, 0.2, training), _POINTS)


def of_abs(paddle):
    return _slope(paddle, paddle.abs, _POINTS)


def of_clip(paddle):
    return _slope(paddle, lambda x: paddle.clip(x, -1, 3), _POINTS)


@case(each=["maximum", "minimum", "fmax", "fmin"])
def of_equal_numbers(paddle, name):
    return _slope(paddle, getattr(paddle, name), [1, 2, 3], [1, 3, 2])


@case(each=["max", "min", "amax", "amin"])
def of_equal_extremes(paddle, name):
    return _slope(paddle, getattr(paddle, name), [1, 3, 3, 1])
