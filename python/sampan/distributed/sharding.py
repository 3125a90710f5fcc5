"""An optimizer whose states are shared out: each process updates some parameters and gives them to the others."""

from __future__ import annotations

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


class ShardedOptimizer:
    """Steps of another optimizer, each parameter's in one process alone, where its state is. Everything else is the other
    optimizer's."""

    def __init__(self, optimizer, group=None, parts=None, keeps_grads=True):
        self.__dict__["_keeps_grads"] = keeps_grads
        self.__dict__["_inner_opt"] = optimizer
        self.__dict__["_group"] = (everybody("group_sharded_parallel") if group is None else group)._group
        # Processes that hold other parts of the same network: clipping by the norm of all counts theirs too.
        self.__dict__["_parts"] = parts._group if parts is not None and parts.nranks > 1 else None
        self.__dict__["_owner"] = owners(self._parameters, self._group.size())

    @property
    def _parameters(self) -> list:
        found = self._inner_opt._parameter_list
        return [p for part in found for p in (part["params"] if isinstance(part, dict) else [part])]

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def __setattr__(self, name, value):
        setattr(self._inner_opt, name, value)

    def _scaled_by_norm(self, clip, trained: list) -> None:
        """Clips by the norm of all gradients, also of those that only other processes have."""
        from .. import to_tensor

        whole = {False: 0.0, True: 0.0}
        for parameter in trained:
            if getattr(parameter, "need_clip", True):
                square = parameter.grad.astype("float64").square().sum().item()
                whole[bool(getattr(parameter, "is_distributed", False))] += square
        total = whole[False] + whole[True]
        if self._parts is not None:
            cut = to_tensor([whole[True]], dtype="float64")
            self._parts.all_reduce(cut, ReduceOp.SUM, True)
            total = whole[False] + cut.item()
        norm = total**0.5
        if norm > clip.clip_norm:
            for parameter in trained:
                if getattr(parameter, "need_clip", True):
                    parameter.grad.scale_(clip.clip_norm / norm)

    def step(self) -> None:
        """Updates the parameters that are this process's, and gives them to the others."""
        parameters, group = self._parameters, self._group
        trained = [p for p in parameters if p.grad is not None and not p.stop_gradient]
        stepped = set(map(id, trained))
        inner, clip = self._inner_opt, self._inner_opt._grad_clip
        by_norm = type(clip).__name__ == "ClipGradByGlobalNorm"
        if by_norm:
            self._scaled_by_norm(clip, trained)
            inner._grad_clip = None
        others = []
        for parameter, owner in zip(parameters, self._owner):
            if owner != group.rank and parameter.grad is not None:
                others.append((parameter, parameter.grad))
                parameter.clear_gradient(False)
        try:
            inner.step()
        finally:
            if by_norm:
                inner._grad_clip = clip
            for parameter, grad in others if self._keeps_grads else ():
                parameter.grad = grad
        if group.size() > 1:
            for rank in range(group.size()):
                theirs = [p for p, owner in zip(parameters, self._owner) if owner == rank and id(p) in stepped]
                if theirs:
                    group.broadcast_all(theirs, group.ranks[rank])

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`step`, as Paddle 1 called it."""
        self.step()
        return [], []


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
    """Shares the states of an optimizer out among processes. Level `os` keeps gradients as they are, `os_g` lets go of those
    that other processes need when a step begins. Gives the network, the optimizer and the scaler to train with."""
    from .parallel import DataParallel

    if level not in ("os", "os_g", "p_g_os"):
        raise ValueError(f"(InvalidArgument) group_sharded_parallel: the level is os, os_g or p_g_os, got {level!r}.")
    if level == "p_g_os" or offload or dp_group is not None:
        raise NotImplementedError(
            "(Unimplemented) group_sharded_parallel: parameters are not shared out yet, and nothing is moved to another "
            "memory. Hint: level='os_g'."
        )
    group = everybody("group_sharded_parallel") if group is None else group
    network = DataParallel(model, comm_buffer_size=buffer_max_size * 4 / 2**20, group=group)
    return network, ShardedOptimizer(optimizer, group, keeps_grads=level == "os"), scaler


def save_group_sharded_model(model, output, optimizer=None) -> None:
    """Writes `model.pdmodel` and, with an optimizer, `model.pdopt` with the states of all processes into a folder; rank 0
    writes."""
    import os

    from .. import save
    from .objects import all_gather_object
    from .parallel import get_rank

    states: list = []
    if optimizer is not None:
        all_gather_object(states, optimizer.state_dict())
    if get_rank() == 0:
        os.makedirs(output, exist_ok=True)
        save(model.state_dict(), os.path.join(output, "model.pdmodel"))
        if optimizer is not None:
            # Each process has the states of its own parameters; what all have is the same in all.
            save({name: value for state in reversed(states) for name, value in state.items()}, os.path.join(output, "model.pdopt"))
