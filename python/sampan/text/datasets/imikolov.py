"""Sentences of newspapers: the Penn Treebank as T. Mikolov prepared it."""

from __future__ import annotations

import collections
import tarfile

from ...io import Dataset
from ...io.files import check_mode, obtain
from ._words import arrays, frequent, member

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"


class Imikolov(Dataset):
    """Sentences as numbers of words: windows of words (`'NGRAM'`), or a sentence and the same shifted by one (`'SEQ'`).

    Args:
        data_file: the archive `simple-examples.tgz`.
        data_type: `'NGRAM'` or `'SEQ'`.
        window_size: words in a window; with `'SEQ'` the longest sentence that is taken, if positive.
        mode: `'train'` or `'test'`.
        min_word_freq: words that come at most so often count as unknown.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/imikolov`.
    """

    def __init__(
        self,
        data_file: str | None = None,
        data_type: str = "NGRAM",
        window_size: int = -1,
        mode: str = "train",
        min_word_freq: int = 50,
        download: bool = True,
    ) -> None:
        self.data_type = data_type.upper()
        if self.data_type not in ("NGRAM", "SEQ"):
            raise ValueError(f"(InvalidArgument) Imikolov: data_type must be 'NGRAM' or 'SEQ', got {data_type!r}.")
        if self.data_type == "NGRAM" and window_size < 0:
            raise ValueError(f"(InvalidArgument) Imikolov: 'NGRAM' needs a window_size, got {window_size}.")
        self.mode = check_mode("Imikolov", mode)
        self.window_size, self.min_word_freq = window_size, min_word_freq
        self.data_file = obtain("Imikolov", "data_file", data_file, URL, MD5, "imikolov", download)
        with tarfile.open(self.data_file) as archive:
            lines = {
                part: [line.strip().split() for line in member(archive, self._path(part), "Imikolov")]
                for part in {"train", "valid", self.mode}
            }
        counts: collections.Counter = collections.Counter()
        for part in ("train", "valid"):
            for words in lines[part]:
                counts.update(words)
                counts.update(("<s>", "<e>"))
        # The words of the text are bytes and the marks are not, as in Paddle.
        self.word_idx = frequent(counts, min_word_freq)
        self.data = [sample for words in lines[self.mode] for sample in self._samples(words)]

    @staticmethod
    def _path(part: str) -> str:
        return f"./simple-examples/data/ptb.{part}.txt"

    def _samples(self, words: list):
        unknown, size = self.word_idx["<unk>"], self.window_size
        if self.data_type == "NGRAM":
            ids = [self.word_idx.get(word, unknown) for word in ("<s>", *words, "<e>")]
            return [tuple(ids[i - size : i]) for i in range(size, len(ids) + 1)] if len(ids) >= size else []
        ids = [self.word_idx.get(word, unknown) for word in words]
        source = [self.word_idx["<s>"], *ids]
        return [] if 0 < size < len(source) else [(source, [*ids, self.word_idx["<e>"]])]

    def __getitem__(self, idx: int):
        return arrays(*self.data[idx])

    def __len__(self) -> int:
        return len(self.data)
