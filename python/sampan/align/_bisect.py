"""Two training runs that part."""

from __future__ import annotations

from ._arguments import count, number
from ._recorder import Recorder
from ._report import Report, compare

# Causes that lie in the training loop or the schedule, which no layer explains.
_LOOP = ("gradients_not_cleared", "gradients_accumulated", "step_skipped", "step_extra", "weights_written")


def _run(factory, at, steps, digest=False) -> Recorder:
    made = factory() if callable(factory) and not hasattr(factory, "state_dict") else None
    if not isinstance(made, (tuple, list)) or len(made) != 3 or not callable(made[2]):
        raise TypeError(
            "(InvalidType) bisect: each side is a function without arguments that gives (model, optimizer, train), where "
            f"train(steps) runs that many steps; got {type(factory if made is None else made).__name__}."
        )
    model, optimizer, train = made
    recorder = Recorder(model, optimizer, at=at, keep_steps=0, functions=bool(at), digest=digest)
    with recorder:
        train(steps)
    return recorder


def _losses_part(a: Recorder, b: Recorder, tolerance: float) -> int | None:
    ours, theirs = a.section("losses"), b.section("losses")
    for n, name in enumerate(ours):
        if name not in theirs:
            return n
        x, y = float(ours[name].mean()), float(theirs[name].mean())
        if not abs(x - y) <= tolerance * max(1.0, abs(x)):
            return n
    return None


def _steps_part(a: Recorder, b: Recorder) -> int | None:
    """The first step whose gradients or updates are of another size."""
    for n, (x, y) in enumerate(zip(a.rhythm.steps, b.rhythm.steps)):
        for what, limit in (("gradient", 2e-3), ("update", 2e-2)):
            p, q = x.get(what), y.get(what)
            if (p is None) != (q is None) or (p is not None and abs(p - q) > limit * max(p, q)):
                return n
    return None


def bisect(reference, candidate, *, steps: int = 50, tolerance: float = 1e-4, mapping=None) -> Report | None:
    """Finds the step at which two trainings part, and the first thing that differs there.

    `reference` and `candidate` are functions without arguments that make a training anew, always the same:
    `(model, optimizer, train)`, where `train(steps)` runs that many steps. They run twice: once for the losses, the order
    of the loop and the size of each step, then for the tensors of the step where that differs first. A gradient that is
    not cleared, a step that is left out and another learning rate are named as such. None means that the losses agree.
    """
    steps, tolerance = count(steps, "bisect", "steps"), number(tolerance, "bisect", "tolerance") or 0.0
    first = [_run(f, (), steps, digest=True) for f in (reference, candidate)]
    for name, recorder in zip(("reference", "candidate"), first):
        if not recorder.section("losses"):
            raise ValueError(
                f"(InvalidArgument) bisect: the training of the {name} calls no backward() of a loss, so that there are no "
                "losses to compare."
            )
    n = _losses_part(*first, tolerance)
    if n is None:
        return None
    whole = compare(*(r.recording for r in first), mapping=mapping, checks=["training"], tolerance=tolerance)
    parts = _steps_part(*first)
    rates = next((int(f.candidate.removeprefix("lr_")) for f in whole.findings if f.where == "learning rate"), None)
    loop = next((int(f.candidate.removeprefix("step ")) for f in whole.findings if f.cause in _LOOP), None)
    if loop is not None or (rates is not None and (parts is None or rates <= parts)):
        whole.data["parts_at"] = loop if loop is not None else n
        return whole
    # A loss that differs at step n comes from an update at step n - 1, unless the forward pass itself differs.
    # What differs by little from the beginning on is seen best where the weights are still the same.
    tried = ([parts] if parts is not None and parts <= n else []) + ([n - 1, n, 0] if n else [0])
    report = None
    for step in dict.fromkeys(tried):
        a, b = (_run(f, {step}, step + 1) for f in (reference, candidate))
        for recorder, run in zip((a, b), first):
            recorder.section("losses").update(run.section("losses"))
            recorder.notes.append(f"the tensors are those of training step {step}")
        checks = ["forward", "loss", "backward", "optimizer"]
        found = compare(a.recording, b.recording, mapping=mapping, checks=checks)
        if report is None or (found.findings and not report.findings):
            report = found
        if any(f.visible for f in found.findings):
            report = found
            break
    report.data["parts_at"] = n
    return report
