"""Layers with the names and arguments of 1.x.

In 1.5 and 1.6 a name came first, and a layer found the size of its input when it was first called; from 1.7 on the size
is an argument. A string as the first argument tells them apart.
"""

from __future__ import annotations

import functools
import inspect
import math

from ....nn import functional as F
from ....nn import initializer as I
from ....nn.attr import ParamAttr
from .. import layers as functions
from .layers import Layer


def _either(drop: str | None = None):
    """For `__init__`: a name as the first argument means the arguments of 1.5, without `drop`, which is found later."""

    def wrap(init):
        names = [name for name in inspect.signature(init).parameters if name not in ("self", drop)]

        @functools.wraps(init)
        def either(self, *args, **kwargs):
            # The name itself has no use: names of parameters come from the kind of the layer.
            if args and isinstance(args[0], str):
                args = args[1:]
            elif kwargs.pop("name_scope", None) is None:
                return init(self, *args, **kwargs)
            init(self, **({} if drop is None else {drop: None}), **dict(zip(names, args)), **kwargs)

        return either

    return wrap


def _pair(value) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


class Linear(Layer):
    """`x W + b`, and an activation."""

    def __init__(self, input_dim, output_dim, param_attr=None, bias_attr=None, act=None, dtype="float32"):
        super().__init__("linear", dtype)
        self._act = act
        self.weight = self.create_parameter([input_dim, output_dim], param_attr, dtype)
        self.bias = self.create_parameter([output_dim], bias_attr, dtype, is_bias=True)

    def forward(self, input):
        return functions.activate(F.linear(input, self.weight, self.bias), self._act)


class FC(Layer):
    """`x W + b` on all axes from `num_flatten_dims` on, and an activation; the size of `x` is found at the first
    call."""

    def __init__(
        self,
        name_scope,
        size,
        num_flatten_dims=1,
        param_attr=None,
        bias_attr=None,
        act=None,
        is_test=False,
        dtype="float32",
    ):
        super().__init__("fc", dtype)
        self._size, self._axis, self._act = size, num_flatten_dims, act
        self._attrs = param_attr, bias_attr
        self.weight = self.bias = None

    def forward(self, input):
        axis = self._axis if self._axis >= 0 else input.ndim - 1
        kept, inner = list(input.shape[:axis]), math.prod(input.shape[axis:])
        if self.weight is None:
            self.weight = self.create_parameter([inner, self._size], self._attrs[0], self._dtype)
            self.bias = self.create_parameter([self._size], self._attrs[1], self._dtype, is_bias=True)
        y = F.linear(input.reshape([*kept, inner]), self.weight, self.bias)
        return functions.activate(y, self._act)


