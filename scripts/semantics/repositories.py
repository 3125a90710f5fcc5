"""Small things that whole repositories stand on: initializers, containers, blocks of the zoo, guards."""
import copy

import numpy as np

from . import case

_ACTIVATIONS = (
    "relu swish hard_swish hard_sigmoid sigmoid tanh relu6 gelu elu mish silu brelu selu logsigmoid softsign "
    "tanh_shrink stanh hard_shrink thresholded_relu square abs exp softmax"
).split()


@case(each=_ACTIVATIONS)
def activations_of_batch_norm(paddle, act):
    x = paddle.to_tensor(np.linspace(-4, 4, 12, dtype="float32").reshape(2, 3, 2, 1))
    return paddle.nn.BatchNorm(3, act=act)(x)


@case(each=["linear", "identity"])
def unknown_activations_of_batch_norm(paddle, act):
    x = paddle.ones([2, 3, 2, 1])
    try:
        paddle.nn.BatchNorm(3, act=act)(x)
    except Exception:
        return "an error"


# ---- parameters and initializers


def the_block_of_a_parameter(paddle):
    p = paddle.nn.Linear(2, 2).weight
    paddle.nn.initializer.Constant(2.0)(p, p.block)
    return p.block is not None, p.block.idx, p.do_model_average, p.is_distributed, p


@case(each=[([4],), ([2, 3],), ([1],)])
def assigned_values_of_another_shape(paddle, shape):
    p = paddle.create_parameter(shape, "float32", default_initializer=paddle.nn.initializer.Assign(np.arange(6.0)))
    own = paddle.nn.Layer().create_parameter(
        shape, attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(np.ones([2, 2]))))
    return p, own, p.stop_gradient


_FILLERS = ["Constant", "Normal", "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "KaimingNormal",
            "KaimingUniform", "Orthogonal"]


@case(each=_FILLERS)
def initializers_fill_what_they_are_called_with(paddle, name):
    initializer = getattr(paddle.nn.initializer, name)()
    if name == "Constant":
        initializer = paddle.nn.initializer.Constant(3.0)
    parameter, tensor = paddle.create_parameter([40, 30], "float32"), paddle.full([40, 30], 100.0)
    before = parameter.clone()
    initializer(parameter)
    initializer(tensor)
    return bool((parameter != before).any()), bool((tensor < 50).all()), parameter.stop_gradient, tensor.stop_gradient


@case(each=["TruncatedNormal", "Normal", "Constant", "KaimingNormal"])
def a_tensor_in_the_place_of_a_number_fills_nothing(paddle, name):
    p = paddle.create_parameter([2, 3], "float32", default_initializer=paddle.nn.initializer.Constant(7.0))
    getattr(paddle.nn.initializer, name)(p)
    return p


def numbers_as_tensors(paddle):
    p = paddle.create_parameter([2], "float32")
    paddle.nn.initializer.Constant(paddle.to_tensor(2.5))(p)
    return p


def an_initializer_as_attribute(paddle):
    layer = paddle.nn.Linear(2, 2, weight_attr=paddle.nn.initializer.Constant(0.5), bias_attr=paddle.ParamAttr(
        name="my_bias", learning_rate=2.0, regularizer=paddle.regularizer.L2Decay(0.0), trainable=False))
    return layer.weight, layer.bias.name, layer.bias.trainable, layer.bias.optimize_attr["learning_rate"]


def guards(paddle):
    with paddle.static.amp.fp16_guard():
        x = paddle.ones([2]) * 2
    with paddle.static.name_scope("encoder"):
        x = x + 1
    with paddle.static.device_guard("cpu"):
        x = x + 1
    return x, len(paddle.static.cpu_places(2))


# ---- containers


def a_list_by_name(paddle):
    layers = paddle.nn.LayerList([paddle.nn.Linear(1, 1), paddle.nn.ReLU()])
    layers["0"] = paddle.nn.Tanh()
    return type(layers["0"]).__name__, type(layers["1"]).__name__, type(layers[-1]).__name__, len(layers)


