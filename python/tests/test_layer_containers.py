"""Sequential, LayerList, LayerDict, ParameterList, ParameterDict."""

import copy
import pickle
from collections import OrderedDict

import pytest
import sampan as sp
from sampan import nn


def test_sequential_is_built_in_every_way():
    layers = [nn.Linear(2, 3), nn.ReLU()]
    for net in (
        nn.Sequential(*layers),
        nn.Sequential(layers),
        nn.Sequential(("0", layers[0]), ("1", layers[1])),
        nn.Sequential(["0", layers[0]], ["1", layers[1]]),
        nn.Sequential(OrderedDict([("0", layers[0]), ("1", layers[1])])),
    ):
        assert list(net._sub_layers) == ["0", "1"] and net[0] is layers[0] and net[-1] is layers[1]
        assert net(sp.ones([1, 2])).shape == [1, 3]
    assert len(nn.Sequential()) == 0
    with pytest.raises(TypeError, match="Sequential: a Layer is needed, got int"):
        nn.Sequential(nn.ReLU(), 3)


def test_sequential_is_a_list_of_layers():
    net = nn.Sequential(("a", nn.Linear(2, 3)), ("b", nn.ReLU()))
    assert net["a"] is net[0] and [type(m) for m in net] == [nn.Linear, nn.ReLU]
    assert net.append(nn.Tanh()) is net and list(net._sub_layers) == ["a", "b", "2"]
    net.insert(1, nn.Linear(3, 3)).extend([nn.Sigmoid(), nn.Identity()])
    assert [type(m).__name__ for m in net] == ["Linear", "Linear", "ReLU", "Tanh", "Sigmoid", "Identity"]
    assert len(net[1:3]) == 2 and isinstance(net[1:3], nn.Sequential)
    net[0] = nn.Linear(2, 3, bias_attr=False)
    assert net[0].bias is None
    del net[-1]
    assert len(net) == 5 and isinstance(net.pop(1), nn.Linear) and len(net) == 4
    for bad in (9, -9):
        with pytest.raises(IndexError, match=r"Sequential: index -?9 is out of range \[-4, 4\)"):
            net[bad]
    with pytest.raises(KeyError, match="has no layer 'z'"):
        del net["z"]


def test_layer_list():
    heads = nn.LayerList([nn.Linear(2, n) for n in (1, 2, 3)])
    assert heads.append(nn.Linear(2, 4)) is heads and len(heads) == 4
    heads.insert(0, nn.Linear(2, 9))
    assert [h.weight.shape[1] for h in heads] == [9, 1, 2, 3, 4]
    assert heads.extend([nn.Linear(2, 5)])[-1].weight.shape == [2, 5]
    del heads[0]
    assert list(heads.state_dict())[0] == "0.weight" and heads[0].weight.shape == [2, 1]
    assert isinstance(heads[1:3], nn.LayerList) and len(heads[1:3]) == 2
    assert heads.pop(-1).weight.shape == [2, 5]
    heads += [nn.ReLU()]
    assert len(heads) == 5 and len(heads + [nn.ReLU()]) == 6 and heads[4] in heads
    heads[4] = nn.Tanh()
    assert isinstance(heads[4], nn.Tanh) and "0" not in dir(heads)
    with pytest.raises(IndexError, match="LayerList: index 5 is out of range"):
        heads[5]
    with pytest.raises(TypeError, match="LayerList: a Layer is needed, got str"):
        heads.append("x")
    del heads[1:3]
    assert list(heads._sub_layers) == ["0", "1", "2"]


def test_layer_dict():
    parts = nn.LayerDict([("a", nn.Linear(1, 2)), ("b", nn.ReLU())])
    parts["c"] = nn.Tanh()
    parts.update({"a": nn.Identity()})
    assert list(parts) == ["a", "b", "c"] == list(parts.keys()) and "a" in parts and len(parts) == 3
    assert isinstance(parts.pop("a"), nn.Identity) and [k for k, _ in parts.items()] == ["b", "c"]
    del parts["b"]
    assert [type(v) for v in parts.values()] == [nn.Tanh]
    parts.clear()
    assert len(parts) == 0
    with pytest.raises(ValueError, match="LayerDict: element 0 must be a pair"):
        nn.LayerDict([("a", nn.ReLU(), 3)])


def test_parameter_list_and_dict():
    def p(n):
        return sp.Parameter(sp.full([n], float(n)))

    several = nn.ParameterList([p(1), p(2)]).append(p(3))
    assert [q.shape for q in several] == [[1], [2], [3]] and several[-1].shape == [3] and len(several) == 3
    several[0] = sp.zeros([1])
    assert several[0].item() == 0.0 and not several[0].stop_gradient
    assert list(several.state_dict()) == ["0", "1", "2"]
    named = nn.ParameterDict({"a": p(1)})
    named["b"] = p(2)
    named.update([("c", p(3))])
    assert list(named.keys()) == ["a", "b", "c"] and named["b"].shape == [2] and "c" in named
    with pytest.raises(TypeError, match="ParameterDict"):
        named["d"] = sp.ones([1])
    with pytest.raises(TypeError, match="ParameterList: a Parameter is needed, got int"):
        several.append(3)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_containers_are_copied(how):
    tied = nn.Linear(2, 2)
    net = nn.Sequential(tied, nn.LayerList([nn.ReLU()])[0], tied)
    other = how(net)
    assert other[0] is other[2] and other[0] is not net[0]
    x = sp.randn([3, 2])
    assert (other(x) - net(x)).abs().max().item() == 0.0
