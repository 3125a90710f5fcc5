"""Ops on distributed tensors: each process computes with its parts."""

from __future__ import annotations

import math

from ... import _core
from .moves import Copy
from .placement import Replicate, Shard
from .rules import RULES
from .tensor import OnMesh, moved, on, wrap

_NOT_GIVEN = object()


def _flat(value) -> list:
    if isinstance(value, _core.Tensor):
        return [value]
    return [t for part in value for t in _flat(part)] if isinstance(value, (list, tuple)) else []


def _mapped(value, change):
    """The same with other tensors."""
    if isinstance(value, _core.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(part, change) for part in value))
    return type(value)(_mapped(part, change) for part in value) if type(value) in (list, tuple) else value


def mesh_of(values):
    """The mesh of the distributed tensors among some arguments; None if there are none."""
    found = [t.process_mesh for t in _flat(list(values)) if isinstance(t, OnMesh)]
    return found[0] if found else None


def _bound(op, args, kwargs) -> dict:
    """Arguments by the names of the op's parameters."""
    names, told = op._params, {}
    spread = op._spread
    if spread is not None and len(args) > spread + 1 and all(isinstance(a, int) for a in args[spread:]):
        args = (*args[:spread], list(args[spread:]))
    if len(args) > len(names):
        raise TypeError(f"(InvalidType) {op.__name__}: takes at most {len(names)} arguments, got {len(args)}.")
    told.update(zip(names, args))
    for key, value in kwargs.items():
        at = op._position(key)
        if at is not None:
            told[names[at]] = value
        elif key not in ("name", "out"):
            raise TypeError(f"(InvalidType) {op.__name__}: has no argument `{key}`.")
    return told


def handle(op, args, kwargs):
    """Calls an op, one of whose arguments is a distributed tensor."""
    told = _bound(op, args, kwargs)
    name, mesh = op._op, mesh_of(told.values())
    plain = _core.op(name)
    if op._inplace:
        target = next(iter(told.values()))
        if not isinstance(target, OnMesh):
            raise TypeError(
                f"(InvalidType) {op.__name__}: a plain tensor does not take the values of a distributed one."
            )
        target._replace(_core._plain(moved(handle(plain, (), told), target.placements)))
        return target
    if name in SPECIAL:
        return SPECIAL[name](told, mesh)
    return _by_rule(plain, told, mesh)


def _by_rule(op, told: dict, mesh):
    tensors = [on(t, mesh) for t in _flat(list(told.values()))]
    shapes, rule = [t.shape for t in tensors], RULES.get(op._op)
    wanted, result, extents = [[] for _ in tensors], [], {}
    others = {key: value for key, value in told.items() if not _flat(value)}
    for axis in range(mesh.ndim):
        states = [t.placements[axis] for t in tensors]
        answer = rule and not all(s.is_replicated() for s in states) and rule(shapes, states, others, mesh.shape[axis])
        for i, placements in enumerate(wanted):
            placements.append(answer.wanted[i] if answer else Replicate())
        result.append(answer.result if answer else Replicate())
        if answer and answer.result.is_shard():
            extents[answer.result.get_dim()] = answer.extent
    parts = iter([_ready(t, want, result, mesh) for t, want in zip(tensors, wanted)])
    found = op(**{key: _mapped(value, lambda _: next(parts)) for key, value in told.items()})
    if "_divided" in others:
        found = found / others["_divided"]

    def placed(tensor):
        shape = [extents.get(dim, extent) for dim, extent in enumerate(tensor.shape)]
        return wrap(tensor, mesh, result, shape)

    return _mapped(found, placed)


def _ready(tensor, wanted: list, result: list, mesh):
    """This process's part of an argument. The gradients of a part of the computation are added where all have the same
    argument."""
    tensor = moved(tensor, wanted)
    part = _core._plain(tensor)
    if mesh.coordinates() is None:
        return part
    for axis, (own, made) in enumerate(zip(wanted, result)):
        apart = own.is_replicated() and not made.is_replicated()
        if apart and not part.stop_gradient and mesh.shape[axis] > 1:
            part = Copy.apply(part, mesh.get_group(axis)._group)
    return part


# ---- calls that are more than parts side by side


def _reshaped(x, shape: list, mesh):
    """A view of a distributed tensor with another shape of the whole."""
    x, old = on(x, mesh), on(x, mesh).shape
    count = math.prod(old)
    shape = [old[i] if n == 0 and i < len(old) else n for i, n in enumerate(shape)]
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = count // rest if rest else 0
    if math.prod(shape) != count:
        raise ValueError(f"(InvalidArgument) reshape: {old} has {count} elements, {shape} another number.")
    keep, result, local = [], [], list(shape)
    for axis, state in enumerate(x.placements):
        parts, new = mesh.shape[axis], state
        if state.is_shard():
            dim = state.get_dim()
            alone = sum(p.is_shard(dim) for p in x.placements) == 1
            fits = [
                j for j in range(len(shape)) if math.prod(shape[:j]) == math.prod(old[:dim]) and shape[j] % parts == 0
            ]
            new = Shard(fits[0]) if fits and alone and old[dim] % parts == 0 and shape[fits[0]] else Replicate()
            if new.is_shard() and local[fits[0]] != shape[fits[0]]:
                new = Replicate()
        keep.append(state if new.is_shard() or not state.is_shard() else Replicate())
        if new.is_shard():
            local[new.get_dim()] //= parts
        result.append(new)
    part = _core._plain(moved(x, keep))
    return wrap(_core.op("reshape")(part, local), mesh, result, shape)


