"""Optimizers of distributed parameters: each process steps with its parts."""

from __future__ import annotations

from ... import _core
from ..communication import ReduceOp
from ..group import everybody
from ..parallel import get_rank
from ..sharding import owners, parameters_of
from .placement import Replicate, Shard
from .tensor import OnMesh, is_elsewhere, moved

_NEED_THE_WHOLE = ("Lamb", "LBFGS")


class _Stage:
    def __init__(self, sharding_mesh_dim=None, mesh=None):
        if mesh is None and not isinstance(sharding_mesh_dim, (str, int, type(None))):
            sharding_mesh_dim, mesh = None, sharding_mesh_dim  # older programs give the mesh first
        self.mesh_dim, self.mesh = sharding_mesh_dim, mesh


class ShardingStage1(_Stage):
    """The states of the optimizer are shared out along an axis of the mesh."""


class ShardingStage2(_Stage):
    """Gradients are let go of as well, after the step of whoever needs them."""


class ShardingStage3(_Stage):
    """Parameters are cut along an axis of the mesh as well, and gathered where they are used."""


def _by_norm(clip) -> bool:
    return type(clip).__name__ == "ClipGradByGlobalNorm"


class ShardOptimizer:
    """An optimizer of distributed parameters. Clipping by the norm of all counts all parts."""

    def __init__(self, optimizer, shard_fn=None, gradient_accumulation_steps=1):
        self.__dict__.update(_inner_opt=optimizer, _shard_fn=shard_fn, _owner=None, _engine=None, _ranks=None)
        kind = type(optimizer).__name__
        if not hasattr(optimizer, "_step_here"):
            raise TypeError(f"(InvalidType) shard_optimizer: an optimizer of sampan.optimizer is needed, got {kind}.")
        if kind in _NEED_THE_WHOLE and any(isinstance(p, OnMesh) for p in self._parameters):
            raise ValueError(
                f"(InvalidArgument) shard_optimizer: {kind} looks at whole parameters, which no process has. Hint: Adam, AdamW, "
                "Momentum, SGD, …"
            )
        if isinstance(shard_fn, _Stage):
            self._share(shard_fn)
        elif shard_fn is not None:
            raise TypeError(
                "(InvalidType) shard_optimizer: shard_fn is ShardingStage1, ShardingStage2 or ShardingStage3; states are cut "
                f"as their parameters are. Got {type(shard_fn).__name__}."
            )

    @property
    def _parameters(self) -> list:
        return parameters_of(self._inner_opt)

    def _share(self, stage: _Stage) -> None:
        placed = [p for p in self._parameters if isinstance(p, OnMesh) and not is_elsewhere(p)]
        if not placed and stage.mesh is None:
            raise ValueError(
                "(InvalidArgument) shard_optimizer: no parameter lies on a mesh. Hint: dist.shard_layer first."
            )
        meshes = {p.process_mesh for p in placed} or {stage.mesh}
        # The stages of a pipeline have meshes of their own.
        mesh = stage.mesh if stage.mesh in meshes else next(iter(meshes))
        if len(meshes) > 1:
            raise NotImplementedError(
                "(Unimplemented) shard_optimizer: states are shared out on one mesh in each process, the parameters lie on "
                f"{len(meshes)}."
            )
        axis = 0 if stage.mesh_dim is None else mesh._axis(stage.mesh_dim)
        if isinstance(stage, ShardingStage3):
            for p in placed:
                if (
                    not p.stop_gradient
                    and p.ndim
                    and p.placements[axis].is_replicated()
                    and p.shape[0] >= mesh.shape[axis]
                ):
                    target = [*p.placements]
                    target[axis] = Shard(0)
                    cut = _core._plain(moved(p, target)).detach()
                    cut.stop_gradient, cut.name = p.stop_gradient, p.name
                    p._replace(cut)
                    p._place(mesh, target, p.shape)
            return
        group = mesh.get_group(axis)
        if group is None:
            return  # this process is none of the mesh
        whole = [
            p
            for p in self._parameters
            if not isinstance(p, OnMesh) or not is_elsewhere(p) and p.placements[axis].is_replicated()
        ]
        found = dict(zip(map(id, whole), owners([_core._plain(p) for p in whole], group.nranks)))
        self.__dict__.update(_owner=found, _engine=group._group, _ranks=group.ranks)

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def __setattr__(self, name, value):
        setattr(self._inner_opt, name, value)

    def _norm(self, trained: list) -> float:
        from ... import to_tensor

        meshes = {p.process_mesh for p in self._parameters if isinstance(p, OnMesh)}
        sums: dict[tuple, float] = {}
        for p in trained:
            cut = tuple(i for i, s in enumerate(p.placements) if s.is_shard()) if isinstance(p, OnMesh) else ()
            # On several meshes each has its own sum, which only its processes know.
            key = (p.process_mesh, cut) if cut or isinstance(p, OnMesh) and len(meshes) > 1 else (None, ())
            grad = _core._plain(p).grad.astype("float64")
            sums[key] = sums.get(key, 0.0) + grad.square().sum().item()
        total = 0.0
        for (mesh, cut), value in sums.items():
            value = to_tensor([value], dtype="float64")
            for axis in cut:
                mesh.get_group(axis)._group.all_reduce(value, ReduceOp.SUM, True)
            # The first process of a mesh speaks for it.
            speaks = len(meshes) < 2 or (get_rank() == 0 if mesh is None else mesh.process_ids[0] == get_rank())
            total += value.item() if speaks else 0.0
        if len(meshes) > 1:
            total = to_tensor([total], dtype="float64")
            everybody("step")._group.all_reduce(total, ReduceOp.SUM, True)
            total = total.item()
        return total**0.5

    def step(self) -> None:
        """Updates this process's parts."""
        inner, clip = self._inner_opt, self._inner_opt._grad_clip
        trained = []
        for p in self._parameters:
            if is_elsewhere(p):
                p.clear_gradient(False)
            elif _core._plain(p).grad is not None and not p.stop_gradient:
                trained.append(p)
        self._clip(clip, trained)
        others = []
        if self._owner:
            for p in trained:
                if self._owner.get(id(p), self._engine.rank) != self._engine.rank:
                    others.append((p, _core._plain(p).grad))
                    p.clear_gradient(False)
        try:
            inner._grad_clip = None if _by_norm(clip) else clip
            inner._step_here()
        finally:
            inner._grad_clip = clip
            if not isinstance(self._shard_fn, ShardingStage2):
                for p, grad in others:
                    _core._plain(p).grad = grad
        if self._owner and self._engine.size() > 1:
            for rank in range(self._engine.size()):
                theirs = [_core._plain(p) for p in trained if self._owner.get(id(p)) == rank]
                if theirs:
                    self._engine.broadcast_all(theirs, self._ranks[rank])

    def _clip(self, clip, trained: list) -> None:
        """Clips by the norm of all gradients, of which this process has parts."""
        if type(clip).__name__ == "ClipGradByNorm" and any(isinstance(p, OnMesh) for p in trained):
            raise ValueError(
                "(InvalidArgument) ClipGradByNorm looks at whole gradients, which no process has. Hint: ClipGradByGlobalNorm."
            )
        if _by_norm(clip):
            clipped = [p for p in trained if getattr(p, "need_clip", True)]
            norm = self._norm(clipped)
            if norm > clip.clip_norm:
                for p in clipped:
                    _core._plain(p).grad.scale_(clip.clip_norm / norm)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`step`, as Paddle 1 called it."""
        self.step()
        return [], []

    def state_dict(self):
        """States of this process's parts, as distributed tensors where they are cut."""
        from .tensor import wrap

        found, placed = {}, [p for p in self._parameters if isinstance(p, OnMesh)]
        for name, value in self._inner_opt.state_dict().items():
            mine = [p for p in placed if name.startswith(p.name + "_")]
            own = max(mine, key=lambda p: len(p.name)) if mine else None
            if own is not None and isinstance(value, _core.Tensor):
                same = value.shape == own._local_shape and "_pow_acc" not in name
                placements = own.placements if same else [Replicate()] * own.process_mesh.ndim
                value = wrap(value, own.process_mesh, placements, own.shape if same else value.shape)
            found[name] = value
        return found

    def set_state_dict(self, state_dict):
        """Takes states over: of this process's parts, or whole ones that are cut here."""
        given = {name: _core._plain(v) if isinstance(v, OnMesh) else v for name, v in state_dict.items()}
        return self._inner_opt.set_state_dict(given)


def step_of(optimizer) -> bool:
    """Makes the step of an optimizer some of whose parameters are cut, or on other meshes; false if there are none."""
    placed = [p for p in parameters_of(optimizer) if isinstance(p, OnMesh)]
    cut = any(is_elsewhere(p) or any(s.is_shard() for s in p.placements) for p in placed)
    if cut:
        ShardOptimizer(optimizer).step()
    return cut


def shard_optimizer(optimizer, shard_fn=None, gradient_accumulation_steps=1):
    """An optimizer of distributed parameters, whose states are cut as their parameters are, or shared out as `shard_fn`
    (`ShardingStage1`, `2`, `3`) says."""
    return ShardOptimizer(optimizer, shard_fn, gradient_accumulation_steps)


def shard_scaler(scaler):
    """A scaler that skips a step where any process found a gradient that is not finite."""
    from ..group import everybody
    from ..scaler import agreeing

    return agreeing(scaler, [everybody("shard_scaler")])
