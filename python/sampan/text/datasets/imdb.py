"""Reviews of films, good and bad."""

from __future__ import annotations

import collections
import re
import string
import tarfile

from ...io import Dataset
from ...io.files import check_mode, obtain
from ._words import arrays, frequent

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
_PUNCTUATION = string.punctuation.encode()


class Imdb(Dataset):
    """Reviews as numbers of words, with the label 0 for good ones and 1 for bad ones, of shape `[1]`.

    Args:
        data_file: the archive `aclImdb_v1.tar.gz`.
        mode: `'train'` or `'test'`.
        cutoff: words that come at most so often count as unknown.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/imdb`.
    """

    def __init__(
        self, data_file: str | None = None, mode: str = "train", cutoff: int = 150, download: bool = True
    ) -> None:
        self.mode = check_mode("Imdb", mode)
        self.data_file = obtain("Imdb", "data_file", data_file, URL, MD5, "imdb", download)
        counts: collections.Counter = collections.Counter()
        texts: dict[str, list] = {"pos": [], "neg": []}
        pattern = re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$")
        with tarfile.open(self.data_file) as archive:
            for entry in archive:
                found = pattern.match(entry.name)
                if found:
                    text = archive.extractfile(entry).read().rstrip(b"\n\r")
                    words = text.translate(None, _PUNCTUATION).lower().split()
                    counts.update(words)
                    if found[1] == self.mode:
                        texts[found[2]].append(words)
        if not counts:
            raise ValueError(f"(InvalidArgument) Imdb: {self.data_file} holds no reviews (aclImdb/train/pos/*.txt …).")
        self.word_idx = frequent(counts, cutoff)
        unknown = self.word_idx["<unk>"]
        both = [*texts["pos"], *texts["neg"]]
        self.docs = [[self.word_idx.get(word, unknown) for word in words] for words in both]
        self.labels = [0] * len(texts["pos"]) + [1] * len(texts["neg"])

    def __getitem__(self, idx: int):
        return arrays(self.docs[idx], [self.labels[idx]])

    def __len__(self) -> int:
        return len(self.docs)
