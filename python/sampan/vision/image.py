"""Pictures from files, in the form that the chosen backend gives them."""

from __future__ import annotations

from .. import _core

_BACKENDS = ("pil", "cv2", "tensor")
_image_backend = "pil"


def _check(backend: str) -> str:
    if backend not in _BACKENDS:
        raise ValueError(f"(InvalidArgument) Expected backend are one of {list(_BACKENDS)}, but got {backend}")
    return backend


def set_image_backend(backend: str) -> None:
    """Says how `image_load` and the folder datasets give pictures: `'pil'`, `'cv2'` or `'tensor'`."""
    global _image_backend
    _image_backend = _check(backend)


def get_image_backend() -> str:
    """How pictures are given; `'pil'` at first.

    >>> import sampan
    >>> sampan.vision.get_image_backend()
    'pil'
    """
    return _image_backend


def image_load(path, backend: str | None = None):
    """The picture in a file: with `'pil'` Pillow's, opened and not yet read; with `'cv2'` a NumPy array of bytes
    `[H, W, 3]` in the order blue, green, red; with `'tensor'` a tensor of bytes `[3, H, W]`. The last two need no other
    package."""
    backend = _check(_image_backend if backend is None else backend)
    if backend == "pil":
        try:
            from PIL import Image
        except ImportError:
            hint = "Hint: pip install pillow, or image_load(path, backend='tensor')."
            raise ImportError(f"(Unavailable) image_load: the backend 'pil' needs Pillow. {hint}") from None
        return Image.open(path)
    picture = _core._image_load(str(path), backend)
    return picture.numpy() if backend == "cv2" else picture
