"""Means of figures over batches."""

from __future__ import annotations


class Accuracy:
    """The mean of accuracies, weighted by the sizes of their batches.

    >>> from sampan.compat.fluid.metrics import Accuracy
    >>> mean = Accuracy()
    >>> mean.update(1.0, weight=10); mean.update(0.5, weight=30)
    >>> mean.eval()
    0.625
    """

    def __init__(self, name=None):
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self.value = self.weight = 0.0

    def update(self, value, weight) -> None:
        """Adds the figure of a batch."""
        self.value += float(value) * weight
        self.weight += weight

    def eval(self) -> float:
        """The mean so far."""
        if self.weight == 0:
            raise ValueError("(PreconditionNotMet) Accuracy: there is no batch yet. Hint: call update before eval.")
        return self.value / self.weight