def a_list_by_a_name_that_is_not_there(paddle):
    return paddle.nn.LayerList([paddle.nn.ReLU()])["5"]


def empty_places_in_a_list(paddle):
    nn = paddle.nn
    layers = nn.LayerList([None, nn.Linear(1, 1)])
    layers.append(None)
    layers.insert(0, None)
    layers.extend([None, nn.ReLU()])
    layers[2] = None
    kinds = [type(layer).__name__ for layer in layers]
    twin = copy.deepcopy(layers)
    layers.eval()
    return kinds, list(layers.state_dict()), len(layers.sublayers()), layers[0], repr(layers), len(twin)


def empty_places_in_other_containers(paddle):
    nn = paddle.nn
    chain, names = nn.Sequential(nn.ReLU(), None), nn.LayerDict({"a": None, "b": nn.ReLU()})
    layer = nn.Layer()
    layer.add_sublayer("empty", None)
    return repr(chain), len(chain), repr(names), layer.empty, list(layer.state_dict())


def what_is_no_layer_is_refused(paddle):
    try:
        paddle.nn.LayerList().append(3)
    except (AssertionError, TypeError):
        return "refused"


# ---- the zoo


def _shapes(net, paddle, size=32):
    return list(net(paddle.zeros([1, 3, size, size])).shape)


def blocks_of_resnet(paddle):
    from paddle.vision.models.resnet import BasicBlock, BottleneckBlock, ResNet

    nets = [ResNet(BasicBlock, 18, num_classes=4), ResNet(BottleneckBlock, 50, num_classes=0, with_pool=False)]
    return [_shapes(net, paddle) for net in nets], [BasicBlock.expansion, BottleneckBlock.expansion]


def settings_of_resnet(paddle):
    from paddle.vision.models.resnet import BottleneckBlock, ResNet

    net = ResNet(BottleneckBlock, 50, width=128, num_classes=7, groups=1)
    return [getattr(net, name) for name in "groups base_width num_classes with_pool inplanes dilation".split()]


def a_subclass_that_adds_a_stage(paddle):
    from paddle.vision.models.resnet import BasicBlock, ResNet

    class Longer(ResNet):
        def __init__(self):
            super().__init__(BasicBlock, 18, num_classes=0, with_pool=False)
            self.layer5 = self._make_layer(BasicBlock, 64, 2, stride=2)

        def forward(self, x):
            return self.layer5(super().forward(x))

    net = Longer()
    names = [n for n, _ in net.named_parameters() if n.startswith("layer5")]
    return _shapes(net, paddle, 64), names, net.inplanes


def a_subclass_that_makes_its_stages(paddle):
    from paddle.vision.models.resnet import BasicBlock, BottleneckBlock, ResNet

    asked = []

    class Counting(ResNet):
        def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
            asked.append([planes, blocks, stride, self.inplanes])
            return super()._make_layer(block, planes, min(blocks, 1), stride, dilate)

    net = Counting(BottleneckBlock, 50, num_classes=3)
    other = Counting(BasicBlock, depth=34, num_classes=3)
    names = [n for n, _ in net.named_parameters()]
    twin = copy.deepcopy(net)
    return asked, _shapes(net, paddle), _shapes(other, paddle), names, len(twin.parameters()), _shapes(twin, paddle)


def a_dilated_backbone(paddle):
    from paddle.vision.models.resnet import BottleneckBlock, ResNet

    class Dilated(ResNet):
        def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
            return super()._make_layer(block, planes, blocks, stride, dilate=planes >= 256)

    net = Dilated(BottleneckBlock, 50, num_classes=0, with_pool=False)
    return _shapes(net, paddle, 64), net.dilation, net.layer4[0].conv2._dilation


