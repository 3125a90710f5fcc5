"""`Layer`, which people subclass, and the built-in layers of the core seen through it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from .. import _core

Tensor, Parameter = _core.Tensor, _core.Parameter


class HookRemoveHelper:
    """Takes a hook off again."""

    def __init__(self, owner: Layer, hooks: dict, key: int):
        self._owner, self._hooks, self._key = owner, hooks, key

    def remove(self) -> None:
        """Takes the hook off."""
        self._hooks.pop(self._key, None)
        self._owner._note_hooks()


class Layer(_core.LayerBase):
    """A part of a network: maps tensors to tensors and owns parameters, buffers and other layers.

    Subclass it: make layers in `__init__`, use them in `forward`, call the layer like a function.

    >>> import sampan
    >>> class Net(sampan.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = sampan.nn.Linear(3, 4)
    ...     def forward(self, x):
    ...         return self.fc(x)
    >>> Net()(sampan.ones([2, 3])).shape
    [2, 4]
    """

    def __init__(self, name_scope: str | None = None, dtype="float32"):
        put = super().__setattr__
        put("training", True)
        put("_parameters", OrderedDict())
        put("_buffers", OrderedDict())
        put("_non_persistable_buffer_names_set", set())
        put("_sub_layers", OrderedDict())
        put("_forward_pre_hooks", OrderedDict())
        put("_forward_post_hooks", OrderedDict())
        put("_next_hook", 0)
        put("_dtype", dtype)
        put("_base", None)
        put("_name_scope", name_scope)

    # ---- names and parameters

    def _own_base(self) -> _core.Base:
        if self._base is None:
            scope = self._name_scope
            super().__setattr__("_base", _core.Base(scope or type(self).__name__, scope is None, self._dtype))
        return self._base

    def full_name(self) -> str:
        """The layer's name in the process: `linear_0`."""
        return self._own_base().full_name

    def create_parameter(self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None) -> Parameter | None:
        """Makes a parameter; assign it to an attribute to register it."""
        base = self._own_base()
        if dtype is not None and _core._dtype(dtype) != self._dtype:
            base = _core.Base(base.full_name, False, dtype)
        return base.parameter(list(shape), attr, is_bias, default_initializer)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Registers a parameter under a name."""
        _check_name(self, name, "_parameters")
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"(InvalidType) add_parameter: a Parameter or None is needed, got {type(parameter).__name__}.")
        self._parameters[name] = parameter
        return parameter

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Registers a layer under a name."""
        if not isinstance(sublayer, Layer) and sublayer is not None:
            raise TypeError(f"(InvalidType) add_sublayer: a Layer is needed, got {type(sublayer).__name__}.")
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Registers a tensor that is kept but not trained."""
        _check_name(self, name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"(InvalidType) register_buffer: a Tensor or None is needed, got {type(tensor).__name__}.")
        self._buffers[name] = tensor
        names = self._non_persistable_buffer_names_set
        names.discard(name) if persistable else names.add(name)

    # ---- attributes

    def __getattr__(self, name: str):
        for kind in ("_parameters", "_sub_layers", "_buffers"):
            members = self.__dict__.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value) -> None:
        members = self.__dict__
        if isinstance(value, Parameter):
            self._register(name, value, "_parameters")
        elif isinstance(value, Layer):
            self._register(name, value, "_sub_layers")
        elif "_parameters" in members and name in members["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"(InvalidType) '{name}' is a parameter and can only become a Parameter or None, got "
                    f"{type(value).__name__}. Hint: layer.{name}.set_value(…) changes its values."
                )
            members["_parameters"][name] = None
        elif "_sub_layers" in members and name in members["_sub_layers"] and value is None:
            members["_sub_layers"][name] = None
        elif "_buffers" in members and name in members["_buffers"] and (value is None or isinstance(value, Tensor)):
            members["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def _register(self, name: str, value, kind: str) -> None:
        members = self.__dict__.get(kind)
        if members is None:
            raise RuntimeError(
                f"(PreconditionNotMet) {type(self).__name__}: call super().__init__() before assigning '{name}'."
            )
        for other in ("_parameters", "_sub_layers", "_buffers"):
            if other != kind:
                self.__dict__[other].pop(name, None)
        self.__dict__.pop(name, None)
        members[name] = value

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_sub_layers", "_buffers"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                return
        super().__delattr__(name)

    def __dir__(self):
        members = [*self._parameters, *self._sub_layers, *self._buffers]
        return sorted({*super().__dir__(), *members})

    # ---- walking

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """The layers directly inside, with their names."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def children(self) -> Iterator[Layer]:
        """The layers directly inside."""
        return (layer for _, layer in self.named_children())

    def named_sublayers(self, prefix="", include_self=False, layers_set=None, remove_duplicate=True) -> Iterator[tuple[str, Layer]]:
        """All layers inside, with their paths."""
        seen = set() if layers_set is None else layers_set
        if include_self and not (remove_duplicate and self in seen):
            seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None and not (remove_duplicate and layer in seen):
                path = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(path, True, seen, remove_duplicate)

    def sublayers(self, include_self=False) -> list[Layer]:
        """All layers inside."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def _named_members(self, kind: str, prefix: str, deep: bool, unique: bool):
        seen = set()
        layers = self.named_sublayers(prefix, True, remove_duplicate=unique) if deep else [(prefix, self)]
        for path, layer in layers:
            for name, member in getattr(layer, kind).items():
                if member is None or (unique and id(member) in seen):
                    continue
                seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(self, prefix="", include_sublayers=True, remove_duplicate=True) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths; a shared one once."""
        return self._named_members("_parameters", prefix, include_sublayers, remove_duplicate)

    def parameters(self, include_sublayers=True) -> list[Parameter]:
        """All parameters; a shared one once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_buffers(self, prefix="", include_sublayers=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths."""
        return self._named_members("_buffers", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers=True) -> list[Tensor]:
        """All buffers."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def apply(self, fn: Callable[[Layer], None]) -> Layer:
        """Calls `fn` with every layer inside, innermost first, and then with this one."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    # ---- state

    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="", use_hook=True, keep_vars=True):
        """Parameters and buffers by path; they are the layer's own, not copies."""
        state = OrderedDict() if destination is None else destination
        prefix = structured_name_prefix
        layers = self.named_sublayers("", True, remove_duplicate=False) if include_sublayers else [("", self)]
        for path, layer in layers:
            start = prefix + (f"{path}." if path else "")
            for name, p in layer._parameters.items():
                if p is not None:
                    state[start + name] = p if keep_vars else p.detach()
            for name, b in layer._buffers.items():
                if b is not None and name not in layer._non_persistable_buffer_names_set:
                    state[start + name] = b if keep_vars else b.detach()
        return state

    def to_static_state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="", use_hook=True, keep_vars=True):
        """Parameters and all buffers by path."""
        state = self.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)
        for path, b in self.named_buffers(include_sublayers=include_sublayers):
            state.setdefault(structured_name_prefix + path, b)
        return state

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Takes over values by name; gives the names that were missing and those that were not expected."""
        own = self.state_dict()
        if not use_structured_name:
            own = {t.name: t for t in own.values()}
        missing, fitting = [], []
        for name, tensor in own.items():
            value = state_dict.get(name)
            if value is None:
                missing.append(name)
                continue
            shape = list(getattr(value, "shape", ()))
            if shape != tensor.shape and not (tensor.size == 1 and _count(shape) == 1):
                import warnings

                warnings.warn(f"Skip loading for {name}. The file has shape {shape}, the layer {tensor.shape}.", stacklevel=2)
                missing.append(name)
                continue
            fitting.append((tensor, value))
        for tensor, value in fitting:
            tensor.set_value(value)
        return missing, [name for name in state_dict if name not in own]

    set_dict = load_dict = set_state_dict

    def train(self) -> Layer:
        """Switches to training: dropout drops, batch norm counts."""
        return self._set_mode(True)

    def eval(self) -> Layer:
        """Switches to evaluation."""
        return self._set_mode(False)

    def _set_mode(self, on: bool) -> Layer:
        for layer in self.sublayers(include_self=True):
            layer.training = on
        return self

    def clear_gradients(self, set_to_zero=True) -> None:
        """Forgets the gradients of all parameters."""
        for p in self.parameters():
            p.clear_gradient(set_to_zero)

    # ---- calling

    def forward(self, *inputs, **kwargs):
        """Computes the outputs; every layer of your own defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(); define it to say what the layer computes.")

    def register_forward_pre_hook(self, hook) -> HookRemoveHelper:
        """Calls `hook(layer, inputs)` before `forward`; what it returns replaces the inputs."""
        return self._add_hook(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook) -> HookRemoveHelper:
        """Calls `hook(layer, inputs, outputs)` after `forward`; what it returns replaces the outputs."""
        return self._add_hook(self._forward_post_hooks, hook)

    register_forward_hook = register_forward_post_hook

    def _add_hook(self, hooks: dict, hook) -> HookRemoveHelper:
        key = self._next_hook
        super().__setattr__("_next_hook", key + 1)
        hooks[key] = hook
        self._note_hooks()
        return HookRemoveHelper(self, hooks, key)

    def _note_hooks(self) -> None:
        self._hooked = bool(self._forward_pre_hooks or self._forward_post_hooks)

    def _call_hooked(self, *inputs, **kwargs):
        for hook in list(self._forward_pre_hooks.values()):
            new = hook(self, inputs)
            if new is not None:
                inputs = new if isinstance(new, tuple) else (new,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in list(self._forward_post_hooks.values()):
            new = hook(self, inputs, outputs)
            if new is not None:
                outputs = new
        return outputs

    def _where(self, inner: Layer) -> str | None:
        """The way from this layer to one inside it, for an exception."""
        for path, layer in self.named_sublayers(include_self=True):
            if layer is inner:
                here = type(self).__name__
                return f"In: {here}.{path} ({type(inner).__name__})" if path else f"In: {here}"
        return None

    # ---- text

    def extra_repr(self) -> str:
        """Settings worth a line in the layer's text."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        name, extra = type(self).__name__, self.extra_repr()
        if not lines:
            return f"{name}({extra})"
        return f"{name}({extra}\n  " + "\n  ".join(lines) + "\n)"


def _count(shape) -> int:
    n = 1
    for extent in shape:
        n *= extent
    return n


def _check_name(layer: Layer, name: str, kind: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"(InvalidType) a member's name is a str, got {type(name).__name__}.")
    if "." in name or not name:
        raise KeyError(f"(NotFound) a member's name must not be empty or contain a dot, got {name!r}.")
    if hasattr(layer, name) and name not in getattr(layer, kind):
        raise KeyError(f"(NotFound) {type(layer).__name__} has an attribute {name!r} already.")


class BuiltinLayer(Layer):
    """A layer of the core: it computes in Rust, and its members are seen from Python."""

    _definition = None

    def __init__(self, *args, **kwargs):
        core, settings = self._definition.make(*args, **kwargs)
        Layer.__init__(self)
        self._adopt(core, settings)

    @classmethod
    def _of(cls, core, settings=()):
        """The Python side of a layer that lives inside another one of the core."""
        made = cls.__new__(cls)
        Layer.__init__(made)
        made._adopt(core, dict(settings))
        return made

    def _adopt(self, core, settings: dict) -> None:
        members = self.__dict__
        members["_core"] = core
        members["_settings"] = settings
        self._parameters.update(core.parameters())
        for name, tensor, persistable in core.buffers():
            self._buffers[name] = tensor
            if not persistable:
                self._non_persistable_buffer_names_set.add(name)
        for name, kind, child in core.children():
            home, leaf = self, name
            while "." in leaf:
                first, leaf = leaf.split(".", 1)
                home = home._sub_layers.setdefault(first, LayerList())
            home._sub_layers[leaf] = _wrap(kind, child)

    def full_name(self) -> str:
        return self._core.full_name or super().full_name()

    @property
    def forward(self):
        """What the core computes; without a frame of ours between it and the caller."""
        return self._core.forward

    def __setattr__(self, name, value):
        if name == "training" and "_core" in self.__dict__:
            self._core.set_training(value)
        super().__setattr__(name, value)

    def __getattr__(self, name):
        # `conv._padding` and the like: what the layer was built from.
        if name.startswith("_") and not name.startswith("__"):
            settings = self.__dict__.get("_settings")
            if settings and name[1:] in settings:
                return settings[name[1:]]
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        return self._core.extra_repr()


# Classes of layers inside others by the name of their type, beside those of `nn`.
INNER: dict[str, type] = {}


def _wrap(kind: str, core) -> Layer:
    """The Python object of a layer inside one of the core, by the name of its type."""
    from .. import nn

    cls = INNER.get(kind) or getattr(nn, kind, None)
    if isinstance(cls, type) and issubclass(cls, BuiltinLayer):
        return cls._of(core)
    return type(kind, (BuiltinLayer,), {"__module__": "sampan.nn"})._of(core)


class Sequential(Layer):
    """Layers one after another."""

    def __init__(self, *layers):
        super().__init__()
        for i, item in enumerate(layers):
            name, layer = item if isinstance(item, (tuple, list)) else (str(i), item)
            self.add_sublayer(name, layer)

    def forward(self, input):
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*list(self._sub_layers.items())[index])
        if isinstance(index, str):
            return self._sub_layers[index]
        return list(self._sub_layers.values())[index]


INNER["Sequential"] = type("Sequential", (BuiltinLayer, Sequential), {"__module__": Sequential.__module__})


class LayerList(Layer):
    """A list of layers."""

    def __init__(self, sublayers=None):
        super().__init__()
        for layer in sublayers or ():
            self.append(layer)

    def append(self, sublayer):
        self.add_sublayer(str(len(self._sub_layers)), sublayer)
        return self

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._sub_layers.values())[index])
        return list(self._sub_layers.values())[index]


class LayerDict(Layer):
    """Layers by name."""


class ParameterList(Layer):
    """A list of parameters."""
