"""Layers that hold others: Sequential, LayerList, LayerDict, ParameterList, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ... import _core
from .layers import Layer
from .ordered import LayerList, Sequential, _given

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]

Tensor, Parameter = _core.Tensor, _core.Parameter


def _pairs(owner: Layer, members) -> Iterator[tuple[str, object]]:
    """Names and members from a mapping, or from pairs."""
    here = type(owner).__name__
    if not isinstance(members, Iterable):
        got = type(members).__name__
        raise TypeError(f"(InvalidType) {here}: a mapping or pairs of name and member are needed, got {got}.")
    if isinstance(members, (Mapping, LayerDict, ParameterDict)):
        yield from members.items()
        return
    for i, pair in enumerate(members):
        if len(pair) != 2:
            raise ValueError(f"(InvalidArgument) {here}: element {i} must be a pair of name and member, got {pair!r}.")
        yield pair[0], pair[1]


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
            got = type(param).__name__
            raise TypeError(f"(InvalidType) ParameterList[{idx}]: a Parameter or Tensor is needed, got {got}.")
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
