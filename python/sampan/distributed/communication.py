"""What processes tell each other."""

from __future__ import annotations

from . import group as groups

# A package to programs that import from its files: `paddle.distributed.communication.group`.
__path__: list[str] = []


class ReduceOp:
    """How tensors of several processes become one."""

    SUM, MAX, MIN, PROD, AVG = range(5)


def _empty_like(tensor):
    from .. import zeros

    return zeros(tensor.shape, dtype=tensor.dtype)


def _parts(tensor, count: int, op: str) -> list:
    """A tensor cut along its first axis into equal parts, which share its memory."""
    if tensor.shape[0] % count:
        raise ValueError(f"(InvalidArgument) {op}: the first axis of {tensor.shape} is not divisible by {count} processes.")
    rows = tensor.shape[0] // count
    return [tensor[i * rows : (i + 1) * rows] for i in range(count)]


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True):
    """Makes a tensor the sum, or another reduction, of those of all processes, in place."""
    engine = groups.of(group, "all_reduce")
    return engine and engine.all_reduce(tensor, op, sync_op)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, sync_op=True):
    """Makes the tensor of process `dst` the sum, or another reduction, of those of all, in place."""
    engine = groups.of(group, "reduce")
    return engine and engine.reduce(tensor, dst, op, sync_op)


def broadcast(tensor, src, group=None, sync_op=True):
    """Gives the tensor of process `src` to all, in place."""
    engine = groups.of(group, "broadcast")
    return engine and engine.broadcast(tensor, src, sync_op)


def all_gather(tensor_list: list, tensor, group=None, sync_op=True):
    """Fills a list with the tensors of all processes, in the order of their ranks. An empty list gets new tensors."""
    engine = groups.of(group, "all_gather")
    if engine is None:
        return None
    if not tensor_list:
        tensor_list.extend(_empty_like(tensor) for _ in range(engine.size()))
    return engine.all_gather(tensor_list, tensor, sync_op)


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True):
    """Fills a list of process `dst` with the tensors of all, in the order of their ranks."""
    engine = groups.of(group, "gather")
    if engine is None:
        return None
    mine = engine.ranks[engine.rank] == dst
    if mine and gather_list is None:
        raise ValueError("(InvalidArgument) gather: gather_list is needed on the process that gathers.")
    if mine and not gather_list:
        gather_list.extend(_empty_like(tensor) for _ in range(engine.size()))
    return engine.gather(gather_list if mine else [], tensor, dst, sync_op)


def scatter(tensor, tensor_list=None, src=0, group=None, sync_op=True):
    """Gives each process one tensor of a list that process `src` has, in place."""
    engine = groups.of(group, "scatter")
    if engine is None:
        return None
    mine = engine.ranks[engine.rank] == src
    if mine and not tensor_list:
        raise ValueError("(InvalidArgument) scatter: tensor_list is needed on the process that scatters.")
    return engine.scatter(tensor, list(tensor_list) if mine else [], src, sync_op)


def reduce_scatter(tensor, tensor_list, op=ReduceOp.SUM, group=None, sync_op=True):
    """Makes a tensor the reduction of one tensor of everybody's list, another one in each process, in place."""
    engine = groups.of(group, "reduce_scatter")
    return engine and engine.reduce_scatter(tensor, list(tensor_list), op, sync_op)


def alltoall(out_tensor_list: list, in_tensor_list, group=None, sync_op=True):
    """Gives each process one tensor of a list, and fills another list with what they give."""
    engine = groups.of(group, "alltoall")
    if engine is None:
        return None
    if not out_tensor_list:
        out_tensor_list.extend(_empty_like(t) for t in in_tensor_list)
    return engine.all_to_all(out_tensor_list, list(in_tensor_list), sync_op)


def alltoall_single(
    out_tensor, in_tensor, in_split_sizes=None, out_split_sizes=None, group=None, sync_op=True
):
    """Gives each process some rows of a tensor, and fills another one with the rows they give; as many for each, or as
    `in_split_sizes` and `out_split_sizes` say."""
    engine = groups.of(group, "alltoall_single")
    if engine is None:
        return None

    def cut(tensor, sizes, name):
        if not sizes:
            return _parts(tensor, engine.size(), "alltoall_single")
        if len(sizes) != engine.size() or sum(sizes) != tensor.shape[0]:
            raise ValueError(
                f"(InvalidArgument) alltoall_single: {name} has {len(sizes)} numbers with the sum {sum(sizes)}, for "
                f"{engine.size()} processes and {tensor.shape[0]} rows."
            )
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return [tensor[at : at + size] for at, size in zip(starts, sizes)]

    outputs = cut(out_tensor.detach(), out_split_sizes, "out_split_sizes")
    inputs = cut(in_tensor.detach(), in_split_sizes, "in_split_sizes")
    return engine.all_to_all(outputs, inputs, sync_op)


def send(tensor, dst=0, group=None, sync_op=True):
    """Gives a tensor to process `dst`, which calls `recv`."""
    engine = groups.of(group, "send")
    return engine and engine.send(tensor, dst, sync_op)


def recv(tensor, src=0, group=None, sync_op=True):
    """Fills a tensor with the one that process `src` sends."""
    engine = groups.of(group, "recv")
    return engine and engine.recv(tensor, src, sync_op)


def isend(tensor, dst, group=None):
    """`send` that does not wait; the task it gives does, by `wait()`."""
    return send(tensor, dst, group, sync_op=False)


def irecv(tensor, src=None, group=None):
    """`recv` that does not wait; the task it gives does, by `wait()`."""
    return recv(tensor, 0 if src is None else src, group, sync_op=False)


class P2POp:
    """One of several messages for `batch_isend_irecv`: `isend` or `irecv`, a tensor and the other process."""

    def __init__(self, op, tensor, peer, group=None):
        if op not in (isend, irecv):
            raise RuntimeError("(InvalidArgument) P2POp: op is distributed.isend or distributed.irecv.")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list: list) -> list:
    """Begins several messages at once and gives their tasks."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise RuntimeError("(InvalidArgument) batch_isend_irecv: a list of P2POp is needed.")
    tasks = [op.op(op.tensor, op.peer, op.group) for op in p2p_op_list]
    return [task for task in tasks if task is not None]


def barrier(group=None) -> None:
    """Waits until all processes are here."""
    engine = groups.of(group, "barrier")
    if engine is not None:
        engine.barrier()


def wait(tensor, group=None, use_calc_stream=True) -> None:
    """Waits until the collectives of a group that were begun before are done."""
    engine = groups.of(group, "wait")
    if engine is not None:
        engine.finish()