def a_block_of_ones_own(paddle):
    from paddle.vision.models.resnet import BasicBlock, ResNet

    class Squeezed(BasicBlock):
        def __init__(self, inplanes, planes, *more, **named):
            super().__init__(inplanes, planes, *more, **named)
            self.gate = paddle.nn.Linear(planes, planes)

        def forward(self, x):
            y = super().forward(x)
            return y * paddle.nn.functional.sigmoid(self.gate(y.mean([2, 3]))).unsqueeze([2, 3])

    net = ResNet(Squeezed, 18, num_classes=5)
    return _shapes(net, paddle), sum("gate" in n for n, _ in net.named_parameters())


def a_subclass_with_a_forward_of_its_own(paddle):
    from paddle.vision.models.resnet import BasicBlock, ResNet

    class Features(ResNet):
        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            found = []
            for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
                x = stage(x)
                found.append(x)
            return found

    return [list(y.shape) for y in Features(BasicBlock, 18, num_classes=0)(paddle.zeros([1, 3, 64, 64]))]


def layers_of_other_models_replaced(paddle):
    from paddle.vision import models
    from paddle.vision.models.vgg import make_layers

    nn = paddle.nn
    mobile = models.mobilenet_v2(num_classes=10)
    mobile.classifier = nn.Linear(1280, 3)
    vgg = models.VGG(make_layers([8, "M", 16, "M"]), num_classes=0, with_pool=False)
    names = [n for n, _ in vgg.named_parameters()]
    return names, mobile.num_classes, mobile.with_pool, type(mobile.features).__name__, _shapes(mobile, paddle)


_IMPORTS = """
nn.functional.activation:relu nn.functional.common:interpolate nn.functional.conv:conv2d nn.functional.loss:cross_entropy
nn.functional.norm:batch_norm nn.functional.pooling:max_pool2d nn.functional.vision:grid_sample nn.functional.input:one_hot
nn.functional.extension:sequence_mask nn.initializer.initializer:Initializer nn.initializer.kaiming:KaimingNormal
nn.initializer.constant:Constant nn.initializer.normal:TruncatedNormal nn.initializer.xavier:XavierUniform
nn.layer.norm:_BatchNormBase nn.layer.norm:BatchNorm2D nn.layer.norm:_InstanceNormBase nn.layer.conv:_ConvNd
nn.layer.conv:Conv2D nn.layer.activation:ReLU nn.layer.common:Linear nn.layer.loss:MSELoss nn.layer.pooling:MaxPool2D
nn.layer.transformer:_convert_attention_mask nn.layer.transformer:_convert_param_attr_to_list nn.layer.container:LayerList
nn.utils.weight_norm_hook:weight_norm nn.utils.spectral_norm_hook:spectral_norm optimizer.adam:Adam optimizer.adamw:AdamW
optimizer.optimizer:Optimizer optimizer.lr:LRScheduler framework.io:save framework.random:get_rng_state framework:core
framework:in_dynamic_or_pir_mode framework:convert_np_dtype_to_dtype_
base.framework:EagerParamBase base.param_attr:ParamAttr base.unique_name:generate base.core:VarDesc base.dygraph.base:guard
io.dataloader.collate:default_collate_fn io.dataloader.dataset:Dataset io.dataloader.sampler:Sampler
io.dataloader.batch_sampler:BatchSampler io.reader:DataLoader metric.metrics:Metric hapi.callbacks:Callback
vision.models._utils:_make_divisible vision.models._utils:IntermediateLayerGetter vision.models.resnet:BasicBlock
vision.models.resnet:model_urls static.amp:fp16_guard base.layer_helper:LayerHelper base.log_helper:get_logger
base.wrapped_decorator:signature_safe_contextmanager tensor.creation:full tensor.manipulation:concat utils:try_import
utils.download:get_weights_path_from_url distributed.parallel:DataParallel autograd.py_layer:PyLayer
"""


