"""Hooks: their order, what they may change, and how they are taken off."""

import warnings

import pytest
import sampan as sp
from sampan import nn


def test_hooks_run_in_order_and_replace():
    layer, seen = nn.Linear(2, 2), []
    x = sp.ones([1, 2])
    plain = layer(x)

    def pre(layer, inputs):
        seen.append("pre")
        return inputs[0] * 2

    def post(layer, inputs, outputs):
        seen.append("post")
        assert inputs[0].tolist() == [[2.0, 2.0]]
        return outputs - layer.bias

    a, b = layer.register_forward_pre_hook(pre), layer.register_forward_post_hook(post)
    assert ((layer(x) - plain * 2).abs() < 1e-6).all().item()
    assert seen == ["pre", "post"]
    a.remove(), b.remove(), b.remove()
    assert layer(x).tolist() == plain.tolist() and len(seen) == 2


def test_prepend_with_kwargs_and_always_call():
    class Scaled(nn.Layer):
        def forward(self, x, scale=1):
            if scale is None:
                raise ValueError("no scale")
            return x * scale

    layer, seen = Scaled(), []
    layer.register_forward_pre_hook(lambda layer, inputs: seen.append("second"))
    layer.register_forward_pre_hook(lambda layer, inputs: seen.append("first"), prepend=True)
    layer.register_forward_pre_hook(lambda layer, inputs, kwargs: (inputs, {"scale": kwargs["scale"]}), with_kwargs=True)
    layer.register_forward_hook(lambda layer, i, k, o: seen.append(k["scale"]), with_kwargs=True, always_call=True)
    assert layer(sp.ones([1]), scale=3).item() == 3.0
    assert seen == ["first", "second", 3]
    with pytest.raises(ValueError, match="no scale"):
        layer(sp.ones([1]), scale=None)
    assert seen[-1] is None

    def bad(layer, i, o):
        raise RuntimeError("in the hook")

    layer.register_forward_post_hook(bad, always_call=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="no scale"):
            layer(sp.ones([1]), scale=None)
    assert any("in the hook" in str(w.message) for w in caught)
    wrong = Scaled()
    wrong.register_forward_pre_hook(lambda layer, i, k: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="Scaled: a pre-hook with with_kwargs=True returns None or"):
        wrong(sp.ones([1]))


def test_hooks_on_layers_inside_the_core_run_and_may_change_the_output():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
    x, seen = sp.randn([2, 3, 8]), []
    plain = encoder(x)
    mask = sp.zeros([3, 3])

    def look(layer, inputs, outputs):
        seen.append((type(layer).__name__, [t.shape for t in inputs]))

    hooks = [layer.register_forward_post_hook(look) for layer in encoder.sublayers() if isinstance(layer, nn.MultiHeadAttention)]
    assert (encoder(x, mask) - plain).abs().max().item() < 1e-6
    assert seen == [("MultiHeadAttention", [[2, 3, 8]] * 3 + [[3, 3]])] * 2
    for hook in hooks:
        hook.remove()
    encoder(x)
    assert len(seen) == 2
    encoder.layers[1].linear2.register_forward_post_hook(lambda layer, i, o: o * 0)
    assert (encoder(x) - plain).abs().max().item() > 1e-3


def test_a_hook_that_raises_goes_through_the_core_unchanged():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1)

    def stop(layer, inputs):
        raise KeyError("stop here")

    encoder.layers[0].self_attn.q_proj.register_forward_pre_hook(stop)
    with pytest.raises(KeyError, match="stop here") as e:
        encoder(sp.randn([1, 2, 8]))
    assert "In: TransformerEncoder.layers.0.self_attn.q_proj (Linear)" in e.value.__notes__
