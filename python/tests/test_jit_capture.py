"""Programs that are captured once and repeated."""

import warnings

import numpy as np
import pytest

import sampan
from sampan import jit, nn


class Count(nn.Layer):
    """Counts how often Python runs."""

    def __init__(self, *layers):
        super().__init__()
        self.inner = nn.Sequential(*layers)
        self.scale = 2.0

    def forward(self, x, power=1):
        _RUNS[0] += 1
        return {"y": self.inner(x) ** power * self.scale, "n": 3}


_RUNS = [0]


def runs(f):
    """How often Python ran, and the result."""
    before = _RUNS[0]
    result = f()
    return _RUNS[0] - before, result


def made(*layers):
    net = Count(*layers)
    net.forward = jit.to_static(net.forward, full_graph=True)
    return net


def test_python_runs_for_each_kind_of_arguments_only():
    net = made(nn.Linear(3, 2), nn.Tanh())
    plain = net.forward.__func__.dygraph_function
    for x in (sampan.randn([4, 3]), sampan.randn([2, 3])):
        count, got = runs(lambda x=x: net(x))
        assert count > 0
        again, same = runs(lambda x=x: net(x))
        assert again == 0 and got["n"] == same["n"] == 3
        np.testing.assert_array_equal(got["y"].numpy(), same["y"].numpy())
        np.testing.assert_array_equal(got["y"].numpy(), plain(net, x)["y"].numpy())
    x = sampan.randn([4, 3])
    # A number among the arguments, a setting of the layer, a mode, and whether gradients are on.
    for change in (
        lambda: net(x, power=2),
        lambda: net(x, 3),
        lambda: (setattr(net, "scale", 5.0), net(x))[1],
        lambda: (net.eval(), net(x))[1],
        lambda: sampan.no_grad()(net)(x),
    ):
        assert runs(change)[0] > 0
        count, got = runs(change)
        assert count == 0
    np.testing.assert_allclose(net(x)["y"].numpy(), net.inner(x).numpy() * 5.0, rtol=1e-6)


def test_what_is_replaced_is_noticed():
    net, x = made(nn.Linear(3, 2)), sampan.randn([4, 3])
    net(x)
    net.inner = nn.Sequential(nn.Linear(3, 2))
    np.testing.assert_allclose(net(x)["y"].numpy(), net.inner(x).numpy() * 2, rtol=1e-6)
    net.inner[0].weight = sampan.create_parameter([3, 2], "float32")
    np.testing.assert_allclose(net(x)["y"].numpy(), net.inner(x).numpy() * 2, rtol=1e-6)
    net.inner[0].weight.set_value(sampan.ones([3, 2]))
    np.testing.assert_allclose(net(x)["y"].numpy(), net.inner(x).numpy() * 2, rtol=1e-6)
    net.inner.register_forward_post_hook(lambda layer, given, result: result + 100)
    assert float(net(x)["y"].mean()) > 150


def test_captured_networks_train():
    sampan.seed(0)
    data = [(sampan.randn([8, 3, 8, 8]), sampan.randn([8, 4])) for _ in range(6)]
    ends = []
    for captured in (False, True):
        sampan.seed(1)
        net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
        run = jit.to_static(lambda x, net=net: net(x), full_graph=True) if captured else net
        optimizer = sampan.optimizer.Adam(0.01, parameters=net.parameters())
        for x, y in data:
            loss = ((run(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        ends.append([p.numpy() for p in net.state_dict().values()])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_array_equal(a, b)


def test_values_that_are_read_are_named_and_python_runs():
    @jit.to_static(full_graph=True)
    def branch(x):
        _RUNS[0] += 1
        return x * 2 if float(x.sum()) > 0 else x * 3

    with pytest.warns(RuntimeWarning, match=r"test_jit_capture\.py:\d+"):
        assert branch(sampan.ones([2])).tolist() == [2.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert branch(-sampan.ones([2])).tolist() == [-3.0, -3.0]
        assert runs(lambda: branch(sampan.ones([2])))[0] == 1


def test_what_makes_every_call_another_one_is_named():
    table = [0.0]

    @jit.to_static(full_graph=True)
    def looked_up(x):
        return x * table[0]

    def call(i):
        table[0] = float(i)
        return float(looked_up(sampan.ones([])))

    with pytest.warns(RuntimeWarning, match=r"looked_up runs .* `table` \(.*test_jit_capture\.py:\d+\) is different") as said:
        assert [call(i) for i in range(80)] == list(range(80))
    assert len(said) == 1

    @jit.to_static(full_graph=True)
    def scaled(x, by):
        return x * by

    with pytest.warns(RuntimeWarning, match=r"scaled runs .* the kind of its arguments .* is different") as said:
        assert [float(scaled(sampan.ones([]), float(i))) for i in range(80)] == list(range(80))
    assert len(said) == 1


def test_random_numbers_and_globals():
    @jit.to_static(full_graph=True)
    def noisy(x):
        return nn.functional.dropout(x, 0.5) * _FACTOR

    x = sampan.ones([1000])
    assert not np.array_equal(noisy(x).numpy(), noisy(x).numpy())
    global _FACTOR
    _FACTOR = 10.0
    assert noisy(x).max().item() == 20.0
    _FACTOR = 1.0


_FACTOR = 1.0


def test_what_is_left_out():
    @jit.to_static(full_graph=True)
    @jit.not_to_static
    def eager(x):
        _RUNS[0] += 1
        return x + 1

    x = sampan.ones([2])
    assert [runs(lambda: eager(x))[0] for _ in range(3)] == [1, 1, 1]
    net = made(nn.ReLU())
    net(x)
    jit.enable_to_static(False)
    assert runs(lambda: net(x))[0] == 1
    jit.enable_to_static(True)
    assert runs(lambda: net(x))[0] == 0


def test_mixed_precision_is_another_capture():
    net = made(nn.Linear(3, 2))
    x = sampan.randn([4, 3])
    assert net(x)["y"].dtype == sampan.float32
    with sampan.amp.auto_cast(dtype="bfloat16"):
        assert runs(lambda: net(x))[0] > 0
        count, got = runs(lambda: net(x))
    assert count == 0 and net(x)["y"].dtype == sampan.float32
    assert got["y"].dtype == net.forward.__func__.dygraph_function(net, x)["y"].dtype or got["y"].dtype == sampan.bfloat16
