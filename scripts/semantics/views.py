"""Which results look at the memory of their input, and what becomes of gradients when one of the two is written."""
import numpy as np

from . import case

_IGNORED = "PaddlePaddle does not tell the other tensors on the memory what was written, so their gradient is wrong"

_VIEWS = {
    "reshape": lambda p, y: y.reshape([4, 3]),
    "reshape_zero": lambda p, y: y.reshape([0, -1]),
    "flatten": lambda p, y: y.flatten(),
    "transpose": lambda p, y: p.transpose(y, [1, 0]),
    "t": lambda p, y: y.t(),
    "T": lambda p, y: y.T,
    "swapaxes": lambda p, y: p.swapaxes(y, 0, 1),
    "moveaxis": lambda p, y: p.moveaxis(y, 0, 1),
    "unsqueeze": lambda p, y: y.unsqueeze([0, 1]),
    "squeeze": lambda p, y: y.reshape([3, 4, 1]).squeeze(-1),
    "view": lambda p, y: y.view([2, 6]),
    "view_as": lambda p, y: y.view_as(p.zeros([2, 6])),
    "unflatten": lambda p, y: y.unflatten(1, [2, 2]),
    "atleast_3d": lambda p, y: p.atleast_3d(y),
    "row": lambda p, y: y[0],
    "columns": lambda p, y: y[:, ::2],
    "backwards": lambda p, y: y[::-1],
    "dots": lambda p, y: y[...],
    "new_axis": lambda p, y: y[None],
    "position_as_tensor": lambda p, y: y[p.to_tensor(1)],
    "position_as_number_of_numpy": lambda p, y: y[np.int64(1)],
    "bound_as_tensor": lambda p, y: y[p.to_tensor(1):],
    "positions": lambda p, y: y[p.to_tensor([0, 2])],
    "one_position": lambda p, y: y[p.to_tensor([1])],
    "list": lambda p, y: y[[1, 2]],
    "array": lambda p, y: y[np.array([0, 2])],
    "mask": lambda p, y: y[y >= 0],
    "slice": lambda p, y: p.slice(y, [0], [0], [2]),
    "strided_slice": lambda p, y: p.strided_slice(y, [0], [0], [3], [2]),
    "diagonal": lambda p, y: p.diagonal(y),
    "unfold": lambda p, y: y.unfold(1, 2, 1),
    "as_strided": lambda p, y: p.as_strided(y, [2, 2], [1, 2]),
    "unbind": lambda p, y: p.unbind(y)[0],
    "detach": lambda p, y: y.detach(),
    "contiguous": lambda p, y: y.contiguous(),
    "cpu": lambda p, y: y.cpu(),
    "astype": lambda p, y: y.astype("float32"),
    "cast": lambda p, y: y.cast("float32"),
    "to": lambda p, y: y.to("float64").to("float32"),
    "expand": lambda p, y: y.expand([2, 3, 4]),
    "expand_to_itself": lambda p, y: y.expand([3, 4]),
    "expand_as": lambda p, y: y.expand_as(p.zeros([2, 3, 4])),
    "broadcast_to": lambda p, y: y.broadcast_to([2, 3, 4]),
    "broadcast_tensors": lambda p, y: p.broadcast_tensors([y, p.zeros([3, 4])])[0],
    "tile": lambda p, y: y.tile([1, 1]),
    "split": lambda p, y: p.split(y, 2, axis=1)[0],
    "chunk": lambda p, y: p.chunk(y, 2, axis=1)[0],
    "tensor_split": lambda p, y: p.tensor_split(y, 2)[0],
    "hsplit": lambda p, y: p.hsplit(y, 2)[0],
    "vsplit": lambda p, y: p.vsplit(y, 3)[0],
    "unstack": lambda p, y: p.unstack(y)[0],
    "crop": lambda p, y: p.crop(y, [2, 2], [0, 0]),
    "flip": lambda p, y: p.flip(y, 0),
    "rot90": lambda p, y: p.rot90(y),
    "clone": lambda p, y: y.clone(),
    "assign": lambda p, y: p.assign(y),
    "to_tensor": lambda p, y: p.to_tensor(y),
    "gather": lambda p, y: p.gather(y, p.to_tensor([0])),
    "index_select": lambda p, y: p.index_select(y, p.to_tensor([0])),
}


@case(each=list(_VIEWS))
def writes_through(paddle, name):
    """Is what is written to the result seen in the input, and the other way round?"""
    y = paddle.arange(12, dtype="float32").reshape([3, 4])
    v = _VIEWS[name](paddle, y)
    v.fill_(-1.0)
    forwards = (y.numpy() == -1).sum() > 0
    y = paddle.arange(12, dtype="float32").reshape([3, 4])
    v = _VIEWS[name](paddle, y)
    y.fill_(-1.0)
    return bool(forwards), bool((v.numpy() == -1).any())


def parts_of_complex_numbers(paddle):
    x = paddle.to_tensor([1 + 2j, 3 + 4j])
    x.real()[0] = 9.0
    paddle.imag(x)[1] = 8.0
    paddle.as_real(x)[0, 1] = 7.0
    return x.numpy().real, x.numpy().imag