def _flatten(told, mesh):
    shape = on(told["x"], mesh).shape
    rank = len(shape) or 1
    start, stop = told.get("start_axis", 0) % rank, told.get("stop_axis", -1) % rank
    return _reshaped(told["x"], [*shape[:start], math.prod(shape[start : stop + 1]), *shape[stop + 1 :]], mesh)


def _squeeze(told, mesh):
    shape, axis = on(told["x"], mesh).shape, told.get("axis")
    axes = (
        range(len(shape))
        if axis is None
        else [a % len(shape) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    )
    return _reshaped(told["x"], [n for i, n in enumerate(shape) if not (i in axes and n == 1)], mesh)


def _unsqueeze(told, mesh):
    shape, axis = list(on(told["x"], mesh).shape), told["axis"]
    for at in axis if isinstance(axis, (list, tuple)) else [axis]:
        shape.insert(at % (len(shape) + 1), 1)
    return _reshaped(told["x"], shape, mesh)


def _linear(told, mesh):
    product = handle(_core.op("matmul"), (told["x"], told["weight"]), {})
    return product if told.get("bias") is None else product + told["bias"]


def _dropout(told, mesh):
    """The mask of the whole is drawn, the same in every process, so that results do not depend on the placement."""
    from ... import ones

    x = on(told["x"], mesh)
    mask = _core.op("dropout")(**{**told, "x": ones(x.shape, dtype=x.dtype)})
    return handle(_core.op("multiply"), (x, mask), {})


def _loss(name: str):
    """Losses of single elements or samples, and then their sum or mean."""

    def call(told, mesh):
        each = _by_rule(_core.op(name), {**told, "reduction": "none"}, mesh)
        how = told.get("reduction", "mean")
        return each if how == "none" else _core.op(how)(each)

    return call


def _cross_entropy(told, mesh):
    how = told.get("reduction", "mean")
    x = on(told["input"], mesh)
    hard = not told.get("soft_label") and not told.get("label_smoothing")
    along = told.get("axis", -1) % x.ndim
    cut = any(p.is_shard() and p.get_dim() != along for p in x.placements)
    if told.get("weight") is not None or not hard or not cut or along != x.ndim - 1:
        return _by_rule(_core.op("cross_entropy"), told, mesh)
    label = on(told["label"], mesh)
    squeezed = label.ndim == x.ndim
    keep = [p if p.is_shard() and p.get_dim() != along else Replicate() for p in x.placements]
    parts = [_core._plain(moved(t, keep)) for t in (x, label)]
    each = _core.op("cross_entropy")(
        *parts, **{k: v for k, v in told.items() if k not in ("input", "label", "reduction")}, reduction="none"
    )
    shape = label.shape if squeezed else x.shape[:-1]
    each = wrap(each, mesh, keep, shape)
    if how != "mean":
        return each if how == "none" else each.sum()
    counted = (label != told.get("ignore_index", -100)).astype(each.dtype).sum()
    return each.sum() / counted


def _getitem(x, index):
    """Rows, columns and elements. Axes that are taken whole may stay cut."""
    mesh, given = x.process_mesh, index if isinstance(index, tuple) else (index,)
    simple = all(isinstance(i, (int, slice)) and not isinstance(i, bool) for i in given)
    result, gone = [], [i for i, at in enumerate(given) if isinstance(at, int)]
    for state in x.placements:
        if state.is_shard():
            dim = state.get_dim()
            whole = simple and (dim >= len(given) or given[dim] == slice(None))
            result.append(Shard(dim - sum(i < dim for i in gone)) if whole else Replicate())
        else:
            result.append(state if simple and state.is_partial() else Replicate())
    keep = [s if r.is_shard() or s == r else Replicate() for s, r in zip(x.placements, result)]
    part = _core._plain(moved(x, keep))
    index = tuple(_core._plain(moved(i, [Replicate()] * mesh.ndim)) if isinstance(i, OnMesh) else i for i in given)
    found = part[index if isinstance(index, tuple) and len(index) != 1 else index[0]]
    shape = list(found.shape)
    for state, old in zip(result, keep):
        if state.is_shard():
            shape[state.get_dim()] = x.shape[old.get_dim()]
    return wrap(found, mesh, result, shape)


SPECIAL = {
    "reshape": lambda told, mesh: _reshaped(told["x"], list(told["shape"]), mesh),
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "linear": _linear,
    "dropout": _dropout,
    "cross_entropy": _cross_entropy,
    **{name: _loss(name) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")},
}
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"):
    RULES[_name] = RULES["maximum"]

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lt": "less_than", "le": "less_equal", "gt": "greater_than", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


def _operator(name: str, swapped: bool):
    op = _core.op(name)

    def call(self, other):
        if not isinstance(other, (_core.Tensor, int, float, bool, complex)) and not hasattr(other, "__array__"):
            return NotImplemented
        if not isinstance(other, _core.Tensor) and hasattr(other, "__array__"):
            other = _core.to_tensor_py(other)
        if swapped and not isinstance(other, _core.Tensor):
            other = _core.op("full_like")(_core._plain(self), other)
            other = wrap(
                other, self.process_mesh, [Replicate() if p.is_partial() else p for p in self.placements], self.shape
            )
        return handle(op, (other, self) if swapped else (self, other), {})

    return call


for _python, _name in _OPERATORS.items():
    setattr(OnMesh, f"__{_python}__", _operator(_name, False))
    if _python not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(OnMesh, f"__r{_python}__", _operator(_name, True))
OnMesh.__neg__ = lambda self: handle(_core.op("scale"), (self, -1.0), {})
OnMesh.__abs__ = lambda self: handle(_core.op("abs"), (self,), {})
OnMesh.__getitem__ = _getitem
OnMesh.astype = lambda self, dtype: handle(_core.op("cast"), (self, dtype), {})
