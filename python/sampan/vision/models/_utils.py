"""What programs import from Paddle's models besides the models."""

from __future__ import annotations

from ...nn import LayerDict, Linear


def _make_divisible(v, divisor=8, min_value=None):
    """A number of channels rounded to a multiple of `divisor`, but not below nine tenths of it."""
    rounded = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


class IntermediateLayerGetter(LayerDict):
    """The children of a model one after another, up to the last that is wanted: gives the outputs of those named in
    `return_layers`, by the names that it maps them to.

    >>> from sampan.vision import models
    >>> from sampan.vision.models._utils import IntermediateLayerGetter
    >>> import sampan
    >>> part = IntermediateLayerGetter(models.resnet18(), {"layer1": "low", "layer3": "high"})
    >>> {name: y.shape for name, y in part(sampan.zeros([1, 3, 64, 64])).items()}
    {'low': [1, 64, 16, 16], 'high': [1, 256, 4, 4]}
    """

    def __init__(self, model, return_layers: dict):
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ValueError(
                f"(InvalidArgument) IntermediateLayerGetter: {type(model).__name__} has the layers {list(children)}, "
                f"received {list(return_layers)}."
            )
        last = max(list(children).index(name) for name in return_layers)
        super().__init__(dict(list(children.items())[: last + 1]))
        self.return_layers = dict(return_layers)

    def forward(self, x) -> dict:
        out = {}
        for name, layer in self.items():
            # A head looks at flat features.
            head = isinstance(layer, Linear) or isinstance(next(iter(layer.sublayers()), None), Linear)
            x = layer(x.flatten(1) if head and x.ndim == 4 else x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out
