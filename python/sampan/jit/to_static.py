"""`to_static` and its relatives."""

from __future__ import annotations

import functools
import types
import weakref

from .. import _core


class StaticFunction(_core.Marked):
    """A function marked by `to_static`, which looks like the function it stands for.

    With `full_graph=True` it runs once for each kind of arguments and is repeated from then on; else Python runs each time.
    """

    def __init__(self, function, input_spec=None, **options):
        self._function = function
        self._input_spec = input_spec
        self._options = options
        # What the last call of each owner was given, for `jit.save` without an `input_spec`.
        self._last = weakref.WeakKeyDictionary()
        self._last_alone = None
        self._captured = weakref.WeakKeyDictionary()
        self._captured_alone = None
        functools.update_wrapper(self, function)

    def __getstate__(self):
        """What a copy starts with: it makes captures of its own."""
        return {**self.__dict__, "_captured": weakref.WeakKeyDictionary(), "_captured_alone": None}

    def _call(self, *args, **kwargs):
        """A call that no recorded step of training stands for."""
        self._remember(args, kwargs)
        if not self._is_captured():
            return self._function(*args, **kwargs)
        owner = self._owner(args)
        captures = self._captures(owner)
        result = captures.call(owner, args, kwargs)
        self._set_record(captures.fast())
        return result

    def _is_captured(self) -> bool:
        function = getattr(self._function, "__func__", self._function)
        left_out = getattr(function, "_not_to_static", False) or getattr(function, "__module__", None) in _IGNORED
        return bool(self._options.get("full_graph")) and _ENABLED and not left_out

    def _owner(self, args):
        """The layer whose function it is."""
        from ..nn import Layer

        owner = args[0] if args and isinstance(args[0], Layer) else getattr(self._function, "__self__", None)
        return owner if isinstance(owner, Layer) else None

    def _captures(self, owner):
        from .capture import Captures

        if owner is None:
            if self._captured_alone is None:
                self._captured_alone = Captures(self._function)
            return self._captured_alone
        if owner not in self._captured:
            self._captured[owner] = Captures(self._function)
        return self._captured[owner]

    def _remember(self, args, kwargs) -> None:
        from ..nn import Layer
        from ..static import InputSpec

        owner = args[0] if args and isinstance(args[0], Layer) else getattr(self._function, "__self__", None)
        given = args[1:] if args and owner is args[0] else args
        if kwargs or not all(isinstance(a, _core.Tensor) for a in given) or not given:
            return
        specs = [InputSpec(list(t.shape), t.dtype) for t in given]
        if isinstance(owner, Layer):
            self._last[owner] = specs
        else:
            self._last_alone = specs

    def last_specs(self, owner) -> list | None:
        """What the last call was given."""
        return self._last_alone if owner is None else self._last.get(owner)

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def dygraph_function(self):
        """The function as it was written."""
        return self._function

    @property
    def function_spec(self):
        """What is known about the inputs."""
        return self._input_spec

    def rollback(self):
        """The function as it was written."""
        return self._function

    def __repr__(self) -> str:
        return f"<StaticFunction {getattr(self._function, '__qualname__', self._function)!s}>"


def _mark_layer(layer, input_spec, options):
    """Marks the forward of one layer."""
    from ..nn.layer.builtin import BuiltinLayer

    plain = layer.forward
    marked = StaticFunction(plain, input_spec, **options)
    layer.__dict__["_to_static_forward"] = marked
    if "forward" in type(layer).__dict__ or not isinstance(layer, BuiltinLayer):
        # A layer of the core has no forward in Python to stand in for.
        layer.__dict__["forward"] = marked

    def rollback():
        layer.__dict__.pop("_to_static_forward", None)
        layer.__dict__.pop("forward", None)
        layer.__dict__.pop("rollback", None)
        return layer

    layer.__dict__["rollback"] = rollback
    return layer


def to_static(function=None, input_spec=None, build_strategy=None, backend="CINN", **kwargs):
    """Marks a function, a method, a layer or a class of layers for compiling, with the same results.

    With `full_graph=True` the calls that it makes are captured and repeated without running Python, for as long as
    arguments, modes and settings are alike; one that reads the values of tensors runs as it stands. A step of training,
    with `backward` and optimizer, runs twice, is recorded while it runs a third time, and is done from its record after
    that, with the same bits. Else Python runs at every call.

    >>> import sampan
    >>> @sampan.jit.to_static(input_spec=[sampan.static.InputSpec([None, 2])])
    ... def double(x):
    ...     return x * 2
    >>> double(sampan.ones([1, 2])).tolist()
    [[2.0, 2.0]]
    """
    unknown = set(kwargs) - {"full_graph", "property"}
    if unknown:
        raise TypeError(f"(InvalidType) to_static has no argument {sorted(unknown)[0]!r}.")
    if backend not in (None, "CINN", "PHI"):
        raise ValueError(f"(InvalidArgument) to_static: backend is None, 'CINN' or 'PHI', got {backend!r}.")
    options = {"build_strategy": build_strategy, "backend": backend, **kwargs}

    def mark(target):
        from ..nn import Layer

        if isinstance(target, StaticFunction):
            return target
        if isinstance(target, Layer):
            return _mark_layer(target, input_spec, options)
        if isinstance(target, type) and issubclass(target, Layer):
            target.forward = StaticFunction(target.forward, input_spec, **options)
            return target
        if isinstance(target, (staticmethod, classmethod)):
            return type(target)(mark(target.__func__))
        if isinstance(target, types.MethodType):
            return types.MethodType(StaticFunction(target.__func__, input_spec, **options), target.__self__)
        if not callable(target):
            raise TypeError(f"(InvalidType) to_static marks functions and layers, got {type(target).__name__}.")
        return StaticFunction(target, input_spec, **options)

    return mark if function is None else mark(function)


def not_to_static(func=None):
    """Marks a function that is not to be compiled or rewritten: it runs as it stands."""

    def mark(function):
        try:
            getattr(function, "__func__", function)._not_to_static = True
        except AttributeError:
            pass  # A function of the core, which nobody compiles.
        return function

    return mark if func is None else mark(func)


_IGNORED: set[str] = set()


def ignore_module(modules: list) -> None:
    """Names modules whose functions are neither compiled nor rewritten."""
    given = modules if isinstance(modules, (list, tuple)) else [modules]
    _IGNORED.update(getattr(m, "__name__", str(m)) for m in given)


def is_ignored(function) -> bool:
    """Is a function of such a module?"""
    return (getattr(function, "__module__", None) or "").split(".")[0] in _IGNORED or function.__module__ in _IGNORED


_ENABLED = True


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Switches compiling and rewriting on or off; while it is off, marked functions run as they stand."""
    if not isinstance(enable_to_static_bool, bool):
        raise TypeError(f"(InvalidType) enable_to_static takes a bool, got {type(enable_to_static_bool).__name__}.")
    global _ENABLED
    _ENABLED = enable_to_static_bool
    _core._call_from_records(_ENABLED)


def is_enabled() -> bool:
    """Are functions rewritten when they are saved?"""
    return _ENABLED
