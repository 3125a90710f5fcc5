"""Functions that Paddle computes in one kernel each, as what they are made of; which calls run as one is the core's matter."""

from __future__ import annotations

from ... import _core
from ...nn import functional as F
from ...nn.functional import swiglu

__all__ = [
    "fused_bias_dropout_residual_layer_norm",
    "fused_dropout_add",
    "fused_layer_norm",
    "fused_linear",
    "fused_linear_activation",
    "fused_matmul_bias",
    "fused_rms_norm",
    "fused_rotary_position_embedding",
    "swiglu",
]

_op = _core.op


def fused_matmul_bias(x, y, bias=None, transpose_x=False, transpose_y=False, name=None):
    """`x @ y + bias`, each of the two transposed on request."""
    product = _op("matmul")(x, y, transpose_x, transpose_y)
    return product if bias is None else product + bias


def fused_linear(x, weight, bias=None, transpose_weight=False, name=None):
    """`x @ weight + bias`; a transposed weight is `[out_features, in_features]`."""
    return fused_matmul_bias(x, weight, bias, transpose_y=True) if transpose_weight else F.linear(x, weight, bias)


def fused_linear_activation(x, y, bias, trans_x=False, trans_y=False, activation=None):
    """`activation(x @ y + bias)`, where the activation is `gelu`, `relu` or none."""
    if activation not in (None, "none", "gelu", "relu"):
        raise ValueError(
            f"(InvalidArgument) fused_linear_activation: activation must be 'gelu', 'relu' or None, got {activation!r}."
        )
    out = fused_matmul_bias(x, y, bias, trans_x, trans_y)
    # The kernel's gelu is the one by tanh.
    return F.gelu(out, approximate=True) if activation == "gelu" else F.relu(out) if activation == "relu" else out


def fused_dropout_add(x, y, p=0.5, training=True, mode="upscale_in_train", name=None):
    """`dropout(x) + y`."""
    return F.dropout(x, p=p, training=training, mode=mode) + y


def fused_bias_dropout_residual_layer_norm(
    x, residual, bias=None, ln_scale=None, ln_bias=None, dropout_rate=0.5, ln_epsilon=1e-5, training=True,
    mode="upscale_in_train", name=None,
):
    """`layer_norm(residual + dropout(x + bias))`."""
    x = x if bias is None else x + bias
    total = residual + F.dropout(x, p=dropout_rate, training=training, mode=mode)
    return F.layer_norm(total, total.shape[-1:], ln_scale, ln_bias, ln_epsilon)


def _unquantized(asker: str, scale) -> None:
    if scale > 0:
        raise NotImplementedError(f"(Unimplemented) {asker}: results cannot be quantized. Hint: quant_scale=-1.")


def _total(x, bias, residual, alpha=1.0):
    x = x if bias is None else x + bias
    return x if residual is None else x + residual * alpha


def _rows(x, axis: int) -> tuple[list[int], list[int]]:
    axis = axis % x.ndim
    return x.shape[axis:], list(range(axis, x.ndim))


def fused_rms_norm(
    x, norm_weight, norm_bias, epsilon, begin_norm_axis=1, bias=None, residual=None, quant_scale=-1, quant_round_type=0,
    quant_max_bound=0, quant_min_bound=0,
):
    """`x + bias + residual` divided by the root of the mean of its squares, times `norm_weight`, plus `norm_bias`; and
    that sum itself, or None where there is no residual."""
    _unquantized("fused_rms_norm", quant_scale)
    total = _total(x, bias, residual)
    shape, _ = _rows(total, begin_norm_axis)
    weight = None if norm_weight is None else norm_weight.reshape(shape)
    out = F.rms_norm(total, shape, weight, epsilon)[0]
    if norm_bias is not None:
        out = out + norm_bias.reshape(shape)
    return out, None if residual is None else total


def fused_layer_norm(
    x, norm_weight, norm_bias, epsilon, residual_alpha=1.0, begin_norm_axis=1, bias=None, residual=None, quant_scale=-1,
    quant_round_type=0, quant_max_bound=0, quant_min_bound=0,
):
    """The layer norm of `x + bias + residual_alpha * residual`, that sum or None, and of its rows the means and what
    these are multiplied by. Without weight and bias of the norm the sum is all there is."""
    _unquantized("fused_layer_norm", quant_scale)
    total = _total(x, bias, residual, residual_alpha)
    if norm_weight is None and norm_bias is None:
        return total, None if residual is None else total, None, None
    shape, axes = _rows(total, begin_norm_axis)
    weight, shift = (None if t is None else t.reshape(shape) for t in (norm_weight, norm_bias))
    out = F.layer_norm(total, shape, weight, shift, epsilon)
    wide = total.astype("float32")
    mean, deviation = wide.mean(axes).flatten(), (wide.var(axes, unbiased=False) + epsilon).rsqrt().flatten()
    return out, None if residual is None else total, mean, deviation


def _angles(x, length: int, base: float):
    """Sine and cosine of the angles by which pairs are turned, `[length, width]`, each value twice."""
    width = x.shape[-1]
    frequencies = base ** (_op("arange")(0, width, 2, "float32") * (-1.0 / width))
    angles = _op("arange")(0, length, 1, "float32").unsqueeze(-1) * frequencies
    angles = _op("stack")([angles, angles], -1).flatten(-2)
    return angles.sin(), angles.cos()


def fused_rotary_position_embedding(
    q, k=None, v=None, sin=None, cos=None, position_ids=None, use_neox_rotary_style=True, time_major=False,
    rotary_emb_base=10000.0,
):
    """Queries, keys and values `[batch, length, heads, width]`, turned by angles that grow with their places.

    With `use_neox_rotary_style` neighbours are a pair, otherwise an element of the first half and one of the second.
    `sin` and `cos` are `[length, width]`, with axes of 1 around if need be; without them the angles are those of
    `rotary_emb_base`. `position_ids` `[batch, length]` says at which places the elements are.
    """
    if sin is None or cos is None:
        if position_ids is not None or not use_neox_rotary_style:
            raise ValueError(
                "(InvalidArgument) fused_rotary_position_embedding: without sin and cos, places and halves are not known. "
                "Hint: give sin and cos."
            )
        sin, cos = _angles(q, q.shape[0 if time_major else 1], rotary_emb_base)
    else:
        sin, cos = (t.reshape([-1, t.shape[-1]]) for t in (sin, cos))
    if position_ids is not None:
        sin, cos = sin[position_ids].unsqueeze(2), cos[position_ids].unsqueeze(2)
        if time_major:
            sin, cos = (t.transpose([1, 0, 2, 3]) for t in (sin, cos))
    else:
        # The same for every sequence of the batch and for every head.
        shape = [-1, 1, 1, q.shape[-1]] if time_major else [1, -1, 1, q.shape[-1]]
        sin, cos = sin.reshape(shape), cos.reshape(shape)

    def turned(x):
        if x is None:
            return None
        if use_neox_rotary_style:
            across = _op("stack")([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        else:
            half = x.shape[-1] // 2
            across = _op("concat")([-x[..., half:], x[..., :half]], -1)
        return (x * cos + across * sin).astype(x.dtype)

    return turned(q), turned(k), turned(v)
