"""`Layer` itself: attributes, creation, walking, state, casting, errors."""

import copy
import pickle
import warnings

import pytest
import sampan as sp
from sampan import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.fc2 = nn.Linear(4, 2)
        self.register_buffer("steps", sp.zeros([1]))
        self.register_buffer("scratch", sp.zeros([2]), persistable=False)
        self.scale = self.create_parameter([2], default_initializer=nn.initializer.Constant(2.0))

    def forward(self, x):
        return self.fc2(self.fc1(x).tanh()) * self.scale


def test_members_are_registered_by_kind():
    net = Net()
    assert list(net.state_dict()) == ["scale", "steps", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert "scratch" in net.to_static_state_dict()
    assert [name for name, _ in net.named_parameters()] == ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert [name for name, _ in net.named_buffers()] == ["steps", "scratch"]
    assert [name for name, _ in net.named_sublayers()] == ["fc1", "fc2"]
    assert [name for name, _ in net.named_sublayers(prefix="n", include_self=True)] == ["n", "n.fc1", "n.fc2"]
    assert {"fc1", "scale", "steps", "forward"} <= set(dir(net))
    assert len(net.parameters(include_sublayers=False)) == 1
    assert net.sublayers() == [net.fc1, net.fc2] and list(net.children()) == [net.fc1, net.fc2]


def test_members_move_between_kinds_only_where_that_is_meant():
    net = Net()
    parameter = sp.Parameter(sp.ones([2]))
    net.steps = parameter
    assert "steps" in net._parameters and "steps" not in net._buffers
    with pytest.raises(TypeError, match=r"Net\.scale can only become a Parameter or None, got Tensor"):
        net.scale = sp.ones([2])
    with pytest.raises(TypeError, match=r"Net\.fc1 can only become a Layer or None, got int"):
        net.fc1 = 3
    net.fc1 = None
    assert net.fc1 is None and "fc1.weight" not in net.state_dict()
    del net.fc2
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'fc2'"):
        net.fc2
    net.plain = 3
    net.plain = nn.ReLU()
    assert isinstance(net.plain, nn.ReLU) and "plain" not in net.__dict__
    net.temporary = sp.ones([1])
    assert "temporary" in net._buffers and "temporary" not in net.state_dict()


def test_a_layer_that_is_not_ready_says_so():
    class Hasty(nn.Layer):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(ValueError, match=r"Hasty: call super\(\).__init__\(\) before assigning 'fc'"):
        Hasty()
    with pytest.raises(NotImplementedError, match=r"Layer has no forward\(\)"):
        nn.Layer()(sp.ones([1]))
    with pytest.raises(ValueError, match=r"no backward\(\)"):
        Net().backward()


def test_the_error_of_a_property_is_the_one_that_is_seen():
    class Broken(nn.Layer):
        @property
        def size(self):
            return self.missing + 1

    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        Broken().size


def test_names_of_members_are_checked():
    net = Net()
    for name, error in ((3, TypeError), ("a.b", KeyError), ("", KeyError), ("fc1", KeyError)):
        with pytest.raises(error, match="Net"):
            net.register_buffer(name, sp.ones([1]))
        with pytest.raises(error, match="Net"):
            net.add_parameter(name, sp.Parameter(sp.ones([1])))
    with pytest.raises(TypeError, match="a Layer or None is needed as 'x', got str"):
        net.add_sublayer("x", "y")
    with pytest.raises(TypeError, match="a Parameter or None is needed, got Tensor"):
        net.add_parameter("x", sp.ones([1]))


ATTRIBUTES = [None, True, "", "w_name", nn.initializer.Constant(3.0), sp.ParamAttr(learning_rate=0.5)]


@pytest.mark.parametrize("attr", ATTRIBUTES)
def test_create_parameter_takes_every_kind_of_attribute(attr):
    p = nn.Layer().create_parameter([2, 3], attr)
    assert p.shape == [2, 3] and not p.stop_gradient and isinstance(p, sp.Parameter)
    if isinstance(attr, nn.initializer.Constant):
        assert p.tolist() == [[3.0] * 3] * 2
    if attr == "w_name":
        assert p.name == "w_name"


def test_create_parameter_with_dtype_bias_and_none():
    layer = nn.Layer(name_scope="my_scope")
    assert layer.create_parameter([2], False) is None
    assert layer.create_parameter([2], is_bias=True).tolist() == [0.0, 0.0]
    assert str(layer.create_parameter([2], dtype="float64").dtype).endswith("float64")
    assert layer.full_name().startswith("my_scope_")
    names = [layer.create_parameter([1], is_bias=b).name for b in (False, True)]
    assert names[0].startswith(layer.full_name() + ".w_") and names[1].startswith(layer.full_name() + ".b_")
    t = layer.create_tensor("t", dtype="float32")
    assert t.name == layer.full_name() + ".t" and not t.persistable


def test_full_names_count_and_follow_the_class():
    class SomeNet2D(nn.Layer):
        pass

    a, b = SomeNet2D(), SomeNet2D()
    assert a.full_name().startswith("some_net2d_") and a.full_name() != b.full_name()
    assert nn.Linear(1, 1).full_name().startswith("linear_")


def test_state_goes_over_by_name_with_warnings_for_what_does_not_fit():
    a, b = Net(), Net()
    assert b.set_state_dict(a.state_dict()) == ([], [])
    x = sp.randn([2, 3])
    assert (a(x) - b(x)).abs().max().item() == 0.0
    state = dict(a.state_dict(), extra=sp.ones([1]))
    del state["fc1.bias"]
    state["fc2.bias"] = sp.ones([5])
    with pytest.warns(UserWarning) as seen:
        missing, unexpected = b.set_state_dict(state)
    texts = [str(w.message) for w in seen]
    assert missing == ["fc1.bias", "fc2.bias"] and unexpected == ["fc2.bias", "extra"]
    assert "Skip loading for fc1.bias. fc1.bias is not found in the provided dict." in texts
    assert "Skip loading for fc2.bias. fc2.bias receives a shape [5], but the expected shape is [2]." in texts
    by_name = {t.name: t for t in a.state_dict().values()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(b.set_state_dict(by_name, use_structured_name=False)[0]) == 6
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Net"):
        b.load_state_dict(state)
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    import numpy as np

    b.set_dict({name: np.zeros(t.shape, "float32") for name, t in a.state_dict().items()})
    assert b.fc1.weight.abs().max().item() == 0.0


def test_state_dict_arguments_and_hooks():
    net = Net()
    assert list(net.state_dict(include_sublayers=False)) == ["scale", "steps"]
    assert list(net.state_dict(structured_name_prefix="a."))[0] == "a.scale"
    assert net.state_dict(prefix="b.").keys() == {f"b.{k}" for k in net.state_dict()}
    assert net.state_dict()["scale"] is net.scale
    assert net.state_dict(keep_vars=False)["scale"].stop_gradient
    helper = net.register_state_dict_hook(lambda state: {k: v for k, v in state.items() if "fc" not in k})
    assert list(net.state_dict()) == ["scale", "steps"]
    assert len(net.state_dict(use_hook=False)) == 6
    helper.remove()
    assert len(net.state_dict()) == 6


def test_modes_gradients_and_freezing():
    net = Net()
    net.eval()
    assert not net.training and not net.fc1.training
    net.train()
    assert net.fc2.training
    with pytest.raises(ValueError, match="mode must be a bool"):
        net.train("yes")
    net(sp.ones([1, 3])).sum().backward()
    assert net.fc1.weight.grad is not None
    net.clear_gradients()
    assert net.fc1.weight.grad is None or net.fc1.weight.grad.abs().max().item() == 0.0
    net.clear_gradients(set_to_zero=False)
    net.fc1.requires_grad_(False)
    net(sp.ones([1, 3])).sum().backward()
    assert net.fc1.weight.grad is None and net.fc2.weight.grad is not None


def test_casting_changes_the_layers_that_compute():
    net = Net()
    assert net.to(dtype="float64") is net
    assert all(str(p.dtype).endswith("float64") for p in net.parameters())
    assert str(net(sp.ones([1, 3], "float64")).dtype).endswith("float64")
    net.float()
    assert str(net.fc1.weight.dtype).endswith("float32") and str(net.steps.dtype).endswith("float32")
    assert str(net.astype("float64").fc1.bias.dtype).endswith("float64")
    assert not net.fc1.weight.stop_gradient
    with pytest.raises(ValueError, match="dtype must be one of"):
        net.astype("float99")
    with pytest.raises(ValueError, match="is not here"):
        net.to("gpu:0")
    mixed = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2))
    mixed.bfloat16()
    assert str(mixed[0].weight.dtype).endswith("bfloat16") and str(mixed[1].weight.dtype).endswith("float32")
    with pytest.raises(TypeError, match="excluded_layers"):
        mixed.float16(excluded_layers=3)


