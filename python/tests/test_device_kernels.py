"""The texts of the GPU's kernels, compiled as a GPU would have them; no GPU is needed for it."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"


def test_every_kernel_compiles():
    if importlib.util.find_spec("nvidia") is None:
        pytest.skip("NVIDIA's compiler is not here: pip install nvidia-cuda-nvrtc")
    done = subprocess.run([sys.executable, SCRIPTS / "device_kernels.py"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 files refused" in done.stdout
