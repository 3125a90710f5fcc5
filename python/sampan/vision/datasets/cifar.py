"""Small colour photographs."""

from __future__ import annotations

import functools

from ... import _core
from ...io.files import check_backend, check_mode, obtain
from ._in_memory import InMemoryImages

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"

MODE_FLAG_MAP = {"train10": "data_batch", "test10": "test_batch", "train100": "train", "test100": "test"}


class Cifar10(InMemoryImages):
    """Photographs of 32 by 32 in 10 classes: 50,000 to train and 10,000 to test. A label is int64 without axes.

    Args:
        data_file: the archive of the Python version or of the binary version.
        mode: `'train'` or `'test'`.
        transform: what is done to an image.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/cifar`.
        backend: `'pil'` gives Pillow's images, `'cv2'` arrays of float32; None means what `set_image_backend` said.
    """

    _COUNT = 10

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform=None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        what = type(self).__name__
        self.mode = check_mode(what, mode)
        backend = check_backend(what, backend)
        self._init_url_md5_flag()
        self.data_file = obtain(what, "data_file", data_file, self.data_url, self.data_md5, "cifar", download)
        self._keep(_core._cifar(self.data_file, self.mode, self._COUNT), transform, backend)

    def _init_url_md5_flag(self) -> None:
        self.data_url, self.data_md5 = CIFAR10_URL, CIFAR10_MD5
        self.flag = MODE_FLAG_MAP[self.mode + "10"]

    @property
    def data(self) -> list:
        """All samples: the bytes of an image, channel after channel, and its label."""
        if "data" not in self._own:
            labels = self._set.labels()
            rows = (self._image(i).transpose(2, 0, 1).reshape(-1) for i in range(len(labels)))
            self._own["data"] = list(zip(rows, labels))
        return self._own["data"]

    @data.setter
    def data(self, data) -> None:
        self._own["data"] = data

    def __getitem__(self, idx: int):
        import numpy as np

        index = self._place(idx)
        if "data" in self._own:
            image, label = self._own["data"][index]
            image = np.reshape(image, [3, 32, 32]).transpose(1, 2, 0)
        else:
            image, label = self._image(index), self._classes[index]
        return self._finished(image), np.array(label).astype("int64")

    @functools.cached_property
    def _classes(self) -> list[int]:
        return self._set.labels()

    def __len__(self) -> int:
        return len(self._own["data"]) if "data" in self._own else len(self._set)


class Cifar100(Cifar10):
    """Photographs of 32 by 32 in 100 classes; otherwise like `Cifar10`."""

    _COUNT = 100

    def _init_url_md5_flag(self) -> None:
        self.data_url, self.data_md5 = CIFAR100_URL, CIFAR100_MD5
        self.flag = MODE_FLAG_MAP[self.mode + "100"]
