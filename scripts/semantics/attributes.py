"""What becomes of what is assigned to a layer."""
from . import case


def _tables(layer):
    return [
        [n for n, _ in layer.named_parameters()],
        [n for n, _ in layer.named_buffers()],
        [n for n, _ in layer.named_children()],
        list(layer.state_dict()),
    ]


def _layer(paddle):
    class Parts(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([2])
            self.register_buffer("kept", paddle.zeros([2]))
            self.register_buffer("hidden", paddle.zeros([2]), persistable=False)
            self.tensor = paddle.ones([2])
            self.child = paddle.nn.Linear(1, 1)
            self.nothing = None
            self.number = 3

    return Parts()


_VALUES = {
    "parameter": lambda paddle: paddle.create_parameter([2], "float32"),
    "tensor": lambda paddle: paddle.ones([2]),
    "layer": lambda paddle: paddle.nn.ReLU(),
    "None": lambda paddle: None,
    "number": lambda paddle: 5,
    "list": lambda paddle: [paddle.nn.ReLU()],
}
_PLACES = ["weight", "kept", "hidden", "tensor", "child", "nothing", "number", "new"]


@case(each=[(place, value) for place in _PLACES for value in _VALUES])
def assigned(paddle, place, value):
    layer = _layer(paddle)
    new = _VALUES[value](paddle)
    setattr(layer, place, new)
    return _tables(layer), getattr(layer, place) is new


@case(each=_PLACES[:-1])
def deleted(paddle, place):
    layer = _layer(paddle)
    delattr(layer, place)
    return _tables(layer), hasattr(layer, place)


@case(each=["parameter", "tensor", "layer"])
def assigned_before_the_base_is_ready(paddle, value):
    class Early(paddle.nn.Layer):
        def __init__(self):
            self.part = _VALUES[value](paddle)
            super().__init__()

    try:
        Early()
    except (ValueError, AttributeError, TypeError):
        return "refused"


def a_tensor_with_a_gradient_is_kept(paddle):
    layer = _layer(paddle)
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    layer.kept = x * 3
    layer.kept.sum().backward()
    return x.grad, layer.kept.stop_gradient


def a_shared_parameter_is_listed_once(paddle):
    layer = _layer(paddle)
    layer.again = layer.weight
    layer.child.extra = layer.weight
    return _tables(layer), len(layer.parameters())


def a_shared_layer_is_listed_once(paddle):
    layer = _layer(paddle)
    layer.twin = layer.child
    return _tables(layer), len(layer.sublayers()), len(layer.parameters())
