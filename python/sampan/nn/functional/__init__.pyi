# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from ... import _core as _core, _registry as _registry

from . import flash_attention as flash_attention

def silu(x, inplace=False, name=None):
    """`x * sigmoid(x)`; with `inplace` the result takes the place of `x`."""
    ...

def triplet_margin_with_distance_loss(input, positive, negative, distance_function=None, margin=1.0, swap=False, reduction='mean', name=None):
    """How much farther the negative is than the positive, up to `margin`, by a distance of one's own."""
    ...

def adaptive_avg_pool1d(x: Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Averages over windows that divide a sequence `[batch, channels, length]` into `output_size` parts; see `adaptive_avg_pool2d`."""


def adaptive_avg_pool2d(x: Tensor, output_size: Any, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Averages over windows that divide an image into `output_size` parts, as evenly as possible. `None` keeps an extent."""


def adaptive_avg_pool3d(x: Tensor, output_size: Any, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """Averages over windows that divide a volume into `output_size` parts; see `adaptive_avg_pool2d`."""


def adaptive_log_softmax_with_loss(input: Tensor, label: Tensor, head_weight: Tensor, tail_weights: Any, cutoffs: _int | Sequence[_int] | Tensor, head_bias: Tensor | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The adaptive softmax: frequent classes and one entry for each cluster in the head, rare classes in clusters of their
    own with small factors. Gives the log-probability of each label and the mean loss. `tail_weights` is a list of pairs
    of matrices; `cutoffs` are the bounds of the clusters, the last one being the number of classes.
    """


def adaptive_max_pool1d(x: Tensor, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """The largest element of each of `output_size` windows that divide a sequence, as evenly as possible. With `return_mask`
    also its flat place in its plane.
    """


def adaptive_max_pool2d(x: Tensor, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """The largest element of each of `output_size` windows that divide an image, as evenly as possible. With `return_mask`
    also its flat place in its plane.
    """


def adaptive_max_pool3d(x: Tensor, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """The largest element of each of `output_size` windows that divide a volume, as evenly as possible. With `return_mask`
    also its flat place in its plane.
    """


def affine_grid(theta: Tensor, out_shape: Any, align_corners: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The grid for `grid_sample` on which an affine map `theta` (`[batch, 2, 3]` or `[batch, 3, 4]`) sends the places of an
    image or volume of shape `out_shape`.
    """


def alpha_dropout(x: Tensor, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """Dropout that keeps mean and deviation of selu activations."""


def avg_pool1d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, exclusive: _bool = True, ceil_mode: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The average of each window of a sequence `[batch, channels, length]`; see `avg_pool2d`."""


def avg_pool2d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """The average of each window of an image; the stride is the window's size unless given. Padding does not count unless
    `exclusive` is false; `divisor_override` replaces the count.
    """


def avg_pool3d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """The average of each window of a volume; see `avg_pool2d`."""


def batch_norm(x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.9, epsilon: _float = 1e-5, data_format: _str = 'NCHW', use_global_stats: _bool | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normalises each channel over the batch: in training by the batch's own mean and variance, which also move the running
    ones (`momentum` is the share of the old that is kept), otherwise, or with `use_global_stats`, by the running ones. In
    training a single element in each channel has no deviation: it is the result as it is, and nothing is learnt from it.
    """


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """A form that is linear in both inputs: `out[b, o] = Σ x1[b, i] weight[o, i, j] x2[b, j] + bias[o]`."""


def binary_cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`-(label ln(input) + (1 - label) ln(1 - input))` of probabilities `input`, times `weight`, reduced. The label gets no
    gradient.
    """


def binary_cross_entropy_with_logits(logit: Tensor, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', pos_weight: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Binary cross entropy of logits, without overflow; `pos_weight` scales the positive class, `weight` every element. The
    label and `pos_weight` get no gradient.
    """


def celu(x: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0)`."""


def channel_shuffle(x: Tensor, groups: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Channels dealt out anew, one from each of `groups` groups in turn."""


def class_center_sample(label: Tensor, num_classes: _int, num_samples: _int, group: Any = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The classes that occur in `label`, sorted, filled up at random with others to `num_samples`, and the labels as places
    in this list: `(remapped_label, sampled_class_center)`. All classes that occur are there even if they are more.
    """


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of sequences `[batch, in, length]` with filters `[out, in / groups, length]`; see `conv2d`."""


def conv1d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, groups: _int = 1, dilation: _int | Sequence[_int] | Tensor = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
    """Transposed convolution of sequences with filters `[in, out / groups, length]`; see `conv2d_transpose`."""


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of images `[batch, in, height, width]` with filters `[out, in / groups, height, width]`, as layers
    compute it: filters are not flipped. `padding` is a number, a list, pairs, `"SAME"` (output `⌈input / stride⌉`) or
    `"VALID"`. With `"SAME"` the dilation is 1, whatever was asked for: so it is in Paddle, and models that were trained
    there depend on it. For a dilated convolution give the padding in numbers.
    """


def conv2d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Transposed convolution of images with filters `[in, out / groups, height, width]`: the transpose of the `conv2d` that
    maps its output's shape to its input's. `output_padding` or `output_size` choose among the output extents that such a
    convolution would map to the same input. With `padding="SAME"` the dilation is 1, as in `conv2d`.
    """


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of volumes `[batch, in, depth, height, width]`; see `conv2d`."""


def conv3d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, groups: _int = 1, dilation: _int | Sequence[_int] | Tensor = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """Transposed convolution of volumes with filters `[in, out / groups, depth, height, width]`; see `conv2d_transpose`."""


def cosine_embedding_loss(input1: Tensor, input2: Tensor, label: Tensor, margin: _float = 0.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """One minus the cosine between the inputs where the label is 1, the cosine beyond `margin` where it is -1."""


def cosine_similarity(x1: Tensor, x2: Tensor, axis: _int = 1, eps: _float = 1e-8, *args: Any, **kwargs: Any) -> Tensor:
    """The cosine of the angle between `x1` and `x2` along `axis`: their dot product over the product of their lengths, which
    counts as at least `eps`.
    """


def cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', soft_label: _bool = False, axis: _int = -1, use_softmax: _bool = True, label_smoothing: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
    """The cross entropy of logits `input` with labels along `axis`."""


def ctc_loss(log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: _int = 0, reduction: _str = 'mean', norm_by_times: _bool = False, zero_infinity: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The CTC loss of logits `[frames, batch, classes]`, to which a softmax is applied first. `labels` has one row for each
    sequence, of which `label_lengths` count; `input_lengths` are the frames of each. The mean divides each loss by its
    label length first; `norm_by_times` divides the gradient by the frames.
    """


def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The last axis as the diagonal of two new axes at `dim1` and `dim2` of the result."""


def dice_loss(input: Tensor, label: Tensor, epsilon: _float = 1e-5, *args: Any, **kwargs: Any) -> Tensor:
    """One minus twice the overlap of predictions and labels over their total, averaged over the batch. `label` holds class
    numbers with a last axis of 1.
    """


def dropout(x: Tensor, p: _float = 0.5, axis: _int | Sequence[_int] | Tensor | None = None, training: _bool = True, mode: _str = 'upscale_in_train', *args: Any, **kwargs: Any) -> Tensor:
    """Sets elements to zero with probability `p` in training, and scales the others by `1 / (1 - p)` so that the mean stays.
    With `mode="downscale_in_infer"` the result is scaled by `1 - p` outside of training instead. `axis` names the axes
    along which the mask varies; it is constant along the others.
    """


def dropout1d(x: Tensor, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`dropout` of whole channels of `[C, L]` or `[N, C, L]` data."""


def dropout2d(x: Tensor, p: _float = 0.5, training: _bool = True, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """`dropout` of whole channels of 4-d data."""


def dropout3d(x: Tensor, p: _float = 0.5, training: _bool = True, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """`dropout` of whole channels of 5-d data."""


def elu(x: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, `alpha * (e^x - 1)` below."""


def elu_(x: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, `alpha * (e^x - 1)` below."""


def embedding(x: Tensor, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, sparse: _bool = False, scale_grad_by_freq: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Rows of `weight` for the ids in `x`. The row `padding_idx` reads as zeros and gets no gradient; rows longer than
    `max_norm` in the norm `norm_type` are shortened in place; `scale_grad_by_freq` divides each row's gradient by how
    often it was read. `sparse` is accepted; gradients are dense, but only rows in use are computed.
    """


def feature_alpha_dropout(x: Tensor, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`alpha_dropout` of whole channels: the mask varies along the first two axes only."""


def flash_attn_qkvpacked(qkv, dropout=0.0, causal=False, return_softmax=False, fixed_seed_offset=None, rng_name='', training=True, name=None) -> Any:
    """The attention of `qkv` `[batch, length, groups + 2, heads, width]`: queries of `groups * heads` heads, then keys and values.
    Gives the attention `[batch, length, groups * heads, width]`, and its weights with `return_softmax`.
    """


def flash_attn_varlen_qkvpacked(qkv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, dropout=0.0, causal=False, return_softmax=False, fixed_seed_offset=None, rng_name='', varlen_padded=True, training=True, name=None) -> Any:
    """[`flash_attn_unpadded`] of `qkv` `[length of all, groups + 2, heads, width]`, packed as in [`flash_attn_qkvpacked`]. With
    `varlen_padded` each sequence has room for `max_seqlen_q` rows, of which the first are its own; the others give zeros.
    """


def flashmask_attention(query, key, value, startend_row_indices=None, dropout=0.0, causal=False, window_size=None, return_softmax_lse=False, return_seed_offset=False, fixed_seed_offset=None, rng_name='', training=True, softmax_scale=None, block_mask=None, name=None) -> Any:
    """Attention of `query`, `key` and `value` `[batch, length, heads, width]` where each key is hidden from a range of queries."""


def fold(x: Tensor, output_sizes: _int | Sequence[_int] | Tensor, kernel_sizes: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor = 1, paddings: _int | Sequence[_int] | Tensor = 0, dilations: _int | Sequence[_int] | Tensor = 1, *args: Any, **kwargs: Any) -> Tensor:
    """Columns of blocks added up to the image of extents `output_sizes` that they were taken from: the transpose of `unfold`."""


def fractional_max_pool2d(x: Tensor, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """Max pooling of an image to `output_size` with windows at fractional steps: side by side, or overlapping where
    `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
    """


def fractional_max_pool3d(x: Tensor, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """Max pooling of a volume to `output_size` with windows at fractional steps: side by side, or overlapping where
    `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
    """


def gather_tree(ids: Tensor, parents: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sequences that end in each beam, from the tokens `ids` and the beams `parents` they continue, both
    `[time, batch, beam]`.
    """


def gaussian_nll_loss(input: Tensor, label: Tensor, variance: Tensor, full: _bool = False, epsilon: _float = 1e-6, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The negative log-likelihood of `label` under normal distributions of mean `input` and given variance, which is kept
    above `epsilon`; `full` adds the constant.
    """


def gelu(x: Tensor, approximate: Any = False, *args: Any, **kwargs: Any) -> Tensor:
    """`x` times the normal distribution function; with `approximate`, its form in tanh."""


def glu(x: Tensor, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The first half of `x` along `axis` times the sigmoid of the second half."""


def grid_sample(x: Tensor, grid: Tensor, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The image at the places of a grid whose last axis holds (x, y) or (x, y, z) from −1 to 1: between pixels by distance
    (`bilinear`, also for volumes) or from the nearest one. Outside lie zeros, the border, or the image mirrored. With
    `align_corners` −1 and 1 are the centres of the corner pixels, else their outer edges.
    """


def group_norm(x: Tensor, num_groups: _int, epsilon: _float = 1e-5, weight: Tensor | None = None, bias: Tensor | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Normalises groups of channels of each sample to mean 0 and deviation 1, then scales and shifts by channel."""


def gumbel_softmax(x: Tensor, temperature: _float = 1.0, hard: _bool = False, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """A softmax of `x` plus Gumbel noise over `temperature`: a differentiable draw from the categories along `axis`. With
    `hard` the result is one-hot, with the gradient of the soft one.
    """


def hardshrink(x: Tensor, threshold: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
    """`x` where it is farther from zero than `threshold`, else 0."""


def hardsigmoid(x: Tensor, slope: _float = 0.1666667, offset: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
    """`slope * x + offset` held between 0 and 1."""


def hardswish(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * min(max(x + 3, 0), 6) / 6`."""


def hardtanh(x: Tensor, min: _float = -1.0, max: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` held between `min` and `max`."""


def hardtanh_(x: Tensor, min: _float = -1.0, max: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` held between `min` and `max`."""


def hinge_embedding_loss(input: Tensor, label: Tensor, margin: _float = 1.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`input` where the label is 1, `max(0, margin - input)` where it is -1, reduced."""


def hsigmoid_loss(input: Tensor, label: Tensor, num_classes: _int, weight: Tensor, bias: Tensor | None = None, path_table: Tensor | None = None, path_code: Tensor | None = None, is_sparse: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The hierarchical sigmoid loss `[rows, 1]`: the classes are the leaves of a binary tree whose inner nodes hold a row of
    `weight` and a number of `bias` each, and the loss adds up the cross entropies of the questions on the way from a leaf
    to the root. Without `path_table` and `path_code` the tree is the complete one; with them, each row of them names the
    inner nodes on the row's way and the answers, up to the first negative number. As in Paddle, a question that a shorter
    way lacks adds ln 2, which changes no gradient. Gradients are dense, whatever `is_sparse` says.
    """


def instance_norm(x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.9, eps: _float = 1e-5, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Normalises each channel of each sample to mean 0 and deviation 1, then scales and shifts by channel. The running
    statistics, `use_input_stats` and `momentum` are accepted and have no effect, as in Paddle.
    """


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool = False, align_mode: _int = 0, data_format: _str | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The image at another size, given as `size` or as `scale_factor`, for each spatial axis or for all alike. `mode` is
    nearest, linear (3 axes), bilinear, bicubic (4 axes), trilinear (5 axes) or area. With `align_corners` the corner pixels
    keep their values; without, `align_mode` 0 places pixels by their centres and 1 by their first corner.
    """


def kl_div(input: Tensor, label: Tensor, reduction: _str = 'mean', log_target: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The Kullback-Leibler divergence `label * (ln(label) - input)` for log-probabilities `input`; the label holds
    log-probabilities too with `log_target`. `reduction` may also be `"batchmean"`. The label gets no gradient.
    """


def l1_loss(input: Tensor, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`|input - label|`, reduced."""


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: _float = 0.1, *args: Any, **kwargs: Any) -> Tensor:
    """One hot labels softened: `(1 - epsilon) * label` plus `epsilon` times `prior_dist`, which gets no gradient, or the
    uniform distribution.
    """


def layer_norm(x: Tensor, normalized_shape: _int | Sequence[_int] | Tensor, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: _float = 1e-5, *args: Any, **kwargs: Any) -> Tensor:
    """Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales by `weight` and
    shifts by `bias`.
    """


def leaky_relu(x: Tensor, negative_slope: _float = 0.01, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, `negative_slope * x` below."""


def leaky_relu_(x: Tensor, negative_slope: _float = 0.01, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, `negative_slope * x` below."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`x @ weight + bias`: the affine map of a fully connected layer. `weight` is `[in_features, out_features]`."""


def local_response_norm(x: Tensor, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Divides by `(k + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels."""


def log_loss(input: Tensor, label: Tensor, epsilon: _float = 0.0001, *args: Any, **kwargs: Any) -> Tensor:
    """`-label ln(input + epsilon) - (1 - label) ln(1 - input + epsilon)`. The label gets no gradient."""


def log_sigmoid(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`ln(sigmoid(x))`, without overflow."""


def log_softmax(x: Tensor, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of softmax along `axis`, after a cast to `dtype` if one is given."""


def logsigmoid(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`ln(sigmoid(x))`, without overflow."""


def lp_pool1d(x: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
    """The power average of each window of a sequence; see `lp_pool2d`."""


def lp_pool2d(x: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """The power average of each window of an image: the sum of `x^norm_type` to the power `1 / norm_type`. An infinite
    `norm_type` is max pooling.
    """


def margin_cross_entropy(logits: Tensor, label: Tensor, margin1: _float = 1.0, margin2: _float = 0.5, margin3: _float = 0.0, scale: _float = 64.0, return_softmax: _bool = False, reduction: _str | None = 'mean', *args: Any, **kwargs: Any) -> Any:
    """Cross entropy of cosines with a margin on the labelled class, whose angle `t` enters as
    `cos(margin1 * t + margin2) - margin3`; all are scaled by `scale` (ArcFace, CosFace, SphereFace).
    """


def margin_ranking_loss(input: Tensor, other: Tensor, label: Tensor, margin: _float = 0.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`max(0, -label * (input - other) + margin)`, reduced: `input` should rank above `other` where the label is 1, below
    where it is -1.
    """


def max_pool1d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """The largest element of each window of a sequence `[batch, channels, length]`; see `max_pool2d`."""


def max_pool2d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Any:
    """The largest element of each window of an image; the stride is the window's size unless given. With `return_mask` also
    the flat place of each maximum in its plane.
    """


def max_pool3d(x: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Any:
    """The largest element of each window of a volume; see `max_pool2d`."""


def max_unpool1d(x: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCL', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `max_pool1d`: zeros with each element of `x` put back at its place in `indices`, the mask that
    `max_pool1d` returned. `output_size` settles the extents where several pool to the same.
    """


def max_unpool2d(x: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCHW', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `max_pool2d`: zeros with each element of `x` put back at its place in `indices`, the mask that
    `max_pool2d` returned. `output_size` settles the extents where several pool to the same.
    """


def max_unpool3d(x: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCDHW', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `max_pool3d`: zeros with each element of `x` put back at its place in `indices`, the mask that
    `max_pool3d` returned. `output_size` settles the extents where several pool to the same.
    """


def maxout(x: Tensor, groups: _int, axis: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """The largest of every `groups` neighbouring channels on `axis`."""


def mish(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * tanh(softplus(x))`."""


def mse_loss(input: Tensor, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`(input - label)^2`, reduced."""


def multi_label_margin_loss(input: Tensor, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The hinge of every other class against each labelled one, for rows with several labels; a row's labels end at -1."""


def multi_label_soft_margin_loss(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """Binary cross entropy of every class's logit, averaged over the classes and then reduced."""


def multi_margin_loss(input: Tensor, label: Tensor, p: _int = 1, margin: _float = 1.0, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The hinge of every wrong class against the labelled one: the mean over classes of `max(0, margin - x[label] + x)^p`,
    times the label's `weight`.
    """


def nll_loss(input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The negative of the log-probability that each label names, with classes on axis 1. The mean is weighted by class and
    leaves labels equal to `ignore_index` out; `weight` gets no gradient.
    """


def normalize(x: Tensor, p: _float = 2.0, axis: _int = 1, epsilon: _float = 1e-12, *args: Any, **kwargs: Any) -> Tensor:
    """`x` divided by its `p`-norm along `axis`, or by `epsilon` where that is larger."""


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: _float = 0.002, *args: Any, **kwargs: Any) -> Tensor:
    """The N-pair loss: the similarity of anchors and positives of one label against those of others, and `l2_reg` of their
    lengths.
    """


def one_hot(x: Tensor, num_classes: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """One row for each id in `x`, one at the id and zero elsewhere. Without `num_classes` it is the largest id plus one."""


def pad(x: Tensor, pad: Any, mode: _str = 'constant', value: _float | _bool = 0.0, data_format: _str | None = None, pad_from_left_axis: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """More elements around the borders. `pad` holds pairs (before, after):
    * one pair for each axis: from the first axis, or from the last one without `pad_from_left_axis`;
    * one pair for each spatial axis, or fewer: from the last (spatial) axis backwards, `data_format` telling where the
     spatial axes are. Only this form exists for the modes other than `constant` and for a `pad` that is a tensor.
    """


def pairwise_distance(x: Tensor, y: Tensor, p: _float = 2.0, epsilon: _float = 1e-6, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm of `x - y + epsilon` along the last axis."""


def pdist(x: Tensor, p: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm distances between all pairs of different rows of `x`: rows 0 and 1, 0 and 2, … as one vector."""


def pixel_shuffle(x: Tensor, upscale_factor: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Groups of `upscale_factor²` channels laid out as squares of pixels: `[n, c·r², h, w]` to `[n, c, h·r, w·r]`."""


def pixel_unshuffle(x: Tensor, downscale_factor: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Squares of `downscale_factor²` pixels gathered into channels: the inverse of `pixel_shuffle`."""


def poisson_nll_loss(input: Tensor, label: Tensor, log_input: _bool = True, full: _bool = False, epsilon: _float = 1e-8, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The negative log-likelihood of counts `label` under a Poisson distribution of rate `input`, or `e^input` with
    `log_input`; `full` adds Stirling's approximation of the constant.
    """


def prelu(x: Tensor, weight: Tensor, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, `weight * x` below, with one learnt weight for all or for each channel."""


def relu(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`max(x, 0)`."""


def relu6(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`min(max(x, 0), 6)`."""


def relu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`max(x, 0)`."""


def rms_norm(input: Tensor, normalized_shape: _int | Sequence[_int] | Tensor, weight: Tensor | None = None, eps: _float = 1e-5, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """Divides by the root of the mean square over the last axes, those of `normalized_shape`, then scales by `weight`. Gives
    the result and one over the root for each row.
    """


def rnnt_loss(input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: _int = 0, fastemit_lambda: _float = 0.001, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """The loss of a recurrent transducer on log-probabilities `[batch, frames, columns, classes]`: column `u` holds what may
    follow after `u` labels, so there is one column more than there are labels. `label` has one row for each sequence, of
    which `label_lengths` count; `input_lengths` are the frames of each. The mean is taken over the batch.
    """


def rrelu(x: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above zero, below it `x` times a random slope from [lower, upper), or times their middle outside of training."""


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, training: _bool = True, backend: _str | None = None, scale: _float | None = None, enable_gqa: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`softmax(query keyᵀ · scale + mask) value` for every sequence and head: `query` is `[batch, length, heads, width]`, `key` and
    `value` may have another length and, if `heads` is a multiple of theirs, fewer heads; without the batch axis one
    sequence is meant. A bool `attn_mask` says what takes part, a float one is added to the scores; it broadcasts to
    `[batch, heads, query length, key length]`. `is_causal` lets query `i` see keys `0..=i` (on top of a mask). Scores are made
    tile by tile and never kept. A query that sees nothing gives zeros.
    """


def selu(x: Tensor, scale: _float = 1.0507009873554805, alpha: _float = 1.6732632423543772, *args: Any, **kwargs: Any) -> Tensor:
    """`scale * x` above zero, `scale * alpha * (e^x - 1)` below; the defaults keep mean 0 and deviation 1 from layer to layer."""


def sequence_mask(x: Tensor, maxlen: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """Rows of `maxlen` ones and zeros: as many leading ones as `x` says; `maxlen` is the largest of them by default."""


def sigmoid(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logistic function `1 / (1 + exp(-x))`."""


def sigmoid_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logistic function `1 / (1 + exp(-x))`."""


def sigmoid_focal_loss(logit: Tensor, label: Tensor, normalizer: Tensor | None = None, alpha: _float = 0.25, gamma: _float = 2.0, reduction: _str = 'sum', *args: Any, **kwargs: Any) -> Tensor:
    """The focal loss on logits: cross entropy that fades for what is already well classified, by the power `gamma`. The
    label's gradient is that of the fading alone.
    """


def smooth_l1_loss(input: Tensor, label: Tensor, reduction: _str = 'mean', delta: _float = 1.0, is_huber: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The Huber loss: quadratic for differences up to `delta`, linear beyond; divided by `delta` without `is_huber`."""


def soft_margin_loss(input: Tensor, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`ln(1 + e^(-label * input))` for labels of -1 and 1, reduced."""


def softmax(x: Tensor, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""


def softmax_(x: Tensor, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""


def softmax_with_cross_entropy(logits: Tensor, label: Tensor, soft_label: _bool = False, ignore_index: _int = -100, numeric_stable_mode: _bool = True, return_softmax: _bool = False, axis: _int = -1, *args: Any, **kwargs: Any) -> Any:
    """Cross entropy of logits without a reduction, the class axis kept with extent 1; with `return_softmax` also the softmax."""


def softplus(x: Tensor, beta: _float = 1.0, threshold: _float = 20.0, *args: Any, **kwargs: Any) -> Tensor:
    """`ln(1 + e^(beta x)) / beta`, or `x` where `beta x` is above `threshold`."""


def softshrink(x: Tensor, threshold: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
    """`x` moved towards zero by `threshold`; 0 where it is closer than that."""


def softsign(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x / (1 + |x|)`."""


def sparse_attention(query, key, value, sparse_csr_offset, sparse_csr_columns, key_padding_mask=None, attn_mask=None, name=None) -> Any:
    """Attention of `query`, `key` and `value` `[batch, heads, length, width]` where each query sees a few keys: those of query
    `i` are `sparse_csr_columns` `[batch, heads, n]` from `sparse_csr_offset` `[batch, heads, length + 1]` at `i` to at `i + 1`.
    A 0 in `key_padding_mask` `[batch, length]` hides a key from all, one in `attn_mask` `[length, length]` a key from a
    query. A query that sees nothing gives zeros.
    """


def square_error_cost(input: Tensor, label: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`(input - label)^2`."""


def swiglu(x: Tensor, y: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`silu(x) * y`; without `y` both are halves of `x` along its last axis."""


def swish(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * sigmoid(x)`."""


def tanh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic tangent of each element."""


def tanh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic tangent of each element."""


def tanhshrink(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x - tanh(x)`."""


def temporal_shift(x: Tensor, seg_num: _int, shift_ratio: _float = 0.25, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Some channels moved one frame on and as many one frame back within each clip of `seg_num` frames; zeros come in at the
    ends. `shift_ratio` is the share of channels that move each way.
    """


def thresholded_relu(x: Tensor, threshold: _float = 1.0, value: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above `threshold`, else `value`."""


def thresholded_relu_(x: Tensor, threshold: _float = 1.0, value: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` above `threshold`, else `value`."""


def triplet_margin_loss(input: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, epsilon: _float = 1e-6, swap: _bool = False, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
    """`max(0, d(input, positive) - d(input, negative) + margin)` with the `p`-norm as distance. With `swap` the negative may
    also be measured from the positive, whichever is closer.
    """


def unfold(x: Tensor, kernel_sizes: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor = 1, paddings: _int | Sequence[_int] | Tensor = 0, dilations: _int | Sequence[_int] | Tensor = 1, *args: Any, **kwargs: Any) -> Tensor:
    """The sliding blocks of an image as columns: `[batch, channels × block, blocks]`. `paddings` is one number, (height,
    width) or (top, left, bottom, right).
    """


def upsample(x: Tensor, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool = False, align_mode: _int = 0, data_format: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The image at another size; the same as `interpolate`."""


def zeropad2d(x: Tensor, padding: Any, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Zeros around the last two spatial axes: `padding` is (left, right, top, bottom)."""


__all__ = ['adaptive_avg_pool1d', 'adaptive_avg_pool2d', 'adaptive_avg_pool3d', 'adaptive_log_softmax_with_loss', 'adaptive_max_pool1d', 'adaptive_max_pool2d', 'adaptive_max_pool3d', 'affine_grid', 'alpha_dropout', 'avg_pool1d', 'avg_pool2d', 'avg_pool3d', 'batch_norm', 'bilinear', 'binary_cross_entropy', 'binary_cross_entropy_with_logits', 'celu', 'channel_shuffle', 'class_center_sample', 'conv1d', 'conv1d_transpose', 'conv2d', 'conv2d_transpose', 'conv3d', 'conv3d_transpose', 'cosine_embedding_loss', 'cosine_similarity', 'cross_entropy', 'ctc_loss', 'diag_embed', 'dice_loss', 'dropout', 'dropout1d', 'dropout2d', 'dropout3d', 'elu', 'elu_', 'embedding', 'feature_alpha_dropout', 'flash_attention', 'flash_attn_qkvpacked', 'flash_attn_varlen_qkvpacked', 'flashmask_attention', 'fold', 'fractional_max_pool2d', 'fractional_max_pool3d', 'gather_tree', 'gaussian_nll_loss', 'gelu', 'glu', 'grid_sample', 'group_norm', 'gumbel_softmax', 'hardshrink', 'hardsigmoid', 'hardswish', 'hardtanh', 'hardtanh_', 'hinge_embedding_loss', 'hsigmoid_loss', 'instance_norm', 'interpolate', 'kl_div', 'l1_loss', 'label_smooth', 'layer_norm', 'leaky_relu', 'leaky_relu_', 'linear', 'local_response_norm', 'log_loss', 'log_sigmoid', 'log_softmax', 'logsigmoid', 'lp_pool1d', 'lp_pool2d', 'margin_cross_entropy', 'margin_ranking_loss', 'max_pool1d', 'max_pool2d', 'max_pool3d', 'max_unpool1d', 'max_unpool2d', 'max_unpool3d', 'maxout', 'mish', 'mse_loss', 'multi_label_margin_loss', 'multi_label_soft_margin_loss', 'multi_margin_loss', 'nll_loss', 'normalize', 'npair_loss', 'one_hot', 'pad', 'pairwise_distance', 'pdist', 'pixel_shuffle', 'pixel_unshuffle', 'poisson_nll_loss', 'prelu', 'relu', 'relu6', 'relu_', 'rms_norm', 'rnnt_loss', 'rrelu', 'scaled_dot_product_attention', 'selu', 'sequence_mask', 'sigmoid', 'sigmoid_', 'sigmoid_focal_loss', 'silu', 'smooth_l1_loss', 'soft_margin_loss', 'softmax', 'softmax_', 'softmax_with_cross_entropy', 'softplus', 'softshrink', 'softsign', 'sparse_attention', 'square_error_cost', 'swiglu', 'swish', 'tanh', 'tanh_', 'tanhshrink', 'temporal_shift', 'thresholded_relu', 'thresholded_relu_', 'triplet_margin_loss', 'triplet_margin_with_distance_loss', 'unfold', 'upsample', 'zeropad2d']
