"""Descriptions of pictures in English and German: the multimodal task of WMT 2016."""

from __future__ import annotations

import collections
import tarfile

from ...io import Dataset
from ...io.files import check_mode, obtain
from ._words import arrays, member

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
START_MARK, END_MARK, UNK_MARK = "<s>", "<e>", "<unk>"
_COLUMNS = {"en": 0, "de": 1}


class WMT16(Dataset):
    """Pairs of sentences as numbers of words: the source, the target after its start, and the target before its end.

    Args:
        data_file: the archive `wmt16.tar.gz`.
        mode: `'train'`, `'test'` or `'val'`.
        src_dict_size: words of the source that are known, with three marks.
        trg_dict_size: words of the target that are known, with three marks.
        lang: the source, `'en'` or `'de'`.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/wmt16`.
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        src_dict_size: int = -1,
        trg_dict_size: int = -1,
        lang: str = "en",
        download: bool = True,
    ) -> None:
        self.mode = check_mode("WMT16", mode, ("train", "test", "val"))
        if lang not in _COLUMNS:
            raise ValueError(f"(InvalidArgument) WMT16: lang must be 'en' or 'de', got {lang!r}.")
        for name, size in (("src_dict_size", src_dict_size), ("trg_dict_size", trg_dict_size)):
            if size <= 0:
                raise ValueError(f"(InvalidArgument) WMT16: {name} must be positive, got {size}.")
        self.lang, self._other = lang, "de" if lang == "en" else "en"
        most = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}
        self.src_dict_size = min(src_dict_size, most[lang])
        self.trg_dict_size = min(trg_dict_size, most[self._other])
        self.data_file = obtain("WMT16", "data_file", data_file, DATA_URL, DATA_MD5, "wmt16", download)
        with tarfile.open(self.data_file) as archive:
            pairs = _pairs(archive, "train")
            self.src_dict = _dictionary(pairs, _COLUMNS[lang], self.src_dict_size)
            self.trg_dict = _dictionary(pairs, _COLUMNS[self._other], self.trg_dict_size)
            pairs = pairs if self.mode == "train" else _pairs(archive, self.mode)
        start, end, unknown = (self.src_dict[mark] for mark in (START_MARK, END_MARK, UNK_MARK))
        self.src_ids, self.trg_ids, self.trg_ids_next = [], [], []
        for pair in pairs:
            source, target = (
                [words.get(word, unknown) for word in pair[_COLUMNS[language]].split()]
                for words, language in ((self.src_dict, lang), (self.trg_dict, self._other))
            )
            self.src_ids.append([start, *source, end])
            self.trg_ids.append([start, *target])
            self.trg_ids_next.append([*target, end])

    def __getitem__(self, idx: int):
        return arrays(self.src_ids[idx], self.trg_ids[idx], self.trg_ids_next[idx])

    def __len__(self) -> int:
        return len(self.src_ids)

    def get_dict(self, lang: str, reverse: bool = False) -> dict:
        """The numbers of the words of a language, or with `reverse` the words of the numbers."""
        words = self.src_dict if lang == self.lang else self.trg_dict
        return {v: k for k, v in words.items()} if reverse else words


def _pairs(archive: tarfile.TarFile, part: str) -> list[list[str]]:
    lines = (line.decode().strip().split("\t") for line in member(archive, f"wmt16/{part}", "WMT16"))
    return [pair for pair in lines if len(pair) == 2]


def _dictionary(pairs: list[list[str]], column: int, size: int) -> dict[str, int]:
    counts = collections.Counter(word for pair in pairs for word in pair[column].split())
    words = [START_MARK, END_MARK, UNK_MARK, *(word for word, _ in counts.most_common(max(size - 3, 0)))]
    return {word: i for i, word in enumerate(words)}
