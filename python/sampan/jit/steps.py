"""Steps of training: forward, backward and optimizer are recorded as a whole and done again without Python.

Two calls run as they stand, the third is recorded while it runs, and the next ones are done from the record, with the same
bits. What must hold for that is what a capture depends on (see `capture.py`), and what the core noted on the way: modes of
layers, parameters that are the same tensors, gradients that are where they were, the memory of optimizers.
"""

from __future__ import annotations

import types
import warnings

from .. import _core
from . import specs

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LISTS = (list, tuple, dict)
_MOST = 64


def _kind(value):
    """How an object is compared: by what it says, or by being the same."""
    return "equal" if isinstance(value, (*_PLAIN, *_LISTS)) else "same"


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
    cells = [c for c in function.__closure__ or () if c != types.CellType()]
    known = function.__globals__
    names = [n for n in code.co_names if n in known and not isinstance(known[n], types.ModuleType)]
    return cells, [(known, name) for name in names]


class _Step:
    """Calls that are alike but for their tensors."""

    def __init__(self, function, args, kwargs):
        from .capture import snapshot

        self._function = function
        self.captured = _core.Captured(specs.source, False)
        # What it gives, by the number of tensors in it.
        self._results: dict = {}
        self._varies = False
        self._flat = not any(isinstance(a, _LISTS) for a in (*args, *kwargs.values()))
        cells, names = _around(function)
        held = [cell.cell_contents for cell in cells] + [known[name] for known, name in names]
        owner = getattr(function, "__self__", None)
        described = lambda v: ("tensor", None) if _is_tensor(v) else (_kind(v), _copied(v))  # noqa: E731
        constant = lambda v: ("same" if _is_tensor(v) else _kind(v), _copied(v))  # noqa: E731
        values = [*held, *args, *kwargs.values(), owner]
        others = [v for v in values if _is_foreign(v)]
        values += [inner for other in others for inner in vars(other).values()]
        self.around = snapshot(
            _layers(values),
            others,
            [(cell, *constant(cell.cell_contents)) for cell in cells],
            [(known, name, *constant(known[name])) for known, name in names],
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
    return a is b or isinstance(a, _PLAIN) and a == b


def _copied(value):
    """A list is compared with what it was."""
    if isinstance(value, (list, dict)):
        return value.copy()
    return value


def _is_foreign(value) -> bool:
    """Is it an object of the program's own, with attributes that the function may read?"""
    if isinstance(value, (type, types.FunctionType, types.ModuleType)) or not hasattr(value, "__dict__"):
        return False
    package = __name__.split(".")[0]
    return not any(kind.__module__.split(".")[0] == package for kind in type(value).__mro__)


def _layers(values) -> list:
    from ..nn import Layer

    return [v for v in values if isinstance(v, Layer)]


class Steps:
    """The records of one function."""

    def __init__(self, function):
        self._function = function
        self._known: dict = {}
        self._told = False
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
        if step is None:
            step = _Step(self._function, args, kwargs)
            found[:] = [*found[1 - _MOST :], step]
            while len(self._known) > _MOST:
                self._known.pop(next(iter(self._known)))
        result = step.run(args, kwargs)
        self.fast = step.fast()
        if not self._told and step.captured.why_not is not None:
            self._told = True
            name = getattr(self._function, "__qualname__", self._function)
            text = f"to_static: {name} runs as it stands, because {step.captured.why_not}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        return result