def _leaf(paddle, values):
    return paddle.to_tensor(values, dtype="float32", stop_gradient=False)


@case(right=[[[10.0, 4.0], [6.0, 8.0]], [[0.0, 16.0], [24.0, 32.0]]], because=_IGNORED)
def a_view_is_written_the_whole_used(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    y.reshape([4])[0] = 10.0
    (y * y).sum().backward()
    return y.tolist(), x.grad.tolist()


def a_view_is_written_and_used(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    v = y.reshape([4])
    v[0] = 10.0
    (v * v).sum().backward()
    return y, v, x.grad


@case(right=[[0.0, 22.0], [30.0, 38.0]], because=_IGNORED)
def a_view_is_written_both_used(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    v = y.reshape([4])
    v[0] = 10.0
    ((v * v).sum() + (y * 3).sum()).backward()
    return x.grad.tolist()


@case(right=[[[72.0, 144.0], [24.0, 32.0]], 120.0], because=_IGNORED)
def a_row_is_scaled_by_a_parameter(paddle):
    x, w = _leaf(paddle, [[1, 2], [3, 4]]), _leaf(paddle, 3)
    y = x * 2
    y[0].multiply_(w)
    (y * y).sum().backward()
    return x.grad.tolist(), w.grad.item()


@case(right=[[0.0, 16.0], [0.0, 0.0]], because=_IGNORED)
def the_whole_is_written_a_view_used(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    v = y[0]
    y[0, 0] = 7.0
    (v * v).sum().backward()
    return x.grad.tolist()


@case(right=[-1.5136050, 1.9787164], because=_IGNORED)
def the_whole_goes_through_a_function_a_view_is_used(paddle):
    x = _leaf(paddle, [1, 2])
    y = x * 2
    v = y.reshape([2, 1])
    y.sin_()
    (v * v).sum().backward()
    return x.grad.tolist()


@case(right=[[0.0, 16.0], [0.0, 32.0]], because=_IGNORED)
def a_transposed_view_is_written(paddle):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    y = x * 2
    y.transpose([1, 0])[0] = 1.0
    (y * y).sum().backward()
    return x.grad.tolist()


@case(right=[8.0, 0.0, 24.0, 32.0], because=_IGNORED)
def a_view_of_a_view_is_written(paddle):
    x = _leaf(paddle, [1, 2, 3, 4])
    y = x * 2
    v = y.reshape([2, 2])
    v[0][1] = 1.0
    (v * y.reshape([2, 2])).sum().backward()
    return x.grad.tolist()


@case(right=[[[0.0, 2.0, 0.0, 0.0], [False, False]], 2.0], because=_IGNORED)
def a_parameter_is_written_into_a_view_of_data(paddle):
    x, w = paddle.zeros([4]), _leaf(paddle, 2)
    v = x[:2]
    v[1] = w
    (x * 2).sum().backward()
    return [x.tolist(), [x.stop_gradient, v.stop_gradient]], w.grad.item()


def views_of_a_leaf_may_be_written(paddle):
    x = _leaf(paddle, [1, 2, 3, 4])
    v = x[:2]
    v[0] = 5.0
    v.sum().backward()
    return x, v, x.grad


def a_leaf_may_not_be_written(paddle):
    x = _leaf(paddle, [1, 2])
    x[0] = 5.0


def a_leaf_may_not_go_through_a_function(paddle):
    _leaf(paddle, [1, 2]).sin_()


def a_slice_of_normalised_values_is_scaled(paddle):
    bn, x = paddle.nn.BatchNorm1D(2), _leaf(paddle, [[1, 2], [3, 5]])
    y = bn(x)
    y[:, 0] = y[:, 0] * 2
    (y * y).sum().backward()
    return y, bn.weight.grad, bn.bias.grad


def an_expanded_tensor_is_written(paddle):
    x = _leaf(paddle, [1, 2])
    y = x * 2
    e = y.expand([2, 2])
    e[0] = 5.0
    e.sum().backward()
    return e, y, x.grad


def an_expanded_tensor_goes_through_a_function(paddle):
    y = paddle.to_tensor([1.0, 2.0])
    e = y.expand([2, 2])
    e.add_(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
    return e, y


def pieces_are_tensors_of_their_own(paddle):
    x = _leaf(paddle, [1, 2, 3, 4])
    y = x * 2
    a, b = paddle.split(y, 2)
    a.zero_()
    y.sum().backward()
    return y, a, b, x.grad


def a_detached_tensor_writes_without_a_trace(paddle):
    x = _leaf(paddle, [1, 2])
    y = x * 2
    y.detach()[0] = 100.0
    (y * 3).sum().backward()
    return y, x.grad


def what_a_gradient_needs_may_not_be_written(paddle):
    x = _leaf(paddle, [1, 2])
    y = x * 2
    z = y * y
    y.reshape([2, 1])[0] = 3.0
    z.sum().backward()
