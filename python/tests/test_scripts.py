"""The scripts that compare this package with PaddlePaddle: their rules, and the page that one of them writes."""
import pathlib
import runpy
import subprocess
import sys
import types

import numpy as np
import pytest

import sampan

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from example_text import agrees, code_blocks, steps  # noqa: E402
from paddle_names import parameters  # noqa: E402
from python_coverage import differences  # noqa: E402


def compare(theirs, ours, **kwargs):
    theirs, ours = ({"kind": "function", "parameters": parameters(f)} for f in (theirs, ours))
    return differences(theirs, ours, **kwargs)


def paddles(x, axis=(1,), eps=1, name=None, *, out=None):
    """A function as Paddle writes them."""


@pytest.mark.parametrize(
    "ours, expected",
    [
        (lambda x, axis=[1], eps=1.0, *, out=None: 0, []),
        (lambda x, axis=[1], eps=1.0, name=None, extra=0, *, out=None, **more: 0, []),
        (lambda x=None, axis=[1], eps=1.0, name=None, out=None: 0, []),
        (lambda x, axis=[1], eps=1.0: 0, ["lacks `out`"]),
        (
            lambda x, eps=1, axis=[1], *, out=None: 0,
            ["`axis` is at position 3, not 2", "`eps` is at position 2, not 3"],
        ),
        (lambda x, axis=[2], eps=1, *, out: 0, ["`axis=[2]`, not `[1]`", "`out` is required"]),
        (
            lambda x, /, axis=[1], *, eps=1, out=None: 0,
            ["`x` is not accepted by name", "`eps` is not accepted by position"],
        ),
        (lambda x, axis=[1], eps=True, name=None, *, more, out=None: 0, ["`eps=True`, not `1`", "requires `more`"]),
    ],
)
def test_what_differs_in_a_signature(ours, expected):
    assert compare(paddles, ours) == expected


def test_a_method_is_compared_without_its_object():
    assert compare(lambda x, axis=0: 0, lambda self, axis=0: 0, method=True) == []
    assert compare(lambda x, axis=0: 0, lambda self, axis=0: 0) == ["lacks `x`", "requires `self`"]


def test_an_example_is_cut_into_statements_with_their_output():
    doc = """Does it.

    .. code-block:: python
        :name: first

        >>> import paddle

        >>> for i in range(2):
        ...     print(i)
        0
        1
        >>> # doctest: +REQUIRES(env:GPU)
        >>> x.cuda()
        >>> # doctest: -REQUIRES
        >>> draw()  # doctest: +SKIP("Random output")
        7

    The end.
    """
    (block,) = code_blocks(doc)
    found = [(step["line"], step["source"].split("\n")[0], step["mode"], step["want"]) for step in steps(block)]
    assert found == [
        (1, "import paddle", "run", ""),
        (3, "for i in range(2):", "run", "0\n1"),
        (8, "x.cuda()", "skip", ""),
        (10, 'draw()  # doctest: +SKIP("Random output")', "heads", "7"),
    ]


@pytest.mark.parametrize(
    "want, got, same",
    [
        ("Tensor(place=Place(gpu:0),\n[1., 2.5000])", "Tensor(place=Place(cpu),\n       [1.0, 2.5004])", True),
        ("[1.5-2.j]", "[1.5001-2.0002j]", True),
        ("[1.5-2.j]", "[1.5001-2.2j]", False),
        ("float32 7", "float64 7", False),
        ("1000", "1001", False),
        ("np.int64(3)", "3", True),
        ("1\n2\n...\n9", "1\n2\n3\n4\n9", True),
        ("1\n2\n...\n9", "1\n2\n3\n4\n8", False),
    ],
)
def test_outputs_agree_within_tolerance(want, got, same):
    assert agrees(want, got) is same


def test_of_random_output_only_the_heads_of_tensors_are_compared():
    head = "Tensor(shape=[{}], dtype=float32, place=Place(cpu), stop_gradient=True,\n[{}])"
    assert agrees(head.format(2, "0.1, 0.2"), head.format(2, "0.7, 0.9"), heads_only=True)
    assert not agrees(head.format(2, "0.1, 0.2"), head.format(1, "0.1"), heads_only=True)


def test_the_page_of_names_is_current():
    pytest.importorskip("sampan")
    check = subprocess.run([sys.executable, SCRIPTS / "python_coverage.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_only_calls_that_are_known_to_have_no_form_in_onnx_are_left_out(monkeypatch, tmp_path):
    for name in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(sys, "path", [*sys.path])
    write = runpy.run_path(str(SCRIPTS / "onnx" / "write.py"))
    said = "(Unimplemented) onnx.export: {} has no form in ONNX: no operators say it, and it is made of no other ops."
    x = [np.ones([2, 2], "float32")]

    def checked(call, opset, error):
        def export(*args, **kwargs):
            raise error

        monkeypatch.setattr(sampan.onnx, "export", export)
        failures, left_out = [], []
        write["check"](call, sampan.tanh, [None], x, [opset], str(tmp_path), failures, left_out, call)
        assert len(failures) + len(left_out) == 1
        return bool(failures)

    assert not checked("tril", 13, NotImplementedError(said.format("tril (calls.py:87)")))
    assert checked("tril", 18, NotImplementedError(said.format("tril (calls.py:87)")))
    assert checked("tril", 13, NotImplementedError(said.format("where (calls.py:87)")))
    assert checked("relu", 13, NotImplementedError(said.format("relu (calls.py:8)")))
    assert checked("nonzero", 13, ValueError("(InvalidArgument) argwhere: another reason."))
    assert checked("mlp", 13, ValueError("(InvalidArgument) matmul: x is wrong."))
