"""Layers that hold others: Sequential, LayerList, LayerDict, ParameterList, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ... import _core
from .layers import Layer

Tensor, Parameter = _core.Tensor, _core.Parameter


def _given(members, modules):
    """`modules` is another name of the argument."""
    return members if modules is None else modules


def _pairs(owner: Layer, members) -> Iterator[tuple[str, object]]:
    """Names and members from a mapping, or from pairs."""
    here = type(owner).__name__
    if not isinstance(members, Iterable):
        raise TypeError(f"(InvalidType) {here}: a mapping or pairs of name and member are needed, got {type(members).__name__}.")
    if isinstance(members, (Mapping, LayerDict, ParameterDict)):
        yield from members.items()
        return
    for i, pair in enumerate(members):
        if len(pair) != 2:
            raise ValueError(f"(InvalidArgument) {here}: element {i} must be a pair of name and member, got {len(pair)} items.")
        yield pair[0], pair[1]


class _Ordered(Layer):
    """What Sequential and LayerList have in common: layers by position."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def _position(self, index: int, end: bool = False) -> int:
        n = len(self._sub_layers)
        try:
            at = index.__index__()
        except AttributeError:
            raise TypeError(f"(InvalidType) {type(self).__name__}: an index is an int or a slice, got {type(index).__name__}.") from None
        if not -n <= at < n + end:
            raise IndexError(f"(OutOfRange) {type(self).__name__}: index {at} is out of range [{-n}, {n}{']' if end else ')'}.")
        return at + n if at < 0 else at

    def _set_layers(self, layers: Iterable[Layer]) -> None:
        """These layers under their positions, instead of all others."""
        layers = list(layers)
        self._sub_layers.clear()
        for i, layer in enumerate(layers):
            Layer._put(self, "_sub_layers", str(i), layer)
        self._changed()

    def _check_layer(self, layer) -> Layer:
        if not isinstance(layer, Layer):
            raise TypeError(f"(InvalidType) {type(self).__name__}: a Layer is needed, got {type(layer).__name__}.")
        return layer

    # ---- the containers inside a built-in layer

    def _put(self, kind, name, value):
        super()._put(kind, name, value)
        if kind == "_sub_layers":
            self._changed()

    def __delattr__(self, name):
        super().__delattr__(name)
        self._changed()

    def _changed(self) -> None:
        """Called after every change of the layers."""

    def _is_inner(self) -> bool:
        return "_inner" in self.__dict__ and not self.__dict__.get("_replaced")

    def _state(self) -> dict:
        layers = {}
        for name, layer in self._sub_layers.items():
            own = getattr(layer, "_is_inner", bool)()
            layers[name] = ("inner", layer._state()) if own else ("layer", layer)
        return {"layers": layers, "training": self.training}

    def _take(self, state: dict) -> None:
        from .builtin import _take_layers

        _take_layers(self, state["layers"])
        self.__dict__["training"] = state["training"]


