"""A scaler of losses for processes that hold different gradients."""

from __future__ import annotations

from .communication import ReduceOp


def agreeing(scaler, groups):
    """A scaler that skips a step where any process of some groups found a gradient that is not finite."""
    engines = [group._group for group in groups if group is not None and group.nranks > 1]
    if scaler is not None:
        scaler._agree = lambda found: _anybody(found, engines)
    return scaler


def _anybody(found: bool, engines: list) -> bool:
    from .. import to_tensor

    for engine in engines:
        told = to_tensor([int(found)], dtype="int32")
        engine.all_reduce(told, ReduceOp.MAX, True)
        found = bool(told.item())
    return found
