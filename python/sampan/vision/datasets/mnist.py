"""Handwritten digits, and pieces of clothing in the same format."""

from __future__ import annotations

import functools

from ... import _core
from ...io.files import cached, check_backend, check_mode, existing, obtain
from ._in_memory import InMemoryImages


class MNIST(InMemoryImages):
    """Handwritten digits: images of 28 by 28 with labels from 0 to 9, int64 of shape `[1]`.

    Args:
        image_path: the file of images in the idx format, compressed with gzip or not.
        label_path: the file of labels.
        mode: `'train'` (60,000 images) or `'test'` (10,000).
        transform: what is done to an image.
        download: Paddle's permission to download; MNIST needs none.
        backend: `'pil'` gives Pillow's images, `'cv2'` arrays of float32; None means what `set_image_backend` said.

    Without paths the files in `~/.cache/paddle/dataset/mnist` are taken, and where there are none the digits that are
    part of this package.

    >>> import sampan
    >>> digits = sampan.vision.datasets.MNIST(mode="test", backend="cv2")
    >>> image, label = digits[0]
    >>> len(digits), image.shape, label
    (10000, (28, 28), array([7]))
    """

    NAME = "mnist"
    URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

    def __init__(
        self,
        image_path: str | None = None,
        label_path: str | None = None,
        mode: str = "train",
        transform=None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        what = type(self).__name__
        self.mode = check_mode(what, mode)
        backend = check_backend(what, backend)
        self.image_path, self.label_path = self._paths(image_path, label_path, download)
        self._keep(self._open(), transform, backend)

    def _remote(self, part: str) -> tuple[str, str]:
        name = f"{self.mode.upper()}_{part}_"
        return getattr(self, name + "URL"), getattr(self, name + "MD5")

    def _paths(self, image_path, label_path, download: bool):
        what = type(self).__name__
        if image_path is None and label_path is None:
            found = [cached(self._remote(part)[0], self.NAME) for part in ("IMAGE", "LABEL")]
            # Files that were cut or compressed anew are welcome: every length in them is checked.
            return found if all(found) else (None, None)
        for name, path in (("image_path", image_path), ("label_path", label_path)):
            if path is None:
                raise ValueError(f"(InvalidArgument) {what}: set image_path and label_path; {name} is missing.")
        return existing(what, "image_path", image_path), existing(what, "label_path", label_path)

    def _open(self) -> _core.ImageSet:
        return _core._mnist(self.mode, (self.image_path, self.label_path) if self.image_path else None)

    def _array(self, image):
        return image.astype("float32")

    @property
    def images(self) -> list:
        """All images, as rows of float32."""
        if "images" not in self._own:
            self._own["images"] = [self._array(self._image(i)).reshape(-1) for i in range(len(self._set))]
        return self._own["images"]

    @images.setter
    def images(self, images) -> None:
        self._own["images"] = images

    @property
    def labels(self) -> list:
        """All labels, int64 of shape `[1]`."""
        if "labels" not in self._own:
            self._own["labels"] = list(self._classes.copy())
        return self._own["labels"]

    @labels.setter
    def labels(self, labels) -> None:
        self._own["labels"] = labels

    @functools.cached_property
    def _classes(self):
        import numpy as np

        return np.array(self._set.labels(), "int64").reshape(-1, 1)

    def __getitem__(self, idx: int):
        index = self._place(idx)
        image = self._own["images"][index].reshape(28, 28) if "images" in self._own else self._image(index)
        return self._finished(image), self._own.get("labels", self._classes)[index].astype("int64")

    def __len__(self) -> int:
        return len(self._own["labels"]) if "labels" in self._own else len(self._set)


class FashionMNIST(MNIST):
    """Pieces of clothing in the format of MNIST: images of 28 by 28 with labels from 0 to 9, int64 of shape `[1]`. It is
    downloaded unless it lies in `~/.cache/paddle/dataset/fashion-mnist`."""

    NAME = "fashion-mnist"
    URL_PREFIX = "https://dataset.bj.bcebos.com/fashion_mnist/"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_IMAGE_MD5 = "bef4ecab320f06d8554ea6380940ec79"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TEST_LABEL_MD5 = "bb300cfdad3c16e7a12a480ee83cd310"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_IMAGE_MD5 = "8d4fb7e6c68d591d4c3dfef9ec88bf0d"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TRAIN_LABEL_MD5 = "25c81989df183df01b3e8a0aad5dffbe"

    def _paths(self, image_path, label_path, download: bool):
        parts = (("image_path", image_path, "IMAGE"), ("label_path", label_path, "LABEL"))
        what = type(self).__name__
        return [obtain(what, n, path, *self._remote(part), self.NAME, download, check=False) for n, path, part in parts]

    def _open(self) -> _core.ImageSet:
        return _core._fashion_mnist((self.image_path, self.label_path))
