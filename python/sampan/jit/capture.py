"""`to_static(full_graph=True)`: a program runs once on shapes, and what it did is repeated without Python.

A capture holds for what it was made with: the tree of arguments, the shapes and dtypes of tensors, numbers and words among
the arguments, in closures, globals and attributes of layers, the modes of layers, and whether gradients and mixed precision
are on. Anything else is another capture. A program that reads values cannot be repeated, and runs as it stands; the line that
read one is named once.
"""

from __future__ import annotations

import collections
import types
import warnings

from .. import _core
from . import specs
from .reach import PLAIN, Reach
from .steps import ARGUMENTS, COMPARED, DEEPEST, MANY, MOST, Steps, changed, copied, different, named, walks

# Parameters, inner layers and hooks: which objects they are, and how many.
_WATCHED = ("_parameters", "_buffers", "_sub_layers", "_forward_pre_hooks", "_forward_post_hooks")


class _Unknown(Exception):
    """Something that cannot be compared."""


def _plain(value, depth: int = 0):
    """A value to compare, for those that are numbers and words or made of them."""
    if isinstance(value, PLAIN):
        return (type(value), value)
    if depth < DEEPEST and isinstance(value, (list, tuple, collections.deque)):
        return (type(value), tuple(_plain(v, depth + 1) for v in value))
    if depth < DEEPEST and isinstance(value, dict):
        return (type(value), tuple((_plain(k, depth + 1), _plain(v, depth + 1)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return (type(value), frozenset(_plain(v, depth + 1) for v in value))
    raise _Unknown


def _argument(value):
    """What a capture depends on in an argument."""
    if isinstance(value, _core.Tensor):
        return (_core.Tensor, tuple(value.shape), value.dtype, value.stop_gradient, str(value.place))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_argument(v) for v in value))
    if isinstance(value, dict):
        return (type(value), tuple((_plain(k), _argument(v)) for k, v in value.items()))
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, (types.FunctionType, type)) or value.__hash__ is object.__hash__:
        # The same object is the same program.
        return (type(value), id(value))
    raise _Unknown


def _settings(values: dict):
    """The plain ones of some attributes or variables."""
    found = []
    for name, value in values.items():
        try:
            found.append((name, _plain(value)))
        except _Unknown:
            # Layers are looked at by themselves; of others it is known which object they are.
            found.append((name, id(value)))
    return tuple(found)