class Sequential(_Ordered):
    """Layers one after another: each gets what the one before gave.

    >>> import sampan
    >>> net = sampan.nn.Sequential(sampan.nn.Linear(3, 4), sampan.nn.ReLU())
    >>> named = sampan.nn.Sequential(("fc", sampan.nn.Linear(3, 4)), ("act", sampan.nn.ReLU()))
    >>> len(net), list(named.state_dict())
    (2, ['fc.weight', 'fc.bias'])
    """

    def __init__(self, *layers):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        elif len(layers) == 1 and isinstance(layers[0], list) and not _is_pair(layers[0]):
            layers = tuple(layers[0])
        for i, item in enumerate(layers):
            name, layer = item if isinstance(item, (tuple, list)) else (str(i), item)
            self.add_sublayer(name, self._check_layer(layer))

    def forward(self, input):
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*list(self._sub_layers.values())[index])
        if isinstance(index, str):
            return self._sub_layers[index]
        return list(self._sub_layers.values())[self._position(index)]

    def __setitem__(self, index, layer: Layer) -> None:
        self._check_layer(layer)
        if not isinstance(index, str) and str(index) not in self._sub_layers:
            index = list(self._sub_layers)[self._position(index)]
        setattr(self, str(index), layer)

    def __delitem__(self, index) -> None:
        if isinstance(index, slice):
            for name in list(self._sub_layers)[index]:
                delattr(self, name)
            return
        if not isinstance(index, str) and str(index) not in self._sub_layers:
            index = list(self._sub_layers)[self._position(index)]
        if str(index) not in self._sub_layers:
            raise KeyError(f"(NotFound) {type(self).__name__} has no layer {index!r}; there are {list(self._sub_layers)}.")
        delattr(self, str(index))

    def append(self, module: Layer) -> Sequential:
        """Adds a layer at the end; its name is its position."""
        self.add_sublayer(str(len(self)), self._check_layer(module))
        return self

    def extend(self, sequential: Iterable[Layer]) -> Sequential:
        """Adds layers at the end."""
        for layer in list(sequential):
            self.append(layer)
        return self

    def insert(self, index: int, module: Layer) -> Sequential:
        """Puts a layer before the one at `index`."""
        at = self._position(index, end=True)
        layers = list(self._sub_layers.values())
        layers.insert(at, self._check_layer(module))
        self._set_layers(layers)
        return self

    def pop(self, key) -> Layer:
        """Takes out the layer at an index or of a name."""
        layer = self[key]
        del self[key]
        return layer

    # ---- inside a built-in layer

    def _mirror(self) -> None:
        """From now on the core computes, until the layers are changed."""
        self.__dict__["forward"] = self._core.forward

    def _changed(self) -> None:
        if "_core" in self.__dict__ and self.__dict__.pop("forward", None) is not None and not self._replaced:
            self._core.set_stand_in(self)

    def _note_hooks(self) -> None:
        super()._note_hooks()
        if "_core" in self.__dict__ and not self._replaced:
            changed = "forward" not in self.__dict__
            self._core.set_stand_in(self if self._hooked or changed else None)

    def __setattr__(self, name, value):
        if name == "training" and "_core" in self.__dict__:
            self._core.set_training(value)
        super().__setattr__(name, value)

    def __deepcopy__(self, memo):
        return _copied(self, memo)

    def __reduce_ex__(self, protocol):
        return _reduced(self, protocol)


def _is_pair(item) -> bool:
    return len(item) == 2 and isinstance(item[0], str)


