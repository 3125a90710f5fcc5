"""Every built-in layer: it is built, runs, prints, is saved, copied and pickled."""

import copy
import inspect
import pickle

import pytest
import sampan as sp
from sampan import nn


def x(*shape):
    return sp.uniform(list(shape), min=0.1, max=0.9)


def ints(*values):
    return sp.to_tensor(list(values), dtype="int64")


image, line, volume = (x(2, 4, 6, 6),), (x(2, 4, 8),), (x(1, 4, 4, 4, 4),)
rows, pair = (x(3, 4),), (x(3, 4), x(3, 4))
BY_AXES = ((1, line), (2, image), (3, volume))
CASES = {
    **{name: ((), rows) for name in (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU "
        "ReLU ReLU6 SELU Sigmoid Silu Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU "
        "Dropout AlphaDropout Identity Flatten"
    ).split()},
    **{name: ((), pair) for name in (
        "MSELoss L1Loss SmoothL1Loss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss CosineSimilarity "
        "PairwiseDistance"
    ).split()},
    **{f"{k}Pad{n}D": ((1,), i) for k in ("Zero", "Circular", "Reflection", "Replication", "") for n, i in BY_AXES},
    **{f"ConstantPad{n}D": ((1, 2.0), i) for n, i in BY_AXES},
    **{f"{kind}Pool{n}D": ((2,), i) for kind in ("Max", "Avg", "AdaptiveAvg", "AdaptiveMax") for n, i in BY_AXES},
    **{f"{kind}{n}D": ((4,), i) for kind in ("BatchNorm", "InstanceNorm") for n, i in BY_AXES},
    **{f"Conv{n}D{kind}": ((4, 6, 3), i) for kind in ("", "Transpose") for n, i in BY_AXES},
    "BatchNorm": ((4,), image), "SyncBatchNorm": ((4,), image), "GroupNorm": ((2, 4), image),
    "LayerNorm": (([6, 6],), image),
    "LocalResponseNorm": ((3,), image), "SpectralNorm": (([4, 3],), (x(4, 3),)), "Softmax2D": ((), image),
    "Dropout2D": ((), image), "Dropout3D": ((), volume), "FeatureAlphaDropout": ((), image), "Maxout": ((2,), image),
    "LPPool1D": ((2, 2), line), "LPPool2D": ((2, 2), image),
    "FractionalMaxPool2D": ((3,), image), "FractionalMaxPool3D": ((2,), volume),
    "ChannelShuffle": ((2,), image), "PixelShuffle": ((2,), image), "PixelUnshuffle": ((2,), image),
    "Upsample": (([12, 12],), image), "UpsamplingNearest2D": (([12, 12],), image),
    "UpsamplingBilinear2D": (([12, 12],), image),
    "Unfold": ((2,), image), "Fold": (([4, 4], [2, 2]), (x(2, 12, 9),)), "Unflatten": ((1, [2, 2]), rows),
    "Linear": ((4, 5), rows), "Bilinear": ((4, 4, 5), pair), "Embedding": ((10, 4), (ints(1, 2, 3),)),
    "CrossEntropyLoss": ((), (x(3, 4), ints(0, 1, 3))), "NLLLoss": ((), (x(3, 4).log(), ints(0, 1, 3))),
    "MarginRankingLoss": ((), (x(3), x(3), sp.ones([3]))), "HingeEmbeddingLoss": ((), (x(3), sp.ones([3]))),
    "CosineEmbeddingLoss": ((), (x(3, 4), x(3, 4), ints(1, -1, 1))),
    "TripletMarginLoss": ((), (x(3, 4), x(3, 4), x(3, 4))),
    "TripletMarginWithDistanceLoss": ((), (x(3, 4), x(3, 4), x(3, 4))),
    "MultiLabelSoftMarginLoss": ((), (x(3, 4), sp.ones([3, 4]))),
    "MultiLabelMarginLoss": ((), (x(3, 4), sp.to_tensor([[0, 1, -1, -1]] * 3, dtype="int64"))),
    "MultiMarginLoss": ((), (x(3, 4), ints(0, 1, 3))), "SoftMarginLoss": ((), (x(3), sp.ones([3]))),
    "GaussianNLLLoss": ((), (x(3, 4), x(3, 4), x(3, 4))),
    "CTCLoss": ((), (x(5, 2, 4), sp.to_tensor([[1, 2], [1, 3]], dtype="int32"), ints(5, 5), ints(2, 2))),
    "RNNTLoss": ((), (x(1, 3, 3, 4), *(sp.to_tensor(v, dtype="int32") for v in ([[1, 2]], [3], [2])))),
    "HSigmoidLoss": ((4, 5), (x(3, 4), sp.to_tensor([[0], [1], [4]], dtype="int64"))),
    "AdaptiveLogSoftmaxWithLoss": ((8, 12, [3, 6]), (x(4, 8), ints(0, 4, 8, 2))),
    "SimpleRNN": ((4, 5), (x(2, 3, 4),)), "LSTM": ((4, 5), (x(2, 3, 4),)), "GRU": ((4, 5, 2), (x(2, 3, 4),)),
    "SimpleRNNCell": ((4, 5), rows), "LSTMCell": ((4, 5), rows), "GRUCell": ((4, 5), rows),
    "RNN": ((nn.LSTMCell(4, 5),), (x(2, 3, 4),)), "BiRNN": ((nn.GRUCell(4, 5), nn.GRUCell(4, 5)), (x(2, 3, 4),)),
    "MultiHeadAttention": ((8, 2), (x(2, 3, 8),)), "TransformerEncoderLayer": ((8, 2, 16, 0.0), (x(2, 3, 8),)),
    "TransformerDecoderLayer": ((8, 2, 16, 0.0), (x(2, 3, 8), x(2, 5, 8))),
    "TransformerEncoder": ((nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2), (x(2, 3, 8),)),
    "TransformerDecoder": ((nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2), (x(2, 3, 8), x(2, 5, 8))),
    "Transformer": ((8, 2, 1, 1, 16, 0.0), (x(2, 3, 8), x(2, 5, 8))),
}  # fmt: skip
UNPOOL = ("MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D")
NO_LAYERS = ("ClipGradByValue", "ClipGradByNorm", "ClipGradByGlobalNorm", "BeamSearchDecoder")
REGISTERED = [d.name for d in sp._core.classes() if d.module == "sampan.nn" and d.name not in NO_LAYERS]


