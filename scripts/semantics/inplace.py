"""Ops that write into their first argument: gradients, dtypes, constants."""
from . import case


def _leaf(paddle, values):
    return paddle.to_tensor(values, dtype="float32", stop_gradient=False)


_UNARY = ["sin", "cos", "tan", "exp", "log", "sqrt", "rsqrt", "square", "reciprocal", "tanh", "sigmoid", "abs", "asinh",
          "atan", "log1p", "log2", "log10", "sinh", "cosh", "digamma", "lgamma", "neg", "floor", "ceil",
          "round", "trunc", "frac", "i0", "softmax", "relu", "logit", "erfinv"]


@case(each=_UNARY, rtol=1e-4)
def of_one_tensor(paddle, name):
    x = _leaf(paddle, [0.3, 0.6])
    y = x * 1
    function = getattr(y, name + "_", None) or (lambda: getattr(paddle.nn.functional, name + "_")(y))
    same = function()
    (y * paddle.to_tensor([1.0, 2.0])).sum().backward()
    return same is y, y, x.grad


@case(each=["add", "subtract", "multiply", "divide", "remainder", "hypot", "copysign", "lerp", "ldexp",
            "floor_mod", "mod"], rtol=1e-4)
def of_two_tensors(paddle, name):
    x, w = _leaf(paddle, [1.3, 2.6]), _leaf(paddle, [3.0, 4.0])
    y = x * 1
    more = [paddle.to_tensor([0.25, 0.5])] if name == "lerp" else []
    getattr(y, name + "_")(w, *more)
    y.sum().backward()
    return y, x.grad, w.grad


@case(right=[[1.0, 4.0], [2.0, 4.0]], because="PaddlePaddle refuses what can be computed")
def a_tensor_times_itself(paddle):
    x = _leaf(paddle, [1, 2])
    y = x * 1
    y.multiply_(y)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@case(right=[[0.0, 0.0], [0.0, 0.0]], because="PaddlePaddle's gradient is that of the tensor before the call")
def a_rounded_quotient(paddle):
    x = _leaf(paddle, [1.3, 2.6])
    y = x * 1
    y.floor_divide_(paddle.to_tensor([3.0, 4.0]))
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@case(each=["clip", "scale", "masked_fill", "index_fill", "index_add", "put_along_axis", "scatter", "where", "tril",
            "triu", "cumsum", "t", "addmm", "nan_to_num", "renorm", "fill_diagonal", "fill", "zero"], rtol=1e-4)
def with_more_arguments(paddle, name):
    x = _leaf(paddle, [[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    at, mask, ones = paddle.to_tensor([0]), x.detach() > 2, paddle.ones([1, 2])
    do = {
        "clip": lambda: y.clip_(1.5, 3.5),
        "scale": lambda: y.scale_(3.0, 1.0),
        "masked_fill": lambda: y.masked_fill_(mask, 7.0),
        "index_fill": lambda: y.index_fill_(at, 1, 5.0),
        "index_add": lambda: y.index_add_(at, 0, ones),
        "put_along_axis": lambda: y.put_along_axis_(paddle.to_tensor([[0, 1]]), ones, 0),
        "scatter": lambda: y.scatter_(at, ones),
        "where": lambda: paddle.where_(mask, y, paddle.zeros([2, 2])),
        "tril": lambda: y.tril_(),
        "triu": lambda: y.triu_(),
        "cumsum": lambda: y.cumsum_(0),
        "t": lambda: y.t_(),
        "addmm": lambda: y.addmm_(paddle.eye(2), paddle.ones([2, 2]), beta=2.0),
        "nan_to_num": lambda: y.nan_to_num_(),
        "renorm": lambda: y.renorm_(2.0, 0, 1.0),
        "fill_diagonal": lambda: y.fill_diagonal_(9.0),
        "fill": lambda: y.fill_(3.0),
        "zero": lambda: y.zero_(),
    }[name]
    do()
    (y * paddle.to_tensor([[1.0, 2.0], [3.0, 5.0]])).sum().backward()
    return y, y.stop_gradient, x.grad


@case(each=["equal", "not_equal", "greater_than", "less_than", "greater_equal", "less_equal", "logical_and",
            "logical_or", "logical_xor", "logical_not"])
def truth_takes_its_place(paddle, name):
    x = paddle.to_tensor([1.0, 0.0])
    same = x
    getattr(x, name + "_")(*([] if name == "logical_not" else [paddle.to_tensor([1.0, 3.0])]))
    return same is x, same


@case(each=["add", "subtract", "multiply", "divide"])
def the_wider_dtype_takes_its_place(paddle, name):
    x = _leaf(paddle, [1, 2])
    y = x * 1
    getattr(y, name + "_")(paddle.to_tensor([2.0, 4.0], dtype="float64"))
    y.sum().backward()
    return y, x.grad


def a_quotient_of_integers_is_a_float(paddle):
    x = paddle.to_tensor([1, 2])
    x.divide_(paddle.to_tensor([2, 2]))
    return x


def what_another_call_needs_may_not_be_written(paddle):
    x = _leaf(paddle, [1, 2])
    y = x.exp()
    y.add_(paddle.ones([2]))
    y.sum().backward()


def the_result_of_relu_may_not_be_written(paddle):
    x = _leaf(paddle, [1, -2])
    y = paddle.nn.functional.relu(x)
    y[0] = 5.0
    y.sum().backward()


def leaves_may_be_written_without_recording(paddle):
    x = _leaf(paddle, [1, 2])
    with paddle.no_grad():
        x.add_(paddle.ones([2]))
        x[0] = 7.0
    (x * x).sum().backward()
    return x, x.stop_gradient, x.grad


def a_shape_changes_in_place(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    y.flatten_()
    y.reshape_([4, 1])
    y.unsqueeze_(0)
    y.squeeze_(0)
    (y * y).sum().backward()
    return y, x.grad


def names_stay(paddle):
    x = paddle.ones([2])
    x.name, x.persistable = "mine", True
    x.add_(paddle.ones([2]))
    x[0] = 4.0
    return x.name, x.persistable


def index_assignment_in_a_loop(paddle):
    w = _leaf(paddle, [0.5, 2.0])
    states = paddle.zeros([4, 2])
    states[0] = paddle.ones([2])
    for t in range(3):
        states[t + 1] = states[t] * w + 1
    states.sum().backward()
    return states, w.grad
