"""Who did what to whom: the public test part of CoNLL 2005."""

from __future__ import annotations

import gzip
import tarfile

from ...io import Dataset
from ...io.files import obtain
from ._words import arrays, member, numbered

_PREFIX = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA_URL, DATA_MD5 = _PREFIX + "/conll05st-tests.tar.gz", "387719152ae52d60422c016e92a742fc"
WORDDICT_URL, WORDDICT_MD5 = _PREFIX + "%2FwordDict.txt", "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL, VERBDICT_MD5 = _PREFIX + "%2FverbDict.txt", "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL, TRGDICT_MD5 = _PREFIX + "%2FtargetDict.txt", "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL, EMB_MD5 = _PREFIX + "%2Femb", "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0


class Conll05st(Dataset):
    """Sentences with the roles that their words play for one verb. A sample has nine rows of the sentence's length: the
    words, the two words before the verb, the verb, the two after it, the predicate, a mark around the verb, the roles.

    Args:
        data_file: the archive `conll05st-tests.tar.gz`.
        word_dict_file: the known words, one to a line.
        verb_dict_file: the known verbs.
        target_dict_file: the roles, as `B-` and `I-` tags.
        emb_file: a file of embeddings, for `get_embedding` alone.
        download: download files that are not given, unless they lie in `~/.cache/paddle/dataset/conll05st`.
    """

    def __init__(
        self,
        data_file: str | None = None,
        word_dict_file: str | None = None,
        verb_dict_file: str | None = None,
        target_dict_file: str | None = None,
        emb_file: str | None = None,
        download: bool = True,
    ) -> None:
        for name, path, url, md5 in (
            ("data_file", data_file, DATA_URL, DATA_MD5),
            ("word_dict_file", word_dict_file, WORDDICT_URL, WORDDICT_MD5),
            ("verb_dict_file", verb_dict_file, VERBDICT_URL, VERBDICT_MD5),
            ("target_dict_file", target_dict_file, TRGDICT_URL, TRGDICT_MD5),
            ("emb_file", emb_file, EMB_URL, EMB_MD5),
        ):
            setattr(self, name, obtain("Conll05st", name, path, url, md5, "conll05st", download))
        self.word_dict = _lines(self.word_dict_file)
        self.predicate_dict = _lines(self.verb_dict_file)
        # In the order of the file; Paddle's order changes from run to run.
        tags = dict.fromkeys(line[2:] for line in _lines(self.target_dict_file) if line.startswith(("B-", "I-")))
        names = [mark + tag for tag in tags for mark in ("B-", "I-")]
        self.label_dict = {name: i for i, name in enumerate([*names, "O"])}
        self.sentences, self.predicates, self.labels = [], [], []
        folder = "conll05st-release/test.wsj"
        with tarfile.open(self.data_file) as archive:
            parts = (f"{folder}/{part}/test.wsj.{part}.gz" for part in ("words", "props"))
            words, props = (gzip.GzipFile(fileobj=member(archive, part, "Conll05st")) for part in parts)
            sentence: list[str] = []
            rows: list[list[str]] = []
            for word, row in zip(words, props):
                columns = row.decode().split()
                if columns:
                    sentence.append(word.strip().decode())
                    rows.append(columns)
                else:
                    self._add(sentence, rows)
                    sentence, rows = [], []
            self._add(sentence, rows)

    def _add(self, sentence: list[str], rows: list[list[str]]) -> None:
        """A sentence once for each of its verbs; a column holds the roles for one verb."""
        if rows:
            verbs, *columns = zip(*rows)
            for verb, column in zip((v for v in verbs if v != "-"), columns):
                self.sentences.append(sentence)
                self.predicates.append(verb)
                self.labels.append(_tags(column))

    def __getitem__(self, idx: int):
        sentence, labels = self.sentences[idx], self.labels[idx]
        size, verb = len(sentence), labels.index("B-V")
        around = [
            sentence[i] if 0 <= i < size else "bos" if i < 0 else "eos" for i in range(verb - 2, verb + 3)
        ]
        mark = [int(abs(i - verb) <= 2) for i in range(size)]
        contexts = [[self.word_dict.get(word, UNK_IDX)] * size for word in around]
        return arrays(
            [self.word_dict.get(word, UNK_IDX) for word in sentence],
            *contexts,
            [self.predicate_dict.get(self.predicates[idx])] * size,
            mark,
            [self.label_dict.get(label) for label in labels],
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def get_dict(self) -> tuple[dict, dict, dict]:
        """The numbers of words, verbs and roles."""
        return self.word_dict, self.predicate_dict, self.label_dict

    def get_embedding(self) -> str:
        """The path of the file of embeddings."""
        return self.emb_file


def _lines(path: str) -> dict[str, int]:
    with open(path, "rb") as file:
        return numbered(file)


def _tags(column) -> list[str]:
    """Brackets such as `(A0*`, `*`, `*)` as tags that begin, go on, or stand outside."""
    tags, current = [], None
    for cell in column:
        if cell.startswith("("):
            current = cell[1 : cell.index("*")]
            tags.append("B-" + current)
        elif cell in ("*", "*)"):
            tags.append("O" if current is None else "I-" + current)
        else:
            raise ValueError(f"(InvalidArgument) Conll05st: {cell!r} is no role.")
        if cell.endswith(")"):
            current = None
    return tags
