"""Steps of training: forward, backward and optimizer are recorded as a whole and done again without Python.

Two calls run as they stand, the third is recorded while it runs, and the next ones are done from the record, with the same
bits. What must hold for that is what a capture depends on (see `capture.py`), and what the core noted on the way: modes of
layers, parameters that are the same tensors, gradients that are where they were, the memory of optimizers.
"""

from __future__ import annotations

import collections
import copy
import types
import warnings

from .. import _core
from . import specs
from .reach import PLAIN, Reach, is_foreign

LISTS = (list, tuple, dict, collections.deque)
_SETS = (set, frozenset)
# What may hold other things than before.
COMPARED = (*PLAIN, *LISTS, *_SETS)
MOST = 64
# Lists in lists that are looked into.
DEEPEST = 8
# So many calls in a row, none of them like one before, are said to be different every time; of other arguments `MOST`.
MANY = 10
ARGUMENTS = "the kind of its arguments (shapes, dtypes, numbers) is different"


def _kind(value):
    """How an object is compared: by what it says, or by being the same."""
    return "equal" if isinstance(value, COMPARED) else "same"


def walks(function) -> bool:
    """Does its code say that it computes gradients? A function that calls such a one is found out when it is traced."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and "backward" in code.co_names


def _is_tensor(value) -> bool:
    return isinstance(value, _core.Tensor)


def _around(function):
    """The variables of the functions and of the module around a function that its code names."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return [], []
    cells = [(c, n) for c, n in zip(function.__closure__ or (), code.co_freevars) if c != types.CellType()]
    known = function.__globals__
    names = [n for n in code.co_names if n in known and not isinstance(known[n], types.ModuleType)]
    return cells, [(known, name) for name in names]


def different(function, what: str) -> None:
    """Says that every call is another one."""
    name = getattr(function, "__qualname__", function)
    text = f"because {what} at every call; keep what changes out of the function, or pass it as a tensor"
    warnings.warn(f"to_static: {name} runs as it stands, {text}", RuntimeWarning, stacklevel=5)


def named(function, variable: str) -> str:
    """A variable or an attribute that is another one, and the line of the function that names it."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"`{variable}`{specs.line_of(code, variable)} is different"


def changed(function, around) -> str:
    """What is not as it was around a function."""
    variable = around.changed()
    return named(function, variable) if variable else "a network in it has other parameters, hooks or layers"


class _Step:
    """Calls that are alike but for their tensors."""

    def __init__(self, function, args, kwargs):
        from .capture import snapshot

        self._function = function
        self.captured = _core.Captured(specs.source, False)
        # What it gives, by the number of tensors in it.
        self._results: dict = {}
        self._varies = False
        self._flat = not any(isinstance(a, LISTS) for a in (*args, *kwargs.values()))
        cells, names = _around(function)
        held = [cell.cell_contents for cell, _ in cells] + [known[name] for known, name in names]
        owner = getattr(function, "__self__", None)
        described = lambda v: ("tensor", None) if _is_tensor(v) else (_kind(v), copied(v))  # noqa: E731
        constant = lambda v: ("same" if _is_tensor(v) else _kind(v), copied(v))  # noqa: E731
        values = list(_within([*held, *args, *kwargs.values(), owner]))
        others = [v for v in values if is_foreign(v)]
        values += _within([inner for other in others for inner in vars(other).values()])
        reach = Reach([function, *args, *kwargs.values()])
        cells = reach.cells | {id(cell): (cell, name) for cell, name in cells}
        names = reach.entries | {(id(known), name): (known, name) for known, name in names}
        self.around = snapshot(
            {id(layer): layer for layer in (*_layers(values), *reach.layers)}.values(),
            others,
            [(cell, name, *constant(cell.cell_contents)) for cell, name in cells.values()],
            [(known, name, *constant(known[name])) for known, name in names.values()],
        )
        self._args = [described(a) for a in args]
        self._kwargs = [(name, *described(a)) for name, a in kwargs.items()]

    def fast(self):
        """The same without Python, where that can be."""
        if not self._flat or self._varies or not self._results:
            return None
        single = len(self._results) == 1 and isinstance(next(iter(self._results.values())), specs._Leaf)
        finish = None if single else self._finish
        return _core.Again(self.captured, self.around, self._args, self._kwargs, finish)

    def _finish(self, tensors):
        return specs.unflatten(self._results[len(tensors)], tensors)

    def run(self, args, kwargs):
        leaves: list = []
        tree = specs.flatten((args, kwargs), leaves, _is_tensor)

        def run(given):
            own_args, own_kwargs = specs.unflatten(tree, given)
            found: list = []
            result = specs.flatten(self._function(*own_args, **own_kwargs), found, _is_tensor)
            if self._results.setdefault(len(found), result) is not result and not _alike(self._results[len(found)], result):
                # Records cannot be told apart by what they give.
                self._varies = True
            last[:] = [result]
            return found

        last: list = []
        if self._varies:
            return self._function(*args, **kwargs)
        found = self.captured.call("", leaves, run)
        return specs.unflatten(last[0] if last else self._results[len(found)], found)


def _alike(a, b) -> bool:
    """Are two trees the same but for their tensors?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(_alike, a.values(), b.values()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, specs._Leaf):
        return a.at == b.at
    return a is b or isinstance(a, PLAIN) and a == b


