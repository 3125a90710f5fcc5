"""What editors and type checkers see: the stubs are up to date, and a program is checked with them."""

import pathlib
import subprocess
import sys

import pytest

import sampan

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import sampan
import sampan.nn.functional as F
from sampan import Tensor, nn


class Net(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(1, 6, 3, padding=1)
        self.fc = nn.Linear(in_features=6 * 14 * 14, out_features=10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv(x)), 2, 2)
        return self.fc(x.flatten(1))


net = Net()
opt = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
x = sampan.rand([4, 1, 28, 28])
loss = F.cross_entropy(net(x), sampan.to_tensor([1, 2, 3, 4]))
loss.backward()
opt.step()
reveal_type(F.relu(x))
reveal_type(x.shape)
reveal_type(x.sum(axis=0) + 1)
reveal_type(sampan.topk(x, 2))
"""

MISTAKES = """
import sampan
import sampan.nn.functional as F
x = sampan.ones([2])
F.relu("a word")
sampan.nn.Linear("three", 4)
"""


def mypy(program: str, folder: pathlib.Path) -> str:
    pytest.importorskip("mypy")
    file = folder / "program.py"
    file.write_text(program)
    # The installed package has the stubs; the folder keeps mypy from looking at the sources here.
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(folder / "cache"), str(file)], capture_output=True, text=True, cwd=folder
    )
    # As for every installed package, what is said about its own files is not the user's concern.
    return "\n".join(line for line in result.stdout.splitlines() if line.startswith("program.py")) or result.stderr


def test_a_program_is_understood(tmp_path):
    said = mypy(PROGRAM, tmp_path)
    assert "error" not in said, said
    for kind in ("Tensor", "list[int]", "tuple[sampan._core.Tensor, sampan._core.Tensor]"):
        assert kind in said, said


def test_mistakes_are_found(tmp_path):
    said = mypy(MISTAKES, tmp_path)
    assert said.count("error") >= 2 and "arg-type" in said, said


def test_the_stubs_are_up_to_date():
    script = ROOT / "scripts/python_stubs.py"
    result = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_installed_package_has_its_stubs():
    folder = pathlib.Path(sampan.__file__).parent
    assert (folder / "py.typed").exists()
    for stub in ("__init__.pyi", "_core.pyi", "nn/__init__.pyi", "nn/functional/__init__.pyi", "optimizer/__init__.pyi"):
        assert (folder / stub).exists(), stub
