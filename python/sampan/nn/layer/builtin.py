"""The layers of the core, seen from Python.

Such a layer computes in Rust. Python holds its tree: parameters, buffers and the layers inside are objects here, and
what is assigned here (a parameter, another layer) reaches the core.
"""

from __future__ import annotations

import copy
import weakref

from ... import _core
from .container import LayerList, Sequential
from .layers import Layer, without_history
from .settings import changed, lacking, setting
from .signatures import arranged, signature

Tensor = _core.Tensor

# What a copy is not given from the old layer's attributes, because it has its own.
_OWN = frozenset(
    "_core _changed_core _settings _inner _made_from _root _replaced _base _full_name _parameters _buffers _sub_layers "
    "training".split()
)


# Once there are distributed tensors: makes a layer's forward one that knows them.
forward_elsewhere = None
# The Python class of each type of the core.
_CLASSES: dict[str, type] = {}
# Types of the core that are a chain of their layers.
_CHAINS = ("Sequential", "ConvNormActivation")


class _Signature:
    """`inspect.signature(Conv2D)`, made when it is asked for."""

    def __get__(self, layer, cls):
        if layer is not None:
            raise AttributeError("__signature__")
        # A subclass with an `__init__` of its own has the signature of that.
        definition = cls._definition
        if definition is None or cls.__init__ is not BuiltinLayer.__init__:
            return None
        return signature(definition)


def _forward(self, *args, **kwargs):
    """What the layer computes."""
    return _computing(self)(*args, **kwargs)


def _computing(layer):
    """What computes: the core, or Python where the core's layer was given a function that it does not know."""
    here = layer.__dict__
    if "_by_parts" in here:
        return layer._compute
    forward = (here.get("_changed_core") or here["_core"]).forward
    return forward if forward_elsewhere is None else forward_elsewhere(layer, forward)


class _Forward:
    """`forward`: of a layer what the core computes, without a frame of ours between it and the caller; of the class a
    function."""

    def __get__(self, layer, cls):
        if layer is None:
            return _forward
        own = layer.__dict__.get("_own_forward")
        return _computing(layer) if own is None else own

    def __set__(self, layer, function):
        layer.__dict__["_own_forward"] = function
        layer._note_hooks()

    def __delete__(self, layer):
        if layer.__dict__.pop("_own_forward", None) is None:
            raise AttributeError("forward")
        layer._note_hooks()


