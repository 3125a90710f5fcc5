"""First values of parameters."""

import copy
import math
import pickle

import numpy as np
import pytest
import sampan as sp
from sampan import nn
from sampan.nn import initializer as I


@pytest.mark.parametrize(
    ("init", "low", "high"),
    [
        (I.Constant(0.5), 0.5, 0.5),
        (I.Uniform(-0.2, 0.3), -0.2, 0.3),
        (I.TruncatedNormal(0.0, 1.0, a=-2.0, b=2.0), -2.0, 2.0),
        (I.XavierUniform(), -math.sqrt(6 / 90), math.sqrt(6 / 90)),
        (I.KaimingUniform(), -math.sqrt(6 / 40), math.sqrt(6 / 40)),
        (I.Normal(0.0, 0.01), -0.1, 0.1),
        (I.XavierNormal(), -2, 2),
        (I.KaimingNormal(), -2, 2),
        (I.Orthogonal(), -1.001, 1.001),
    ],
)
def test_values_lie_where_they_should(init, low, high):
    weight = nn.Linear(40, 50, weight_attr=init).weight
    assert low <= weight.min().item() and weight.max().item() <= high
    p = sp.Parameter(sp.zeros([40, 50]))
    init(p)
    assert low <= p.min().item() and p.max().item() <= high and not p.stop_gradient
    again = pickle.loads(pickle.dumps(copy.deepcopy(init)))
    assert type(again) is type(init) and repr(again) == repr(init)


VALUES = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("values", [VALUES, np.array(VALUES, "float32"), sp.to_tensor(VALUES)])
def test_assign(values):
    assert nn.Linear(2, 2, weight_attr=I.Assign(values)).weight.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_structured():
    conv = nn.Conv2D(3, 3, 3, padding=1, weight_attr=I.Dirac(), bias_attr=False)
    x = sp.randn([1, 3, 4, 4])
    assert (conv(x) - x).abs().max().item() < 1e-6
    weight = nn.Linear(4, 4, weight_attr=I.Orthogonal(gain=2.0)).weight
    assert (weight @ weight.t() - 4 * sp.eye(4)).abs().max().item() < 1e-4
    up = nn.Conv2DTranspose(1, 1, 4, stride=2, padding=1, weight_attr=I.Bilinear(), bias_attr=False)
    assert (up(sp.ones([1, 1, 4, 4]))[0, 0, 2:-2, 2:-2] - 1).abs().max().item() < 1e-6


def test_initializers_of_ones_own():
    class Steps(I.Initializer):
        def forward(self, var, block=None):
            var.set_value(sp.arange(var.size, dtype="float32").reshape(var.shape))

    class Returned(I.Initializer):
        def __call__(self, param, block=None):
            return sp.full(param.shape, 7.0)

    class Scaled(I.Constant):
        def forward(self, var, block=None):
            super().forward(var, block)
            var.set_value(var * 2)

    assert nn.Linear(2, 2, weight_attr=Steps()).weight.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert nn.Linear(1, 2, weight_attr=sp.ParamAttr(initializer=Returned())).weight.tolist() == [[7.0, 7.0]]
    assert nn.Layer().create_parameter([2], default_initializer=Scaled(3.0)).tolist() == [6.0, 6.0]
    with pytest.raises(NotImplementedError, match=r"Initializer has no forward\(\)"):
        I.Initializer()(sp.Parameter(sp.ones([1])))

    class Broken(I.Initializer):
        def forward(self, var, block=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.Linear(2, 2, weight_attr=Broken())


def test_the_global_initializer():
    try:
        I.set_global_initializer(I.Constant(2.0), I.Constant(3.0))
        layer = nn.Linear(1, 1)
        assert (layer.weight.item(), layer.bias.item()) == (2.0, 3.0)
        assert nn.Linear(1, 1, weight_attr=I.Constant(5.0)).weight.item() == 5.0
        assert nn.Layer().create_parameter([1]).item() == 2.0
    finally:
        I.set_global_initializer(None)
    assert nn.Linear(1, 1).bias.item() == 0.0
    with pytest.raises(TypeError, match="weight_init"):
        I.set_global_initializer("uniform")


def test_gain_and_functions():
    assert I.calculate_gain("relu") == math.sqrt(2) and I.calculate_gain("tanh") == 5 / 3
    assert I.calculate_gain("leaky_relu", 1.0) == 1.0
    with pytest.raises(ValueError, match="nonlinearity"):
        I.calculate_gain("nothing")
    p = sp.Parameter(sp.ones([4, 4]))
    for name in "xavier_uniform xavier_normal kaiming_normal orthogonal normal uniform zeros ones eye".split():
        getattr(nn.init, f"{name}_")(p)
    assert p.tolist() == sp.eye(4).tolist()
    assert I.Uniform(-1.0, 2.0).low == -1.0


def test_attributes_of_a_parameter():
    attr = sp.ParamAttr(name="my_weight", initializer=I.Constant(1.0), learning_rate=0.5, trainable=False)
    layer = nn.Linear(2, 2, weight_attr=attr)
    assert layer.weight.name == "my_weight" and layer.weight.stop_gradient and layer.weight.tolist() == [[1.0, 1.0]] * 2
    assert nn.Linear(2, 2, bias_attr=False).bias is None and nn.Linear(2, 2, bias_attr=True).bias is not None
    with pytest.raises(TypeError, match="weight_attr"):
        nn.Linear(2, 2, weight_attr=3.5)
    with pytest.raises(TypeError, match="ParamAttr: learning_rate must be of type Real, got str"):
        sp.ParamAttr(learning_rate="fast")
    assert sp.ParamAttr._to_attr("w").name == "w" and sp.ParamAttr._to_attr(False) is False


def test_a_parameter_without_a_layer():
    p = sp.create_parameter([2, 3], "float64", name="alone", default_initializer=I.Constant(2.0))
    assert p.name == "alone" and str(p.dtype).endswith("float64") and p.sum().item() == 12.0 and not p.stop_gradient


def test_a_tensor_in_the_place_of_a_number_is_pointed_out():
    weight = sp.create_parameter([2, 3], "float32", default_initializer=I.Constant(7.0))
    with pytest.warns(UserWarning, match=r"TruncatedNormal\(…\)\(tensor\) fills one"):
        unused = I.TruncatedNormal(weight, std=0.02)
    assert (weight == 7.0).all()
    with pytest.raises(TypeError, match="was built with a tensor as a number"):
        unused(weight)
    with pytest.raises(TypeError, match="was built with a tensor as a number"):
        nn.Linear(2, 3, weight_attr=unused)


def test_a_layer_of_the_core_needs_values_of_its_shape():
    with pytest.raises(ValueError, match=r"the initializer gave shape \[4\], the parameter has \[2, 2\]"):
        nn.Linear(2, 2, weight_attr=I.Assign([1.0, 2.0, 3.0, 4.0]))
