"""Built-in layers with methods besides `forward`."""

from __future__ import annotations

from ... import _registry
from .builtin import BuiltinLayer
from .families import _BatchNormBase
from .layers import Layer

_definitions = _registry.classes("nn")


class AdaptiveLogSoftmaxWithLoss(BuiltinLayer):
    _definition = _definitions["AdaptiveLogSoftmaxWithLoss"]
    __doc__ = _definition.doc

    def log_prob(self, input):
        """The logarithms of the probabilities of all classes."""
        return self._core.forward(input)

    def predict(self, input):
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)


class _OnPair:
    """A function of two tensors as one of a pair, which is what the core calls."""

    def __init__(self, function):
        self.function = function

    def __call__(self, pair):
        return self.function(*pair)


class TripletMarginWithDistanceLoss(BuiltinLayer):
    _definition = _definitions["TripletMarginWithDistanceLoss"]
    __doc__ = _definition.doc

    def _build(self, args, kwargs):
        distance = args[0] if args else kwargs.get("distance_function")
        if callable(distance) and not isinstance(distance, (Layer, _OnPair)):
            args, kwargs = args[1:], {**kwargs, "distance_function": _OnPair(distance)}
            names = ("margin", "swap", "reduction", "name")
            args, kwargs = (), {**dict(zip(names, args)), **kwargs}
        super()._build(args, kwargs)
        self.__dict__["distance_function"] = distance.function if isinstance(distance, _OnPair) else distance


class SyncBatchNorm(_BatchNormBase):
    _definition = _definitions["SyncBatchNorm"]
    __doc__ = _definition.doc

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """The same network with every batch norm in it, or itself, counting over all processes."""
        from ... import nn

        if isinstance(layer, (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)) and not isinstance(layer, cls):
            told = layer._settings
            data_format = told.get("data_format", "NCHW")
            made = cls(layer._mean.shape[0], told["momentum"], told["epsilon"], data_format=data_format)
            for name, parameter in layer._parameters.items():
                setattr(made, name, parameter)
            made.training = layer.training
            return made
        for name, child in list(layer.named_children()):
            new = cls.convert_sync_batchnorm(child)
            if new is not child:
                setattr(layer, name, new)
        return layer