class LayerList(_Ordered):
    """Layers by position, for a layer that walks through them itself.

    >>> import sampan
    >>> heads = sampan.nn.LayerList([sampan.nn.Linear(4, n) for n in (1, 2)])
    >>> heads.append(sampan.nn.Linear(4, 3))[-1].weight.shape
    [4, 3]
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None, *, modules=None):
        super().__init__()
        for i, layer in enumerate(_given(sublayers, modules) or ()):
            self.add_sublayer(str(i), layer)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._sub_layers.values())[idx])
        return list(self._sub_layers.values())[self._position(idx)]

    def __setitem__(self, idx: int, sublayer: Layer) -> None:
        setattr(self, str(self._position(idx)), self._check_layer(sublayer))

    def __delitem__(self, idx) -> None:
        layers = list(self._sub_layers.values())
        if isinstance(idx, slice):
            del layers[idx]
        else:
            del layers[self._position(idx)]
        self._set_layers(layers)

    def __contains__(self, layer) -> bool:
        return any(layer is own for own in self)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return LayerList([*self, *other])

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, sublayer: Layer | None = None, *, module=None) -> LayerList:
        """Adds a layer at the end."""
        self.add_sublayer(str(len(self)), self._check_layer(_given(sublayer, module)))
        return self

    def extend(self, sublayers: Iterable[Layer] | None = None, *, modules=None) -> LayerList:
        """Adds layers at the end."""
        for layer in list(_given(sublayers, modules)):
            self.append(layer)
        return self

    def insert(self, index: int, sublayer: Layer | None = None, *, module=None) -> None:
        """Puts a layer before the one at `index`."""
        at = self._position(index, end=True)
        layers = list(self._sub_layers.values())
        layers.insert(at, self._check_layer(_given(sublayer, module)))
        self._set_layers(layers)

    def pop(self, key=-1):
        """Takes out the layer at an index, or those of a slice."""
        layer = self[key]
        del self[key]
        return layer

    def _changed(self) -> None:
        root = self.__dict__.get("_root")
        owner = root() if root is not None else None
        if hasattr(owner, "_list_changed"):
            owner._list_changed(self)
        elif owner is not None and self._inner and set(self._inner) != set(self._sub_layers):
            raise RuntimeError(
                f"(Unavailable) the number of layers in this list of {type(owner).__name__} is fixed in the core. Hint: a layer "
                "can be replaced, for example by nn.Identity()."
            )

    def __deepcopy__(self, memo):
        return _copied(self, memo)

    def __reduce_ex__(self, protocol):
        return _reduced(self, protocol)


def _plain(container: _Ordered) -> _Ordered:
    """A container of its own with the layers of one inside a built-in layer."""
    layers = container._sub_layers
    return Sequential(*layers.items()) if isinstance(container, Sequential) else LayerList(layers.values())


def _copied(container: _Ordered, memo: dict):
    import copy

    if "_inner" in container.__dict__:
        root = container._root()
        if root is not None and container._is_inner():
            copy.deepcopy(root, memo)
            if id(container) in memo:
                return memo[id(container)]
        container = _plain(container)
    made = container.__class__.__new__(container.__class__)
    memo[id(container)] = made
    made.__setstate__(copy.deepcopy(container.__getstate__(), memo))
    return made


def _reduced(container: _Ordered, protocol: int):
    if "_inner" in container.__dict__:
        container = _plain(container)
    return object.__reduce_ex__(container, protocol)


class LayerDict(Layer):
    """Layers by name.

    >>> import sampan
    >>> parts = sampan.nn.LayerDict({"fc": sampan.nn.Linear(2, 3), "act": sampan.nn.ReLU()})
    >>> list(parts.keys())
    ['fc', 'act']
    """

    def __init__(self, sublayers=None, *, modules=None):
        super().__init__()
        members = _given(sublayers, modules)
        if members is not None:
            self.update(members)

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]

    def __setitem__(self, key: str, sublayer: Layer):
        return self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: str) -> bool:
        return key in self._sub_layers

    def clear(self) -> None:
        """Takes all layers out."""
        self._sub_layers.clear()

    def pop(self, key: str) -> Layer:
        """Takes the layer of that name out."""
        return self._sub_layers.pop(key)

    def keys(self):
        """The names."""
        return self._sub_layers.keys()

    def values(self):
        """The layers."""
        return self._sub_layers.values()

    def items(self):
        """Names and layers."""
        return self._sub_layers.items()

    def update(self, sublayers=None, *, modules=None) -> None:
        """Adds or replaces layers, from a mapping or from pairs."""
        for name, layer in _pairs(self, _given(sublayers, modules)):
            self.add_sublayer(name, layer)


class ParameterDict(Layer):
    """Parameters by name."""

    def __init__(self, parameters=None):
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Parameter:
        return self._parameters[key]

    def __setitem__(self, key: str, param: Parameter) -> None:
        if not isinstance(param, Parameter):
            raise TypeError(f"(InvalidType) ParameterDict[{key!r}]: a Parameter is needed, got {type(param).__name__}.")
        setattr(self, key, param)

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def keys(self):
        """The names."""
        return self._parameters.keys()

    def values(self):
        """The parameters."""
        return self._parameters.values()

    def items(self):
        """Names and parameters."""
        return self._parameters.items()

    def pop(self, key: str) -> Parameter:
        """Takes the parameter of that name out."""
        return self._parameters.pop(key)

    def update(self, parameters) -> None:
        """Adds or replaces parameters, from a mapping or from pairs."""
        for name, parameter in _pairs(self, parameters):
            self.add_parameter(name, parameter)


class ParameterList(Layer):
    """Parameters by position."""

    def __init__(self, parameters: Iterable[Parameter] | None = None):
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._parameters.values())[idx])
        n = len(self)
        if not -n <= idx < n:
            raise IndexError(f"(OutOfRange) ParameterList: index {idx} is out of range [{-n}, {n}).")
        return self._parameters[str(idx + n if idx < 0 else idx)]

    def __setitem__(self, idx: int, param: Tensor) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(f"(InvalidType) ParameterList[{idx}]: a Parameter or Tensor is needed, got {type(param).__name__}.")
        own = self[idx]
        if own.shape == param.shape:
            own.set_value(param)
        else:
            values = param.detach().clone()
            values.stop_gradient = own.stop_gradient
            own._replace(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def append(self, parameter: Parameter) -> ParameterList:
        """Adds a parameter at the end."""
        if not isinstance(parameter, Parameter):
            raise TypeError(f"(InvalidType) ParameterList: a Parameter is needed, got {type(parameter).__name__}.")
        self.add_parameter(str(len(self)), parameter)
        return self

    def extend(self, parameters: Iterable[Parameter]) -> ParameterList:
        """Adds parameters at the end."""
        for parameter in list(parameters):
            self.append(parameter)
        return self
