"""`layer._helper`: what layers written for Paddle ask for defaults, parameters and activations."""

from __future__ import annotations

from ... import _core


class LayerObjectHelper:
    """Makes parameters and applies activations in the name of a layer."""

    def __init__(self, name: str):
        self.name = self.layer_type = name

    @staticmethod
    def get_default_dtype() -> str:
        """The dtype that parameters have where nothing else is said."""
        return _core.get_default_dtype()

    @staticmethod
    def set_default_dtype(dtype) -> None:
        """Changes it."""
        _core.set_default_dtype(dtype)

    def create_parameter(
        self, attr, shape, dtype=None, is_bias=False, default_initializer=None, stop_gradient=False, type=None, device=None
    ):
        """A parameter whose name begins with the layer's; None for an `attr` of False."""
        attr = None if isinstance(attr, str) and attr == "" else attr
        made = _core.Base(self.name).parameter([int(n) for n in shape], attr, is_bias, default_initializer, dtype)
        if stop_gradient and made is not None:
            made.stop_gradient = True
        return made

    def append_activation(self, input_var, act=None, use_cudnn=None):
        """The activation of that name of `input_var`, or `input_var` itself."""
        if act is None:
            return input_var
        if not isinstance(act, str):
            raise TypeError(f"(InvalidType) {self.name}: the name of an activation is a str, got {act!r}.")
        from .. import functional

        return getattr(functional, act)(input_var)

    def create_variable_for_type_inference(self, dtype, stop_gradient=False, shape=None):
        """An empty tensor, to be given values later."""
        made = _core.Tensor([], dtype)
        made.stop_gradient = stop_gradient
        return made

    def to_variable(self, value, name=None):
        """A tensor of an array."""
        made = value if isinstance(value, _core.Tensor) else _core.to_tensor_py(value)
        if name is not None:
            made.name = name
        return made

    def append_op(self, *args, **kwargs):
        """Static graphs have ops to add; there is none here."""
        raise NotImplementedError(
            f"(Unimplemented) {self.name}: static graphs are not part of sampan. Hint: the dynamic half of the layer calls "
            "functions."
        )


class Helper:
    """The helper of the layer it is asked for through. A layer may put another object in its place."""

    def __get__(self, layer, cls):
        return self if layer is None else LayerObjectHelper(layer.full_name())