def flat(outputs):
    if isinstance(outputs, (list, tuple)):
        return [t for part in outputs for t in flat(part)]
    return [outputs]


def same(a, b):
    return all((p - q).abs().max().item() == 0.0 for p, q in zip(flat(a), flat(b), strict=True))


def test_every_class_has_a_case():
    assert sorted({*CASES, *UNPOOL}) == sorted(REGISTERED)


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_built_run_saved_and_copied(name):
    args, inputs = CASES[name]
    cls = getattr(nn, name)
    layer = cls(*args)
    assert isinstance(layer, nn.Layer) and type(layer).__name__ == name and repr(layer).startswith(f"{name}(")
    assert inspect.signature(cls).parameters is not None and cls.__doc__
    layer.eval()
    sp.seed(7)
    first = layer(*inputs)
    assert all(isinstance(t, sp.Tensor) for t in flat(first))
    state = layer.state_dict()
    sp.seed(7)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert list(copied.state_dict()) == list(state) and not copied.training
        assert repr(copied) == repr(layer)
        sp.seed(7)
        assert same(copied(*inputs), first)
        assert not any(a is b for a, b in zip(copied.parameters(), layer.parameters()))
    other = cls(*args)
    if name not in ("RNN", "BiRNN", "TransformerEncoder", "TransformerDecoder"):
        other.set_state_dict(state)
        other.eval()
        sp.seed(7)
        assert same(other(*inputs), first)


