"""Marks for compiling, which run eagerly, and what is said about inputs."""

import inspect

import numpy as np
import pytest

import sampan
from sampan import jit
from sampan.static import InputSpec


def test_functions_keep_their_name_signature_and_results():
    @jit.to_static
    def plain(x, y=2):
        """Doc."""
        return x * y

    @jit.to_static(input_spec=[InputSpec([None, 2])], full_graph=True, build_strategy=None, backend=None)
    def marked(x):
        return x + 1

    assert plain.__name__ == "plain" and plain.__doc__ == "Doc." and str(inspect.signature(plain)) == "(x, y=2)"
    assert plain(3) == 6 and marked(3) == 4
    assert plain.rollback()(3, 3) == 9 and not hasattr(plain.rollback(), "rollback")
    with pytest.raises(TypeError, match="has no argument 'speed'"):
        jit.to_static(speed=1)
    with pytest.raises(TypeError, match="marks functions and layers"):
        jit.to_static(3)


class Net(sampan.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = sampan.nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)

    @jit.to_static
    def twice(self, x):
        return self.fc(x) * 2


def test_methods_and_layers():
    net, x = Net(), sampan.ones([1, 2])
    expected = net(x).numpy()
    np.testing.assert_array_equal(net.twice(x).numpy(), expected * 2)
    marked = jit.to_static(net, input_spec=[InputSpec([None, 2])])
    assert marked is net
    np.testing.assert_array_equal(marked(x).numpy(), expected)
    marked(x).sum().backward()
    assert net.fc.weight.grad is not None and list(net.state_dict()) == ["fc.weight", "fc.bias"]
    assert net.rollback() is net and not hasattr(net, "rollback")
    assert jit.to_static(sampan.nn.Linear(2, 2))(x).shape == [1, 2]


def test_the_relatives():
    def f(x):
        return x

    assert jit.not_to_static(f) is f and jit.not_to_static()(f) is f
    jit.ignore_module([np])
    jit.enable_to_static(False)
    jit.enable_to_static(True)
    with pytest.raises(TypeError):
        jit.enable_to_static(1)
    with pytest.raises(NotImplementedError, match="static.Program"):
        sampan.static.Program()
    assert not hasattr(sampan.static, "Program")


def test_input_spec():
    spec = InputSpec([None, 784], "float32", "x")
    assert spec.shape == (-1, 784) and spec.dtype == sampan.float32 and not spec.stop_gradient
    assert "shape=(-1, 784)" in repr(spec) and "name=x" in repr(spec)
    assert spec == InputSpec((-1, 784), sampan.float32, "x") and spec != InputSpec([None, 784])
    assert hash(spec) == hash(InputSpec([-1, 784], name="y"))
    assert spec.unbatch().shape == (784,) and spec.batch(4).shape == (4, 784) and spec.batch([2]).shape == (2, 4, 784)
    x = sampan.ones([2, 3], "int64")
    assert InputSpec.from_tensor(x, "x") == InputSpec([2, 3], "int64", "x")
    assert InputSpec.from_numpy(np.ones((2, 2), "float16")) == InputSpec([2, 2], "float16")
    with pytest.raises(TypeError, match="shape is a list"):
        InputSpec(3)
    with pytest.raises(ValueError, match=r"shape\[1\]"):
        InputSpec([1, 2.5])
    with pytest.raises(ValueError, match="no axis"):
        InputSpec([]).unbatch()
