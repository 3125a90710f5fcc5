"""Functions of `fluid.layers` that dynamic graphs use, with the names and arguments of 1.x."""

from __future__ import annotations

import math

from ... import _core, _registry
from ...nn import functional as F
from .. import _late

_TOP = _registry.functions("")


def activate(x, act):
    """Applies an activation by its name; None is none."""
    if act is None:
        return x
    found = globals().get(act) or getattr(F, act, None) or _TOP.get(act)
    if found is None:
        raise ValueError(f"(InvalidArgument) act: there is no activation {act!r}.")
    return found(x)


# ---- losses and metrics


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """The cross entropy of probabilities, not of logits; one for each sample."""
    return F.cross_entropy(
        input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label, use_softmax=False
    )


def softmax_with_cross_entropy(
    logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1
):
    """The cross entropy of logits; one for each sample."""
    return F.softmax_with_cross_entropy(
        logits, label, soft_label=soft_label, ignore_index=ignore_index, return_softmax=return_softmax, axis=axis
    )


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """The cross entropy of each logit with its label in [0, 1]."""
    loss = F.binary_cross_entropy_with_logits(x, label, reduction="none")
    kept = (label != ignore_index).astype(loss.dtype)
    loss = loss * kept
    return loss / kept.sum() if normalize else loss


def mse_loss(input, label):
    """The mean of the squared differences."""
    return F.mse_loss(input, label)


def huber_loss(input, label, delta):
    """Squared near zero, linear beyond `delta`; one for each element."""
    return F.smooth_l1_loss(input, label, reduction="none", delta=delta)


def accuracy(input, label, k=1, correct=None, total=None):
    """The share of samples whose label is among the `k` highest scores."""
    found = _TOP["topk"](input, k)[1]
    hits = (found == label.reshape([-1, 1]).astype(found.dtype)).any(axis=1)
    return hits.astype("float32").mean()


# ---- arithmetic


def _elementwise(name: str):
    op = _TOP[name]

    def function(x, y, axis=-1, act=None, name=None):
        if axis != -1 and y.ndim < x.ndim:
            # `y` lies on the axes of `x` from `axis` on.
            y = y.reshape([*y.shape, *[1] * (x.ndim - axis - y.ndim)])
        return activate(op(x, y), act)

    function.__name__ = function.__qualname__ = f"elementwise_{name}"
    function.__doc__ = f"`{name}` of two tensors; the second lies on the axes of the first from `axis` on."
    return function


elementwise_add, elementwise_sub = _elementwise("add"), _elementwise("subtract")
elementwise_mul, elementwise_div = _elementwise("multiply"), _elementwise("divide")
elementwise_max, elementwise_min = _elementwise("maximum"), _elementwise("minimum")
elementwise_pow, elementwise_mod = _elementwise("pow"), _elementwise("remainder")
elementwise_floordiv = _elementwise("floor_divide")


def _reduce(name: str):
    op = _TOP[name]

    def function(input, dim=None, keep_dim=False, name=None):
        return op(input, axis=dim, keepdim=keep_dim)

    function.__name__ = function.__qualname__ = f"reduce_{name}"
    function.__doc__ = f"`{name}` over the axes `dim`."
    return function


reduce_sum, reduce_mean, reduce_max, reduce_min = _reduce("sum"), _reduce("mean"), _reduce("max"), _reduce("min")
reduce_prod, reduce_all, reduce_any = _reduce("prod"), _reduce("all"), _reduce("any")


def mean(x, name=None):
    """The mean of all elements."""
    return x.mean()


def sum(x):
    """The sum of a list of tensors."""
    return _TOP["add_n"](x if isinstance(x, (list, tuple)) else [x])


sums = sum


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    """The product of matrices that tensors are made into, split at an axis each."""

    def matrix(t, at):
        return t.reshape([math.prod(t.shape[:at]), math.prod(t.shape[at:])])

    product = _TOP["matmul"](matrix(x, x_num_col_dims), matrix(y, y_num_col_dims))
    return product.reshape([*x.shape[:x_num_col_dims], *y.shape[y_num_col_dims:]])


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    """The product of matrices, times `alpha`."""
    product = _TOP["matmul"](x, y, transpose_x, transpose_y)
    return product if alpha == 1.0 else product * alpha


