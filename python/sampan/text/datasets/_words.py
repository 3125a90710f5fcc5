"""What the sets of sentences share."""

from __future__ import annotations

import itertools
import tarfile
from collections.abc import Iterable


def member(archive: tarfile.TarFile, name: str, what: str):
    """A file of an archive, open to be read."""
    try:
        file = archive.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise ValueError(f"(InvalidArgument) {what}: {archive.name} holds no file {name!r}.")
    return file


def frequent(counts: dict, cutoff: int) -> dict:
    """Numbers for the words that come more often than `cutoff`, the most frequent first; `<unk>` is the last."""

    def rank(word):
        return -counts[word], word if isinstance(word, bytes) else word.encode()

    words = sorted((word for word, count in counts.items() if count > cutoff), key=rank)
    numbers = {word: i for i, word in enumerate(words)}
    numbers["<unk>"] = len(numbers)
    return numbers


def numbered(lines: Iterable[bytes], size: int | None = None) -> dict[str, int]:
    """One word a line, as many as `size`."""
    return {line.strip().decode(): i for i, line in enumerate(itertools.islice(lines, size))}


def arrays(*fields) -> tuple:
    """Lists of numbers as arrays."""
    import numpy as np

    return tuple(np.array(field) for field in fields)
