"""What rewritten functions call: plain Python, unless a tensor without values decides."""

from __future__ import annotations

import builtins
import types

from .. import _core
from . import specs


class _Unknown:
    """A name that has no value yet."""

    def __repr__(self):
        return "<a name without a value>"

    def __getattr__(self, name):
        raise NameError("(NotFound) a name is read that only the other branch gives a value.")


UNKNOWN = _Unknown()
_NUMBERS = (bool, int, float)


def is_traced(value) -> bool:
    """Is it a tensor whose values are not known?"""
    return isinstance(value, _core.Tensor) and _core._is_traced(value)


def known(read):
    """The value of a name, or a mark if it has none."""
    try:
        return read()
    except NameError:
        return UNKNOWN


def plain(value, what: str):
    """The condition of a statement that can only be a plain one."""
    if is_traced(value):
        raise RuntimeError(
            f"(PreconditionNotMet) trace: this `{what}` on a tensor's value cannot be part of a graph ({specs.source()}). "
            "Hint: return, break and continue must end a branch; try a result that is chosen by where() or cond()."
        )
    return value


def _leaf(value) -> bool:
    return isinstance(value, (_core.Tensor, *_NUMBERS)) or value is None or value is UNKNOWN


def _kind(value):
    return (value.dtype, value.shape) if isinstance(value, _core.Tensor) else None


def _as_tensor(value, kind):
    """A number as a tensor like that of the other branch."""
    from .. import full

    if isinstance(value, _core.Tensor):
        return value if kind is None or value.dtype == kind[0] else value.astype(kind[0])
    name = {bool: "bool", int: "int64", float: "float32"}[type(value)]
    dtype, shape = kind or (name, [])
    return full(shape, value, dtype)


def _lists(function, depth: int = 0):
    """Lists and dicts around a function: their names, the objects, and what is in them."""
    if not isinstance(function, types.FunctionType) or depth > 3:
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell == types.CellType():
            continue
        value = cell.cell_contents
        if isinstance(value, (list, dict)):
            yield name, value, _parts(value)
        yield from _lists(value, depth + 1)


def _parts(value) -> list:
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _aside(function, what: str):
    """What a function gives that may be left out, or done again, when the graph runs; a list would not follow that."""
    lists = list(_lists(function))
    result = _core._aside(function)
    for name, value, before in lists:
        now = _parts(value)
        if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
            raise RuntimeError(
                f"(PreconditionNotMet) trace: `{name}` is no tensor and changes in {what} on a tensor's value "
                f"({specs.source()}). Hint: collect in a tensor of a fixed shape."
            )
    return result


def select(pred, yes, no, names=()):
    """What one of two functions gives, by a tensor without values: a tree of tensors and plain values."""
    trees, leaves = [], []
    for function in (yes, no):
        found: list = []
        trees.append(specs.flatten(_aside(function, "a branch"), found, _leaf))
        leaves.append(found)
    if repr(_shape(trees[0])) != repr(_shape(trees[1])):
        raise RuntimeError(
            f"(PreconditionNotMet) trace: the branches of a condition on a tensor's value give different things "
            f"({specs.source()})."
        )
    wanted = []
    for at, (a, b) in enumerate(zip(*leaves)):
        name = f" `{names[at]}`" if at < len(names) and len(names) == len(leaves[0]) else ""
        number = isinstance(a, (_core.Tensor, *_NUMBERS)) and isinstance(b, (_core.Tensor, *_NUMBERS))
        tensor = isinstance(a, _core.Tensor) or isinstance(b, _core.Tensor)
        if number and (tensor or type(a) is not type(b) or a != b):
            kind = _kind(a) or _kind(b)
            if isinstance(a, float) != isinstance(b, float) and not tensor:
                kind = ("float32", [])
            if isinstance(a, _core.Tensor) and isinstance(b, _core.Tensor):
                kind = None
            wanted.append((at, kind))
        elif a is not b and a != b and (a is None or b is None):
            raise RuntimeError(
                f"(PreconditionNotMet) trace:{name} is None in one branch of a condition on a tensor's value and not in "
                f"the other ({specs.source()})."
            )

    def run(function):
        def called(_):
            found: list = []
            specs.flatten(function(), found, _leaf)
            return [_as_tensor(found[at], kind) for at, kind in wanted]

        return called

    results = list(leaves[0])
    # A name that one branch gives has no value after the other.
    for at, (a, b) in enumerate(zip(*leaves)):
        if a is UNKNOWN or b is UNKNOWN:
            results[at] = UNKNOWN
    if wanted:
        for (at, _), tensor in zip(wanted, _core._cond(pred, run(yes), run(no))):
            results[at] = tensor
    return specs.unflatten(trees[0], results)


