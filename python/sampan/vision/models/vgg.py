"""VGG."""

from ... import _core
from ...nn import BatchNorm2D, Conv2D, MaxPool2D, ReLU, Sequential
from ._make import family

# Channels of the convolutions in a row; "M" is a maximum that halves the picture. By the letters of the paper.
cfgs = {
    letter: [n for channels, count in zip((64, 128, 256, 512, 512), counts) for n in (*[channels] * count, "M")]
    for letter, counts in {"A": (1, 1, 2, 2, 2), "B": (2,) * 5, "D": (2, 2, 3, 3, 3), "E": (2, 2, 4, 4, 4)}.items()
}


def make_layers(cfg, batch_norm=False) -> Sequential:
    """The layers of a VGG of one's own before its head, from a list like those in `cfgs`."""
    layers, inputs = [], 3
    for channels in cfg:
        if channels == "M":
            layers.append(MaxPool2D(2, 2))
            continue
        layers += [Conv2D(inputs, channels, 3, padding=1), *([BatchNorm2D(channels)] if batch_norm else []), ReLU()]
        inputs = channels
    return Sequential(*layers)


class _Features:
    """The layers of a known VGG before its head; made anew wherever they are wanted, so that a model can be copied."""

    def __init__(self, name: str, batch_norm: bool):
        self.name, self.batch_norm = name, batch_norm

    @property
    def _core(self):
        (features,), _ = _core._model_arguments(self.name, {"batch_norm": self.batch_norm})
        return features


def _arguments(name: str, kwargs: dict):
    kwargs = dict(kwargs)
    return [_Features(name, kwargs.pop("batch_norm", False))], kwargs


__all__ = family(globals(), "VGG", arguments=_arguments)
