"""Small programs mean here what PaddlePaddle recorded, or what is right where PaddlePaddle is wrong."""

import json
import pathlib
import sys

import pytest

import sampan
from sampan import compat

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import semantics  # noqa: E402

CASES = [case for topic in semantics.topics() for case in semantics.cases(topic)]
ANSWERS = {topic: json.loads(semantics.file(topic).read_text()) for topic in semantics.topics()}


@pytest.fixture(autouse=True)
def as_paddle():
    compat.install_as_paddle()
    yield
    compat.uninstall()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topic}/{case.name}")
def test_it_means_the_same(case):
    recorded = ANSWERS[case.topic][case.name]
    wanted = recorded
    if case.right is not semantics.NOTHING:
        wanted = semantics.plain(case.right)
        assert not semantics.agree(case, wanted, recorded), "PaddlePaddle is right too: the mark can go"
    found = case.answer(sampan)
    assert semantics.agree(case, wanted, found), f"wanted {wanted}\nfound  {found}"


@pytest.mark.parametrize("topic", semantics.topics())
def test_all_is_recorded_and_nothing_else(topic):
    assert list(ANSWERS[topic]) == [case.name for case in semantics.cases(topic)]


def test_answers_that_differ_do_not_agree():
    case = CASES[0]
    different = [(1, 1.0), (1, True), (1.0, 1.001), ([1], [1, 2]), ({"float32[1]": [1.0]}, {"float64[1]": [1.0]})]
    for one, other in different:
        assert semantics.agree(case, one, one) and not semantics.agree(case, one, other)
    assert semantics.agree(case, float("nan"), float("nan")) and not semantics.agree(case, float("nan"), 1.0)
