"""What one side did, kept by the core."""

from __future__ import annotations

import functools
import json

from .. import _core
from ._arguments import path as path_of


class Recording:
    """What one side did: its structure, and its tensors by file and name."""

    def __init__(self, native):
        self._native = native

    @functools.cached_property
    def structure(self) -> dict:
        """Layers and calls, as `structure.json` holds them."""
        return json.loads(self._native.structure())

    @property
    def side(self) -> str:
        return self.structure["side"]

    def sections(self) -> list[str]:
        """Names of the files: forward, backward, losses, …"""
        return self._native.sections()

    def keys(self, section: str) -> list[str]:
        """Names of the tensors in a file."""
        return self._native.keys(section)

    def get(self, section: str, key: str):
        """A tensor as an array, or None."""
        return self._native.get(section, key)

    def save(self, folder) -> None:
        """Writes a folder that `load`, the command `sampan align` and `reprod_log` read."""
        self._native.save(path_of(folder, "save"))

    def __repr__(self) -> str:
        calls, files = len(self.structure["calls"]), ", ".join(self.sections())
        return f"Recording of {self.side or 'files'}: {len(self.structure['layers'])} layers, {calls} calls; {files}"


def load(path) -> Recording:
    """Reads the folder of a recording, or a `.npy` file of `reprod_log`. Nothing in it is run."""
    return Recording(_core.Recording.load(path_of(path, "a recording")))
