# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from math import e as e, inf as inf, nan as nan, pi as pi

from . import _core as _core, _registry as _registry

from ._core import Parameter as Parameter, Tensor as Tensor, dtype as dtype, from_dlpack as from_dlpack, get_default_dtype as get_default_dtype, grad as grad, is_grad_enabled as is_grad_enabled, set_default_dtype as set_default_dtype, set_printoptions as set_printoptions, to_dlpack as to_dlpack

from ._core import to_tensor_py as to_tensor

from . import _tensor as _tensor, _types as _types

from ._creation import as_tensor as as_tensor, asarray as asarray, assign as assign, broadcast_shape as broadcast_shape, broadcast_shapes as broadcast_shapes, check_shape as check_shape, create_parameter as create_parameter, from_numpy as from_numpy, numel as numel, range as range, shape as shape, tolist as tolist, where_ as where_

from ._settings import LazyGuard as LazyGuard, disable_compat as disable_compat, disable_signal_handler as disable_signal_handler, disable_static as disable_static, enable_compat as enable_compat, enable_static as enable_static, get_flags as get_flags, in_dynamic_mode as in_dynamic_mode, set_flags as set_flags

from ._types import Size as Size, finfo as finfo, iinfo as iinfo, is_complex as is_complex, is_floating_point as is_floating_point, is_integer as is_integer, is_tensor as is_tensor

from .framework import Generator as Generator, enable_grad as enable_grad, get_cuda_rng_state as get_cuda_rng_state, get_rng_state as get_rng_state, load as load, no_grad as no_grad, save as save, seed as seed, set_cuda_rng_state as set_cuda_rng_state, set_grad_enabled as set_grad_enabled, set_rng_state as set_rng_state

manual_seed: Any

from . import device as device, linalg as linalg, nn as nn, optimizer as optimizer, version as version

from .device import CPUPlace as CPUPlace, CUDAPinnedPlace as CUDAPinnedPlace, CUDAPlace as CUDAPlace, CustomPlace as CustomPlace, IPUPlace as IPUPlace, XPUPinnedPlace as XPUPinnedPlace, XPUPlace as XPUPlace, device_guard as device_guard, get_cudnn_version as get_cudnn_version, get_default_device as get_default_device, get_device as get_device, is_compiled_with_cinn as is_compiled_with_cinn, is_compiled_with_cuda as is_compiled_with_cuda, is_compiled_with_custom_device as is_compiled_with_custom_device, is_compiled_with_distribute as is_compiled_with_distribute, is_compiled_with_ipu as is_compiled_with_ipu, is_compiled_with_rocm as is_compiled_with_rocm, is_compiled_with_xpu as is_compiled_with_xpu, set_default_device as set_default_device, set_device as set_device

from .nn.attr import ParamAttr as ParamAttr

cuda: Any

from . import _interop as _interop

from . import align as align, amp as amp, autograd as autograd, callbacks as callbacks, compat as compat, distributed as distributed, distribution as distribution, fft as fft, geometric as geometric, hapi as hapi, hub as hub, incubate as incubate, inference as inference

from . import io as io, jit as jit, metric as metric, onnx as onnx

from . import profiler as profiler, quantization as quantization, reader as reader, regularizer as regularizer, signal as signal, static as static, sysconfig as sysconfig, tensor as tensor, text as text, utils as utils, vision as vision

from .amp import autocast as autocast, get_autocast_cpu_dtype as get_autocast_cpu_dtype, get_autocast_dtype as get_autocast_dtype, get_autocast_gpu_dtype as get_autocast_gpu_dtype, is_autocast_enabled as is_autocast_enabled

from .distributed import DataParallel as DataParallel

from .hapi import Model as Model, flops as flops, summary as summary

from .reader import batch as batch

