"""What can be said about one parameter when a layer is made."""

from __future__ import annotations

from .. import _core


class ParamAttr:
    """Name, initial values and training settings of a parameter."""

    def __init__(
        self, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True, do_model_average=True, need_clip=True
    ):
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
