# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype


from sampan.metric.metric import _BuiltinMetric

from .. import _core as _core, _registry as _registry

from .metric import Metric as Metric

def accuracy(input, label, k: int=1, correct=None, total=None, name=None) -> _core.Tensor:
    """The share of samples whose label is among the `k` highest scores, as a tensor.

    >>> import sampan
    >>> scores = sampan.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    >>> sampan.metric.accuracy(scores, sampan.to_tensor([[1], [2]]), k=2).item()
    1.0
    """
    ...

class Accuracy(_BuiltinMetric):
    """The share of samples whose label is among the `k` highest scores, for each `k` of `topk`. Labels are class numbers
    of shape `[N]` or `[N, 1]`, or one-hot `[N, classes]`.
    """

    def __init__(self, topk: _int | Sequence[_int] | Tensor = 1, name: _str | None = None, **kwargs: Any) -> None: ...


class Auc(_BuiltinMetric):
    """The area under the ROC curve (or the precision-recall curve, `curve="PR"`) from probabilities `[N, 2]`, of which the
    second column counts, in `num_thresholds` steps.
    """

    def __init__(self, curve: _str = 'ROC', num_thresholds: _int = 4095, name: _str = 'auc', **kwargs: Any) -> None: ...


class Precision(_BuiltinMetric):
    """The share of samples with label 1 among those predicted with a probability of at least one half."""

    def __init__(self, name: _str = 'precision', **kwargs: Any) -> None: ...


class Recall(_BuiltinMetric):
    """The share of samples predicted with a probability above one half among those with label 1."""

    def __init__(self, name: _str = 'recall', **kwargs: Any) -> None: ...


__all__ = ['Accuracy', 'Auc', 'Metric', 'Precision', 'Recall', 'accuracy', 'metric']
