"""ResNet, ResNeXt and wide ResNet, and the blocks they are made of."""

from __future__ import annotations

from ... import _registry
from ...nn import BatchNorm2D, Conv2D, Sequential
from ...nn.layer.builtin import BuiltinLayer
from ._make import family

_BLOCKS = _registry.classes("vision.models.resnet")


class _Block(BuiltinLayer):
    expansion: int

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
    ):
        super().__init__(inplanes, planes, stride, downsample, groups, base_width, dilation)
        if norm_layer not in (None, BatchNorm2D):
            for name, layer in list(self.named_children()):
                if name.startswith("bn"):
                    setattr(self, name, norm_layer(layer.weight.shape[0]))


class BasicBlock(_Block):
    __doc__ = _BLOCKS["BasicBlock"].doc
    _definition = _BLOCKS["BasicBlock"]
    expansion = 1


class BottleneckBlock(_Block):
    __doc__ = _BLOCKS["BottleneckBlock"].doc
    _definition = _BLOCKS["BottleneckBlock"]
    expansion = 4


class ResNet(BuiltinLayer):
    __doc__ = _registry.classes("vision.models")["ResNet"].doc
    _definition = _registry.classes("vision.models")["ResNet"]

    def __init__(self, block, depth=50, width=64, num_classes=1000, with_pool=True, groups=1):
        # The core knows its own blocks by name, and calls for others.
        if block in (BasicBlock, BottleneckBlock):
            block = block.__name__
        elif isinstance(block, type):
            block = [block.expansion, _Maker(block)]
        super().__init__(block, depth, width, num_classes, with_pool, groups)

    def _adopt(self, core, settings, given, memo, root):
        super()._adopt(core, settings, given, memo, root)
        # Blocks of a class of the user's that are the core's layers too.
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4) if given else ():
            for name, block in stage._sub_layers.items():
                stage._sub_layers[name] = next((g for g in given if block._core.is_same(g._core)), block)


class _Maker:
    """Makes a block of the user's from the arguments that the core lists."""

    def __init__(self, block: type):
        self.block = block
        # Those made last, for the model that is being built to find.
        self.layers: list = []

    def __getstate__(self):
        return {"block": self.block, "layers": []}

    def __call__(self, arguments):
        inplanes, planes, stride, downsample, *rest = arguments
        if downsample is not None:
            # The same again as layers of Python, which stand for themselves.
            planes_out = planes * self.block.expansion
            downsample = Sequential(
                Conv2D(inplanes, planes_out, 1, stride=stride, bias_attr=False), BatchNorm2D(planes_out)
            )
        made = self.block(inplanes, planes, stride, downsample, *rest, BatchNorm2D)
        self.layers.append(made)
        return made


__all__ = ["BasicBlock", "BottleneckBlock", *family(globals(), "ResNet")]
