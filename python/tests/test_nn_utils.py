"""Norms of weights, gradients cut, parameters as one vector, limits on gradients."""

import copy

import numpy as np
import pytest
import sampan as sp
from sampan import nn
from sampan.nn import utils


class Own(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([3, 4])

    def forward(self, inputs):
        return inputs @ self.weight


def test_weight_norm_gives_paddles_numbers(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    fc = fill(nn.Linear(3, 4))
    assert utils.weight_norm(fc, dim=1) is fc
    check("weight_norm", (fc(x(2, 3)), fc.weight_g, fc.weight_v))
    for name, dim in (("conv", 0), ("all", None), ("1", 1)):
        conv = fill(nn.Conv2D(2, 4, 3))
        utils.weight_norm(conv, dim=dim)
        check(f"weight_norm {name}", (conv(x(1, 2, 5, 5)), conv.weight_g))


@pytest.mark.parametrize("make", [lambda: nn.Linear(3, 4), Own])
def test_weight_norm_is_put_on_and_taken_off(make, recorded):
    x = recorded.x
    layer, inputs = make(), x(2, 3)
    plain = layer(inputs)
    utils.weight_norm(layer, dim=1)
    assert {"weight_g", "weight_v"} <= set(layer.state_dict()) and "weight" not in layer.state_dict()
    assert (layer(inputs) - plain).abs().max().item() < 1e-6
    layer(inputs).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    with pytest.raises(RuntimeError, match="has a norm already"):
        utils.weight_norm(layer)
    other = copy.deepcopy(layer) if isinstance(layer, nn.Linear) else layer
    layer.weight_g.set_value(layer.weight_g * 2)
    bias = getattr(layer, "bias", None)
    bias = 0 if bias is None else bias
    assert ((layer(inputs) - bias) - 2 * (plain - bias)).abs().max().item() < 1e-5
    utils.remove_weight_norm(layer)
    assert "weight" in layer.state_dict() and "weight_g" not in layer.state_dict()
    assert ((layer(inputs) - bias) - 2 * (plain - bias)).abs().max().item() < 1e-5
    if other is not layer:
        assert (other(inputs) - plain).abs().max().item() < 1e-6
    with pytest.raises(ValueError, match="has no weight_norm"):
        utils.remove_weight_norm(layer)
    with pytest.raises(ValueError, match="has no parameter 'nothing'"):
        utils.weight_norm(layer, "nothing")
    with pytest.raises(ValueError, match=r"dim must lie in \[-2, 2\), got 5"):
        utils.weight_norm(layer, dim=5)


def test_spectral_norm(recorded):
    check, fill, x = recorded.check, recorded.fill, recorded.x
    fc = fill(nn.Linear(3, 4))
    utils.spectral_norm(fc)
    fc.weight_u.set_value(x(4)), fc.weight_v.set_value(x(3))
    fc.train()
    check("spectral", (fc(x(2, 3)), fc.weight_u, fc.weight_v))
    fc.eval()
    check("spectral eval", fc(x(2, 3)))
    conv = utils.spectral_norm(nn.Conv2D(2, 3, 3), n_power_iterations=50)
    conv(x(1, 2, 5, 5)).sum().backward()
    assert conv.weight_orig.grad is not None
    assert sorted(conv.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    largest = np.linalg.svd(conv.weight.numpy().reshape(3, -1), compute_uv=False)[0]
    assert abs(largest - 1.0) < 1e-3
    utils.remove_spectral_norm(conv)
    assert sorted(conv.state_dict()) == ["bias", "weight"]


def test_a_norm_on_a_layer_inside_the_core(recorded):
    x = recorded.x
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)
    inputs = x(1, 3, 8)
    plain = encoder(inputs)
    utils.weight_norm(encoder.layers[0].linear1, dim=1)
    assert (encoder(inputs) - plain).abs().max().item() < 1e-5
    encoder(inputs).sum().backward()
    assert encoder.layers[0].linear1.weight_g.grad is not None


def test_gradients_are_cut():
    layer = nn.Linear(2, 2)

    def grads():
        layer.clear_gradients(set_to_zero=False)
        (layer(sp.full([1, 2], 30.0)).sum() * 1.0).backward()
        return layer.parameters()

    total = utils.clip_grad_norm_(grads(), 1.0)
    assert abs(total.item() - np.sqrt(4 * 900 + 2)) < 1e-2
    norm = np.sqrt(sum((p.grad**2).sum().item() for p in layer.parameters()))
    assert abs(norm - 1.0) < 1e-4
    assert utils.clip_grad_norm_(iter(grads()), 1.0, norm_type=float("inf")).item() == 30.0
    utils.clip_grad_value_(grads(), 0.5)
    assert max(p.grad.abs().max().item() for p in layer.parameters()) == 0.5
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0
    with pytest.raises(ValueError, match="norm_type"):
        utils.clip_grad_norm_(grads(), 1.0, norm_type=3.0)


def test_parameters_as_one_vector():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == [9] and not vector.stop_gradient
    utils.vector_to_parameters(sp.arange(9, dtype="float32"), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and layer.bias.tolist() == [6.0, 7.0, 8.0]
    assert layer(sp.ones([1, 2])).tolist() == [[9.0, 12.0, 15.0]]
    with pytest.raises(ValueError, match="9 elements"):
        utils.vector_to_parameters(sp.ones([3]), layer.parameters())


def test_limits_are_called_with_pairs():
    a, b = sp.Parameter(sp.ones([1])), sp.Parameter(sp.ones([1]))
    pairs = [(a, sp.to_tensor([3.0])), (b, sp.to_tensor([4.0])), (a, None)]
    found = nn.ClipGradByGlobalNorm(1.0)(pairs)
    assert [None if g is None else round(g.item(), 5) for _, g in found] == [0.6, 0.8, None] and found[0][0] is a
    assert [g.item() for _, g in nn.ClipGradByNorm(2.0)(pairs[:2])] == [2.0, 2.0]
    limit = nn.ClipGradByValue(max=3.5)
    assert [g.item() for _, g in limit(pairs[:2])] == [3.0, 3.5] and (limit.min, limit.max) == (-3.5, 3.5)
    assert copy.deepcopy(nn.ClipGradByNorm(2.0)).clip_norm == 2.0
    with pytest.raises(ValueError, match="clip_norm must be positive"):
        nn.ClipGradByNorm(-1.0)


def spectral(weight, dim, iterations, u, v):
    """The weight over its largest singular value as the vectors find it, and the vectors."""
    rows = np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    for _ in range(iterations):
        v = rows.T @ u
        v = v / np.linalg.norm(v)
        u = rows @ v
        u = u / np.linalg.norm(u)
    return weight / (u @ rows @ v), (u, v)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_the_gradient_of_spectral_norm_is_its_difference_quotient(dim, iterations):
    # PaddlePaddle 3.3.1 gives another one. The vectors count as constants, as in PyTorch.
    draw = np.random.RandomState(dim)
    weight, cotangent = draw.randn(4, 3, 2), draw.randn(4, 3, 2)
    layer = nn.SpectralNorm([4, 3, 2], dim, iterations, dtype="float64")
    u, v = draw.randn(weight.shape[dim]), draw.randn(weight.size // weight.shape[dim])
    layer.weight_u.set_value(u)
    layer.weight_v.set_value(v)
    x = sp.to_tensor(weight, stop_gradient=False)
    y = layer(x)
    want, found = spectral(weight, dim, iterations, u, v)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-9)
    (y * sp.to_tensor(cotangent)).sum().backward()
    step, quotient = 1e-6, np.zeros_like(weight)
    for place in np.ndindex(weight.shape):
        moved = [weight.copy(), weight.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        high, low = ((spectral(w, dim, 0, *found)[0] * cotangent).sum() for w in moved)
        quotient[place] = (high - low) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), quotient, rtol=1e-6, atol=1e-7)
