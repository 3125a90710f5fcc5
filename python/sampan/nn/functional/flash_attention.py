"""Attention under the names of Paddle's `nn.functional.flash_attention`."""

from __future__ import annotations

from ... import _core, _registry

__all__ = ["flash_attention", "scaled_dot_product_attention"]

scaled_dot_product_attention = _registry.functions("nn.functional")["scaled_dot_product_attention"]


def flash_attention(
    query, key, value, dropout=0.0, causal=False, return_softmax=False, *, fixed_seed_offset=None, rng_name="",
    training=True, name=None, softmax_scale=None,
):
    """Attention of `[batch, length, heads, width]`, and with `return_softmax` what each query looks at, else None."""
    out = scaled_dot_product_attention(
        query, key, value, dropout_p=dropout, is_causal=causal, training=training, scale=softmax_scale
    )
    if not return_softmax:
        return out, None
    scale = query.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    q, k = (t.transpose([0, 2, 1, 3]) for t in (query, key))
    scores = _core.op("matmul")(q * scale, k, False, True)
    if causal:
        seen = _core.op("tril")(_core.op("ones")(scores.shape[-2:], "bool"))
        scores = _core.op("where")(seen, scores, _core.op("full")([], float("-inf"), scores.dtype))
    return out, _core.op("softmax")(scores, -1)
