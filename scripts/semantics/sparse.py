"""Tables of which a step uses few rows."""
import copy

import numpy as np

from . import case


def _table(paddle, **more):
    values = np.arange(8, dtype="float32").reshape(4, 2) / 10 + 0.1
    return paddle.nn.Embedding(4, 2, weight_attr=paddle.nn.initializer.Assign(values), **more)


def _moves(paddle, table, optimizer, steps=([0, 1], [1], [2, 2])):
    """The rows that each step changed."""
    moved = []
    for ids in steps:
        before = table.weight.numpy().copy()
        (table(paddle.to_tensor(ids)) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        moved.append(np.flatnonzero((table.weight.numpy() != before).any(1)).tolist())
    return moved


@case(each=[(sparse, lazy) for sparse in (False, True) for lazy in (False, True)])
def rows_that_adam_moves(paddle, sparse, lazy):
    table = _table(paddle, sparse=sparse)
    optimizer = paddle.optimizer.Adam(0.1, parameters=table.parameters(), lazy_mode=lazy)
    return _moves(paddle, table, optimizer)


def rows_that_adam_moves_beside_others(paddle):
    table, linear = _table(paddle, sparse=True), paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.Adam(0.1, parameters=[*table.parameters(), *linear.parameters()], lazy_mode=True)
    net = paddle.nn.Sequential(table, linear)
    net.weight = table.weight
    return _moves(paddle, net, optimizer), linear.weight.shape


def rows_that_adam_moves_with_clipping(paddle):
    table = _table(paddle, sparse=True)
    clip = paddle.nn.ClipGradByGlobalNorm(0.1)
    return _moves(paddle, table, paddle.optimizer.Adam(0.1, parameters=table.parameters(), lazy_mode=True, grad_clip=clip))


def moments_of_rows_that_nothing_named(paddle):
    table = _table(paddle, sparse=True)
    optimizer = paddle.optimizer.Adam(0.1, parameters=table.parameters(), lazy_mode=True)
    _moves(paddle, table, optimizer)
    kept = {n.split("_moment")[1]: v for n, v in optimizer.state_dict().items() if "_moment" in n}
    return {n: v[0].tolist() + v[2].tolist() + v[3].tolist() for n, v in kept.items()}


@case(each=["copied", "assigned", "grouped"])
def rows_of_a_table_that_is(paddle, what):
    table = _table(paddle, sparse=True)
    if what == "copied":
        table = copy.deepcopy(table)
    if what == "assigned":
        table.weight = paddle.create_parameter([4, 2], "float32", default_initializer=paddle.nn.initializer.Constant(0.5))
    parameters = [{"params": table.parameters()}] if what == "grouped" else table.parameters()
    return _moves(paddle, table, paddle.optimizer.Adam(0.1, parameters=parameters, lazy_mode=True))
