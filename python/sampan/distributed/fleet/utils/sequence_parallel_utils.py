"""Sequences cut along the axis of tensor parallelism: between cut layers each process has some of the positions.

Data is `[length, batch, width]`, as Paddle has it here; the length is divisible by the number of processes.
"""

from __future__ import annotations

from ....autograd import PyLayer
from ....nn import functional as F
from ...auto_parallel.moves import Gather, ReduceTake, Take
from ...communication import ReduceOp
from ..meta_parallel.layers import ColumnParallelLinear, RowParallelLinear


def _group():
    from ..fleet import get_hybrid_communicate_group

    return get_hybrid_communicate_group().get_model_parallel_group()


def _checked(x, axis: int, count: int):
    if x.shape[axis] % count:
        raise ValueError(
            f"(InvalidArgument) sequence parallel: axis {axis} of {list(x.shape)} is not divisible by {count} processes."
        )
    return x


def scatter(input, axis: int = 0):
    """This process's positions of a sequence that all have; gradients are put together."""
    group = _group()
    return input if group.nranks == 1 else Take.apply(_checked(input, axis, group.nranks), group._group, axis)


def all_gather(input, axis: int = 0):
    """The positions of all processes; each gets its part of the gradient, which is the same in all."""
    group = _group()
    return input if group.nranks == 1 else Gather.apply(input, group._group, axis, input.shape[axis] * group.nranks)


def reduce_scatter(input, axis: int = 0):
    """This process's positions of the sum over all processes; gradients are put together."""
    group = _group()
    return input if group.nranks == 1 else ReduceTake.apply(_checked(input, axis, group.nranks), group._group, axis)


class _GatherForParts(PyLayer):
    """The positions of all processes for parts of a computation: their gradients are summed."""

    @staticmethod
    def forward(ctx, x, engine):
        ctx.engine = engine
        return Gather.apply(x.detach(), engine, 0, x.shape[0] * engine.size())

    @staticmethod
    def backward(ctx, grad):
        return ReduceTake.apply(grad, ctx.engine, 0)


def _gather_for_parts(x):
    group = _group()
    return x if group.nranks == 1 else _GatherForParts.apply(x, group._group)


class _Named:
    """A function that is called by `apply`."""

    def __init_subclass__(cls, call):
        cls.apply = staticmethod(call)


class ScatterOp(_Named, call=scatter):
    """`scatter`: positions forward, all of them backward."""


class GatherOp(_Named, call=all_gather):
    """`all_gather`: all positions forward, this process's backward."""


class AllGatherOp(_Named, call=_gather_for_parts):
    """All positions forward; backward the sum over the processes, of which each gets its positions."""


class ReduceScatterOp(_Named, call=reduce_scatter):
    """`reduce_scatter`: positions of the sum forward, all positions backward."""


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """A linear layer whose outputs are cut, for inputs of which each process has some positions."""

    def __init__(
        self,
        in_features,
        out_features,
        weight_attr=None,
        has_bias=None,
        gather_output=True,
        fuse_matmul_bias=False,
        mp_group=None,
        name=None,
    ):
        if gather_output:
            raise ValueError(
                "(InvalidArgument) ColumnSequenceParallelLinear: outputs stay cut. Hint: gather_output=False, and "
                "RowSequenceParallelLinear behind it."
            )
        super().__init__(in_features, out_features, weight_attr, has_bias, False, fuse_matmul_bias, mp_group, name)

    def forward(self, x):
        return F.linear(_gather_for_parts(x), self.weight, self.bias)


class RowSequenceParallelLinear(RowParallelLinear):
    """A linear layer whose inputs are cut; each process gets some positions of the outputs."""

    def __init__(
        self,
        in_features,
        out_features,
        weight_attr=None,
        has_bias=True,
        input_is_parallel=False,
        fuse_matmul_bias=False,
        mp_group=None,
        name=None,
    ):
        if not input_is_parallel:
            raise ValueError(
                "(InvalidArgument) RowSequenceParallelLinear: inputs are cut already. Hint: input_is_parallel=True, and "
                "ColumnSequenceParallelLinear before it."
            )
        super().__init__(in_features, out_features, weight_attr, has_bias, True, fuse_matmul_bias, mp_group, name)
        if self.bias is not None:
            mark_as_sequence_parallel_parameter(self.bias)

    def forward(self, x):
        y = reduce_scatter(F.linear(x, self.weight))
        return y if self.bias is None else y + self.bias


def mark_as_sequence_parallel_parameter(parameter) -> None:
    """Says that each process computes a part of a parameter's gradient, that of its positions."""
    parameter.sequence_parallel = True


def is_sequence_parallel_parameter(parameter) -> bool:
    """Was it marked?"""
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model, accumulation_steps: int = 1, fuse_sequence_parallel_allreduce: bool = False
) -> None:
    """Sums the gradients of marked parameters over the processes, in each `backward`: a norm between cut layers, or a bias behind
    them, is the same in all processes, but each has seen only its positions."""
    group = _group()
    if group.nranks == 1:
        return

    def summed(grad):
        total = grad.detach().clone()
        group._group.all_reduce(total, ReduceOp.SUM, True)
        return total

    for parameter in model.parameters():
        if is_sequence_parallel_parameter(parameter) and not parameter.stop_gradient:
            parameter.register_hook(summed)
