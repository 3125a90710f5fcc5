"""Weights in another form, gradients cut, parameters as one vector: Paddle's `nn.utils`."""

from ..._core import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters
from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
