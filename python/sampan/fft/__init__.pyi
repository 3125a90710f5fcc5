# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry

def fft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The discrete Fourier transform along `axis`, of `n` points: the input is cut off or filled up with zeros."""


def fft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The discrete Fourier transform along several axes (the last two axes by default)."""


def fftfreq(n: _int, d: _float = 1.0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Where the coefficients of a transform of `n` points lie, in cycles per unit of a spacing of `d`: zero, the positive
    ones, then the negative ones.
    """


def fftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The discrete Fourier transform along several axes (all by default)."""


def fftshift(x: Tensor, axes: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The coefficient of frequency zero brought to the middle of each axis (all by default): the halves change places."""


def hfft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform along `axis` of a signal of which the second half is the mirror image of the first: `n` real numbers."""


def hfft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform along several axes (the last two axes by default) of a signal whose second half, along the last of them, is
    the mirror image of the first.
    """


def hfftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform along several axes (all by default) of a signal whose second half, along the last of them, is
    the mirror image of the first.
    """


def ifft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `fft`."""


def ifft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `fft2`, along several axes (the last two axes by default)."""


def ifftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `fftn`, along several axes (all by default)."""


def ifftshift(x: Tensor, axes: _int | Sequence[_int] | Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `fftshift`."""


def ihfft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `hfft`: the first half of a signal whose transform is real."""


def ihfft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `hfft2`, along several axes (the last two axes by default)."""


def ihfftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `hfftn`, along several axes (all by default)."""


def irfft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `rfft`: `n` real numbers, `2 * (m - 1)` by default, from the first half of their coefficients."""


def irfft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `rfft2`, along several axes (the last two axes by default)."""


def irfftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of `rfftn`, along several axes (all by default)."""


def rfft(x: Tensor, n: _int | None = None, axis: _int = -1, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform of real numbers along `axis`: the first `n / 2 + 1` coefficients, of which the others are the mirror image."""


def rfft2(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = [-2, -1], norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform of real numbers along several axes (the last two axes by default)."""


def rfftfreq(n: _int, d: _float = 1.0, dtype: DTypeLike | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The frequencies that are not negative: those of the coefficients that `rfft` gives."""


def rfftn(x: Tensor, s: _int | Sequence[_int] | Tensor | None = None, axes: _int | Sequence[_int] | Tensor | None = None, norm: _str = 'backward', *args: Any, **kwargs: Any) -> Tensor:
    """The transform of real numbers along several axes (all by default)."""


__all__ = ['fft', 'fft2', 'fftfreq', 'fftn', 'fftshift', 'hfft', 'hfft2', 'hfftn', 'ifft', 'ifft2', 'ifftn', 'ifftshift', 'ihfft', 'ihfft2', 'ihfftn', 'irfft', 'irfft2', 'irfftn', 'rfft', 'rfft2', 'rfftfreq', 'rfftn']
