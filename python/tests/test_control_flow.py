"""Control flow on tensors: traced, saved as ONNX and read back, each call decides."""

import numpy as np
import pytest
import sampan
from sampan.static import InputSpec
from sampan.static.nn import case, cond, switch_case, while_loop

X = [np.array(v, "float32") for v in ([1.0, 2.0, -0.5], [-1.0, -2.0, 0.5], [40.0, 1.0, 2.0], [-0.1, 0.0, 0.0])]


def same(function, tmp_path, arrays=X, spec=None):
    """The file computes what the function does."""
    path = str(tmp_path / "net")
    spec = spec or [InputSpec(list(arrays[0].shape), "float32", "x")]
    sampan.onnx.export(function, path, input_spec=spec)
    sampan.jit.save(function, path, input_spec=spec)
    for loaded in (sampan.onnx.load(path + ".onnx"), sampan.jit.load(path)):
        for array in arrays:
            x = sampan.to_tensor(array)
            expected, found = function(x), loaded(x)
            expected = expected if isinstance(expected, (list, tuple)) else [expected]
            found = found if isinstance(found, (list, tuple)) else [found]
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(b.numpy(), np.asarray(a), rtol=1e-6)


def branch(x):
    if x.sum() > 0:
        y = x * 2
        z = 1.0
    elif x.max() > 0.4:
        y = -x
        z = 2.0
    else:
        y = x + 1
        z = 3.0
    return y * z


def early(x):
    if x.sum() > 30:
        return x - 30
    y = x + 1
    if x.sum() < 0:
        y = y * 2
        return y
    return y.exp()


def loop(x):
    n = 0
    while x.abs().max() > 1:
        x = x / 2
        n = n + 1
    return x, sampan.to_tensor(n) if isinstance(n, int) else n


def leaving(x):
    y = x
    while True:
        y = y / 2
        if y.abs().max() < 0.5:
            break
        if y.sum() > 3:
            continue
        y = y - 0.01
    return y


def counted(x):
    n = (x.abs().sum()).astype("int64")
    y = x
    for i in range(n):
        if i > 5:
            break
        y = y + i.astype("float32") if isinstance(i, sampan.Tensor) else y + float(i)
    return y


def words(x):
    good = x.sum() > 0 and x.max() < 30 or not x.min() < 0
    assert x.shape[0] == 3
    print("the condition is", good)
    return x if good else -x


def plain(x, times=3):
    for i in range(times):
        if i == 1:
            continue
        x = x + i
    return x if times > 2 and True else -x


@pytest.mark.parametrize("function", [branch, early, loop, leaving, counted, words, plain])
def test_rewritten(function, tmp_path):
    same(function, tmp_path)


def test_functions_of_static(tmp_path):
    def program(x):
        a = cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)
        b = case([(x.sum() > 30, lambda: x), (x.sum() > 0, lambda: -x)], lambda: x + 5)
        c = switch_case((x.max() > 1).astype("int64"), {0: lambda: x, 1: lambda: x * x})
        i, d = while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, y * 1.5], [sampan.zeros([], "int64"), x])
        return a, b, c, d

    same(program, tmp_path)


class Block(sampan.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = sampan.nn.Linear(3, 3)

    def forward(self, x):
        if x.mean() > 0:
            return self.fc(x)
        return x


class Net(sampan.nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = sampan.nn.LayerList([Block(), Block()])
        self.calls = 0

    def helper(self, x):
        while x.abs().max() > 4:
            x = x / 2
        return x

    @sampan.jit.to_static
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.helper(x)


def test_layers_are_rewritten_too(tmp_path):
    sampan.seed(1)
    net = Net()
    same(net, tmp_path)
    assert "forward" not in net.__dict__ and "forward" not in net.blocks[0].__dict__


def test_what_cannot_be_is_an_error_with_its_line(tmp_path):
    def returned(x):
        for i in range(3):
            if x.sum() > i:
                return x
        return -x

    with pytest.raises(RuntimeError, match=r"test_control_flow.py:\d+"):
        same(returned, tmp_path)

    def listed(x):
        kept = [x]
        while x.sum() < 10:
            x = x * 2
            kept.append(x)
        return sampan.stack(kept)

    def in_a_dict(x):
        kept = {}
        if x.sum() > 0:
            kept["y"] = x
        return kept.get("y", -x)

    for function in (listed, in_a_dict):
        with pytest.raises(RuntimeError, match=r"`kept` is no tensor and changes in a .* value \(.*test_control_flow.py:\d+"):
            same(function, tmp_path)

    def shapes(x):
        return x if x.sum() > 0 else x.sum()

    with pytest.raises(RuntimeError, match="two branches differs"):
        same(shapes, tmp_path)

    @sampan.jit.not_to_static
    def left_alone(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="bool"):
        same(left_alone, tmp_path)