class Conv2D(Layer):
    """A convolution, and an activation."""

    @_either(drop="num_channels")
    def __init__(
        self,
        num_channels,
        num_filters,
        filter_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=None,
        param_attr=None,
        bias_attr=None,
        use_cudnn=True,
        act=None,
        dtype="float32",
    ):
        super().__init__("conv2d", dtype)
        self._filters, self._kernel = num_filters, _pair(filter_size)
        self._how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups or 1}
        self._attrs, self._act = (param_attr, bias_attr), act
        self.weight = self.bias = None
        if num_channels is not None:
            self._build(num_channels)

    def _build(self, channels):
        shape = [self._filters, channels // self._how["groups"], *self._kernel]
        spread = (2.0 / (math.prod(self._kernel) * channels)) ** 0.5
        self.weight = self.create_parameter(
            shape, self._attrs[0], self._dtype, default_initializer=I.Normal(0.0, spread)
        )
        self.bias = self.create_parameter([self._filters], self._attrs[1], self._dtype, is_bias=True)

    def forward(self, input):
        if self.weight is None:
            self._build(input.shape[1])
        return functions.activate(F.conv2d(input, self.weight, self.bias, **self._how), self._act)


class Conv2DTranspose(Layer):
    """A transposed convolution, and an activation."""

    @_either(drop="num_channels")
    def __init__(
        self,
        num_channels,
        num_filters,
        filter_size,
        output_size=None,
        padding=0,
        stride=1,
        dilation=1,
        groups=None,
        param_attr=None,
        bias_attr=None,
        use_cudnn=True,
        act=None,
        dtype="float32",
    ):
        super().__init__("conv2d_transpose", dtype)
        self._filters, self._kernel = num_filters, _pair(filter_size)
        self._how = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups or 1,
            "output_size": output_size,
        }
        self._attrs, self._act = (param_attr, bias_attr), act
        self.weight = self.bias = None
        if num_channels is not None:
            self._build(num_channels)

    def _build(self, channels):
        shape = [channels, self._filters // self._how["groups"], *self._kernel]
        self.weight = self.create_parameter(shape, self._attrs[0], self._dtype)
        self.bias = self.create_parameter([self._filters], self._attrs[1], self._dtype, is_bias=True)

    def forward(self, input):
        if self.weight is None:
            self._build(input.shape[1])
        return functions.activate(F.conv2d_transpose(input, self.weight, self.bias, **self._how), self._act)


class Pool2D(Layer):
    """The maximum or the mean of windows."""

    @_either()
    def __init__(
        self,
        pool_size=-1,
        pool_type="max",
        pool_stride=1,
        pool_padding=0,
        global_pooling=False,
        use_cudnn=True,
        ceil_mode=False,
        exclusive=True,
        data_format="NCHW",
    ):
        super().__init__("pool2d")
        self._how = {
            "pool_size": pool_size,
            "pool_type": pool_type,
            "pool_stride": pool_stride,
            "pool_padding": pool_padding,
            "global_pooling": global_pooling,
            "ceil_mode": ceil_mode,
            "exclusive": exclusive,
            "data_format": data_format,
        }

    def forward(self, input):
        return functions.pool2d(input, **self._how)


class BatchNorm(Layer):
    """Normalizes each channel, and an activation."""

    @_either()
    def __init__(
        self,
        num_channels,
        act=None,
        is_test=False,
        momentum=0.9,
        epsilon=1e-5,
        param_attr=None,
        bias_attr=None,
        dtype="float32",
        data_layout="NCHW",
        in_place=False,
        moving_mean_name=None,
        moving_variance_name=None,
        do_model_average_for_mean_and_var=True,
        use_global_stats=False,
        trainable_statistics=False,
    ):
        super().__init__("batch_norm", dtype)
        self._act, self._is_test = act, is_test
        self._how = {"momentum": momentum, "epsilon": epsilon, "data_format": data_layout}
        self._global = use_global_stats
        self.weight = self.create_parameter([num_channels], param_attr, dtype, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, dtype, is_bias=True)
        for name, own, first in (("_mean", moving_mean_name, 0.0), ("_variance", moving_variance_name, 1.0)):
            attr = ParamAttr(own, I.Constant(first), trainable=False)
            setattr(self, name, self.create_parameter([num_channels], attr, dtype))

    def forward(self, input):
        training = self.training and not self._is_test and not self._global
        y = F.batch_norm(input, self._mean, self._variance, self.weight, self.bias, training=training, **self._how)
        return functions.activate(y, self._act)


class Embedding(Layer):
    """Rows of a table by number."""

    @_either()
    def __init__(self, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
        super().__init__("embedding", dtype)
        self._padding_idx = None if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
        self.weight = self.create_parameter(size, param_attr, dtype)

    def forward(self, input):
        return F.embedding(input, self.weight, padding_idx=self._padding_idx)


class LayerNorm(Layer):
    """Normalizes over the last axes, and an activation."""

    @_either()
    def __init__(
        self,
        normalized_shape,
        scale=True,
        shift=True,
        epsilon=1e-5,
        param_attr=None,
        bias_attr=None,
        act=None,
        dtype="float32",
    ):
        super().__init__("layer_norm", dtype)
        shape = list(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else [normalized_shape]
        size = [math.prod(shape)]
        self._shape, self._epsilon, self._act = shape, epsilon, act
        self.weight = (
            self.create_parameter(size, param_attr, dtype, default_initializer=I.Constant(1.0)) if scale else None
        )
        self.bias = self.create_parameter(size, bias_attr, dtype, is_bias=True) if shift else None

    def forward(self, input):
        weight, bias = (p if p is None else p.reshape(self._shape) for p in (self.weight, self.bias))
        return functions.activate(F.layer_norm(input, self._shape, weight, bias, self._epsilon), self._act)


class GroupNorm(Layer):
    """Normalizes groups of channels, and an activation."""

    @_either()
    def __init__(
        self,
        channels,
        groups,
        epsilon=1e-5,
        param_attr=None,
        bias_attr=None,
        act=None,
        data_layout="NCHW",
        dtype="float32",
    ):
        super().__init__("group_norm", dtype)
        self._groups, self._epsilon, self._act = groups, epsilon, act
        self.weight = self.create_parameter([channels], param_attr, dtype, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([channels], bias_attr, dtype, is_bias=True)

    def forward(self, input):
        y = F.group_norm(input, self._groups, self._epsilon, self.weight, self.bias)
        return functions.activate(y, self._act)


class InstanceNorm(Layer):
    """Normalizes each channel of each sample."""

    @_either()
    def __init__(self, num_channels, epsilon=1e-5, param_attr=None, bias_attr=None, dtype="float32"):
        super().__init__("instance_norm", dtype)
        self._epsilon = epsilon
        self.scale = self.create_parameter([num_channels], param_attr, dtype, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, dtype, is_bias=True)

    def forward(self, input):
        return F.instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon)


class PRelu(Layer):
    """Leaky with a slope that is learned: one for all, or one for each channel."""

    def __init__(self, mode, channel=None, input_shape=None, param_attr=None, dtype="float32"):
        super().__init__("prelu", dtype)
        if mode not in ("all", "channel"):
            raise ValueError(f"(InvalidArgument) PRelu: mode is 'all' or 'channel', received {mode!r}.")
        shape = [1] if mode == "all" else [channel]
        self.weight = self.create_parameter(shape, param_attr, dtype, default_initializer=I.Constant(1.0))

    def forward(self, input):
        return F.prelu(input, self.weight)


class Dropout(Layer):
    """Drops elements while training."""

    def __init__(self, p=0.5, seed=None, dropout_implementation="downgrade_in_infer", is_test=False):
        super().__init__("dropout")
        self._p, self._how, self._is_test = p, dropout_implementation, is_test

    def forward(self, input):
        return functions.dropout(
            input, self._p, is_test=self._is_test or not self.training, dropout_implementation=self._how
        )
