"""Boxes of tensors that processes hold, for checkpoints."""

from __future__ import annotations

from collections import OrderedDict
from typing import Union


class ShardedWeight:
    """A box of a tensor: `local_tensor` has `local_shape` at `global_offset` of a tensor of `global_shape`; or, flat, its
    elements `flattened_range`."""

    def __init__(
        self, key, local_tensor, local_shape, global_shape, global_offset, is_flattened=False, flattened_range=None
    ):
        self.key, self.local_tensor = key, local_tensor
        self.local_shape, self.global_shape = tuple(local_shape), tuple(global_shape)
        self.global_offset = tuple(global_offset)
        self.is_flattened, self.flattened_range = is_flattened, flattened_range
        rank = len(self.global_shape)
        inside = all(o + n <= whole for o, n, whole in zip(self.global_offset, self.local_shape, self.global_shape))
        if len(self.local_shape) != rank or len(self.global_offset) != rank or not inside:
            raise ValueError(
                f"(InvalidArgument) ShardedWeight: {key} has shape {self.global_shape}, in which no box {self.local_shape} begins "
                f"at {self.global_offset}."
            )
        if is_flattened != (flattened_range is not None):
            raise ValueError("(InvalidArgument) ShardedWeight: is_flattened and flattened_range belong together.")

    def __repr__(self) -> str:
        return (
            f"ShardedWeight(\n  key={self.key},\n  local_tensor=Tensor(shape={list(self.local_tensor.shape)}),\n"
            f"  local_shape={self.local_shape},\n  global_shape={self.global_shape},\n  global_offset={self.global_offset},\n"
            f"  flattened_range={self.flattened_range}\n)"
        )


ShardedStateDict = Union[dict[str, ShardedWeight], OrderedDict[str, ShardedWeight]]


def shard_weight(key: str, weight, axis: int, group) -> ShardedWeight:
    """This process's part of a tensor that is cut along an axis into equal parts, one for each process of a group."""
    shape = list(weight.shape)
    whole, offset = list(shape), [0] * len(shape)
    whole[axis], offset[axis] = shape[axis] * group.nranks, shape[axis] * max(group.rank, 0)
    return ShardedWeight(key, weight, shape, whole, offset)


def _whole(key: str, weight) -> ShardedWeight:
    return ShardedWeight(key, weight, weight.shape, weight.shape, [0] * weight.ndim)


def build_sharded_state_dict(state_dict: dict, shard_rules: dict | None = None, prefix: str = "") -> dict:
    """The tensors of a dict as boxes: those in `shard_rules` are cut along the axis named there, one part for each process that
    shares layers (`mp_degree` of `fleet`)."""
    from .fleet import get_hybrid_communicate_group

    rules, found = shard_rules or {}, {}
    for key, weight in state_dict.items():
        name = f"{prefix}{key}"
        if key in rules:
            group = get_hybrid_communicate_group().get_model_parallel_group()
            found[name] = shard_weight(name, weight, rules[key], group)
        else:
            found[name] = _whole(name, weight)
    return found


def sharded_state_dict(layer, prefix: str = "") -> dict:
    """The parameters and buffers of a layer as boxes, those of cut layers with their places in the whole."""
    found = {}
    for path, inner in layer.named_sublayers(include_self=True):
        before = f"{prefix}{path}." if path else prefix
        for name, value in inner.state_dict(include_sublayers=False).items():
            axis = getattr(value, "split_axis", None)
            cut = axis is not None and getattr(value, "is_distributed", False)
            key = before + name
            found[key] = shard_weight(key, value, axis, inner._group) if cut else _whole(key, value)
    return found
