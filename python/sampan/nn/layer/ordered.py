"""Layers by position: Sequential and LayerList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .layers import Layer


def _given(members, modules):
    """`modules` is another name of the argument."""
    return members if modules is None else modules


class _Ordered(Layer):
    """What Sequential and LayerList have in common: layers by position."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def _position(self, index: int, end: bool = False) -> int:
        n, here = len(self._sub_layers), type(self).__name__
        try:
            at = index.__index__()
        except AttributeError:
            got = type(index).__name__
            raise TypeError(f"(InvalidType) {here}: an index is an int or a slice, got {got}.") from None
        if not -n <= at < n + end:
            raise IndexError(f"(OutOfRange) {here}: index {at} is out of range [{-n}, {n}{']' if end else ')'}.")
        return at + n if at < 0 else at

    def _set_layers(self, layers: Iterable[Layer]) -> None:
        """These layers under their positions, instead of all others."""
        layers = list(layers)
        self._sub_layers.clear()
        for i, layer in enumerate(layers):
            Layer._put(self, "_sub_layers", str(i), layer)
        self._changed()

    def _check_layer(self, layer) -> Layer | None:
        """The layer, or None for a place that is left empty."""
        if layer is not None and not isinstance(layer, Layer):
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
            known = list(self._sub_layers)
            raise KeyError(f"(NotFound) {type(self).__name__} has no layer {index!r}; there are {known}.")
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
        if isinstance(idx, str):
            return self._sub_layers[idx]
        return list(self._sub_layers.values())[self._position(idx)]

    def __setitem__(self, idx: int | str, sublayer: Layer | None) -> None:
        name = idx if isinstance(idx, str) else str(self._position(idx))
        self.add_sublayer(name, self._check_layer(sublayer))

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
                f"(Unavailable) the number of layers in this list of {type(owner).__name__} is fixed in the core. "
                "Hint: a layer can be replaced, for example by nn.Identity()."
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
