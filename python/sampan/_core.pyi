# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

_dtype = dtype
DTypeLike = _dtype | _str | _type | numpy.dtype


class dtype:
    """The type of a tensor's elements; equal to its name: `x.dtype == 'float32'`."""
    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Return self==value."""
    def __ge__(self, other: Any) -> Tensor:
        """Return self>=value."""
    def __gt__(self, other: Any) -> Tensor:
        """Return self>value."""
    def __hash__(self, /) -> _int:
        """Return hash(self)."""
    def __le__(self, other: Any) -> Tensor:
        """Return self<=value."""
    def __lt__(self, other: Any) -> Tensor:
        """Return self<value."""
    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Return self!=value."""
    def __reduce__(self, /) -> Tensor:
        """Helper for pickle."""
    def __repr__(self, /) -> _str:
        """Return repr(self)."""
    def __str__(self, /) -> _str:
        """Return str(self)."""
    @property
    def is_floating_point(self) -> Any:
        """Is it a float type?"""
    @is_floating_point.setter
    def is_floating_point(self, value: Any) -> None: ...
    @property
    def itemsize(self) -> Any:
        """Bytes of one element."""
    @itemsize.setter
    def itemsize(self, value: Any) -> None: ...
    @property
    def name(self) -> _str:
        """The name: `'float32'`."""
    @name.setter
    def name(self, value: Any) -> None: ...


