# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




import warnings

from ... import _core as _core, _registry as _registry

class Initializer:
    """Makes the first values of a parameter.

    A subclass of your own defines `forward(var, block=None)`, which fills `var` or returns its values.

    >>> import sampan
    >>> class Steps(sampan.nn.initializer.Initializer):
    ...     def forward(self, var, block=None):
    ...         var.set_value(sampan.arange(var.size, dtype=var.dtype).reshape(var.shape))
    >>> sampan.nn.Linear(2, 2, weight_attr=Steps()).weight.tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    _definition = None

    def __init__(self, *args, **kwargs):
        ...

    def _make(self, args: tuple, kwargs: dict) -> None:
        """`TruncatedNormal(weight, std=0.02)`, which fills nothing and takes the weight for the mean, is met in programs
        for Paddle: it is an initializer there that nobody uses. Here it says so."""
        ...

    def __call__(self, param, block=None):
        """Fills a parameter that exists already."""
        ...

    def forward(self, var, block=None):
        """Fills a parameter."""
        ...

    def _filler(self):
        ...

    @property
    def _core(self):
        ...

    def __getattr__(self, name):
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def __repr__(self):
        ...

def _number(value):
    ...

def set_global_initializer(weight_init, bias_init=None) -> None:
    """From now on fills weights, and biases if `bias_init` is given, wherever nothing else is said about a parameter;
    `set_global_initializer(None)` goes back to each layer's own default."""
    ...

def calculate_gain(nonlinearity: str, param=None) -> float:
    """The factor that keeps the deviation of values through a nonlinearity."""
    ...

class Assign(Initializer):
    """The given values: a tensor, or a list of numbers. The parameter gets their shape, whatever was asked for, as in
    Paddle.
    """

    def __init__(self, value: Any, name: _str | None = None, **kwargs: Any) -> None: ...


class Bilinear(Initializer):
    """The kernel of bilinear interpolation, for a transposed convolution that enlarges each channel by `factor`: kernel
    size `2 * factor - factor % 2`, stride `factor`, one group for each channel.
    """

    def __init__(self, name: _str | None = None, **kwargs: Any) -> None: ...


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: _float = 0.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Dirac(Initializer):
    """A convolution's weight that hands on as many channels as it can, in each group: one in the middle of the kernel
    where input and output channel agree, zero elsewhere.
    """

    def __init__(self, groups: _int = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class KaimingNormal(Initializer):
    """Normal values with the standard deviation `gain / sqrt(fan_in)`.
    `gain` is that of `nonlinearity` (see [`calculate_gain`]); `mode` may be `"fan_out"` to keep the size of
    gradients instead of signals.
    """

    def __init__(self, fan_in: _float | None = None, negative_slope: _float = 0.0, nonlinearity: _str = 'relu', mode: _str = 'fan_in', name: _str | None = None, **kwargs: Any) -> None: ...


class KaimingUniform(Initializer):
    """Uniform values in `±gain * sqrt(3 / fan_in)`.
    `gain` is that of `nonlinearity` (see [`calculate_gain`]); `mode` may be `"fan_out"` to keep the size of
    gradients instead of signals.
    """

    def __init__(self, fan_in: _float | None = None, negative_slope: _float = 0.0, nonlinearity: _str = 'relu', mode: _str = 'fan_in', name: _str | None = None, **kwargs: Any) -> None: ...


class Normal(Initializer):
    """Normal values with a mean and a standard deviation."""

    def __init__(self, mean: _float = 0.0, std: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Orthogonal(Initializer):
    """A random matrix with orthonormal rows (or columns, if there are fewer of them), times `gain`. A weight with more
    than two axes counts as the matrix `[first, all others]`.
    """

    def __init__(self, gain: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class TruncatedNormal(Initializer):
    """Normal values drawn again until they lie between `a` and `b`, which are values and not multiples of `std`."""

    def __init__(self, mean: _float = 0.0, std: _float = 1.0, a: _float = -2.0, b: _float = 2.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Uniform(Initializer):
    """Uniform values in `[low, high)`."""

    def __init__(self, low: _float = -1.0, high: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class XavierNormal(Initializer):
    """Normal values with the standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.
    The fans come from the shape unless they are given: `[in, out]` of a matrix, `[out, in, …]` of a convolution.
    """

    def __init__(self, fan_in: _float | None = None, fan_out: _float | None = None, gain: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class XavierUniform(Initializer):
    """Uniform values in `±gain * sqrt(6 / (fan_in + fan_out))`.
    The fans come from the shape unless they are given: `[in, out]` of a matrix, `[out, in, …]` of a convolution.
    """

    def __init__(self, fan_in: _float | None = None, fan_out: _float | None = None, gain: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


__all__ = ['Assign', 'Bilinear', 'Constant', 'Dirac', 'Initializer', 'KaimingNormal', 'KaimingUniform', 'Normal', 'Orthogonal', 'TruncatedNormal', 'Uniform', 'XavierNormal', 'XavierUniform', 'calculate_gain', 'set_global_initializer', 'warnings']