def test_apply_goes_from_the_inside_out():
    seen = []
    net = Net()
    assert net.apply(lambda layer: seen.append(type(layer).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


def test_paths_lead_to_members():
    net = nn.Sequential(Net(), nn.ReLU())
    assert net.get_sublayer("0.fc1") is net[0].fc1
    net.set_sublayer("0.fc1", nn.Identity())
    assert isinstance(net[0].fc1, nn.Identity)
    assert net.get_parameter("0.scale") is net[0].scale and net.get_buffer("0.steps") is net[0].steps
    with pytest.raises(AttributeError, match="Net has no attribute `nothing`"):
        net.get_sublayer("0.nothing")


def test_shared_members_are_listed_once():
    net = Net()
    net.again = net.fc1
    net.tied = net.scale
    assert len(net.sublayers()) == 2 and len(net.parameters()) == 5
    assert len(list(net.named_sublayers(remove_duplicate=False))) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) > 5


@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent_and_keep_what_is_shared(how):
    net = Net()
    net.tied = net.scale
    net.eval()
    other = how(net)
    x = sp.randn([2, 3])
    assert (net(x) - other(x)).abs().max().item() == 0.0
    assert other.tied is other.scale and other.scale is not net.scale
    assert not other.training and not other.fc1.training
    other.fc1.weight.set_value(sp.zeros([3, 4]))
    assert (net(x) - other(x)).abs().max().item() > 0.0


def test_the_text_of_a_layer():
    assert repr(nn.Sequential(nn.Linear(1, 2), ("x", nn.ReLU()))) == (
        "Sequential(\n  (0): Linear(in_features=1, out_features=2, dtype=float32)\n  (x): ReLU()\n)"
    )

    class Told(nn.Layer):
        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Told()) == "Told(\n  a=1\n  b=2\n)"


def test_an_error_names_the_layer_it_arose_in():
    class Deep(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 1))

        def forward(self, x):
            return self.net(x)

    with pytest.raises(ValueError, match="linear: x has 4 columns, weight has 5 rows") as e:
        Deep()(sp.ones([1, 3]))
    assert e.value.__notes__ == ["In: Deep.net.1 (Linear)"]

    class Careful(nn.Layer):
        def __init__(self):
            super().__init__()
            self.bad, self.good = nn.Linear(9, 9), nn.Linear(3, 3)

        def forward(self, x):
            try:
                self.bad(x)
            except ValueError:
                pass
            self.good(x)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as e:
        Careful()(sp.ones([1, 3]))
    assert e.value.__notes__ == ["In: Careful"]