def pow(x, factor=1.0, name=None):
    """A power of each element."""
    return _TOP["pow"](x, factor)


def clip_by_norm(x, max_norm, name=None):
    """The tensor, made smaller if its norm is above `max_norm`."""
    norm = (x * x).sum().sqrt()
    return x * (max_norm / norm.clip(min=max_norm))


def l2_normalize(x, axis, epsilon=1e-12, name=None):
    """Vectors of length one along an axis."""
    return F.normalize(x, axis=axis, epsilon=epsilon)


# ---- layers without parameters


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """Drops elements while training; as of old, what remains is made smaller when it does not train."""
    modes = {"downgrade_in_infer": "downscale_in_infer", "upscale_in_train": "upscale_in_train"}
    return F.dropout(x, dropout_prob, training=not is_test, mode=modes[dropout_implementation])


def pool2d(
    input,
    pool_size=-1,
    pool_type="max",
    pool_stride=1,
    pool_padding=0,
    global_pooling=False,
    use_cudnn=True,
    ceil_mode=False,
    name=None,
    exclusive=True,
    data_format="NCHW",
):
    """The maximum or the mean of windows, or of the whole plane."""
    if pool_type not in ("max", "avg"):
        raise ValueError(f"(InvalidArgument) pool2d: pool_type is 'max' or 'avg', received {pool_type!r}.")
    if global_pooling:
        plane = [2, 3] if data_format == "NCHW" else [1, 2]
        return _TOP["max" if pool_type == "max" else "mean"](input, axis=plane, keepdim=True)
    how = {"stride": pool_stride, "padding": pool_padding, "ceil_mode": ceil_mode, "data_format": data_format}
    if pool_type == "max":
        return F.max_pool2d(input, pool_size, **how)
    return F.avg_pool2d(input, pool_size, exclusive=exclusive, **how)


def softmax(input, use_cudnn=False, name=None, axis=-1):
    """Probabilities of scores."""
    return F.softmax(input, axis)


def leaky_relu(x, alpha=0.02, name=None):
    """A small slope below zero."""
    return F.leaky_relu(x, alpha)


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """A line between zero and one."""
    return F.hardsigmoid(x, slope, offset)


def swish(x, beta=1.0, name=None):
    """`x * sigmoid(beta * x)`."""
    return x * F.sigmoid(x * beta)


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """`x` times a line between zero and one."""
    return x * (x + offset).clip(0.0, threshold) / scale


def brelu(x, t_min=0.0, t_max=24.0, name=None):
    """`x` between two bounds."""
    return x.clip(t_min, t_max)


def embedding(input, weight, padding_idx=None, **_):
    """Rows of a table by number."""
    return F.embedding(input, weight, padding_idx=padding_idx)


def one_hot(input, depth, allow_out_of_range=False):
    """Ones at the places that numbers name; a last axis of one element gives way."""
    if input.ndim > 1 and input.shape[-1] == 1:
        input = input.squeeze(-1)
    return F.one_hot(input, depth)


def image_resize(
    input,
    out_shape=None,
    scale=None,
    name=None,
    resample="BILINEAR",
    actual_shape=None,
    align_corners=True,
    align_mode=1,
):
    """Another height and width."""
    mode = resample.lower()
    corners = (
        {"align_corners": align_corners, "align_mode": align_mode}
        if mode == "bilinear"
        else {"align_corners": align_corners}
    )
    return F.interpolate(input, size=out_shape, scale_factor=scale, mode=mode, **corners)


def resize_bilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1):
    """Another height and width, from four neighbours."""
    return image_resize(
        input, out_shape, scale, resample="BILINEAR", align_corners=align_corners, align_mode=align_mode
    )


def resize_nearest(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True):
    """Another height and width, from the nearest neighbour."""
    return image_resize(input, out_shape, scale, resample="NEAREST", align_corners=align_corners)


def pad(x, paddings, pad_value=0.0, name=None):
    """Values around a tensor: before and after each axis."""
    return F.pad(x, list(paddings), value=pad_value)


