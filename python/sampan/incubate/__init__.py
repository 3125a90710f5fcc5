"""Paddle's `incubate`: what may still change."""

from __future__ import annotations

from .. import _core
from ..geometric import segment_max, segment_mean, segment_min, segment_sum, send_u_recv
from . import autograd, nn

__all__ = [
    "graph_send_recv",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "softmax_mask_fuse",
    "softmax_mask_fuse_upper_triangle",
]


def graph_send_recv(x, src_index, dst_index, pool_type="sum", out_size=None, name=None):
    """The older name of `geometric.send_u_recv`."""
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


def softmax_mask_fuse(x, mask, name=None):
    """`softmax(x + mask)` over the last axis."""
    return _core.op("softmax")(x + mask, -1)


def softmax_mask_fuse_upper_triangle(x):
    """`softmax(x)` over the last axis without what lies above the diagonal, where the result is 0."""
    below = _core.op("tril")(_core.op("ones")(x.shape[-2:], "bool"))
    hidden = _core.op("full")([], float("-inf"), x.dtype)
    return _core.op("softmax")(_core.op("where")(below, x, hidden), -1)
