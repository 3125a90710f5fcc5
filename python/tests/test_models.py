"""`sampan.vision.models`: Paddle's names of layers and parameters, replaced parts, hooks, blocks of one's own."""

import copy
import hashlib
import inspect
import os
import pickle

import numpy as np
import pytest
import sampan
from sampan import nn
from sampan.vision import models

# Recorded from Paddle 3.3.1: entries of the state, numbers in them, layers inside, digests of the names of both.
PADDLE = {
    "resnet18": (102, 11699112, 67, "c5bafbd2", "7dd9af6a"),
    "resnet34": (182, 21814696, 115, "26ef1bd9", "3ab7b141"),
    "resnet50": (267, 25610152, 150, "288ec4fb", "47301d3f"),
    "resnet101": (522, 44654504, 286, "66565433", "49829bb6"),
    "resnet152": (777, 60344232, 422, "daeac3ad", "e394148d"),
    "resnext50_32x4d": (267, 25097128, 150, "288ec4fb", "47301d3f"),
    "resnext50_64x4d": (267, 45290920, 150, "288ec4fb", "47301d3f"),
    "resnext101_32x4d": (522, 44315560, 286, "66565433", "49829bb6"),
    "resnext101_64x4d": (522, 83658152, 286, "66565433", "49829bb6"),
    "resnext152_32x4d": (777, 60150696, 422, "daeac3ad", "e394148d"),
    "resnext152_64x4d": (777, 115266984, 422, "daeac3ad", "e394148d"),
    "wide_resnet50_2": (267, 68951464, 150, "288ec4fb", "47301d3f"),
    "wide_resnet101_2": (522, 127024552, 286, "66565433", "49829bb6"),
    "vgg11": (22, 132863336, 31, "bcb5ecbf", "4614e562"),
    "vgg13": (26, 133047848, 35, "a9b84e80", "5ee0cfc5"),
    "vgg16": (32, 138357544, 41, "9400391a", "695fd29b"),
    "vgg19": (38, 143667240, 47, "8131a928", "9c61c325"),
    "mobilenet_v1": (137, 4253864, 123, "9e79a8db", "aee0dc9d"),
    "mobilenet_v2": (262, 3538984, 213, "41728084", "5a11ebdf"),
    "mobilenet_v3_small": (210, 2554968, 197, "e7a2a2e1", "37850cc9"),
    "mobilenet_v3_large": (266, 5507432, 239, "67b23060", "8cb0181f"),
    "LeNet": (10, 61610, 11, "70b9e759", "1aec66b3"),
    "densenet121": (606, 8062504, 432, "e4e06521", "64c3273f"),
    "densenet161": (806, 28900936, 572, "b8322f55", "505feff3"),
    "densenet169": (846, 14307880, 600, "0624e275", "f9f1a729"),
    "densenet201": (1006, 20242984, 712, "8883dad5", "9602e5e3"),
    "densenet264": (1326, 33736232, 936, "ee7a19d0", "df4c48fe"),
    "alexnet": (16, 61100840, 19, "6b368b73", "ce455af3"),
    "inception_v3": (472, 23869000, 404, "c5fb4f74", "3e4ad889"),
    "squeezenet1_0": (52, 1248424, 61, "10b5fe3b", "6495bf31"),
    "squeezenet1_1": (52, 1235496, 61, "10b5fe3b", "6495bf31"),
    "googlenet": (69, 11535736, 148, "030b21f6", "2099551d"),
    "shufflenet_v2_x0_25": (282, 607712, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_x0_33": (282, 652264, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_x0_5": (282, 1374744, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_x1_0": (282, 2294784, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_x1_5": (282, 3527064, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_x2_0": (282, 7399952, 224, "7869b131", "8cb14194"),
    "shufflenet_v2_swish": (282, 2294784, 224, "7869b131", "4fd9bd43"),
}
NAMES = """resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d resnext50_64x4d resnext101_32x4d resnext101_64x4d
resnext152_32x4d resnext152_64x4d wide_resnet50_2 wide_resnet101_2 vgg11 vgg13 vgg16 vgg19 mobilenet_v1 mobilenet_v2
mobilenet_v3_small mobilenet_v3_large densenet121 densenet161 densenet169 densenet201 densenet264 alexnet inception_v3
squeezenet1_0 squeezenet1_1 googlenet shufflenet_v2_x0_25 shufflenet_v2_x0_33 shufflenet_v2_x0_5 shufflenet_v2_x1_0
shufflenet_v2_x1_5 shufflenet_v2_x2_0 shufflenet_v2_swish""".split()
CLASSES = """ResNet VGG MobileNetV1 MobileNetV2 MobileNetV3Small MobileNetV3Large LeNet DenseNet AlexNet InceptionV3 SqueezeNet
GoogLeNet ShuffleNetV2""".split()


def digest(names):
    return hashlib.md5(" ".join(names).encode()).hexdigest()[:8]


def test_all_names_are_there():
    for name in NAMES:
        function = getattr(models, name)
        assert next(iter(inspect.signature(function).parameters)) == "pretrained" and name == function.__name__
        assert getattr(sampan.vision, name) is function
    for name in CLASSES:
        assert issubclass(getattr(models, name), nn.Layer) and getattr(sampan.vision, name) is getattr(models, name)


@pytest.fixture
def zeros():
    """First values that cost nothing."""
    nn.initializer.set_global_initializer(nn.initializer.Constant(0.0), nn.initializer.Constant(0.0))
    yield
    nn.initializer.set_global_initializer(None)


# The others are deeper and wider of the same; SAMPAN_ALL_MODELS=1 builds them too.
LIGHT = [name for name, (entries, numbers, *_) in PADDLE.items() if entries < 650 and numbers < 3e7]


@pytest.mark.parametrize("name", PADDLE if os.environ.get("SAMPAN_ALL_MODELS") else LIGHT)
def test_layers_and_state_have_paddles_names(name, zeros):
    net = getattr(models, name)()
    state = net.state_dict()
    count = sum(t.size for t in state.values())
    layers = [f"{path}:{type(layer).__name__}" for path, layer in net.named_sublayers()]
    assert (len(state), count, len(layers), digest(state), digest(layers)) == PADDLE[name]


@pytest.mark.parametrize(
    "name, size, more",
    [
        ("resnet18", 32, {}),
        ("mobilenet_v1", 32, {"scale": 0.25}),
        ("mobilenet_v2", 32, {"scale": 0.25}),
        ("mobilenet_v3_small", 32, {"scale": 0.35}),
        ("mobilenet_v3_large", 32, {"scale": 0.35}),
        ("squeezenet1_1", 48, {}),
        ("shufflenet_v2_x0_25", 32, {}),
    ],
)
def test_light_models_compute(name, size, more):
    net = getattr(models, name)(num_classes=7, **more)
    net.eval()
    x = sampan.randn([2, 3, size, size])
    y = net(x)
    assert y.shape == [2, 7] and np.array_equal(y.numpy(), net(x).numpy())
    y.sum().backward()
    assert all(p.grad is not None for p in net.parameters() if not p.stop_gradient)
    assert net.num_classes == 7


def test_lenet_trains():
    net = models.LeNet(num_classes=3)
    assert list(net.state_dict()) == [f"{part}.{i}.{p}" for part, i in
                                      [("features", 0), ("features", 3), ("fc", 0), ("fc", 1), ("fc", 2)] for p in ("weight", "bias")]
    x, y = sampan.randn([8, 1, 28, 28]), sampan.to_tensor(np.arange(8) % 3)
    adam = sampan.optimizer.Adam(1e-2, parameters=net.parameters())
    losses = []
    for _ in range(8):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]


def test_parts_are_layers():
    net = models.resnet18(num_classes=4)
    assert isinstance(net, models.ResNet) and isinstance(net.conv1, nn.Conv2D) and isinstance(net.layer1, nn.Sequential)
    assert isinstance(net.layer1[0], models.resnet.BasicBlock) and isinstance(net.layer1[0].bn2, nn.BatchNorm2D)
    assert sum(isinstance(layer, nn.Conv2D) for layer in net.sublayers()) == 20
    backbone = nn.Sequential(*list(net.children())[:-1])
    net.eval()
    x = sampan.randn([1, 3, 32, 32])
    features = backbone(x)
    assert features.shape == [1, 512, 1, 1]
    np.testing.assert_allclose(net.fc(features.flatten(1)).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    x = net.maxpool(net.relu(net.bn1(net.conv1(x))))
    assert net.layer2(net.layer1(x)).shape == [1, 128, 4, 4]


def test_a_new_head():
    net = models.resnet18()
    net.fc = nn.Linear(net.fc.weight.shape[0], 5)
    assert net(sampan.randn([2, 3, 32, 32])).shape == [2, 5]
    assert net.state_dict()["fc.weight"].shape == [512, 5] and net.fc.weight in set(net.parameters())


def test_hooks_inside():
    net = models.resnet18(num_classes=4)
    seen = []
    handle = net.layer1[1].conv2.register_forward_post_hook(lambda layer, inputs, output: seen.append(output.shape))
    net(sampan.randn([1, 3, 32, 32]))
    handle.remove()
    net(sampan.randn([1, 3, 32, 32]))
    assert seen == [[1, 64, 8, 8]]


def test_blocks(zeros):
    block = models.resnet.BottleneckBlock(64, 16, groups=2, base_width=64)
    assert block(sampan.randn([1, 64, 4, 4])).shape == [1, 64, 4, 4] and models.resnet.BottleneckBlock.expansion == 4
    down = nn.Sequential(nn.Conv2D(8, 16, 1, stride=2, bias_attr=False), nn.BatchNorm2D(16))
    block = models.resnet.BasicBlock(8, 16, 2, down, norm_layer=nn.BatchNorm2D)
    assert block(sampan.randn([1, 8, 4, 4])).shape == [1, 16, 2, 2] and block.downsample is down
    net = models.ResNet(models.resnet.BottleneckBlock, 50, num_classes=0, with_pool=False)
    assert not hasattr(net, "fc") or net.fc is None
    with pytest.raises(ValueError, match="depth"):
        models.ResNet(models.resnet.BasicBlock, 20)


class Plain(nn.Layer):
    """A block of one's own."""

    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None):
        super().__init__()
        self.conv = nn.Conv2D(inplanes, planes, 3, stride, 1)
        self.downsample = downsample

    def forward(self, x):
        return self.conv(x) + (x if self.downsample is None else self.downsample(x))


def test_blocks_of_your_own():
    net = models.ResNet(Plain, 18, num_classes=3)
    assert type(net.layer2[0]) is Plain and net.layer2[0].downsample[0].weight.shape == [128, 64, 1, 1]
    y = net(sampan.randn([1, 3, 32, 32]))
    y.sum().backward()
    assert y.shape == [1, 3] and net.layer2[0].conv.weight.grad is not None
    assert "layer2.0.conv.weight" in net.state_dict()

    class Twice(models.resnet.BasicBlock):
        def forward(self, x):
            calls.append(self)
            return super().forward(x)

    calls = []
    net = models.ResNet(Twice, 18, num_classes=2)
    net(sampan.randn([1, 3, 32, 32]))
    assert type(net.layer4[1]) is Twice and len(calls) == 8


class Features(models.ResNet):
    """A model whose forward is changed in Python."""

    def __init__(self):
        super().__init__(models.resnet.BasicBlock, 18, num_classes=2)

    def forward(self, x):
        return self.layer1(self.maxpool(self.relu(self.bn1(self.conv1(x)))))


def test_subclasses():
    assert Features()(sampan.randn([1, 3, 16, 16])).shape == [1, 64, 4, 4]


def test_copies():
    pickled = lambda net: pickle.loads(pickle.dumps(net))  # noqa: E731
    for net, copied in [
        (models.LeNet(3), copy.deepcopy),
        (models.LeNet(3), pickled),
        (models.vgg11(num_classes=0), copy.deepcopy),
        (models.ResNet(Plain, 18, num_classes=2), pickled),
    ]:
        net.eval()
        x = sampan.randn([1, 1, 28, 28] if isinstance(net, models.LeNet) else [1, 3, 32, 32])
        again = copied(net)
        assert type(again) is type(net) and not again.training
        np.testing.assert_array_equal(again(x).numpy(), net(x).numpy())
    assert inspect.signature(models.MobileNetV2).parameters["num_classes"].default == 1000


def test_state_goes_over():
    a, b = models.mobilenet_v3_small(num_classes=3), models.mobilenet_v3_small(num_classes=3)
    assert b.set_state_dict(a.state_dict()) == ([], [])
    x = sampan.randn([1, 3, 32, 32])
    a.eval(), b.eval()
    assert np.array_equal(a(x).numpy(), b(x).numpy())


def test_several_outputs_and_other_arguments(zeros):
    vgg = models.vgg
    net = models.googlenet(num_classes=0, with_pool=False)
    assert len(net(sampan.zeros([1, 3, 64, 64]))) == 3
    assert any(isinstance(layer, nn.BatchNorm2D) for layer in models.vgg11(batch_norm=True, num_classes=0).sublayers())
    assert models.VGG(nn.Sequential(nn.Conv2D(3, 4, 3)), num_classes=0, with_pool=False)(sampan.ones([1, 3, 5, 5])).shape == [1, 4, 3, 3]
    features = vgg.make_layers(vgg.cfgs["A"], batch_norm=True)
    assert [type(layer).__name__ for layer in models.vgg11(batch_norm=True, num_classes=0).features] == [
        type(layer).__name__ for layer in features
    ]
    with pytest.raises(TypeError, match="num_class"):
        models.resnet18(num_class=3)


def test_pretrained_without_a_network(monkeypatch, tmp_path):
    monkeypatch.setenv("SAMPAN_HOME", str(tmp_path))
    trained = models.shufflenet_v2_x0_25()
    (tmp_path / "weights").mkdir()
    with pytest.raises(ValueError, match="no trained weights"):
        models.vgg11(pretrained=True, num_classes=0)
    with pytest.raises(RuntimeError, match="could not be downloaded|cannot be downloaded"):
        models.shufflenet_v2_x0_25(pretrained=True)
    # A file in the cache is taken where its sum is right.
    from sampan.utils import download

    path = tmp_path / "weights" / "shufflenet_v2_x0_25.pdparams"
    sampan.save(trained.state_dict(), str(path))
    monkeypatch.setattr(download, "_md5_of", lambda _: models.shufflenetv2.model_urls["shufflenet_v2_x0_25"][1])
    again = models.shufflenet_v2_x0_25(pretrained=True)
    for (name, a), (_, b) in zip(trained.named_parameters(), again.named_parameters()):
        assert np.array_equal(a.numpy(), b.numpy()), name


@pytest.mark.parametrize("build, names", [(models.resnet18, ("bn1", "relu")), (models.mobilenet_v3_small, ("conv.1", "conv.2"))])
@pytest.mark.parametrize("training", [True, False])
def test_normalisation_with_its_activation_can_be_watched(build, names, training):
    """A normalisation and the activation after it are one pass; a hook on either sees it alone, and the values agree."""
    sampan.seed(0)
    net, x = build(num_classes=4), sampan.randn([2, 3, 32, 32])
    twin = copy.deepcopy(net)
    for model in (net, twin):
        model.train() if training else model.eval()
    named = dict(net.named_sublayers())
    seen = []
    for name in names:
        named[name].register_forward_post_hook(lambda layer, inputs, output: seen.append(output.numpy().min()))
    sampan.seed(1)  # The same dropout for both.
    apart = net(x)
    sampan.seed(1)
    fused = twin(x)
    assert len(seen) == 2 and seen[0] < -0.1
    np.testing.assert_allclose(apart.numpy(), fused.numpy(), rtol=2e-4, atol=2e-4)
    apart.sum().backward()
    fused.sum().backward()
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        if a.grad is not None:
            scale = np.abs(a.grad.numpy()).max() + 1e-6
            np.testing.assert_allclose(a.grad.numpy() / scale, b.grad.numpy() / scale, atol=2e-3)
