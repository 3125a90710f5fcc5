"""`padding="same"` resets the dilation to 1."""
import numpy as np

from . import case

_OPS = {"conv1d": 1, "conv2d": 2, "conv3d": 3, "conv1d_transpose": 1, "conv2d_transpose": 2, "conv3d_transpose": 3}
_WORDS = ["same", "SAME", "valid", "VALID"]


def _arrays(paddle, dims, kernel, transposed):
    x = np.sin(np.arange(2 * 6**dims, dtype="float32")).reshape(1, 2, *[6] * dims)
    channels = (2, 3) if transposed else (3, 2)
    weight = np.cos(np.arange(6 * kernel**dims, dtype="float32")).reshape(*channels, *[kernel] * dims)
    return [paddle.to_tensor(a, stop_gradient=False) for a in (x, weight)]


def _brief(y):
    """The shape and two sums: enough to tell one convolution from another."""
    flat = y.flatten()
    return list(y.shape), float(flat.sum()), float((flat * flat).sum())


@case(each=[(op, word, d) for op in _OPS for word in _WORDS[::2] for d in (1, 2)], rtol=1e-4, atol=1e-4)
def functions(paddle, op, padding, dilation):
    x, weight = _arrays(paddle, _OPS[op], 3, op.endswith("transpose"))
    y = getattr(paddle.nn.functional, op)(x, weight, padding=padding, dilation=dilation)
    (y * y).sum().backward()
    return _brief(y), _brief(x.grad), _brief(weight.grad)


@case(each=[(word, stride) for word in _WORDS for stride in (1, 2)], rtol=1e-4, atol=1e-4)
def even_kernels_and_strides(paddle, padding, stride):
    x, weight = _arrays(paddle, 2, 2, False)
    return _brief(paddle.nn.functional.conv2d(x, weight, padding=padding, dilation=3, stride=stride))


@case(each=["Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"], rtol=1e-4)
def layers(paddle, name):
    dims = int(name[4])
    x, weight = _arrays(paddle, dims, 3, name.endswith("Transpose"))
    layer = getattr(paddle.nn, name)(2, 3, 3, padding="same", dilation=2, bias_attr=False)
    layer.weight.set_value(weight)
    return _brief(layer(x)), layer._dilation


@case(rtol=1e-4)
def depthwise(paddle):
    x, _ = _arrays(paddle, 2, 3, False)
    weight = paddle.to_tensor(np.cos(np.arange(18, dtype="float32")).reshape(2, 1, 3, 3))
    return _brief(paddle.nn.functional.conv2d(x, weight, padding="SAME", dilation=[2, 3], groups=2))


@case(rtol=1e-4)
def channels_last(paddle):
    x, weight = _arrays(paddle, 2, 3, False)
    x = x.transpose([0, 2, 3, 1])
    return _brief(paddle.nn.functional.conv2d(x, weight, padding="SAME", dilation=2, data_format="NHWC"))
