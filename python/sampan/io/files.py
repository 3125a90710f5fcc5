"""Where the files of data sets are found, and the arguments that all sets share."""

from __future__ import annotations

import hashlib
import os

from .. import _core


def check_mode(what: str, mode: str, modes: tuple[str, ...] = ("train", "test")) -> str:
    """The mode in small letters."""
    if not isinstance(mode, str) or mode.lower() not in modes:
        raise ValueError(f"(InvalidArgument) {what}: mode must be one of {list(modes)}, got {mode!r}.")
    return mode.lower()


def check_backend(what: str, backend: str | None) -> str:
    """The backend, or the one that `set_image_backend` set."""
    if backend is None:
        from ..vision.image import get_image_backend

        backend = get_image_backend()
    if backend not in ("pil", "cv2"):
        raise ValueError(f"(InvalidArgument) {what}: backend must be 'pil' or 'cv2', got {backend!r}.")
    return backend


def pillow(what: str):
    """Pillow's `Image`, imported when first needed."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            f"(Unavailable) {what}: the backend 'pil' needs Pillow. Hint: pip install pillow, or backend='cv2'."
        ) from None
    return Image


def folders(name: str) -> list[str]:
    """Where the files of a data set may lie: where Paddle puts them, and where this package does."""
    paddle = os.path.join(os.path.expanduser("~"), ".cache", "paddle", "dataset", name)
    return [paddle, os.path.join(_core._data_home(), name)]


def cached(url: str, name: str) -> str | None:
    """The file behind an address, if it lies in a cache."""
    paths = (os.path.join(folder, url.rpartition("/")[2]) for folder in folders(name))
    return next((path for path in paths if os.path.isfile(path)), None)


def existing(what: str, argument: str, path) -> str:
    """A path that was given."""
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"(NotFound) {what}: {argument}={path!r} does not exist.")
    return path


def _md5(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def obtain(what: str, argument: str, path, url: str, md5: str, name: str, download: bool, check: bool = True) -> str:
    """The file of a data set: the one that was given, the one in a cache, or a download. With `check` a cached file must
    have the md5 sum."""
    if path is not None:
        return existing(what, argument, path)
    found = cached(url, name)
    if found is not None and (not check or _md5(found) == md5):
        return found
    if not download:
        raise ValueError(f"(InvalidArgument) {what}: {argument} is not set and download=False.")
    try:
        return os.fspath(_core._download(url, folders(name)[1], md5))
    except Exception as error:
        spoilt = f" The file {found} is there, but its md5 sum is not {md5}." if found else ""
        raise RuntimeError(
            f"(Unavailable) {what}: {argument} is not set.{spoilt} {error} Or set {argument}, or put the file into "
            f"{folders(name)[0]}."
        ) from None