def _surroundings(function):
    """The closure of a function, and the globals that its code names."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    cells = dict(zip(code.co_freevars, (function.__closure__ or ()), strict=False))
    closure = {name: cell.cell_contents for name, cell in cells.items() if cell != types.CellType()}
    known = function.__globals__
    plain = {name: known[name] for name in code.co_names if isinstance(known.get(name, ...), PLAIN)}
    return (_settings(closure), _settings(plain))


def snapshot(owners, others=(), cells=(), names=()):
    """What a function computes by: variables around it; modes, settings and inner layers of networks; numbers and words of
    other objects."""
    settings, objects, empty = [], [], []
    for own in (other.__dict__ for other in others):
        settings += [(own, n, copied(v)) for n, v in own.items() if isinstance(v, COMPARED)]
    for layer in [layer for owner in owners for layer in [owner, *owner.sublayers()]]:
        own = layer.__dict__
        plain = [n for n, v in own.items() if not n.startswith("_") and isinstance(v, COMPARED)]
        settings += [(own, n, copied(own[n])) for n in plain]
        if "_settings" in own:
            # A setting that is changed makes another dict of them.
            settings.append((own, "_settings", own["_settings"]))
        for held in (own[n] for n in _WATCHED if isinstance(own.get(n), dict)):
            if held:
                objects.append((held, tuple(held.values())))
            else:
                empty.append(held)
    return _core.Snapshot(settings, objects, empty, list(cells), list(names))


class _Before:
    """What a function computes by, as it was before it ran."""

    def __init__(self, function, owner, args, kwargs):
        reach = Reach([function, owner, *args, *kwargs.values()])
        described = lambda v: ("equal" if isinstance(v, COMPARED) else "same", copied(v))  # noqa: E731
        self._cells = [(cell, name, *described(cell.cell_contents)) for cell, name in reach.cells.values()]
        self._entries = [(own, name, *described(own[name])) for own, name in reach.entries.values()]
        self._layers = reach.layers

    def kept(self):
        """What must be so again. What the function itself has changed is something that it does besides, such as counting."""
        cells = [c for c in self._cells if _core.Snapshot([], [], [], [c], []).holds()]
        entries = [e for e in self._entries if _core.Snapshot([], [], [], [], [e]).holds()]
        return snapshot(self._layers, (), cells, entries)


class _Capture:
    """One graph, and what it takes and gives."""

    def __init__(self, graph, tree, owner):
        self.graph, self.tree = graph, tree
        # A parameter may be another tensor by the time of the next call; the place it lies in stays.
        places = {} if owner is None else {_core._tensor_id(t): t for t in owner.state_dict().values()}
        self.weights = [places.get(_core._tensor_id(tensor), tensor) for _, tensor, _ in graph.weights()]

    def __call__(self, tensors: list):
        return specs.unflatten(self.tree, self.graph.run(tensors, self.weights))


class Captures:
    """The captures of one function."""

    def __init__(self, function):
        self._function = function
        self._known: dict = {}
        self._warned = False
        # Captures in a row, none of which was used again; and what the last one depends on.
        self._others = 0
        self._last = None
        # Of a function that takes no tensors, or computes gradients itself.
        self._steps = Steps(function) if walks(function) else None

    def __len__(self) -> int:
        if self._steps is not None:
            return len(self._steps)
        return sum(capture is not None for found in self._known.values() for _, capture in found)

    def _key(self, owner, args, kwargs):
        given = args[1:] if owner is not None and args and args[0] is owner else args
        policy = _core._amp_policy()
        modes = (_core.is_grad_enabled(), None if policy is None else policy.dtype)
        return (_argument(given), _argument(kwargs), _surroundings(self._function), modes)

    def call(self, owner, args, kwargs):
        """What the function gives, by a capture if there can be one."""
        if _core._is_tracing() or _core._is_recording():
            return self._function(*args, **kwargs)
        if self._steps is not None:
            return self._steps.call(args, kwargs)
        try:
            key = self._key(owner, args, kwargs)
            hash(key)
        except (_Unknown, TypeError):
            return self._function(*args, **kwargs)
        capture = next((c for c in self._known.get(key, ()) if c[0].holds()), None)
        self._others = 0 if capture is not None else self._others + 1
        before, self._last = self._last, key
        if self._others > MOST and self._others % MOST:
            # To capture costs more than to run; now and then it is tried again.
            return self._function(*args, **kwargs)
        if self._others >= MANY and not self._warned:
            self._tell(before, key)
        if key not in self._known:
            if len(self._known) >= MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = []
        found = self._known[key]
        if capture is None:
            before = _Before(self._function, owner, args, kwargs)
            made = self._capture(owner, args, kwargs)
            capture = (before.kept(), made)
            if self._steps is not None:
                return self._steps.call(args, kwargs)
            found[:] = [*found[1 - MOST :], capture]
        capture = capture[1]
        if capture is None:
            return self._function(*args, **kwargs)
        return capture(specs.tensors_of((args, kwargs)))

    def _tell(self, before, now) -> None:
        """Says what is different each time, after many captures none of which was used again."""
        if self._known.get(now):
            what = changed(self._function, self._known[now][-1][0])
        else:
            # What is around the function, if that is the difference: variables by name.
            old, new = ([dict(part) for part in key[2]] for key in (before, now))
            names = [n for a, b in zip(old, new, strict=True) for n in b if a.get(n, ...) != b[n]]
            if not names and self._others < MOST:
                return
            what = named(self._function, names[0]) if names else ARGUMENTS
        self._warned = True
        different(self._function, what)

    def fast(self):
        """The last recorded step of training, without Python around it."""
        return None if self._steps is None else self._steps.fast

    def _capture(self, owner, args, kwargs):
        leaves: list = []
        tree = specs.flatten((args, kwargs), leaves, lambda v: isinstance(v, _core.Tensor))
        if not leaves:
            self._steps = Steps(self._function)
            return None
        known = [(list(t.shape), t.dtype, f"x{i}", t.stop_gradient) for i, t in enumerate(leaves)]
        results: list = []

        def run(inputs):
            found: list = []
            own_args, own_kwargs = specs.unflatten(tree, inputs)
            result = self._function(*own_args, **own_kwargs)
            results[:] = [specs.flatten(result, found, lambda v: isinstance(v, _core.Tensor))]
            if not found:
                raise RuntimeError("(PreconditionNotMet) to_static: the function gives no tensor.")
            return found

        try:
            _core._walked_while_traced()
            graph = _core._trace(run, known, specs.source)
        except Exception as error:
            if _core._walked_while_traced():
                self._steps = Steps(self._function)
                return None
            if not self._warned:
                self._warned = True
                name = getattr(self._function, "__qualname__", self._function)
                warnings.warn(f"to_static: {name} runs as it stands, because {error}", RuntimeWarning, stacklevel=4)
            return None
        if _core._walked_while_traced():
            self._steps = Steps(self._function)
            return None
        return _Capture(graph, results[0], owner)
