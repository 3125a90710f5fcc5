"""Layers that Paddle computes in one kernel each."""

from __future__ import annotations

from ...nn import Layer
from . import functional

__all__ = ["FusedBiasDropoutResidualLayerNorm", "FusedDropoutAdd", "FusedLinear"]


class FusedLinear(Layer):
    """`x @ weight + bias`; `transpose_weight` keeps the weight as `[out_features, in_features]`.

    >>> import sampan
    >>> sampan.incubate.nn.FusedLinear(3, 4)(sampan.ones([2, 3])).shape
    [2, 4]
    """

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, transpose_weight=False, name=None):
        super().__init__()
        shape = [out_features, in_features] if transpose_weight else [in_features, out_features]
        self.weight = self.create_parameter(shape, attr=weight_attr)
        self.bias = self.create_parameter([out_features], attr=bias_attr, is_bias=True)
        self.transpose_weight = transpose_weight
        self.name = name

    def forward(self, input):
        return functional.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedDropoutAdd(Layer):
    """`dropout(x) + y`."""

    def __init__(self, p=0.5, mode="upscale_in_train", name=None):
        super().__init__()
        self.p, self.mode, self.name = p, mode, name

    def forward(self, x, y):
        return functional.fused_dropout_add(x, y, self.p, self.training, self.mode)

    def extra_repr(self):
        return f"p={self.p}, mode={self.mode}" + (f", name={self.name}" if self.name else "")


class FusedBiasDropoutResidualLayerNorm(Layer):
    """`layer_norm(residual + dropout(x + linear_bias))`."""

    def __init__(self, embed_dim, dropout_rate=0.5, weight_attr=None, bias_attr=None, epsilon=1e-5, name=None):
        super().__init__()
        if embed_dim <= 0:
            raise ValueError(f"(InvalidArgument) {type(self).__name__}: embed_dim must be positive, got {embed_dim}.")
        from ...nn.initializer import Constant

        self.embed_dim, self.dropout_rate, self._epsilon, self.name = embed_dim, dropout_rate, epsilon, name
        self.linear_bias = self.create_parameter([embed_dim], attr=bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], attr=weight_attr, default_initializer=Constant(1.0))
        self.ln_bias = self.create_parameter([embed_dim], attr=bias_attr, is_bias=True)

    def forward(self, x, residual):
        return functional.fused_bias_dropout_residual_layer_norm(
            x, residual, self.linear_bias, self.ln_scale, self.ln_bias, self.dropout_rate, self._epsilon, self.training
        )

    def extra_repr(self):
        told = f"embed_dim={self.embed_dim}, seq_len=None, dropout_rate={self.dropout_rate}, epsilon={self._epsilon}"
        return f"{told}, dtype={self._dtype}" + (f", name={self.name}" if self.name else "")
