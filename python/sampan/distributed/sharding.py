"""An optimizer whose states are shared out: each process updates some parameters and gives them to the others."""

from __future__ import annotations

import contextlib

from .communication import ReduceOp
from .group import everybody


def owners(parameters: list, count: int) -> list[int]:
    """Who updates which parameter: the largest first, each to whoever has least, the same in every process."""
    load, owner = [0] * count, [0] * len(parameters)
    sizes = [parameter.size for parameter in parameters]
    for at in sorted(range(len(parameters)), key=lambda i: (-sizes[i], i)):
        owner[at] = load.index(min(load))
        load[owner[at]] += sizes[at]
    return owner


def parameters_of(optimizer) -> list:
    """The parameters of an optimizer, in groups or not."""
    found = optimizer._parameter_list
    return [p for part in found for p in (part["params"] if isinstance(part, dict) else [part])]


class PartOptimizer:
    """Another optimizer, whose clipping counts the parts of cut parameters (`is_distributed`) that only other processes
    have, and the parameters of other `stages`. With `copies`, gradients are means over processes that hold the same part and
    saw other data."""

    def __init__(self, optimizer, parts=None, copies=None, stages=None):
        self.__dict__["_inner_opt"] = optimizer
        self.__dict__["_parts"] = [part._group for part in parts or () if part is not None and part.nranks > 1]
        self.__dict__["_stages"] = stages._group if stages is not None and stages.nranks > 1 else None
        self.__dict__["_copies"] = copies._group if copies is not None and copies.nranks > 1 else None

    @property
    def _parameters(self) -> list:
        return parameters_of(self._inner_opt)

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def __setattr__(self, name, value):
        setattr(self._inner_opt, name, value)

    def _scale_by_norm(self, clip, trained: list) -> None:
        from .. import to_tensor

        whole = {False: 0.0, True: 0.0}
        for parameter in trained:
            if getattr(parameter, "need_clip", True) and getattr(parameter, "is_firstly_shared", True):
                square = parameter.grad.astype("float64").square().sum().item()
                whole[bool(getattr(parameter, "is_distributed", False))] += square
        total = to_tensor([whole[True]], dtype="float64")
        for part in self._parts:
            part.all_reduce(total, ReduceOp.SUM, True)
        total += whole[False]
        if self._stages is not None:
            self._stages.all_reduce(total, ReduceOp.SUM, True)
        norm = total.item() ** 0.5
        if norm > clip.clip_norm:
            for parameter in trained:
                if getattr(parameter, "need_clip", True):
                    parameter.grad.scale_(clip.clip_norm / norm)

    @contextlib.contextmanager
    def _clipped(self, trained: list):
        """The other optimizer with gradients that are clipped by the norm of all parts already."""
        if self._copies is not None:
            for parameter in trained:
                self._copies.all_reduce(parameter.grad, ReduceOp.AVG, True)
        inner, clip = self._inner_opt, self._inner_opt._grad_clip
        by_norm = type(clip).__name__ == "ClipGradByGlobalNorm"
        if by_norm:
            self._scale_by_norm(clip, trained)
            inner._grad_clip = None
        try:
            yield inner
        finally:
            if by_norm:
                inner._grad_clip = clip

    def _trained(self) -> list:
        return [p for p in self._parameters if p.grad is not None and not p.stop_gradient]

    def step(self) -> None:
        """Updates this process's parameters."""
        with self._clipped(self._trained()) as inner:
            inner.step()

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`step`, as Paddle 1 called it."""
        self.step()
        return [], []


class ShardedOptimizer(PartOptimizer):
    """Steps of another optimizer, each parameter's in one process alone, where its state is. Everything else is the other
    optimizer's."""

    def __init__(self, optimizer, group=None, parts=None, keeps_grads=True, copies=None, stages=None):
        super().__init__(optimizer, parts, copies, stages)
        self.__dict__["_keeps_grads"] = keeps_grads
        self.__dict__["_group"] = (everybody("group_sharded_parallel") if group is None else group)._group
        self.__dict__["_owner"] = owners(self._parameters, self._group.size())

    def step(self) -> None:
        """Updates the parameters that are this process's, and gives them to the others."""
        parameters, group, trained = self._parameters, self._group, self._trained()
        stepped = set(map(id, trained))
        others = []
        with self._clipped(trained) as inner:
            for parameter, owner in zip(parameters, self._owner):
                if owner != group.rank and parameter.grad is not None:
                    others.append((parameter, parameter.grad))
                    parameter.clear_gradient(False)
            try:
                inner.step()
            finally:
                for parameter, grad in others if self._keeps_grads else ():
                    parameter.grad = grad
        if group.size() > 1:
            for rank in range(group.size()):
                theirs = [p for p, owner in zip(parameters, self._owner) if owner == rank and id(p) in stepped]
                if theirs:
                    group.broadcast_all(theirs, group.ranks[rank])


