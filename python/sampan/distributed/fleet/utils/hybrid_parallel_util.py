"""Gradients of processes that do not reduce them in `backward`."""

from __future__ import annotations

from ... import communication
from ...group import everybody


def fused_allreduce_gradients(parameter_list, hcg=None) -> None:
    """Makes the gradients of parameters the means over the processes that share the data: those of `hcg`, the layout that `fleet`
    knows, or all. For gradients that `no_sync` has left to each process."""
    from .... import concat

    group = everybody("fused_allreduce_gradients") if hcg is None else hcg.get_data_parallel_group()
    by_dtype: dict = {}
    for parameter in parameter_list:
        if parameter.grad is not None:
            by_dtype.setdefault(str(parameter.grad.dtype), []).append(parameter.grad)
    for grads in by_dtype.values():
        flat = concat([grad.detach().reshape([-1]) for grad in grads])
        communication.all_reduce(flat, op=communication.ReduceOp.AVG, group=group)
        start = 0
        for grad in grads:
            count = grad.size
            grad.set_value(flat[start : start + count].reshape(grad.shape))
            start += count
