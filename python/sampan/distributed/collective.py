"""What processes tell each other."""

from __future__ import annotations

from .. import _core
from . import parallel


class ReduceOp:
    """How tensors of several processes become one."""

    SUM, MAX, MIN, PROD, AVG = range(5)


_NAMES = {
    ReduceOp.SUM: "add",
    ReduceOp.AVG: "add",
    ReduceOp.MAX: "maximum",
    ReduceOp.MIN: "minimum",
    ReduceOp.PROD: "multiply",
}


def _bytes(tensor) -> bytes:
    # Halves travel as float32, which NumPy knows too.
    return _wide(tensor).numpy().tobytes()


def _wide(tensor):
    return tensor.detach().astype("float32") if "float16" in str(tensor.dtype) else tensor.detach()


def _tensor(data: bytes, like):
    import numpy

    wide = _wide(like)
    array = numpy.frombuffer(data, wide.numpy().dtype).reshape(like.shape).copy()
    return _core.to_tensor_py(array).astype(like.dtype)


def _what(op: str, tensor, **more) -> dict:
    return {"op": op, "shape": list(tensor.shape), "dtype": str(tensor.dtype), **more}


def _same(payloads: list[bytes]) -> bytes:
    return payloads[0]


def reduced(tensor, op=ReduceOp.SUM, tag: str = ""):
    """The sum, or another reduction, of a tensor over all processes, taken in the order of their ranks."""
    group = parallel.group()

    def combine(payloads):
        from .. import _registry

        function = _registry.functions("")[_NAMES[op]]
        total = _tensor(payloads[0], tensor)
        for payload in payloads[1:]:
            total = function(total, _tensor(payload, tensor))
        return _bytes(total / len(payloads) if op == ReduceOp.AVG else total)

    if group.size == 1:
        return tensor.detach()
    return _tensor(group.exchange(_what("all_reduce", tensor, kind=op, tag=tag), _bytes(tensor), combine), tensor)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True) -> None:
    """Makes a tensor the sum, or another reduction, of those of all processes, in place."""
    if parallel.group().size > 1:
        tensor.set_value(reduced(tensor, op))


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, sync_op=True) -> None:
    """Makes a tensor of one process the sum, or another reduction, of those of all, in place."""
    if parallel.group().size > 1:
        total = reduced(tensor, op)
        if parallel.get_rank() == dst:
            tensor.set_value(total)


def broadcast(tensor, src, group=None, sync_op=True) -> None:
    """Gives the tensor of one process to all, in place."""
    members = parallel.group()
    if members.size > 1:
        data = members.exchange(_what("broadcast", tensor, src=src), _bytes(tensor), lambda payloads: payloads[src])
        if members.rank != src:
            tensor.set_value(_tensor(data, tensor))


def all_gather(tensor_list: list, tensor, group=None, sync_op=True) -> None:
    """Appends the tensors of all processes to a list, in the order of their ranks."""
    members = parallel.group()
    if members.size == 1:
        tensor_list.append(tensor.clone())
        return
    data = members.exchange(_what("all_gather", tensor), _bytes(tensor), b"".join)
    size = len(data) // members.size
    tensor_list.extend(_tensor(data[i * size : (i + 1) * size], tensor) for i in range(members.size))


def scatter(tensor, tensor_list=None, src=0, group=None, sync_op=True) -> None:
    """Gives each process one tensor of a list that one process has, in place."""
    members = parallel.group()
    mine = b"".join(map(_bytes, tensor_list)) if members.rank == src else b""

    def combine(payloads):
        size = len(payloads[src]) // members.size
        return [payloads[src][i * size : (i + 1) * size] for i in range(members.size)]

    tensor.set_value(_tensor(members.exchange(_what("scatter", tensor, src=src), mine, combine), tensor))


def barrier(group=None) -> None:
    """Waits until all processes are here."""
    parallel.group().exchange({"op": "barrier"}, b"", _same)
