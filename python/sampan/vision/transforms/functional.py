"""Functions on pictures: Pillow's, NumPy arrays `[H, W, C]` or tensors `[C, H, W]`; the result is of the same kind."""

from __future__ import annotations

import sys

from ... import _core, _registry

_FUNCTIONS = {**_registry.plain_functions("vision.transforms.functional"), **_registry.plain_functions("vision.transforms")}
globals().update({name: _core.PictureFunction(function) for name, function in _FUNCTIONS.items()})

__all__ = sorted(_FUNCTIONS)


def _is_pil_image(img) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(img, module.Image)


def _is_tensor_image(img) -> bool:
    return isinstance(img, _core.Tensor)


def _is_numpy_image(img) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(img, numpy.ndarray) and img.ndim in (2, 3)


def _get_image_size(img) -> tuple[int, int]:
    """Width and height."""
    if _is_pil_image(img):
        return img.size
    height, width = img.shape[-2:] if _is_tensor_image(img) else img.shape[:2]
    return width, height