def copied(value, depth: int = 0):
    """A list is compared with what it was, and so are lists in it."""
    if isinstance(value, _SETS):
        return copy.copy(value)
    if depth == DEEPEST or not isinstance(value, LISTS):
        return value
    held = items(value)
    # What a class does besides holding things is not run: its objects stay what they are, and are kept as plain ones.
    if isinstance(value, dict):
        kept = {name: copied(item, depth + 1) for name, item in held}
    else:
        kept = [copied(item, depth + 1) for item in held]
    if isinstance(value, tuple):
        # What cannot change stays the same object, which is compared at once.
        if all(a is b for a, b in zip(kept, tuple.__iter__(value))):
            return value
        kept = tuple(kept)
    return kept if type(value) is type(kept) else _core.Kept(type(value), kept)


def items(value):
    """What a list holds, or a dict with its names, whatever its class makes of it."""
    if isinstance(value, dict):
        return dict.items(value)
    kind = next(kind for kind in LISTS if isinstance(value, kind))
    return kind.__iter__(value)


def _within(values, depth: int = 0):
    """Values, and those in lists among them."""
    for value in values:
        yield value
        if depth < DEEPEST and isinstance(value, LISTS):
            yield from _within(dict.values(value) if isinstance(value, dict) else items(value), depth + 1)


def _layers(values) -> list:
    from ..nn import Layer

    return [v for v in values if isinstance(v, Layer)]


class Steps:
    """The records of one function."""

    def __init__(self, function):
        self._function = function
        self._known: dict = {}
        self._told = False
        # Calls in a row that were like none before.
        self._others = 0
        # The last one, for calls that are like the one before.
        self.fast = None

    def __len__(self) -> int:
        return sum(len(step.captured.nodes()) for found in self._known.values() for step in found)

    def why_not(self) -> str | None:
        """Why a call could not be recorded, if one could not."""
        reasons = [step.captured.why_not for found in self._known.values() for step in found]
        return next((reason for reason in reasons if reason), None)

    def calls(self) -> list:
        """The names of the calls of each record."""
        return [names for found in self._known.values() for step in found for names in step.captured.describe()]

    def _tell(self, found) -> None:
        """Says what is different each time, if many calls in a row were like none before; `found` are those like this one
        but for what is around the function."""
        if self._told or self._others < (MANY if found else MOST):
            return
        self._told = True
        different(self._function, changed(self._function, found[-1].around) if found else ARGUMENTS)

    def call(self, args, kwargs):
        """What the function gives, from a record if there can be one."""
        if self.fast is not None:
            found = self.fast.call(args, kwargs)
            if found is not NotImplemented:
                return found
        if _core._is_recording() or _core._is_tracing():
            return self._function(*args, **kwargs)
        from .capture import _argument, _Unknown

        try:
            key = (_argument(args), _argument(kwargs))
            hash(key)
        except (_Unknown, TypeError):
            return self._function(*args, **kwargs)
        found = self._known.setdefault(key, [])
        step = next((s for s in found if s.around.holds()), None)
        self._others = 0 if step is not None else self._others + 1
        if step is None:
            self._tell(found)
            if self._others > MOST and self._others % MOST:
                # To look at everything around it costs more than it promises; now and then it is tried again.
                return self._function(*args, **kwargs)
            step = _Step(self._function, args, kwargs)
            found[:] = [*found[1 - MOST :], step]
            while len(self._known) > MOST:
                self._known.pop(next(iter(self._known)))
        result = step.run(args, kwargs)
        self.fast = step.fast()
        if not self._told and step.captured.why_not is not None:
            self._told = True
            name = getattr(self._function, "__qualname__", self._function)
            text = f"to_static: {name} runs as it stands, because {step.captured.why_not}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        return result
