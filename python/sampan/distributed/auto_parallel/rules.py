"""How ops work on parts: which placements they take along one axis of a mesh, and which their result has.

A rule is asked for each axis of the mesh on its own. It gets the shapes and placements of the tensors and the other arguments,
and answers which placements it wants, which one the result has, and how long the axis of the result is that is cut. Without an
answer the op runs on whole tensors in every process, which is always right.
"""

from __future__ import annotations

from typing import NamedTuple

from .placement import Partial, Placement, Replicate, Shard

ALL = Replicate()
SUM = Partial()


class Answer(NamedTuple):
    wanted: list[Placement]
    result: Placement
    extent: int = 0


def _elementwise(shapes, states, told, count):
    if all(s == ALL for s in states):
        return Answer(states, ALL)
    rank = max(map(len, shapes))
    full = [max(s[len(s) - rank + i] if len(s) - rank + i >= 0 else 1 for s in shapes) for i in range(rank)]
    for shape, state in zip(shapes, states):
        if state.is_shard():
            dim = state.get_dim() + rank - len(shape)
            if full[dim] != shape[state.get_dim()]:
                continue
            wanted = []
            for other in shapes:
                own = dim - rank + len(other)
                wanted.append(Shard(own) if own >= 0 and other[own] == full[dim] else ALL)
            return Answer(wanted, Shard(dim), full[dim])
    return None


def _additive(shapes, states, told, count):
    if len(states) > 1 and all(s == SUM for s in states):
        return Answer(states, SUM)
    return _elementwise(shapes, states, told, count)


def _linear_in_one(shapes, states, told, count):
    """A product or quotient with a number."""
    number = told.get("y") if len(states) == 1 else None
    if states == [SUM] and isinstance(number, (int, float)):
        return Answer(states, SUM)
    return _elementwise(shapes, states, told, count)


def _scaled(shapes, states, told, count):
    if states == [SUM] and not told.get("bias"):
        return Answer(states, SUM)
    return _elementwise(shapes, states, told, count)


def _kept(shapes, states, told, count):
    if states == [SUM]:
        return Answer(states, SUM)
    return _elementwise(shapes, states, told, count)


def _matmul(shapes, states, told, count):
    (xs, ys), (x, y) = shapes[:2], states[:2]
    if len(xs) < 2 or len(ys) < 2:
        return None
    rank = max(len(xs), len(ys))

    def axes(shape, turned):
        n = len(shape)
        return (n - 1, n - 2) if turned else (n - 2, n - 1)

    (row, inner_x), (inner_y, column) = axes(xs, told.get("transpose_x")), axes(ys, told.get("transpose_y"))
    if x == SUM and y == ALL or x == ALL and y == SUM:
        return Answer([x, y], SUM)
    if x.is_shard(inner_x) and (y == ALL or y.is_shard(inner_y)) or y.is_shard(inner_y) and x == ALL:
        return Answer([Shard(inner_x), Shard(inner_y)], SUM)
    if x.is_shard(row):
        return Answer([x, ALL], Shard(rank - 2), xs[row])
    for state, shape, other in ((x, xs, ys), (y, ys, xs)):
        if state.is_shard() and state.get_dim() < len(shape) - 2:
            at = state.get_dim() + rank - len(shape)
            theirs = at - rank + len(other)
            same = theirs >= 0 and other[theirs] == shape[state.get_dim()]
            if same or theirs < 0 or other[theirs] == 1:
                wanted = [state, Shard(theirs) if same else ALL]
                return Answer(wanted if shape is xs else wanted[::-1], Shard(at), shape[state.get_dim()])
    if y.is_shard(column):
        return Answer([ALL, y], Shard(rank - 1), ys[column])
    return None


def _axes(told, rank: int) -> list[int]:
    axis = told.get("axis")
    if axis is None or axis == []:
        return list(range(rank))
    return [a % rank for a in (axis if isinstance(axis, (list, tuple)) else [axis])]


def _after(dim: int, gone: list[int], told) -> int:
    return dim if told.get("keepdim") else dim - sum(1 for a in gone if a < dim)


def _sum(shapes, states, told, count):
    state, gone = states[0], _axes(told, len(shapes[0]))
    if state == SUM:
        return Answer([state], SUM)
    if not state.is_shard():
        return None
    dim = state.get_dim()
    if dim in gone:
        return Answer([state], SUM)
    return Answer([state], Shard(_after(dim, gone, told)), shapes[0][dim])


