"""Networks that are saved as programs, loaded and run without their code."""

import os
import pickle

import numpy as np
import pytest

import sampan
from sampan import jit, nn
from sampan.static import InputSpec

F = nn.functional


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2D(4)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4 * 7 * 7, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 4)
        return self.fc(self.drop(x.reshape([x.shape[0], -1])))


IMAGE = [InputSpec([None, 1, 28, 28], "float32", "image")]


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.fixture
def saved(tmp_path):
    net = Net()
    path = str(tmp_path / "inference" / "net")
    jit.save(net, path, input_spec=IMAGE)
    return net, path


def test_files_and_results(saved):
    net, path = saved
    assert sorted(os.listdir(os.path.dirname(path))) == ["net.json", "net.pdiparams", "net.pdiparams.info", "net.pdmodel"]
    with open(path + ".pdiparams.info", "rb") as file:
        info = pickle.load(file)
    assert info[net.fc.weight.name] == {"structured_name": "fc.weight", "stop_gradient": False, "trainable": True}
    assert info[net.bn._mean.name]["stop_gradient"]
    assert net.training and net.drop.training, "modes stay as they were"
    loaded = jit.load(path)
    assert isinstance(loaded, jit.TranslatedLayer) and not loaded.training
    net.eval()
    for batch in (1, 3):
        x = sampan.randn([batch, 1, 28, 28])
        close(loaded(x), net(x))
        close(loaded(x.numpy()), net(x))
    assert loaded._input_spec() == [InputSpec([-1, 1, 28, 28], "float32", "image")]
    os.remove(path + ".pdmodel")
    close(jit.load(path)(x), net(x))
    os.remove(path + ".json")
    with pytest.raises(ValueError, match="not exists"):
        jit.load(path)


def test_a_loaded_network_is_trained_like_the_one_it_was(saved):
    net, path = saved
    loaded = jit.load(path)
    net.eval()
    x, y = sampan.randn([4, 1, 28, 28]), sampan.to_tensor([1, 2, 3, 4])
    ours, theirs = ({p.name: p for p in layer.parameters() if not p.stop_gradient} for layer in (net, loaded))
    assert ours.keys() == theirs.keys()
    for layer in (net, loaded):
        sgd = sampan.optimizer.SGD(0.1, parameters=[p for p in layer.parameters() if not p.stop_gradient])
        for _ in range(2):
            F.cross_entropy(layer(x), y).backward()
            sgd.step()
            sgd.clear_grad()
    for name, p in ours.items():
        close(theirs[name], p)
    loaded.train()
    before = loaded.state_dict()
    before = {name: value.numpy().copy() for name, value in before.items() if value.stop_gradient}
    assert not np.array_equal(loaded(x).numpy(), loaded(x).numpy()), "dropout draws"
    assert any(not np.array_equal(loaded.state_dict()[n].numpy(), v) for n, v in before.items()), "statistics follow"
    loaded.eval()
    assert np.array_equal(loaded(x).numpy(), loaded(x).numpy())


def test_what_is_known_of_inputs(tmp_path):
    path = str(tmp_path / "net")
    with pytest.raises(ValueError, match="nothing is known of the inputs"):
        jit.save(Net(), path)
    net = Net()
    net.eval()
    jit.save(net, path, input_spec=[sampan.ones([2, 1, 28, 28])])
    assert jit.load(path)._input_spec()[0].shape == (2, 1, 28, 28) and jit.load(path)._input_spec()[0].name == "x"

    @jit.to_static(input_spec=[InputSpec([None, 4])])
    def double(x):
        return sampan.tanh(x) * 2

    jit.save(double, path)
    x = sampan.randn([3, 4])
    close(jit.load(path)(x), double(x))
    assert not os.path.exists(path + ".pdiparams"), "there is nothing in it"

    class Marked(Net):
        @jit.to_static
        def forward(self, x):
            return Net.forward(self, x)

    marked = Marked()
    marked.eval()
    x = sampan.randn([2, 1, 28, 28])
    expected = marked(x)
    jit.save(marked, path)
    close(jit.load(path)(x), expected)


def test_many_inputs_and_outputs(tmp_path):
    class Two(nn.Layer):
        def forward(self, a, b, scale=2.0):
            return {"sum": a + b, "rest": [a * scale, (b,)]}

    path = str(tmp_path / "two")
    spec = [InputSpec([None, 3], "float32", "a"), InputSpec([None, 3], "float32", "b")]
    jit.save(Two(), path, input_spec=spec)
    a, b = sampan.ones([2, 3]), sampan.full([2, 3], 5.0)
    found = jit.load(path)(a, b)
    assert [t.numpy()[0, 0] for t in found] == [6.0, 2.0, 5.0]
    jit.save(Two(), path, input_spec=spec, output_spec=[1])
    assert jit.load(path)(a, b).numpy()[0, 0] == 2.0
    with pytest.raises(ValueError, match="there is no config 'speed'"):
        jit.save(Two(), path, input_spec=spec, speed=1)


