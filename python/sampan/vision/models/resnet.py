"""ResNet, ResNeXt and wide ResNet, and the blocks they are made of."""

from __future__ import annotations

from ... import _registry
from ...nn import BatchNorm2D, Conv2D, Identity, Sequential
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
        # The core knows its own blocks by name, and calls for others. A subclass that makes the stages itself gets them
        # in the place of the core's.
        own = type(self)._make_layer is not ResNet._make_layer
        made = block
        if own:
            made = [block.expansion, _Plan()]
        elif block in (BasicBlock, BottleneckBlock):
            made = block.__name__
        elif isinstance(block, type):
            made = [block.expansion, _Maker(block)]
        super().__init__(made, depth, width, num_classes, with_pool, groups)
        expansion = getattr(block, "expansion", 1)
        self.__dict__.update(base_width=width, inplanes=512 * expansion, dilation=1, _norm_layer=BatchNorm2D)
        if own:
            self.inplanes = 64
            for i, (planes, blocks, stride) in enumerate(made[1].stages(), 1):
                setattr(self, f"layer{i}", self._make_layer(block, planes, blocks, stride))

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        """A stage of `blocks` blocks that goes on from the one made last; a subclass may call it for more stages, or
        make them in another way."""
        norm, before, out = self._norm_layer, self.dilation, planes * block.expansion
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample = None
        if stride != 1 or self.inplanes != out:
            downsample = Sequential(Conv2D(self.inplanes, out, 1, stride=stride, bias_attr=False), norm(out))
        layers = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, norm)]
        self.inplanes = out
        for _ in range(1, blocks):
            layers.append(block(out, planes, groups=self.groups, base_width=self.base_width, norm_layer=norm))
        return Sequential(*layers)

    def _adopt(self, core, settings, given, memo, root):
        super()._adopt(core, settings, given, memo, root)
        # Blocks of a class of the user's that are the core's layers too.
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4) if given else ():
            for name, block in stage._sub_layers.items():
                stage._sub_layers[name] = next((g for g in given if block._core.is_same(g._core)), block)


class _Plan:
    """Notes which blocks the core asks for, and makes none."""

    def __init__(self):
        self.layers: list = []
        self._asked: list = []

    def __call__(self, arguments):
        self._asked.append(arguments[:3])
        return Identity()

    def stages(self) -> list[tuple[int, int, int]]:
        """Planes, number of blocks and first stride of each stage."""
        found: dict[int, list[int]] = {}
        for _, planes, stride in self._asked:
            found.setdefault(planes, []).append(stride)
        return [(planes, len(strides), strides[0]) for planes, strides in found.items()]


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