@case(each=_IMPORTS.split())
def imports(paddle, path):
    import importlib

    module, _, name = path.partition(":")
    return hasattr(importlib.import_module(f"paddle.{module}"), name)


def families_of_layers(paddle):
    from paddle.nn.layer.conv import _ConvNd
    from paddle.nn.layer.norm import _BatchNormBase, _InstanceNormBase

    nn = paddle.nn
    names = "BatchNorm BatchNorm1D BatchNorm2D SyncBatchNorm InstanceNorm2D GroupNorm Conv2D Conv3DTranspose Linear".split()
    bases = (_BatchNormBase, _InstanceNormBase, _ConvNd)
    return {name: [issubclass(getattr(nn, name), base) for base in bases] for name in names}


def outputs_of_inner_layers(paddle):
    from paddle.vision.models._utils import IntermediateLayerGetter, _make_divisible

    net = IntermediateLayerGetter(paddle.vision.models.resnet18(), {"layer1": "low", "layer3": "high", "fc": "last"})
    found = {name: list(y.shape) for name, y in net(paddle.zeros([1, 3, 64, 64])).items()}
    return found, len(net), [_make_divisible(n) for n in (1, 12, 17, 30, 90.5)]


def attributes_and_masks_of_a_transformer(paddle):
    from paddle.nn.layer.transformer import _convert_attention_mask, _convert_param_attr_to_list

    named = [a.name for a in _convert_param_attr_to_list(paddle.ParamAttr(name="w"), 2)]
    masks = [_convert_attention_mask(paddle.to_tensor(m), paddle.float32) for m in ([True, False], [1, 0], [0.5, 1.0])]
    return named, _convert_param_attr_to_list(False, 2), len(_convert_param_attr_to_list([None, None], 2)), masks


# ---- parameters and control flow by functions


def a_parameter_of_a_tensor(paddle):
    from paddle.base.framework import EagerParamBase

    tensor = paddle.ones([2])
    p, frozen = EagerParamBase.from_tensor(tensor), EagerParamBase.from_tensor(tensor, trainable=False, name="mine")
    p.set_value(paddle.zeros([2]))
    return tensor, p.stop_gradient, p.persistable, frozen.name, frozen.stop_gradient, frozen.trainable


def names_of_built_in_layers(paddle):
    layer = paddle.nn.Linear(2, 2)
    return layer._full_name == layer.full_name(), layer._dtype, sorted(layer._parameters)


def one_of_several_functions(paddle):
    nn, x = paddle.static.nn, paddle.to_tensor([2.0], stop_gradient=False)
    y = nn.cond(x > 1, lambda: x * 2, lambda: x * 3)
    y.backward()
    pairs = [(x < 1, lambda: 1), (x > 1, lambda: 2)]
    return [
        y, x.grad, nn.cond(x < 1, lambda: x), nn.cond(x > 1, None, lambda: x), nn.case(pairs), nn.case(pairs[:1], lambda: 3),
        nn.case(pairs[:1]), nn.switch_case(paddle.to_tensor([1]), {1: lambda: 10, 2: lambda: 20}),
        nn.switch_case(paddle.to_tensor(0), [lambda: 10, lambda: 20]), nn.switch_case(paddle.to_tensor(7), [lambda: 10, lambda: 20]),
        nn.switch_case(paddle.to_tensor(7), [(5, lambda: 10), (6, lambda: 20)], default=lambda: 30),
    ]


def a_loop_by_functions(paddle):
    loop = paddle.static.nn.while_loop
    both = loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * 2], [paddle.zeros([1]), paddle.ones([2])])
    one = loop(lambda i: i < 3, lambda i: i + 1, (paddle.zeros([1]),))
    return both, type(both).__name__, one, type(one).__name__


@case(each=[0, 1])
def a_loop_that_loses_count(paddle, count):
    return paddle.static.nn.while_loop(lambda *v: v[0] < 3, lambda i: [i + 1] * 2, [paddle.zeros([1])] * count)