def _mean(shapes, states, told, count):
    """The mean of equal parts is the sum of their means, each divided by their number."""
    state = states[0]
    if state.is_shard() and state.get_dim() in _axes(told, len(shapes[0])):
        if shapes[0][state.get_dim()] % count:
            return None
        told["_divided"] = told.get("_divided", 1) * count
    return _sum(shapes, states, told, count)


def _along(shapes, states, told, count):
    """Ops that look along an axis (the last one, if nothing is said): others may be cut."""
    state, rank = states[0], len(shapes[0])
    axis = told.get("axis", -1)
    if not state.is_shard() or not isinstance(axis, int) or state.get_dim() == axis % rank:
        return None
    return Answer([state, *[ALL] * (len(states) - 1)], state, shapes[0][state.get_dim()])


def _layer_norm(shapes, states, told, count):
    given = told.get("normalized_shape")
    state, last = states[0], len(shapes[0]) - (len(given) if isinstance(given, (list, tuple)) else 1)
    if not state.is_shard() or state.get_dim() >= last:
        return None
    return Answer([state, *[ALL] * (len(states) - 1)], state, shapes[0][state.get_dim()])


def _batch(shapes, states, told, count):
    """Ops that treat samples alike: the first axis of the first tensor may be cut."""
    if not states[0].is_shard(0):
        return None
    return Answer([states[0], *[ALL] * (len(states) - 1)], Shard(0), shapes[0][0])


def _heads(shapes, states, told, count):
    """Attention: samples or heads may be cut, in query, key and value alike."""
    state = states[0]
    if (
        len(states) != 3
        or not (state.is_shard(0) or state.is_shard(2))
        or len({s[state.get_dim()] for s in shapes}) > 1
    ):
        return None
    return Answer([state] * 3, state, shapes[0][state.get_dim()])


def _embedding(shapes, states, told, count):
    ids, weight = states
    if ids.is_shard():
        return Answer([ids, ALL], ids, shapes[0][ids.get_dim()])
    if weight.is_shard(1):
        return Answer([ALL, weight], Shard(len(shapes[0])), shapes[1][1])
    return None


def _transpose(shapes, states, told, count):
    state, rank = states[0], len(shapes[0])
    perm = [a % rank for a in told["perm"]]
    if state == SUM:
        return Answer([state], SUM)
    if not state.is_shard():
        return None
    return Answer([state], Shard(perm.index(state.get_dim())), shapes[0][state.get_dim()])


def _turned(shapes, states, told, count):
    told["perm"] = list(range(len(shapes[0])))[::-1]
    return _transpose(shapes, states, told, count)


def _concat(shapes, states, told, count):
    rank = len(shapes[0])
    axis = (told.get("axis") or 0) % rank
    cut = [s for s in states if s.is_shard()]
    if all(s == SUM for s in states):
        return Answer(states, SUM)
    if not cut or cut[0].get_dim() == axis:
        return None
    return Answer([cut[0]] * len(states), cut[0], shapes[0][cut[0].get_dim()])


_UNARY = (
    "relu gelu sigmoid tanh exp expm1 log log2 log10 log1p sqrt rsqrt square abs silu swish leaky_relu elu selu softplus "
    "softsign hardswish hardsigmoid hardtanh relu6 mish erf sin cos tan floor ceil round sign reciprocal clip pow isnan isinf "
    "isfinite logical_not bitwise_not zeros_like ones_like full_like cast trunc nan_to_num tanhshrink logsigmoid"
).split()
_BINARY = (
    "maximum minimum fmax fmin remainder floor_divide equal not_equal less_than less_equal greater_than greater_equal logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor atan2 where squared_l2_distance"
).split()
_BATCHED = (
    "conv1d conv2d conv3d conv1d_transpose conv2d_transpose max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d group_norm instance_norm interpolate pixel_shuffle"
).split()

RULES = {
    **dict.fromkeys(_UNARY + _BINARY, _elementwise),
    **dict.fromkeys(("add", "subtract"), _additive),
    **dict.fromkeys(("multiply", "divide"), _linear_in_one),
    **dict.fromkeys(("assign", "neg", "contiguous"), _kept),
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "glu"), _along),
    **dict.fromkeys(_BATCHED, _batch),
    "scale": _scaled,
    "sum": _sum,
    "mean": _mean,
    "layer_norm": _layer_norm,
    "scaled_dot_product_attention": _heads,
    "embedding": _embedding,
    "transpose": _transpose,
    "t": _turned,
    "concat": _concat,
}
