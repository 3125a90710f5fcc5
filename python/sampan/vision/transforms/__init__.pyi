# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype


from sampan.vision.transforms.transforms import BuiltinTransform

from . import functional as functional, transforms as transforms

from .functional import *

from .transforms import *

class BrightnessTransform(BuiltinTransform):
    """A random brightness."""

    def __init__(self, value: Any, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class CenterCrop(BuiltinTransform):
    """The middle part: `size` is `(height, width)` or one number for both. See [`center_crop`]."""

    def __init__(self, size: _int | Sequence[_int] | Tensor, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class ColorJitter(BuiltinTransform):
    """Random brightness, contrast, saturation and hue, in a random order. Each argument is that of the transform of its
    name, [`BrightnessTransform`] and so on; 0 leaves that one out.
    """

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class ContrastTransform(BuiltinTransform):
    """A random contrast."""

    def __init__(self, value: Any, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Grayscale(BuiltinTransform):
    """The picture in grey, with 1 channel or 3 alike."""

    def __init__(self, num_output_channels: _int = 1, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class HueTransform(BuiltinTransform):
    """A random hue."""

    def __init__(self, value: Any, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Normalize(BuiltinTransform):
    """`(img - mean) / std`, channel by channel, see [`normalize`]."""

    def __init__(self, mean: Any = 0.0, std: Any = 1.0, data_format: _str = 'CHW', to_rgb: _bool = False, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Pad(BuiltinTransform):
    """A border, see [`pad`]."""

    def __init__(self, padding: _int | Sequence[_int] | Tensor, fill: Any = 0, padding_mode: _str = 'constant', keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomAffine(BuiltinTransform):
    """[`affine`] with random arguments: the angle from `degrees` (a range, or one number for `±`), the shift up to the
    shares `translate` of width and height, the scale from the range `scale`, the shear from `shear` (one number for
    `±` along x, two for a range along x, four for ranges along x and y).
    """

    def __init__(self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None, interpolation: _str = 'nearest', fill: Any = 0, center: Any = None, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomCrop(BuiltinTransform):
    """A part of `size` at a random place, after [`pad`] by `padding`. With `pad_if_needed` a smaller picture is first
    padded on both sides by what is missing; without, it is an error.
    """

    def __init__(self, size: _int | Sequence[_int] | Tensor, padding: _int | Sequence[_int] | Tensor | None = None, pad_if_needed: _bool = False, fill: Any = 0, padding_mode: _str = 'constant', keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomErasing(BuiltinTransform):
    """With the probability `prob`, a random part [`erase`]d: its share of the area from `scale`, its height over its
    width from `ratio`. `value` is one number, one for each channel, or `"random"` for noise. After ten parts that do
    not fit, the picture stays.
    """

    def __init__(self, prob: _float = 0.5, scale: Any = [0.02, 0.33], ratio: Any = [0.3, 3.3], value: Any = 0, inplace: _bool = False, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomHorizontalFlip(BuiltinTransform):
    """[`hflip`] with the probability `prob`."""

    def __init__(self, prob: _float = 0.5, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomPerspective(BuiltinTransform):
    """[`perspective`] with the probability `prob`: each corner moves inwards by up to the share `distortion_scale` of
    half the width and height.
    """

    def __init__(self, prob: _float = 0.5, distortion_scale: _float = 0.5, interpolation: _str = 'nearest', fill: Any = 0, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomResizedCrop(BuiltinTransform):
    """A random part of the picture, resized to `size`. The part's share of the area lies in `scale`, its width over its
    height in `ratio`; after ten parts that do not fit, it is the largest middle part whose ratio does.
    """

    def __init__(self, size: _int | Sequence[_int] | Tensor, scale: Any = [0.08, 1.0], ratio: Any = [0.75, 1.3333333333333333], interpolation: _str = 'bilinear', keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomRotation(BuiltinTransform):
    """[`rotate`] by an angle from `degrees`: a range, or one number for `±`."""

    def __init__(self, degrees: Any, interpolation: _str = 'nearest', expand: _bool = False, center: Any = None, fill: Any = 0, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RandomVerticalFlip(BuiltinTransform):
    """[`vflip`] with the probability `prob`."""

    def __init__(self, prob: _float = 0.5, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Resize(BuiltinTransform):
    """Another size: `(height, width)`, or one number for the shorter side. See [`resize`]."""

    def __init__(self, size: _int | Sequence[_int] | Tensor, interpolation: _str = 'bilinear', keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class SaturationTransform(BuiltinTransform):
    """A random saturation."""

    def __init__(self, value: Any, keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class ToTensor(BuiltinTransform):
    """The picture as a network takes it, see [`to_tensor`]."""

    def __init__(self, data_format: _str = 'CHW', keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Transpose(BuiltinTransform):
    """The axes in another order; `[H, W]` is taken as `[H, W, 1]`."""

    def __init__(self, order: _int | Sequence[_int] | Tensor = [2, 0, 1], keys: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


def adjust_brightness(img, brightness_factor) -> Any:
    """A function of the core's on whatever Python calls an image."""


def adjust_contrast(img, contrast_factor) -> Any:
    """A function of the core's on whatever Python calls an image."""


def adjust_hue(img, hue_factor) -> Any:
    """A function of the core's on whatever Python calls an image."""


def affine(img, angle, translate, scale, shear, interpolation='nearest', fill=0, center=None) -> Any:
    """A function of the core's on whatever Python calls an image."""


def center_crop(img, output_size) -> Any:
    """A function of the core's on whatever Python calls an image."""


def crop(img, top, left, height, width) -> Any:
    """A function of the core's on whatever Python calls an image."""


def erase(img, i, j, h, w, v, inplace=False) -> Any:
    """A function of the core's on whatever Python calls an image."""


def hflip(img) -> Any:
    """A function of the core's on whatever Python calls an image."""


def normalize(img, mean, std, data_format='CHW', to_rgb=False) -> Any:
    """A function of the core's on whatever Python calls an image."""


def pad(img, padding, fill=0, padding_mode='constant') -> Any:
    """A function of the core's on whatever Python calls an image."""


def perspective(img, startpoints, endpoints, interpolation='nearest', fill=0) -> Any:
    """A function of the core's on whatever Python calls an image."""


def resize(img, size, interpolation='bilinear') -> Any:
    """A function of the core's on whatever Python calls an image."""


def rotate(img, angle, interpolation='nearest', expand=False, center=None, fill=0) -> Any:
    """A function of the core's on whatever Python calls an image."""


def to_grayscale(img, num_output_channels=1) -> Any:
    """A function of the core's on whatever Python calls an image."""


def to_tensor(pic, data_format='CHW') -> Any:
    """A function of the core's on whatever Python calls an image."""


def vflip(img) -> Any:
    """A function of the core's on whatever Python calls an image."""


__all__ = ['BaseTransform', 'BrightnessTransform', 'CenterCrop', 'ColorJitter', 'Compose', 'ContrastTransform', 'Grayscale', 'HueTransform', 'Normalize', 'Pad', 'RandomAffine', 'RandomCrop', 'RandomErasing', 'RandomHorizontalFlip', 'RandomPerspective', 'RandomResizedCrop', 'RandomRotation', 'RandomVerticalFlip', 'Resize', 'SaturationTransform', 'ToTensor', 'Transpose', 'adjust_brightness', 'adjust_contrast', 'adjust_hue', 'affine', 'center_crop', 'crop', 'erase', 'functional', 'hflip', 'normalize', 'pad', 'perspective', 'resize', 'rotate', 'to_grayscale', 'to_tensor', 'transforms', 'vflip']
