"""Programs of Paddle 1.x: `import paddle.fluid as fluid`."""

import os

import numpy as np
import pytest

import sampan
from sampan.compat import fluid
from sampan.compat.fluid import layers
from sampan.compat.fluid.dygraph import nn as old

RNG = np.random.RandomState(0)


def tensor(*shape, dtype="float32"):
    return fluid.dygraph.to_variable(RNG.rand(*shape).astype(dtype))


class Digits(fluid.dygraph.Layer):
    """A network of 1.5: names first, sizes of inputs found at the first call."""

    def __init__(self, name_scope):
        super().__init__(name_scope)
        name_scope = self.full_name()
        self.conv = old.Conv2D(name_scope, num_filters=4, filter_size=5, stride=1, padding=2, act="relu")
        self.pool = old.Pool2D(name_scope, pool_size=2, pool_stride=2, pool_type="max")
        self.fc = old.FC(name_scope, size=3, act="softmax")

    def forward(self, inputs, label=None):
        x = self.fc(self.pool(self.conv(inputs)))
        return x if label is None else (x, layers.accuracy(input=x, label=label))


def train(model, optimizer, steps=15):
    rng = np.random.RandomState(1)
    images, labels = rng.rand(9, 1, 8, 8).astype("float32"), (np.arange(9) % 3).reshape(9, 1).astype("int64")
    losses = []
    for _ in range(steps):
        image, label = fluid.dygraph.to_variable(images), fluid.dygraph.to_variable(labels)
        predict, accuracy = model(image, label)
        loss = layers.mean(layers.cross_entropy(predict, label))
        losses.append(float(loss))
        loss.backward()
        optimizer.minimize(loss)
        model.clear_gradients()
    assert 0 <= float(accuracy) <= 1
    return losses


def test_a_program_of_2019_learns():
    with fluid.dygraph.guard(place=None):
        model = Digits("digits")
        model.train()
        decay = fluid.regularizer.L2Decay(regularization_coeff=1e-4)
        losses = train(model, fluid.optimizer.AdamOptimizer(learning_rate=0.02, regularization=decay))
    assert losses[-1] < losses[0] * 0.8
    assert list(model.state_dict()) == ["conv.weight", "conv.bias", "fc.weight", "fc.bias"]


@pytest.mark.parametrize("kind", ["SGD", "Momentum", "Adagrad", "Adam", "Adamax", "Adadelta", "RMSProp"])
def test_optimizers_by_both_names(kind):
    sampan.seed(0)
    made = getattr(fluid.optimizer, f"{kind}Optimizer")(learning_rate=0.01)
    assert isinstance(made, getattr(fluid.optimizer, kind))
    model = Digits("digits")
    before = train(model, made, 1)
    assert train(model, made, 1) != before


def test_an_optimizer_with_a_list_moves_that_alone():
    a, b = old.Linear(2, 2), old.Linear(2, 2)
    made = fluid.optimizer.SGDOptimizer(0.1, parameter_list=a.parameters())
    start = b.weight.numpy().copy()
    loss = layers.mean(b(a(tensor(3, 2))))
    loss.backward()
    first = a.weight.numpy().copy()
    made.minimize(loss)
    assert (b.weight.numpy() == start).all() and (a.weight.numpy() != first).any()


def test_checkpoints_resume_to_the_same_bits(tmp_path):
    path = os.fspath(tmp_path / "checkpoint" / "epoch0")
    decay = fluid.dygraph.PolynomialDecay(0.02, 20, 0.001)
    model = Digits("digits")
    optimizer = fluid.optimizer.AdamOptimizer(learning_rate=decay)
    train(model, optimizer, 4)
    fluid.save_dygraph(model.state_dict(), path)
    fluid.save_dygraph(optimizer.state_dict(), path)
    assert sorted(os.listdir(tmp_path / "checkpoint")) == ["epoch0.pdopt", "epoch0.pdparams"]
    expected = train(model, optimizer, 4)

    parameters, state = fluid.load_dygraph(path)
    model.load_dict(parameters)
    decay = fluid.dygraph.PolynomialDecay(0.02, 20, 0.001)
    again = fluid.optimizer.AdamOptimizer(learning_rate=decay)
    again.set_dict(state)
    assert decay.step_num == 4
    assert train(model, again, 4) == expected
    with pytest.raises(ValueError, match="neither"):
        fluid.load_dygraph(os.fspath(tmp_path / "nothing"))
    assert fluid.load_dygraph(path + ".pdparams")[0].keys() == parameters.keys()