class BuiltinLayer(Layer):
    """A layer of the core: it computes in Rust, and its members are seen from Python."""

    _definition = None
    __signature__ = _Signature()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("_definition") is not None:
            _CLASSES.setdefault(cls._definition.name, cls)

    def __init__(self, *args, **kwargs):
        self._build(args, kwargs)

    def _build(self, args: tuple, kwargs: dict) -> None:
        args, kwargs = arranged(self._definition, args, kwargs)
        core, settings = self._definition.make(*args, **kwargs)
        self._prepare()
        self.__dict__["_made_from"] = (args, kwargs)
        self._adopt(core, settings, _layers_in((*args, *kwargs.values())), {}, weakref.ref(self))
        self._note_hooks()

    def _adopt(self, core, settings: dict, given: list[Layer], memo: dict, root: weakref.ref) -> None:
        """Makes the tree of what is inside the core's layer. `given` are layers that it was built from."""
        put = self.__dict__
        put.update(_core=core, _settings=settings, _inner={}, _replaced=False, _root=root)
        for name, key, parameter in core.parameters():
            # A parameter with two names is one object.
            self._parameters[name] = memo.setdefault(key, parameter)
        for path, kind, child in core.children():
            home, name = self, path
            while "." in name:
                first, name = name.split(".", 1)
                if first not in home._sub_layers:
                    home._sub_layers[first] = LayerList()
                    home._sub_layers[first].__dict__.update(_inner={}, _root=root)
                home = home._sub_layers[first]
            if isinstance(child, Layer):
                home._sub_layers[name] = child
                continue
            home._inner[name] = child
            same = (g for g in given if child.is_same(g._core))
            home._sub_layers[name] = next(same, None) or _wrap(kind, child, memo, root)

    forward = _Forward()

    def full_name(self) -> str:
        return self._core.full_name or type(self).__name__

    def extra_repr(self) -> str:
        return self._cores()[0].extra_repr()

    # ---- what is assigned reaches the core

    def __setattr__(self, name, value):
        if name == "forward" and type(self).forward is _forward:
            object.__setattr__(self, name, value)
            return
        if "_core" in self.__dict__ and name not in _OWN:
            key = None if isinstance(value, (Layer, Tensor)) else changed(self, name)
            if key is not None and name not in self._parameters and name not in self._buffers:
                self._tell(key, value)
                return
        if name == "training" and "_core" in self.__dict__:
            for core in self._cores():
                core.set_training(value)
        super().__setattr__(name, value)

    def _cores(self):
        """The core's layer, and the one that computes in its place since a setting was changed."""
        changed = self.__dict__.get("_changed_core")
        return [self._core] if changed is None else [changed, self._core]

    def _tell(self, key: str, value) -> None:
        """Changes a setting: a layer of the core like this one, but for that, computes from now on."""
        known = {name: kind for name, kind, *_ in self._definition.params} if self._definition is not None else {}
        if key not in known:
            here = type(self).__name__
            raise AttributeError(f"(InvalidType) {here}: {key} cannot be changed. Hint: make a new layer.")
        if known[key] == "Bool" and (value is None or isinstance(value, int)):
            value = bool(value)
        if key in self._settings and _same(self._settings[key], value):
            return
        told = {**self._settings, key: value}
        random = _core._random_state()
        core, settings = self._definition.make(**{name: value for name, value in told.items() if name in known})
        _core._set_random_state(*random)
        self.__dict__.update(_changed_core=core, _settings={**self._settings, **settings})
        core.set_training(self.training)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                core.adopt_parameter(name, parameter)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                core.set_parameter(name, buffer)
        for path, _, place in core.children():
            place.set_stand_in(self.get_sublayer(path))
        self._note_hooks()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_settings" in self.__dict__ and not name.startswith("__"):
                found, value = setting(self, name)
                if found:
                    return value
            raise

    def _put(self, kind, name, value):
        new = False
        for core in self._cores() if "_core" in self.__dict__ else ():
            if kind == "_parameters":
                new = not core.set_parameter(name, self._neutral(name) if value is None else value)
                if new:
                    break
            elif kind == "_buffers" and value is not None:
                # A buffer may take the name of a parameter: a weight that a hook computes.
                core.set_parameter(name, value)
        super()._put(kind, name, value)
        argument = lacking(self, name) if kind == "_parameters" and new and value is not None else None
        if argument is not None:
            # The core's layer was built without it: another one is built that has it.
            if self._settings.get(name) is False:
                self._settings[name] = True
            self._settings[argument] = False
            self._tell(argument, None)

    def _neutral(self, name: str) -> Tensor:
        """What a parameter that was taken away leaves: a bias or mean of zeros, a scale or variance of ones."""
        shape = self._parameters[name].shape if self._parameters.get(name) is not None else [1]
        return _core.op("zeros" if "bias" in name or name == "_mean" else "ones")(shape)

    def _note_hooks(self) -> None:
        super()._note_hooks()
        if "_core" in self.__dict__ and not self._replaced:
            self._core.set_stand_in(self if self._stands_in() else None)

    def _stands_in(self) -> bool:
        """Does Python do more in a call than the core alone?"""
        here = self.__dict__
        own = type(self).forward is not _forward or "_own_forward" in here
        return own or self._hooked or "_changed_core" in here or "_by_parts" in here

    # ---- copies

    def _state(self) -> dict:
        """Everything but the core itself."""
        inner = {}
        for name, layer in self._sub_layers.items():
            own = isinstance(layer, (BuiltinLayer, LayerList, Sequential)) and layer._is_inner()
            inner[name] = ("inner", layer._state()) if own else ("layer", layer)
        return {
            "parameters": dict(self._parameters),
            "buffers": without_history(self._buffers),
            "layers": inner,
            "training": self.training,
            "settings": self._settings if "_changed_core" in self.__dict__ else None,
            "rest": {name: value for name, value in self.__dict__.items() if name not in _OWN},
        }

    def _take(self, state: dict) -> None:
        """Goes on from what `_state` gave."""
        for kind in ("_parameters", "_buffers"):
            members, table = state[kind[1:]], self.__dict__[kind]
            for name in [name for name in table if name not in members]:
                del table[name]
            for name, member in members.items():
                if kind == "_parameters" and member is not None and name in table:
                    self._core.adopt_parameter(name, member)
                    table[name] = member
                else:
                    self._put(kind, name, member)
        for name, value in (state["settings"] or {}).items():
            if self._settings.get(name, value) != value:
                self._tell(name, value)
        _take_layers(self, state["layers"])
        self.__dict__.update(state["rest"])
        self.training = state["training"]
        self._note_hooks()

    def _is_inner(self) -> bool:
        return self._core.is_inner and not self._replaced

    def __deepcopy__(self, memo):
        root = self._root()
        if self._is_inner() and root is not None:
            copy.deepcopy(root, memo)
            if id(self) in memo:
                return memo[id(self)]
        made = _remake(type(self), *copy.deepcopy(self._origin(), memo))
        _note_copies(self, made, memo)
        made._take(copy.deepcopy(self._state(), memo))
        return made

    def __reduce_ex__(self, protocol):
        return _remake, (type(self), *self._origin()), self._state()

    def __setstate__(self, state):
        self._take(state)

    def _origin(self) -> tuple:
        """How the layer can be made again: the arguments of its root, and the way from there."""
        root = self._root() or self
        cls = type(root) if root is not self else None
        if "_made_from" not in root.__dict__:
            raise TypeError(f"(InvalidType) {type(self).__name__}: a part of a layer that is gone cannot be copied.")
        return cls, root._made_from, self._core.path

    @classmethod
    def _of(cls, core, settings, memo, root):
        """The Python side of a layer that lives inside another one of the core."""
        made = cls.__new__(cls)
        made._prepare()
        made._adopt(core, settings, [], memo, root)
        return made


