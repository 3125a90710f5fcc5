"""`Model`: training, evaluating, predicting, saving and loading in one call each."""

import sys

import doctest
import importlib
import os
import re

import numpy as np
import pytest

import sampan
from sampan import nn
from sampan.static import InputSpec


def batches(count=6, size=8, seed=0):
    rng = np.random.RandomState(seed)
    xs = rng.rand(count, size, 3).astype("float32")
    ys = xs @ np.array([[1.0], [-2.0], [0.5]], "float32") + 0.3
    return list(zip(xs, ys))


def regression(learning_rate=0.1, **settings):
    sampan.seed(1)
    model = sampan.Model(nn.Linear(3, 1))
    sgd = sampan.optimizer.SGD(learning_rate, parameters=model.parameters())
    model.prepare(sgd, nn.MSELoss(), **settings)
    return model


class Digits(sampan.io.Dataset):
    """Points of two classes, as (x, label)."""

    def __init__(self, count=40):
        rng = np.random.RandomState(3)
        self.labels = (np.arange(count) % 2).astype("int64")
        self.points = (rng.randn(count, 2) * 0.3 + self.labels[:, None] * 2 - 1).astype("float32")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.points[i], self.labels[i : i + 1]


def classifier(metrics=None):
    sampan.seed(2)
    model = sampan.Model(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)))
    model.prepare(sampan.optimizer.Adam(0.05, parameters=model.parameters()), nn.CrossEntropyLoss(), metrics)
    return model


# ---- runs


def test_fit_learns_and_evaluate_tells():
    model = classifier(sampan.metric.Accuracy())
    before = model.evaluate(Digits(), batch_size=8, verbose=0)
    model.fit(Digits(), epochs=5, batch_size=8, verbose=0)
    after = model.evaluate(Digits(), batch_size=8, verbose=0)
    assert list(after) == ["loss", "acc"]
    assert after["loss"][0] < before["loss"][0] and after["acc"] > 0.95


def test_fit_is_the_loop_one_would_write():
    model = regression()
    model.fit(batches(), epochs=2, verbose=0)
    sampan.seed(1)
    net = nn.Linear(3, 1)
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    for _ in range(2):
        for x, y in batches():
            loss = nn.functional.mse_loss(net(sampan.to_tensor(x)), sampan.to_tensor(y))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
    assert (model.network.weight.numpy() == net.weight.numpy()).all()


