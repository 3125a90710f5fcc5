"""The tree inside a built-in layer: it is Python's to change, and the core follows."""

import copy
import pickle

import pytest
import sampan as sp
from sampan import nn


def encoder(n=2):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), n, nn.LayerNorm(8))


def far(a, b):
    return (a - b).abs().max().item()


X = sp.randn([2, 3, 8])


def test_paths_and_types_are_those_of_the_fields():
    net = nn.Transformer(8, 2, 1, 1, 16)
    paths = dict(net.named_sublayers())
    assert isinstance(paths["encoder.layers"], nn.LayerList) and isinstance(paths["encoder.layers.0.self_attn"], nn.MultiHeadAttention)
    assert isinstance(paths["decoder.layers.0.cross_attn.q_proj"], nn.Linear) and isinstance(paths["encoder.norm"], nn.LayerNorm)
    assert paths["encoder.layers.0.self_attn"].num_heads == 2 and paths["encoder.layers.0.norm1"]._epsilon == 1e-5
    state = net.encoder.layers[0].state_dict()
    assert list(state)[:2] == ["self_attn.q_proj.weight", "self_attn.q_proj.bias"]
    net.encoder.layers[0].eval()
    assert net.encoder.layers[0].self_attn.training is False and net.decoder.training is True


def test_a_layer_inside_can_be_called_alone():
    net = encoder()
    y = X
    for layer in net.layers:
        y = layer(y)
    assert far(net.norm(y), net(X)) == 0.0


def test_replacing_freezing_and_putting_back():
    net = encoder()
    plain, old = net(X), net.layers[0].linear1
    net.layers[0].linear1 = nn.Linear(8, 16)
    assert far(net(X), plain) > 0.0 and "layers.0.linear1.weight" in net.state_dict()
    net.layers[0].linear1 = old
    assert far(net(X), plain) == 0.0
    net.layers[0].linear1 = nn.Sequential(old, nn.Identity())
    assert far(net(X), plain) == 0.0 and "layers.0.linear1.0.weight" in net.state_dict()
    net(X).sum().backward()
    assert old.weight.grad is not None
    net.layers[1].self_attn = nn.Identity()
    with pytest.raises(TypeError, match="Identity: takes at most 1 arguments"):
        net(X)

    class First(nn.Layer):
        def forward(self, query, *rest):
            return query

    net.layers[1].self_attn = First()
    assert net(X).shape == [2, 3, 8]
    net.layers[0].norm1 = None
    with pytest.raises(RuntimeError, match="a part that was set to None"):
        net(X)


def test_parameters_inside_are_shared_and_replaced():
    net = encoder()
    net.layers[1].linear1.weight = net.layers[0].linear1.weight
    assert len(net.parameters()) == len(encoder().parameters()) - 1
    net.layers[0].linear1.weight.set_value(sp.zeros([8, 16]))
    assert net.layers[1].linear1(X).abs().max().item() == net.layers[1].linear1.bias.abs().max().item()
    net.layers[0].self_attn.q_proj.weight.stop_gradient = True
    net(X).sum().backward()
    assert net.layers[0].self_attn.q_proj.weight.grad is None


def test_the_list_of_layers_can_grow_and_shrink():
    net = encoder(3)
    kept = list(net.layers)
    net.layers.pop(1)
    assert net.num_layers == 2 and list(net.layers) == [kept[0], kept[2]]
    assert far(net(X), net.norm(kept[2](kept[0](X)))) == 0.0
    net.layers.append(kept[1])
    assert far(net(X), net.norm(kept[1](kept[2](kept[0](X))))) == 0.0
    net.layers = nn.LayerList(kept[:1])
    assert far(net(X), net.norm(kept[0](X))) == 0.0 and len(net.state_dict()) == 18
    net.layers[0] = kept[2]
    assert far(net(X), net.norm(kept[2](X))) == 0.0
    net.norm = None
    assert far(net(X), kept[2](X)) == 0.0


@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_changed_tree_is_copied(how):
    net = encoder()
    net.layers[0].linear1 = nn.Linear(8, 16)
    net.layers[1].linear2.weight = sp.Parameter(sp.zeros([16, 8]))
    net.layers[1].eval()
    other = how(net)
    assert far(other(X), net(X)) == 0.0
    assert [n for n, _ in other.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert not other.layers[1].self_attn.training and other.layers[0].training
    other.layers[0].linear1.weight.set_value(sp.zeros([8, 16]))
    assert far(other(X), net(X)) > 0.0


def test_part_of_a_layer_is_copied_alone_or_with_the_rest():
    net = encoder()
    part = copy.deepcopy(net.layers[0].self_attn)
    assert far(part(X), net.layers[0].self_attn(X)) == 0.0
    part.q_proj.weight.set_value(sp.zeros([8, 8]))
    assert far(part(X), net.layers[0].self_attn(X)) > 0.0

    class Holder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.part = net.layers[0].self_attn
            self.whole = net

    other = copy.deepcopy(Holder())
    assert other.part is other.whole.layers[0].self_attn
    listed = copy.deepcopy(net.layers)
    assert far(listed[0](X), net.layers[0](X)) == 0.0 and listed[0] is not net.layers[0]


def test_random_numbers_go_on_after_a_copy():
    layer = nn.Linear(50, 50)
    sp.seed(3)
    a = sp.rand([2])
    sp.seed(3)
    copy.deepcopy(layer)
    assert far(sp.rand([2]), a) == 0.0
