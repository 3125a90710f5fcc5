"""Two training runs that part."""

from __future__ import annotations

from ._recorder import Recorder
from ._report import Report, compare


def _run(factory, at, steps) -> Recorder:
    model, optimizer, train = factory()
    recorder = Recorder(model, optimizer, at=at, keep_steps=0, functions=bool(at))
    with recorder:
        train(steps)
    return recorder


def _parting(a: Recorder, b: Recorder, tolerance: float) -> int | None:
    ours, theirs = a.section("losses"), b.section("losses")
    for n, name in enumerate(ours):
        if name not in theirs:
            return n
        x, y = float(ours[name].mean()), float(theirs[name].mean())
        if not abs(x - y) <= tolerance * max(1.0, abs(x)):
            return n
    return None


def bisect(reference, candidate, *, steps: int = 50, tolerance: float = 1e-4, mapping=None) -> Report | None:
    """Finds the step at which two trainings part, and the first tensor that differs there.

    `reference` and `candidate` are functions without arguments that make a training anew, always the same:
    `(model, optimizer, train)`, where `train(steps)` runs that many steps. They run twice: once for the losses, then for
    the tensors of the step before the losses part, and of that step. None means that the losses agree.
    """
    first = [_run(f, (), steps) for f in (reference, candidate)]
    n = _parting(*first, tolerance)
    if n is None:
        return None
    # A loss that differs at step n comes from an update at step n - 1, unless the forward pass itself differs.
    for step in ([n - 1, n] if n else [0]):
        a, b = (_run(f, {step}, step + 1) for f in (reference, candidate))
        a.keep_steps = b.keep_steps = 0
        for recorder, whole in zip((a, b), first):
            recorder.section("losses").update(whole.section("losses"))
            recorder.notes.append(f"the tensors are those of training step {step}")
        report = compare(a.recording, b.recording, mapping=mapping, checks=["forward", "loss", "backward", "optimizer"])
        if report.findings:
            break
    report.data["parts_at"] = n
    return report