def test_what_is_printed(capsys):
    model = classifier(sampan.metric.Accuracy())
    model.fit(Digits(), Digits(), epochs=1, batch_size=8, log_freq=2, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The loss value printed in the log is the current step")
    assert lines[1] == "Epoch 1/1"
    figures = r"step {} - loss: \d+\.\d{{4}} - acc: \d+\.\d{{4}} - \d+(s|ms|us)/step"
    for line, step in zip(lines[2:5], ("2/5", "4/5", "5/5")):
        assert re.fullmatch(figures.format(step), line), line
    assert lines[5] == "Eval begin..." and lines[-1] == "Eval samples: 40"


def test_a_bar(capsys):
    regression().fit(batches(10), epochs=1, log_freq=4, verbose=1)
    lines = capsys.readouterr().out.splitlines()[2:]
    assert re.fullmatch(r"step  4/10 \[=+>\.+\] - loss: .* - ETA: \d+s - .*/step", lines[0]), lines[0]
    assert re.fullmatch(r"step 10/10 \[=+\] - loss: .*/step", lines[-1]), lines[-1]


def test_verbose_3_tells_times_and_0_nothing(capsys):
    regression().fit(batches(), verbose=0)
    assert capsys.readouterr().out == ""
    regression().fit(batches(), verbose=3, log_freq=3)
    assert "avg_reader_cost: " in (out := capsys.readouterr().out) and " samples/sec" in out


def test_eval_freq_and_two_batch_sizes():
    seen = []

    class Watch(sampan.callbacks.Callback):
        def on_eval_begin(self, logs=None):
            seen.append(logs["steps"])

    classifier().fit(Digits(), Digits(), batch_size=[8, 20], epochs=5, eval_freq=2, verbose=0, callbacks=[Watch()])
    assert seen == [2, 2, 2]


def test_num_iters_ends_training_within_an_epoch():
    steps = []

    class Watch(sampan.callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            steps.append(step)

    model = regression()
    model.fit(batches(), batches(2), epochs=1, num_iters=8, verbose=0, callbacks=Watch())
    assert steps == [0, 1, 2, 3, 4, 5, 0, 1]
    model.fit(batches(), epochs=1, verbose=0, callbacks=Watch())
    assert len(steps) == 14
    assert model.evaluate(batches(), num_iters=1, verbose=0)["loss"] != model.evaluate(batches(), verbose=0)["loss"]
    with pytest.raises(ValueError, match="num_iters"):
        model.fit(batches(), num_iters=0, verbose=0)


@pytest.mark.parametrize("kind", [list, iter], ids=["length known", "length unknown"])
def test_gradients_of_several_batches_make_one_step(kind):
    weights = []

    class Watch(sampan.callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            weights.append(self.model.network.weight.numpy().copy())

    model = regression()
    model.fit(kind(batches(5)), accumulate_grad_batches=2, verbose=0, callbacks=[Watch()])
    moved = [bool((a != b).any()) for a, b in zip(weights, weights[1:])]
    # The fifth batch is the last, and its gradient is used too.
    assert moved == [True, False, True, True]


def test_data_of_all_kinds():
    model = regression()
    x, y = batches(1)[0]
    for data in (
        [(x, y)],
        [[sampan.to_tensor(x), sampan.to_tensor(y)]],
        [([x], [y])],
        ((x, y) for _ in range(1)),
        sampan.io.DataLoader(sampan.io.TensorDataset([sampan.to_tensor(x), sampan.to_tensor(y)]), batch_size=4),
    ):
        model.fit(data, verbose=0)
    with pytest.raises(ValueError, match="train_data"):
        model.fit(verbose=0)


def test_predict():
    model = classifier()
    outputs = model.predict(Digits(10), batch_size=4, verbose=0)
    assert [part.shape for part in outputs[0]] == [(4, 2), (4, 2), (2, 2)]
    stacked = model.predict(Digits(10), batch_size=4, stack_outputs=True, verbose=0)
    assert stacked[0].shape == (10, 2)
    np.testing.assert_array_equal(stacked[0], np.vstack(outputs[0]))


# ---- one batch


def test_batches_by_hand():
    model = regression()
    x, y = batches(1)[0]
    before = model.network.weight.numpy().copy()
    (loss,) = model.eval_batch([x], [y])
    assert loss.shape == () and (model.network.weight.numpy() == before).all()
    assert model.train_batch([x], [y], update=False)[0] == loss
    assert (model.network.weight.numpy() == before).all()
    model.train_batch(x, y)
    assert (model.network.weight.numpy() != before).any()
    assert model.predict_batch([x])[0].shape == (8, 1)
    assert model.network.training is False


def test_several_losses_metrics_inputs_and_outputs():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x, y):
            return self.a(x), self.b(y)

    class Count(sampan.metric.Metric):
        """Two figures of one metric."""

        def __init__(self):
            super().__init__()
            self.reset()

        def name(self):
            return ["samples", "batches"]

        def compute(self, out1, out2, label1, label2):
            return out1, label2

        def update(self, out, label):
            assert isinstance(out, np.ndarray) and isinstance(label, np.ndarray)
            self.samples += len(out)
            self.batches += 1
            return self.samples

        def accumulate(self):
            return [self.samples, self.batches]

        def reset(self):
            self.samples = self.batches = 0

    def both(out1, out2, label1, label2):
        return [nn.functional.mse_loss(out1, label1), nn.functional.l1_loss(out2, label2)]

    model = sampan.Model(Two())
    model.prepare(sampan.optimizer.SGD(0.1, parameters=model.parameters()), both, [Count()])
    data = [(x, x, y, y) for x, y in batches(3)]
    model.fit(data, verbose=0)
    result = model.evaluate(data, verbose=0)
    assert len(result["loss"]) == 2 and (result["samples"], result["batches"]) == (24, 3)
    losses, metrics = model.train_batch(data[0][:2], data[0][2:])
    assert len(losses) == 2 and metrics == [8]


def test_specs_say_what_is_an_input():
    class Optional(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)

        def forward(self, x, mask=None):
            return self.fc(x if mask is None else x * mask)

    model = sampan.Model(Optional(), InputSpec([None, 3], "float32", "x"), InputSpec([None, 1], "float32", "label"))
    model.prepare(sampan.optimizer.SGD(0.1, parameters=model.parameters()), nn.MSELoss())
    model.fit(batches(2), verbose=0)
    with pytest.raises(ValueError, match="has no name"):
        sampan.Model(Optional(), InputSpec([None, 3]))
    with pytest.raises(TypeError, match="InputSpec"):
        sampan.Model(Optional(), [3])


@pytest.mark.parametrize("level", ["O1", {"level": "O1", "init_loss_scaling": 128.0}])
def test_mixed_precision(level):
    model = regression(amp_configs=level)
    model.fit(batches(), epochs=8, verbose=0)
    assert model.evaluate(batches(), verbose=0)["loss"][0] < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"amp_configs": "O3"}, "'O0', 'O1' or 'O2'"),
        ({"amp_configs": {"level": "O1", "speed": 3}}, "speed"),
        ({"amp_configs": {"level": "O2", "use_pure_fp16": True}}, "use_pure_fp16"),
        ({"metrics": ["acc"]}, "not sub class of Metric"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        regression(**settings)


def test_what_is_missing_is_said():
    model = sampan.Model(nn.Linear(3, 1))
    with pytest.raises(RuntimeError, match="prepare"):
        model.train_batch([np.ones([1, 3], "float32")])
    with pytest.raises(TypeError, match="loss"):
        model.prepare(loss=3)


# ---- files


def test_save_and_load_go_on_where_it_stopped(tmp_path):
    path = os.fspath(tmp_path / "run" / "model")

    def adam():
        sampan.seed(5)
        model = sampan.Model(nn.Linear(3, 1))
        model.prepare(sampan.optimizer.Adam(0.05, parameters=model.parameters()), nn.MSELoss())
        return model

    whole = adam()
    whole.fit(batches(), verbose=0)
    whole.save(path)
    whole.fit(batches(seed=1), verbose=0)
    again = adam()
    again.load(path)
    again.fit(batches(seed=1), verbose=0)
    # Names of parameters differ between the two networks, so the optimizer is compared by what it does.
    state = sampan.load(path + ".pdopt")
    assert any("moment1" in name for name in state)
    reset = adam()
    reset.load(path + ".pdparams", reset_optimizer=True)
    assert (reset.network.weight.numpy() == sampan.load(path + ".pdparams")["weight"].numpy()).all()


def test_save_dir_keeps_epochs_and_the_end(tmp_path, capsys):
    classifier().fit(Digits(), epochs=3, batch_size=20, save_dir=os.fspath(tmp_path), save_freq=2, verbose=0)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{n}.{end}" for n in ("0", "2", "final") for end in ("pdparams", "pdopt")}
    assert capsys.readouterr().out.count("save checkpoint at ") == 3


def test_what_does_not_fit(tmp_path):
    path = os.fspath(tmp_path / "m")
    sampan.Model(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))).save(path)
    other = sampan.Model(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    with pytest.raises(ValueError, match=r"1.weight receives a shape \[4, 1\], but the expected shape is \[4, 2\]"):
        other.load(path)
    with pytest.warns(UserWarning, match="Skip loading for 1.weight"):
        other.load(path, skip_mismatch=True)
    assert (other.network[0].weight.numpy() == sampan.load(path + ".pdparams")["0.weight"].numpy()).all()
    with pytest.raises(FileNotFoundError, match="nothing.pdparams"):
        other.load(os.fspath(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="folder/name"):
        other.save("folder/")


def test_summary_uses_the_shapes_it_knows(capsys):
    model = sampan.Model(nn.Linear(3, 1), InputSpec([None, 3], "float32", "x"))
    assert model.summary() == {"total_params": 4, "trainable_params": 4}
    fresh = regression()
    with pytest.raises(ValueError, match="input_size"):
        fresh.summary()
    fresh.fit(batches(1), verbose=0)
    assert fresh.summary()["total_params"] == 4
    assert fresh.summary((2, 3))["total_params"] == 4


@pytest.mark.parametrize(
    "module",
    """hapi.model hapi.model_summary hapi.dynamic_flops hapi.callbacks.base compat compat.tb_paddle compat.fluid.metrics
    reader""".split(),
)
def test_examples_in_the_texts(module, capsys):
    if module == "compat" and not sampan.compat.installed() and "paddle" in sys.modules:
        pytest.skip("another test has imported the real paddle")
    tried = doctest.testmod(importlib.import_module(f"sampan.{module}"), optionflags=doctest.ELLIPSIS)
    assert tried.attempted and not tried.failed, capsys.readouterr().out


class _Numbers(sampan.io.Dataset):
    def __init__(self):
        self.seen = []

    def __len__(self):
        return 12

    def __getitem__(self, i):
        self.seen.append(i)
        return np.float32([i, 1]), np.float32([i % 3])


def test_a_shuffled_run_goes_on_to_the_same_bits(tmp_path):
    def begin():
        net = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        model = sampan.Model(net)
        model.prepare(sampan.optimizer.Adam(0.01, parameters=net.parameters()), nn.MSELoss())
        return model, _Numbers()

    sampan.seed(3)
    whole, data = begin()
    whole.fit(data, epochs=4, batch_size=4, verbose=0)
    sampan.seed(3)
    half, first = begin()
    half.fit(first, epochs=2, batch_size=4, verbose=0)
    half.save(str(tmp_path / "half"))
    state = sampan.get_rng_state()
    sampan.seed(77)
    rest, second = begin()
    rest.load(str(tmp_path / "half"))
    sampan.set_rng_state(state)
    rest.fit(second, epochs=2, batch_size=4, verbose=0)
    assert data.seen == first.seen + second.seen
    for one, other in zip(whole.parameters(), rest.parameters()):
        assert (one.numpy() == other.numpy()).all()
