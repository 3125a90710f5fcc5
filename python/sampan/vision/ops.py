"""Boxes, regions, deformable convolution, detectors, image bytes: Paddle's `vision.ops`."""

from __future__ import annotations

from .. import _registry, nn
from .._core import to_tensor_py as to_tensor
from ..nn.layer.builtin import _OTHERS, BuiltinLayer

globals().update(_registry.functions("vision.ops"))
globals().update(_registry.plain_functions("vision.ops"))


class RoIAlign(BuiltinLayer):
    __doc__ = _registry.classes("vision.ops")["RoIAlign"].doc
    _definition = _registry.classes("vision.ops")["RoIAlign"]

    def forward(self, x, boxes, boxes_num, aligned=True):
        return self._core.forward(x, boxes, boxes_num, to_tensor(bool(aligned)))


_CLASSES = ["RoIAlign", *_registry.define(globals(), "vision.ops", BuiltinLayer)]


class ConvNormActivation(nn.Sequential):
    """A convolution, a normalization and an activation, each left out where its class is None.

    >>> import sampan
    >>> block = sampan.vision.ops.ConvNormActivation(3, 8, stride=2)
    >>> block(sampan.ones([1, 3, 8, 8])).shape
    [1, 8, 4, 4]
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=3,
        stride=1,
        padding=None,
        groups=1,
        norm_layer=nn.BatchNorm2D,
        activation_layer=nn.ReLU,
        dilation=1,
        bias=None,
    ):
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        biased = norm_layer is None if bias is None else bias
        conv = nn.Conv2D(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias_attr=None if biased else False
        )
        norm = [] if norm_layer is None else [norm_layer(out_channels)]
        activation = [] if activation_layer is None else [activation_layer()]
        super().__init__(conv, *norm, *activation)


# Those inside a model of the core, which fills them.
_OTHERS["ConvNormActivation"] = type(
    "ConvNormActivation", (ConvNormActivation,), {"__module__": __name__, "__init__": lambda self: nn.Sequential.__init__(self)}
)

__all__ = sorted(
    {*_registry.functions("vision.ops"), *_registry.plain_functions("vision.ops"), *_CLASSES, "ConvNormActivation"}
)
