"""Networks in eight bits: Paddle's PTQ and QAT, and saved networks."""

import os
import subprocess
import sys

import numpy as np
import pytest

import sampan
from sampan import nn
from sampan.quantization import PTQ, QAT, BaseQuanter, QuantConfig, quanter, quantize_network
from sampan.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver
from sampan.quantization.quanters import FakeQuanterWithAbsMaxObserver
from sampan.static import InputSpec


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2D(1, 16, 3, padding=1), nn.ReLU()
        self.body = nn.Sequential(nn.Conv2D(16, 16, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(16 * 9, 3)

    def forward(self, x):
        return self.head(sampan.flatten(self.body(self.relu(self.conv(x))), 1))


@pytest.fixture
def net():
    sampan.seed(3)
    net = Net()
    net.eval()
    return net


SPEC = [InputSpec([None, 1, 8, 8], "float32", "image")]


def far(a, b):
    a, b = np.asarray(a.numpy()), np.asarray(b.numpy())
    return np.abs(a - b).max() / np.abs(b).max()


def config():
    return QuantConfig(activation=AbsmaxObserver(quant_bits=8), weight=AbsmaxObserver(quant_bits=8))


def test_ptq_watches_then_converts(net, tmp_path):
    ptq, x = PTQ(config()), sampan.randn([16, 1, 8, 8])
    watching = ptq.quantize(net)
    assert type(net.conv).__name__ == "Conv2D", "the network that was given stays as it is"
    assert type(watching.conv).__name__ == "QuantedConv2D"
    assert type(watching.relu).__name__ == "ObserveWrapper"
    assert far(watching(x), net(x)) < 1e-6, "observers only look"
    small = ptq.convert(watching)
    weight = small.conv.weight
    assert weight.dtype == sampan.int8 and abs(weight.cast("int32")).max() <= 127
    assert float(small.conv.activation_quanter._quanter._scales) == pytest.approx(float(x.abs().max()))
    assert far(small(x), net(x)) < 0.05
    prefix = str(tmp_path / "small")
    sampan.jit.save(small, prefix, input_spec=SPEC)
    assert far(sampan.jit.load(prefix)(x), small(x)) < 0.02
    predictor = sampan._core.Predictor(sampan._core.Graph.load(prefix))
    assert "int8" in predictor.describe([x]) and far(predictor.run([x])[0], small(x)) < 0.02
    assert os.path.getsize(prefix + ".pdiparams") < 0.45 * 4 * sum(p.size for p in net.parameters())


def test_configs_choose_layers(net):
    some = QuantConfig(activation=None, weight=None)
    some.add_type_config(nn.Linear, activation=AbsmaxObserver(), weight=AbsmaxObserver())
    some.add_layer_config(net.body[0], weight=AbsmaxObserver())
    made = PTQ(some).quantize(net, inplace=True)
    assert type(made.head).__name__ == "QuantedLinear" and type(made.conv).__name__ == "Conv2D"
    assert type(made.body[0]).__name__ == "QuantedConv2D" and made.body[0].activation_quanter is None
    assert "Linear" in str(PTQ(some)) or "Global" in str(PTQ(some))
    with pytest.raises(TypeError, match="class of layers"):
        some.add_type_config(3)


def test_qat_learns_on_the_grid(net):
    net.train()
    fake = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    qat = QAT(QuantConfig(activation=fake, weight=fake))
    on_grid = qat.quantize(net)
    optimizer = sampan.optimizer.Adam(0.01, parameters=on_grid.parameters())
    x, y = sampan.randn([32, 1, 8, 8]), sampan.randint(0, 3, [32])
    losses = []
    for _ in range(15):
        loss = nn.functional.cross_entropy(on_grid(x), y)
        loss.backward()
        assert on_grid.conv.weight.grad is not None
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]
    on_grid.eval()
    small = qat.convert(on_grid)
    assert far(small(x), on_grid(x)) < 0.05
    net.eval()
    with pytest.raises(RuntimeError, match="train"):
        qat.quantize(net)


def test_fake_codes_pass_gradients():
    x = sampan.to_tensor([-1.1, 0.24, 100.0], stop_gradient=False)
    y = sampan._C_ops.fake_quantize_dequantize(x, sampan.to_tensor([0.5]), 0)
    (y * sampan.to_tensor([1.0, 2.0, 3.0])).sum().backward()
    assert y.tolist() == [-1.0, 0.0, 63.5] and x.grad.tolist() == [1.0, 2.0, 3.0]


def test_quanters_of_ones_own(net):
    @quanter("Halves")
    class HalvesLayer(BaseQuanter):
        def __init__(self, layer, step=0.5):
            super().__init__()
            self.step = step

        def forward(self, input):
            return (input / self.step).round() * self.step

        def scales(self):
            return sampan.to_tensor([127 * self.step])

        def zero_points(self):
            return None

        def quant_axis(self):
            return -1

        def bit_length(self):
            return 8

    made = PTQ(QuantConfig(activation=None, weight=Halves(step=0.25))).quantize(net)  # noqa: F821
    x = sampan.randn([2, 1, 8, 8])
    weight = (net.conv.weight / 0.25).round() * 0.25
    wanted = nn.functional.conv2d(x, weight, net.conv.bias, padding=1)
    assert far(made.conv(x), wanted) < 1e-5


def test_group_wise_ranges():
    observer = GroupWiseWeightObserver(group_size=64)._instance(None)
    w = sampan.randn([128, 3])
    observer(w)
    assert np.allclose(observer.scales().numpy(), np.abs(w.numpy()).reshape(2, 64, 3).max(1))
    with pytest.raises(ValueError, match="64"):
        GroupWiseWeightObserver(group_size=7)._instance(None)


@pytest.mark.parametrize("mode", ["static", "dynamic", "int8", "fp16", "bf16"])
def test_networks_and_their_files(net, tmp_path, mode):
    x = sampan.randn([8, 1, 8, 8])
    data = [x, x.numpy()] if mode == "static" else None
    saved = str(tmp_path / "net")
    sampan.jit.save(net, saved, input_spec=SPEC)
    for k, source in enumerate([net, saved, saved + ".pdmodel"]):
        for ending in ("", ".onnx"):
            to = str(tmp_path / f"small{k}") + ending
            done, layers = quantize_network(source, to, mode, data=data, input_spec=SPEC)
            assert (done, layers) == ((3, 3) if mode in ("static", "dynamic") else (0, 3))
            loaded = sampan.onnx.load(to) if ending else sampan.jit.load(to)
            assert far(loaded(x), net(x)) < (0.01 if mode == "fp16" else 0.06)


def test_what_is_wrong_is_said(net, tmp_path):
    to = str(tmp_path / "small")
    with pytest.raises(ValueError, match="calibration data"):
        quantize_network(net, to, input_spec=SPEC)
    with pytest.raises(ValueError, match="no mode"):
        quantize_network(net, to, "int4", input_spec=SPEC)
    with pytest.raises(ValueError, match="no method"):
        quantize_network(net, to, data=[sampan.zeros([1, 1, 8, 8])], input_spec=SPEC, method="best")
    with pytest.raises(ValueError, match="has shape"):
        quantize_network(net, to, data=[sampan.zeros([1, 2, 8, 8])], input_spec=SPEC)
    with pytest.raises(ValueError, match="no layer that can be quantised"):
        quantize_network(nn.ReLU(), to, "dynamic", input_spec=SPEC)
    with pytest.raises(Exception, match="missing"):
        quantize_network(str(tmp_path / "missing"), to, "dynamic")
    assert not os.path.exists(to + ".pdmodel")


def command(*words):
    made = subprocess.run([sys.executable, "-m", "sampan", "quantize", *words], capture_output=True, text=True)
    return made.returncode, made.stdout + made.stderr


def test_the_command(net, tmp_path):
    saved, to = str(tmp_path / "net"), str(tmp_path / "small.pdmodel")
    sampan.jit.save(net, saved, input_spec=SPEC)
    data = np.random.default_rng(0).standard_normal((40, 1, 8, 8)).astype("float32")
    np.save(tmp_path / "x.npy", data)
    np.savez(tmp_path / "x.npz", image=data)
    (tmp_path / "folder").mkdir()
    for k in range(3):
        np.save(tmp_path / "folder" / f"{k}.npy", data[:10])
    for words, text in [
        (["--data", str(tmp_path / "x.npy")], "calibrated with 40 examples"),
        (["--data", f"image={tmp_path / 'x.npz'}", "--range", "entropy", "--batch", "7"], "3 of 3 layers"),
        (["--data", str(tmp_path / "folder"), "--range", "average"], "calibrated with 30 examples"),
        (["--mode", "dynamic"], "3 of 3 layers"),
        (["--mode", "fp16"], "(5"),
    ]:
        code, said = command(saved, "--to", to, *words)
        assert code == 0 and text in said, said
    for words, text in [
        ([saved, "--to", to, "--mode", "static"], "calibration data"),
        ([saved, "--to", to, "--data", str(tmp_path)], ""),
        ([saved, "--to", str(tmp_path / "small"), "--mode", "int8"], ".onnx"),
        ([saved + "x", "--to", to], "netx"),
        ([saved, "--to", to, "--data", str(tmp_path / "missing.npy")], "missing.npy"),
        ([saved, "--to", to, "--mode", "int8", "--data", str(tmp_path / "x.npy")], "static alone"),
        ([saved, "--to", to, "--data", str(tmp_path / "x.npy"), "--range", "percentile", "--percentile", "0"], "percentile"),
    ]:
        code, said = command(*words)
        assert text == "" or (code == 1 and text in said), said
