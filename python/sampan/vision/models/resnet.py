"""ResNet, ResNeXt and wide ResNet, and the blocks they are made of."""

from __future__ import annotations

from ... import _registry
from ...nn.layer.builtin import _OTHERS, BuiltinLayer, _wrap
from ._make import Model, family

_BLOCKS = _registry.classes("vision.models.resnet")


class _Block(BuiltinLayer):
    expansion: int

    def __init__(self, *args, norm_layer=None, **kwargs):
        super().__init__(*args, **kwargs)
        if norm_layer is not None:
            for name, layer in list(self.named_children()):
                if name.startswith("bn"):
                    setattr(self, name, norm_layer(layer.weight.shape[0]))


class BasicBlock(_Block):
    __doc__ = _BLOCKS["BasicBlock"].doc
    __text_signature__ = _BLOCKS["BasicBlock"].text_signature
    _definition = _BLOCKS["BasicBlock"]
    expansion = 1


class BottleneckBlock(_Block):
    __doc__ = _BLOCKS["BottleneckBlock"].doc
    __text_signature__ = _BLOCKS["BottleneckBlock"].text_signature
    _definition = _BLOCKS["BottleneckBlock"]
    expansion = 4


# Those inside a model are of these classes too.
_OTHERS.update(BasicBlock=BasicBlock, BottleneckBlock=BottleneckBlock)


class ResNet(Model):
    __doc__ = _registry.classes("vision.models")["ResNet"].doc
    __text_signature__ = _registry.classes("vision.models")["ResNet"].text_signature
    _definition = _registry.classes("vision.models")["ResNet"]

    def __init__(self, block, *args, **kwargs):
        # The core knows its own blocks by name, and calls for others.
        own = [block.expansion, _Maker(block)] if isinstance(block, type) else block
        super().__init__(block.__name__ if block in (BasicBlock, BottleneckBlock) else own, *args, **kwargs)


class _Maker:
    """Makes a block of the user's from the arguments that the core lists."""

    def __init__(self, block: type):
        self.block = block

    def __call__(self, arguments):
        from ... import nn

        inplanes, planes, stride, downsample, *rest = arguments
        if downsample is not None:
            downsample = nn.Sequential(*_wrap("Sequential", downsample, {}, lambda: None))
        return self.block(inplanes, planes, stride, downsample, *rest, nn.BatchNorm2D)


__all__ = ["BasicBlock", "BottleneckBlock", *family(globals(), "ResNet")]
