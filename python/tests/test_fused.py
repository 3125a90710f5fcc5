"""Functions that Paddle has in one kernel, and sums along the edges of graphs; numbers are those of Paddle 3.3.1."""

import numpy as np
import pytest
import sampan
from sampan import geometric, incubate
from sampan.incubate.nn import FusedBiasDropoutResidualLayerNorm, FusedDropoutAdd, FusedLinear
from sampan.incubate.nn import functional as fused
from sampan.nn import functional as F
from sampan.nn.functional.flash_attention import flash_attention


def near(a, b, by=1e-5):
    return a.shape == b.shape and (a - b).abs().max().item() < by


def test_linear_maps():
    sampan.seed(1)
    x, w, b = sampan.randn([2, 5, 3]), sampan.randn([3, 4]), sampan.randn([4])
    expected = x @ w + b
    assert near(fused.fused_linear(x, w, b), expected) and near(fused.fused_linear(x, w), x @ w)
    assert near(fused.fused_linear(x, w.T, b, transpose_weight=True), expected)
    assert near(fused.fused_matmul_bias(x, w.T, b, transpose_y=True), expected)
    assert near(fused.fused_linear_activation(x, w, b, activation="relu"), F.relu(expected))
    with pytest.raises(ValueError, match="activation"):
        fused.fused_linear_activation(x, w, b, activation="tanh")
    layer = FusedLinear(3, 4, transpose_weight=True)
    assert layer.weight.shape == [4, 3] and near(layer(x), x @ layer.weight.T + layer.bias)
    assert FusedLinear(3, 4, bias_attr=False).bias is None and list(FusedLinear(3, 4).state_dict()) == ["weight", "bias"]


def test_norms():
    sampan.seed(2)
    x, residual, bias, weight = sampan.randn([2, 3, 8]), sampan.randn([2, 3, 8]), sampan.randn([8]), sampan.randn([8])
    total = x + bias + residual
    out, kept = fused.fused_rms_norm(x, weight, None, 1e-5, 2, bias, residual)
    assert near(kept, total) and near(out, total * (total.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * weight)
    assert fused.fused_rms_norm(x, weight, bias, 1e-5, 2)[1] is None
    out, kept, mean, scale = fused.fused_layer_norm(x, weight, bias, 1e-5, 0.5, 2, bias, residual)
    total = x + bias + 0.5 * residual
    assert near(out, F.layer_norm(total, 8, weight, bias)) and near(kept, total)
    assert near(mean, total.mean(-1).flatten()) and near(scale, (total.var(-1, unbiased=False) + 1e-5).rsqrt().flatten())
    added = FusedDropoutAdd(0.5).eval()
    assert near(added(x, residual), x + residual) and str(added) == "FusedDropoutAdd(p=0.5, mode=upscale_in_train)"
    norm = FusedBiasDropoutResidualLayerNorm(8).eval()
    assert near(norm(x, residual), F.layer_norm(x + residual, 8))


@pytest.mark.parametrize("halves", [False, True])
def test_rotary_positions(halves):
    q, k = sampan.randn([2, 5, 3, 8]), sampan.randn([2, 5, 1, 8])
    angles = 10000.0 ** (-np.arange(0, 8, 2) / 8) * np.arange(5)[:, None]
    angles = np.concatenate([angles, angles], -1) if halves else np.repeat(angles, 2, -1)
    sin, cos = (sampan.to_tensor(f(angles).astype("float32")) for f in (np.sin, np.cos))
    found = fused.fused_rotary_position_embedding(q, k, sin=sin, cos=cos, use_neox_rotary_style=not halves)
    pairs = [(i, i + 4) if halves else (2 * i, 2 * i + 1) for i in range(4)]
    for x, y in zip((q.numpy(), k.numpy()), found):
        for a, b in pairs:
            turned = (x[..., a] + 1j * x[..., b]) * np.exp(1j * angles[:, a])[:, None]
            np.testing.assert_allclose(y.numpy()[..., a] + 1j * y.numpy()[..., b], turned, atol=1e-5)
    assert found[2] is None
    if not halves:
        assert near(fused.fused_rotary_position_embedding(q)[0], found[0])
    places = sampan.to_tensor([[4, 3, 2, 1, 0]] * 2)
    back = fused.fused_rotary_position_embedding(
        q.flip(1), sin=sin, cos=cos, position_ids=places, use_neox_rotary_style=not halves
    )
    assert near(back[0].flip(1), found[0])
    swapped = fused.fused_rotary_position_embedding(
        q.transpose([1, 0, 2, 3]), sin=sin[None, :, None], cos=cos[None, :, None], use_neox_rotary_style=not halves,
        time_major=True,
    )
    assert near(swapped[0].transpose([1, 0, 2, 3]), found[0])


def test_masked_softmax_and_attention():
    x = sampan.randn([2, 3, 4, 4])
    seen = sampan.tril(sampan.ones([4, 4]))
    found = incubate.softmax_mask_fuse_upper_triangle(x)
    assert near(found, F.softmax(x + (seen - 1) * 1e9)) and (found * (1 - seen)).sum().item() == 0.0
    assert near(incubate.softmax_mask_fuse(x, (seen - 1) * 1e4), found)
    q = sampan.randn([2, 4, 3, 8])
    out, weights = flash_attention(q, q, q, causal=True, return_softmax=True)
    assert near(out, F.scaled_dot_product_attention(q, q, q, is_causal=True)) and flash_attention(q, q, q)[1] is None
    assert near((weights @ q.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3]), out)