def abs(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The absolute value of each element; of a complex number the length, a real number."""


def abs_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The absolute value of each element; of a complex number the length, a real number."""


def acos(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1]."""


def acos_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1]."""


def acosh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""


def acosh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic cosine; NaN below 1."""


def adaptive_avg_pool1d(x: Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Averages over windows that divide a sequence `[batch, channels, length]` into `output_size` parts; see `adaptive_avg_pool2d`."""


def add(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x + y`, element by element, with broadcasting."""


def add_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x + y`, element by element, with broadcasting."""


def add_n(inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """The sum of several tensors of one shape; one without axes is added to every element."""


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`beta * input + alpha * (x @ y)`."""


def addmm_(input: Tensor, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`beta * input + alpha * (x @ y)`."""


def all(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Are all elements over `axis` (all axes by default) true or nonzero?"""


def allclose(x: Tensor, y: Tensor, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Are all elements close, in the sense of `isclose`? A 0-d bool."""


def amax(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The largest over `axis` (all axes by default); NaN where there is one. Equal maxima share the gradient evenly."""


def amin(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The smallest over `axis` (all axes by default); NaN where there is one. Equal minima share the gradient evenly."""


def angle(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle of each element in the complex plane, in (-π, π]: 0 or π for real numbers."""


def any(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Is any element over `axis` (all axes by default) true or nonzero?"""


def arange(start: _float | _bool = 0, end: _float | _bool | None = None, step: _float | _bool = 1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The numbers from `start` up to, not including, `end` in steps of `step`; with `end` left out, from 0 up to `start`.
    Integers give int64, otherwise the default float, unless a dtype is given.
    """


def argmax(x: Tensor, axis: _int | None = None, keepdim: _bool = False, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """The position of the largest element along `axis`; without one, in all elements in a row. The first of equals, and the
    first NaN before any number.
    """


def argmin(x: Tensor, axis: _int | None = None, keepdim: _bool = False, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """The position of the smallest element along `axis`; without one, in all elements in a row. The first of equals, and
    the first NaN before any number.
    """


def argsort(x: Tensor, axis: _int = -1, descending: _bool = False, stable: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The positions that would sort `x` along `axis`; stable, NaN last (first when descending)."""


def argwhere(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Positions of the elements that are not zero, one row each."""


def as_complex(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Complex numbers from a real tensor whose last axis holds two: the real and the imaginary part. A view where the memory
    allows it.
    """


def as_real(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The real numbers of a complex tensor, with a last axis of two for the real and the imaginary part. A view."""


def as_strided(x: Tensor, shape: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor, offset: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of `x`, counted in row-major order, under any shape and strides (in elements); `offset` is in bytes, as
    in Paddle. A view on `x` where its memory is row-major. Elements may be seen more than once.
    """


def asin(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1]."""


def asin_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1]."""


def asinh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""


def asinh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""


def atan(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose tangent each element is, in (-π/2, π/2)."""


def atan2(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant. Of integers it is a float64, as in
    Paddle.
    """


def atan2_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant. Of integers it is a float64, as in
    Paddle.
    """


def atan_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The angle whose tangent each element is, in (-π/2, π/2)."""


def atanh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""


def atanh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""


def atleast_1d(inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
    """Each tensor with at least one axis."""


def atleast_2d(inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
    """Each tensor with at least two axes; a vector becomes a row."""


def atleast_3d(inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
    """Each tensor with at least three axes; a vector of n elements becomes `[1, n, 1]`, a matrix `[m, n, 1]`."""


def baddbmm(input: Tensor, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`beta * input + alpha * bmm(x, y)`."""


def baddbmm_(input: Tensor, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`beta * input + alpha * bmm(x, y)`."""


def bernoulli(x: Tensor, p: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """1 with the probability in each element of `x` (or with `p`, if given), else 0."""


def bernoulli_(x: Tensor, p: Tensor | _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
    """1 with probability `p`, a number or a tensor that broadcasts to `x`, else 0."""


def bincount(x: Tensor, weights: Tensor | None = None, minlength: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """How often each number occurs in the 1-D `x` of nonnegative integers, or the sum of the weights at its places; at
    least `minlength` numbers.
    """


def binomial(count: Tensor, prob: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Successes in `count` trials of probability `prob`, which broadcast; int64."""


def bitwise_and(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x & y` on each bit of integers, or on truth values."""


def bitwise_and_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x & y` on each bit of integers, or on truth values."""


def bitwise_invert(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every bit of integers, or a truth value, turned over."""


def bitwise_invert_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every bit of integers, or a truth value, turned over."""


def bitwise_left_shift(x: Tensor, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The bits of `x` moved left by `y` places; what leaves the dtype is lost."""


def bitwise_left_shift_(x: Tensor, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The bits of `x` moved left by `y` places; what leaves the dtype is lost."""


def bitwise_not(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every bit of integers, or a truth value, turned over."""


def bitwise_not_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every bit of integers, or a truth value, turned over."""


def bitwise_or(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x | y` on each bit of integers, or on truth values."""


def bitwise_or_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x | y` on each bit of integers, or on truth values."""


def bitwise_right_shift(x: Tensor, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The bits of `x` moved right by `y` places. The places that fall free take the sign, or zeros if not `is_arithmetic`."""


def bitwise_right_shift_(x: Tensor, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The bits of `x` moved right by `y` places. The places that fall free take the sign, or zeros if not `is_arithmetic`."""


def bitwise_xor(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x ^ y` on each bit of integers, or on truth values."""


def bitwise_xor_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x ^ y` on each bit of integers, or on truth values."""


def block_diag(inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Matrices placed along the diagonal of a larger one, zeros elsewhere; vectors count as rows."""


def bmm(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The products of two batches of matrices, `[b, m, k]` and `[b, k, n]`."""


def broadcast_shape(x_shape, y_shape, name=None) -> Any:
    """The shape that tensors of two shapes broadcast to. -1 is an extent that is not known yet."""


def broadcast_tensors(input: Sequence[Tensor], *args: Any, **kwargs: Any) -> _list[Tensor]:
    """The tensors expanded to the shape they broadcast to."""


def broadcast_to(x: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A view that repeats axes of extent 1 (and new leading axes) without copying. -1 keeps an extent."""


def bucketize(x: Tensor, sorted_sequence: Tensor, out_int32: _bool = False, right: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Which interval of the sorted 1-D `sorted_sequence` each element falls into. `right`: an edge belongs to the next one."""


def cartesian_prod(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Every way to take one element of each vector, as rows."""


def cast(x: Tensor, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Tensor:
    """The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
    become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
    wrap around. A nonzero number is true. Of a complex number real types take the real part.
    """


def cast_(x: Tensor, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Tensor:
    """The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
    become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
    wrap around. A nonzero number is true. Of a complex number real types take the real part.
    """


def cat(x: Sequence[Tensor], axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Joins tensors along an axis that they have; their other extents must agree."""


def cauchy_(x: Tensor, loc: _float = 0.0, scale: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """Cauchy numbers of median `loc` and half width `scale`."""


def cdist(x: Tensor, y: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary', *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm distances between every row of `x` (`[…, m, d]`) and every row of `y` (`[…, n, d]`): `[…, m, n]`. Euclidean
    distances between many rows come from a matrix product unless `compute_mode` is
    `"donot_use_mm_for_euclid_dist"`; `"use_mm_for_euclid_dist"` forces it.
    """


def ceil(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The smallest integer not below each element."""


def ceil_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The smallest integer not below each element."""


def cholesky(x: Tensor, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The triangular `L` of `x = L Lᵀ` for symmetric positive definite matrices, or `U` of `x = Uᵀ U` with `upper=True`.
    Only the triangle of that name is read.
    """


def chunk(x: Tensor, chunks: _int, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """Splits an axis into that many equal pieces."""


def clamp(x: Tensor, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
    Rust). The gradient passes where `x` lies between them, ends included.
    """


def clamp_(x: Tensor, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
    Rust). The gradient passes where `x` lies between them, ends included.
    """


def clip(x: Tensor, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
    Rust). The gradient passes where `x` lies between them, ends included.
    """


def clip_(x: Tensor, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
    Rust). The gradient passes where `x` lies between them, ends included.
    """


def clone(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A copy in memory of its own, through which gradients flow. (A Rust `clone()` is another handle on the same tensor.)"""


def column_stack(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Joins side by side; vectors count as columns."""


def combinations(x: Tensor, r: _int = 2, with_replacement: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Every choice of `r` elements of a vector, in order of their positions, as rows."""


def complex(real: Tensor, imag: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Complex numbers from their real and imaginary parts, with broadcasting."""


def concat(x: Sequence[Tensor], axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Joins tensors along an axis that they have; their other extents must agree."""


def concatenate(x: Sequence[Tensor], axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Joins tensors along an axis that they have; their other extents must agree."""


def conj(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The complex conjugate: the imaginary part with the other sign. A real tensor is returned as it is."""


def contiguous(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same values in row-major memory; the tensor itself if it is so already."""


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of sequences `[batch, in, length]` with filters `[out, in / groups, length]`; see `conv2d`."""


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of images `[batch, in, height, width]` with filters `[out, in / groups, height, width]`, as layers
    compute it: filters are not flipped. `padding` is a number, a list, pairs, `"SAME"` (output `⌈input / stride⌉`) or
    `"VALID"`. With `"SAME"` the dilation is 1, whatever was asked for: so it is in Paddle, and models that were trained
    there depend on it. For a dilated convolution give the padding in numbers.
    """


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
    """Convolution of volumes `[batch, in, depth, height, width]`; see `conv2d`."""


def copysign(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The magnitude of `x` with the sign of `y`. Integers stay integers, and those without a sign are what they were."""


def copysign_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The magnitude of `x` with the sign of `y`. Integers stay integers, and those without a sign are what they were."""


def cos(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The cosine of each element, in radians."""


def cos_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The cosine of each element, in radians."""


def cosh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic cosine of each element."""


def cosh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic cosine of each element."""


def count_nonzero(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """How many elements over `axis` (all axes by default) are true or nonzero."""


def crop(x: Tensor, shape: _int | Sequence[_int] | Tensor | None = None, offsets: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The block of the given shape that begins at `offsets`. An extent of -1 reaches to the end."""


def cross(x: Tensor, y: Tensor, axis: _int = 9, *args: Any, **kwargs: Any) -> Tensor:
    """The cross product of vectors of three elements along `axis`; by default along the first axis of that extent."""


def cummax(x: Tensor, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The running maximum along `axis` (without one, of all elements in a row) and where it was met last."""


def cummin(x: Tensor, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The running minimum along `axis` (without one, of all elements in a row) and where it was met last."""


def cumprod(x: Tensor, dim: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The running product along `dim`; without one, of all elements in a row. Its gradient is exact at zeros too."""


def cumprod_(x: Tensor, dim: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The running product along `dim`; without one, of all elements in a row. Its gradient is exact at zeros too."""


def cumsum(x: Tensor, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The running sum along `axis`; without one, of all elements in a row. Integers and truth values add up in int64."""


def cumsum_(x: Tensor, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The running sum along `axis`; without one, of all elements in a row. Integers and truth values add up in int64."""


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: _float | None = None, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The running integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart."""


def deg2rad(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Degrees to radians."""


def diag(x: Tensor, offset: _int = 0, padding_value: _float | _bool = 0, *args: Any, **kwargs: Any) -> Tensor:
    """A vector as the diagonal of a square matrix filled with `padding_value`, or the diagonal of a matrix."""


def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The last axis as the diagonal of two new axes at `dim1` and `dim2` of the result."""


def diagflat(x: Tensor, offset: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of a tensor of any shape as the diagonal of a square matrix."""


def diagonal(x: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """A view on a diagonal of two axes, which becomes the last axis; `offset` moves it to the right."""


def diagonal_scatter(x: Tensor, y: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with a diagonal replaced by `y`, which has the diagonal's shape."""


def diff(x: Tensor, n: _int = 1, axis: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The `n`-th differences of neighbours along `axis`, with `prepend` and `append` joined on before. Truth values give
    where they change.
    """


def digamma(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The derivative of `lgamma`."""


def digamma_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The derivative of `lgamma`."""


def dist(x: Tensor, y: Tensor, p: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm of `x - y`, which broadcast together."""


def div(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def div_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def divide(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def divide_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def dot(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of the products of two vectors; of each pair of rows where both have two axes."""


def dsplit(x: Tensor, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """`tensor_split` along the third axis."""


def dstack(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Joins along the third axis; tensors of fewer axes get them as in `atleast_3d`."""


def eigvalsh(x: Tensor, uplo: _str = 'L', *args: Any, **kwargs: Any) -> Tensor:
    """The eigenvalues of symmetric matrices, ascending. One triangle is read."""


def einsum(equation: _str, operands: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """The sum of products that `equation` writes in index notation, such as `"bij,bjk->bik"`. Letters that the output lacks
    are summed over, a letter repeated in one operand takes its diagonal, `...` stands for any number of broadcast axes,
    and without `->` the output has `...` and then every letter that occurs once, in alphabetical order.
    """


def empty(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor whose values are unspecified until they are written."""


def empty_like(x: Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Unspecified values in the shape (and, unless one is given, the dtype) of `x`."""


def eq(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x == y`, element by element, with broadcasting?"""


def eq_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x == y`, element by element, with broadcasting?"""


def equal(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x == y`, element by element, with broadcasting?"""


def equal_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x == y`, element by element, with broadcasting?"""


def equal_all(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Have `x` and `y` the same shape and the same elements? A 0-d bool."""


def erf(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The error function of each element."""


def erf_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The error function of each element."""


def erfinv(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the error function; NaN outside [-1, 1]."""


def erfinv_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of the error function; NaN outside [-1, 1]."""


def exp(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The exponential of each element."""


def exp_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The exponential of each element."""


def expand(x: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A view that repeats axes of extent 1 (and new leading axes) without copying. -1 keeps an extent."""


def expand_as(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` expanded to the shape of `y`."""


def expm1(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`exp(x) - 1`, exact near zero."""


def expm1_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`exp(x) - 1`, exact near zero."""


def exponential_(x: Tensor, lam: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """Exponential numbers of rate `lam`."""


def eye(num_rows: _int, num_columns: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """A matrix with ones on the diagonal; square unless `num_columns` is given."""


def fill_(x: Tensor, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Sets every element to one number."""


def fill_diagonal(x: Tensor, value: _float | _bool, offset: _int = 0, wrap: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with its diagonal (that of all axes: each step is one along every axis) set to one number. With `wrap` a tall
    matrix gets the diagonal again below each square block.
    """


def fill_diagonal_(x: Tensor, value: _float | _bool, offset: _int = 0, wrap: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with its diagonal (that of all axes: each step is one along every axis) set to one number. With `wrap` a tall
    matrix gets the diagonal again below each square block.
    """


def fill_diagonal_tensor(x: Tensor, y: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with a diagonal replaced by `y`; the in-place form is the usual one."""


def fill_diagonal_tensor_(x: Tensor, y: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with a diagonal replaced by `y`; the in-place form is the usual one."""


def flatten(x: Tensor, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""


def flatten_(x: Tensor, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""


def flip(x: Tensor, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements in reverse order along the named axes."""


def floor(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The largest integer not above each element."""


def floor_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The largest integer not above each element."""


def floor_divide(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The quotient rounded down, `floor(x / y)`; keeps integers. It has no gradient."""


def floor_divide_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The quotient rounded down, `floor(x / y)`; keeps integers. It has no gradient."""


def floor_mod(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def floor_mod_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def fmax(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The larger of `x` and `y`, element by element; the other one where one is NaN."""


def fmax_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The larger of `x` and `y`, element by element; the other one where one is NaN."""


def fmin(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The smaller of `x` and `y`, element by element; the other one where one is NaN."""


def fmin_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The smaller of `x` and `y`, element by element; the other one where one is NaN."""


def frac(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The fraction of each element, `x - trunc(x)`."""


def frac_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The fraction of each element, `x - trunc(x)`."""


def frexp(x: Tensor, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The mantissa, in ±[½, 1), and the exponent of each element: `x = mantissa * 2^exponent`."""


def full(shape: _int | Sequence[_int] | Tensor, fill_value: Tensor | _float, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """One number in every element. Without a dtype, truth values give `bool`, numbers the default float and complex numbers
    the complex type of its width.
    """


def full_like(x: Tensor, fill_value: Tensor | _float, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """One number in the shape (and, unless one is given, the dtype) of `x`."""


def gammainc(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The regularised lower incomplete gamma function: the share of Γ(`x`) below `y`. It has a gradient along `y`."""


def gammainc_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The regularised lower incomplete gamma function: the share of Γ(`x`) below `y`. It has a gradient along `y`."""


def gammaincc(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The regularised upper incomplete gamma function, `1 - gammainc(x, y)`. It has a gradient along `y`."""


def gammaincc_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The regularised upper incomplete gamma function, `1 - gammainc(x, y)`. It has a gradient along `y`."""


def gammaln(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


def gammaln_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


def gather(x: Tensor, index: Tensor, axis: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Rows of `x` along `axis` (the first by default) at `index`, which is 1-D; a 0-d index takes the axis away."""


def gather_nd(x: Tensor, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Slices of `x` at index tuples: the last axis of `index` runs over the first axes of `x`."""


def gaussian(shape: _int | Sequence[_int] | Tensor, mean: _float = 0.0, std: _float = 1.0, seed: _int = 0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers of a mean and standard deviation. A seed other than 0 gives the same numbers every time."""


def gcd(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The greatest common divisor of integers, never negative."""


def gcd_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The greatest common divisor of integers, never negative."""


def ge(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x >= y`, element by element, with broadcasting?"""


def ge_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x >= y`, element by element, with broadcasting?"""


def geometric_(x: Tensor, probs: _float, *args: Any, **kwargs: Any) -> Tensor:
    """`ln u / ln(1 - probs)` for uniform u, the continuous form of the geometric distribution that Paddle gives."""


def ger(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every product of an element of `x` with one of `y`, both flattened."""


def greater(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def greater_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def greater_equal(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x >= y`, element by element, with broadcasting?"""


def greater_equal_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x >= y`, element by element, with broadcasting?"""


def greater_than(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def greater_than_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def group_norm(x: Tensor, num_groups: _int, epsilon: _float = 1e-5, weight: Tensor | None = None, bias: Tensor | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
    """Normalises groups of channels of each sample to mean 0 and deviation 1, then scales and shifts by channel."""


def gt(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def gt_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x > y`, element by element, with broadcasting?"""


def heaviside(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The step function: 0 where `x` is negative or NaN, 1 where it is positive, `y` where it is zero."""


def histogram(input: Tensor, bins: _int = 100, min: _float = 0.0, max: _float = 0.0, weight: Tensor | None = None, density: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """How many elements fall into each of `bins` equal intervals from `min` to `max` (those of the data where both are
    equal), or the sum of their weights; `density` divides by the total and the width. Others are left out.
    """


def histogram_bin_edges(input: Tensor, bins: _int = 100, min: _float = 0.0, max: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
    """The `bins + 1` ends of the intervals of a histogram from `min` to `max`, or over the data where both are equal."""


def histogramdd(x: Tensor, bins: Any = 10, ranges: _float | Sequence[_float] | None = None, density: _bool = False, weights: Tensor | None = None, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """A histogram of points, one in each row of `x`: how many lie in each cell of a grid, or the sum of their weights, and
    then the edges along each axis. `bins` is a number, one for each axis, or the edges themselves; `ranges` holds the ends
    of each axis one after the other.
    """


def hsplit(x: Tensor, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """`tensor_split` along the second axis, or along the only one."""


def hstack(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Joins side by side: along the second axis, vectors along their only one."""


def hypot(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The length of the vector (`x`, `y`), without overflow on the way."""


def hypot_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The length of the vector (`x`, `y`), without overflow on the way."""


def i0(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""


def i0_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""


def i0e(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`i0(x)` times `exp(-|x|)`, which does not overflow."""


def i0e_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`i0(x)` times `exp(-|x|)`, which does not overflow."""


def i1(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""


def i1_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""


def i1e(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`i1(x)` times `exp(-|x|)`, which does not overflow."""


def i1e_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`i1(x)` times `exp(-|x|)`, which does not overflow."""


def imag(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The imaginary part of each element, as a view."""


def increment(x: Tensor, value: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """Adds `value` to the one element of `x`, in place, and gives `x` back. Use it to count steps."""


def index_add(x: Tensor, index: Tensor, axis: _int, value: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `alpha` times the rows of `value` added at `index` along `axis`."""


def index_add_(x: Tensor, index: Tensor, axis: _int, value: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `alpha` times the rows of `value` added at `index` along `axis`."""


def index_fill(x: Tensor, index: Tensor, axis: _int, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with a number (or 0-d tensor) written at the rows `index` along `axis`."""


def index_fill_(x: Tensor, index: Tensor, axis: _int, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with a number (or 0-d tensor) written at the rows `index` along `axis`."""


def index_put(x: Tensor, indices: Sequence[Tensor], value: Tensor | _float, accumulate: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `value` written at `x[indices]`, where `indices` are integer tensors or masks for the first axes; with
    `accumulate` it is added, and each of several values for one place counts.
    """


def index_put_(x: Tensor, indices: Sequence[Tensor], value: Tensor | _float, accumulate: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `value` written at `x[indices]`, where `indices` are integer tensors or masks for the first axes; with
    `accumulate` it is added, and each of several values for one place counts.
    """


def index_sample(x: Tensor, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """For each row of `x`, its elements at the columns in the same row of `index`."""


def index_select(x: Tensor, index: Tensor, axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Rows of `x` along `axis`, one for each entry of the 1-D `index`."""


def inner(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of products over the last axes: `out[…, *] = Σ x[…, k] y[*, k]`."""


def inverse(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The inverses of square matrices."""


def is_empty(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Has `x` no elements? A 0-d bool."""


def isclose(x: Tensor, y: Tensor, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Is `|x - y| <= atol + rtol * |y|`, element by element? Equal infinities are close; NaN only with `equal_nan`."""


def isfinite(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element neither infinite nor NaN?"""


def isin(x: Tensor, test_x: Tensor, assume_unique: _bool = False, invert: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element of `x` among the elements of `test_x`? With `invert`, is it not? (`assume_unique` changes nothing:
    the search is over sorted elements anyway.)
    """


def isinf(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element infinite?"""


def isnan(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element not a number?"""


def isneginf(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element negative infinity?"""


def isposinf(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element positive infinity?"""


def isreal(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is each element a real number? A complex one is where its imaginary part is zero."""


def kron(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The Kronecker product: every element of `x` times a copy of `y`, axis by axis."""


def kthvalue(x: Tensor, k: _int, axis: _int | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The `k`-th smallest element along `axis` (the last by default; `k` counts from 1) and its position."""


def layer_norm(x: Tensor, normalized_shape: _int | Sequence[_int] | Tensor, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: _float = 1e-5, *args: Any, **kwargs: Any) -> Tensor:
    """Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales by `weight` and
    shifts by `bias`.
    """


def lcm(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The least common multiple of integers, never negative."""


def lcm_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The least common multiple of integers, never negative."""


def ldexp(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * 2^y`."""


def ldexp_(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * 2^y`."""


def le(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x <= y`, element by element, with broadcasting?"""


def le_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x <= y`, element by element, with broadcasting?"""


def lerp(x: Tensor, y: Tensor, weight: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The point between `x` and `y` at `weight`: `x + weight * (y - x)`."""


def lerp_(x: Tensor, y: Tensor, weight: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The point between `x` and `y` at `weight`: `x + weight * (y - x)`."""


def less(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def less_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def less_equal(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x <= y`, element by element, with broadcasting?"""


def less_equal_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x <= y`, element by element, with broadcasting?"""


def less_than(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def less_than_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def lgamma(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


def lgamma_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


def linspace(start: Tensor | _float, stop: Tensor | _float, num: _int, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`num` numbers from `start` to `stop`, both included, evenly spaced."""


def log(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The natural logarithm of each element."""


def log10(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm to base 10 of each element."""


def log10_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm to base 10 of each element."""


def log1p(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`log(1 + x)`, exact near zero."""


def log1p_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`log(1 + x)`, exact near zero."""


def log2(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm to base 2 of each element."""


def log2_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm to base 2 of each element."""


def log_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The natural logarithm of each element."""


def log_normal(mean: Tensor | _float = 1.0, std: Tensor | _float = 2.0, shape: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The exponential of normal numbers; `mean` and `std` are those of the logarithm."""


def log_normal_(x: Tensor, mean: _float = 1.0, std: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
    """The exponential of normal numbers; `mean` and `std` are those of the logarithm."""


def logaddexp(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`log(exp(x) + exp(y))`, without overflow."""


def logcumsumexp(x: Tensor, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The running `ln Σ eˣ` along `axis`; without one, of all elements in a row."""


def logical_and(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does both `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logical_and_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does both `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logical_not(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Does `x` not hold? Numbers hold where they are not zero."""


def logical_not_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Does `x` not hold? Numbers hold where they are not zero."""


def logical_or(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does at least one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logical_or_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does at least one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logical_xor(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does exactly one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logical_xor_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Does exactly one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""


def logit(x: Tensor, eps: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `sigmoid`, `log(x / (1 - x))`, after holding `x` inside `[eps, 1 - eps]` if `eps` is given."""


def logit_(x: Tensor, eps: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `sigmoid`, `log(x / (1 - x))`, after holding `x` inside `[eps, 1 - eps]` if `eps` is given."""


def logspace(start: Tensor | _float, stop: Tensor | _float, num: _int, base: Tensor | _float = 10.0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`num` powers of `base`, their exponents evenly spaced from `start` to `stop`, both included."""


def logsumexp(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """`ln Σ eˣ` over `axis` (all axes by default), without overflow."""


def lt(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def lt_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x < y`, element by element, with broadcasting?"""


def masked_fill(x: Tensor, mask: Tensor, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`value` where `mask` is true, `x` elsewhere. The value is a number or a tensor that broadcasts, usually 0-d."""


def masked_fill_(x: Tensor, mask: Tensor, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`value` where `mask` is true, `x` elsewhere. The value is a number or a tensor that broadcasts, usually 0-d."""


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with successive elements of `value` written where `mask` is true."""


def masked_scatter_(x: Tensor, mask: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with successive elements of `value` written where `mask` is true."""


def masked_select(x: Tensor, mask: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of `x` where `mask` is true, in order, both broadcast together."""


def matmul(x: Tensor, y: Tensor, transpose_x: _bool = False, transpose_y: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The matrix product, with vectors and batches as in NumPy; either operand may be taken transposed."""


def matrix_transpose(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The last two axes exchanged."""


def max(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The largest over `axis` (all axes by default); NaN where there is one. Equal maxima share the gradient evenly."""


def maximum(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The larger of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""


def maximum_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The larger of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""


def mean(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The mean over `axis` (all axes by default), NaN over no elements. Integers and truth values give the default float."""


def median(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, mode: _str = 'avg', *args: Any, **kwargs: Any) -> Any:
    """The middle element over `axis` (all axes by default), NaN where there is one. Between two middle elements: their mean,
    or with `mode = "min"` the smaller, and then over one axis also its position. The mean of half floats is a float32.
    """


def meshgrid(inputs: Sequence[Tensor], indexing: _str = 'ij', *args: Any, **kwargs: Any) -> _list[Tensor]:
    """Coordinates of a grid: each vector repeated along the axes of the others. `indexing` is `ij` (the first vector runs
    down the rows) or `xy` (along the columns).
    """


def min(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The smallest over `axis` (all axes by default); NaN where there is one. Equal minima share the gradient evenly."""


def minimum(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The smaller of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""


def minimum_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """The smaller of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""


def mm(input: Tensor, mat2: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The product of two matrices; more axes are batches, as in `matmul`."""


def mod(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def mod_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def mode(x: Tensor, axis: _int = -1, keepdim: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The most frequent element along `axis` (the smallest of several) and its last position."""


def moveaxis(x: Tensor, source: _int | Sequence[_int] | Tensor, destination: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Axes moved to other places; the others keep their order."""


def movedim(x: Tensor, source: _int | Sequence[_int] | Tensor, destination: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Axes moved to other places; the others keep their order."""


def msort(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements in order along the first axis."""


def mul(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x * y`, element by element, with broadcasting."""


def mul_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x * y`, element by element, with broadcasting."""


def multigammaln(x: Tensor, p: _int, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""


def multigammaln_(x: Tensor, p: _int, *args: Any, **kwargs: Any) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""


def multinomial(x: Tensor, num_samples: _int = 1, replacement: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """Positions drawn from each row with the weights it holds, which need not add up to 1."""


def multiplex(inputs: Sequence[Tensor], index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Rows picked from several tensors: row `i` of the result is row `i` of `inputs[index[i]]`."""


def multiply(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x * y`, element by element, with broadcasting."""


def multiply_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x * y`, element by element, with broadcasting."""


def mv(x: Tensor, vec: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A matrix times a vector."""


def nan_to_num(x: Tensor, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with NaN replaced by `nan` and infinities by `posinf` and `neginf`, or else by the dtype's largest and smallest
    number.
    """


def nan_to_num_(x: Tensor, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with NaN replaced by `nan` and infinities by `posinf` and `neginf`, or else by the dtype's largest and smallest
    number.
    """


def nanmean(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The mean over `axis` (all axes by default) of what is not NaN; NaN where there is nothing else."""


def nanmedian(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, mode: _str = 'avg', *args: Any, **kwargs: Any) -> Any:
    """`median` of what is not NaN; NaN where there is nothing else."""


def nanquantile(x: Tensor, q: Any, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, interpolation: _str = 'linear', *args: Any, **kwargs: Any) -> Tensor:
    """`quantile` of what is not NaN; NaN where there is nothing else."""


def nansum(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, dtype: DTypeLike | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The sum over `axis` (all axes by default) of what is not NaN."""


def narrow(x: Tensor, axis: _int, start: Any, length: Any, *args: Any, **kwargs: Any) -> Tensor:
    """A view on `length` elements of one axis from `start`, which may count from the end."""


def ne(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x != y`, element by element, with broadcasting?"""


def ne_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x != y`, element by element, with broadcasting?"""


def neg(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`-x`."""


def neg_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`-x`."""


def negative(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`-x`."""


def negative_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`-x`."""


def nextafter(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The next number after `x` towards `y` that the dtype can hold."""


def nonzero(x: Tensor, as_tuple: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """Positions of the elements that are not zero: one row each, or with `as_tuple` one tensor for each axis."""


def norm(x: Tensor, p: Any = None, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The norm over `axis`: of vectors over none, one, or more than two axes, of matrices over two. `p` is a number, `fro`
    (the default: the root of the sum of squares) or `nuc`.
    """


def normal(mean: Tensor | _float = 0.0, std: Tensor | _float = 1.0, shape: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers whose mean and standard deviation are numbers or tensors, which broadcast; with two numbers the shape
    must be given. Gradients flow to mean and standard deviation.
    """


def normal_(x: Tensor, mean: _float = 0.0, std: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers of a mean and standard deviation."""


def not_equal(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x != y`, element by element, with broadcasting?"""


def not_equal_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """Is `x != y`, element by element, with broadcasting?"""


def ones(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Ones of a shape, in the default float unless a dtype is given."""


def ones_like(x: Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Ones in the shape (and, unless one is given, the dtype) of `x`."""


def outer(x: Tensor, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Every product of an element of `x` with one of `y`, both flattened."""


def pdist(x: Tensor, p: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
    """The `p`-norm distances between all pairs of different rows of `x`: rows 0 and 1, 0 and 2, … as one vector."""


def permute(x: Tensor, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The axes in another order."""


def permute_(x: Tensor, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The axes in another order."""


def poisson(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Poisson numbers whose rates are the elements of `x`."""


def polar(abs: Tensor, angle: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Complex numbers from their lengths and their angles in radians, with broadcasting."""


def polygamma(x: Tensor, n: _int, *args: Any, **kwargs: Any) -> Tensor:
    """The `n`-th derivative of `digamma`."""


def polygamma_(x: Tensor, n: _int, *args: Any, **kwargs: Any) -> Tensor:
    """The `n`-th derivative of `digamma`."""


def positive(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` itself; bool is refused."""


def pow(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`floor(x / y)` from the exact remainder, so that rounding in `x / y` cannot lift it to the next integer.
    `x` to the power `y`, element by element, with broadcasting. Integers stay integers under an integer exponent: a
    negative number as the exponent is refused, negative ones in a tensor give the fraction cut to an integer (zero, or a
    power of ±1), as in PaddlePaddle.
    """


def pow_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`floor(x / y)` from the exact remainder, so that rounding in `x / y` cannot lift it to the next integer.
    `x` to the power `y`, element by element, with broadcasting. Integers stay integers under an integer exponent: a
    negative number as the exponent is refused, negative ones in a tensor give the fraction cut to an integer (zero, or a
    power of ±1), as in PaddlePaddle.
    """


def prod(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The product over `axis` (all axes by default); its gradient is exact at zeros too. bool multiplies in int64."""


def put_along_axis(arr: Tensor, indices: Tensor, values: Tensor | _float, axis: _int, reduce: _str = 'assign', include_self: _bool = True, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`arr` with `values` written at `indices` along `axis`: `out[i][indices[i][j]] = values[i][j]` for `axis` 1. `reduce`
    is assign, add, mul, mean, amin or amax; without `include_self` the old element takes no part where a value lands.
    With `broadcast` the indices are matched to `arr` and the values to the indices; without, indices may be shorter.
    """


def put_along_axis_(arr: Tensor, indices: Tensor, values: Tensor | _float, axis: _int, reduce: _str = 'assign', include_self: _bool = True, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`arr` with `values` written at `indices` along `axis`: `out[i][indices[i][j]] = values[i][j]` for `axis` 1. `reduce`
    is assign, add, mul, mean, amin or amax; without `include_self` the old element takes no part where a value lands.
    With `broadcast` the indices are matched to `arr` and the values to the indices; without, indices may be shorter.
    """


def quantile(x: Tensor, q: Any, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, interpolation: _str = 'linear', *args: Any, **kwargs: Any) -> Tensor:
    """The value below which the share `q` of the elements over `axis` (all axes by default) lies. Several `q` give results
    along a new first axis. Between two elements `interpolation` decides: linear, lower, higher, midpoint, nearest. NaN
    where there is one.
    """


def rad2deg(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Radians to degrees."""


def rand(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Uniform numbers in [0, 1)."""


def rand_like(x: Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Uniform numbers in [0, 1) in the shape (and, unless one is given, the dtype) of `x`."""


def randint(low: _int = 0, high: _int | None = None, shape: _int | Sequence[_int] | Tensor = [1], dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Whole numbers in [low, high); with `high` left out, in [0, low)."""


def randint_like(x: Tensor, low: _int = 0, high: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Whole numbers in [low, high) in the shape (and, unless one is given, the dtype) of `x`."""


def randn(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers of mean 0 and standard deviation 1."""


def randn_like(x: Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Standard normal numbers in the shape (and, unless one is given, the dtype) of `x`."""


def random_(x: Tensor, from_: _int = 0, to: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Whole numbers in [from_, to); without `to` as large as the dtype holds exactly."""


def randperm(n: _int, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """The numbers from 0 to n - 1 in random order."""


def rank(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The number of axes of `x`, as a 0-d tensor."""


def ravel(x: Tensor, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""


def ravel_(x: Tensor, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""


def real(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The real part of each element, as a view; a real tensor as it is."""


def reciprocal(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`1 / x`."""


def reciprocal_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`1 / x`."""


def reduce_as(x: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of `x` over the axes along which it is broadcast from `target`, in the shape of `target`."""


def remainder(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def remainder_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""


def renorm(x: Tensor, p: _float, axis: _int, max_norm: _float, *args: Any, **kwargs: Any) -> Tensor:
    """The slices along `axis` scaled down to a `p`-norm of `max_norm` where theirs is larger."""


def renorm_(x: Tensor, p: _float, axis: _int, max_norm: _float, *args: Any, **kwargs: Any) -> Tensor:
    """The slices along `axis` scaled down to a `p`-norm of `max_norm` where theirs is larger."""


def repeat_interleave(x: Tensor, repeats: Any, axis: _int | None = None, output_size: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Each element `repeats` times in a row along an axis, or each its own number of times; without an axis along the
    flattened tensor.
    """


def reshape(x: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent, but in
    the shape of an empty tensor it is a zero, and -1 beside it takes up the input's other extents.
    """


def reshape_(x: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent, but in
    the shape of an empty tensor it is a zero, and -1 beside it takes up the input's other extents.
    """


def reverse(x: Tensor, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements in reverse order along the named axes."""


def roll(x: Tensor, shifts: _int | Sequence[_int] | Tensor, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The elements moved along the axes by `shifts`; those that leave at one end come back at the other. Without an axis
    the flattened tensor is rolled.
    """


def rot90(x: Tensor, k: _int = 1, axes: _int | Sequence[_int] | Tensor = [0, 1], *args: Any, **kwargs: Any) -> Tensor:
    """A quarter turn in the plane of two axes, `k` times, from the first axis towards the second."""


def round(x: Tensor, decimals: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The nearest integer, ties to even, or the nearest number with `decimals` digits after the point."""


def round_(x: Tensor, decimals: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The nearest integer, ties to even, or the nearest number with `decimals` digits after the point."""


def row_stack(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Joins on top of each other; vectors count as rows."""


def rsqrt(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`1 / sqrt(x)`."""


def rsqrt_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`1 / sqrt(x)`."""


def scale(x: Tensor, scale: Tensor | _float = 1.0, bias: _float = 0.0, bias_after_scale: _bool = True, act: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`scale * x + bias`, or `scale * (x + bias)` if not `bias_after_scale`; then the activation named by `act`, if any.
    Integers keep their dtype: they are exact where `scale` and `bias` are whole numbers, and cut towards zero else.
    """


def scale_(x: Tensor, scale: Tensor | _float = 1.0, bias: _float = 0.0, bias_after_scale: _bool = True, act: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`scale * x + bias`, or `scale * (x + bias)` if not `bias_after_scale`; then the activation named by `act`, if any.
    Integers keep their dtype: they are exact where `scale` and `bias` are whole numbers, and cut towards zero else.
    """


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with rows of `updates` written at the rows `index`. Without `overwrite` those rows are cleared first and rows
    that meet are added.
    """


def scatter_(x: Tensor, index: Tensor, updates: Tensor, overwrite: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with rows of `updates` written at the rows `index`. Without `overwrite` those rows are cleared first and rows
    that meet are added.
    """


def scatter_add(x: Tensor, axis: _int, index: Tensor, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `src` added at `index` along `axis`, as `put_along_axis` with "add" and without broadcasting."""


def scatter_add_(x: Tensor, axis: _int, index: Tensor, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `src` added at `index` along `axis`, as `put_along_axis` with "add" and without broadcasting."""


def scatter_nd(index: Tensor, updates: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Zeros of `shape`, to which `updates` are added at index tuples (the last axis of `index`)."""


def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `updates` added at index tuples (the last axis of `index`)."""


def scatter_reduce(x: Tensor, axis: _int, index: Tensor, src: Tensor, reduce: _str, include_self: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`x` combined with `src` at `index` along `axis`: `reduce` is sum, prod, mean, amin or amax. Without `include_self`
    the old element takes no part where a value lands.
    """


def scatter_reduce_(x: Tensor, axis: _int, index: Tensor, src: Tensor, reduce: _str, include_self: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """`x` combined with `src` at `index` along `axis`: `reduce` is sum, prod, mean, amin or amax. Without `include_self`
    the old element takes no part where a value lands.
    """


def searchsorted(sorted_sequence: Tensor, values: Tensor, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Where each of `values` would go in `sorted_sequence`, whose last axis is sorted: 1-D for all values, or with one row
    for each row of them. `right` (or `side = "right"`): behind equal elements. `sorter` are the positions that sort it.
    """


def select_scatter(x: Tensor, values: Tensor, axis: _int, index: _int, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with one position of an axis replaced by `values`."""


def sgn(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""


def sgn_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""


def shard_index(input: Tensor, index_num: _int, nshards: _int, shard_id: _int, ignore_value: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """Ids of a table cut into `nshards` equal parts, seen from part `shard_id`: the position inside it, or `ignore_value`
    for ids of other parts.
    """


def sigmoid(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logistic function `1 / (1 + exp(-x))`."""


def sigmoid_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The logistic function `1 / (1 + exp(-x))`."""


def sign(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""


def sign_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""


def signbit(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Is the sign of each element negative? True for -0.0 too."""


def sin(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sine of each element, in radians."""


def sin_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The sine of each element, in radians."""


def sinc(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`sin(πx) / (πx)`, and 1 at zero."""


def sinc_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`sin(πx) / (πx)`, and 1 at zero."""


def sinh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic sine of each element."""


def sinh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic sine of each element."""


def slice(input: Tensor, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A view on `starts[i]:ends[i]` of each named axis. Negative positions count from the end, those beyond it are cut."""


def slice_scatter(x: Tensor, value: Tensor, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` with `starts[i]:ends[i]:strides[i]` of each named axis replaced by `value`, which is broadcast to the slice."""


def softmax(x: Tensor, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""


def softmax_(x: Tensor, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""


def sort(x: Tensor, axis: _int = -1, descending: _bool = False, stable: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The elements in order along `axis`; stable, NaN last (first when descending)."""


def split(x: Tensor, num_or_sections: Any, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """Splits an axis into that many equal pieces, or into pieces of the given sizes, one of which may be -1 (what is left)."""


def sqrt(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The square root of each element; NaN for negative real ones."""


def sqrt_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The square root of each element; NaN for negative real ones."""


def square(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * x`; keeps integers."""


def square_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x * x`; keeps integers."""


def squeeze(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Drops axes of extent 1: all of them, or those named (others among the named stay)."""


def squeeze_(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Drops axes of extent 1: all of them, or those named (others among the named stay)."""


def stack(x: Sequence[Tensor], axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Joins tensors of one shape along a new axis."""


def standard_gamma(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Gamma numbers whose shapes are the elements of `x`, of scale 1."""


def standard_normal(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers of mean 0 and standard deviation 1."""


def stanh(x: Tensor, scale_a: _float = 0.67, scale_b: _float = 1.7159, *args: Any, **kwargs: Any) -> Tensor:
    """`scale_b * tanh(scale_a * x)`."""


def std(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, unbiased: _bool = True, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The standard deviation over `axis` (all axes by default): the root of `var`."""


def strided_slice(x: Tensor, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A view on `starts[i]:ends[i]:strides[i]` of each named axis; strides may be negative."""


def sub(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x - y`, element by element, with broadcasting."""


def sub_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x - y`, element by element, with broadcasting."""


def subtract(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x - y`, element by element, with broadcasting."""


def subtract_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x - y`, element by element, with broadcasting."""


def sum(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, dtype: DTypeLike | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The sum over `axis` (all axes by default). bool and int32 add up in int64."""


def swapaxes(x: Tensor, axis0: _int, axis1: _int, *args: Any, **kwargs: Any) -> Tensor:
    """Two axes exchanged."""


def swapdims(x: Tensor, axis0: _int, axis1: _int, *args: Any, **kwargs: Any) -> Tensor:
    """Two axes exchanged."""


def t(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The transpose of a tensor of at most two axes."""


def t_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The transpose of a tensor of at most two axes."""


def take(x: Tensor, index: Tensor, mode: _str = 'raise', *args: Any, **kwargs: Any) -> Tensor:
    """Elements of `x` as if it were flat, in the shape of `index`. An index outside is an error with `mode` "raise"; it is
    taken modulo the size with "wrap" and moved to the nearest end with "clip".
    """


def take_along_axis(arr: Tensor, indices: Tensor, axis: _int, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of `arr` at `indices` along `axis`: `out[i][j] = arr[i][indices[i][j]]` for `axis` 1. With `broadcast`
    the other axes of both are matched by broadcasting; without, `indices` may be shorter there.
    """


def take_along_dim(arr: Tensor, indices: Tensor, axis: _int, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of `arr` at `indices` along `axis`: `out[i][j] = arr[i][indices[i][j]]` for `axis` 1. With `broadcast`
    the other axes of both are matched by broadcasting; without, `indices` may be shorter there.
    """


def tan(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tangent of each element, in radians."""


def tan_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tangent of each element, in radians."""


def tanh(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic tangent of each element."""


def tanh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The hyperbolic tangent of each element."""


def tensor_split(x: Tensor, num_or_indices: Any, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """Splits an axis into that many pieces, the first ones longer by one where it does not divide, or before each of the
    given positions.
    """


def tensordot(x: Tensor, y: Tensor, axes: Any = 2, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of products over chosen axes: the last `n` of `x` with the first `n` of `y` for a number, the same axes of both
    for a list, or those of a pair of lists. A shorter list is continued by the longer one; axes of 1 broadcast.
    """


def tile(x: Tensor, repeat_times: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor repeated `repeat_times[i]` times along each axis; the shorter of the two lists gets leading ones."""


def top_p_sampling(x: Tensor, ps: Tensor, threshold: Tensor | None = None, topp_seed: Tensor | None = None, seed: _int = -1, k: _int = 0, mode: _str = 'truncated', return_top: _bool = False, *args: Any, **kwargs: Any) -> Any:
    """One token for each row of probabilities `x`, drawn from its most probable ones, whose sum reaches `ps`: the
    probability and the token, both `[rows, 1]`; with `return_top` also the `k` largest probabilities and their tokens.
    """


def topk(x: Tensor, k: _int, axis: _int | None = None, largest: _bool = True, sorted: _bool = True, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) elements along `axis` (the last by default), best first, and their positions. Of equal
    elements the first comes first.
    """


def trace(x: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of a diagonal."""


def transpose(x: Tensor, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The axes in another order."""


def transpose_(x: Tensor, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The axes in another order."""


def trapezoid(y: Tensor, x: Tensor | None = None, dx: _float | None = None, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart."""


def tril(x: Tensor, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right."""


def tril_(x: Tensor, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right."""


def tril_indices(row: _int, col: _int | None = None, offset: _int = 0, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """Rows and columns of the elements of a lower triangle, as a tensor of two rows."""


def triu(x: Tensor, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right."""


def triu_(x: Tensor, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right."""


def triu_indices(row: _int, col: _int | None = None, offset: _int = 0, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
    """Rows and columns of the elements of an upper triangle, as a tensor of two rows."""


def true_divide(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def true_divide_(x: Tensor, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
    """`x / y`, element by element, with broadcasting. Integers give the default float."""


def trunc(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Each element without its fraction: rounded towards zero."""


def trunc_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Each element without its fraction: rounded towards zero."""


def truncated_normal(shape: _int | Sequence[_int] | Tensor, mean: _float = 0.0, std: _float = 1.0, a: _float = -2.0, b: _float = 2.0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers kept between `a` and `b`, as initialisers want them."""


def unbind(x: Tensor, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """Views at every position of an axis, which goes away."""


def unflatten(x: Tensor, axis: _int, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """One axis taken apart into several, whose product is its extent; one of them may be -1."""


def unfold(x: Tensor, axis: _int, size: _int, step: _int, *args: Any, **kwargs: Any) -> Tensor:
    """A view on all windows of `size` elements of an axis, `step` apart; the window becomes the last axis."""


def uniform(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, min: _float = 0.0, max: _float = 1.0, seed: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Uniform numbers in [min, max). A seed other than 0 gives the same numbers every time."""


def uniform_(x: Tensor, min: _float = 0.0, max: _float = 1.0, seed: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Uniform numbers in [min, max). A seed other than 0 gives the same numbers every time."""


def unique(x: Tensor, return_index: _bool = False, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, dtype: DTypeLike = 'int64', sorted: _bool = True, *args: Any, **kwargs: Any) -> Any:
    """The different elements (or slices along `axis`) in ascending order; on demand the position of the first of each, the
    place of every element among them, and how often each occurs. NaNs are equal here.
    """


def unique_consecutive(x: Tensor, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Any:
    """The elements (or slices along `axis`) without those equal to the one before; on demand the place of every element
    among them, and the length of each run.
    """


def unsqueeze(x: Tensor, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Inserts axes of extent 1 at the named places of the result."""


def unsqueeze_(x: Tensor, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Inserts axes of extent 1 at the named places of the result."""


def unstack(x: Tensor, axis: _int = 0, num: _int | None = None, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """What is at every position of an axis, which goes away; `num`, if given, must be its extent."""


def vander(x: Tensor, n: _int | None = None, increasing: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The powers of each element as a row: `n` of them, falling unless `increasing`; `n` is the length of `x` unless given."""


def var(x: Tensor, axis: _int | Sequence[_int] | Tensor | None = None, unbiased: _bool | None = None, keepdim: _bool = False, correction: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
    """The variance over `axis` (all axes by default): the sum of squared distances from the mean over `n - correction`.
    `unbiased` sets the correction to 1 or 0. Integers give the default float.
    """


def vecdot(x: Tensor, y: Tensor, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The sum of the products along `axis`, with broadcasting; of complex numbers the first is conjugated."""


def view(x: Tensor, shape_or_dtype: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The same memory under another shape (no copy is made; an error where one would be needed) or another dtype, whose
    width changes the last axis. Paddle's `view`.
    """


def view_as(x: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` in the shape of `other`."""


def view_as_complex(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Complex numbers from a real tensor whose last axis holds two: the real and the imaginary part. A view where the memory
    allows it.
    """


def view_as_real(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The real numbers of a complex tensor, with a last axis of two for the real and the imaginary part. A view."""


def vsplit(x: Tensor, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
    """`tensor_split` along the first of at least two axes."""


def vstack(x: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Joins on top of each other; vectors count as rows."""


def where(condition: Tensor, x: Tensor | _float | None = None, y: Tensor | _float | None = None, *args: Any, **kwargs: Any) -> Any:
    """The elements of `x` where `condition` holds and of `y` elsewhere, all broadcast together; with the condition alone,
    the positions where it holds, one tensor for each axis.
    """


def zero_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Sets every element to zero."""


def zeros(shape: _int | Sequence[_int] | Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Zeros of a shape, in the default float unless a dtype is given."""


def zeros_like(x: Tensor, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Zeros in the shape (and, unless one is given, the dtype) of `x`."""


__all__ = ['BFloat16Tensor', 'BoolTensor', 'ByteTensor', 'CPUPlace', 'CUDAPinnedPlace', 'CUDAPlace', 'CharTensor', 'CustomPlace', 'DataParallel', 'DoubleTensor', 'FloatTensor', 'Generator', 'HalfTensor', 'IPUPlace', 'IntTensor', 'LazyGuard', 'LongTensor', 'Model', 'ParamAttr', 'Parameter', 'ShortTensor', 'Size', 'Tensor', 'XPUPinnedPlace', 'XPUPlace', 'abs', 'abs_', 'acos', 'acos_', 'acosh', 'acosh_', 'adaptive_avg_pool1d', 'add', 'add_', 'add_n', 'addmm', 'addmm_', 'align', 'all', 'allclose', 'amax', 'amin', 'amp', 'angle', 'any', 'arange', 'argmax', 'argmin', 'argsort', 'argwhere', 'as_complex', 'as_real', 'as_strided', 'as_tensor', 'asarray', 'asin', 'asin_', 'asinh', 'asinh_', 'assign', 'atan', 'atan2', 'atan2_', 'atan_', 'atanh', 'atanh_', 'atleast_1d', 'atleast_2d', 'atleast_3d', 'autocast', 'autograd', 'baddbmm', 'baddbmm_', 'batch', 'bernoulli', 'bernoulli_', 'bfloat16', 'bincount', 'binomial', 'bitwise_and', 'bitwise_and_', 'bitwise_invert', 'bitwise_invert_', 'bitwise_left_shift', 'bitwise_left_shift_', 'bitwise_not', 'bitwise_not_', 'bitwise_or', 'bitwise_or_', 'bitwise_right_shift', 'bitwise_right_shift_', 'bitwise_xor', 'bitwise_xor_', 'block_diag', 'bmm', 'bool', 'broadcast_shape', 'broadcast_shapes', 'broadcast_tensors', 'broadcast_to', 'bucketize', 'callbacks', 'cartesian_prod', 'cast', 'cast_', 'cat', 'cauchy_', 'cdist', 'cdouble', 'ceil', 'ceil_', 'cfloat', 'check_shape', 'cholesky', 'chunk', 'clamp', 'clamp_', 'clip', 'clip_', 'clone', 'column_stack', 'combinations', 'compat', 'complex', 'complex128', 'complex64', 'concat', 'concatenate', 'conj', 'contiguous', 'conv1d', 'conv2d', 'conv3d', 'copysign', 'copysign_', 'cos', 'cos_', 'cosh', 'cosh_', 'count_nonzero', 'create_parameter', 'crop', 'cross', 'cuda', 'cummax', 'cummin', 'cumprod', 'cumprod_', 'cumsum', 'cumsum_', 'cumulative_trapezoid', 'deg2rad', 'device', 'device_guard', 'diag', 'diag_embed', 'diagflat', 'diagonal', 'diagonal_scatter', 'diff', 'digamma', 'digamma_', 'disable_compat', 'disable_signal_handler', 'disable_static', 'dist', 'distributed', 'distribution', 'div', 'div_', 'divide', 'divide_', 'dot', 'double', 'dsplit', 'dstack', 'dtype', 'e', 'eigvalsh', 'einsum', 'empty', 'empty_like', 'enable_compat', 'enable_grad', 'enable_static', 'eq', 'eq_', 'equal', 'equal_', 'equal_all', 'erf', 'erf_', 'erfinv', 'erfinv_', 'exp', 'exp_', 'expand', 'expand_as', 'expm1', 'expm1_', 'exponential_', 'eye', 'fft', 'fill_', 'fill_diagonal', 'fill_diagonal_', 'fill_diagonal_tensor', 'fill_diagonal_tensor_', 'finfo', 'flatten', 'flatten_', 'flip', 'float', 'float16', 'float32', 'float64', 'floor', 'floor_', 'floor_divide', 'floor_divide_', 'floor_mod', 'floor_mod_', 'flops', 'fmax', 'fmax_', 'fmin', 'fmin_', 'frac', 'frac_', 'framework', 'frexp', 'from_dlpack', 'from_numpy', 'full', 'full_like', 'gammainc', 'gammainc_', 'gammaincc', 'gammaincc_', 'gammaln', 'gammaln_', 'gather', 'gather_nd', 'gaussian', 'gcd', 'gcd_', 'ge', 'ge_', 'geometric', 'geometric_', 'ger', 'get_autocast_cpu_dtype', 'get_autocast_dtype', 'get_autocast_gpu_dtype', 'get_cuda_rng_state', 'get_cudnn_version', 'get_default_device', 'get_default_dtype', 'get_device', 'get_flags', 'get_rng_state', 'grad', 'greater', 'greater_', 'greater_equal', 'greater_equal_', 'greater_than', 'greater_than_', 'group_norm', 'gt', 'gt_', 'half', 'hapi', 'heaviside', 'histogram', 'histogram_bin_edges', 'histogramdd', 'hsplit', 'hstack', 'hub', 'hypot', 'hypot_', 'i0', 'i0_', 'i0e', 'i0e_', 'i1', 'i1_', 'i1e', 'i1e_', 'iinfo', 'imag', 'in_dynamic_mode', 'increment', 'incubate', 'index_add', 'index_add_', 'index_fill', 'index_fill_', 'index_put', 'index_put_', 'index_sample', 'index_select', 'inf', 'inference', 'inner', 'int', 'int16', 'int32', 'int64', 'int8', 'inverse', 'io', 'is_autocast_enabled', 'is_compiled_with_cinn', 'is_compiled_with_cuda', 'is_compiled_with_custom_device', 'is_compiled_with_distribute', 'is_compiled_with_ipu', 'is_compiled_with_rocm', 'is_compiled_with_xpu', 'is_complex', 'is_empty', 'is_floating_point', 'is_grad_enabled', 'is_integer', 'is_tensor', 'isclose', 'isfinite', 'isin', 'isinf', 'isnan', 'isneginf', 'isposinf', 'isreal', 'jit', 'kron', 'kthvalue', 'layer_norm', 'lcm', 'lcm_', 'ldexp', 'ldexp_', 'le', 'le_', 'lerp', 'lerp_', 'less', 'less_', 'less_equal', 'less_equal_', 'less_than', 'less_than_', 'lgamma', 'lgamma_', 'linalg', 'linspace', 'load', 'log', 'log10', 'log10_', 'log1p', 'log1p_', 'log2', 'log2_', 'log_', 'log_normal', 'log_normal_', 'logaddexp', 'logcumsumexp', 'logical_and', 'logical_and_', 'logical_not', 'logical_not_', 'logical_or', 'logical_or_', 'logical_xor', 'logical_xor_', 'logit', 'logit_', 'logspace', 'logsumexp', 'long', 'lt', 'lt_', 'manual_seed', 'masked_fill', 'masked_fill_', 'masked_scatter', 'masked_scatter_', 'masked_select', 'matmul', 'matrix_transpose', 'max', 'maximum', 'maximum_', 'mean', 'median', 'meshgrid', 'metric', 'min', 'minimum', 'minimum_', 'mm', 'mod', 'mod_', 'mode', 'moveaxis', 'movedim', 'msort', 'mul', 'mul_', 'multigammaln', 'multigammaln_', 'multinomial', 'multiplex', 'multiply', 'multiply_', 'mv', 'nan', 'nan_to_num', 'nan_to_num_', 'nanmean', 'nanmedian', 'nanquantile', 'nansum', 'narrow', 'ne', 'ne_', 'neg', 'neg_', 'negative', 'negative_', 'newaxis', 'nextafter', 'nn', 'no_grad', 'nonzero', 'norm', 'normal', 'normal_', 'not_equal', 'not_equal_', 'numel', 'ones', 'ones_like', 'onnx', 'optimizer', 'outer', 'pdist', 'permute', 'permute_', 'pi', 'poisson', 'polar', 'polygamma', 'polygamma_', 'positive', 'pow', 'pow_', 'prod', 'profiler', 'put_along_axis', 'put_along_axis_', 'quantile', 'quantization', 'rad2deg', 'rand', 'rand_like', 'randint', 'randint_like', 'randn', 'randn_like', 'random_', 'randperm', 'range', 'rank', 'ravel', 'ravel_', 'reader', 'real', 'reciprocal', 'reciprocal_', 'reduce_as', 'regularizer', 'remainder', 'remainder_', 'renorm', 'renorm_', 'repeat_interleave', 'reshape', 'reshape_', 'reverse', 'roll', 'rot90', 'round', 'round_', 'row_stack', 'rsqrt', 'rsqrt_', 'save', 'scale', 'scale_', 'scatter', 'scatter_', 'scatter_add', 'scatter_add_', 'scatter_nd', 'scatter_nd_add', 'scatter_reduce', 'scatter_reduce_', 'searchsorted', 'seed', 'select_scatter', 'set_cuda_rng_state', 'set_default_device', 'set_default_dtype', 'set_device', 'set_flags', 'set_grad_enabled', 'set_printoptions', 'set_rng_state', 'sgn', 'sgn_', 'shape', 'shard_index', 'short', 'sigmoid', 'sigmoid_', 'sign', 'sign_', 'signal', 'signbit', 'sin', 'sin_', 'sinc', 'sinc_', 'sinh', 'sinh_', 'slice', 'slice_scatter', 'softmax', 'softmax_', 'sort', 'split', 'sqrt', 'sqrt_', 'square', 'square_', 'squeeze', 'squeeze_', 'stack', 'standard_gamma', 'standard_normal', 'stanh', 'static', 'std', 'strided_slice', 'sub', 'sub_', 'subtract', 'subtract_', 'sum', 'summary', 'swapaxes', 'swapdims', 'sysconfig', 't', 't_', 'take', 'take_along_axis', 'take_along_dim', 'tan', 'tan_', 'tanh', 'tanh_', 'tensor', 'tensor_split', 'tensordot', 'text', 'tile', 'to_dlpack', 'to_tensor', 'tolist', 'top_p_sampling', 'topk', 'trace', 'transpose', 'transpose_', 'trapezoid', 'tril', 'tril_', 'tril_indices', 'triu', 'triu_', 'triu_indices', 'true_divide', 'true_divide_', 'trunc', 'trunc_', 'truncated_normal', 'uint8', 'unbind', 'unflatten', 'unfold', 'uniform', 'uniform_', 'unique', 'unique_consecutive', 'unsqueeze', 'unsqueeze_', 'unstack', 'utils', 'vander', 'var', 'vecdot', 'version', 'view', 'view_as', 'view_as_complex', 'view_as_real', 'vision', 'vsplit', 'vstack', 'where', 'where_', 'zero_', 'zeros', 'zeros_like']
