"""Collectives with Paddle's choice of stream, which a processor does not have, and with one tensor in place of a list."""

from __future__ import annotations

from . import communication as plain
from . import group as groups
from .communication import ReduceOp


def _listed(tensor_or_list, group, op: str):
    """A list as it is; a tensor as its equal parts along the first axis, which share its memory."""
    if isinstance(tensor_or_list, (list, tuple)):
        return tensor_or_list
    engine = groups.of(group, op)
    return engine and plain._parts(tensor_or_list.detach(), engine.size(), op)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False):
    return plain.all_reduce(tensor, op, group, sync_op)


def all_gather(tensor_or_tensor_list, tensor, group=None, sync_op=True, use_calc_stream=False):
    return plain.all_gather(_listed(tensor_or_tensor_list, group, "all_gather"), tensor, group, sync_op)


def alltoall(out_tensor_or_tensor_list, in_tensor_or_tensor_list, group=None, sync_op=True, use_calc_stream=False):
    out = _listed(out_tensor_or_tensor_list, group, "alltoall")
    return plain.alltoall(out, _listed(in_tensor_or_tensor_list, group, "alltoall"), group, sync_op)


all_to_all = alltoall


def alltoall_single(
    out_tensor,
    in_tensor,
    out_split_sizes=None,
    in_split_sizes=None,
    group=None,
    sync_op=True,
    use_calc_stream=False,
):
    return plain.alltoall_single(out_tensor, in_tensor, in_split_sizes, out_split_sizes, group, sync_op)


def broadcast(tensor, src, group=None, sync_op=True, use_calc_stream=False):
    return plain.broadcast(tensor, src, group, sync_op)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False):
    return plain.reduce(tensor, dst, op, group, sync_op)


def reduce_scatter(
    tensor, tensor_or_tensor_list, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False
):
    return plain.reduce_scatter(tensor, _listed(tensor_or_tensor_list, group, "reduce_scatter"), op, group, sync_op)


def scatter(tensor, tensor_or_tensor_list=None, src=0, group=None, sync_op=True, use_calc_stream=False):
    given = tensor_or_tensor_list
    given = None if given is None else _listed(given, group, "scatter")
    return plain.scatter(tensor, given, src, group, sync_op)


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True, use_calc_stream=False):
    return plain.gather(tensor, gather_list, dst, group, sync_op)


def send(tensor, dst=0, group=None, sync_op=True, use_calc_stream=False):
    return plain.send(tensor, dst, group, sync_op)


def recv(tensor, src=0, group=None, sync_op=True, use_calc_stream=False):
    return plain.recv(tensor, src, group, sync_op)
