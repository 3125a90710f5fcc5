"""Photographs of flowers."""

from __future__ import annotations

from ... import _core
from ...io import Dataset
from ...io.files import check_backend, check_mode, obtain, pillow

DATA_URL = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
LABEL_URL = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
SETID_URL = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"

# As in Paddle, the larger part, which the authors named the test part, is the one to train with.
MODE_FLAG_MAP = {"train": "tstid", "test": "trnid", "valid": "valid"}


class Flowers(Dataset):
    """Photographs of 102 kinds of flowers in different sizes, with labels from 1 to 102, int64 of shape `[1]`.

    Args:
        data_file: the archive of images, which is unpacked beside itself the first time.
        label_file: the labels, a MATLAB file.
        setid_file: which image belongs to which part, a MATLAB file.
        mode: `'train'`, `'valid'` or `'test'`.
        transform: what is done to an image.
        download: download files that are not given, unless they lie in `~/.cache/paddle/dataset/flowers`.
        backend: `'pil'` gives Pillow's images, `'cv2'` arrays of float32; None means what `set_image_backend` said.
    """

    def __init__(
        self,
        data_file: str | None = None,
        label_file: str | None = None,
        setid_file: str | None = None,
        mode: str = "train",
        transform=None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        mode = check_mode("Flowers", mode, tuple(MODE_FLAG_MAP))
        self.backend = check_backend("Flowers", backend)
        self.transform = transform
        files = [
            obtain("Flowers", name, path, url, md5, "flowers", download)
            for name, path, url, md5 in (
                ("data_file", data_file, DATA_URL, DATA_MD5),
                ("label_file", label_file, LABEL_URL, LABEL_MD5),
                ("setid_file", setid_file, SETID_URL, SETID_MD5),
            )
        ]
        self._files = _core._flowers(*files, mode)

    def __getitem__(self, idx: int):
        import numpy as np

        path, label = self._files[idx]
        image = pillow("Flowers").open(path)
        if self.backend == "cv2":
            image = np.array(image)
        if self.transform is not None:
            image = self.transform(image)
        if self.backend == "cv2":
            image = image.astype(_core.get_default_dtype())
        return image, np.array([label], "int64")

    def __len__(self) -> int:
        return len(self._files)
