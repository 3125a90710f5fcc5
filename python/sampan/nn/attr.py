"""What can be said about one parameter when a layer is made."""

from __future__ import annotations

from numbers import Real

from .. import _core


class ParamAttr:
    """Name, initial values and training settings of a parameter.

    >>> import sampan
    >>> attr = sampan.ParamAttr(initializer=sampan.nn.initializer.Constant(0.5), learning_rate=0.1, trainable=False)
    >>> sampan.nn.Linear(1, 2, weight_attr=attr).weight.tolist()
    [[0.5, 0.5]]
    """

    def __init__(
        self,
        name=None,
        initializer=None,
        learning_rate=1.0,
        regularizer=None,
        trainable=True,
        do_model_average=True,
        need_clip=True,
    ):
        _check("name", name, str, optional=True)
        _check("learning_rate", learning_rate, Real)
        _check("trainable", trainable, bool)
        _check("do_model_average", do_model_average, bool)
        _check("need_clip", need_clip, bool)
        if name == "":
            raise ValueError("(InvalidArgument) ParamAttr: name must not be empty.")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    @property
    def _core(self):
        return _core._param_attr(
            self.name, self.initializer, float(self.learning_rate), self.regularizer, self.trainable, self.need_clip
        )

    @staticmethod
    def _to_attr(given):
        """What an argument such as `weight_attr` means: a `ParamAttr`, or False for no parameter."""
        if given is None or given is True:
            return ParamAttr()
        if given is False or isinstance(given, ParamAttr):
            return given
        if isinstance(given, (list, tuple)):
            return [ParamAttr._to_attr(one) for one in given]
        if isinstance(given, str):
            return ParamAttr(name=given)
        return ParamAttr(initializer=given)

    def __repr__(self):
        return f"ParamAttr({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _check(name: str, value, kind: type, optional: bool = False) -> None:
    if not (isinstance(value, kind) or (optional and value is None)):
        raise TypeError(f"(InvalidType) ParamAttr: {name} must be of type {kind.__name__}, got {type(value).__name__}.")
