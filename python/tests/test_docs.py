"""The examples that people read: in the text of every op, and in the READMEs."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

import sampan
from sampan import _core, _registry

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPS = [name for name, module, *_ in _core.ops() if name in _registry.functions(module)]


def test_every_op_has_a_text_with_its_arguments():
    for name in OPS:
        text = _core.op(name).__doc__
        assert text.startswith(f"{name}(") and "Returns:" in text, name
        for parameter, *_ in _core.op_info(name)["params"]:
            assert f"    {parameter} (" in text, (name, parameter)


def test_examples_in_the_texts_of_ops():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    count = 0
    for name in OPS:
        test = parser.get_doctest(_core.op(name).__doc__, {}, name, None, 0)
        count += bool(test.examples)
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert count > 300


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_program_of_the_readme(readme, tmp_path, monkeypatch):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / readme).read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    exec(compile(program, readme, "exec"), names)
    assert (tmp_path / "net.pdparams").exists()
    assert float(names["loss"]) < 1.0


@pytest.mark.parametrize("page", ["docs/deploy.md", "docs/deploy.zh-CN.md"])
def test_the_programs_of_the_page_on_deployment(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "deploy"}
    for i, program in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)):
        # In a file, since functions that are saved are read there.
        path = tmp_path / f"program_{i}.py"
        path.write_text(program)
        exec(compile(program, str(path), "exec"), names)
    assert (tmp_path / "inference/net.json").exists() and not (tmp_path / "inference/reads.json").exists()


def test_the_program_of_the_page_on_speed(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/performance.md").read_text(), re.S)
    exec(compile(program, "performance.md", "exec"), {"__name__": "performance"})
    assert "conv2d" in capsys.readouterr().out


def test_the_programs_of_the_page_on_processes(tmp_path):
    pages = [(ROOT / f"docs/distributed{ending}.md").read_text() for ending in ("", ".zh-CN")]
    programs, translated = (re.findall(r"```(?:python|rust)\n(.*?)```", page, re.S) for page in pages)
    assert programs == translated
    env = os.environ | {"PYTHONPATH": str(pathlib.Path(sampan.__file__).parents[1])}
    launch = [sys.executable, "-m", "sampan.distributed.launch", "--nproc_per_node", "2"]
    said = ""
    for program in re.findall(r"```python\n(.*?)```", pages[0], re.S):
        (tmp_path / "program.py").write_text(program)
        command = [sys.executable] if "spawn" in program else launch
        done = subprocess.run([*command, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    assert re.search(r"loss 0\.\d+ with 2 processes by SHARED_MEMORY", said), said
