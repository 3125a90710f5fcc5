"""Built-in layers with methods besides `forward`."""

from __future__ import annotations

from ... import _registry
from .builtin import BuiltinLayer

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


class SyncBatchNorm(BuiltinLayer):
    _definition = _definitions["SyncBatchNorm"]
    __doc__ = _definition.doc

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """The same network with every batch norm in it, or itself, counting over all processes."""
        from ... import nn

        if isinstance(layer, (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)) and not isinstance(layer, cls):
            told = layer._settings
            made = cls(layer._mean.shape[0], told["momentum"], told["epsilon"], data_format=told.get("data_format", "NCHW"))
            for name in ("weight", "bias"):
                if layer._parameters.get(name) is not None:
                    setattr(made, name, layer._parameters[name])
            for name in ("_mean", "_variance"):
                setattr(made, name, layer._buffers[name].clone())
            made.training = layer.training
            return made
        for name, child in list(layer.named_children()):
            new = cls.convert_sync_batchnorm(child)
            if new is not child:
                setattr(layer, name, new)
        return layer