@pytest.mark.parametrize(("n", "inputs"), [(1, line), (2, image), (3, volume)])
def test_max_unpool_undoes_max_pool(n, inputs):
    pooled, places = getattr(nn, f"MaxPool{n}D")(2, return_mask=True)(*inputs)
    unpool = getattr(nn, f"MaxUnPool{n}D")(2)
    assert unpool(pooled, places).shape == inputs[0].shape
    assert unpool(x=pooled, indices=places, output_size=inputs[0].shape).shape == inputs[0].shape


def test_signatures_are_paddles():
    text = str(inspect.signature(nn.Conv2D))
    assert text == (
        "(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, *, bias=True, "
        "padding_mode='zeros', device=None, dtype=None, weight_attr=None, bias_attr=None, data_format='NCHW')"
    )
    text = "(in_features, out_features, weight_attr=None, bias_attr=None, name=None)"
    assert str(inspect.signature(nn.Linear)) == text

    class Mine(nn.Linear):
        def __init__(self, size):
            super().__init__(size, size)

    assert str(inspect.signature(Mine)) == "(size)"


def test_settings_are_attributes():
    conv = nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2)
    assert (conv._stride, conv._padding, conv._dilation, conv._groups) == ([2, 2], 1, [1, 1], 2)
    assert (conv._kernel_size, conv._in_channels, conv._out_channels) == ([3, 3], 4, 6)
    bn = nn.BatchNorm2D(4, momentum=0.8)
    assert (bn._momentum, bn._epsilon, bn._num_features) == (0.8, 1e-5, 4) and bn._mean.shape == [4]
    assert nn.Dropout(0.3).p == 0.3 and nn.Embedding(5, 3)._num_embeddings == 5
    pool = nn.MaxPool2D(2, padding=1)
    assert (pool.ksize, pool.stride, pool.padding) == (2, None, 1)
    assert nn.MultiHeadAttention(8, 2).head_dim == 4 and nn.LSTM(2, 3).num_directions == 1
    assert nn.Linear(2, 3, bias_attr=False).bias is None and nn.Conv2D(1, 1, 1, bias=False).bias is None
    with pytest.raises(AttributeError, match="'Conv2D' object has no attribute '_nothing'"):
        conv._nothing


def test_a_setting_that_is_changed_counts():
    drop = nn.Dropout(0.5)
    drop.p = 0.0
    t = x(4, 4)
    assert same(drop(t), t) and "p=0.0" in repr(drop)
    bn = nn.BatchNorm1D(4)
    bn._momentum = 0.0
    data = x(5, 4)
    bn(data)
    assert (bn._mean - data.mean(0)).abs().max().item() < 1e-6
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, attn_dropout=0.0)
    for layer in net.sublayers():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    t = x(1, 3, 8)
    assert same(net(t), net(t))
    assert same(copy.deepcopy(net)(t), net(t))


def test_a_parameter_that_is_assigned_reaches_the_layer():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    t = x(2, 3)
    a.weight = b.weight
    assert same(a(t), b(t)) and a.weight is b.weight
    b.weight.set_value(sp.zeros([3, 3]))
    assert a(t).abs().max().item() == 0.0
    (a(t).sum() + b(t).sum()).backward()
    assert (b.weight.grad[0, 0] - 2 * t[:, 0].sum()).abs().item() < 1e-5
    a.bias = None
    assert a.bias is None and list(a.state_dict()) == ["weight"]
    plain = nn.Linear(3, 3, bias_attr=False)
    plain.bias = plain.create_parameter([3], default_initializer=nn.initializer.Constant(5.0))
    assert (plain(sp.zeros([1, 3])) - 5.0).abs().max().item() == 0.0
    wide = nn.Linear(3, 3)
    wide.weight = wide.create_parameter([3, 5])
    wide.bias = wide.create_parameter([5], is_bias=True)
    assert wide(t).shape == [2, 5] and "out_features=5" in repr(wide)
    bn = nn.BatchNorm1D(3)
    mean = bn.create_parameter([3], default_initializer=nn.initializer.Constant(7.0))
    bn._mean = mean
    bn(t)
    assert bn._mean is mean and mean[0].item() < 7.0
    with pytest.raises(TypeError, match="can only become a Parameter"):
        bn._mean = sp.zeros([3])


