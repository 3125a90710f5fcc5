"""What an optimizer asks of one parameter, as attributes of `Parameter`."""

from __future__ import annotations

from .. import _core
from ..regularizer import _of


class _OptimizeAttr(dict):
    """`parameter.optimize_attr`: a changed `learning_rate` reaches the parameter."""

    def __init__(self, parameter, learning_rate: float):
        super().__init__(learning_rate=learning_rate)
        self._parameter = parameter

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key == "learning_rate":
            _core._set_setting(self._parameter, key, float(value))

    def update(self, *others, **more):
        for key, value in dict(*others, **more).items():
            self[key] = value


def _optimize_attr(self):
    """Settings of the parameter: `learning_rate` multiplies that of the optimizer."""
    return _OptimizeAttr(self, _core._settings(self)[0])


def _set_optimize_attr(self, value):
    _core._set_setting(self, "learning_rate", float(value.get("learning_rate", 1.0)))


def _regularizer(self):
    """A penalty of its own, instead of the optimizer's; or None."""
    return _of(_core._settings(self)[2])


def _need_clip(self):
    """Does gradient clipping include it?"""
    return _core._settings(self)[1]


def _trainable(self):
    """Is it trained? The opposite of `stop_gradient`."""
    return not self.stop_gradient


class _Block:
    """The part of a static program that a tensor would belong to: initializers take it as their second argument."""

    idx, parent_idx = 0, -1

    def __repr__(self):
        return "Block(0)"


def _from_tensor(tensor, trainable=True, name=None, **kwargs):
    """A parameter on the memory of a tensor."""
    made = Parameter(tensor.detach(), trainable=trainable)
    made.data = tensor
    made.persistable = True
    if name is not None:
        made.name = name
    return made


_BLOCK = _Block()
Parameter = _core.Parameter
_core.Tensor.block = property(lambda self: _BLOCK, doc=_Block.__doc__)
Parameter.from_tensor = staticmethod(_from_tensor)
# What Paddle knows of a parameter besides; nothing here asks for it.
Parameter.do_model_average, Parameter.is_distributed = True, False
Parameter.optimize_attr = property(_optimize_attr, _set_optimize_attr, doc=_optimize_attr.__doc__)
Parameter.regularizer = property(
    _regularizer, lambda self, value: _core._set_setting(self, "regularizer", value), doc=_regularizer.__doc__
)
Parameter.need_clip = property(
    _need_clip, lambda self, value: _core._set_setting(self, "need_clip", bool(value)), doc=_need_clip.__doc__
)
if not hasattr(Parameter, "trainable"):
    Parameter.trainable = property(
        _trainable, lambda self, value: setattr(self, "stop_gradient", not value), doc=_trainable.__doc__
    )
