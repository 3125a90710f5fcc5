"""Photographs with the class of every pixel."""

from __future__ import annotations

import io
import os
import tarfile

from ... import _core
from ...io import Dataset
from ...io.files import check_backend, check_mode, obtain, pillow

VOC_URL = "https://dataset.bj.bcebos.com/voc/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
SET_FILE = "VOCdevkit/VOC2012/ImageSets/Segmentation/{}.txt"
DATA_FILE = "VOCdevkit/VOC2012/JPEGImages/{}.jpg"
LABEL_FILE = "VOCdevkit/VOC2012/SegmentationClass/{}.png"
CACHE_DIR = "voc2012"
MODE_FLAG_MAP = {"train": "trainval", "test": "train", "valid": "val"}


class VOC2012(Dataset):
    """Photographs of different sizes and, as the label, a picture of the class of every pixel.

    Args:
        data_file: the archive; it is read where it lies and not unpacked.
        mode: `'train'` (the parts `train` and `val`), `'valid'` or `'test'` (the part `train`), as in Paddle.
        transform: what is done to a photograph.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/voc2012`.
        backend: `'pil'` gives Pillow's images, `'cv2'` arrays of float32; None means what `set_image_backend` said.
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform=None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        self.flag = MODE_FLAG_MAP[check_mode("VOC2012", mode, tuple(MODE_FLAG_MAP))]
        self.backend = check_backend("VOC2012", backend)
        self.data_file = obtain("VOC2012", "data_file", data_file, VOC_URL, VOC_MD5, CACHE_DIR, download)
        self.transform = transform
        self.dtype = _core.get_default_dtype()
        self._open: tuple = (None, None)
        archive = self._archive()
        self.name2mem = {member.name: member for member in archive.getmembers()}
        names = self._read(SET_FILE.format(self.flag)).decode().split()
        self.data = [DATA_FILE.format(name) for name in names]
        self.labels = [LABEL_FILE.format(name) for name in names]

    def _archive(self) -> tarfile.TarFile:
        # Processes must not share a file: each would move the place where the other reads.
        process, archive = self._open
        if process != os.getpid():
            archive = tarfile.open(self.data_file)
            self._open = os.getpid(), archive
        return archive

    def _read(self, name: str) -> bytes:
        member = self.name2mem.get(name)
        if member is None:
            raise FileNotFoundError(f"(NotFound) VOC2012: {self.data_file} holds no file {name!r}.")
        return self._archive().extractfile(member).read()

    def __getstate__(self):
        return {**self.__dict__, "_open": (None, None)}

    def __getitem__(self, idx: int):
        open_image = pillow("VOC2012").open
        data, label = (open_image(io.BytesIO(self._read(names[idx]))) for names in (self.data, self.labels))
        if self.backend == "cv2":
            import numpy as np

            data, label = np.array(data), np.array(label)
        if self.transform is not None:
            data = self.transform(data)
        if self.backend == "cv2":
            return data.astype(self.dtype), label.astype(self.dtype)
        return data, label

    def __len__(self) -> int:
        return len(self.data)
