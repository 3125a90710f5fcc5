"""A network of one process put on a mesh by a plan: which layers are cut how, which run on parts of a sequence, and how the
states of the optimizer are shared out."""

from __future__ import annotations

import re
import warnings

from ... import _core
from ...nn.layer import Layer
from .api import reshard, shard_layer, shard_tensor
from .mesh import get_mesh, set_mesh
from .optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from .placement import Replicate, Shard
from .tensor import OnMesh


def _along(mesh, name: str, placement, others=None) -> list:
    """A placement along one axis of the mesh; along the others it is what it was."""
    placements = list(others) if others is not None else [Replicate()] * mesh.ndim
    placements[mesh._axis(name)] = placement
    return placements


def _first(values, change):
    """The same values with the first one changed, which is the data where there are several."""
    if isinstance(values, (tuple, list)):
        return type(values)([change(values[0]), *values[1:]])
    return change(values)


def _on(mesh, tensor):
    """A tensor on the mesh: one that is not there yet is the same everywhere."""
    return tensor if isinstance(tensor, OnMesh) else shard_tensor(tensor, mesh, [])


class _Plan:
    """What is done with a layer."""

    def apply(self, layer: Layer, mesh, names: list[str]) -> None:
        """Changes a layer; `names` are the parameters meant, none for all."""
        raise NotImplementedError

    def _cut(self, layer, mesh, names, dim_of) -> None:
        for name in names:
            parameter = layer._parameters.get(name)
            if parameter is None or isinstance(parameter, OnMesh):
                continue
            setattr(layer, name, shard_tensor(parameter, mesh, _along(mesh, "mp", Shard(dim_of(parameter)))))


class ColWiseParallel(_Plan):
    """Cuts the weight of a `Linear` or `Embedding` by its columns, and the bias with it. The output is cut along its last axis,
    unless `gather_output`."""

    def __init__(self, gather_output: bool = False):
        self.gather_output = gather_output

    def apply(self, layer, mesh, names):
        self._cut(layer, mesh, names or ["weight", "bias"], lambda parameter: parameter.ndim - 1)
        if self.gather_output:

            def whole(tensor):
                return reshard(tensor, mesh, _along(mesh, "mp", Replicate(), tensor.placements))

            layer.register_forward_post_hook(lambda _, inputs, outputs: _first(outputs, whole))


class RowWiseParallel(_Plan):
    """Cuts the weight of a `Linear` or `Embedding` by its rows; the bias is whole. The input of a `Linear` is cut along its last
    axis: it comes so from a layer cut by columns, and is cut here if not `is_input_parallel`."""

    def __init__(self, is_input_parallel: bool = True):
        self.is_input_parallel = is_input_parallel

    def apply(self, layer, mesh, names):
        self._cut(layer, mesh, [n for n in names if n != "bias"] or ["weight"], lambda parameter: 0)
        if not self.is_input_parallel:

            def part(tensor):
                tensor = _on(mesh, tensor)
                return reshard(tensor, mesh, _along(mesh, "mp", Shard(len(tensor.shape) - 1), tensor.placements))

            layer.register_forward_pre_hook(lambda _, inputs: _first(inputs, part))


class PrepareLayerInput(_Plan):
    """Changes what goes into a layer: `fn(process_mesh=mesh)` gives a hook for `register_forward_pre_hook`."""

    def __init__(self, fn=None):
        self.fn = _callable(fn, type(self).__name__)

    def apply(self, layer, mesh, names):
        layer.register_forward_pre_hook(self.fn(process_mesh=mesh))


class PrepareLayerOutput(_Plan):
    """Changes what comes out of a layer: `fn(process_mesh=mesh)` gives a hook for `register_forward_post_hook`."""

    def __init__(self, fn=None):
        self.fn = _callable(fn, type(self).__name__)

    def apply(self, layer, mesh, names):
        layer.register_forward_post_hook(self.fn(process_mesh=mesh))


def _callable(fn, name: str):
    if not callable(fn):
        raise TypeError(f"(InvalidType) {name}: fn is a function of a mesh that gives a hook, got {fn!r}.")
    return fn