def test_subclasses_compute_with_their_own_forward():
    class Doubled(nn.Linear):
        def __init__(self, *args):
            super().__init__(*args)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return super().forward(x) * 2 + self.weight.sum() * 0

    layer, t = Doubled(3, 4), x(2, 3)
    assert isinstance(layer, nn.Linear)
    assert same(layer(t), nn.functional.linear(t, layer.weight, layer.bias) * 2) and layer.calls == 1
    assert copy.deepcopy(layer).calls == 1


def test_forward_of_one_layer_can_be_replaced():
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    t, seen = x(1, 3, 8), []
    plain, own = net(t), net.linear1.forward

    def watched(inputs):
        seen.append(inputs.shape)
        return own(inputs)

    net.linear1.forward = watched
    assert same(net(t), plain) and seen == [[1, 3, 8]]
    del net.linear1.forward
    net(t)
    assert len(seen) == 1


def test_inputs_may_be_named_and_errors_name_them():
    logits, label = x(3, 4), ints(0, 1, 2)
    assert same(nn.CrossEntropyLoss()(input=logits, label=label), nn.CrossEntropyLoss()(logits, label))
    assert nn.Linear(4, 1)(input=logits).shape == [3, 1] and nn.Conv2D(4, 1, 1)(x=image[0]).shape == [2, 1, 6, 6]
    with pytest.raises(TypeError, match="CrossEntropyLoss: argument `label` is missing"):
        nn.CrossEntropyLoss()(logits)
    with pytest.raises(TypeError, match="MSELoss: `label` must be a Tensor, got"):
        nn.MSELoss()(logits, "3")
    with pytest.raises(TypeError, match="Linear: has no argument `y`"):
        nn.Linear(4, 1)(y=logits)
    with pytest.raises(TypeError, match="ReLU: takes at most 1 arguments, got 2"):
        nn.ReLU()(logits, logits)
    assert nn.Conv2DTranspose(4, 2, 3, stride=2)(image[0], output_size=[14, 14]).shape == [2, 2, 14, 14]


def test_a_distance_of_ones_own():
    a, b, c = x(3, 4), x(3, 4), x(3, 4)
    own = nn.TripletMarginWithDistanceLoss(lambda p, q: (p - q).abs().sum(-1), margin=2.0, reduction="sum")
    expected = ((a - b).abs().sum(-1) - (a - c).abs().sum(-1) + 2.0).clip(min=0.0).sum()
    assert (own(a, b, c) - expected).abs().item() < 1e-5
    by_layer = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance())
    assert (by_layer(a, b, c) - nn.TripletMarginLoss()(a, b, c)).abs().item() < 1e-4

    def broken(p, q):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.TripletMarginWithDistanceLoss(broken)(a, b, c)


def test_a_network_converted_to_sync_batch_norm():
    net = nn.Sequential(nn.Conv2D(4, 4, 1), nn.BatchNorm2D(4, momentum=0.7)).eval()
    y = net(image[0])
    other = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(other[1], nn.SyncBatchNorm) and other[1]._momentum == 0.7 and same(other(image[0]), y)


def test_log_probabilities_of_an_adaptive_softmax():
    layer, data = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6]), x(4, 8)
    logs = layer.log_prob(data)
    assert logs.shape == [4, 12] and (logs.exp().sum(1) - 1).abs().max().item() < 1e-5
    assert layer.predict(data).tolist() == logs.argmax(1).tolist()
    output, loss = layer(data, ints(0, 4, 8, 2))
    assert (output - sp.to_tensor([logs[i, k].item() for i, k in enumerate((0, 4, 8, 2))])).abs().max().item() < 1e-5
    assert (loss + output.mean()).abs().item() < 1e-5


