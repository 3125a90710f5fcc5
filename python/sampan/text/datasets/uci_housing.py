"""Prices of houses."""

from __future__ import annotations

from ... import _core
from ...io import Dataset
from ...io.files import check_mode, obtain

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]


class UCIHousing(Dataset):
    """Houses in Boston: 13 features, each less its mean and divided by its range, and the price `[1]`. The first 80 % of
    the rows are the training part.

    Args:
        data_file: a file of numbers between blanks, 14 to a row.
        mode: `'train'` or `'test'`.
        download: download the file unless it lies in `~/.cache/paddle/dataset/uci_housing`.
    """

    def __init__(self, data_file: str | None = None, mode: str = "train", download: bool = True) -> None:
        self.mode = check_mode("UCIHousing", mode)
        self.data_file = obtain("UCIHousing", "data_file", data_file, URL, MD5, "uci_housing", download)
        self._houses = _core._uci_housing(self.data_file, self.mode)
        self.dtype = _core.get_default_dtype()

    def __getitem__(self, idx: int):
        size = len(self)
        if not -size <= idx < size:
            raise IndexError(f"(OutOfRange) UCIHousing has {size} samples, there is none at index {idx}.")
        return tuple(field.numpy().astype(self.dtype) for field in self._houses.get(idx % size))

    def __len__(self) -> int:
        return len(self._houses)

    def _rust(self):
        return (self._houses, None) if self.dtype == "float32" else None
