"""Augmented assignment makes a new tensor and binds it to the name; the old one stays as it was."""
import numpy as np

from . import case

_FLOATS = ["+", "-", "*", "/", "//", "%", "**", "@"]
_WHOLE = [*_FLOATS, "&", "|", "^", "<<", ">>"]


def _augment(operator, target, value):
    """`target operator= value`: what the name means then."""
    names = {"x": target, "v": value}
    exec(f"x {operator}= v", names)
    return names["x"]


def _rebinds(paddle, operator, dtype):
    x = paddle.full([2, 2], 3, dtype)
    new = _augment(operator, x, paddle.full([2, 2], 2, dtype))
    return new is x, x, new


@case(each=_FLOATS)
def floats(paddle, operator):
    return _rebinds(paddle, operator, "float32")


@case(each=_WHOLE)
def integers(paddle, operator):
    return _rebinds(paddle, operator, "int64")


@case(each=["&", "|", "^", "+", "*"])
def bools(paddle, operator):
    x = paddle.to_tensor([True, False])
    return _augment(operator, x, paddle.to_tensor([True, True])), x


@case(each=_FLOATS[:-1])
def other_operands(paddle, operator):
    values = [2, 2.5, True, np.float64(2), np.full(2, 2, "float32"), paddle.full([3, 1], 2.0)]
    return [_augment(operator, paddle.full([2], 3.0), v) for v in values]


@case(each=["+", "*", "/"])
def a_number_left(paddle, operator):
    return _augment(operator, 6.0, paddle.full([2], 3.0))


@case(each=_FLOATS)
def what_cannot_be_combined(paddle, operator):
    return _augment(operator, paddle.ones([2, 2]), None)


@case(each=["+", "-", "*", "/"])
def dtypes_follow_the_operands(paddle, operator):
    whole = paddle.full([2], 3, "int64")
    return _augment(operator, whole, 1.5), _augment(operator, paddle.ones([2]), paddle.full([2], 2.0, "float64")), whole


def another_name_keeps_the_old_value(paddle):
    x = paddle.to_tensor(3.0, stop_gradient=False)
    i = x
    x += 1
    y = x * i
    y.backward()
    return y, i.grad


def a_slice_is_let_go(paddle):
    x = paddle.zeros([4])
    y = x[:2]
    y += 10
    return x, y


def a_caller_keeps_its_tensor(paddle):
    def grow(t):
        t += 1
        t *= 2
        return t

    x = paddle.ones([2])
    return grow(x), x


def a_residual_block(paddle):
    x = paddle.to_tensor(np.arange(8, dtype="float32").reshape(1, 2, 2, 2), stop_gradient=False)
    y = paddle.nn.BatchNorm2D(2)(x)
    y += x
    y = paddle.nn.functional.relu(y)
    y += x
    y.sum().backward()
    return y, x.grad


def a_leaf_that_needs_a_gradient(paddle):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    leaf = x
    for _ in range(3):
        x *= x
    x.sum().backward()
    return leaf.grad, leaf.is_leaf, x.is_leaf


def an_accumulated_loss(paddle):
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    total = 0
    for k in range(3):
        total += (w**k).sum()
    total /= 3
    total.backward()
    return total, w.grad


def a_parameter_becomes_a_tensor(paddle):
    layer = paddle.nn.Linear(2, 2)
    p = layer.weight
    p += 1
    return p is layer.weight, type(p).__name__, p.stop_gradient, p.is_leaf, bool((p > layer.weight).all())


def items_are_written(paddle):
    x = paddle.arange(6.0).reshape([2, 3])
    same = x
    x[0] += 1
    x[:, 1] *= 10
    x[x > 15] -= 100
    x[1, 2] **= 2
    return same is x, x


def items_written_with_gradients(paddle):
    w = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    x = w * 2
    x[0] += 5
    x[1:] *= 3
    (x * x).sum().backward()
    return x, w.grad


def repeated_indices_count_once(paddle):
    x = paddle.zeros([3])
    x[paddle.to_tensor([0, 0, 2])] += 1
    return x


def _layer(paddle):
    class Counter(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([2])
            self.register_buffer("seen", paddle.zeros([2]))
            self.register_buffer("hidden", paddle.zeros([2]), persistable=False)
            self.plain = paddle.zeros([2])

    return Counter()


def buffers_of_a_layer(paddle):
    layer = _layer(paddle)
    old = layer.seen
    layer.seen += 1
    layer.hidden += 2
    layer.plain += 3
    names = [name for name, _ in layer.named_buffers()]
    return layer.seen is old, old, layer.seen, layer.hidden, layer.plain, names, list(layer.state_dict())


def a_parameter_of_a_layer(paddle):
    layer = _layer(paddle)
    layer.weight += 1


def a_buffer_without_gradients(paddle):
    layer = _layer(paddle)
    with paddle.no_grad():
        layer.seen *= 0.5
        layer.seen += 0.5 * paddle.ones([2])
    return layer.state_dict()["seen"]


def methods_with_an_underscore_write_in_place(paddle):
    x = paddle.ones([2])
    same = x
    x = x.add_(paddle.ones([2]))
    return same is x, same


def there_are_no_methods(paddle):
    names = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    return [name for name in names if hasattr(paddle.Tensor, f"__i{name}__")]
