"""The part of `Layer` that finds what is inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ... import _core

Tensor, Parameter = _core.Tensor, _core.Parameter


def _recurse(include_sublayers: bool, recurse: bool | None) -> bool:
    """`recurse` is another name of `include_sublayers`."""
    return include_sublayers if recurse is None else recurse


class Walk:
    """Layers, parameters and buffers inside a layer, with their paths."""

    def named_children(self) -> Iterator[tuple[str, Walk]]:
        """The layers directly inside, with their names; one that has two names, once."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and layer not in seen:
                seen.add(layer)
                yield name, layer

    def children(self) -> Iterator[Walk]:
        """The layers directly inside."""
        for _, layer in self.named_children():
            yield layer

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set: set | None = None, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Walk]]:
        """All layers inside, with their paths, outermost first."""
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            if remove_duplicate:
                seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(path, True, seen, remove_duplicate)

    def sublayers(self, include_self: bool = False) -> list[Walk]:
        """All layers inside."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True):
        """This layer and all inside, with their paths."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def modules(self) -> Iterator[Walk]:
        """This layer and all inside."""
        for _, layer in self.named_modules():
            yield layer

    def _named_members(self, kind: str, prefix: str, deep: bool, unique: bool):
        seen = set()
        layers = self.named_sublayers(prefix, True, remove_duplicate=unique) if deep else [(prefix, self)]
        for path, layer in layers:
            for name, member in layer.__dict__[kind].items():
                if member is None or id(member) in seen:
                    continue
                if unique:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True, *, recurse: bool | None = None
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths; a shared one once."""
        return self._named_members("_parameters", prefix, _recurse(include_sublayers, recurse), remove_duplicate)

    def parameters(self, include_sublayers: bool = True, *, recurse: bool | None = None) -> list[Parameter]:
        """All parameters; a shared one once."""
        return [p for _, p in self.named_parameters(include_sublayers=_recurse(include_sublayers, recurse))]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True, *, recurse: bool | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths; a shared one once."""
        return self._named_members("_buffers", prefix, _recurse(include_sublayers, recurse), remove_duplicate)

    def buffers(self, include_sublayers: bool = True, *, recurse: bool | None = None) -> list[Tensor]:
        """All buffers; a shared one once."""
        return [b for _, b in self.named_buffers(include_sublayers=_recurse(include_sublayers, recurse))]

    def apply(self, fn: Callable[[Walk], None]) -> Walk:
        """Calls `fn` with every layer inside, innermost first, and then with this one."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def get_sublayer(self, target: str) -> Walk:
        """The layer at a path such as `"encoder.0.fc"`; an empty path is this layer."""
        here = self
        for name in target.split(".") if target else ():
            if not hasattr(here, name):
                raise AttributeError(f"{type(here).__name__} has no attribute `{name}`")
            here = getattr(here, name)
            if not isinstance(here, Walk):
                raise AttributeError(f"`{name}` is not an nn.Layer, got {type(here).__name__}")
        return here

    def set_sublayer(self, target: str, layer: Walk, strict: bool = False) -> None:
        """Puts a layer at a path; with `strict` there must be one already."""
        if not target:
            raise ValueError("(InvalidArgument) set_sublayer: the path of the layer is empty.")
        if not isinstance(layer, Walk):
            raise ValueError(f"(InvalidArgument) set_sublayer: a Layer is needed, got {type(layer).__name__}.")
        path, _, name = target.rpartition(".")
        parent = self.get_sublayer(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Walk):
            raise AttributeError(f"`{name}` is not an nn.Layer, got {type(getattr(parent, name)).__name__}")
        setattr(parent, name, layer)

    get_submodule = get_sublayer
    set_submodule = set_sublayer

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        path, _, name = target.rpartition(".")
        layer = self.get_sublayer(path)
        if not hasattr(layer, name):
            raise AttributeError(f"{type(layer).__name__} has no attribute `{name}`")
        if name not in layer._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return layer._buffers[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        path, _, name = target.rpartition(".")
        layer = self.get_sublayer(path)
        if not hasattr(layer, name):
            raise AttributeError(f"{type(layer).__name__} has no attribute `{name}`")
        if name not in layer._parameters:
            raise AttributeError(f"`{name}` is not a parameter")
        return layer._parameters[name]

    def train(self, mode: bool = True) -> Walk:
        """Switches to training (dropout drops, batch norm counts), or with `False` to evaluation."""
        if not isinstance(mode, bool):
            raise ValueError(f"(InvalidArgument) train: mode must be a bool, got {mode!r}.")
        return self._set_mode(mode)

    def eval(self) -> Walk:
        """Switches to evaluation."""
        return self._set_mode(False)

    def _set_mode(self, on: bool) -> Walk:
        self.training = on
        for layer in self.sublayers():
            layer.training = on
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Forgets the gradients of all parameters that are trained, or sets them to zero."""
        for p in self.parameters():
            if p.trainable:
                p.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to zero."""
        for p in self.parameters():
            if p.grad is not None:
                p.clear_gradient(not set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Walk:
        """Freezes (`False`) or thaws all parameters."""
        for p in self.parameters():
            p.stop_gradient = not requires_grad
        return self

    def _where(self, inner: Walk) -> str | None:
        """The way from this layer to one inside it, for an exception."""
        for path, layer in self.named_sublayers(include_self=True):
            if layer is inner:
                here = type(self).__name__
                return f"In: {here}.{path} ({type(inner).__name__})" if path else f"In: {here}"
        return f"In: {type(inner).__name__}, which {type(self).__name__} called"
