"""A few of the injected faults of scripts/align_faults, and a network without one."""

import pathlib
import sys

import pytest

pytest.importorskip("torch", reason="the reference is a PyTorch network")
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "align_faults"
CHOSEN = [
    "average pool counts the padding",
    "square weight not transposed",
    "relu instead of tanh",
    "channels last before flatten",
    "labels are smoothed",
    "images normalised by other constants",
]


@pytest.fixture(scope="module")
def suite():
    sys.path.insert(0, str(FOLDER))
    try:
        import catalogue
        import run
        import score
        import setup

        yield catalogue, run, score, setup
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("catalogue", "candidate", "reference", "run", "score", "setup"):
            sys.modules.pop(name, None)


def test_no_fault_is_no_alarm(suite):
    _, run, _, setup = suite
    assert run.ask(setup.whole("LeNet"))["ok"]


@pytest.mark.parametrize("name", CHOSEN)
def test_layer_and_cause_are_named(suite, name):
    catalogue, run, score, _ = suite
    (fault,) = (f for f in catalogue.FAULTS if f.name == name)
    answer = run.ask(fault)
    assert score.named(fault, answer) and score.causes_of(fault, answer), answer["text"]


def test_every_fault_is_told_apart(suite):
    catalogue, *_ = suite
    names = [(fault.network, fault.name) for fault in catalogue.FAULTS]
    assert len(set(names)) == len(names) >= 60
