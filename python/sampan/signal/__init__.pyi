# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry

def frame(x: Tensor, frame_length: _int, hop_length: _int, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The pieces of `frame_length` elements, `hop_length` apart, that an axis is cut into; they may overlap. With the last
    axis (-1) the result is `[…, frame_length, frames]`, with the first (0) it is `[frames, frame_length, …]`.
    """


def istft(x: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool = True, length: _int | None = None, return_complex: _bool = False, *args: Any, **kwargs: Any) -> Tensor:
    """The signal whose short-time Fourier transform `x` is, or comes closest to it: the frames are transformed back,
    weighted by the window, added, and divided by the sum of the squared windows, which must nowhere be zero.
    """


def overlap_add(x: Tensor, hop_length: _int, axis: _int = -1, *args: Any, **kwargs: Any) -> Tensor:
    """The inverse of [`frame`](Tensor::frame) where frames do not overlap; where they do, they are added."""


def stft(x: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """The short-time Fourier transform of signals `[time]` or `[batch, time]`: the transforms of windows of `n_fft` points,
    `hop_length` apart (`n_fft / 4` by default), as `[…, n_fft / 2 + 1, frames]`, or `[…, n_fft, frames]` if not
    `onesided` (which complex signals are not). With `center` the signal is padded by half a window at each end.
    """


__all__ = ['frame', 'istft', 'overlap_add', 'stft']
