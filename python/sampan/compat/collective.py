"""Groups, and collectives with gradients, where layers written for Paddle's files look for them."""

from __future__ import annotations

from ..distributed import (  # noqa: F401
    ReduceOp,
    barrier,
    destroy_process_group,
    get_backend,
    get_group,
    is_available,
    is_initialized,
    new_group,
    reduce,
    wait,
)
from ..distributed.fleet.meta_parallel import exchange
from ..distributed.fleet.meta_parallel.layers import split  # noqa: F401
from ..distributed.group import Group, everybody


def _get_global_group() -> Group:
    """The group of all processes."""
    return everybody("get_group")


_get_default_group = _get_global_group


def _get_reduce_op(reduce_op, func_name):
    """How tensors become one: the number itself."""
    return reduce_op


def _in(group):
    return _get_global_group() if group is None else group


def _c_identity(tensor, group=None, skip_c_identity_dynamic=False):
    """The same values; their gradients are summed over the processes."""
    return exchange.copy_to_parts(tensor, _in(group))


def _c_concat(tensor, group=None):
    """The parts of all processes side by side along the last axis."""
    return exchange.join_parts(tensor, _in(group))


def _c_split(tensor, group=None):
    """The part of this process of the last axis."""
    return exchange.take_part(tensor, _in(group))


def _mp_allreduce(
    tensor, op=ReduceOp.SUM, group=None, use_calc_stream=True, use_model_parallel=True, skip_c_identity_dynamic=False
):
    """The sum over all processes; each gets the gradient."""
    if op != ReduceOp.SUM:
        raise NotImplementedError("(Unimplemented) _mp_allreduce: only sums have gradients. Hint: op=ReduceOp.SUM.")
    return exchange.sum_of_parts(tensor, _in(group))