class _Sequence(_Plan):
    """Sequences cut along the axis of tensor parallelism. Data is `[batch, length, width]`; with `need_transpose` it is turned to
    `[length, batch, width]` where the cut begins, and back where it ends."""

    def __init__(self, need_transpose: bool = True):
        self.need_transpose = need_transpose

    def _enter(self, mesh):
        def cut(tensor):
            tensor = _on(mesh, tensor)
            tensor = tensor.transpose([1, 0, 2]) if self.need_transpose else tensor
            # The batch may be cut along another axis of the mesh; the sequence is the other one of the first two axes.
            dims = [p.get_dim() for p in tensor.placements if p.is_shard()]
            dim = 1 if 0 in dims else 0
            return reshard(tensor, mesh, _along(mesh, "mp", Shard(dim), tensor.placements))

        return lambda values: _first(values, cut)

    def _leave(self, mesh):
        def join(tensor):
            tensor = _on(mesh, tensor)
            tensor = reshard(tensor, mesh, _along(mesh, "mp", Replicate(), tensor.placements))
            return tensor.transpose([1, 0, 2]) if self.need_transpose else tensor

        return lambda values: _first(values, join)


class SequenceParallelBegin(_Sequence):
    """From the output of this layer on, sequences are cut."""

    def apply(self, layer, mesh, names):
        enter = self._enter(mesh)
        layer.register_forward_post_hook(lambda _, inputs, outputs: enter(outputs))


class SequenceParallelEnd(_Sequence):
    """Before this layer, cut sequences become whole."""

    def apply(self, layer, mesh, names):
        leave = self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: leave(inputs))


class SequenceParallelEnable(_Sequence):
    """This layer alone computes on cut sequences."""

    def __init__(self):
        super().__init__(True)

    def apply(self, layer, mesh, names):
        enter, leave = self._enter(mesh), self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: enter(inputs))
        layer.register_forward_post_hook(lambda _, inputs, outputs: leave(outputs))


class SequenceParallelDisable(_Sequence):
    """This layer alone computes on whole sequences, among others that compute on cut ones."""

    def apply(self, layer, mesh, names):
        enter, leave = self._enter(mesh), self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: leave(inputs))
        layer.register_forward_post_hook(lambda _, inputs, outputs: enter(outputs))


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


def _cut_layers(model, mesh, told: dict) -> None:
    if "mp" not in mesh.dim_names:
        raise ValueError(f"(InvalidArgument) parallelize: mp_config needs an axis named 'mp', the mesh is {mesh}.")
    plan = told.get("parallelize_plan") or {}
    for key, plans in plan.items():
        for each in plans if isinstance(plans, (list, tuple)) else [plans]:
            if not isinstance(each, _Plan):
                raise TypeError(f"(InvalidType) parallelize: the plan for {key!r} is {each!r}. Hint: ColWiseParallel(), …")
    unused = set(plan)
    for name, layer in list(model.named_sublayers()):
        for key in plan:
            if _plans_of(name, layer, {key: plan[key]}):
                unused.discard(key)
        for each, names in _plans_of(name, layer, plan):
            each.apply(layer, mesh, names)
    if unused:
        warnings.warn(f"parallelize: no layer is called {', '.join(sorted(unused))}", stacklevel=3)


def parallelize(model, optimizer=None, mesh=None, config=None):
    """Puts a network, and its optimizer, on a mesh (or on that of `set_mesh`) as `config` says.

    `mp_config={"parallelize_plan": {name: plan}}` cuts layers along the axis `mp`; a name is that of a layer, of a parameter
    (`lm_head.weight`), or a regular expression, and a plan is one of `ColWiseParallel` and the like, or a list of them.
    `dp_config={"sharding_level": 1}` shares states out along the axis `dp`: 0 nothing, 1 and 2 states, 3 parameters as well.
    """
    if config is None:
        warnings.warn("parallelize: without config nothing is done", stacklevel=2)
        return model, optimizer
    for name in ("pp_config", "cp_config"):
        if config.get(name) is not None:
            other = "fleet's PipelineLayer cuts a row of layers" if name == "pp_config" else "SequenceParallelBegin"
            raise NotImplementedError(f"(Unimplemented) parallelize: {name}. Hint: {other}.")
    if mesh is not None:
        set_mesh(mesh)
    mesh = get_mesh()
    if mesh is None:
        raise ValueError("(InvalidArgument) parallelize: there is no mesh. Hint: mesh=…, or dist.auto_parallel.set_mesh.")
    before = {p.name: p for p in model.parameters()}
    if (told := config.get("mp_config")) is not None:
        _cut_layers(model, mesh, told)
    shard_layer(model, mesh)
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
