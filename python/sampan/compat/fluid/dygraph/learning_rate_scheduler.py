"""Learning rates that fall with the steps; an optimizer of `fluid` moves them on."""

from __future__ import annotations

import math

from ....optimizer import lr as new


class LearningRateDecay:
    """A learning rate that follows the number of steps: `begin`, `begin + step`, …"""

    def __init__(self, learning_rate: float, factor, begin: int, step: int):
        self._begin, self._step = begin, step
        self._done = 0
        self.schedule = new.LambdaDecay(float(learning_rate), lambda done: factor(begin + done * step))

    @property
    def step_num(self) -> int:
        """Where it is."""
        return self._begin + self._done * self._step

    def value(self) -> float:
        """The learning rate now."""
        return float(self.schedule())

    def step(self) -> None:
        """The next step."""
        self.go_to(self.step_num + self._step)

    def go_to(self, step_num: int) -> None:
        """Goes to a step."""
        self._done = (step_num - self._begin) // self._step
        self.schedule.step(self._done)

    def __call__(self) -> float:
        """The learning rate now; and moves on."""
        now = self.value()
        self.step()
        return now


def _at(step, decay_steps, staircase) -> float:
    return math.floor(step / decay_steps) if staircase else step / decay_steps


class PiecewiseDecay(LearningRateDecay):
    """One value up to each boundary, and one after the last."""

    def __init__(self, boundaries, values, begin, step=1, dtype="float32"):
        def factor(at):
            return values[sum(at >= boundary for boundary in boundaries)]

        super().__init__(1.0, factor, begin, step)


class NaturalExpDecay(LearningRateDecay):
    """`learning_rate * exp(-decay_rate * step / decay_steps)`."""

    def __init__(self, learning_rate, decay_steps, decay_rate, staircase=False, begin=0, step=1, dtype="float32"):
        super().__init__(learning_rate, lambda at: math.exp(-decay_rate * _at(at, decay_steps, staircase)), begin, step)


class ExponentialDecay(LearningRateDecay):
    """`learning_rate * decay_rate ** (step / decay_steps)`."""

    def __init__(self, learning_rate, decay_steps, decay_rate, staircase=False, begin=0, step=1, dtype="float32"):
        super().__init__(learning_rate, lambda at: decay_rate ** _at(at, decay_steps, staircase), begin, step)


class InverseTimeDecay(LearningRateDecay):
    """`learning_rate / (1 + decay_rate * step / decay_steps)`."""

    def __init__(self, learning_rate, decay_steps, decay_rate, staircase=False, begin=0, step=1, dtype="float32"):
        super().__init__(learning_rate, lambda at: 1 / (1 + decay_rate * _at(at, decay_steps, staircase)), begin, step)


class PolynomialDecay(LearningRateDecay):
    """From `learning_rate` to `end_learning_rate` in `decay_steps`; with `cycle` again and again, each time longer."""

    def __init__(
        self,
        learning_rate,
        decay_steps,
        end_learning_rate=0.0001,
        power=1.0,
        cycle=False,
        begin=0,
        step=1,
        dtype="float32",
    ):
        def factor(at):
            total = decay_steps * max(math.ceil(at / decay_steps), 1) if cycle else decay_steps
            left = (1 - min(at, total) / total) ** power
            return ((learning_rate - end_learning_rate) * left + end_learning_rate) / learning_rate

        super().__init__(learning_rate, factor, begin, step)


class CosineDecay(LearningRateDecay):
    """Half a cosine over the epochs."""

    def __init__(self, learning_rate, step_each_epoch, epochs, begin=0, step=1, dtype="float32"):
        super().__init__(
            learning_rate,
            lambda at: 0.5 * (math.cos(math.floor(at / step_each_epoch) * math.pi / epochs) + 1),
            begin,
            step,
        )


class NoamDecay(LearningRateDecay):
    """Rises for `warmup_steps`, then falls with the root of the step."""

    def __init__(self, d_model, warmup_steps, begin=1, step=1, dtype="float32", learning_rate=1.0):
        def factor(at):
            return d_model**-0.5 * min(at**-0.5 if at else 0.0, warmup_steps**-1.5 * at)

        super().__init__(learning_rate, factor, begin, step)


class LinearLrWarmup(LearningRateDecay):
    """Rises in a line from `start_lr` to `end_lr`, then is `learning_rate`: a number or another decay."""

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, begin=1, step=1, dtype="float32"):
        def factor(at):
            if at < warmup_steps:
                return start_lr + (end_lr - start_lr) * at / warmup_steps
            if not isinstance(learning_rate, LearningRateDecay):
                return learning_rate
            learning_rate.go_to(learning_rate._begin + (at - warmup_steps) * learning_rate._step)
            return learning_rate.value()

        super().__init__(1.0, factor, begin, step)