@pytest.mark.parametrize(
    "how, received, slopes, weighted, segments",
    [
        ("sum", [[1, 2], [8, 10], [3, 4], [0, 0]], [1, 5, 2, 0], [[1, 2], [26, 32], [24, 32]], [[4, 6], [0, 0], [12, 14]]),
        ("mean", [[1, 2], [4, 5], [3, 4], [0, 0]], [1, 4, 1, 0], [[1, 2], [13, 16], [24, 32]], [[2, 3], [0, 0], [6, 7]]),
        ("max", [[1, 2], [5, 6], [3, 4], [0, 0]], [1, 3, 2, 0], [[1, 2], [20, 24], [24, 32]], [[3, 4], [0, 0], [7, 8]]),
        ("min", [[1, 2], [3, 4], [3, 4], [0, 0]], [1, 5, 0, 0], [[1, 2], [6, 8], [24, 32]], [[1, 2], [0, 0], [5, 6]]),
    ],
)
def test_what_nodes_receive(how, received, slopes, weighted, segments):
    x = sampan.to_tensor([[1.0, 2], [3, 4], [5, 6], [7, 8]], stop_gradient=False)
    source, target = sampan.to_tensor([0, 1, 2, 1]), sampan.to_tensor([0, 1, 1, 2])
    y = incubate.graph_send_recv(x, source, target, how)
    assert y.tolist() == geometric.send_u_recv(x, source, target, how).tolist() == received
    (y * sampan.to_tensor([[1.0], [2], [3], [4]])).sum().backward()
    assert x.grad.tolist() == [[slope, slope] for slope in slopes]
    edges = sampan.to_tensor([1.0, 2, 4, 8])
    assert geometric.send_ue_recv(x, edges, source, target, "mul", how, out_size=3).tolist() == weighted
    segment = getattr(geometric, f"segment_{how}")
    assert segment(x, sampan.to_tensor([0, 0, 2, 2])).tolist() == segments
    whole = segment(sampan.to_tensor([[1, 2], [3, 5], [7, 4]]), sampan.to_tensor([0, 0, 2], dtype="int32"))
    assert whole.dtype == sampan.int64 and whole[2].tolist() == [7, 4]
    with pytest.raises(ValueError, match="must not fall"):
        segment(x, sampan.to_tensor([1, 0, 1, 0]))


def test_what_edges_get():
    x = sampan.to_tensor([[1.0, 2], [3, 4]])
    source, target = sampan.to_tensor([0, 1, 1]), sampan.to_tensor([1, 0, 1])
    assert geometric.send_uv(x, x, source, target, "sub").tolist() == [[-2, -2], [2, 2], [0, 0]]
    with pytest.raises(ValueError, match="message_op"):
        geometric.send_uv(x, x, source, target, "pow")
