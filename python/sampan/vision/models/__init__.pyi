# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype


from sampan.nn.layer.builtin import BuiltinLayer
from sampan.vision.models.resnet import _Block

from .alexnet import *

from .densenet import *

from .googlenet import *

from .inceptionv3 import *

from .lenet import *

from .mobilenetv1 import *

from .mobilenetv2 import *

from .mobilenetv3 import *

from .resnet import *

from .shufflenetv2 import *

from .squeezenet import *

from .vgg import *

class AlexNet(BuiltinLayer):
    """AlexNet for images `[n, 3, 224, 224]`. Without classes (`num_classes <= 0`) it ends with its features."""

    def __init__(self, num_classes: _int = 1000, name: _str | None = None, **kwargs: Any) -> None: ...


class BasicBlock(_Block):
    """Two 3 by 3 convolutions and a way around them, on which `downsample` fits the input to the output where they
    differ.
    """

    def __init__(self, inplanes: _int, planes: _int, stride: _int = 1, downsample: Any = None, groups: _int = 1, base_width: _int = 64, dilation: _int = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class BottleneckBlock(_Block):
    """A 3 by 3 convolution in `groups` groups between two of 1 by 1, and a way around them; `planes * 4` channels come
    out, and `planes * base_width / 64` for each group lie in the middle.
    """

    def __init__(self, inplanes: _int, planes: _int, stride: _int = 1, downsample: Any = None, groups: _int = 1, base_width: _int = 64, dilation: _int = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class DenseNet(BuiltinLayer):
    """Blocks in which each layer sees what all before it made: `layers` is 121, 161, 169, 201 or 264; `bn_size` times the
    growth is the width inside a layer. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, layers: _int = 121, bn_size: _int = 4, dropout: _float = 0.0, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class GoogLeNet(BuiltinLayer):
    """Inception blocks for images `[n, 3, 224, 224]`, with one head at the end and two on the way: `call_all` gives the outputs
    of all three, `call` the last one's. Without classes (`num_classes <= 0`) or pooling (`with_pool`) they end
    earlier.
    """

    def __init__(self, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class InceptionV3(BuiltinLayer):
    """Blocks of branches side by side, for images `[n, 3, 299, 299]`. Without classes (`num_classes <= 0`) or pooling
    (`with_pool`) it ends earlier.
    """

    def __init__(self, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class LeNet(BuiltinLayer):
    """LeNet-5 for images `[n, 1, 28, 28]`. Without classes (`num_classes <= 0`) it ends with its features."""

    def __init__(self, num_classes: _int = 10, name: _str | None = None, **kwargs: Any) -> None: ...


class MobileNetV1(BuiltinLayer):
    """MobileNet of depthwise separable convolutions, with `scale` times as many channels. Without classes
    (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, scale: _float = 1.0, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class MobileNetV2(BuiltinLayer):
    """MobileNet of inverted residual blocks, with `scale` times as many channels. Without classes (`num_classes <= 0`) or
    pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, scale: _float = 1.0, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class MobileNetV3Large(BuiltinLayer):
    """The large MobileNet of version 3, with `scale` times as many channels. Without classes (`num_classes <= 0`) or pooling
    (`with_pool`) it ends earlier.
    """

    def __init__(self, scale: _float = 1.0, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class MobileNetV3Small(BuiltinLayer):
    """The small MobileNet of version 3, with `scale` times as many channels. Without classes (`num_classes <= 0`) or pooling
    (`with_pool`) it ends earlier.
    """

    def __init__(self, scale: _float = 1.0, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class ResNet(BuiltinLayer):
    """Residual blocks in four stages: `depth` is 18, 34, 50, 101 or 152; `width` and `groups` widen the middle of a
    bottleneck. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, block: Any, depth: _int = 50, width: _int = 64, num_classes: _int = 1000, with_pool: _bool = True, groups: _int = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class ShuffleNetV2(BuiltinLayer):
    """ShuffleNet of blocks that mix two halves of the channels: `scale` is 0.25, 0.33, 0.5, 1, 1.5 or 2, `act` is
    `"relu"`, `"swish"` or `None`. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, scale: _float = 1.0, act: _str | None = 'relu', num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class SqueezeNet(BuiltinLayer):
    """Fire modules, of `version` `"1.0"` or `"1.1"`, which needs less than half the work. Without classes
    (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, version: _str, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class VGG(BuiltinLayer):
    """`features`, which end with 512 channels, pooled to 7 by 7 and classified by three layers with dropout. Without
    classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    """

    def __init__(self, features: Any, num_classes: _int = 1000, with_pool: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


__all__ = ['AlexNet', 'BasicBlock', 'BottleneckBlock', 'DenseNet', 'GoogLeNet', 'InceptionV3', 'LeNet', 'MobileNetV1', 'MobileNetV2', 'MobileNetV3Large', 'MobileNetV3Small', 'ResNet', 'ShuffleNetV2', 'SqueezeNet', 'VGG', 'alexnet', 'densenet', 'densenet121', 'densenet161', 'densenet169', 'densenet201', 'densenet264', 'googlenet', 'inception_v3', 'inceptionv3', 'lenet', 'mobilenet_v1', 'mobilenet_v2', 'mobilenet_v3_large', 'mobilenet_v3_small', 'mobilenetv1', 'mobilenetv2', 'mobilenetv3', 'resnet', 'resnet101', 'resnet152', 'resnet18', 'resnet34', 'resnet50', 'resnext101_32x4d', 'resnext101_64x4d', 'resnext152_32x4d', 'resnext152_64x4d', 'resnext50_32x4d', 'resnext50_64x4d', 'shufflenet_v2_swish', 'shufflenet_v2_x0_25', 'shufflenet_v2_x0_33', 'shufflenet_v2_x0_5', 'shufflenet_v2_x1_0', 'shufflenet_v2_x1_5', 'shufflenet_v2_x2_0', 'shufflenetv2', 'squeezenet', 'squeezenet1_0', 'squeezenet1_1', 'vgg', 'vgg11', 'vgg13', 'vgg16', 'vgg19', 'wide_resnet101_2', 'wide_resnet50_2']
