"""NVIDIA's libraries where pip puts them: `nvidia-cublas`, `nvidia-cudnn-cu13`, `nvidia-cuda-nvrtc` and their like."""

from __future__ import annotations

import functools
import glob
import importlib.util
import os

from .. import _core


@functools.cache
def find() -> None:
    """Tells the core once where these libraries lie, for when a GPU is first asked for."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    _core._gpu_folders([folder for root in roots for folder in sorted(glob.glob(os.path.join(root, "*", "lib")))])
