# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry, nn as nn

from .._core import to_tensor_py as to_tensor

from ..nn.layer.builtin import _OTHERS as _OTHERS, BuiltinLayer as BuiltinLayer

class RoIAlign(BuiltinLayer):
    __doc__ = _registry.classes('vision.ops')['RoIAlign'].doc
    _definition = _registry.classes('vision.ops')['RoIAlign']

    def forward(self, x, boxes, boxes_num, aligned=True):
        ...

class ConvNormActivation(nn.Sequential):
    """A convolution, a normalization and an activation, each left out where its class is None.

    >>> import sampan
    >>> block = sampan.vision.ops.ConvNormActivation(3, 8, stride=2)
    >>> block(sampan.ones([1, 3, 8, 8])).shape
    [1, 8, 4, 4]
    """

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2D, activation_layer=nn.ReLU, dilation=1, bias=None):
        ...

class DeformConv2D(BuiltinLayer):
    """[`deform_conv2d`] with a weight and a bias of its own. Takes `x`, `offset` and, in the second version, `mask`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, deformable_groups: _int = 1, groups: _int = 1, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class PSRoIPool(BuiltinLayer):
    """[`psroi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`."""

    def __init__(self, output_size: _int | Sequence[_int] | Tensor, spatial_scale: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class RoIPool(BuiltinLayer):
    """[`roi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`."""

    def __init__(self, output_size: _int | Sequence[_int] | Tensor, spatial_scale: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


__all__ = ['BuiltinLayer', 'ConvNormActivation', 'DeformConv2D', 'PSRoIPool', 'RoIAlign', 'RoIPool', 'box_coder', 'decode_jpeg', 'deform_conv2d', 'distribute_fpn_proposals', 'generate_proposals', 'matrix_nms', 'nms', 'nn', 'prior_box', 'psroi_pool', 'read_file', 'roi_align', 'roi_pool', 'to_tensor', 'yolo_box', 'yolo_loss']
