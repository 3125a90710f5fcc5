"""`Layer`, which people subclass."""

from __future__ import annotations

from collections import OrderedDict

from ... import _core
from .helper import Helper, LayerObjectHelper  # noqa: F401
from .hooks import HookRemoveHelper, Hooks
from .state import State
from .walk import Walk

__all__ = ["HookRemoveHelper", "Layer"]

Tensor, Parameter = _core.Tensor, _core.Parameter

_KINDS = ("_parameters", "_sub_layers", "_buffers")
_TABLES = (
    "_parameters",
    "_buffers",
    "_sub_layers",
    "_forward_pre_hooks",
    "_forward_post_hooks",
    "_forward_pre_hooks_with_kwargs_flag",
    "_forward_post_hooks_with_kwargs_flag",
    "_forward_post_hooks_always_called",
    "_state_dict_hooks",
)


class Layer(Walk, State, Hooks, _core.LayerBase):
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

    _helper = Helper()

    def __init__(self, name_scope: str | None = None, dtype="float32"):
        self._prepare(dtype)
        scope = type(self).__name__ if name_scope is None else name_scope
        self.__dict__["_full_name"] = _core._unique_name(scope, name_scope is None)

    def _prepare(self, dtype="float32") -> None:
        """The empty tables that every layer has."""
        put = self.__dict__
        put["training"] = True
        for table in _TABLES:
            put[table] = OrderedDict()
        put["_non_persistable_buffer_names_set"] = set()
        put["_dtype"] = dtype
        put["_base"] = None

    # ---- names and parameters

    def full_name(self) -> str:
        """The layer's name in the process: `linear_0`."""
        return self._full_name

    def _get_name(self) -> str:
        return type(self).__name__

    def create_parameter(
        self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None, device=None
    ) -> Parameter | None:
        """Makes a parameter; assign it to an attribute to register it.

        `attr` is a `ParamAttr`, an initializer, a name, True for the defaults, or False: then there is no parameter.
        Without any initializer weights are Xavier uniform and biases zero.
        """
        if self._base is None:
            self.__dict__["_base"] = _core.Base(self.full_name())
        attr = None if isinstance(attr, str) and attr == "" else attr
        return self._base.parameter([int(n) for n in shape], attr, is_bias, default_initializer, dtype)

    def create_tensor(self, name=None, persistable=None, dtype=None) -> Tensor:
        """Makes an empty tensor, to be given values later; `persistable` says whether a checkpoint keeps it."""
        made = _core.Tensor([], dtype)
        prefix = f"{self.full_name()}.{name or '_generated_var'}"
        made.name = prefix if name else _core._unique_name(prefix)
        made.persistable = bool(persistable)
        return made

    create_variable = create_tensor

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Registers a parameter under a name."""
        self._check_name(name, "_parameters", "parameter")
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"(InvalidType) {type(self).__name__}.add_parameter: a Parameter or None is needed, got "
                f"{type(parameter).__name__}."
            )
        self._put("_parameters", name, parameter)
        return parameter

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Registers a parameter under a name."""
        self.add_parameter(name, param)

    def add_sublayer(self, name: str, sublayer: Layer | None) -> Layer | None:
        """Registers a layer under a name."""
        if "_sub_layers" not in self.__dict__:
            raise ValueError(_not_ready(self, name))
        if not isinstance(sublayer, Layer) and sublayer is not None:
            raise TypeError(
                f"(InvalidType) {type(self).__name__}.add_sublayer: a Layer or None is needed as '{name}', got "
                f"{type(sublayer).__name__}."
            )
        self._put("_sub_layers", str(name), sublayer)
        return sublayer

    def add_module(self, name: str, module: Layer | None) -> None:
        """Registers a layer under a name."""
        self.add_sublayer(name, module)

    register_module = add_module

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistable: bool = True, *, persistent: bool | None = None
    ) -> None:
        """Registers a tensor that is not trained; it is part of the state unless `persistable` is False."""
        self._check_name(name, "_buffers", "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"(InvalidType) {type(self).__name__}.register_buffer: a Tensor or None is needed, got "
                f"{type(tensor).__name__}."
            )
        self._put("_buffers", name, tensor)
        names = self._non_persistable_buffer_names_set
        names.discard(name) if (persistable if persistent is None else persistent) else names.add(name)

    def _check_name(self, name: str, kind: str, what: str) -> None:
        here = type(self).__name__
        if kind not in self.__dict__:
            raise ValueError(_not_ready(self, name))
        if not isinstance(name, str):
            raise TypeError(f"(InvalidType) {here}: the name of a {what} is a str, got {type(name).__name__}.")
        if "." in name or not name:
            raise KeyError(f"(NotFound) {here}: the name of a {what} must not be empty or contain a dot, got {name!r}.")
        if name not in self.__dict__[kind] and hasattr(self, name):
            raise KeyError(f"(NotFound) {here} has an attribute {name!r} already, which is no {what}.")

    # ---- attributes

    __getattr__ = _core.LayerBase._find_member

    def __setattr__(self, name: str, value) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        kind = _kind_of(value)
        members = self.__dict__
        if kind is None:
            for kind in _KINDS:
                if name in members.get(kind, ()):
                    if value is not None:
                        raise TypeError(_wrong_type(self, name, kind, value))
                    self._put(kind, name, None)
                    return
            object.__setattr__(self, name, value)
            return
        if kind not in members:
            raise ValueError(_not_ready(self, name))
        # A place keeps its kind: a parameter does not become a plain tensor, nor a layer a tensor, by accident.
        if kind == "_sub_layers" and name in members["_parameters"]:
            raise TypeError(_wrong_type(self, name, "_parameters", value))
        if kind == "_buffers":
            for other in ("_parameters", "_sub_layers"):
                if name in members[other]:
                    raise TypeError(_wrong_type(self, name, other, value))
            if name not in members["_buffers"]:
                self._non_persistable_buffer_names_set.add(name)
        members.pop(name, None)
        for other in _KINDS:
            if other != kind:
                members[other].pop(name, None)
        self._put(kind, name, value)

    def _put(self, kind: str, name: str, value) -> None:
        """Every member comes to its table here."""
        inner = self.__dict__.get("_inner")
        if kind == "_sub_layers" and inner and name in inner:
            _replace_inner(self, name, inner[name], value)
        self.__dict__[kind][name] = value

    def __delattr__(self, name: str) -> None:
        for kind in _KINDS:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return [*dir(type(self)), *self.__dict__, *self._parameters, *self._sub_layers, *self._buffers]

    @property
    def _modules(self):
        return self._sub_layers

    @_modules.setter
    def _modules(self, layers):
        if not isinstance(layers, dict):
            raise TypeError(f"(InvalidType) _modules is a dict of layers, got {type(layers).__name__}.")
        self._sub_layers.clear()
        for name, layer in layers.items():
            self._put("_sub_layers", name, layer)

    # ---- calling

    def forward(self, *inputs, **kwargs):
        """Computes the outputs; every layer of your own defines it."""
        raise NotImplementedError(
            f"(Unimplemented) {type(self).__name__} has no forward(). Hint: define it to say what the layer computes."
        )

    def backward(self, *inputs):
        """Gradients come from what `forward` computes; a layer has no `backward` of its own."""
        raise ValueError(
            f"(InvalidArgument) {type(self).__name__} has no backward(). Hint: call backward() of the loss."
        )

    # ---- copies

    def __getstate__(self):
        state = {name: value for name, value in self.__dict__.items() if name != "_base"}
        state["_buffers"] = without_history(self._buffers)
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _base=None)
        self._note_hooks()

    # ---- text

    def extra_repr(self) -> str:
        """Settings worth a line in the layer's text."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n")
        text = extra[0] if len(extra) == 1 else "\n  " + "\n  ".join(extra) + "\n"
        layers = [f"({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        if layers:
            text += "\n  " + "\n  ".join(layers) + "\n"
        return f"{type(self).__name__}({text})"


def in_declarative_mode() -> bool:
    """Is a graph of the calls being made?"""
    return _core._is_tracing()


in_to_static_mode = in_declarative_mode


class _Removed(Layer):
    """Stands where a part of a built-in layer was taken away."""

    def forward(self, *inputs, **kwargs):
        raise RuntimeError(
            "(PreconditionNotMet) a built-in layer needs a part that was set to None. Hint: nn.Identity() does nothing."
        )


def _replace_inner(owner: Layer, name: str, inner, new: Layer | None) -> None:
    """Lets another layer compute where one of the core's does inside a built-in layer."""

    def belongs(layer) -> bool:
        return layer is not None and "_core" in layer.__dict__ and inner.is_same(layer._core)

    old = owner._sub_layers.get(name)
    if belongs(old):
        old.__dict__["_replaced"] = True
    if belongs(new):
        new.__dict__["_replaced"] = False
        new._note_hooks()
        return
    if new is None:
        new = owner.__dict__.setdefault("_removed", _Removed())
    if not inner.set_stand_in(new):
        raise RuntimeError(f"(Unavailable) {type(owner).__name__}.{name} cannot be replaced: it is fixed in the core.")


def without_history(buffers: dict) -> OrderedDict:
    """Buffers as a copy can hold them: what a hook computed (a weight of weight norm) is only its values."""
    return OrderedDict(
        (name, b if b is None or b.is_leaf else b.detach().clone()) for name, b in buffers.items()
    )


def _kind_of(value) -> str | None:
    """The table that a value belongs to."""
    if isinstance(value, Parameter):
        return "_parameters"
    if isinstance(value, Layer):
        return "_sub_layers"
    if isinstance(value, Tensor):
        return "_buffers"
    return None


def _not_ready(layer: Layer, name: str) -> str:
    return f"(PreconditionNotMet) {type(layer).__name__}: call super().__init__() before assigning '{name}'."


def _wrong_type(layer: Layer, name: str, kind: str, value) -> str:
    what = {"_parameters": "Parameter", "_sub_layers": "Layer", "_buffers": "Tensor"}[kind]
    hint = f" Hint: {name}.set_value(…) changes its values." if kind == "_parameters" else ""
    here, got = type(layer).__name__, type(value).__name__
    return f"(InvalidType) {here}.{name} can only become a {what} or None, got {got}.{hint}"