def test_arguments_in_the_order_of_paddle_2():
    assert nn.LayerNorm(4, 1e-5, None, False).bias is None
    assert nn.Conv2D(1, 1, 1, 1, 0, 1, 1, "zeros", None, False).bias is None
    assert nn.Embedding(4, 2, None, True)._sparse is True
    with pytest.raises(TypeError, match="LayerNorm: takes at most 5 arguments by position"):
        nn.LayerNorm(4, 1, 2, 3, 4, 5)


def test_pickled_statistics_are_the_layers_own():
    net = nn.Sequential(nn.Conv2D(1, 2, 1), nn.BatchNorm2D(2))
    net(x(2, 1, 3, 3))
    twin = pickle.loads(pickle.dumps(net))
    before = twin[1]._mean.numpy().copy()
    assert (before == net[1]._mean.numpy()).all() and twin[1]._mean.stop_gradient
    twin(x(2, 1, 3, 3))
    assert not (twin[1]._mean.numpy() == before).any() and (net[1]._mean.numpy() == before).all()
    twin.eval()
    twin[1]._mean.set_value(sp.full([2], 100.0))
    assert (twin(x(2, 1, 3, 3)) < -50).all()


def test_forward_is_a_function_of_the_class():
    class Doubled(nn.Linear):
        def forward(self, input):
            return 2 * nn.Linear.forward(self, input)

    class Shifted(nn.Embedding):
        def forward(self, input):
            return super().forward(input) + 1

    fc, data = Doubled(4, 2), x(3, 4)
    assert same(fc(data), 2 * sp.nn.functional.linear(data, fc.weight, fc.bias))
    table = Shifted(5, 2)
    assert same(table(ints(3)), table.weight[3:4] + 1)
    assert same(nn.Sequential(fc, nn.ReLU())(data), nn.functional.relu(fc(data)))
    assert inspect.isfunction(nn.Conv2D.forward) and same(nn.ReLU.forward(nn.ReLU(), data), data)
    plain = nn.Linear(4, 2)
    plain.forward = lambda input: input
    assert plain(data) is data and nn.Linear.forward(plain, data).shape == [3, 2]
    del plain.forward
    assert plain(data).shape == [3, 2]


def test_a_layer_has_the_parameters_that_paddle_names():
    without = {
        "weight": [nn.InstanceNorm2D(2), nn.PReLU(), nn.NLLLoss(), nn.MultiHeadAttention(4, 2), nn.Transformer(4, 2, 1, 1, 4)],
        "bias": [nn.TransformerEncoderLayer(4, 2, 4), nn.TransformerDecoderLayer(4, 2, 4)],
        "weight_ih": [nn.LSTM(2, 2)],
    }
    for name, layers in without.items():
        assert not any(hasattr(layer, name) for layer in layers)
    norm = nn.InstanceNorm2D(2, weight_attr=False, bias_attr=False)
    assert norm.scale is None and norm.bias is None
    assert nn.BatchNorm(2, param_attr=False).weight is None and nn.Linear(2, 2, bias_attr=False).bias is None


def test_the_helper_of_a_layer():
    class Scaled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.dtype = self._helper.get_default_dtype()
            self.scale = self._helper.create_parameter(attr=sp.ParamAttr(), shape=[3], dtype=self.dtype, is_bias=True)

        def forward(self, input):
            return self._helper.append_activation(input + self.scale, act="relu")

    layer = Scaled()
    assert layer.dtype == "float32" and list(layer.state_dict()) == ["scale"]
    assert layer(sp.to_tensor([-1.0, 0.0, 2.0])).tolist() == [0.0, 0.0, 2.0]
    assert layer._helper.create_parameter(False, [3]) is None and layer._helper.append_activation(layer.scale) is layer.scale
