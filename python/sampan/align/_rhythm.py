"""The order of a training: how often gradients are made before a step, onto what, and how far the step goes."""

from __future__ import annotations

import math

import numpy as np

# Gradients that were left behind show in any parameter; this many values are looked at.
_ENOUGH = 1 << 20


class Rhythm:
    """What `steps` of a recording tells, step by step.

    `backwards`: for each way back before the step, whether gradients were there already; `gradient`: its norm. With a
    digest also the norm of the update, and what somebody wrote to since the step before.
    """

    def __init__(self, recorder, digest: bool):
        self.recorder, self.digest = recorder, digest
        self.steps: list[dict] = []
        self._values: dict | None = None

    def _step(self) -> dict:
        if not self.steps or self.steps[-1]["stepped"]:
            self.steps.append({"backwards": [], "stepped": False})
        return self.steps[-1]

    def _trained(self) -> list:
        return [(name, t) for name, t, buffer in self.recorder._each_parameter() if not buffer]

    def backward(self) -> bool:
        """Before a way back: are there gradients that it adds to?"""
        onto = self._left()
        self._step()["backwards"].append(onto)
        return onto

    def _left(self) -> bool:
        """Are there gradients other than zero?"""
        side, seen = self.recorder.side, 0
        for _, tensor in sorted(self._trained(), key=lambda p: math.prod(p[1].shape)):
            gradient = side.gradient(tensor)
            if gradient is None:
                continue
            if self.recorder._array(gradient).any():
                return True
            seen += math.prod(tensor.shape)
            if seen > _ENOUGH:
                return False
        return False

    def _arrays(self) -> dict:
        return {name: self.recorder._array(t) for name, t in self._trained()}

    def before_step(self) -> None:
        """Before the optimizer's step."""
        step = self._step()
        gradients = [self.recorder.side.gradient(t) for _, t in self._trained()]
        squares = [_square(self.recorder._array(g)) for g in gradients if g is not None]
        step["gradient"] = _number(math.sqrt(sum(squares)))
        if not self.digest:
            return
        now = self._arrays()
        if self._values is not None:
            step["written"] = [n for n, x in now.items() if n in self._values and not np.array_equal(x, self._values[n], equal_nan=True)]
        self._values = now

    def after_step(self) -> None:
        """After it."""
        step = self._step()
        step["stepped"] = True
        if not self.digest:
            return
        now = self._arrays()
        moved = [_square(x - self._values[n]) for n, x in now.items() if n in self._values]
        step["update"] = _number(math.sqrt(sum(moved)))
        self._values = now


def _square(x) -> float:
    return float(np.einsum("i,i->", x.ravel(), x.ravel(), dtype="float64"))


def _number(x: float) -> float | None:
    """A number that JSON has."""
    return x if math.isfinite(x) else None
