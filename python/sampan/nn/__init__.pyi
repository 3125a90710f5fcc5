# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype


from sampan.nn.clip import ClipGradBase
from sampan.nn.layer.builtin import BuiltinLayer
from sampan.nn.layer.families import _BatchNormBase
from sampan.nn.layer.families import _ConvNd
from sampan.nn.layer.families import _InstanceNormBase
from sampan.nn.layer.rnn import _Cell
from sampan.nn.layer.rnn import _Recurrent
from sampan.nn.layer.rnn import _Walk
from sampan.nn.layer.transformer import _LayerOfStack
from sampan.nn.layer.transformer import _Stack

from .._core import Parameter as Parameter

from . import functional as functional, init as init, initializer as initializer, layer as layer, quant as quant, utils as utils

from .decode import BeamSearchDecoder as BeamSearchDecoder, dynamic_decode as dynamic_decode

from .layer import *

from .layer import LayerDict as LayerDict, LayerList as LayerList, loss as loss

from .layer.layers import Layer as Layer

from .utils import spectral_norm as spectral_norm

HuberLoss = SmoothL1Loss

class AdaptiveAvgPool1D(BuiltinLayer):
    """Means over as many windows as `output_size` asks for, along `[n, channels, length]`."""

    def __init__(self, output_size: Any, name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveAvgPool1d = AdaptiveAvgPool1D


class AdaptiveAvgPool2D(BuiltinLayer):
    """Means over as many windows as `output_size` asks for, along `[n, channels, height, width]`; `None` keeps an
    extent.
    """

    def __init__(self, output_size: Any, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveAvgPool2d = AdaptiveAvgPool2D


class AdaptiveAvgPool3D(BuiltinLayer):
    """Means over as many windows as `output_size` asks for, along `[n, channels, depth, height, width]`."""

    def __init__(self, output_size: Any, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveAvgPool3d = AdaptiveAvgPool3D


class AdaptiveLogSoftmaxWithLoss(BuiltinLayer):
    """A softmax and its loss over `n_classes` classes sorted by how frequent they are. Classes below `cutoffs[0]` and one
    entry for each cluster are in the head; cluster `i` has the classes from `cutoffs[i]` to the next cutoff and
    `in_features / div_value^(i + 1)` features.
    """

    def __init__(self, in_features: _int, n_classes: _int, cutoffs: _int | Sequence[_int] | Tensor, weight_attr: Any = None, bias_attr: Any = None, div_value: _float = 4.0, head_bias: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class AdaptiveMaxPool1D(BuiltinLayer):
    """The largest values of as many windows as `output_size` asks for, along `[n, channels, length]`."""

    def __init__(self, output_size: Any, return_mask: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveMaxPool1d = AdaptiveMaxPool1D


class AdaptiveMaxPool2D(BuiltinLayer):
    """The largest values of as many windows as `output_size` asks for, along `[n, channels, height, width]`."""

    def __init__(self, output_size: Any, return_mask: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveMaxPool2d = AdaptiveMaxPool2D


class AdaptiveMaxPool3D(BuiltinLayer):
    """The largest values of as many windows as `output_size` asks for, along `[n, channels, depth, height, width]`."""

    def __init__(self, output_size: Any, return_mask: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


AdaptiveMaxPool3d = AdaptiveMaxPool3D


class AlphaDropout(BuiltinLayer):
    """Dropout that keeps mean and variance, for networks of [`SELU`](sampan_core::Tensor::selu)."""

    def __init__(self, p: _float = 0.5, name: _str | None = None, **kwargs: Any) -> None: ...


class AvgPool1D(BuiltinLayer):
    """The mean of each window of `[n, channels, length]`; padding does not count unless `exclusive` is false."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, exclusive: _bool = True, ceil_mode: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class AvgPool2D(BuiltinLayer):
    """The mean of each window of `[n, channels, height, width]`; padding does not count unless `exclusive` is false."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class AvgPool3D(BuiltinLayer):
    """The mean of each window of `[n, channels, depth, height, width]`."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class BCELoss(BuiltinLayer):
    """The cross entropy of probabilities of yes against labels in `[0, 1]`."""

    def __init__(self, weight: Tensor | None = None, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class BCEWithLogitsLoss(BuiltinLayer):
    """The cross entropy of scores whose sigmoid is the probability of yes against labels in `[0, 1]`; `pos_weight`
    weighs the positive labels.
    """

    def __init__(self, weight: Tensor | None = None, reduction: _str = 'mean', pos_weight: Tensor | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class BatchNorm(BuiltinLayer):
    """Batch normalisation as Paddle 1 had it: any number of axes, an activation `act` after it (the name of an op or of
    Paddle's kernel, such as `relu` or `hard_swish`), evaluation from the start with `is_test`, batch statistics even in evaluation with
    `trainable_statistics`. `in_place` and `do_model_average_for_mean_and_var` are accepted and change nothing.
    """

    def __init__(self, num_channels: _int, act: _str | None = None, is_test: _bool = False, momentum: _float = 0.9, epsilon: _float = 1e-5, param_attr: Any = None, bias_attr: Any = None, dtype: DTypeLike = 'float32', data_layout: _str = 'NCHW', in_place: _bool = False, moving_mean_name: _str | None = None, moving_variance_name: _str | None = None, do_model_average_for_mean_and_var: _bool = True, use_global_stats: _bool = False, trainable_statistics: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class BatchNorm1D(_BatchNormBase):
    """Normalises each channel of `[n, channels]` or `[n, channels, length]` over the batch."""

    def __init__(self, num_features: _int, momentum: _float = 0.9, epsilon: _float = 1e-5, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCL', use_global_stats: _bool | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class BatchNorm2D(_BatchNormBase):
    """Normalises each channel of `[n, channels, height, width]` over the batch."""

    def __init__(self, num_features: _int, momentum: _float = 0.9, epsilon: _float = 1e-5, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', use_global_stats: _bool | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class BatchNorm3D(_BatchNormBase):
    """Normalises each channel of `[n, channels, depth, height, width]` over the batch."""

    def __init__(self, num_features: _int, momentum: _float = 0.9, epsilon: _float = 1e-5, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCDHW', use_global_stats: _bool | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class BiRNN(_Walk):
    """Walks one cell forward and one backward along sequences; their outputs are joined on the last axis."""

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class Bilinear(BuiltinLayer):
    """`x1 @ weight[k] @ x2 + bias[k]` for each output feature `k`."""

    def __init__(self, in1_features: _int, in2_features: _int, out_features: _int, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class CELU(BuiltinLayer):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`."""

    def __init__(self, alpha: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class CTCLoss(BuiltinLayer):
    """Connectionist temporal classification: the negative log-likelihood of `labels` under all alignments with the frames
    of `log_probs` `[time, batch, classes]` (unscaled scores: the softmax is included).
    """

    def __init__(self, blank: _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class ChannelShuffle(BuiltinLayer):
    """Mixes the channels of `groups` groups: the first of each, then the second of each, and so on."""

    def __init__(self, groups: _int, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class CircularPad1D(BuiltinLayer):
    """Continues the spatial axes from their other side; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


CircularPad1d = CircularPad1D


class CircularPad2D(BuiltinLayer):
    """Continues the spatial axes from their other side; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


CircularPad2d = CircularPad2D


class CircularPad3D(BuiltinLayer):
    """Continues the spatial axes from their other side; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


CircularPad3d = CircularPad3D


class ClipGradByGlobalNorm(ClipGradBase):
    """Shrinks all gradients by one factor if their common norm is above `clip_norm`."""

    def __init__(self, clip_norm: _float, group_name: _str = 'default_group', auto_skip_clip: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class ClipGradByNorm(ClipGradBase):
    """Shrinks each gradient whose norm is above `clip_norm` to that norm."""

    def __init__(self, clip_norm: _float, name: _str | None = None, **kwargs: Any) -> None: ...


class ClipGradByValue(ClipGradBase):
    """Moves each element of a gradient into `min..=max`; `min` is `-max` if left out."""

    def __init__(self, max: _float, min: _float | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class ConstantPad1D(BuiltinLayer):
    """`value` around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, value: _float, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


ConstantPad1d = ConstantPad1D


class ConstantPad2D(BuiltinLayer):
    """`value` around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, value: _float, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


ConstantPad2d = ConstantPad2D


class ConstantPad3D(BuiltinLayer):
    """`value` around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, value: _float, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


ConstantPad3d = ConstantPad3D


class Conv1D(_ConvNd):
    """A convolution over `[n, channels, length]`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, bias: _bool = True, padding_mode: _str = 'zeros', device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


class Conv1DTranspose(_ConvNd):
    """The transpose of a convolution over `[n, channels, length]`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, groups: _int = 1, dilation: _int | Sequence[_int] | Tensor = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


Conv1d = Conv1D


class Conv2D(_ConvNd):
    """A convolution over images `[n, channels, height, width]`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, bias: _bool = True, padding_mode: _str = 'zeros', device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Conv2DTranspose(_ConvNd):
    """The transpose of a convolution over images: the map from its outputs' gradients to its inputs', which enlarges."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


Conv2d = Conv2D


class Conv3D(_ConvNd):
    """A convolution over `[n, channels, depth, height, width]`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, bias: _bool = True, padding_mode: _str = 'zeros', device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Conv3DTranspose(_ConvNd):
    """The transpose of a convolution over `[n, channels, depth, height, width]`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


Conv3d = Conv3D


class CosineEmbeddingLoss(BuiltinLayer):
    """`1 - cos` of pairs that belong together (label 1), `max(0, cos - margin)` of those that do not (-1)."""

    def __init__(self, margin: _float = 0.0, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class CosineSimilarity(BuiltinLayer):
    """The cosine of the angle between two inputs along `axis`."""

    def __init__(self, axis: _int = 1, eps: _float = 1e-8, name: _str | None = None, **kwargs: Any) -> None: ...


class CrossEntropyLoss(BuiltinLayer):
    """The cross entropy of class scores against labels, or against probabilities with `soft_label`; softmax included
    unless `use_softmax` is false.
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', soft_label: _bool = False, axis: _int = -1, use_softmax: _bool = True, label_smoothing: _float = 0.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Dropout(BuiltinLayer):
    """In training sets each element to zero with probability `p` and scales the others up by `1 / (1 - p)`; with the
    mode `downscale_in_infer` nothing is scaled then, and evaluation multiplies by `1 - p` instead. With `axis` the
    elements along all other axes fall together. `inplace` is accepted: the input is never overwritten.
    """

    def __init__(self, p: _float = 0.5, inplace: _bool = False, axis: _int | Sequence[_int] | Tensor | None = None, mode: _str = 'upscale_in_train', name: _str | None = None, **kwargs: Any) -> None: ...


class Dropout2D(BuiltinLayer):
    """In training sets whole channels of `[n, channels, height, width]` to zero with probability `p`."""

    def __init__(self, p: _float = 0.5, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Dropout3D(BuiltinLayer):
    """In training sets whole channels of `[n, channels, depth, height, width]` to zero with probability `p`."""

    def __init__(self, p: _float = 0.5, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class ELU(BuiltinLayer):
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, alpha: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Embedding(BuiltinLayer):
    """A table of `num_embeddings` vectors of `embedding_dim` elements, looked up by number. The vector at `padding_idx`
    starts as zero and gets no gradient; vectors longer than `max_norm` in the norm of order `norm_type` are
    shortened in place when they are used. Gradients are dense; with `sparse` an `Adam` in its `lazy_mode` leaves the
    rows alone that a step has not used.
    """

    def __init__(self, num_embeddings: _int, embedding_dim: _int, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False, _weight: Tensor | None = None, _freeze: _bool = False, device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class FeatureAlphaDropout(BuiltinLayer):
    """[`AlphaDropout`] of whole channels."""

    def __init__(self, p: _float = 0.5, name: _str | None = None, **kwargs: Any) -> None: ...


class Flatten(BuiltinLayer):
    """The axes from `start_axis` to `stop_axis` in one."""

    def __init__(self, start_axis: _int = 1, stop_axis: _int = -1, name: _str | None = None, **kwargs: Any) -> None: ...


class Fold(BuiltinLayer):
    """Adds patches up to an image, the way back from [`Unfold`]."""

    def __init__(self, output_sizes: _int | Sequence[_int] | Tensor, kernel_sizes: _int | Sequence[_int] | Tensor, dilations: _int | Sequence[_int] | Tensor = 1, paddings: _int | Sequence[_int] | Tensor = 0, strides: _int | Sequence[_int] | Tensor = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class FractionalMaxPool2D(BuiltinLayer):
    """The largest values of windows of random sizes, drawn anew at each call unless `random_u` in (0, 1) fixes them."""

    def __init__(self, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class FractionalMaxPool3D(BuiltinLayer):
    """[`FractionalMaxPool2D`] on `[n, channels, depth, height, width]`."""

    def __init__(self, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class GELU(BuiltinLayer):
    """`x` times the normal distribution function of `x`; with `approximate` (`true` or `"tanh"`), by a formula in `tanh`."""

    def __init__(self, approximate: Any = False, name: _str | None = None, **kwargs: Any) -> None: ...


class GLU(BuiltinLayer):
    """The first half of an axis times the sigmoid of the second half."""

    def __init__(self, axis: _int = -1, name: _str | None = None, **kwargs: Any) -> None: ...


class GRU(_Recurrent):
    """`num_layers` GRUs over sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`); `direction` may
    be `"bidirect"`, and `dropout` acts between the layers.
    """

    def __init__(self, input_size: _int, hidden_size: _int, num_layers: _int = 1, direction: _str = 'forward', time_major: _bool = False, dropout: _float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class GRUCell(_Cell):
    """`h' = z * h + (1 - z) * c` with `c = tanh(x_c + r * h_c)`; the parts of `W_ih x + b_ih` and `W_hh h + b_hh` are those
    of the reset gate `r`, the update gate `z` and the candidate `c`.
    """

    def __init__(self, input_size: _int, hidden_size: _int, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class GaussianNLLLoss(BuiltinLayer):
    """The negative log-likelihood of numbers with a predicted mean and variance; `full` adds the constant term."""

    def __init__(self, full: _bool = False, epsilon: _float = 1e-6, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class GroupNorm(BuiltinLayer):
    """Normalises each of `num_groups` groups of channels of each sample, then scales and shifts each channel."""

    def __init__(self, num_groups: _int, num_channels: _int, epsilon: _float = 1e-5, affine: _bool = True, device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class HSigmoidLoss(BuiltinLayer):
    """The loss of features `[rows, feature_size]` against labels, each a leaf of the complete binary tree of
    `num_classes` leaves. With `is_custom` the tree is one's own: each call gets the ways to the root, and `num_classes`
    is the number of inner nodes. `is_sparse` changes nothing: gradients are dense.
    """

    def __init__(self, feature_size: _int, num_classes: _int, weight_attr: Any = None, bias_attr: Any = None, is_custom: _bool = False, is_sparse: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class Hardshrink(BuiltinLayer):
    """`x` where `|x| > threshold`, zero elsewhere."""

    def __init__(self, threshold: _float = 0.5, name: _str | None = None, **kwargs: Any) -> None: ...


class Hardsigmoid(BuiltinLayer):
    """`x / 6 + 0.5`, kept between 0 and 1."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Hardswish(BuiltinLayer):
    """`x * clip(x + 3, 0, 6) / 6`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Hardtanh(BuiltinLayer):
    """`x` kept between `min` and `max`."""

    def __init__(self, min: _float = -1.0, max: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class HingeEmbeddingLoss(BuiltinLayer):
    """`input` where the label is 1, `max(0, margin - input)` where it is -1."""

    def __init__(self, margin: _float = 1.0, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


HuberLoss = SmoothL1Loss


class Identity(BuiltinLayer):
    """Gives back what it gets: a place holder in a network."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class InstanceNorm1D(_InstanceNormBase):
    """Normalises each channel of each sample of `[n, channels, length]`."""

    def __init__(self, num_features: _int, epsilon: _float = 1e-5, momentum: _float = 0.9, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


class InstanceNorm2D(_InstanceNormBase):
    """Normalises each channel of each sample of `[n, channels, height, width]`, then scales and shifts it.
    `momentum` is accepted: there are no running statistics.
    """

    def __init__(self, num_features: _int, epsilon: _float = 1e-5, momentum: _float = 0.9, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class InstanceNorm3D(_InstanceNormBase):
    """Normalises each channel of each sample of `[n, channels, depth, height, width]`."""

    def __init__(self, num_features: _int, epsilon: _float = 1e-5, momentum: _float = 0.9, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class KLDivLoss(BuiltinLayer):
    """The Kullback-Leibler divergence of log-probabilities from a target."""

    def __init__(self, reduction: _str = 'mean', log_target: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class L1Loss(BuiltinLayer):
    """The absolute difference."""

    def __init__(self, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class LPPool1D(BuiltinLayer):
    """The norm of order `norm_type` of each window of `[n, channels, length]`."""

    def __init__(self, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


LPPool1d = LPPool1D


class LPPool2D(BuiltinLayer):
    """The norm of order `norm_type` of each window of `[n, channels, height, width]`."""

    def __init__(self, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


LPPool2d = LPPool2D


class LSTM(_Recurrent):
    """`num_layers` LSTMs over sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`); `direction`
    may be `"bidirect"`, `dropout` acts between the layers, and `proj_size` makes the outputs smaller than the cells.
    """

    def __init__(self, input_size: _int, hidden_size: _int, num_layers: _int = 1, direction: _str = 'forward', time_major: _bool = False, dropout: _float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: _int = 0, name: _str | None = None, **kwargs: Any) -> None: ...


class LSTMCell(_Cell):
    """`c' = f * c + i * tanh(g)`, `h' = o * tanh(c')` with the gates `i, f, g, o` from `W_ih x + b_ih + W_hh h + b_hh`.
    With `proj_size` the output is `h' W_ho`, which has that many features.
    """

    def __init__(self, input_size: _int, hidden_size: _int, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: _int = 0, name: _str | None = None, **kwargs: Any) -> None: ...


class LayerNorm(BuiltinLayer):
    """Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales and shifts."""

    def __init__(self, normalized_shape: _int | Sequence[_int] | Tensor, epsilon: _float = 1e-5, elementwise_affine: _bool = True, bias: _bool = True, device: Any = None, dtype: DTypeLike | None = None, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class LeakyReLU(BuiltinLayer):
    """`x` where it is positive, `negative_slope * x` elsewhere."""

    def __init__(self, negative_slope: _float = 0.01, name: _str | None = None, **kwargs: Any) -> None: ...


class Linear(BuiltinLayer):
    """`x @ weight + bias` with a weight of shape `[in_features, out_features]`: Xavier uniform weights, a zero bias."""

    def __init__(self, in_features: _int, out_features: _int, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class LocalResponseNorm(BuiltinLayer):
    """Divides by `(k + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels."""

    def __init__(self, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class LogSigmoid(BuiltinLayer):
    """`log(sigmoid(x))`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class LogSoftmax(BuiltinLayer):
    """The logarithm of the softmax along an axis."""

    def __init__(self, axis: _int = -1, name: _str | None = None, **kwargs: Any) -> None: ...


class MSELoss(BuiltinLayer):
    """The squared difference."""

    def __init__(self, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class MarginRankingLoss(BuiltinLayer):
    """`max(0, margin - label * (input - other))`: which of two should rank higher."""

    def __init__(self, margin: _float = 0.0, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class MaxPool1D(BuiltinLayer):
    """The largest value of each window of `[n, channels, length]`. With `return_mask` its position comes second, from
    [`call_all`](crate::Layer::call_all).
    """

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class MaxPool2D(BuiltinLayer):
    """The largest value of each window of `[n, channels, height, width]`; `stride` is `kernel_size` unless given."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class MaxPool3D(BuiltinLayer):
    """The largest value of each window of `[n, channels, depth, height, width]`."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class MaxUnPool1D(BuiltinLayer):
    """Puts the values that [`MaxPool1D`] kept back where its mask says they were, among zeros."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCL', output_size: _int | Sequence[_int] | Tensor | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class MaxUnPool2D(BuiltinLayer):
    """Puts the values that [`MaxPool2D`] kept back where its mask says they were, among zeros."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCHW', output_size: _int | Sequence[_int] | Tensor | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class MaxUnPool3D(BuiltinLayer):
    """Puts the values that [`MaxPool3D`] kept back where its mask says they were, among zeros."""

    def __init__(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCDHW', output_size: _int | Sequence[_int] | Tensor | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


MaxUnpool1d = MaxUnPool1D


MaxUnpool2d = MaxUnPool2D


MaxUnpool3d = MaxUnPool3D


class Maxout(BuiltinLayer):
    """The largest of each group of `groups` neighbouring channels."""

    def __init__(self, groups: _int, axis: _int = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class Mish(BuiltinLayer):
    """`x * tanh(softplus(x))`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class MultiHeadAttention(BuiltinLayer):
    """Attention with `num_heads` heads over sequences `[batch, length, embed_dim]`; keys and values may have `kdim` and
    `vdim` features. `need_weights` gives the weights as well, which costs the memory of all of them.
    """

    def __init__(self, embed_dim: _int, num_heads: _int, dropout: _float = 0.0, kdim: _int | None = None, vdim: _int | None = None, need_weights: _bool = False, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class MultiLabelMarginLoss(BuiltinLayer):
    """The hinge of every wrong class against every labelled one."""

    def __init__(self, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class MultiLabelSoftMarginLoss(BuiltinLayer):
    """The mean over classes of the cross entropy of each class by itself."""

    def __init__(self, weight: Tensor | None = None, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class MultiMarginLoss(BuiltinLayer):
    """The hinge, to the power `p`, of every wrong class against the labelled one."""

    def __init__(self, p: _int = 1, margin: _float = 1.0, weight: Tensor | None = None, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class NLLLoss(BuiltinLayer):
    """The cross entropy of log-probabilities against labels."""

    def __init__(self, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class PReLU(BuiltinLayer):
    """A leaky ReLU whose negative slopes are learned: one for all, or one for each channel."""

    def __init__(self, num_parameters: _int = 1, init: _float = 0.25, weight_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Pad1D(BuiltinLayer):
    """More elements around the borders of the spatial axes: `padding` holds pairs (before, after) from the last axis
    backwards, or is one number for all; `mode` is `constant` (the new elements are `value`), `reflect`, `replicate` or
    `circular`.
    """

    def __init__(self, padding: Any, mode: _str = 'constant', value: _float = 0.0, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


class Pad2D(BuiltinLayer):
    """More elements around the borders of the spatial axes: `padding` holds pairs (before, after) from the last axis
    backwards, or is one number for all; `mode` is `constant` (the new elements are `value`), `reflect`, `replicate` or
    `circular`.
    """

    def __init__(self, padding: Any, mode: _str = 'constant', value: _float = 0.0, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Pad3D(BuiltinLayer):
    """More elements around the borders of the spatial axes: `padding` holds pairs (before, after) from the last axis
    backwards, or is one number for all; `mode` is `constant` (the new elements are `value`), `reflect`, `replicate` or
    `circular`.
    """

    def __init__(self, padding: Any, mode: _str = 'constant', value: _float = 0.0, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


class PairwiseDistance(BuiltinLayer):
    """The distance of two inputs along the last axis: the `p`-norm of `x - y + epsilon`."""

    def __init__(self, p: _float = 2.0, epsilon: _float = 1e-6, keepdim: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class PixelShuffle(BuiltinLayer):
    """Moves channels into space: `[n, c * r * r, h, w]` becomes `[n, c, h * r, w * r]`."""

    def __init__(self, upscale_factor: _int, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class PixelUnshuffle(BuiltinLayer):
    """Moves space into channels, the way back from [`PixelShuffle`]."""

    def __init__(self, downscale_factor: _int, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class PoissonNLLLoss(BuiltinLayer):
    """The negative log-likelihood of counts; `input` is the logarithm of the rate unless `log_input` is false, and `full`
    adds Stirling's approximation of the constant term.
    """

    def __init__(self, log_input: _bool = True, full: _bool = False, epsilon: _float = 1e-8, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class RNN(_Walk):
    """Walks a cell along sequences `[batch, time, features]` (`[time, batch, features]` if `time_major`), from the end if
    `is_reverse`.
    """

    def __init__(self, cell: Any, is_reverse: _bool = False, time_major: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class RNNTLoss(BuiltinLayer):
    """The loss of a recurrent transducer: the negative log-likelihood of `label` under log-probabilities
    `[batch, frames, labels + 1, classes]`.
    """

    def __init__(self, blank: _int = 0, fastemit_lambda: _float = 0.001, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class RReLU(BuiltinLayer):
    """A leaky ReLU whose negative slopes are drawn from `[lower, upper)` for each element in training, and are the middle of
    the two in evaluation.
    """

    def __init__(self, lower: _float = 0.125, upper: _float = 0.3333333333333333, name: _str | None = None, **kwargs: Any) -> None: ...


class ReLU(BuiltinLayer):
    """`max(x, 0)`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class ReLU6(BuiltinLayer):
    """`x` kept between 0 and 6."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class ReflectionPad1D(BuiltinLayer):
    """Continues the spatial axes by their mirror image, without the border itself; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


ReflectionPad1d = ReflectionPad1D


class ReflectionPad2D(BuiltinLayer):
    """Continues the spatial axes by their mirror image, without the border itself; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


ReflectionPad2d = ReflectionPad2D


class ReflectionPad3D(BuiltinLayer):
    """Continues the spatial axes by their mirror image, without the border itself; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


ReflectionPad3d = ReflectionPad3D


class ReplicationPad1D(BuiltinLayer):
    """Continues the spatial axes by their border; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


ReplicationPad1d = ReplicationPad1D


class ReplicationPad2D(BuiltinLayer):
    """Continues the spatial axes by their border; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


ReplicationPad2d = ReplicationPad2D


class ReplicationPad3D(BuiltinLayer):
    """Continues the spatial axes by their border; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


ReplicationPad3d = ReplicationPad3D


class SELU(BuiltinLayer):
    """`scale * x` where it is positive, `scale * alpha * (exp(x) - 1)` elsewhere; the defaults keep mean 0 and variance 1."""

    def __init__(self, scale: _float = 1.0507009873554805, alpha: _float = 1.6732632423543772, name: _str | None = None, **kwargs: Any) -> None: ...


SiLU = Silu


class Sigmoid(BuiltinLayer):
    """`1 / (1 + exp(-x))`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Silu(BuiltinLayer):
    """`x * sigmoid(x)`. `inplace` is accepted and changes nothing."""

    def __init__(self, inplace: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class SimpleRNN(_Recurrent):
    """`num_layers` simple recurrent layers over sequences `[batch, time, features]` (`[time, batch, features]` if
    `time_major`); `direction` may be `"bidirect"`, and `dropout` acts between the layers.
    """

    def __init__(self, input_size: _int, hidden_size: _int, num_layers: _int = 1, direction: _str = 'forward', time_major: _bool = False, dropout: _float = 0.0, activation: _str = 'tanh', weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class SimpleRNNCell(_Cell):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`; `activation` may be `"relu"`."""

    def __init__(self, input_size: _int, hidden_size: _int, activation: _str = 'tanh', weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class SmoothL1Loss(BuiltinLayer):
    """Squares of small differences and absolute values of those beyond `delta`; divided by `delta` unless `is_huber`."""

    def __init__(self, reduction: _str = 'mean', delta: _float = 1.0, is_huber: _bool = True, name: _str | None = None, **kwargs: Any) -> None: ...


class SoftMarginLoss(BuiltinLayer):
    """`log(1 + exp(-label * input))` with labels 1 and -1."""

    def __init__(self, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class Softmax(BuiltinLayer):
    """Positive numbers along an axis that add up to 1."""

    def __init__(self, axis: _int = -1, name: _str | None = None, **kwargs: Any) -> None: ...


class Softmax2D(BuiltinLayer):
    """The softmax over the channels of images `[n, channels, height, width]`, or of one image without the first axis."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Softplus(BuiltinLayer):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x > threshold`."""

    def __init__(self, beta: _float = 1.0, threshold: _float = 20.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Softshrink(BuiltinLayer):
    """`x` moved towards zero by `threshold`, zero where it does not go that far."""

    def __init__(self, threshold: _float = 0.5, name: _str | None = None, **kwargs: Any) -> None: ...


class Softsign(BuiltinLayer):
    """`x / (1 + |x|)`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class SpectralNorm(BuiltinLayer):
    """Divides a weight, seen as a matrix whose rows lie along `dim`, by its largest singular value, which
    `power_iters` power iterations from fixed random vectors approach.
    """

    def __init__(self, weight_shape: _int | Sequence[_int] | Tensor, dim: _int = 0, power_iters: _int = 1, eps: _float = 1e-12, dtype: DTypeLike = 'float32', name: _str | None = None, **kwargs: Any) -> None: ...


class Swish(BuiltinLayer):
    """`x * sigmoid(x)`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class SyncBatchNorm(_BatchNormBase):
    """Batch normalisation whose statistics are those of all processes; with one process it is [`BatchNorm2D`] for any
    number of axes.
    """

    def __init__(self, num_features: _int, momentum: _float = 0.9, epsilon: _float = 1e-5, weight_attr: Any = None, bias_attr: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


class Tanh(BuiltinLayer):
    """The hyperbolic tangent."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Tanhshrink(BuiltinLayer):
    """`x - tanh(x)`."""

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class ThresholdedReLU(BuiltinLayer):
    """`x` where it exceeds `threshold`, `value` elsewhere."""

    def __init__(self, threshold: _float = 1.0, value: _float = 0.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Transformer(BuiltinLayer):
    """An encoder and a decoder with a norm at the end of each; `custom_encoder` and `custom_decoder` take the place of
    either. The arguments are those of [`TransformerEncoderLayer`].
    """

    def __init__(self, d_model: _int = 512, nhead: _int = 8, num_encoder_layers: _int = 6, num_decoder_layers: _int = 6, dim_feedforward: _int = 2048, dropout: _float = 0.1, activation: _str = 'relu', attn_dropout: _float | None = None, act_dropout: _float | None = None, normalize_before: _bool = False, weight_attr: Any = None, bias_attr: Any = None, custom_encoder: Any = None, custom_decoder: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class TransformerDecoder(_Stack):
    """`num_layers` decoder layers: the given one and others made from the same arguments, then `norm` if there is one."""

    def __init__(self, decoder_layer: Any, num_layers: _int, norm: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class TransformerDecoderLayer(_LayerOfStack):
    """Like [`TransformerEncoderLayer`] with attention to a memory in between. Attributes may be lists of three: for both
    attentions and for the linear layers.
    """

    def __init__(self, d_model: _int, nhead: _int, dim_feedforward: _int, dropout: _float = 0.1, activation: _str = 'relu', attn_dropout: _float | None = None, act_dropout: _float | None = None, normalize_before: _bool = False, weight_attr: Any = None, bias_attr: Any = None, layer_norm_eps: _float = 1e-5, name: _str | None = None, **kwargs: Any) -> None: ...


class TransformerEncoder(_Stack):
    """`num_layers` encoder layers: the given one and others made from the same arguments, then `norm` if there is one."""

    def __init__(self, encoder_layer: Any, num_layers: _int, norm: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class TransformerEncoderLayer(_LayerOfStack):
    """Attention of a sequence `[batch, length, d_model]` to itself and two linear layers with `activation` between them, each
    with dropout, a residual and a norm; the norm comes first if `normalize_before`. `attn_dropout` and `act_dropout` are
    `dropout` unless they are given. Attributes may be lists of two: for the attention and for the linear layers.
    """

    def __init__(self, d_model: _int, nhead: _int, dim_feedforward: _int, dropout: _float = 0.1, activation: _str = 'relu', attn_dropout: _float | None = None, act_dropout: _float | None = None, normalize_before: _bool = False, weight_attr: Any = None, bias_attr: Any = None, layer_norm_eps: _float = 1e-5, name: _str | None = None, **kwargs: Any) -> None: ...


class TripletMarginLoss(BuiltinLayer):
    """`max(0, d(input, positive) - d(input, negative) + margin)` with the distance of norm `p`."""

    def __init__(self, margin: _float = 1.0, p: _float = 2.0, epsilon: _float = 1e-6, swap: _bool = False, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class TripletMarginWithDistanceLoss(BuiltinLayer):
    """`max(0, d(input, positive) - d(input, negative) + margin)` with any distance, Euclidean by default; `swap` takes the
    negative's distance from the positive where that is smaller.
    """

    def __init__(self, distance_function: Any = None, margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean', name: _str | None = None, **kwargs: Any) -> None: ...


class Unflatten(BuiltinLayer):
    """One axis in several of the extents `shape`, one of which may be -1."""

    def __init__(self, axis: _int, shape: _int | Sequence[_int] | Tensor, name: _str | None = None, **kwargs: Any) -> None: ...


class Unfold(BuiltinLayer):
    """The patches that a convolution would see, as columns: `[n, c * kernel, patches]`."""

    def __init__(self, kernel_sizes: _int | Sequence[_int] | Tensor, dilations: _int | Sequence[_int] | Tensor = 1, paddings: _int | Sequence[_int] | Tensor = 0, strides: _int | Sequence[_int] | Tensor = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class Upsample(BuiltinLayer):
    """Resamples the spatial axes to `size`, or by `scale_factor`: `mode` is `nearest`, `linear`, `bilinear`,
    `bicubic`, `trilinear` or `area`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool = False, align_mode: _int = 0, data_format: _str | None = None, recompute_scale_factor: _bool | None = None, name: _str | None = None, **kwargs: Any) -> None: ...


class UpsamplingBilinear2D(BuiltinLayer):
    """Resamples images by mixing neighbouring pixels; the corners keep their values."""

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


UpsamplingBilinear2d = UpsamplingBilinear2D


class UpsamplingNearest2D(BuiltinLayer):
    """Resamples images by repeating the nearest pixel."""

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


UpsamplingNearest2d = UpsamplingNearest2D


class ZeroPad1D(BuiltinLayer):
    """Zeros around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCL', name: _str | None = None, **kwargs: Any) -> None: ...


ZeroPad1d = ZeroPad1D


class ZeroPad2D(BuiltinLayer):
    """Zeros around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCHW', name: _str | None = None, **kwargs: Any) -> None: ...


ZeroPad2d = ZeroPad2D


class ZeroPad3D(BuiltinLayer):
    """Zeros around the borders of the spatial axes; `padding` as in [`Pad2D`]."""

    def __init__(self, padding: Any, data_format: _str = 'NCDHW', name: _str | None = None, **kwargs: Any) -> None: ...


ZeroPad3d = ZeroPad3D


__all__ = ['AdaptiveAvgPool1D', 'AdaptiveAvgPool1d', 'AdaptiveAvgPool2D', 'AdaptiveAvgPool2d', 'AdaptiveAvgPool3D', 'AdaptiveAvgPool3d', 'AdaptiveLogSoftmaxWithLoss', 'AdaptiveMaxPool1D', 'AdaptiveMaxPool1d', 'AdaptiveMaxPool2D', 'AdaptiveMaxPool2d', 'AdaptiveMaxPool3D', 'AdaptiveMaxPool3d', 'AlphaDropout', 'AvgPool1D', 'AvgPool2D', 'AvgPool3D', 'BCELoss', 'BCEWithLogitsLoss', 'BatchNorm', 'BatchNorm1D', 'BatchNorm2D', 'BatchNorm3D', 'BeamSearchDecoder', 'BiRNN', 'Bilinear', 'CELU', 'CTCLoss', 'ChannelShuffle', 'CircularPad1D', 'CircularPad1d', 'CircularPad2D', 'CircularPad2d', 'CircularPad3D', 'CircularPad3d', 'ClipGradByGlobalNorm', 'ClipGradByNorm', 'ClipGradByValue', 'ConstantPad1D', 'ConstantPad1d', 'ConstantPad2D', 'ConstantPad2d', 'ConstantPad3D', 'ConstantPad3d', 'Conv1D', 'Conv1DTranspose', 'Conv1d', 'Conv2D', 'Conv2DTranspose', 'Conv2d', 'Conv3D', 'Conv3DTranspose', 'Conv3d', 'CosineEmbeddingLoss', 'CosineSimilarity', 'CrossEntropyLoss', 'Dropout', 'Dropout2D', 'Dropout3D', 'ELU', 'Embedding', 'FeatureAlphaDropout', 'Flatten', 'Fold', 'FractionalMaxPool2D', 'FractionalMaxPool3D', 'GELU', 'GLU', 'GRU', 'GRUCell', 'GaussianNLLLoss', 'GroupNorm', 'HSigmoidLoss', 'Hardshrink', 'Hardsigmoid', 'Hardswish', 'Hardtanh', 'HingeEmbeddingLoss', 'HuberLoss', 'Identity', 'InstanceNorm1D', 'InstanceNorm2D', 'InstanceNorm3D', 'KLDivLoss', 'L1Loss', 'LPPool1D', 'LPPool1d', 'LPPool2D', 'LPPool2d', 'LSTM', 'LSTMCell', 'Layer', 'LayerDict', 'LayerList', 'LayerNorm', 'LeakyReLU', 'Linear', 'LocalResponseNorm', 'LogSigmoid', 'LogSoftmax', 'MSELoss', 'MarginRankingLoss', 'MaxPool1D', 'MaxPool2D', 'MaxPool3D', 'MaxUnPool1D', 'MaxUnPool2D', 'MaxUnPool3D', 'MaxUnpool1d', 'MaxUnpool2d', 'MaxUnpool3d', 'Maxout', 'Mish', 'Module', 'ModuleDict', 'ModuleList', 'MultiHeadAttention', 'MultiLabelMarginLoss', 'MultiLabelSoftMarginLoss', 'MultiMarginLoss', 'NLLLoss', 'PReLU', 'Pad1D', 'Pad2D', 'Pad3D', 'PairwiseDistance', 'Parameter', 'ParameterDict', 'ParameterList', 'PixelShuffle', 'PixelUnshuffle', 'PoissonNLLLoss', 'RNN', 'RNNCellBase', 'RNNTLoss', 'RReLU', 'ReLU', 'ReLU6', 'ReflectionPad1D', 'ReflectionPad1d', 'ReflectionPad2D', 'ReflectionPad2d', 'ReflectionPad3D', 'ReflectionPad3d', 'ReplicationPad1D', 'ReplicationPad1d', 'ReplicationPad2D', 'ReplicationPad2d', 'ReplicationPad3D', 'ReplicationPad3d', 'SELU', 'Sequential', 'SiLU', 'Sigmoid', 'Silu', 'SimpleRNN', 'SimpleRNNCell', 'SmoothL1Loss', 'SoftMarginLoss', 'Softmax', 'Softmax2D', 'Softplus', 'Softshrink', 'Softsign', 'SpectralNorm', 'Swish', 'SyncBatchNorm', 'Tanh', 'Tanhshrink', 'ThresholdedReLU', 'Transformer', 'TransformerDecoder', 'TransformerDecoderLayer', 'TransformerEncoder', 'TransformerEncoderLayer', 'TripletMarginLoss', 'TripletMarginWithDistanceLoss', 'Unflatten', 'Unfold', 'Upsample', 'UpsamplingBilinear2D', 'UpsamplingBilinear2d', 'UpsamplingNearest2D', 'UpsamplingNearest2d', 'ZeroPad1D', 'ZeroPad1d', 'ZeroPad2D', 'ZeroPad2d', 'ZeroPad3D', 'ZeroPad3d', 'attr', 'clip', 'decode', 'dynamic_decode', 'functional', 'init', 'initializer', 'layer', 'loss', 'quant', 'spectral_norm', 'utils']
