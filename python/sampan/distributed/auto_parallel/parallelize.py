"""A network of one process put on a mesh by a plan: which layers are cut how, which run on parts of a sequence, and how the
states of the optimizer are shared out."""

from __future__ import annotations

import re
import warnings

from ... import _core
from .api import Ties, put_layer, shard_dataloader
from .mesh import ProcessMesh, get_mesh, set_mesh
from .optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from .plans import Plan
from .stages import Stages


def _plans_of(name: str, layer, told: dict) -> list:
    """The plans for a layer, each with the parameters that it is for."""
    found = []
    for key, plans in told.items():
        names, (head, _, last) = [], key.rpartition(".")
        if head and isinstance(layer._parameters.get(last), _core.Tensor):
            key, names = head, [last]
        if key == name or re.fullmatch(key, name):
            found += [(plan, names) for plan in (plans if isinstance(plans, (list, tuple)) else [plans])]
    return found


def _need_axis(mesh, axis: str, config: str) -> None:
    if axis not in mesh.dim_names:
        raise ValueError(f"(InvalidArgument) parallelize: {config} needs an axis named {axis!r}, the mesh is {mesh}.")


def _where(stages, mesh):
    """The mesh of a layer, by its name."""
    return (lambda name: mesh) if stages is None else (lambda name: stages.mesh_of(name, mesh))


def _cut_layers(model, where, told: dict) -> None:
    plan = told.get("parallelize_plan") or {}
    for key, plans in plan.items():
        for each in plans if isinstance(plans, (list, tuple)) else [plans]:
            if not isinstance(each, Plan):
                raise TypeError(
                    f"(InvalidType) parallelize: the plan for {key!r} is {each!r}. Hint: ColWiseParallel(), …"
                )
    unused = set(plan)
    for name, layer in list(model.named_sublayers()):
        for key in plan:
            if _plans_of(name, layer, {key: plan[key]}):
                unused.discard(key)
        for each, names in _plans_of(name, layer, plan):
            each.apply(layer, where(name), names)
    if unused:
        warnings.warn(f"parallelize: no layer is called {', '.join(sorted(unused))}", stacklevel=3)


def parallelize(model, optimizer=None, mesh=None, config=None):
    """Puts a network, and its optimizer, on a mesh (or on that of `set_mesh`) as `config` says.

    `mp_config={"parallelize_plan": {name: plan}}` cuts layers along the axis `mp`; a name is that of a layer, of a parameter
    (`lm_head.weight`), or a regular expression, and a plan is one of `ColWiseParallel` and the like, or a list of them.
    `pp_config={"split_spec": name}` cuts a row of layers (`name.0`, `name.1`, …) into stages along the axis `pp`; a dict of
    `SplitPoint` says where to cut instead, and the parameters of layers named by `global_spec` are in all stages.
    `cp_config` has a plan of `PrepareContextParallel` and `ContextParallel`, which cut sequences along the axis `sep`.
    `dp_config={"sharding_level": 1}` shares states out along the axis `dp`: 0 nothing, 1 and 2 states, 3 parameters as well.
    """
    if config is None:
        warnings.warn("parallelize: without config nothing is done", stacklevel=2)
        return model, optimizer
    if mesh is not None:
        set_mesh(mesh)
    mesh = get_mesh()
    if mesh is None:
        raise ValueError(
            "(InvalidArgument) parallelize: there is no mesh. Hint: mesh=…, or dist.auto_parallel.set_mesh."
        )
    before = {p.name: p for p in model.parameters()}
    stages = None
    if (told := config.get("pp_config")) is not None:
        _need_axis(mesh, "pp", "pp_config")
        stages = model.__dict__["_stages"] = Stages(model, mesh, told)
    where, ties = _where(stages, mesh), Ties(model)
    for name, axis in (("mp_config", "mp"), ("cp_config", "sep")):
        if (told := config.get(name)) is not None:
            _need_axis(mesh, axis, name)
            _cut_layers(model, where, told)
    ties.tie(where)
    for name, layer in list(model.named_sublayers(include_self=True)):
        put_layer(layer, where(name))
    ties.tie(where)
    if stages is not None:
        stages.connect(model)
    if optimizer is None:
        return model, None
    optimizer._train_instead({id(before[p.name]): p for p in model.parameters() if p.name in before})
    told = config.get("dp_config") or {}
    level = int(told.get("sharding_level") or 0)
    if level not in (0, 1, 2, 3):
        raise ValueError(f"(InvalidArgument) parallelize: sharding_level is 0, 1, 2 or 3, got {level}.")
    stage = (None, ShardingStage1, ShardingStage2, ShardingStage3)[level]
    axis = told.get("sharding_mesh_dim", "dp")
    return model, shard_optimizer(optimizer, stage and stage(axis, mesh))


def to_distributed(model, optimizer, dataloader, device_num: int, node_num: int = 1, config=None):
    """A network, its optimizer and its data for `device_num` processes on each of `node_num` machines, without a plan: each
    process gets a share of every batch and of the optimizer's states. Gives all three for the same loop."""
    from ..parallel import get_world_size

    count = device_num * (node_num or 1)
    if count != get_world_size():
        raise ValueError(
            f"(InvalidArgument) to_distributed: {device_num} devices on {node_num} machines, but there are {get_world_size()} "
            "processes."
        )
    mesh = ProcessMesh(list(range(count)), dim_names=["dp"])
    model, optimizer = parallelize(model, optimizer, mesh, {"dp_config": {"sharding_level": 1}})
    return model, optimizer, shard_dataloader(dataloader, mesh, shard_dims="dp")