def group_sharded_parallel(
    model,
    optimizer,
    level,
    scaler=None,
    group=None,
    offload=False,
    sync_buffers=False,
    buffer_max_size=2**23,
    segment_size=2**20,
    sync_comm=False,
    dp_group=None,
    exclude_layer=None,
):
    """Shares a training out among processes. Level `os` shares the states of the optimizer, `os_g` also lets go of gradients
    that other processes need when a step begins, and `p_g_os` shares parameters of `segment_size` elements and more as well:
    a layer has them whole only while it computes. Gives the network, the optimizer and the scaler to train with.

    `sync_buffers` gives the buffers of the first process to all before each forward; `dp_group` are processes that hold the
    same share; `exclude_layer` has names of classes, or ids of layers, whose parameters stay whole.
    """
    from ..device import get_device
    from .parallel import DataParallel
    from .scaler import agreeing
    from .stage3 import GroupShardedStage3, keep_buffers_alike

    if level not in ("os", "os_g", "p_g_os"):
        raise ValueError(f"(InvalidArgument) group_sharded_parallel: the level is os, os_g or p_g_os, got {level!r}.")
    if offload and get_device() != "cpu":
        raise NotImplementedError(
            "(Unimplemented) group_sharded_parallel: states are not moved from a GPU to the memory of the host. Hint: "
            "offload=False, or train on the CPU, whose memory is the host's."
        )
    group = everybody("group_sharded_parallel") if group is None else group
    if level == "p_g_os":
        network = GroupShardedStage3(
            model, optimizer, group, sync_buffers, segment_size, buffer_max_size, exclude_layer or ()
        )
        optimizer = PartOptimizer(optimizer, [group], dp_group)
    else:
        network = DataParallel(model, comm_buffer_size=buffer_max_size * 4 / 2**20, group=group)
        if sync_buffers:
            keep_buffers_alike(network, model, group)
        optimizer = ShardedOptimizer(optimizer, group, keeps_grads=level == "os", copies=dp_group)
    return network, optimizer, agreeing(scaler, [group, dp_group])


def save_group_sharded_model(model, output, optimizer=None) -> None:
    """Writes `model.pdmodel` and, with an optimizer, `model.pdopt` with the states of all processes into a folder; all
    processes call it, rank 0 writes. To go on from there, load both before `group_sharded_parallel`."""
    import os

    from .. import save
    from .objects import all_gather_object
    from .parallel import get_rank
    from .stage3 import GroupShardedStage3

    if os.path.isfile(output):
        raise ValueError(f"(InvalidArgument) save_group_sharded_model: {output!r} is a file, a folder is needed.")
    weights, merged = model.state_dict(), None
    if optimizer is not None:
        states: list = []
        if isinstance(model, GroupShardedStage3):
            states.append(model.whole_states(optimizer.state_dict()))
        else:
            all_gather_object(states, optimizer.state_dict())
        # Each process has the states of its own parameters; what all have is the same in all.
        merged = {name: value for state in reversed(states) for name, value in state.items()}
    if get_rank() == 0:
        os.makedirs(output, exist_ok=True)
        save(weights, os.path.join(output, "model.pdmodel"))
        if merged is not None:
            save(merged, os.path.join(output, "model.pdopt"))
