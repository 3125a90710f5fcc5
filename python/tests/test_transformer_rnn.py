"""Attention, transformers and recurrent layers against numbers that Paddle 3.3.1 gave for the same weights and inputs.

A number is the sum of an output times a fixed pattern; the weights are a fixed pattern too.
"""

import copy

import numpy as np
import pytest
import sampan as sp
from sampan import nn


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("time_major", [False, True])
def test_stacks(kind, direction, time_major, recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    layer = fill(getattr(nn, kind)(3, 4, num_layers=2, direction=direction, time_major=time_major))
    inputs = x(4, 2, 3) if time_major else x(2, 4, 3)
    name = f"{kind} {direction} {time_major}"
    check(name, layer(inputs))
    check(f"{name} lens", layer(inputs, sequence_length=sp.to_tensor([4, 2])))
    h = x(4 if direction == "bidirect" else 2, 2, 4, k=0.5)
    check(f"{name} states", layer(inputs, (h, h * 2) if kind == "LSTM" else h))


def test_the_structure_of_results(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    y, (h, c) = nn.LSTM(3, 4, proj_size=2)(x(2, 4, 3))
    assert (y.shape, h.shape, c.shape) == ([2, 4, 2], [1, 2, 2], [1, 2, 4])
    check("LSTM proj", fill(nn.LSTM(3, 4, proj_size=2))(x(2, 4, 3)))
    lstm = nn.LSTM(3, 4, 2, "bidirect")
    assert len(lstm) == 2 and isinstance(lstm[0], nn.BiRNN) and isinstance(lstm[1].cell_bw, nn.LSTMCell)
    assert lstm.weight_ih_l0 is lstm[0].cell_fw.weight_ih and lstm.bias_hh_l1_reverse is lstm[1].cell_bw.bias_hh
    assert len(lstm.parameters()) == 16 and len(lstm.state_dict()) == 32
    with pytest.raises(TypeError, match="LSTM: has no argument `state`"):
        lstm(x(2, 4, 3), state=None)
    with pytest.raises(ValueError, match="a state must have shape"):
        lstm(x(2, 4, 3), (x(1, 2, 4), x(1, 2, 4)))


@pytest.mark.parametrize("kind", ["SimpleRNNCell", "LSTMCell", "GRUCell"])
def test_cells(kind, recorded):
    check, fill, flat, x = recorded.check, recorded.fill, recorded.flat, recorded.x
    cell, h = fill(getattr(nn, kind)(3, 4)), x(2, 4)
    check(kind, cell(x(2, 3)))
    states = (h, h * 2) if kind == "LSTMCell" else h
    check(f"{kind} states", cell(inputs=x(2, 3), states=states))
    zeros = cell.get_initial_states(x(5, 3))
    assert [t.shape for t in flat(zeros)] == [[5, 4]] * len(flat(states))


def test_walks(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    lengths = sp.to_tensor([4, 2])
    check("RNN reverse", fill(nn.RNN(nn.GRUCell(3, 4), is_reverse=True))(x(2, 4, 3), sequence_length=lengths))
    h = x(2, 4)
    both = fill(nn.BiRNN(nn.LSTMCell(3, 4), nn.LSTMCell(3, 4)))
    check("BiRNN", both(x(2, 4, 3), ((h, h), (h * 2, h)), lengths))
    assert list(both.state_dict())[0] == "cell_fw.weight_ih"
    cell = nn.GRUCell(3, 4)
    assert nn.RNN(cell).cell is cell
    with pytest.raises(ValueError, match="both cells must take the same inputs"):
        nn.BiRNN(nn.GRUCell(3, 4), nn.GRUCell(5, 4))


def test_a_cell_written_in_python_walks_like_one_of_the_core(recorded):
    flat, x = recorded.flat, recorded.x
    class Cell(nn.RNNCellBase):
        def __init__(self, like):
            super().__init__()
            self.inner = like

        def forward(self, inputs, states):
            c = self.inner
            h = sp.tanh(inputs @ c.weight_ih.t() + c.bias_ih + states @ c.weight_hh.t() + c.bias_hh)
            return h, h

        @property
        def state_shape(self):
            return (4,)

    core = nn.SimpleRNNCell(3, 4)
    inputs, lengths = x(2, 5, 3), sp.to_tensor([5, 3])
    for reverse in (False, True):
        expected = nn.RNN(core, is_reverse=reverse)(inputs, None, lengths)
        found = nn.RNN(Cell(core), is_reverse=reverse)(inputs, None, lengths)
        for a, b in zip(flat(expected), flat(found)):
            assert (a - b).abs().max().item() < 1e-6
    seen = []
    walk = nn.RNN(core)
    walk.cell.register_forward_post_hook(lambda *_: seen.append(1))
    walk(inputs)
    assert len(seen) == 5

    class Nothing(nn.RNNCellBase):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no `state_shape`"):
        nn.RNN(Nothing())(inputs)


def test_attention(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    seen = sp.to_tensor([[True, True, False, True, False]])
    attention = fill(nn.MultiHeadAttention(8, 2, need_weights=True))
    check("mha", attention(x(2, 3, 8), x(2, 5, 8, k=0.2), x(2, 5, 8, k=0.3), attn_mask=seen))
    check("mha kdim", fill(nn.MultiHeadAttention(8, 2, kdim=6, vdim=4))(x(2, 3, 8), x(2, 5, 6), x(2, 5, 4)))
    attention = fill(nn.MultiHeadAttention(8, 2))
    first, cache = attention(x(2, 3, 8), cache=attention.gen_cache(x(2, 3, 8)))
    second, cache = attention(x(2, 1, 8, k=0.9), cache=cache)
    assert isinstance(cache, attention.Cache) and isinstance(cache, nn.MultiHeadAttention.Cache)
    check("mha cache", (first, second, cache.k, cache.v))
    memory = x(2, 5, 8)
    out, cache = attention(x(2, 3, 8), memory, memory, cache=attention.gen_cache(memory, memory, attention.StaticCache))
    assert isinstance(cache, attention.StaticCache)
    check("mha static", (out, cache.k))
    with pytest.raises(TypeError, match="MultiHeadAttention: argument `query` is missing"):
        attention()
    with pytest.raises(TypeError, match="`cache` must be a Cache or a StaticCache"):
        attention(memory, cache=3)


@pytest.mark.parametrize("before", [False, True])
def test_encoders_and_decoders(before, recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", normalize_before=before)
    encoder = fill(nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)))
    check(f"encoder {before}", encoder(x(2, 3, 8)))
    causal = sp.to_tensor(np.triu(np.full((3, 3), -np.inf, "float32"), 1))
    check(f"encoder {before} mask", encoder(x(2, 3, 8), src_mask=causal))
    out, caches = encoder(x(2, 3, 8), cache=encoder.gen_cache(x(2, 3, 8)))
    check(f"encoder {before} cache", (out, caches[1].k))
    decoder = fill(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, normalize_before=before), 2))
    memory = x(2, 5, 8, k=0.21)
    check(f"decoder {before}", decoder(x(2, 3, 8), memory))
    first, caches = decoder(x(2, 1, 8), memory, cache=decoder.gen_cache(memory))
    second, caches = decoder(x(2, 1, 8, k=0.8), memory, cache=caches)
    check(f"decoder {before} cache", (first, second, caches[0][0].k, caches[0][1].v))
    assert len(decoder.gen_cache(memory, do_zip=True)) == 2


def test_a_whole_transformer(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    net = fill(nn.Transformer(8, 2, 1, 2, 16))
    mask, seen = net.generate_square_subsequent_mask(4), sp.to_tensor([[1, 1, 0]])
    check("transformer", net(x(2, 3, 8), x(2, 4, 8, k=0.3), tgt_mask=mask, memory_mask=seen))

    class Same(nn.Layer):
        def forward(self, src, src_mask=None):
            return src

    own = nn.Transformer(8, 2, 1, 1, 16, custom_encoder=Same())
    assert isinstance(own.encoder, Same) and own(x(2, 3, 8), x(2, 4, 8)).shape == [2, 4, 8]
    assert all(name.startswith("decoder.") for name in own.state_dict())


def test_layers_of_ones_own_in_a_stack(recorded):
    x = recorded.x
    class Scaled(nn.TransformerEncoderLayer):
        def __init__(self, *args, scale=2.0, **kwargs):
            super().__init__(*args, **kwargs)
            self.scale = scale

        def forward(self, src, src_mask=None, cache=None):
            return super().forward(src, src_mask, cache) * self.scale

    class Foreign(nn.Layer):
        def __init__(self, width):
            super().__init__()
            self._config = {"width": width}
            self.fc = nn.Linear(width, width)

        def forward(self, src, src_mask=None, cache=None):
            assert src_mask is not None
            return self.fc(src)

    first = Scaled(8, 2, 16, dropout=0.0)
    stack = nn.TransformerEncoder(first, 3)
    assert stack.layers[0] is first and all(type(layer) is Scaled for layer in stack.layers)
    y = x(2, 3, 8)
    expected = y
    for layer in stack.layers:
        expected = layer(expected)
    assert (stack(y) - expected).abs().max().item() == 0.0
    foreign = nn.TransformerEncoder(Foreign(8), 2, norm=nn.LayerNorm(8))
    assert foreign(y, sp.zeros([3, 3])).shape == [2, 3, 8]
    assert list(foreign.state_dict())[0] == "layers.0.fc.weight" and "norm.weight" in foreign.state_dict()
    foreign(y, sp.zeros([3, 3])).sum().backward()
    assert all(p.grad is not None for p in foreign.parameters())


@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
@pytest.mark.parametrize("before", [False, True])
def test_the_activation_is_a_function(kind, before):
    sp.seed(5)
    layer = kind(8, 2, 16, dropout=0.0, activation="gelu", normalize_before=before)
    inputs = (sp.randn([2, 3, 8]),) * (1 if kind is nn.TransformerEncoderLayer else 2)
    inputs += (sp.triu(sp.full([3, 3], "-inf"), 1),)
    assert layer.activation is nn.functional.gelu
    expected = layer(*inputs)
    # Python, a layer, and the core again.
    for activation in (lambda y: nn.functional.gelu(y), nn.GELU(), nn.functional.gelu):
        layer.activation = activation
        assert layer.activation is activation and (layer(*inputs) - expected).abs().max().item() < 1e-5
    layer.activation = lambda y: 0 * y
    cache = layer.gen_cache(inputs[-2])
    assert (layer(*inputs) - expected).abs().max().item() > 1e-3
    assert (layer(*inputs, cache=cache)[0] - layer(*inputs)).abs().max().item() < 1e-6


def test_an_activation_that_a_program_added(monkeypatch):
    monkeypatch.setattr(nn.functional, "quick_gelu", lambda y: y * nn.functional.sigmoid(1.702 * y), raising=False)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation="quick_gelu")
    stack, y = nn.TransformerEncoder(layer, 2), sp.randn([2, 3, 4])
    assert stack.layers[1].activation is nn.functional.quick_gelu
    assert (stack(y) - stack.layers[1](layer(y))).abs().max().item() < 1e-6
    again = copy.deepcopy(layer)
    assert (again(y) - layer(y)).abs().max().item() == 0.0
    again.activation = nn.functional.relu
    assert (again(y) - layer(y)).abs().max().item() > 0.0


def test_the_config_of_a_layer_counts_for_its_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0)
    assert len(layer._config) == 11 and layer._config["attn_dropout"] is None
    layer._config.update(dim_feedforward=16)
    assert [one.linear1.weight.shape for one in nn.TransformerEncoder(layer, 2).layers] == [[4, 8], [4, 16]]
    layer.self_attn.need_weights = None
    assert layer(sp.ones([1, 2, 4])).shape == [1, 2, 4]
