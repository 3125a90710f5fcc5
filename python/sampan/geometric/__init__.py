"""Graphs: what nodes send along edges, and sums of segments. Paddle's `geometric`."""

from __future__ import annotations

from .. import _core

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "send_u_recv",
    "send_ue_recv",
    "send_uv",
]

_op = _core.op
_MESSAGES = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
_REDUCES = ("sum", "mean", "max", "min")


def _among(asker: str, name: str, value, known) -> None:
    if value not in known:
        raise ValueError(f"(InvalidArgument) {asker}: {name} must be one of {', '.join(known)}, got {value!r}.")


def _reduced(rows, index, count: int, how: str):
    """Rows with one index become one; where there is none, zeros are."""
    made = _op("zeros")([count, *rows.shape[1:]], rows.dtype)
    if how in ("sum", "mean"):
        total = _op("index_add")(made, index, 0, rows)
        if how == "sum":
            return total
        each = _op("bincount")(index, minlength=max(count, 1))[:count].clip(1).astype(rows.dtype)
        each = each.reshape([count] + [1] * (rows.ndim - 1))
        return total / each if rows.dtype.is_floating_point else _op("trunc")(total / each).astype(rows.dtype)
    places = index.reshape([-1] + [1] * (rows.ndim - 1)).expand(rows.shape)
    return _op("put_along_axis")(made, places, rows, 0, f"a{how}", False)


def _count(out_size, x) -> int:
    size = int(out_size.item() if isinstance(out_size, _core.Tensor) else out_size or 0)
    return size if size > 0 else x.shape[0]


def send_u_recv(x, src_index, dst_index, reduce_op="sum", out_size=None, name=None):
    """What each node `dst_index` gets from the nodes `src_index`: the sum, mean, largest or smallest of their rows of `x`.

    >>> import sampan
    >>> x, src, dst = sampan.to_tensor([[1.0], [2.0], [4.0]]), sampan.to_tensor([0, 1, 2]), sampan.to_tensor([1, 1, 0])
    >>> sampan.geometric.send_u_recv(x, src, dst).tolist()
    [[4.0], [3.0], [0.0]]
    """
    _among("send_u_recv", "reduce_op", reduce_op, _REDUCES)
    return _reduced(_op("gather")(x, src_index), dst_index, _count(out_size, x), reduce_op)


def _edges(a, b, message_op: str):
    if a.ndim == 1 or b.ndim == 1:
        # One number for each edge.
        a, b = (t.reshape([-1, 1]) if t.ndim == 1 else t for t in (a, b))
    return _op(_MESSAGES[message_op])(a, b)


def send_ue_recv(x, y, src_index, dst_index, message_op="add", reduce_op="sum", out_size=None, name=None):
    """`send_u_recv` of the rows of `x` added to, less, times or divided by what `y` says of their edges."""
    _among("send_ue_recv", "message_op", message_op, _MESSAGES)
    _among("send_ue_recv", "reduce_op", reduce_op, _REDUCES)
    return _reduced(_edges(_op("gather")(x, src_index), y, message_op), dst_index, _count(out_size, x), reduce_op)


def send_uv(x, y, src_index, dst_index, message_op="add", name=None):
    """For each edge the rows of `x` at its source and of `y` at its end, added, subtracted, multiplied or divided."""
    _among("send_uv", "message_op", message_op, _MESSAGES)
    return _edges(_op("gather")(x, src_index), _op("gather")(y, dst_index), message_op)


def _segments(asker: str, data, segment_ids, how: str):
    if segment_ids.ndim != 1 or segment_ids.shape[0] != data.shape[0]:
        raise ValueError(
            f"(InvalidArgument) {asker}: one segment is needed for each of the {data.shape[0]} rows, got {segment_ids.shape}."
        )
    if data.shape[0] == 0:
        return data
    if bool((segment_ids[1:] < segment_ids[:-1]).any()):
        raise ValueError(f"(InvalidArgument) {asker}: segment_ids must not fall.")
    return _reduced(data, segment_ids, int(segment_ids[-1]) + 1, how)


def segment_sum(data, segment_ids, name=None):
    """The sum of the rows of each segment."""
    return _segments("segment_sum", data, segment_ids, "sum")


def segment_mean(data, segment_ids, name=None):
    """The mean of the rows of each segment."""
    return _segments("segment_mean", data, segment_ids, "mean")


def segment_max(data, segment_ids, name=None):
    """The largest of the rows of each segment."""
    return _segments("segment_max", data, segment_ids, "max")


def segment_min(data, segment_ids, name=None):
    """The smallest of the rows of each segment."""
    return _segments("segment_min", data, segment_ids, "min")