class Tensor:
    """An n-dimensional array that remembers how it was made."""
    def __init__(self, data: Any = None, dtype: DTypeLike | None = None, place: Any = None, stop_gradient: _bool = True) -> None: ...
    def __getattr__(self, name: _str) -> Any: ...
    @property
    def T(self) -> Tensor:
        """The tensor with its axes reversed."""
    def __abs__(self, /) -> Tensor:
        """abs(self)"""
    def __add__(self, /, value) -> Tensor:
        """Return self+value."""
    def __and__(self, /, value) -> Tensor:
        """Return self&value."""
    def __array__(self, /, dtype=None, copy=None) -> Tensor:
        """The values as an array: on the same memory, or a copy where `copy` or another dtype asks for one."""
    @property
    def __array_interface__(self) -> Any:
        """The elements as NumPy's array interface describes them."""
    def __bool__(self, /) -> _bool:
        """True if self else False"""
    def __complex__(self, /) -> Tensor:
        """__complex__"""
    def __contains__(self, /, key) -> _bool:
        """Return key in self."""
    def __copy__(self) -> Tensor:
        """__copy__"""
    @property
    def __cuda_array_interface__(self) -> Any:
        """Where a tensor of a GPU lies, for libraries that can use it there."""
    @__cuda_array_interface__.setter
    def __cuda_array_interface__(self, value: Any) -> None: ...
    def __deepcopy__(self, memo) -> Tensor:
        """__deepcopy__"""
    def __delitem__(self, /, key) -> Tensor:
        """Delete self[key]."""
    def __divmod__(self, /, value) -> Tensor:
        """Return divmod(self, value)."""
    def __dlpack__(self, /, stream=None, max_version=None, dl_device=None, copy=None) -> Tensor:
        """The tensor as a DLPack capsule on the same memory."""
    def __dlpack_device__(self, /) -> Tensor:
        """(1, 0) for the processor, (2, n) for GPU n."""
    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Return self==value."""
    def __float__(self, /) -> _float:
        """float(self)"""
    def __floordiv__(self, /, value) -> Tensor:
        """Return self//value."""
    def __format__(self, spec) -> _str:
        """A 0-d tensor is written as its number."""
    def __ge__(self, other: Any) -> Tensor:
        """Return self>=value."""
    def __getitem__(self, /, key) -> Tensor:
        """Return self[key]."""
    def __gt__(self, other: Any) -> Tensor:
        """Return self>value."""
    def __hash__(self, /) -> _int:
        """Return hash(self)."""
    def __index__(self, /) -> _int:
        """Return self converted to an integer, if self is suitable for use as an index into a list."""
    def __int__(self, /) -> _int:
        """int(self)"""
    def __invert__(self, /) -> Tensor:
        """~self"""
    def __iter__(self) -> Iterator[Tensor]:
        """__iter__"""
    def __le__(self, other: Any) -> Tensor:
        """Return self<=value."""
    def __len__(self, /) -> _int:
        """Return len(self)."""
    def __lshift__(self, /, value) -> Tensor:
        """Return self<<value."""
    def __lt__(self, other: Any) -> Tensor:
        """Return self<value."""
    def __matmul__(self, /, value) -> Tensor:
        """Return self@value."""
    def __mod__(self, /, value) -> Tensor:
        """Return self%value."""
    def __mul__(self, /, value) -> Tensor:
        """Return self*value."""
    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Return self!=value."""
    def __neg__(self, /) -> Tensor:
        """-self"""
    def __or__(self, /, value) -> Tensor:
        """Return self|value."""
    def __pos__(self, /) -> Tensor:
        """+self"""
    def __pow__(self, /, value, mod=None) -> Tensor:
        """Return pow(self, value, mod)."""
    def __radd__(self, /, value) -> Tensor:
        """Return value+self."""
    def __rand__(self, /, value) -> Tensor:
        """Return value&self."""
    def __rdivmod__(self, /, value) -> Tensor:
        """Return divmod(value, self)."""
    def __reduce_ex__(self, protocol) -> Tensor:
        """__reduce_ex__"""
    def __repr__(self, /) -> _str:
        """Return repr(self)."""
    def __reversed__(self) -> Tensor:
        """__reversed__"""
    def __rfloordiv__(self, /, value) -> Tensor:
        """Return value//self."""
    def __rlshift__(self, /, value) -> Tensor:
        """Return value<<self."""
    def __rmatmul__(self, /, value) -> Tensor:
        """Return value@self."""
    def __rmod__(self, /, value) -> Tensor:
        """Return value%self."""
    def __rmul__(self, /, value) -> Tensor:
        """Return value*self."""
    def __ror__(self, /, value) -> Tensor:
        """Return value|self."""
    def __round__(self, /, ndigits=None) -> Tensor:
        """__round__"""
    def __rpow__(self, /, value, mod=None) -> Tensor:
        """Return pow(value, self, mod)."""
    def __rrshift__(self, /, value) -> Tensor:
        """Return value>>self."""
    def __rshift__(self, /, value) -> Tensor:
        """Return self>>value."""
    def __rsub__(self, /, value) -> Tensor:
        """Return value-self."""
    def __rtruediv__(self, /, value) -> Tensor:
        """Return value/self."""
    def __rxor__(self, /, value) -> Tensor:
        """Return value^self."""
    def __setitem__(self, /, key, value) -> None:
        """Set self[key] to value."""
    def __str__(self, /) -> _str:
        """Return str(self)."""
    def __sub__(self, /, value) -> Tensor:
        """Return self-value."""
    def __truediv__(self, /, value) -> Tensor:
        """Return self/value."""
    def __xor__(self, /, value) -> Tensor:
        """Return self^value."""
    def abs(self, *args: Any, **kwargs: Any) -> Tensor:
        """The absolute value of each element; of a complex number the length, a real number."""

    def abs_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The absolute value of each element; of a complex number the length, a real number."""

    def acos(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1]."""

    def acos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1]."""

    def acosh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic cosine; NaN below 1."""

    def acosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic cosine; NaN below 1."""

    def adaptive_avg_pool1d(self, output_size: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Averages over windows that divide a sequence `[batch, channels, length]` into `output_size` parts; see `adaptive_avg_pool2d`."""

    def adaptive_avg_pool2d(self, output_size: Any, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Averages over windows that divide an image into `output_size` parts, as evenly as possible. `None` keeps an extent."""

    def adaptive_avg_pool3d(self, output_size: Any, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
        """Averages over windows that divide a volume into `output_size` parts; see `adaptive_avg_pool2d`."""

    def adaptive_log_softmax_with_loss(self, label: Tensor, head_weight: Tensor, tail_weights: Any, cutoffs: _int | Sequence[_int] | Tensor, head_bias: Tensor | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The adaptive softmax: frequent classes and one entry for each cluster in the head, rare classes in clusters of their
        own with small factors. Gives the log-probability of each label and the mean loss. `tail_weights` is a list of pairs
        of matrices; `cutoffs` are the bounds of the clusters, the last one being the number of classes.
        """

    def adaptive_max_pool1d(self, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """The largest element of each of `output_size` windows that divide a sequence, as evenly as possible. With `return_mask`
        also its flat place in its plane.
        """

    def adaptive_max_pool2d(self, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """The largest element of each of `output_size` windows that divide an image, as evenly as possible. With `return_mask`
        also its flat place in its plane.
        """

    def adaptive_max_pool3d(self, output_size: Any, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """The largest element of each of `output_size` windows that divide a volume, as evenly as possible. With `return_mask`
        also its flat place in its plane.
        """

    def add(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x + y`, element by element, with broadcasting."""

    def add_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x + y`, element by element, with broadcasting."""

    def add_n(self, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of several tensors of one shape; one without axes is added to every element."""

    def addmm(self, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`beta * input + alpha * (x @ y)`."""

    def addmm_(self, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`beta * input + alpha * (x @ y)`."""

    def affine_grid(self, out_shape: Any, align_corners: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The grid for `grid_sample` on which an affine map `theta` (`[batch, 2, 3]` or `[batch, 3, 4]`) sends the places of an
        image or volume of shape `out_shape`.
        """

    def all(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Are all elements over `axis` (all axes by default) true or nonzero?"""

    def allclose(self, y: Tensor, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Are all elements close, in the sense of `isclose`? A 0-d bool."""

    def alpha_dropout(self, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """Dropout that keeps mean and deviation of selu activations."""

    def amax(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The largest over `axis` (all axes by default); NaN where there is one. Equal maxima share the gradient evenly."""

    def amin(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The smallest over `axis` (all axes by default); NaN where there is one. Equal minima share the gradient evenly."""

    def angle(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle of each element in the complex plane, in (-π, π]: 0 or π for real numbers."""

    def any(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Is any element over `axis` (all axes by default) true or nonzero?"""

    def apply(self, func) -> Any:
        """What a function makes of the tensor."""
    def apply_(self, func) -> Any:
        """Takes over what a function makes of the tensor."""
    def argmax(self, axis: _int | None = None, keepdim: _bool = False, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
        """The position of the largest element along `axis`; without one, in all elements in a row. The first of equals, and the
        first NaN before any number.
        """

    def argmin(self, axis: _int | None = None, keepdim: _bool = False, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
        """The position of the smallest element along `axis`; without one, in all elements in a row. The first of equals, and
        the first NaN before any number.
        """

    def argsort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The positions that would sort `x` along `axis`; stable, NaN last (first when descending)."""

    def argwhere(self, *args: Any, **kwargs: Any) -> Tensor:
        """Positions of the elements that are not zero, one row each."""

    def as_complex(self, *args: Any, **kwargs: Any) -> Tensor:
        """Complex numbers from a real tensor whose last axis holds two: the real and the imaginary part. A view where the memory
        allows it.
        """

    def as_real(self, *args: Any, **kwargs: Any) -> Tensor:
        """The real numbers of a complex tensor, with a last axis of two for the real and the imaginary part. A view."""

    def as_strided(self, shape: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor, offset: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The elements of `x`, counted in row-major order, under any shape and strides (in elements); `offset` is in bytes, as
        in Paddle. A view on `x` where its memory is row-major. Elements may be seen more than once.
        """

    def asin(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1]."""

    def asin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1]."""

    def asinh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic sine."""

    def asinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic sine."""

    def assign(self, *args: Any, **kwargs: Any) -> Tensor:
        """A copy in memory of its own, through which gradients flow. (A Rust `clone()` is another handle on the same tensor.)"""

    def astype(self, dtype) -> Any:
        """The values in another dtype; the tensor itself where it has that dtype, of which `cast` would make a copy."""
    def astype_(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Tensor:
        """The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
        become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
        wrap around. A nonzero number is true. Of a complex number real types take the real part.
        """

    def atan(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose tangent each element is, in (-π/2, π/2)."""

    def atan2(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant. Of integers it is a float64, as in
        Paddle.
        """

    def atan2_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant. Of integers it is a float64, as in
        Paddle.
        """

    def atan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The angle whose tangent each element is, in (-π/2, π/2)."""

    def atanh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""

    def atanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the hyperbolic tangent; NaN outside [-1, 1]."""

    def atleast_1d(self, *args: Any, **kwargs: Any) -> Any:
        """Each tensor with at least one axis."""

    def atleast_2d(self, *args: Any, **kwargs: Any) -> Any:
        """Each tensor with at least two axes; a vector becomes a row."""

    def atleast_3d(self, *args: Any, **kwargs: Any) -> Any:
        """Each tensor with at least three axes; a vector of n elements becomes `[1, n, 1]`, a matrix `[m, n, 1]`."""

    def avg_pool1d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, exclusive: _bool = True, ceil_mode: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The average of each window of a sequence `[batch, channels, length]`; see `avg_pool2d`."""

    def avg_pool2d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """The average of each window of an image; the stride is the window's size unless given. Padding does not count unless
        `exclusive` is false; `divisor_override` replaces the count.
        """

    def avg_pool3d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, exclusive: _bool = True, divisor_override: _float | None = None, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
        """The average of each window of a volume; see `avg_pool2d`."""

    def backward(self, /, grad_tensor=None, retain_graph=False, dump_backward_graph_path=None) -> None:
        """Adds the gradients of this tensor to `.grad` of every leaf it depends on."""
    def baddbmm(self, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`beta * input + alpha * bmm(x, y)`."""

    def baddbmm_(self, x: Tensor, y: Tensor, beta: _float = 1.0, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`beta * input + alpha * bmm(x, y)`."""

    def batch_norm(self, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.9, epsilon: _float = 1e-5, data_format: _str = 'NCHW', use_global_stats: _bool | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Normalises each channel over the batch: in training by the batch's own mean and variance, which also move the running
        ones (`momentum` is the share of the old that is kept), otherwise, or with `use_global_stats`, by the running ones. In
        training a single element in each channel has no deviation: it is the result as it is, and nothing is learnt from it.
        """

    def bernoulli(self, p: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """1 with the probability in each element of `x` (or with `p`, if given), else 0."""

    def bernoulli_(self, p: Tensor | _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
        """1 with probability `p`, a number or a tensor that broadcasts to `x`, else 0."""

    def bfloat16(self) -> Any:
        """The values as bfloat16."""
    def bilinear(self, x2: Tensor, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """A form that is linear in both inputs: `out[b, o] = Σ x1[b, i] weight[o, i, j] x2[b, j] + bias[o]`."""

    def binary_cross_entropy(self, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`-(label ln(input) + (1 - label) ln(1 - input))` of probabilities `input`, times `weight`, reduced. The label gets no
        gradient.
        """

    def binary_cross_entropy_with_logits(self, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', pos_weight: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Binary cross entropy of logits, without overflow; `pos_weight` scales the positive class, `weight` every element. The
        label and `pos_weight` get no gradient.
        """

    def bincount(self, weights: Tensor | None = None, minlength: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """How often each number occurs in the 1-D `x` of nonnegative integers, or the sum of the weights at its places; at
        least `minlength` numbers.
        """

    def binomial(self, prob: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Successes in `count` trials of probability `prob`, which broadcast; int64."""

    def bitwise_and(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x & y` on each bit of integers, or on truth values."""

    def bitwise_and_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x & y` on each bit of integers, or on truth values."""

    def bitwise_invert(self, *args: Any, **kwargs: Any) -> Tensor:
        """Every bit of integers, or a truth value, turned over."""

    def bitwise_invert_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Every bit of integers, or a truth value, turned over."""

    def bitwise_left_shift(self, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The bits of `x` moved left by `y` places; what leaves the dtype is lost."""

    def bitwise_left_shift_(self, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The bits of `x` moved left by `y` places; what leaves the dtype is lost."""

    def bitwise_not(self, *args: Any, **kwargs: Any) -> Tensor:
        """Every bit of integers, or a truth value, turned over."""

    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Every bit of integers, or a truth value, turned over."""

    def bitwise_or(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x | y` on each bit of integers, or on truth values."""

    def bitwise_or_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x | y` on each bit of integers, or on truth values."""

    def bitwise_right_shift(self, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The bits of `x` moved right by `y` places. The places that fall free take the sign, or zeros if not `is_arithmetic`."""

    def bitwise_right_shift_(self, y: Tensor | _float, is_arithmetic: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The bits of `x` moved right by `y` places. The places that fall free take the sign, or zeros if not `is_arithmetic`."""

    def bitwise_xor(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x ^ y` on each bit of integers, or on truth values."""

    def bitwise_xor_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x ^ y` on each bit of integers, or on truth values."""

    @property
    def block(self) -> Any:
        """The part of a static program that a tensor would belong to: initializers take it as their second argument."""
    def block_diag(self, *args: Any, **kwargs: Any) -> Tensor:
        """Matrices placed along the diagonal of a larger one, zeros elsewhere; vectors count as rows."""

    def bmm(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The products of two batches of matrices, `[b, m, k]` and `[b, k, n]`."""

    def bool(self) -> Any:
        """The values as bool."""
    def broadcast_shape(x_shape, y_shape, name=None) -> Any:
        """The shape that tensors of two shapes broadcast to. -1 is an extent that is not known yet."""
    def broadcast_tensors(self, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """The tensors expanded to the shape they broadcast to."""

    def broadcast_to(self, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A view that repeats axes of extent 1 (and new leading axes) without copying. -1 keeps an extent."""

    def bucketize(self, sorted_sequence: Tensor, out_int32: _bool = False, right: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Which interval of the sorted 1-D `sorted_sequence` each element falls into. `right`: an edge belongs to the next one."""

    def byte(self) -> Any:
        """The values as uint8."""
    def cast(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Tensor:
        """The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
        become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
        wrap around. A nonzero number is true. Of a complex number real types take the real part.
        """

    def cast_(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Tensor:
        """The values in another dtype. Floats become integers by dropping the fraction; those beyond the bounds of the dtype
        become its bounds, and NaN zero, on every machine alike (PaddlePaddle leaves these cases to the processor). Integers
        wrap around. A nonzero number is true. Of a complex number real types take the real part.
        """

    def cauchy_(self, loc: _float = 0.0, scale: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """Cauchy numbers of median `loc` and half width `scale`."""

    def cdist(self, y: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary', *args: Any, **kwargs: Any) -> Tensor:
        """The `p`-norm distances between every row of `x` (`[…, m, d]`) and every row of `y` (`[…, n, d]`): `[…, m, n]`. Euclidean
        distances between many rows come from a matrix product unless `compute_mode` is
        `"donot_use_mm_for_euclid_dist"`; `"use_mm_for_euclid_dist"` forces it.
        """

    def cdouble(self) -> Any:
        """The values as complex128."""
    def ceil(self, *args: Any, **kwargs: Any) -> Tensor:
        """The smallest integer not below each element."""

    def ceil_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The smallest integer not below each element."""

    def celu(self, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0)`."""

    def cfloat(self) -> Any:
        """The values as complex64."""
    def channel_shuffle(self, groups: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Channels dealt out anew, one from each of `groups` groups in turn."""

    def char(self) -> Any:
        """The values as int8."""
    def cholesky(self, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The triangular `L` of `x = L Lᵀ` for symmetric positive definite matrices, or `U` of `x = Uᵀ U` with `upper=True`.
        Only the triangle of that name is read.
        """

    def cholesky_inverse(self, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the matrix whose Cholesky factor is `x`."""

    def cholesky_solve(self, y: Tensor, upper: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The `X` of `A X = x`, where `y` is the Cholesky factor of `A` (lower, or upper with `upper=True`)."""

    def chunk(self, chunks: _int, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """Splits an axis into that many equal pieces."""

    def clamp(self, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
        Rust). The gradient passes where `x` lies between them, ends included.
        """

    def clamp_(self, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
        Rust). The gradient passes where `x` lies between them, ends included.
        """

    def class_center_sample(self, num_classes: _int, num_samples: _int, group: Any = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The classes that occur in `label`, sorted, filled up at random with others to `num_samples`, and the labels as places
        in this list: `(remapped_label, sampled_class_center)`. All classes that occur are there even if they are more.
        """

    def clear_grad(self, /, set_to_zero=True) -> None:
        """Sets the gradient to zeros, or forgets it."""
    def clear_gradient(self, /, set_to_zero=True) -> None:
        """Sets the gradient to zeros, or forgets it."""
    def clip(self, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
        Rust). The gradient passes where `x` lies between them, ends included.
        """

    def clip_(self, min: Any = None, max: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """Each element held between `min` and `max`, which are numbers, tensors that broadcast with `x`, or left out (`()` in
        Rust). The gradient passes where `x` lies between them, ends included.
        """

    def clone(self, *args: Any, **kwargs: Any) -> Tensor:
        """A copy in memory of its own, through which gradients flow. (A Rust `clone()` is another handle on the same tensor.)"""

    def combinations(self, r: _int = 2, with_replacement: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Every choice of `r` elements of a vector, in order of their positions, as rows."""

    def complex(self, imag: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Complex numbers from their real and imaginary parts, with broadcasting."""

    def complex128(self) -> Any:
        """The values as complex128."""
    def complex64(self) -> Any:
        """The values as complex64."""
    def concat(self, axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """Joins tensors along an axis that they have; their other extents must agree."""

    def cond(self, p: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """The condition numbers of matrices under the norm `p`: 2 (the default) and -2 from the singular values; `fro`, `nuc`, 1, -1,
        inf and -inf for invertible square matrices.
        """

    def conj(self, *args: Any, **kwargs: Any) -> Tensor:
        """The complex conjugate: the imaginary part with the other sign. A real tensor is returned as it is."""

    def contiguous(self, *args: Any, **kwargs: Any) -> Tensor:
        """The same values in row-major memory; the tensor itself if it is so already."""

    def conv1d(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
        """Convolution of sequences `[batch, in, length]` with filters `[out, in / groups, length]`; see `conv2d`."""

    def conv1d_transpose(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, groups: _int = 1, dilation: _int | Sequence[_int] | Tensor = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
        """Transposed convolution of sequences with filters `[in, out / groups, length]`; see `conv2d_transpose`."""

    def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Convolution of images `[batch, in, height, width]` with filters `[out, in / groups, height, width]`, as layers
        compute it: filters are not flipped. `padding` is a number, a list, pairs, `"SAME"` (output `⌈input / stride⌉`) or
        `"VALID"`. With `"SAME"` the dilation is 1, whatever was asked for: so it is in Paddle, and models that were trained
        there depend on it. For a dilated convolution give the padding in numbers.
        """

    def conv2d_transpose(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Transposed convolution of images with filters `[in, out / groups, height, width]`: the transpose of the `conv2d` that
        maps its output's shape to its input's. `output_padding` or `output_size` choose among the output extents that such a
        convolution would map to the same input. With `padding="SAME"` the dilation is 1, as in `conv2d`.
        """

    def conv3d(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, dilation: _int | Sequence[_int] | Tensor = 1, groups: _int = 1, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
        """Convolution of volumes `[batch, in, depth, height, width]`; see `conv2d`."""

    def conv3d_transpose(self, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] | Tensor = 1, padding: Any = 0, output_padding: _int | Sequence[_int] | Tensor = 0, groups: _int = 1, dilation: _int | Sequence[_int] | Tensor = 1, output_size: _int | Sequence[_int] | Tensor | None = None, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
        """Transposed convolution of volumes with filters `[in, out / groups, depth, height, width]`; see `conv2d_transpose`."""

    def copy_(self, other, blocking=True) -> Any:
        """Takes over the values of another tensor, broadcast to this one's shape and cast to its dtype."""
    def copysign(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The magnitude of `x` with the sign of `y`. Integers stay integers, and those without a sign are what they were."""

    def copysign_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The magnitude of `x` with the sign of `y`. Integers stay integers, and those without a sign are what they were."""

    def corrcoef(self, rowvar: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The correlation coefficients of variables in the rows of `x` (in its columns without `rowvar`)."""

    def cos(self, *args: Any, **kwargs: Any) -> Tensor:
        """The cosine of each element, in radians."""

    def cos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The cosine of each element, in radians."""

    def cosh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic cosine of each element."""

    def cosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic cosine of each element."""

    def cosine_embedding_loss(self, input2: Tensor, label: Tensor, margin: _float = 0.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """One minus the cosine between the inputs where the label is 1, the cosine beyond `margin` where it is -1."""

    def cosine_similarity(self, x2: Tensor, axis: _int = 1, eps: _float = 1e-8, *args: Any, **kwargs: Any) -> Tensor:
        """The cosine of the angle between `x1` and `x2` along `axis`: their dot product over the product of their lengths, which
        counts as at least `eps`.
        """

    def count_nonzero(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """How many elements over `axis` (all axes by default) are true or nonzero."""

    def cov(self, rowvar: _bool = True, ddof: _bool = True, fweights: Tensor | None = None, aweights: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The covariance matrix of variables in the rows of `x` (in its columns without `rowvar`), one observation in each
        column. `ddof` divides by one less than the observations; `fweights` says how often each occurred, `aweights` how
        much it counts.
        """

    def cpu(self) -> Tensor:
        """The tensor on the processor."""
    def crop(self, shape: _int | Sequence[_int] | Tensor | None = None, offsets: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The block of the given shape that begins at `offsets`. An extent of -1 reaches to the end."""

    def cross(self, y: Tensor, axis: _int = 9, *args: Any, **kwargs: Any) -> Tensor:
        """The cross product of vectors of three elements along `axis`; by default along the first axis of that extent."""

    def cross_entropy(self, label: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', soft_label: _bool = False, axis: _int = -1, use_softmax: _bool = True, label_smoothing: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
        """The cross entropy of logits `input` with labels along `axis`."""

    def ctc_loss(self, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: _int = 0, reduction: _str = 'mean', norm_by_times: _bool = False, zero_infinity: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The CTC loss of logits `[frames, batch, classes]`, to which a softmax is applied first. `labels` has one row for each
        sequence, of which `label_lengths` count; `input_lengths` are the frames of each. The mean divides each loss by its
        label length first; `norm_by_times` divides the gradient by the frames.
        """

    def cuda(self, device_id=None, blocking=True) -> Any:
        """The tensor on a GPU."""
    def cummax(self, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The running maximum along `axis` (without one, of all elements in a row) and where it was met last."""

    def cummin(self, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The running minimum along `axis` (without one, of all elements in a row) and where it was met last."""

    def cumprod(self, dim: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The running product along `dim`; without one, of all elements in a row. Its gradient is exact at zeros too."""

    def cumprod_(self, dim: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The running product along `dim`; without one, of all elements in a row. Its gradient is exact at zeros too."""

    def cumsum(self, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The running sum along `axis`; without one, of all elements in a row. Integers and truth values add up in int64."""

    def cumsum_(self, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The running sum along `axis`; without one, of all elements in a row. Integers and truth values add up in int64."""

    def cumulative_trapezoid(self, x: Tensor | None = None, dx: _float | None = None, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The running integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart."""

    @property
    def data(self) -> Any:
        """The tensor itself; what is assigned to it takes its place."""
    @data.setter
    def data(self, value: Any) -> None: ...
    def data_ptr(self, /) -> Any:
        """The address of the first value."""
    def deg2rad(self, *args: Any, **kwargs: Any) -> Tensor:
        """Degrees to radians."""

    def det(self, *args: Any, **kwargs: Any) -> Tensor:
        """The determinants of square matrices. The gradient needs an invertible matrix."""

    def detach(self, /) -> Tensor:
        """The same memory without a history."""
    def detach_(self, /) -> Any:
        """Cuts this tensor off from its history."""
    @property
    def device(self) -> Any:
        """The name of the device it lives on."""
    def diag(self, offset: _int = 0, padding_value: _float | _bool = 0, *args: Any, **kwargs: Any) -> Tensor:
        """A vector as the diagonal of a square matrix filled with `padding_value`, or the diagonal of a matrix."""

    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The last axis as the diagonal of two new axes at `dim1` and `dim2` of the result."""

    def diagflat(self, offset: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The elements of a tensor of any shape as the diagonal of a square matrix."""

    def diagonal(self, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """A view on a diagonal of two axes, which becomes the last axis; `offset` moves it to the right."""

    def diagonal_scatter(self, y: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with a diagonal replaced by `y`, which has the diagonal's shape."""

    def dice_loss(self, label: Tensor, epsilon: _float = 1e-5, *args: Any, **kwargs: Any) -> Tensor:
        """One minus twice the overlap of predictions and labels over their total, averaged over the batch. `label` holds class
        numbers with a last axis of 1.
        """

    def diff(self, n: _int = 1, axis: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The `n`-th differences of neighbours along `axis`, with `prepend` and `append` joined on before. Truth values give
        where they change.
        """

    def digamma(self, *args: Any, **kwargs: Any) -> Tensor:
        """The derivative of `lgamma`."""

    def digamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The derivative of `lgamma`."""

    def dim(self) -> _int:
        """The number of axes."""
    def dist(self, y: Tensor, p: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
        """The `p`-norm of `x - y`, which broadcast together."""

    def div(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def div_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def divide(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def divide_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def dot(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of the products of two vectors; of each pair of rows where both have two axes."""

    def double(self) -> Any:
        """The values as float64."""
    def dropout(self, p: _float = 0.5, axis: _int | Sequence[_int] | Tensor | None = None, training: _bool = True, mode: _str = 'upscale_in_train', *args: Any, **kwargs: Any) -> Tensor:
        """Sets elements to zero with probability `p` in training, and scales the others by `1 / (1 - p)` so that the mean stays.
        With `mode="downscale_in_infer"` the result is scaled by `1 - p` outside of training instead. `axis` names the axes
        along which the mask varies; it is constant along the others.
        """

    def dropout1d(self, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`dropout` of whole channels of `[C, L]` or `[N, C, L]` data."""

    def dropout2d(self, p: _float = 0.5, training: _bool = True, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """`dropout` of whole channels of 4-d data."""

    def dropout3d(self, p: _float = 0.5, training: _bool = True, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Tensor:
        """`dropout` of whole channels of 5-d data."""

    def dsplit(self, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """`tensor_split` along the third axis."""

    @property
    def dtype(self) -> _dtype:
        """The type of the elements."""
    @dtype.setter
    def dtype(self, value: Any) -> None: ...
    def eig(self, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The eigenvalues of square matrices and their unit eigenvectors as columns, where all are real; complex ones are an
        error.
        """

    def eigh(self, uplo: _str = 'L', *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns. One triangle is read. The
        gradient of the vectors needs distinct eigenvalues.
        """

    def eigvals(self, *args: Any, **kwargs: Any) -> Tensor:
        """The eigenvalues of square matrices, where all are real; complex ones are an error."""

    def eigvalsh(self, uplo: _str = 'L', *args: Any, **kwargs: Any) -> Tensor:
        """The eigenvalues of symmetric matrices, ascending. One triangle is read."""

    def element_size(self) -> Any:
        """Bytes of one element."""
    def elu(self, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, `alpha * (e^x - 1)` below."""

    def elu_(self, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, `alpha * (e^x - 1)` below."""

    def embedding(self, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, sparse: _bool = False, scale_grad_by_freq: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Rows of `weight` for the ids in `x`. The row `padding_idx` reads as zeros and gets no gradient; rows longer than
        `max_norm` in the norm `norm_type` are shortened in place; `scale_grad_by_freq` divides each row's gradient by how
        often it was read. `sparse` is accepted; gradients are dense, but only rows in use are computed.
        """

    def empty_like(self, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Unspecified values in the shape (and, unless one is given, the dtype) of `x`."""

    def eq(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x == y`, element by element, with broadcasting?"""

    def eq_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x == y`, element by element, with broadcasting?"""

    def equal(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x == y`, element by element, with broadcasting?"""

    def equal_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x == y`, element by element, with broadcasting?"""

    def equal_all(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Have `x` and `y` the same shape and the same elements? A 0-d bool."""

    def erf(self, *args: Any, **kwargs: Any) -> Tensor:
        """The error function of each element."""

    def erf_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The error function of each element."""

    def erfinv(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the error function; NaN outside [-1, 1]."""

    def erfinv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of the error function; NaN outside [-1, 1]."""

    def exp(self, *args: Any, **kwargs: Any) -> Tensor:
        """The exponential of each element."""

    def exp_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The exponential of each element."""

    def expand(self, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A view that repeats axes of extent 1 (and new leading axes) without copying. -1 keeps an extent."""

    def expand_as(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` expanded to the shape of `y`."""

    def expm1(self, *args: Any, **kwargs: Any) -> Tensor:
        """`exp(x) - 1`, exact near zero."""

    def expm1_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`exp(x) - 1`, exact near zero."""

    def exponential_(self, lam: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """Exponential numbers of rate `lam`."""

    def feature_alpha_dropout(self, p: _float = 0.5, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`alpha_dropout` of whole channels: the mask varies along the first two axes only."""

    def fft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The discrete Fourier transform along `axis`, of `n` points: the input is cut off or filled up with zeros."""

    def fft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The discrete Fourier transform along several axes (the last two axes by default)."""

    def fftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The discrete Fourier transform along several axes (all by default)."""

    def fftshift(self, axes: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The coefficient of frequency zero brought to the middle of each axis (all by default): the halves change places."""

    def fill_(self, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Sets every element to one number."""

    def fill_diagonal(self, value: _float | _bool, offset: _int = 0, wrap: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with its diagonal (that of all axes: each step is one along every axis) set to one number. With `wrap` a tall
        matrix gets the diagonal again below each square block.
        """

    def fill_diagonal_(self, value: _float | _bool, offset: _int = 0, wrap: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with its diagonal (that of all axes: each step is one along every axis) set to one number. With `wrap` a tall
        matrix gets the diagonal again below each square block.
        """

    def fill_diagonal_tensor(self, y: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with a diagonal replaced by `y`; the in-place form is the usual one."""

    def fill_diagonal_tensor_(self, y: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with a diagonal replaced by `y`; the in-place form is the usual one."""

    def flatten(self, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""

    def flatten_(self, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""

    def flip(self, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The elements in reverse order along the named axes."""

    def float(self) -> Any:
        """The values as float32."""
    def float16(self) -> Any:
        """The values as float16."""
    def float32(self) -> Any:
        """The values as float32."""
    def float64(self) -> Any:
        """The values as float64."""
    def floor(self, *args: Any, **kwargs: Any) -> Tensor:
        """The largest integer not above each element."""

    def floor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The largest integer not above each element."""

    def floor_divide(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The quotient rounded down, `floor(x / y)`; keeps integers. It has no gradient."""

    def floor_divide_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The quotient rounded down, `floor(x / y)`; keeps integers. It has no gradient."""

    def floor_mod(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def floor_mod_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def fmax(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The larger of `x` and `y`, element by element; the other one where one is NaN."""

    def fmax_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The larger of `x` and `y`, element by element; the other one where one is NaN."""

    def fmin(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The smaller of `x` and `y`, element by element; the other one where one is NaN."""

    def fmin_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The smaller of `x` and `y`, element by element; the other one where one is NaN."""

    def fold(self, output_sizes: _int | Sequence[_int] | Tensor, kernel_sizes: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor = 1, paddings: _int | Sequence[_int] | Tensor = 0, dilations: _int | Sequence[_int] | Tensor = 1, *args: Any, **kwargs: Any) -> Tensor:
        """Columns of blocks added up to the image of extents `output_sizes` that they were taken from: the transpose of `unfold`."""

    def frac(self, *args: Any, **kwargs: Any) -> Tensor:
        """The fraction of each element, `x - trunc(x)`."""

    def frac_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The fraction of each element, `x - trunc(x)`."""

    def fractional_max_pool2d(self, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """Max pooling of an image to `output_size` with windows at fractional steps: side by side, or overlapping where
        `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
        """

    def fractional_max_pool3d(self, output_size: Any, kernel_size: _int | Sequence[_int] | Tensor | None = None, random_u: _float | None = None, return_mask: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """Max pooling of a volume to `output_size` with windows at fractional steps: side by side, or overlapping where
        `kernel_size` is given. `random_u` in (0, 1) fixes where the steps fall; else it is drawn.
        """

    def frame(self, frame_length: _int, hop_length: _int, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The pieces of `frame_length` elements, `hop_length` apart, that an axis is cut into; they may overlap. With the last
        axis (-1) the result is `[…, frame_length, frames]`, with the first (0) it is `[frames, frame_length, …]`.
        """

    def frexp(self, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The mantissa, in ±[½, 1), and the exponent of each element: `x = mantissa * 2^exponent`."""

    def full_like(self, fill_value: Tensor | _float, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """One number in the shape (and, unless one is given, the dtype) of `x`."""

    def gammainc(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The regularised lower incomplete gamma function: the share of Γ(`x`) below `y`. It has a gradient along `y`."""

    def gammainc_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The regularised lower incomplete gamma function: the share of Γ(`x`) below `y`. It has a gradient along `y`."""

    def gammaincc(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The regularised upper incomplete gamma function, `1 - gammainc(x, y)`. It has a gradient along `y`."""

    def gammaincc_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The regularised upper incomplete gamma function, `1 - gammainc(x, y)`. It has a gradient along `y`."""

    def gammaln(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def gammaln_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def gather(self, index: Tensor, axis: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Rows of `x` along `axis` (the first by default) at `index`, which is 1-D; a 0-d index takes the axis away."""

    def gather_nd(self, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Slices of `x` at index tuples: the last axis of `index` runs over the first axes of `x`."""

    def gather_tree(self, parents: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sequences that end in each beam, from the tokens `ids` and the beams `parents` they continue, both
        `[time, batch, beam]`.
        """

    def gaussian_nll_loss(self, label: Tensor, variance: Tensor, full: _bool = False, epsilon: _float = 1e-6, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The negative log-likelihood of `label` under normal distributions of mean `input` and given variance, which is kept
        above `epsilon`; `full` adds the constant.
        """

    def gcd(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The greatest common divisor of integers, never negative."""

    def gcd_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The greatest common divisor of integers, never negative."""

    def ge(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x >= y`, element by element, with broadcasting?"""

    def ge_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x >= y`, element by element, with broadcasting?"""

    def gelu(self, approximate: Any = False, *args: Any, **kwargs: Any) -> Tensor:
        """`x` times the normal distribution function; with `approximate`, its form in tanh."""

    def geometric_(self, probs: _float, *args: Any, **kwargs: Any) -> Tensor:
        """`ln u / ln(1 - probs)` for uniform u, the continuous form of the geometric distribution that Paddle gives."""

    def ger(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Every product of an element of `x` with one of `y`, both flattened."""

    def get_device(self) -> Any:
        """The number of the GPU it lives on, -1 for the processor."""
    def get_strides(self) -> Any:
        """Steps of the axes, in elements."""
    def get_tensor(self) -> Any:
        """The tensor itself."""
    def glu(self, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The first half of `x` along `axis` times the sigmoid of the second half."""

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` added up here, or None."""
    @grad.setter
    def grad(self, value: Any) -> None: ...
    @property
    def grad_fn(self) -> _str | None:
        """The name of the op that made it, or None."""
    @grad_fn.setter
    def grad_fn(self, value: Any) -> None: ...
    def gradient(self) -> numpy.ndarray | None:
        """The gradient as a NumPy array, or None."""
    def greater(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def greater_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def greater_equal(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x >= y`, element by element, with broadcasting?"""

    def greater_equal_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x >= y`, element by element, with broadcasting?"""

    def greater_than(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def greater_than_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def grid_sample(self, grid: Tensor, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The image at the places of a grid whose last axis holds (x, y) or (x, y, z) from −1 to 1: between pixels by distance
        (`bilinear`, also for volumes) or from the nearest one. Outside lie zeros, the border, or the image mirrored. With
        `align_corners` −1 and 1 are the centres of the corner pixels, else their outer edges.
        """

    def group_norm(self, num_groups: _int, epsilon: _float = 1e-5, weight: Tensor | None = None, bias: Tensor | None = None, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Normalises groups of channels of each sample to mean 0 and deviation 1, then scales and shifts by channel."""

    def gt(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def gt_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x > y`, element by element, with broadcasting?"""

    def gumbel_softmax(self, temperature: _float = 1.0, hard: _bool = False, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax of `x` plus Gumbel noise over `temperature`: a differentiable draw from the categories along `axis`. With
        `hard` the result is one-hot, with the gradient of the soft one.
        """

    def half(self) -> Any:
        """The values as float16."""
    def hardshrink(self, threshold: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
        """`x` where it is farther from zero than `threshold`, else 0."""

    def hardsigmoid(self, slope: _float = 0.1666667, offset: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
        """`slope * x + offset` held between 0 and 1."""

    def hardswish(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * min(max(x + 3, 0), 6) / 6`."""

    def hardtanh(self, min: _float = -1.0, max: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` held between `min` and `max`."""

    def hardtanh_(self, min: _float = -1.0, max: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` held between `min` and `max`."""

    def heaviside(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The step function: 0 where `x` is negative or NaN, 1 where it is positive, `y` where it is zero."""

    def hfft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform along `axis` of a signal of which the second half is the mirror image of the first: `n` real numbers."""

    def hfft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform along several axes (the last two axes by default) of a signal whose second half, along the last of them, is
        the mirror image of the first.
        """

    def hfftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform along several axes (all by default) of a signal whose second half, along the last of them, is
        the mirror image of the first.
        """

    def hinge_embedding_loss(self, label: Tensor, margin: _float = 1.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`input` where the label is 1, `max(0, margin - input)` where it is -1, reduced."""

    def histogram(self, bins: _int = 100, min: _float = 0.0, max: _float = 0.0, weight: Tensor | None = None, density: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """How many elements fall into each of `bins` equal intervals from `min` to `max` (those of the data where both are
        equal), or the sum of their weights; `density` divides by the total and the width. Others are left out.
        """

    def histogram_bin_edges(self, bins: _int = 100, min: _float = 0.0, max: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
        """The `bins + 1` ends of the intervals of a histogram from `min` to `max`, or over the data where both are equal."""

    def histogramdd(self, bins: Any = 10, ranges: _float | Sequence[_float] | None = None, density: _bool = False, weights: Tensor | None = None, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """A histogram of points, one in each row of `x`: how many lie in each cell of a grid, or the sum of their weights, and
        then the edges along each axis. `bins` is a number, one for each axis, or the edges themselves; `ranges` holds the ends
        of each axis one after the other.
        """

    def householder_product(self, tau: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The first `n` columns of the product of Householder reflections `I - tau[i] v vᵀ`, whose vectors stand below the
        diagonal of `x` (`m × n`), as LAPACK's `geqrf` leaves them.
        """

    def hsigmoid_loss(self, label: Tensor, num_classes: _int, weight: Tensor, bias: Tensor | None = None, path_table: Tensor | None = None, path_code: Tensor | None = None, is_sparse: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The hierarchical sigmoid loss `[rows, 1]`: the classes are the leaves of a binary tree whose inner nodes hold a row of
        `weight` and a number of `bias` each, and the loss adds up the cross entropies of the questions on the way from a leaf
        to the root. Without `path_table` and `path_code` the tree is the complete one; with them, each row of them names the
        inner nodes on the row's way and the answers, up to the first negative number. As in Paddle, a question that a shorter
        way lacks adds ln 2, which changes no gradient. Gradients are dense, whatever `is_sparse` says.
        """

    def hsplit(self, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """`tensor_split` along the second axis, or along the only one."""

    def hypot(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The length of the vector (`x`, `y`), without overflow on the way."""

    def hypot_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The length of the vector (`x`, `y`), without overflow on the way."""

    def i0(self, *args: Any, **kwargs: Any) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0e(self, *args: Any, **kwargs: Any) -> Tensor:
        """`i0(x)` times `exp(-|x|)`, which does not overflow."""

    def i0e_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`i0(x)` times `exp(-|x|)`, which does not overflow."""

    def i1(self, *args: Any, **kwargs: Any) -> Tensor:
        """The modified Bessel function of the first kind of order 1."""

    def i1_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The modified Bessel function of the first kind of order 1."""

    def i1e(self, *args: Any, **kwargs: Any) -> Tensor:
        """`i1(x)` times `exp(-|x|)`, which does not overflow."""

    def i1e_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`i1(x)` times `exp(-|x|)`, which does not overflow."""

    def ifft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `fft`."""

    def ifft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `fft2`, along several axes (the last two axes by default)."""

    def ifftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `fftn`, along several axes (all by default)."""

    def ifftshift(self, axes: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `fftshift`."""

    def ihfft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `hfft`: the first half of a signal whose transform is real."""

    def ihfft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `hfft2`, along several axes (the last two axes by default)."""

    def ihfftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `hfftn`, along several axes (all by default)."""

    def imag(self, *args: Any, **kwargs: Any) -> Tensor:
        """The imaginary part of each element, as a view."""

    def increment(self, value: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """Adds `value` to the one element of `x`, in place, and gives `x` back. Use it to count steps."""

    def index_add(self, index: Tensor, axis: _int, value: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `alpha` times the rows of `value` added at `index` along `axis`."""

    def index_add_(self, index: Tensor, axis: _int, value: Tensor, alpha: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `alpha` times the rows of `value` added at `index` along `axis`."""

    def index_fill(self, index: Tensor, axis: _int, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with a number (or 0-d tensor) written at the rows `index` along `axis`."""

    def index_fill_(self, index: Tensor, axis: _int, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with a number (or 0-d tensor) written at the rows `index` along `axis`."""

    def index_put(self, indices: Sequence[Tensor], value: Tensor | _float, accumulate: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `value` written at `x[indices]`, where `indices` are integer tensors or masks for the first axes; with
        `accumulate` it is added, and each of several values for one place counts.
        """

    def index_put_(self, indices: Sequence[Tensor], value: Tensor | _float, accumulate: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `value` written at `x[indices]`, where `indices` are integer tensors or masks for the first axes; with
        `accumulate` it is added, and each of several values for one place counts.
        """

    def index_sample(self, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """For each row of `x`, its elements at the columns in the same row of `index`."""

    def index_select(self, index: Tensor, axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """Rows of `x` along `axis`, one for each entry of the 1-D `index`."""

    def inner(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of products over the last axes: `out[…, *] = Σ x[…, k] y[*, k]`."""

    @property
    def inplace_version(self) -> _int:
        """How often its memory was written in place."""
    @inplace_version.setter
    def inplace_version(self, value: Any) -> None: ...
    def instance_norm(self, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.9, eps: _float = 1e-5, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Normalises each channel of each sample to mean 0 and deviation 1, then scales and shifts by channel. The running
        statistics, `use_input_stats` and `momentum` are accepted and have no effect, as in Paddle.
        """

    def int(self) -> Any:
        """The values as int32."""
    def int16(self) -> Any:
        """The values as int16."""
    def int32(self) -> Any:
        """The values as int32."""
    def int64(self) -> Any:
        """The values as int64."""
    def int8(self) -> Any:
        """The values as int8."""
    def interpolate(self, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool = False, align_mode: _int = 0, data_format: _str | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The image at another size, given as `size` or as `scale_factor`, for each spatial axis or for all alike. `mode` is
        nearest, linear (3 axes), bilinear, bicubic (4 axes), trilinear (5 axes) or area. With `align_corners` the corner pixels
        keep their values; without, `align_mode` 0 places pixels by their centres and 1 by their first corner.
        """

    def inv(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverses of square matrices."""

    def inverse(self, *args: Any, **kwargs: Any) -> Tensor:
        """The inverses of square matrices."""

    def irfft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `rfft`: `n` real numbers, `2 * (m - 1)` by default, from the first half of their coefficients."""

    def irfft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `rfft2`, along several axes (the last two axes by default)."""

    def irfftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `rfftn`, along several axes (all by default)."""

    def is_coalesced(self) -> Any:
        """False: it is dense and in one place."""
    def is_complex(x) -> Any:
        """Are its elements complex numbers?"""
    def is_contiguous(self, /) -> _bool:
        """Is it row-major without gaps?"""
    @property
    def is_cuda(self) -> Any:
        """Does it live on a GPU?"""
    def is_dense(self) -> Any:
        """True: it is dense."""
    def is_dist(self) -> Any:
        """False: it is dense and in one place."""
    def is_empty(self, *args: Any, **kwargs: Any) -> Tensor:
        """Has `x` no elements? A 0-d bool."""

    def is_floating_point(x) -> Any:
        """Are its elements floats?"""
    def is_integer(x) -> Any:
        """Are its elements integers?"""
    @property
    def is_leaf(self) -> _bool:
        """Was it made by the user rather than by a recorded op?"""
    @is_leaf.setter
    def is_leaf(self, value: Any) -> None: ...
    def is_same_shape(self, other) -> Any:
        """Have both the same shape?"""
    def is_selected_rows(self) -> Any:
        """False: it is dense and in one place."""
    def is_sparse(self) -> Any:
        """False: it is dense and in one place."""
    def is_sparse_coo(self) -> Any:
        """False: it is dense and in one place."""
    def is_sparse_csr(self) -> Any:
        """False: it is dense and in one place."""
    def is_tensor(x) -> Any:
        """Is it a tensor?"""
    def isclose(self, y: Tensor, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Is `|x - y| <= atol + rtol * |y|`, element by element? Equal infinities are close; NaN only with `equal_nan`."""

    def isfinite(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element neither infinite nor NaN?"""

    def isin(self, test_x: Tensor, assume_unique: _bool = False, invert: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element of `x` among the elements of `test_x`? With `invert`, is it not? (`assume_unique` changes nothing:
        the search is over sorted elements anyway.)
        """

    def isinf(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element infinite?"""

    def isnan(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element not a number?"""

    def isneginf(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element negative infinity?"""

    def isposinf(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element positive infinity?"""

    def isreal(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is each element a real number? A complex one is where its imaginary part is zero."""

    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool = True, length: _int | None = None, return_complex: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The signal whose short-time Fourier transform `x` is, or comes closest to it: the frames are transformed back,
        weighted by the window, added, and divided by the sum of the squared windows, which must nowhere be zero.
        """

    def item(self, /, *args) -> Any:
        """The value of one element: the only one, or the one at an index."""
    @property
    def itemsize(self) -> Any:
        """Bytes of one element."""
    def kl_div(self, label: Tensor, reduction: _str = 'mean', log_target: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The Kullback-Leibler divergence `label * (ln(label) - input)` for log-probabilities `input`; the label holds
        log-probabilities too with `log_target`. `reduction` may also be `"batchmean"`. The label gets no gradient.
        """

    def kron(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The Kronecker product: every element of `x` times a copy of `y`, axis by axis."""

    def kthvalue(self, k: _int, axis: _int | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The `k`-th smallest element along `axis` (the last by default; `k` counts from 1) and its position."""

    def l1_loss(self, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`|input - label|`, reduced."""

    def label_smooth(self, prior_dist: Tensor | None = None, epsilon: _float = 0.1, *args: Any, **kwargs: Any) -> Tensor:
        """One hot labels softened: `(1 - epsilon) * label` plus `epsilon` times `prior_dist`, which gets no gradient, or the
        uniform distribution.
        """

    def layer_norm(self, normalized_shape: _int | Sequence[_int] | Tensor, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: _float = 1e-5, *args: Any, **kwargs: Any) -> Tensor:
        """Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales by `weight` and
        shifts by `bias`.
        """

    @property
    def layout(self) -> Any:
        """The name of the order of axes."""
    def lcm(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The least common multiple of integers, never negative."""

    def lcm_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The least common multiple of integers, never negative."""

    def ldexp(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x * 2^y`."""

    def ldexp_(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x * 2^y`."""

    def le(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x <= y`, element by element, with broadcasting?"""

    def le_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x <= y`, element by element, with broadcasting?"""

    def leaky_relu(self, negative_slope: _float = 0.01, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, `negative_slope * x` below."""

    def leaky_relu_(self, negative_slope: _float = 0.01, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, `negative_slope * x` below."""

    def lerp(self, y: Tensor, weight: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The point between `x` and `y` at `weight`: `x + weight * (y - x)`."""

    def lerp_(self, y: Tensor, weight: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The point between `x` and `y` at `weight`: `x + weight * (y - x)`."""

    def less(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def less_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def less_equal(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x <= y`, element by element, with broadcasting?"""

    def less_equal_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x <= y`, element by element, with broadcasting?"""

    def less_than(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def less_than_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def lgamma(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def lgamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def linear(self, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`x @ weight + bias`: the affine map of a fully connected layer. `weight` is `[in_features, out_features]`."""

    def linspace(self, stop: Tensor | _float, num: _int, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`num` numbers from `start` to `stop`, both included, evenly spaced."""

    def local_response_norm(self, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Divides by `(k + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels."""

    def log(self, *args: Any, **kwargs: Any) -> Tensor:
        """The natural logarithm of each element."""

    def log10(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm to base 10 of each element."""

    def log10_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm to base 10 of each element."""

    def log1p(self, *args: Any, **kwargs: Any) -> Tensor:
        """`log(1 + x)`, exact near zero."""

    def log1p_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`log(1 + x)`, exact near zero."""

    def log2(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm to base 2 of each element."""

    def log2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm to base 2 of each element."""

    def log_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The natural logarithm of each element."""

    def log_loss(self, label: Tensor, epsilon: _float = 0.0001, *args: Any, **kwargs: Any) -> Tensor:
        """`-label ln(input + epsilon) - (1 - label) ln(1 - input + epsilon)`. The label gets no gradient."""

    def log_normal(self, std: Tensor | _float = 2.0, shape: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The exponential of normal numbers; `mean` and `std` are those of the logarithm."""

    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
        """The exponential of normal numbers; `mean` and `std` are those of the logarithm."""

    def log_sigmoid(self, *args: Any, **kwargs: Any) -> Tensor:
        """`ln(sigmoid(x))`, without overflow."""

    def log_softmax(self, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of softmax along `axis`, after a cast to `dtype` if one is given."""

    def logaddexp(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`log(exp(x) + exp(y))`, without overflow."""

    def logcumsumexp(self, axis: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The running `ln Σ eˣ` along `axis`; without one, of all elements in a row."""

    def logical_and(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does both `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logical_and_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does both `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logical_not(self, *args: Any, **kwargs: Any) -> Tensor:
        """Does `x` not hold? Numbers hold where they are not zero."""

    def logical_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Does `x` not hold? Numbers hold where they are not zero."""

    def logical_or(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does at least one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logical_or_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does at least one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logical_xor(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does exactly one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logical_xor_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Does exactly one of `x` and `y` hold, element by element? Numbers hold where they are not zero."""

    def logit(self, eps: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `sigmoid`, `log(x / (1 - x))`, after holding `x` inside `[eps, 1 - eps]` if `eps` is given."""

    def logit_(self, eps: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `sigmoid`, `log(x / (1 - x))`, after holding `x` inside `[eps, 1 - eps]` if `eps` is given."""

    def logsigmoid(self, *args: Any, **kwargs: Any) -> Tensor:
        """`ln(sigmoid(x))`, without overflow."""

    def logspace(self, stop: Tensor | _float, num: _int, base: Tensor | _float = 10.0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`num` powers of `base`, their exponents evenly spaced from `start` to `stop`, both included."""

    def logsumexp(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`ln Σ eˣ` over `axis` (all axes by default), without overflow."""

    def long(self) -> Any:
        """The values as int64."""
    def lp_pool1d(self, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCL', *args: Any, **kwargs: Any) -> Tensor:
        """The power average of each window of a sequence; see `lp_pool2d`."""

    def lp_pool2d(self, norm_type: _float, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, ceil_mode: _bool = False, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """The power average of each window of an image: the sum of `x^norm_type` to the power `1 / norm_type`. An infinite
        `norm_type` is max pooling.
        """

    def lstsq(self, y: Tensor, rcond: _float | None = None, driver: _str | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor, Tensor]:
        """The shortest `X` that minimises `|x X - y|`, with the squared residuals, the rank of `x` and its singular values.
        `driver` is LAPACK's: `gelsy` (the default) gives no residuals, `gels` no rank, and only `gelsd` and `gelss` give singular
        values; what is not given is empty.
        """

    def lt(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def lt_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x < y`, element by element, with broadcasting?"""

    def lu(self, pivot: _bool = True, get_infos: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """The packed factors of `x = P L U` (unit lower `L` below the diagonal, `U` on and above it), the pivots (from 1, as
        LAPACK gives them) and, with `get_infos`, where the first zero pivot stands (0 if nowhere).
        """

    def lu_solve(self, lu: Tensor, pivots: Tensor, trans: _str = 'N', *args: Any, **kwargs: Any) -> Tensor:
        """The `X` of `A X = b` (`trans="N"`) or `Aᵀ X = b` (`"T"`), where `lu` and `pivots` are what `lu` gives for `A`."""

    def lu_unpack(self, y: Tensor, unpack_ludata: _bool = True, unpack_pivots: _bool = True, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
        """The `P`, `L` and `U` of `x = P L U` from what `lu` gives: the packed factors `x` and the pivots `y`. What is not asked
        for is empty.
        """

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two axes exchanged."""
    def margin_cross_entropy(self, label: Tensor, margin1: _float = 1.0, margin2: _float = 0.5, margin3: _float = 0.0, scale: _float = 64.0, return_softmax: _bool = False, reduction: _str | None = 'mean', *args: Any, **kwargs: Any) -> Any:
        """Cross entropy of cosines with a margin on the labelled class, whose angle `t` enters as
        `cos(margin1 * t + margin2) - margin3`; all are scaled by `scale` (ArcFace, CosFace, SphereFace).
        """

    def margin_ranking_loss(self, other: Tensor, label: Tensor, margin: _float = 0.0, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`max(0, -label * (input - other) + margin)`, reduced: `input` should rank above `other` where the label is 1, below
        where it is -1.
        """

    def masked_fill(self, mask: Tensor, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`value` where `mask` is true, `x` elsewhere. The value is a number or a tensor that broadcasts, usually 0-d."""

    def masked_fill_(self, mask: Tensor, value: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`value` where `mask` is true, `x` elsewhere. The value is a number or a tensor that broadcasts, usually 0-d."""

    def masked_scatter(self, mask: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with successive elements of `value` written where `mask` is true."""

    def masked_scatter_(self, mask: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with successive elements of `value` written where `mask` is true."""

    def masked_select(self, mask: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The elements of `x` where `mask` is true, in order, both broadcast together."""

    def matmul(self, y: Tensor, transpose_x: _bool = False, transpose_y: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The matrix product, with vectors and batches as in NumPy; either operand may be taken transposed."""

    def matrix_exp(self, *args: Any, **kwargs: Any) -> Tensor:
        """The exponential of square matrices: the sum of `xᵏ / k!`, by scaling and squaring."""

    def matrix_norm(self, p: Any = 'fro', axis: _int | Sequence[_int] | Tensor = [-2, -1], keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """A norm of the matrices in two axes (the last by default): `fro` (the root of the sum of squares), `nuc` (the sum of
        the singular values), 1 and -1 (the largest and smallest sum of a column's magnitudes), inf and -inf (of a row's), 2
        and -2 (the largest and smallest singular value).
        """

    def matrix_power(self, n: _int, *args: Any, **kwargs: Any) -> Tensor:
        """The `n`-th power of square matrices; a negative one is a power of the inverse."""

    def matrix_rank(self, tol: Any = None, hermitian: _bool = False, atol: Any = None, rtol: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """The ranks of matrices: how many singular values exceed `tol`, or the larger of `atol` and `rtol` times the largest one.
        `hermitian` says that the matrices are symmetric.
        """

    def matrix_transpose(self, *args: Any, **kwargs: Any) -> Tensor:
        """The last two axes exchanged."""

    def max(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The largest over `axis` (all axes by default); NaN where there is one. Equal maxima share the gradient evenly."""

    def max_pool1d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """The largest element of each window of a sequence `[batch, channels, length]`; see `max_pool2d`."""

    def max_pool2d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Any:
        """The largest element of each window of an image; the stride is the window's size unless given. With `return_mask` also
        the flat place of each maximum in its plane.
        """

    def max_pool3d(self, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, return_mask: _bool = False, ceil_mode: _bool = False, data_format: _str = 'NCDHW', *args: Any, **kwargs: Any) -> Any:
        """The largest element of each window of a volume; see `max_pool2d`."""

    def max_unpool1d(self, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCL', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `max_pool1d`: zeros with each element of `x` put back at its place in `indices`, the mask that
        `max_pool1d` returned. `output_size` settles the extents where several pool to the same.
        """

    def max_unpool2d(self, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCHW', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `max_pool2d`: zeros with each element of `x` put back at its place in `indices`, the mask that
        `max_pool2d` returned. `output_size` settles the extents where several pool to the same.
        """

    def max_unpool3d(self, indices: Tensor, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor | None = None, padding: Any = 0, data_format: _str = 'NCDHW', output_size: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `max_pool3d`: zeros with each element of `x` put back at its place in `indices`, the mask that
        `max_pool3d` returned. `output_size` settles the extents where several pool to the same.
        """

    def maximum(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The larger of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""

    def maximum_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The larger of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""

    def maxout(self, groups: _int, axis: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """The largest of every `groups` neighbouring channels on `axis`."""

    def mean(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The mean over `axis` (all axes by default), NaN over no elements. Integers and truth values give the default float."""

    def median(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, mode: _str = 'avg', *args: Any, **kwargs: Any) -> Any:
        """The middle element over `axis` (all axes by default), NaN where there is one. Between two middle elements: their mean,
        or with `mode = "min"` the smaller, and then over one axis also its position. The mean of half floats is a float32.
        """

    def min(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The smallest over `axis` (all axes by default); NaN where there is one. Equal minima share the gradient evenly."""

    def minimum(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The smaller of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""

    def minimum_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """The smaller of `x` and `y`, element by element; NaN where either is. Where they are equal each gets half the gradient."""

    def mish(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * tanh(softplus(x))`."""

    def mm(self, mat2: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The product of two matrices; more axes are batches, as in `matmul`."""

    def mod(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def mod_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def mode(self, axis: _int = -1, keepdim: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The most frequent element along `axis` (the smallest of several) and its last position."""

    def moveaxis(self, source: _int | Sequence[_int] | Tensor, destination: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Axes moved to other places; the others keep their order."""

    def movedim(self, source: _int | Sequence[_int] | Tensor, destination: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Axes moved to other places; the others keep their order."""

    def mse_loss(self, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`(input - label)^2`, reduced."""

    def msort(self, *args: Any, **kwargs: Any) -> Tensor:
        """The elements in order along the first axis."""

    def mul(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x * y`, element by element, with broadcasting."""

    def mul_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x * y`, element by element, with broadcasting."""

    def multi_label_margin_loss(self, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The hinge of every other class against each labelled one, for rows with several labels; a row's labels end at -1."""

    def multi_label_soft_margin_loss(self, label: Tensor, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """Binary cross entropy of every class's logit, averaged over the classes and then reduced."""

    def multi_margin_loss(self, label: Tensor, p: _int = 1, margin: _float = 1.0, weight: Tensor | None = None, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The hinge of every wrong class against the labelled one: the mean over classes of `max(0, margin - x[label] + x)^p`,
        times the label's `weight`.
        """

    def multigammaln(self, p: _int, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`."""

    def multigammaln_(self, p: _int, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`."""

    def multinomial(self, num_samples: _int = 1, replacement: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """Positions drawn from each row with the weights it holds, which need not add up to 1."""

    def multiplex(self, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Rows picked from several tensors: row `i` of the result is row `i` of `inputs[index[i]]`."""

    def multiply(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x * y`, element by element, with broadcasting."""

    def multiply_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x * y`, element by element, with broadcasting."""

    def mv(self, vec: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A matrix times a vector."""

    @property
    def name(self) -> _str:
        """name"""
    @name.setter
    def name(self, value: Any) -> None: ...
    def nan_to_num(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with NaN replaced by `nan` and infinities by `posinf` and `neginf`, or else by the dtype's largest and smallest
        number.
        """

    def nan_to_num_(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with NaN replaced by `nan` and infinities by `posinf` and `neginf`, or else by the dtype's largest and smallest
        number.
        """

    def nanmean(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The mean over `axis` (all axes by default) of what is not NaN; NaN where there is nothing else."""

    def nanmedian(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, mode: _str = 'avg', *args: Any, **kwargs: Any) -> Any:
        """`median` of what is not NaN; NaN where there is nothing else."""

    def nanquantile(self, q: Any, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, interpolation: _str = 'linear', *args: Any, **kwargs: Any) -> Tensor:
        """`quantile` of what is not NaN; NaN where there is nothing else."""

    def nansum(self, axis: _int | Sequence[_int] | Tensor | None = None, dtype: DTypeLike | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The sum over `axis` (all axes by default) of what is not NaN."""

    def narrow(self, axis: _int, start: Any, length: Any, *args: Any, **kwargs: Any) -> Tensor:
        """A view on `length` elements of one axis from `start`, which may count from the end."""

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
    @property
    def ndim(self) -> _int:
        """Number of axes."""
    @ndim.setter
    def ndim(self, value: Any) -> None: ...
    def ndimension(self) -> Any:
        """The number of axes."""
    def ne(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x != y`, element by element, with broadcasting?"""

    def ne_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x != y`, element by element, with broadcasting?"""

    def neg(self, *args: Any, **kwargs: Any) -> Tensor:
        """`-x`."""

    def neg_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`-x`."""

    def negative(self, *args: Any, **kwargs: Any) -> Tensor:
        """`-x`."""

    def negative_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`-x`."""

    def new_empty(self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, **named) -> Any:
        """`empty` of a size, in this tensor's dtype unless another is given."""
    def new_full(self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, **named) -> Any:
        """`full` of a size, in this tensor's dtype unless another is given."""
    def new_ones(self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, **named) -> Any:
        """`ones` of a size, in this tensor's dtype unless another is given."""
    def new_tensor(self, data, dtype=None, device=None, requires_grad=False) -> Any:
        """A tensor of data, in this tensor's dtype unless another is given."""
    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, **named) -> Any:
        """`zeros` of a size, in this tensor's dtype unless another is given."""
    def nextafter(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The next number after `x` towards `y` that the dtype can hold."""

    def nll_loss(self, label: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The negative of the log-probability that each label names, with classes on axis 1. The mean is weighted by class and
        leaves labels equal to `ignore_index` out; `weight` gets no gradient.
        """

    def nonzero(self, as_tuple: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """Positions of the elements that are not zero: one row each, or with `as_tuple` one tensor for each axis."""

    def norm(self, p: Any = None, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The norm over `axis`: of vectors over none, one, or more than two axes, of matrices over two. `p` is a number, `fro`
        (the default: the root of the sum of squares) or `nuc`.
        """

    def normal(self, std: Tensor | _float = 1.0, shape: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Normal numbers whose mean and standard deviation are numbers or tensors, which broadcast; with two numbers the shape
        must be given. Gradients flow to mean and standard deviation.
        """

    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """Normal numbers of a mean and standard deviation."""

    def normalize(self, p: _float = 2.0, axis: _int = 1, epsilon: _float = 1e-12, *args: Any, **kwargs: Any) -> Tensor:
        """`x` divided by its `p`-norm along `axis`, or by `epsilon` where that is larger."""

    def not_equal(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x != y`, element by element, with broadcasting?"""

    def not_equal_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """Is `x != y`, element by element, with broadcasting?"""

    def npair_loss(self, positive: Tensor, labels: Tensor, l2_reg: _float = 0.002, *args: Any, **kwargs: Any) -> Tensor:
        """The N-pair loss: the similarity of anchors and positives of one label against those of others, and `l2_reg` of their
        lengths.
        """

    def numel(self) -> Tensor:
        """The number of elements, as a 0-d tensor."""
    def numpy(self, /, force=False) -> numpy.ndarray:
        """A copy of the values as a NumPy array. `numpy.asarray(x)` is a view on the same memory instead: whoever writes
        through it changes the tensor, and autograd does not know of it.
        """
    @property
    def offset(self) -> _int:
        """Where the values of a view begin in the memory it shares, in bytes."""
    @offset.setter
    def offset(self, value: Any) -> None: ...
    def one_hot(self, num_classes: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """One row for each id in `x`, one at the id and zero elsewhere. Without `num_classes` it is the largest id plus one."""

    def ones_like(self, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Ones in the shape (and, unless one is given, the dtype) of `x`."""

    def ormqr(self, tau: Tensor, y: Tensor, left: _bool = True, transpose: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """`Q y` or `y Q` (`left=False`), with `Qᵀ` if `transpose`, where `Q` is the full product of the reflections in `x` and `tau`."""

    def outer(self, y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Every product of an element of `x` with one of `y`, both flattened."""

    def overlap_add(self, hop_length: _int, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of [`frame`](Tensor::frame) where frames do not overlap; where they do, they are added."""

    def pad(self, pad: Any, mode: _str = 'constant', value: _float | _bool = 0.0, data_format: _str | None = None, pad_from_left_axis: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """More elements around the borders. `pad` holds pairs (before, after):
        * one pair for each axis: from the first axis, or from the last one without `pad_from_left_axis`;
        * one pair for each spatial axis, or fewer: from the last (spatial) axis backwards, `data_format` telling where the
         spatial axes are. Only this form exists for the modes other than `constant` and for a `pad` that is a tensor.
        """

    def pairwise_distance(self, y: Tensor, p: _float = 2.0, epsilon: _float = 1e-6, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The `p`-norm of `x - y + epsilon` along the last axis."""

    def pca_lowrank(self, q: _int | None = None, center: _bool = True, niter: _int = 2, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
        """The leading `q` principal components of the rows of `x`: `svd_lowrank` of `x`, its columns centred first if `center`."""

    def pdist(self, p: _float = 2.0, *args: Any, **kwargs: Any) -> Tensor:
        """The `p`-norm distances between all pairs of different rows of `x`: rows 0 and 1, 0 and 2, … as one vector."""

    def permute(self, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The axes in another order."""

    def permute_(self, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The axes in another order."""

    @property
    def persistable(self) -> _bool:
        """Is it part of what a checkpoint keeps?"""
    @persistable.setter
    def persistable(self, value: Any) -> None: ...
    def pin_memory(self, blocking=True) -> Any:
        """The tensor in memory that a GPU can reach."""
    def pinv(self, rcond: Tensor | _float = 1e-15, hermitian: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The Moore–Penrose inverses of matrices. Singular values up to `rcond` times the largest count as zero; `hermitian`
        says that the matrices are symmetric, and reads their lower triangle.
        """

    def pixel_shuffle(self, upscale_factor: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Groups of `upscale_factor²` channels laid out as squares of pixels: `[n, c·r², h, w]` to `[n, c, h·r, w·r]`."""

    def pixel_unshuffle(self, downscale_factor: _int, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Squares of `downscale_factor²` pixels gathered into channels: the inverse of `pixel_shuffle`."""

    @property
    def place(self) -> Any:
        """Where it lives."""
    def poisson(self, *args: Any, **kwargs: Any) -> Tensor:
        """Poisson numbers whose rates are the elements of `x`."""

    def poisson_nll_loss(self, label: Tensor, log_input: _bool = True, full: _bool = False, epsilon: _float = 1e-8, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The negative log-likelihood of counts `label` under a Poisson distribution of rate `input`, or `e^input` with
        `log_input`; `full` adds Stirling's approximation of the constant.
        """

    def polar(self, angle: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Complex numbers from their lengths and their angles in radians, with broadcasting."""

    def polygamma(self, n: _int, *args: Any, **kwargs: Any) -> Tensor:
        """The `n`-th derivative of `digamma`."""

    def polygamma_(self, n: _int, *args: Any, **kwargs: Any) -> Tensor:
        """The `n`-th derivative of `digamma`."""

    def positive(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x` itself; bool is refused."""

    def pow(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`floor(x / y)` from the exact remainder, so that rounding in `x / y` cannot lift it to the next integer.
        `x` to the power `y`, element by element, with broadcasting. Integers stay integers under an integer exponent: a
        negative number as the exponent is refused, negative ones in a tensor give the fraction cut to an integer (zero, or a
        power of ±1), as in PaddlePaddle.
        """

    def pow_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`floor(x / y)` from the exact remainder, so that rounding in `x / y` cannot lift it to the next integer.
        `x` to the power `y`, element by element, with broadcasting. Integers stay integers under an integer exponent: a
        negative number as the exponent is refused, negative ones in a tensor give the fraction cut to an integer (zero, or a
        power of ±1), as in PaddlePaddle.
        """

    def prelu(self, weight: Tensor, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, `weight * x` below, with one learnt weight for all or for each channel."""

    def prod(self, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The product over `axis` (all axes by default); its gradient is exact at zeros too. bool multiplies in int64."""

    def put_along_axis(self, indices: Tensor, values: Tensor | _float, axis: _int, reduce: _str = 'assign', include_self: _bool = True, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`arr` with `values` written at `indices` along `axis`: `out[i][indices[i][j]] = values[i][j]` for `axis` 1. `reduce`
        is assign, add, mul, mean, amin or amax; without `include_self` the old element takes no part where a value lands.
        With `broadcast` the indices are matched to `arr` and the values to the indices; without, indices may be shorter.
        """

    def put_along_axis_(self, indices: Tensor, values: Tensor | _float, axis: _int, reduce: _str = 'assign', include_self: _bool = True, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`arr` with `values` written at `indices` along `axis`: `out[i][indices[i][j]] = values[i][j]` for `axis` 1. `reduce`
        is assign, add, mul, mean, amin or amax; without `include_self` the old element takes no part where a value lands.
        With `broadcast` the indices are matched to `arr` and the values to the indices; without, indices may be shorter.
        """

    def qr(self, mode: _str = 'reduced', *args: Any, **kwargs: Any) -> Any:
        """The orthonormal `Q` and the upper triangular `R` of `x = Q R`: thin (`"reduced"`), with a square `Q` (`"complete"`), or
        `R` alone (`"r"`). Only a thin `Q` has a gradient.
        """

    def quantile(self, q: Any, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, interpolation: _str = 'linear', *args: Any, **kwargs: Any) -> Tensor:
        """The value below which the share `q` of the elements over `axis` (all axes by default) lies. Several `q` give results
        along a new first axis. Between two elements `interpolation` decides: linear, lower, higher, midpoint, nearest. NaN
        where there is one.
        """

    def rad2deg(self, *args: Any, **kwargs: Any) -> Tensor:
        """Radians to degrees."""

    def rand_like(self, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Uniform numbers in [0, 1) in the shape (and, unless one is given, the dtype) of `x`."""

    def randint_like(self, low: _int = 0, high: _int | None = None, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Whole numbers in [low, high) in the shape (and, unless one is given, the dtype) of `x`."""

    def randn_like(self, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Standard normal numbers in the shape (and, unless one is given, the dtype) of `x`."""

    def random_(self, from_: _int = 0, to: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Whole numbers in [from_, to); without `to` as large as the dtype holds exactly."""

    def rank(self, *args: Any, **kwargs: Any) -> Tensor:
        """The number of axes of `x`, as a 0-d tensor."""

    def ravel(self, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""

    def ravel_(self, start_axis: _int = 0, stop_axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The axes from `start_axis` to `stop_axis` merged into one; a 0-d tensor becomes a vector of one element."""

    def real(self, *args: Any, **kwargs: Any) -> Tensor:
        """The real part of each element, as a view; a real tensor as it is."""

    def reciprocal(self, *args: Any, **kwargs: Any) -> Tensor:
        """`1 / x`."""

    def reciprocal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`1 / x`."""

    def reconstruct_from_(self, other) -> Any:
        """Becomes another tensor: its values, shape and dtype, on the same memory."""
    def reduce_as(self, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of `x` over the axes along which it is broadcast from `target`, in the shape of `target`."""

    def register_hook(self, /, hook) -> Any:
        """Calls `hook(grad)` when the gradient reaches this tensor; what it returns replaces the gradient."""
    def relu(self, *args: Any, **kwargs: Any) -> Tensor:
        """`max(x, 0)`."""

    def relu6(self, *args: Any, **kwargs: Any) -> Tensor:
        """`min(max(x, 0), 6)`."""

    def relu_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`max(x, 0)`."""

    def remainder(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def remainder_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python."""

    def renorm(self, p: _float, axis: _int, max_norm: _float, *args: Any, **kwargs: Any) -> Tensor:
        """The slices along `axis` scaled down to a `p`-norm of `max_norm` where theirs is larger."""

    def renorm_(self, p: _float, axis: _int, max_norm: _float, *args: Any, **kwargs: Any) -> Tensor:
        """The slices along `axis` scaled down to a `p`-norm of `max_norm` where theirs is larger."""

    def repeat(self, repeat_times: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor repeated `repeat_times[i]` times along each axis; the shorter of the two lists gets leading ones."""

    def repeat_interleave(self, repeats: Any, axis: _int | None = None, output_size: _int | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Each element `repeats` times in a row along an axis, or each its own number of times; without an axis along the
        flattened tensor.
        """

    @property
    def requires_grad(self) -> _bool:
        """Is a gradient wanted for it? The opposite of `stop_gradient`."""
    @requires_grad.setter
    def requires_grad(self, value: Any) -> None: ...
    def requires_grad_(self, requires_grad=True) -> Any:
        """Says whether a gradient is wanted for it."""
    def reshape(self, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent, but in
        the shape of an empty tensor it is a zero, and -1 beside it takes up the input's other extents.
        """

    def reshape_(self, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The same values under another shape. One extent may be -1 and is then worked out; 0 keeps the input's extent, but in
        the shape of an empty tensor it is a zero, and -1 beside it takes up the input's other extents.
        """

    def resize_(self, /, shape, fill_zero=False, name=None) -> Any:
        """Another shape for the same values; elements that are new are zeros, if `fill_zero` allows them."""
    def retain_grads(self, /) -> None:
        """Keeps the gradient of this intermediate result in `.grad`."""
    def reverse(self, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The elements in reverse order along the named axes."""

    def rfft(self, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform of real numbers along `axis`: the first `n / 2 + 1` coefficients, of which the others are the mirror image."""

    def rfft2(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform of real numbers along several axes (the last two axes by default)."""

    def rfftn(self, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
        """The transform of real numbers along several axes (all by default)."""

    def rms_norm(self, normalized_shape: _int | Sequence[_int] | Tensor, weight: Tensor | None = None, eps: _float = 1e-5, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """Divides by the root of the mean square over the last axes, those of `normalized_shape`, then scales by `weight`. Gives
        the result and one over the root for each row.
        """

    def rnnt_loss(self, label: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: _int = 0, fastemit_lambda: _float = 0.001, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """The loss of a recurrent transducer on log-probabilities `[batch, frames, columns, classes]`: column `u` holds what may
        follow after `u` labels, so there is one column more than there are labels. `label` has one row for each sequence, of
        which `label_lengths` count; `input_lengths` are the frames of each. The mean is taken over the batch.
        """

    def roll(self, shifts: _int | Sequence[_int] | Tensor, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The elements moved along the axes by `shifts`; those that leave at one end come back at the other. Without an axis
        the flattened tensor is rolled.
        """

    def rot90(self, k: _int = 1, axes: _int | Sequence[_int] | Tensor = [0, 1], *args: Any, **kwargs: Any) -> Tensor:
        """A quarter turn in the plane of two axes, `k` times, from the first axis towards the second."""

    def round(self, decimals: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The nearest integer, ties to even, or the nearest number with `decimals` digits after the point."""

    def round_(self, decimals: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The nearest integer, ties to even, or the nearest number with `decimals` digits after the point."""

    def rrelu(self, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above zero, below it `x` times a random slope from [lower, upper), or times their middle outside of training."""

    def rsqrt(self, *args: Any, **kwargs: Any) -> Tensor:
        """`1 / sqrt(x)`."""

    def rsqrt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`1 / sqrt(x)`."""

    def scale(self, scale: Tensor | _float = 1.0, bias: _float = 0.0, bias_after_scale: _bool = True, act: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`scale * x + bias`, or `scale * (x + bias)` if not `bias_after_scale`; then the activation named by `act`, if any.
        Integers keep their dtype: they are exact where `scale` and `bias` are whole numbers, and cut towards zero else.
        """

    def scale_(self, scale: Tensor | _float = 1.0, bias: _float = 0.0, bias_after_scale: _bool = True, act: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`scale * x + bias`, or `scale * (x + bias)` if not `bias_after_scale`; then the activation named by `act`, if any.
        Integers keep their dtype: they are exact where `scale` and `bias` are whole numbers, and cut towards zero else.
        """

    def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, training: _bool = True, backend: _str | None = None, scale: _float | None = None, enable_gqa: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`softmax(query keyᵀ · scale + mask) value` for every sequence and head: `query` is `[batch, length, heads, width]`, `key` and
        `value` may have another length and, if `heads` is a multiple of theirs, fewer heads; without the batch axis one
        sequence is meant. A bool `attn_mask` says what takes part, a float one is added to the scores; it broadcasts to
        `[batch, heads, query length, key length]`. `is_causal` lets query `i` see keys `0..=i` (on top of a mask). Scores are made
        tile by tile and never kept. A query that sees nothing gives zeros.
        """

    def scatter(self, index: Tensor, updates: Tensor, overwrite: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with rows of `updates` written at the rows `index`. Without `overwrite` those rows are cleared first and rows
        that meet are added.
        """

    def scatter_(self, index: Tensor, updates: Tensor, overwrite: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with rows of `updates` written at the rows `index`. Without `overwrite` those rows are cleared first and rows
        that meet are added.
        """

    def scatter_add(self, axis: _int, index: Tensor, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `src` added at `index` along `axis`, as `put_along_axis` with "add" and without broadcasting."""

    def scatter_add_(self, axis: _int, index: Tensor, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `src` added at `index` along `axis`, as `put_along_axis` with "add" and without broadcasting."""

    def scatter_nd(self, updates: Tensor, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Zeros of `shape`, to which `updates` are added at index tuples (the last axis of `index`)."""

    def scatter_nd_add(self, index: Tensor, updates: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `updates` added at index tuples (the last axis of `index`)."""

    def scatter_reduce(self, axis: _int, index: Tensor, src: Tensor, reduce: _str, include_self: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`x` combined with `src` at `index` along `axis`: `reduce` is sum, prod, mean, amin or amax. Without `include_self`
        the old element takes no part where a value lands.
        """

    def scatter_reduce_(self, axis: _int, index: Tensor, src: Tensor, reduce: _str, include_self: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """`x` combined with `src` at `index` along `axis`: `reduce` is sum, prod, mean, amin or amax. Without `include_self`
        the old element takes no part where a value lands.
        """

    def searchsorted(self, values: Tensor, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Where each of `values` would go in `sorted_sequence`, whose last axis is sorted: 1-D for all values, or with one row
        for each row of them. `right` (or `side = "right"`): behind equal elements. `sorter` are the positions that sort it.
        """

    def select_scatter(self, values: Tensor, axis: _int, index: _int, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with one position of an axis replaced by `values`."""

    def selu(self, scale: _float = 1.0507009873554805, alpha: _float = 1.6732632423543772, *args: Any, **kwargs: Any) -> Tensor:
        """`scale * x` above zero, `scale * alpha * (e^x - 1)` below; the defaults keep mean 0 and deviation 1 from layer to layer."""

    def sequence_mask(self, maxlen: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Tensor:
        """Rows of `maxlen` ones and zeros: as many leading ones as `x` says; `maxlen` is the largest of them by default."""

    def set_(self, /, source=None, shape=None, stride=None, offset=0, name=None) -> Any:
        """Looks at the memory of another tensor from now on, with a shape, steps and an offset in bytes."""
    def set_value(self, /, value) -> None:
        """Takes over values of the same shape; parameters may be changed so."""
    def sgn(self, *args: Any, **kwargs: Any) -> Tensor:
        """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""

    def sgn_(self, *args: Any, **kwargs: Any) -> Tensor:
        """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""

    @property
    def shape(self) -> _list[_int]:
        """Extents of the axes, as a list."""
    @shape.setter
    def shape(self, value: Any) -> None: ...
    def shard_index(self, index_num: _int, nshards: _int, shard_id: _int, ignore_value: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """Ids of a table cut into `nshards` equal parts, seen from part `shard_id`: the position inside it, or `ignore_value`
        for ids of other parts.
        """

    def short(self) -> Any:
        """The values as int16."""
    def sigmoid(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logistic function `1 / (1 + exp(-x))`."""

    def sigmoid_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logistic function `1 / (1 + exp(-x))`."""

    def sigmoid_focal_loss(self, label: Tensor, normalizer: Tensor | None = None, alpha: _float = 0.25, gamma: _float = 2.0, reduction: _str = 'sum', *args: Any, **kwargs: Any) -> Tensor:
        """The focal loss on logits: cross entropy that fades for what is already well classified, by the power `gamma`. The
        label's gradient is that of the fading alone.
        """

    def sign(self, *args: Any, **kwargs: Any) -> Tensor:
        """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""

    def sign_(self, *args: Any, **kwargs: Any) -> Tensor:
        """-1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN. Of a complex number `x / |x|`, and 0 of 0."""

    def signbit(self, *args: Any, **kwargs: Any) -> Tensor:
        """Is the sign of each element negative? True for -0.0 too."""

    def silu(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * sigmoid(x)`."""

    def sin(self, *args: Any, **kwargs: Any) -> Tensor:
        """The sine of each element, in radians."""

    def sin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The sine of each element, in radians."""

    def sinc(self, *args: Any, **kwargs: Any) -> Tensor:
        """`sin(πx) / (πx)`, and 1 at zero."""

    def sinc_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`sin(πx) / (πx)`, and 1 at zero."""

    def sinh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic sine of each element."""

    def sinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic sine of each element."""

    @property
    def size(self) -> _int:
        """Number of elements."""
    @size.setter
    def size(self, value: Any) -> None: ...
    def slice(self, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A view on `starts[i]:ends[i]` of each named axis. Negative positions count from the end, those beyond it are cut."""

    def slice_scatter(self, value: Tensor, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` with `starts[i]:ends[i]:strides[i]` of each named axis replaced by `value`, which is broadcast to the slice."""

    def slogdet(self, *args: Any, **kwargs: Any) -> Tensor:
        """The signs of the determinants and the logarithms of their absolute values, stacked: `[2, …]`. A singular matrix has
        sign 0 and logarithm -inf.
        """

    def smooth_l1_loss(self, label: Tensor, reduction: _str = 'mean', delta: _float = 1.0, is_huber: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The Huber loss: quadratic for differences up to `delta`, linear beyond; divided by `delta` without `is_huber`."""

    def soft_margin_loss(self, label: Tensor, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`ln(1 + e^(-label * input))` for labels of -1 and 1, reduced."""

    def softmax(self, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""

    def softmax_(self, axis: _int = -1, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given."""

    def softmax_with_cross_entropy(self, label: Tensor, soft_label: _bool = False, ignore_index: _int = -100, numeric_stable_mode: _bool = True, return_softmax: _bool = False, axis: _int = -1, *args: Any, **kwargs: Any) -> Any:
        """Cross entropy of logits without a reduction, the class axis kept with extent 1; with `return_softmax` also the softmax."""

    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0, *args: Any, **kwargs: Any) -> Tensor:
        """`ln(1 + e^(beta x)) / beta`, or `x` where `beta x` is above `threshold`."""

    def softshrink(self, threshold: _float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
        """`x` moved towards zero by `threshold`; 0 where it is closer than that."""

    def softsign(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x / (1 + |x|)`."""

    def solve(self, y: Tensor, left: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The `X` of `x X = y` (or of `X x = y` with `left=False`), where `y` is a matrix or a vector."""

    def sort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The elements in order along `axis`; stable, NaN last (first when descending)."""

    def split(self, num_or_sections: Any, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """Splits an axis into that many equal pieces, or into pieces of the given sizes, one of which may be -1 (what is left)."""

    def split_with_sizes(self, sizes: _int | Sequence[_int] | Tensor, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """Consecutive pieces of an axis. Their gradient is one concatenation."""

    def sqrt(self, *args: Any, **kwargs: Any) -> Tensor:
        """The square root of each element; NaN for negative real ones."""

    def sqrt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The square root of each element; NaN for negative real ones."""

    def square(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * x`; keeps integers."""

    def square_(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * x`; keeps integers."""

    def square_error_cost(self, label: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`(input - label)^2`."""

    def squeeze(self, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Drops axes of extent 1: all of them, or those named (others among the named stay)."""

    def squeeze_(self, axis: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Drops axes of extent 1: all of them, or those named (others among the named stay)."""

    def stack(self, axis: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """Joins tensors of one shape along a new axis."""

    def standard_gamma(self, *args: Any, **kwargs: Any) -> Tensor:
        """Gamma numbers whose shapes are the elements of `x`, of scale 1."""

    def stanh(self, scale_a: _float = 0.67, scale_b: _float = 1.7159, *args: Any, **kwargs: Any) -> Tensor:
        """`scale_b * tanh(scale_a * x)`."""

    def std(self, axis: _int | Sequence[_int] | Tensor | None = None, unbiased: _bool = True, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The standard deviation over `axis` (all axes by default): the root of `var`."""

    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The short-time Fourier transform of signals `[time]` or `[batch, time]`: the transforms of windows of `n_fft` points,
        `hop_length` apart (`n_fft / 4` by default), as `[…, n_fft / 2 + 1, frames]`, or `[…, n_fft, frames]` if not
        `onesided` (which complex signals are not). With `center` the signal is padded by half a window at each end.
        """

    @property
    def stop_gradient(self) -> _bool:
        """Is it excluded from gradients?"""
    @stop_gradient.setter
    def stop_gradient(self, value: Any) -> None: ...
    def stride(self, dim=None) -> Any:
        """Steps of the axes, or of one, in elements."""
    def strided_slice(self, axes: _int | Sequence[_int] | Tensor, starts: _int | Sequence[_int] | Tensor, ends: _int | Sequence[_int] | Tensor, strides: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A view on `starts[i]:ends[i]:strides[i]` of each named axis; strides may be negative."""

    @property
    def strides(self) -> _list[_int]:
        """Steps of the axes, in elements."""
    @strides.setter
    def strides(self, value: Any) -> None: ...
    def sub(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x - y`, element by element, with broadcasting."""

    def sub_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x - y`, element by element, with broadcasting."""

    def subtract(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x - y`, element by element, with broadcasting."""

    def subtract_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x - y`, element by element, with broadcasting."""

    def sum(self, axis: _int | Sequence[_int] | Tensor | None = None, dtype: DTypeLike | None = None, keepdim: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The sum over `axis` (all axes by default). bool and int32 add up in int64."""

    def svd(self, full_matrices: _bool = False, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
        """The factors of `x = U diag(S) VH`: orthonormal columns, singular values in descending order, orthonormal rows. The
        gradients of `U` and `VH` need distinct singular values and, with `full_matrices`, square matrices.
        """

    def svd_lowrank(self, q: _int | None = None, niter: _int = 2, m: Tensor | None = None, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor, Tensor]:
        """The leading `q` singular triplets `(U, S, V)` of `x - M`, by random projection with `niter` steps of subspace iteration."""

    def svdvals(self, *args: Any, **kwargs: Any) -> Tensor:
        """The singular values, in descending order."""

    def swapaxes(self, axis0: _int, axis1: _int, *args: Any, **kwargs: Any) -> Tensor:
        """Two axes exchanged."""

    def swapdims(self, axis0: _int, axis1: _int, *args: Any, **kwargs: Any) -> Tensor:
        """Two axes exchanged."""

    def swiglu(self, y: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """`silu(x) * y`; without `y` both are halves of `x` along its last axis."""

    def swish(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x * sigmoid(x)`."""

    def t(self, *args: Any, **kwargs: Any) -> Tensor:
        """The transpose of a tensor of at most two axes."""

    def t_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The transpose of a tensor of at most two axes."""

    def take(self, index: Tensor, mode: _str = 'raise', *args: Any, **kwargs: Any) -> Tensor:
        """Elements of `x` as if it were flat, in the shape of `index`. An index outside is an error with `mode` "raise"; it is
        taken modulo the size with "wrap" and moved to the nearest end with "clip".
        """

    def take_along_axis(self, indices: Tensor, axis: _int, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The elements of `arr` at `indices` along `axis`: `out[i][j] = arr[i][indices[i][j]]` for `axis` 1. With `broadcast`
        the other axes of both are matched by broadcasting; without, `indices` may be shorter there.
        """

    def take_along_dim(self, indices: Tensor, axis: _int, broadcast: _bool = True, *args: Any, **kwargs: Any) -> Tensor:
        """The elements of `arr` at `indices` along `axis`: `out[i][j] = arr[i][indices[i][j]]` for `axis` 1. With `broadcast`
        the other axes of both are matched by broadcasting; without, `indices` may be shorter there.
        """

    def tan(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tangent of each element, in radians."""

    def tan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tangent of each element, in radians."""

    def tanh(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic tangent of each element."""

    def tanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """The hyperbolic tangent of each element."""

    def tanhshrink(self, *args: Any, **kwargs: Any) -> Tensor:
        """`x - tanh(x)`."""

    def temporal_shift(self, seg_num: _int, shift_ratio: _float = 0.25, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Some channels moved one frame on and as many one frame back within each clip of `seg_num` frames; zeros come in at the
        ends. `shift_ratio` is the share of channels that move each way.
        """

    def tensor_split(self, num_or_indices: Any, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """Splits an axis into that many pieces, the first ones longer by one where it does not divide, or before each of the
        given positions.
        """

    def tensordot(self, y: Tensor, axes: Any = 2, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of products over chosen axes: the last `n` of `x` with the first `n` of `y` for a number, the same axes of both
        for a list, or those of a pair of lists. A shorter list is continued by the longer one; axes of 1 broadcast.
        """

    def thresholded_relu(self, threshold: _float = 1.0, value: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above `threshold`, else `value`."""

    def thresholded_relu_(self, threshold: _float = 1.0, value: _float = 0.0, *args: Any, **kwargs: Any) -> Tensor:
        """`x` above `threshold`, else `value`."""

    def tile(self, repeat_times: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor repeated `repeat_times[i]` times along each axis; the shorter of the two lists gets leading ones."""

    def to(self, *args, **kwargs) -> Any:
        """The tensor with another dtype, on another device, or with those of another tensor."""
    def to_dense(self) -> Any:
        """The tensor itself, which is dense."""
    def tobytes(self) -> Any:
        """The bytes of the elements, row by row."""
    def tolist(self, /) -> Any:
        """The values as nested lists of numbers."""
    def top_p_sampling(self, ps: Tensor, threshold: Tensor | None = None, topp_seed: Tensor | None = None, seed: _int = -1, k: _int = 0, mode: _str = 'truncated', return_top: _bool = False, *args: Any, **kwargs: Any) -> Any:
        """One token for each row of probabilities `x`, drawn from its most probable ones, whose sum reaches `ps`: the
        probability and the token, both `[rows, 1]`; with `return_top` also the `k` largest probabilities and their tokens.
        """

    def topk(self, k: _int, axis: _int | None = None, largest: _bool = True, sorted: _bool = True, *args: Any, **kwargs: Any) -> _tuple[Tensor, Tensor]:
        """The `k` largest (or smallest) elements along `axis` (the last by default), best first, and their positions. Of equal
        elements the first comes first.
        """

    def trace(self, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of a diagonal."""

    def transpose(self, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The axes in another order."""

    def transpose_(self, perm: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The axes in another order."""

    def trapezoid(self, x: Tensor | None = None, dx: _float | None = None, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The integral of `y` along `axis` by the trapezoidal rule, at points `x` or `dx` (1 by default) apart."""

    def triangular_solve(self, y: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The `X` of `x X = y` for triangular `x`, of which only one triangle is read."""

    def tril(self, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right."""

    def tril_(self, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The lower triangles of the last two axes, zeros above; `diagonal` moves the border to the right."""

    def triplet_margin_loss(self, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, epsilon: _float = 1e-6, swap: _bool = False, reduction: _str = 'mean', *args: Any, **kwargs: Any) -> Tensor:
        """`max(0, d(input, positive) - d(input, negative) + margin)` with the `p`-norm as distance. With `swap` the negative may
        also be measured from the positive, whichever is closer.
        """

    def triu(self, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right."""

    def triu_(self, diagonal: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """The upper triangles of the last two axes, zeros below; `diagonal` moves the border to the right."""

    def true_divide(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def true_divide_(self, y: Tensor | _float, *args: Any, **kwargs: Any) -> Tensor:
        """`x / y`, element by element, with broadcasting. Integers give the default float."""

    def trunc(self, *args: Any, **kwargs: Any) -> Tensor:
        """Each element without its fraction: rounded towards zero."""

    def trunc_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Each element without its fraction: rounded towards zero."""

    @property
    def type(self) -> Any:
        """The kind of variable."""
    def type_as(self, other) -> Any:
        """The values in the dtype of another tensor."""
    def uint8(self) -> Any:
        """The values as uint8."""
    def unbind(self, axis: _int = 0, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """Views at every position of an axis, which goes away."""

    def unflatten(self, axis: _int, shape: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """One axis taken apart into several, whose product is its extent; one of them may be -1."""

    def unfold(self, axis: _int, size: _int, step: _int, *args: Any, **kwargs: Any) -> Tensor:
        """A view on all windows of `size` elements of an axis, `step` apart; the window becomes the last axis."""

    def uniform_(self, min: _float = 0.0, max: _float = 1.0, seed: _int = 0, *args: Any, **kwargs: Any) -> Tensor:
        """Uniform numbers in [min, max). A seed other than 0 gives the same numbers every time."""

    def unique(self, return_index: _bool = False, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, dtype: DTypeLike = 'int64', sorted: _bool = True, *args: Any, **kwargs: Any) -> Any:
        """The different elements (or slices along `axis`) in ascending order; on demand the position of the first of each, the
        place of every element among them, and how often each occurs. NaNs are equal here.
        """

    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, dtype: DTypeLike = 'int64', *args: Any, **kwargs: Any) -> Any:
        """The elements (or slices along `axis`) without those equal to the one before; on demand the place of every element
        among them, and the length of each run.
        """

    def unsqueeze(self, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Inserts axes of extent 1 at the named places of the result."""

    def unsqueeze_(self, axis: _int | Sequence[_int] | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Inserts axes of extent 1 at the named places of the result."""

    def unstack(self, axis: _int = 0, num: _int | None = None, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """What is at every position of an axis, which goes away; `num`, if given, must be its extent."""

    def upsample(self, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool = False, align_mode: _int = 0, data_format: _str | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The image at another size; the same as `interpolate`."""

    def value(self) -> Any:
        """The tensor itself."""
    def vander(self, n: _int | None = None, increasing: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
        """The powers of each element as a row: `n` of them, falling unless `increasing`; `n` is the length of `x` unless given."""

    def var(self, axis: _int | Sequence[_int] | Tensor | None = None, unbiased: _bool | None = None, keepdim: _bool = False, correction: _float = 1.0, *args: Any, **kwargs: Any) -> Tensor:
        """The variance over `axis` (all axes by default): the sum of squared distances from the mean over `n - correction`.
        `unbiased` sets the correction to 1 or 0. Integers give the default float.
        """

    def vecdot(self, y: Tensor, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of the products along `axis`, with broadcasting; of complex numbers the first is conjugated."""

    def vector_norm(self, p: _float = 2.0, axis: _int | Sequence[_int] | Tensor | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """The `p`-norm of the elements over `axis` (all axes by default): `(Σ |x|^p)^(1/p)`, the largest for p = inf, the smallest
        for -inf, how many are not zero for 0.
        """

    def view(self, shape_or_dtype: Any, *args: Any, **kwargs: Any) -> Tensor:
        """The same memory under another shape (no copy is made; an error where one would be needed) or another dtype, whose
        width changes the last axis. Paddle's `view`.
        """

    def view_as(self, other: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """`x` in the shape of `other`."""

    def view_as_complex(self, *args: Any, **kwargs: Any) -> Tensor:
        """Complex numbers from a real tensor whose last axis holds two: the real and the imaginary part. A view where the memory
        allows it.
        """

    def view_as_real(self, *args: Any, **kwargs: Any) -> Tensor:
        """The real numbers of a complex tensor, with a last axis of two for the real and the imaginary part. A view."""

    def vsplit(self, num_or_indices: Any, *args: Any, **kwargs: Any) -> _list[Tensor]:
        """`tensor_split` along the first of at least two axes."""

    def where(self, x: Tensor | _float | None = None, y: Tensor | _float | None = None, *args: Any, **kwargs: Any) -> Any:
        """The elements of `x` where `condition` holds and of `y` elsewhere, all broadcast together; with the condition alone,
        the positions where it holds, one tensor for each axis.
        """

    def where_(condition, x=None, y=None, name=None) -> Any:
        """Writes into `x` the elements of `y` where the condition does not hold."""
    def zero_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Sets every element to zero."""

    def zeropad2d(self, padding: Any, data_format: _str = 'NCHW', *args: Any, **kwargs: Any) -> Tensor:
        """Zeros around the last two spatial axes: `padding` is (left, right, top, bottom)."""

    def zeros_like(self, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
        """Zeros in the shape (and, unless one is given, the dtype) of `x`."""



class Parameter(Tensor):
    """A tensor that is trained."""
    def __repr__(self, /) -> _str:
        """Return repr(self)."""
    def __str__(self, /) -> _str:
        """Return repr(self)."""
    def from_tensor(tensor, trainable=True, name=None, **kwargs) -> Any:
        """A parameter on the memory of a tensor."""
    def initialize(self, /) -> Any:
        """Nothing to do: the values were made with the parameter."""
    @property
    def need_clip(self) -> Any:
        """Does gradient clipping include it?"""
    @need_clip.setter
    def need_clip(self, value: Any) -> None: ...
    @property
    def optimize_attr(self) -> Any:
        """Settings of the parameter: `learning_rate` multiplies that of the optimizer."""
    @optimize_attr.setter
    def optimize_attr(self, value: Any) -> None: ...
    def register_hook(self, /, hook) -> Any:
        """Calls `hook(grad)` when the gradient reaches this parameter; what it returns replaces the gradient."""
    @property
    def regularizer(self) -> Any:
        """A penalty of its own, instead of the optimizer's; or None."""
    @regularizer.setter
    def regularizer(self, value: Any) -> None: ...
    @property
    def trainable(self) -> _bool:
        """Is it trained?"""
    @trainable.setter
    def trainable(self, value: Any) -> None: ...


def __getattr__(name: _str) -> Any: ...
