"""Numbers that tell how well a network does: Paddle's `metric`."""

from __future__ import annotations

from .. import _core, _registry
from .metric import Accuracy, Auc, Metric, Precision, Recall

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def accuracy(input, label, k: int = 1, correct=None, total=None, name=None) -> _core.Tensor:
    """The share of samples whose label is among the `k` highest scores, as a tensor.

    >>> import sampan
    >>> scores = sampan.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    >>> sampan.metric.accuracy(scores, sampan.to_tensor([[1], [2]]), k=2).item()
    1.0
    """
    metric = Accuracy(topk=(k,))
    share = metric.update(metric.compute(input, label))
    return _core.to_tensor_py(share, "float32")


# An op of that name is the same and native.
globals().update(_registry.functions("metric"))