def test_shapes_that_follow_the_input(tmp_path):
    class Heads(nn.Layer):
        def forward(self, x):
            b, n, c = x.shape
            y = x.reshape([b, n, 2, c // 2]).transpose([0, 2, 1, 3])
            y = y + sampan.zeros([b, 1, n, 1]) + sampan.arange(n).astype("float32").reshape([1, 1, n, 1])
            return y.transpose([0, 2, 1, 3]).reshape([sampan.shape(x)[0], n, c])

    path = str(tmp_path / "heads")
    jit.save(Heads(), path, input_spec=[InputSpec([None, None, 8])])
    loaded = jit.load(path)
    for shape in ([2, 3, 8], [5, 1, 8]):
        x = sampan.randn(shape)
        close(loaded(x), Heads()(x))


def test_what_cannot_be_saved_says_where(tmp_path):
    path = str(tmp_path / "net")
    spec = [InputSpec([None, 4])]

    def branches(x):
        if x.sum() > 0:
            return x
        return -x

    def reads(x):
        return x * float(x.mean())

    def draws(x):
        return x + sampan.to_tensor(np.random.rand(4).astype("float32"))

    def loops(x):
        for _ in range(x.shape[0]):
            x = x + 1
        return x

    for function, why in ((draws, "made anew"), (loops, "another size")):
        with pytest.raises((RuntimeError, ValueError), match=why) as caught:
            jit.save(function, path, input_spec=spec)
        if function is loops:
            assert "test_jit_save.py" in str(caught.value) or "calls in one run" in str(caught.value)
    assert not os.listdir(tmp_path), "nothing was written"


def test_model_saves_for_inference(tmp_path):
    model = sampan.Model(Net(), inputs=IMAGE)
    model.prepare()
    model.save(str(tmp_path / "model"), training=False)
    x = sampan.randn([2, 1, 28, 28])
    model.network.eval()
    close(jit.load(str(tmp_path / "model"))(x), model.network(x))


def test_inference(saved):
    net, path = saved
    net.eval()
    config = sampan.inference.Config(path + ".pdmodel", path + ".pdiparams")
    config.disable_gpu()
    config.enable_memory_optim()
    config.set_cpu_math_library_num_threads(2)
    predictor = sampan.inference.create_predictor(config)
    [name] = predictor.get_input_names()
    x = np.random.rand(2, 1, 28, 28).astype("float32")
    handle = predictor.get_input_handle(name)
    with pytest.raises(RuntimeError, match="'image' has no value"):
        predictor.run()
    handle.reshape([2, 1, 28, 28])
    handle.copy_from_cpu(x)
    predictor.run()
    [out] = predictor.get_output_names()
    found = predictor.get_output_handle(out).copy_to_cpu()
    np.testing.assert_allclose(found, net(sampan.to_tensor(x)).numpy(), rtol=1e-5, atol=1e-6)
    assert found.shape == (2, 10) and predictor.get_output_handle(out).type() == sampan.inference.DataType.FLOAT32
    config.switch_ir_optim(False)
    plain = sampan.inference.create_predictor(config)
    assert "batch_norm" in plain._graph.calls() and "batch_norm" not in predictor._graph.calls()
    np.testing.assert_allclose(plain.run([sampan.to_tensor(x)])[0].numpy(), found, rtol=1e-4, atol=1e-5)
    [again] = predictor.clone().run([sampan.to_tensor(x)])
    np.testing.assert_array_equal(again.numpy(), found)
    with pytest.raises(KeyError, match="there is no input"):
        predictor.get_input_handle("y")
    with pytest.raises(TypeError):
        handle.copy_from_cpu([1.0])
    assert sampan.inference.create_predictor(sampan.inference.Config(path)).get_input_names() == ["image"]


def test_static_names(saved):
    net, path = saved
    net.eval()
    program, feeds, fetches = sampan.static.load_inference_model(path)
    assert feeds == ["image"] and fetches[0].shape == (-1, 10)
    x = sampan.randn([2, 1, 28, 28])
    close(program(x), net(x))
    sampan.static.save_inference_model(path + "2", IMAGE, net)
    close(jit.load(path + "2")(x), net(x))
    with pytest.raises(NotImplementedError):
        sampan.static.save_inference_model(path, IMAGE, [x, x])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN", "encoder"])
def test_sequences(tmp_path, kind):
    if kind == "encoder":
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1), 2)
    else:
        net = getattr(nn, kind)(8, 6, num_layers=2, direction="bidirect")
    path = str(tmp_path / "net")
    jit.save(net, path, input_spec=[InputSpec([None, None, 8])])
    net.eval()
    for shape in ([2, 5, 8], [3, 1, 8]):
        x = sampan.randn(shape)
        expected, found = net(x), jit.load(path)(x)
        close(found if kind == "encoder" else found[0], expected if kind == "encoder" else expected[0])


def test_losses_are_saved(tmp_path):
    F = sampan.nn.functional
    specs = [InputSpec([None, 5], "float32", "x"), InputSpec([None], "int64", "label")]
    x, label = sampan.randn([4, 5]), sampan.to_tensor([1, 0, -100, 4])
    losses = {
        "mean": lambda x, y: F.cross_entropy(x, y),
        "ignored": lambda x, y: F.cross_entropy(x, y, ignore_index=4, reduction="sum"),
        "smooth": lambda x, y: F.cross_entropy(x, y.clip(min=0), label_smoothing=0.1),
        "nll": lambda x, y: F.nll_loss(F.log_softmax(x), y.clip(min=0)),
    }
    for name, loss in losses.items():
        y = label.clip(min=0) if name == "ignored" else label
        sampan.jit.save(loss, str(tmp_path / name), input_spec=specs)
        sampan.onnx.export(loss, str(tmp_path / name), input_spec=specs)
        for read in (sampan.jit.load(str(tmp_path / name)), sampan.onnx.load(str(tmp_path / f"{name}.onnx"))):
            np.testing.assert_allclose(read(x, y).numpy(), loss(x, y).numpy(), rtol=1e-5)