def test_loaders_of_generators():
    rows = [(np.full([2], i, "float32"), i) for i in range(5)]
    loader = fluid.io.DataLoader.from_generator(capacity=5, return_list=True)
    loader.set_batch_generator(lambda: ((np.ones([4, 2], "float32"), np.zeros([4, 1])) for _ in range(3)), places=None)
    for _ in range(2):
        assert [[part.shape for part in batch] for batch in loader] == [[[4, 2], [4, 1]]] * 3
    loader.set_sample_list_generator(sampan.batch(lambda: iter(rows), batch_size=2))
    assert [batch[1].numpy().tolist() for batch in loader()] == [[0, 1], [2, 3], [4]]
    loader.set_sample_generator(lambda: iter(rows), batch_size=2, drop_last=True)
    assert [batch[0].shape for batch in loader()] == [[2, 2], [2, 2]]

    def broken():
        yield np.ones([1])
        raise OSError("the disk is gone")

    loader.set_batch_generator(broken)
    with pytest.raises(OSError, match="the disk is gone"):
        list(loader)


def test_layers_of_both_generations():
    x = tensor(2, 4, 6, 6)
    assert old.Conv2D(4, 8, 3)(x).shape == old.Conv2D("c", 8, 3)(x).shape == [2, 8, 4, 4]
    assert old.Conv2DTranspose(4, 8, 2, stride=2)(x).shape == [2, 8, 12, 12]
    assert (
        old.Pool2D(2, "avg", 2)(x).shape
        == old.Pool2D("p", pool_size=2, pool_type="avg", pool_stride=2)(x).shape
        == [2, 4, 3, 3]
    )
    assert old.Pool2D(pool_type="max", global_pooling=True)(x).shape == [2, 4, 1, 1]
    norm = old.BatchNorm(4, act="relu")
    assert norm(x).numpy().min() == 0 and (norm._mean.numpy() != 0).all()
    norm.eval()
    kept = norm._mean.numpy().copy()
    norm(x)
    assert (norm._mean.numpy() == kept).all()
    assert (
        old.BatchNorm("b", 4)(x).shape == old.GroupNorm(4, 2)(x).shape == old.InstanceNorm(4)(x).shape == [2, 4, 6, 6]
    )
    np.testing.assert_allclose(old.LayerNorm([6, 6])(x).numpy().mean((2, 3)), 0, atol=1e-5)
    assert old.FC("f", 5, num_flatten_dims=2)(x).shape == [2, 4, 5]
    assert (old.PRelu("all")(-x).numpy() == -x.numpy()).all()
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.UniformInitializer(low=-0.1, high=0.1))
    table = old.Embedding("e", size=[10, 4], dtype="float32", param_attr=attr)
    assert table(fluid.dygraph.to_variable([[1, 2, 3]])).shape == [1, 3, 4]
    assert table.weight.name == "table" and abs(table.weight.numpy()).max() <= 0.1
    assert old.Linear(6, 2, act="tanh")(x).shape == [2, 4, 6, 2]
    drop = old.Dropout(0.5)
    drop.eval()
    np.testing.assert_allclose(drop(x).numpy(), x.numpy() / 2)