def _same(a, b) -> bool:
    try:
        return bool(a == b)
    except (TypeError, ValueError, RuntimeError):
        return False


def _note_copies(old: Layer, new: Layer, memo: dict) -> None:
    """Lets `deepcopy` know which layers inside belong together."""
    memo[id(old)] = new
    for name, layer in old._sub_layers.items():
        if getattr(layer, "_is_inner", bool)() and name in new._sub_layers:
            _note_copies(layer, new._sub_layers[name], memo)


def _take_layers(home: Layer, layers: dict) -> None:
    for name in [name for name in home._sub_layers if name not in layers]:
        del home._sub_layers[name]
    for name, (how, what) in layers.items():
        if how == "inner":
            home._sub_layers[name]._take(what)
        elif home._sub_layers.get(name) is not what:
            home._put("_sub_layers", name, what)


def _remake(cls, root_cls, made_from, path):
    """A layer made again from its arguments. The random numbers go on as if nothing had happened."""
    args, kwargs = made_from
    random = _core._random_state()
    made = (root_cls or cls).__new__(root_cls or cls)
    made._build(args, kwargs)
    _core._set_random_state(*random)
    if not path:
        return made
    inner = made.get_sublayer(path)
    # The root is gone as soon as nobody holds it; a part of it stands alone.
    inner.__dict__["_kept"] = made
    return inner


def _layers_in(values) -> list[BuiltinLayer]:
    found = []
    for value in values:
        if isinstance(value, BuiltinLayer):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _layers_in(value)
        elif hasattr(value, "layers"):
            # A function that makes layers, and has kept them.
            found += _layers_in(value.layers)
    return found


def _wrap(kind: str, core, memo: dict, root) -> Layer:
    """The Python object of a layer inside one of the core, by the name of its type."""
    if kind in _CHAINS:
        made = (Sequential if kind == "Sequential" else _other(kind, Sequential))()
        BuiltinLayer._adopt(made, core, {}, [], memo, root)
        made._mirror()
        return made
    if kind == "LayerList":
        made = LayerList()
        BuiltinLayer._adopt(made, core, {}, [], memo, root)
        return made
    return (_CLASSES.get(kind) or _other(kind, BuiltinLayer))._of(core, core.settings(), memo, root)


_OTHERS: dict[str, type] = {}


def _other(kind: str, base: type) -> type:
    """A class for a type of the core that is not public on its own."""
    from . import rnn

    if kind not in _OTHERS:
        # Two are something else in Python, and their instances inside the core still count as such.
        bases = (base, getattr(rnn, kind)) if kind in ("RNN", "BiRNN") else (base,)
        body = {"__module__": "sampan.nn", "__doc__": "A part of a built-in layer.", "_definition": None}
        _OTHERS[kind] = type(kind, bases, body)
    return _OTHERS[kind]
