"""Networks on a grid of codes: after training, and while training."""

from __future__ import annotations

import copy

from ..nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from .base import BaseQuanter
from .config import ObserveWrapper


class Quantization:
    """What `PTQ` and `QAT` have in common."""

    def __init__(self, config):
        self._config = copy.deepcopy(config)

    def _prepare(self, model):
        self._config._specify(model)
        self._replace(model, self._config._quanted)
        self._replace(model, self._config._observed)
        return model

    def _replace(self, model, change):
        for name, child in list(model.named_children()):
            if isinstance(child, (ConvertibleQuantedLayer, ObserveWrapper, BaseQuanter)):
                continue
            other = change(child)
            if other is not None:
                model.add_sublayer(name, other)
            else:
                self._replace(child, change)

    def convert(self, model, inplace=False, remain_weight=False):
        """The network for inference: weights are codes, and ranges are fixed. `jit.save` writes it as such."""
        model = model if inplace else copy.deepcopy(model)
        for name, child in list(model.named_children()):
            if isinstance(child, ConvertibleQuantedLayer):
                child._convert(remain_weight=remain_weight)
            elif isinstance(child, BaseQuanter):
                if child.scales() is not None:
                    model.add_sublayer(name, LinearQuanterDequanter.from_quanter(child))
            else:
                self.convert(child, inplace=True, remain_weight=remain_weight)
        return model

    def __repr__(self):
        return self._config.details()


class PTQ(Quantization):
    """Quantisation after training: `quantize` makes a network that watches, examples go through it, `convert` fixes the grid.

    >>> import sampan
    >>> from sampan.quantization import PTQ, QuantConfig
    >>> from sampan.quantization.observers import AbsmaxObserver
    >>> net = sampan.nn.Sequential(sampan.nn.Linear(4, 8), sampan.nn.ReLU(), sampan.nn.Linear(8, 2))
    >>> net.eval()
    >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    >>> watching = ptq.quantize(net)
    >>> x = sampan.randn([32, 4])
    >>> _ = watching(x)
    >>> small = ptq.convert(watching)
    >>> bool((small(x) - net(x)).abs().max() < 0.1)
    True
    """

    def quantize(self, model, inplace=False):
        if inplace and model.training:
            raise RuntimeError("(PreconditionNotMet) PTQ: the model is in training mode. Hint: call model.eval() first.")
        if not inplace:
            model = copy.deepcopy(model)
            model.eval()
        return self._prepare(model)


class QAT(Quantization):
    """Quantisation while training: `quantize` makes a network that computes on a grid and learns to live with it."""

    def quantize(self, model, inplace=False):
        if not model.training:
            raise RuntimeError("(PreconditionNotMet) QAT: the model is in eval mode. Hint: call model.train() first.")
        return self._prepare(model if inplace else copy.deepcopy(model))