def test_functions_that_have_other_arguments_now():
    x, y = tensor(2, 3, 4), tensor(3)
    np.testing.assert_allclose(layers.elementwise_add(x, y, axis=1).numpy(), x.numpy() + y.numpy()[:, None])
    np.testing.assert_allclose(layers.elementwise_sub(x, x, act="sigmoid").numpy(), 0.5)
    assert layers.reduce_sum(x, dim=[0, 2], keep_dim=True).shape == [1, 3, 1]
    assert layers.concat([x, x], axis=1).shape == [2, 6, 4] and len(layers.split(x, 2)) == 2
    assert layers.expand(x, [1, 2, 1]).shape == [2, 6, 4]
    assert layers.flatten(x, axis=2).shape == [6, 4]
    assert layers.mul(x, tensor(12, 5)).shape == [2, 5]
    np.testing.assert_allclose(
        layers.matmul(x[0], x[0], transpose_y=True, alpha=2.0).numpy(), 2 * x.numpy()[0] @ x.numpy()[0].T, rtol=1e-5
    )
    values, places = layers.argsort(y, descending=True)
    assert (y.numpy()[places.numpy()] == values.numpy()).all()
    assert layers.fill_constant([2], "int64", 3).numpy().tolist() == [3, 3]
    assert layers.one_hot(fluid.dygraph.to_variable([[1], [0]]), 3).shape == [2, 3]
    assert layers.unsqueeze(y, axes=[0]).shape == [1, 3] and layers.squeeze(x[:1], axes=[0]).shape == [3, 4]
    assert layers.sums([y, y, y]).numpy().tolist() == (y * 3).numpy().tolist()
    assert layers.pad2d(tensor(1, 1, 2, 2), [1, 0, 2, 0]).shape == [1, 1, 3, 4]
    assert layers.resize_nearest(tensor(1, 1, 2, 2), out_shape=[4, 4], align_corners=False).shape == [1, 1, 4, 4]
    assert layers.range(0, 6, 2, "int64").numpy().tolist() == [0, 2, 4]
    p = layers.softmax(tensor(4, 3))
    label = fluid.dygraph.to_variable(np.array([[0], [1], [2], [0]]))
    expected = -np.log(p.numpy()[np.arange(4), label.numpy()[:, 0]])
    np.testing.assert_allclose(layers.cross_entropy(p, label).numpy().ravel(), expected, rtol=1e-5)
    assert layers.accuracy(p, label, k=3).item() == 1.0


@pytest.mark.parametrize(
    ("decay", "step", "expected"),
    [
        (lambda d: d.PiecewiseDecay([3, 6], [1.0, 0.5, 0.1], begin=0), 4, 0.5),
        (lambda d: d.ExponentialDecay(0.1, 10, 0.5, staircase=True), 15, 0.05),
        (lambda d: d.NaturalExpDecay(0.1, 10, 0.5), 10, 0.1 * np.exp(-0.5)),
        (lambda d: d.InverseTimeDecay(0.1, 10, 0.5), 20, 0.05),
        (lambda d: d.PolynomialDecay(0.1, 10, 0.01), 5, 0.055),
        (lambda d: d.CosineDecay(0.1, 10, 4), 25, 0.05),
        (lambda d: d.NoamDecay(64, 100), 49, 0.125 * 50 / 1000),
        (lambda d: d.LinearLrWarmup(0.1, 10, 0.0, 0.1, begin=0), 5, 0.05),
        (lambda d: d.LinearLrWarmup(d.ExponentialDecay(0.1, 1, 0.5), 10, 0.0, 0.1, begin=0), 12, 0.025),
    ],
)
def test_decays(decay, step, expected):
    made = decay(fluid.dygraph)
    for _ in range(step):
        made()
    assert made.value() == pytest.approx(expected)


def test_what_static_graphs_had_is_said_to_be_missing():
    for missing in (lambda: fluid.Executor, lambda: layers.fc, lambda: fluid.optimizer.FtrlOptimizer):
        with pytest.raises(AttributeError, match="has no attribute '.*': "):
            missing()
    assert fluid.in_dygraph_mode() and not fluid.is_compiled_with_cuda()


def test_accuracies_of_batches():
    mean = fluid.metrics.Accuracy()
    with pytest.raises(ValueError, match="no batch"):
        mean.eval()
    mean.update(value=sampan.to_tensor(1.0), weight=3)
    mean.update(value=0.0, weight=1)
    assert mean.eval() == 0.75


@pytest.mark.parametrize(
    ("act", "wanted"),
    [("hard_swish", [-1 / 3, 0.0, 5 / 3]), ("hard_sigmoid", [0.1, 0.5, 0.9]), ("brelu", [0.0, 0.0, 2.0])],
)
def test_activations_by_the_names_of_kernels(act, wanted):
    assert layers.activate(sampan.to_tensor([-2.0, 0.0, 2.0]), act).tolist() == pytest.approx(wanted)


def test_statistics_are_parameters_that_are_not_trained():
    norm = old.BatchNorm(3, moving_mean_name="its_mean")
    assert [(name, p.stop_gradient) for name, p in norm.named_parameters()] == [
        ("weight", False), ("bias", False), ("_mean", True), ("_variance", True)
    ]
    assert norm._mean.name == "its_mean" and not norm.buffers()
