"""English sentences in French: a small part of WMT 2014."""

from __future__ import annotations

import tarfile

from ...io import Dataset
from ...io.files import check_mode, obtain
from ._words import arrays, numbered

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
START, END, UNK, UNK_IDX = "<s>", "<e>", "<unk>", 2
_LONGEST = 80


class WMT14(Dataset):
    """Pairs of sentences as numbers of words: the source, the target after its start, and the target before its end.

    Args:
        data_file: the archive `wmt14.tgz`.
        mode: `'train'`, `'test'` or `'gen'`.
        dict_size: words of each language that are known.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/wmt14`.
    """

    def __init__(
        self, data_file: str | None = None, mode: str = "train", dict_size: int = -1, download: bool = True
    ) -> None:
        self.mode = check_mode("WMT14", mode, ("train", "test", "gen"))
        if dict_size <= 0:
            raise ValueError(f"(InvalidArgument) WMT14: dict_size must be positive, got {dict_size}.")
        self.dict_size = dict_size
        self.data_file = obtain("WMT14", "data_file", data_file, URL_TRAIN, MD5_TRAIN, "wmt14", download)
        self.src_ids, self.trg_ids, self.trg_ids_next = [], [], []
        with tarfile.open(self.data_file) as archive:
            self.src_dict, self.trg_dict = (numbered(_only(archive, f"{s}.dict"), dict_size) for s in ("src", "trg"))
            for entry in archive:
                if entry.name.endswith(f"{self.mode}/{self.mode}"):
                    for line in archive.extractfile(entry):
                        self._add(line.decode().strip().split("\t"))

    def _add(self, pair: list[str]) -> None:
        if len(pair) != 2:
            return
        source = [self.src_dict.get(word, UNK_IDX) for word in (START, *pair[0].split(), END)]
        target = [self.trg_dict.get(word, UNK_IDX) for word in pair[1].split()]
        if max(len(source), len(target)) <= _LONGEST:
            self.src_ids.append(source)
            self.trg_ids.append([self.trg_dict[START], *target])
            self.trg_ids_next.append([*target, self.trg_dict[END]])

    def __getitem__(self, idx: int):
        return arrays(self.src_ids[idx], self.trg_ids[idx], self.trg_ids_next[idx])

    def __len__(self) -> int:
        return len(self.src_ids)

    def get_dict(self, reverse: bool = False) -> tuple[dict, dict]:
        """The numbers of the words of both languages, or with `reverse` the words of the numbers."""
        both = self.src_dict, self.trg_dict
        return tuple({v: k for k, v in d.items()} for d in both) if reverse else both


def _only(archive: tarfile.TarFile, ending: str):
    found = [entry for entry in archive.getmembers() if entry.name.endswith(ending)]
    if len(found) != 1:
        raise ValueError(f"(InvalidArgument) WMT14: expected one file *{ending} in {archive.name}, found {len(found)}.")
    return archive.extractfile(found[0])