def _shape(tree):
    """A tree with all leaves alike, to compare."""
    if isinstance(tree, specs._Leaf):
        return "·"
    if isinstance(tree, dict):
        return {k: _shape(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_shape(v) for v in tree]
    return tree


def if_(test, yes, no, values, names):
    """An `if`: the values of names after it."""
    if is_traced(test):
        return select(test, lambda: yes(*values), lambda: no(*values), names)
    return yes(*values) if test else no(*values)


def returns(test, yes, no, values):
    """An `if` both of whose branches return."""
    if is_traced(test):
        return select(test, lambda: yes(*values), lambda: no(*values))
    return yes(*values) if test else no(*values)


def _loop(test, step, values, names):
    """A loop whose end a tensor decides: what it changes are tensors, or stays as it is."""
    state = list(values)
    after = _aside(lambda: step(*state), "a loop")
    places = []
    for at, (before, now) in enumerate(zip(state, after)):
        if before is UNKNOWN:
            # It lives in one step.
            continue
        if isinstance(before, _core.Tensor) or isinstance(before, _NUMBERS) and (before is not now):
            kind = _kind(now) if not isinstance(before, _core.Tensor) else None
            places.append(at)
            state[at] = _as_tensor(before, kind)
        elif before is not now and not isinstance(before, types.FunctionType):
            raise RuntimeError(
                f"(PreconditionNotMet) trace: `{names[at]}` is no tensor and changes in a loop on a tensor's value "
                f"({specs.source()}). Hint: what such a loop changes are tensors and numbers."
            )

    def with_places(function):
        def called(tensors):
            full = list(state)
            for at, tensor in zip(places, tensors):
                full[at] = tensor
            return function(*full)

        return called

    def body(tensors):
        found = with_places(step)(tensors)
        return [_as_tensor(found[at], _kind(state[at])) for at in places]

    def asked(tensors):
        found = with_places(test)(tensors)
        return [found if isinstance(found, _core.Tensor) else _as_tensor(bool(found), None)]

    for at, tensor in zip(places, _core._while([state[at] for at in places], asked, body)):
        state[at] = tensor
    return tuple(state)


def while_(test, step, values, names):
    """A `while`: the values of names after it."""
    while True:
        goes_on = _core._aside(lambda: test(*values)) if _core._is_tracing() else test(*values)
        if is_traced(goes_on):
            return _loop(test, step, values, names)
        if not test(*values):
            return values
        values = step(*values)


class _Range:
    """A range whose bounds are tensors without values."""

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step


def items(value):
    """What a `for` that stays as it is goes over."""
    return iter(plain_range(value))


def plain_range(value):
    if isinstance(value, _Range):
        plain(value.stop if is_traced(value.stop) else value.start, "for")
    return value


def for_(sequence, step, values, names, breaks):
    """A `for`: the values of names after it, the first of which says that it was left."""
    if isinstance(sequence, _Range):
        ascending = sequence.step > 0

        def test(at, *rest):
            inside = at < sequence.stop if ascending else at > sequence.stop
            return and_(lambda: not_(rest[0]), lambda: inside) if breaks else inside

        def body(at, *rest):
            return (at + sequence.step, *step(at, *rest))

        return _loop(test, body, (sequence.start, *values), ("the number of the step", *names))[1:]
    if is_traced(sequence):
        sequence = [sequence[i] for i in builtins.range(len(sequence))]
    for item in sequence:
        if breaks and is_traced(values[0]):
            ended, item_now = values[0], item
            values = select(ended, lambda: values, lambda: step(item_now, *values), names)
            continue
        values = step(item, *values)
        if breaks and not is_traced(values[0]) and values[0]:
            break
    return values


def and_(*parts):
    """`a and b …`."""
    value = True
    for at, part in enumerate(parts):
        value = part()
        if is_traced(value):
            return value if at + 1 == len(parts) else _joined("logical_and", value, parts[at + 1 :], and_)
        if not value:
            return value
    return value


def or_(*parts):
    """`a or b …`."""
    value = False
    for at, part in enumerate(parts):
        value = part()
        if is_traced(value):
            return value if at + 1 == len(parts) else _joined("logical_or", value, parts[at + 1 :], or_)
        if value:
            return value
    return value


def _joined(name, value, parts, again):
    from .. import full, logical_and, logical_or

    other = again(*parts)
    if not isinstance(other, _core.Tensor):
        other = full([], bool(other), "bool")
    return {"logical_and": logical_and, "logical_or": logical_or}[name](value.astype("bool"), other.astype("bool"))


def not_(value):
    """`not a`."""
    return value.astype("bool").logical_not() if is_traced(value) else not value


def choose(test, yes, no):
    """`a if test else b`."""
    if is_traced(test):
        return select(test, yes, no)
    return yes() if test else no()


def assert_(test, message):
    """`assert`: what is not known yet is not checked, here or in the file."""
    if not _core._is_tracing():
        value = test()
        if not value:
            raise AssertionError(message())
        return
    value = _core._aside(test)
    if not is_traced(value) and not value:
        raise AssertionError(message())


def _print(*args, **kwargs):
    if not any(map(is_traced, args)):
        builtins.print(*args, **kwargs)


def _range(*args):
    if not any(map(is_traced, args)):
        return builtins.range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    if is_traced(step) or int(step) == 0:
        raise RuntimeError(f"(PreconditionNotMet) trace: the step of a range must be a number ({specs.source()}).")
    start = start if isinstance(start, _core.Tensor) else int(start)
    return _Range(start if isinstance(start, int) else start.reshape([]), _scalar(stop), int(step))


def _scalar(value):
    return value.reshape([]) if isinstance(value, _core.Tensor) else int(value)


def _number(kind):
    def convert(value=kind(), *args):
        if is_traced(value):
            return value.astype({int: "int64", float: "float32", bool: "bool"}[kind]).reshape([])
        return kind(value, *args)

    return convert


_STAND_INS = {print: _print, range: _range, int: _number(int), float: _number(float), bool: _number(bool)}


def called(function):
    """What is called in a function's place: functions of the program are rewritten too."""
    from .rewrite import rewritten

    try:
        stand_in = _STAND_INS.get(function)
    except TypeError:
        stand_in = None
    if stand_in is not None:
        return stand_in
    if isinstance(function, types.FunctionType):
        return rewritten(function)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        made = rewritten(function.__func__)
        return function if made is function.__func__ else types.MethodType(made, function.__self__)
    return function