def pad2d(input, paddings=(0, 0, 0, 0), mode="constant", pad_value=0.0, data_format="NCHW", name=None):
    """Values around pictures: top, bottom, left, right."""
    top, bottom, left, right = paddings
    mode = {"edge": "replicate"}.get(mode, mode)
    return F.pad(input, [left, right, top, bottom], mode=mode, value=pad_value, data_format=data_format)


# ---- tensors


def fill_constant(shape, dtype, value, force_cpu=False, out=None, name=None):
    """A tensor full of one value."""
    return _TOP["full"](shape, value, dtype)


def zeros(shape, dtype, force_cpu=False, name=None):
    """Zeros."""
    return _TOP["zeros"](shape, dtype)


def ones(shape, dtype, force_cpu=False):
    """Ones."""
    return _TOP["ones"](shape, dtype)


def assign(input, output=None):
    """A copy, or into another tensor."""
    made = _TOP["assign"](input if isinstance(input, _core.Tensor) else _core.to_tensor_py(input))
    if output is None:
        return made
    output.set_value(made)
    return output


def concat(input, axis=0, name=None):
    """Tensors one after another."""
    return _TOP["concat"](input, axis)


def split(input, num_or_sections, dim=-1, name=None):
    """Parts along an axis."""
    return _TOP["split"](input, num_or_sections, dim)


def squeeze(input, axes, name=None):
    """Without axes of one element."""
    return _TOP["squeeze"](input, axes or None)


def unsqueeze(input, axes, name=None):
    """With new axes of one element."""
    return _TOP["unsqueeze"](input, axes)


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """Another shape, and an activation."""
    return activate(_TOP["reshape"](x, shape), act)


def flatten(x, axis=1, name=None):
    """A matrix, split at an axis."""
    return x.reshape([math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def expand(x, expand_times, name=None):
    """The tensor, several times along each axis."""
    return _TOP["tile"](x, expand_times)


def argmax(x, axis=0):
    """The place of the maximum along an axis."""
    return _TOP["argmax"](x, axis)


def argmin(x, axis=0):
    """The place of the minimum along an axis."""
    return _TOP["argmin"](x, axis)


def argsort(input, axis=-1, descending=False, name=None):
    """Sorted values, and where they were."""
    places = _TOP["argsort"](input, axis, descending)
    return _TOP["sort"](input, axis, descending), places


def topk(input, k, name=None):
    """The `k` highest values of the last axis, and their places."""
    return _TOP["topk"](input, k)


def range(start, end, step, dtype, name=None):
    """Numbers at equal distances."""
    return _TOP["arange"](start, end, step, dtype)


def where(condition):
    """The places of what is true."""
    return _TOP["nonzero"](condition)


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    """Uniform random numbers."""
    return _TOP["uniform"](shape, dtype, min, max)


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    """Normal random numbers."""
    return _TOP["normal"](mean, std, shape).astype(dtype)


def gather(input, index, overwrite=True):
    """Rows by number."""
    return _TOP["gather"](input, index)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter that belongs to no layer."""
    from .dygraph.layers import Layer

    return Layer("parameter", dtype).create_parameter(shape, attr, dtype, is_bias, default_initializer)


# What has kept its name and arguments.
_SAME = (
    "abs acos asin atan cast ceil clip cos cumsum diag equal erf exp eye floor gather_nd greater_equal greater_than "
    "has_inf has_nan increment isfinite kron less_equal less_than linspace log log1p logical_and logical_not "
    "logical_or logical_xor not_equal ones_like reciprocal reverse round rsqrt scale scatter scatter_nd scatter_nd_add shape "
    "sign sin slice sqrt square stack strided_slice tanh transpose unique unstack zeros_like"
).split()
_SAME_F = (
    "elu gelu hard_shrink label_smooth log_softmax logsigmoid maxout npair_loss pixel_shuffle relu relu6 selu sigmoid "
    "softplus softshrink softsign square_error_cost tanh_shrink thresholded_relu unfold kldiv_loss log_loss"
).split()

globals().update({name: _TOP[name] for name in _SAME if name in _TOP and name not in globals()})
globals().update({name: getattr(F, name) for name in _SAME_F if hasattr(F, name)})

__getattr__ = _late.names(
    __name__,
    {},
    "it is a function of static graphs, or has a new name in sampan.nn.functional. Hint: layers with parameters, such "
    "as fc and conv2d, are classes in fluid.dygraph.",
)
