"""Whatever a captured function computes by, a change of it counts: variables, attributes, in objects and in functions it calls."""

import collections
import functools
import subprocess
import sys
import types

import pytest
import sampan
from sampan import nn

Space = types.SimpleNamespace


class Settings:
    factor = 1.0


space = Space(factor=1.0, inner=Space(inner=Space(factor=1.0), table={"a": 1.0}))
table = {"a": 1.0}
ALPHA = 1.0


def helper(x, scale=lambda: ALPHA):
    return x * scale()


class Scaled(nn.Layer):
    def __init__(self, factor):
        super().__init__()
        self.space = Space(factor=factor)
        self.inner = Inner(factor)

    def forward(self, x):
        return self.inner(x) * self.space.factor


class Inner(nn.Layer):
    def __init__(self, factor):
        super().__init__()
        self.around = Space(factor=factor)

    def forward(self, x):
        return x * self.around.factor * ALPHA


class Trainer:
    shared = 1.0

    def __init__(self):
        self.space = Space(factor=1.0)
        self.net = Scaled(1.0)

    @property
    def slope(self):
        return self.space.factor * self.shared

    def loss(self, x):
        return self.net(x) * self.slope

    def __call__(self, x):
        return self.loss(x)


def set_alpha(value):
    global ALPHA
    ALPHA = value


def nested(x):
    def inner(y):
        return y * space.inner.inner.factor

    return inner(x)


def cases():
    trainer, net = Trainer(), Scaled(1.0)
    held, numbers = Space(factor=1.0), collections.defaultdict(float, a=1.0)
    deep = [{"a": (Space(factor=1.0),)}]
    part = functools.partial(lambda settings, x: x * settings.factor, held)
    return {
        "an object": (lambda x: x * space.factor, lambda v: setattr(space, "factor", v)),
        "an object in objects": (nested, lambda v: setattr(space.inner.inner, "factor", v)),
        "an object put in its place": (nested, lambda v: setattr(space.inner, "inner", Space(factor=v))),
        "a dict in an object": (lambda x: x * space.inner.table["a"], lambda v: space.inner.table.update(a=v)),
        "a dict": (lambda x: x * table["a"], lambda v: table.update(a=v)),
        "a default dict around it": (lambda x: x * numbers["a"], lambda v: numbers.update(a=v)),
        "an object in lists": (lambda x: x * deep[0]["a"][0].factor, lambda v: setattr(deep[0]["a"][0], "factor", v)),
        "a class": (lambda x: x * Settings.factor, lambda v: setattr(Settings, "factor", v)),
        "a variable of a function that is called": (lambda x: helper(x), set_alpha),
        "an argument that is bound": (lambda x: part(x), lambda v: setattr(held, "factor", v)),
        "an object of a network": (net, lambda v: setattr(net.space, "factor", v)),
        "an object of a layer of it": (net, lambda v: setattr(net.inner.around, "factor", v)),
        "a variable that a layer of it reads": (net, set_alpha),
        "an object behind a property": (trainer.__call__, lambda v: setattr(trainer.space, "factor", v)),
        "a class of what calls": (lambda x: trainer(x), lambda v: setattr(Trainer, "shared", v)),
        "a network of what calls": (lambda x: trainer(x), lambda v: setattr(trainer.net.space, "factor", v)),
    }


@pytest.mark.parametrize("step", [False, True], ids=["forward", "step"])
@pytest.mark.parametrize("case", cases())
def test_what_is_read_on_the_way_counts(case, step):
    function, change = cases()[case]
    weight = sampan.create_parameter([1], "float32")

    def learn(x):
        loss = function(x) + (weight * 0).sum()
        loss.backward()
        weight.clear_grad()
        return loss

    captured = sampan.jit.to_static(learn if step else function, full_graph=True)
    x = sampan.ones([1])
    try:
        for value in (1.0, 2.0, 1.0):
            change(value)
            for _ in range(4):
                assert float(captured(x).sum()) == value
    finally:
        change(1.0)


def test_what_a_function_counts_is_no_reason_to_capture_it_anew():
    log = Space(calls=0, losses=[])

    @sampan.jit.to_static(full_graph=True)
    def double(x):
        log.calls += 1
        log.losses.append(log.calls)
        return x * 2

    for _ in range(5):
        assert double(sampan.ones([1])).item() == 2.0
    assert log.calls < 5


def test_dicts_of_any_class_may_be_arguments():
    @sampan.jit.to_static(full_graph=True)
    def scaled(x, settings):
        return {"y": x * settings["a"], **{k: v for k, v in settings.items() if k == "t"}}

    for kind in (dict, collections.OrderedDict, lambda **held: collections.defaultdict(float, **held)):
        for value in (1.0, 2.0, 2.0):
            found = scaled(sampan.ones([1]), kind(a=value, t=sampan.full([1], value)))
            assert (found["y"].item(), found["t"].item()) == (value, value)


def test_what_is_typed_in_counts_as_well():
    program = """
import sampan
class Scale:
    by = 1.0
    def __call__(self, x): return x * self.by
scale = Scale()
double = sampan.jit.to_static(lambda x: scale(x), full_graph=True)
for Scale.by in (1.0, 1.0, 1.0, 2.0): print(double(sampan.ones([1])).item())
"""
    said = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, timeout=100)
    assert (said.stdout.split(), said.stderr) == (["1.0", "1.0", "1.0", "2.0"], "")
