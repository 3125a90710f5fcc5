"""`Metric`, which people subclass, and those of the core."""

from __future__ import annotations

from .. import _core, _registry

Tensor = _core.Tensor


class Metric:
    """A number (or several) that is gathered over the batches of a data set.

    `compute(*outputs, *labels)` takes what is needed from a batch, `update(*what compute gave)` counts it in,
    `accumulate()` gives the number so far, `reset()` begins anew, and `name()` says what it is called.
    """

    def __init__(self):
        pass

    def _missing(self, name: str):
        return NotImplementedError(
            f"the metric {type(self).__name__} has no {name}(); every metric of your own defines it."
        )

    def reset(self):
        """Begins anew."""
        raise self._missing("reset")

    def update(self, *args):
        """Counts a batch in."""
        raise self._missing("update")

    def accumulate(self):
        """The number of all batches since the last reset."""
        raise self._missing("accumulate")

    def name(self):
        """What it is called."""
        raise self._missing("name")

    def compute(self, *args):
        """What `update` needs of a batch: without more said, the outputs and labels themselves."""
        return args


def _tensor(value) -> Tensor:
    return value if isinstance(value, Tensor) else _core.to_tensor_py(value)


class _BuiltinMetric(Metric):
    """A metric of the core."""

    _definition: _core.ClassDef
    __signature__ = _registry._ClassSignature()

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._core, self._settings = self._definition.make(*args, **kwargs)

    def reset(self) -> None:
        self._core.reset()

    def update(self, preds, labels) -> None:
        """Counts predictions and labels in: tensors, arrays or lists."""
        self._core.update([_tensor(preds), _tensor(labels)])

    def accumulate(self) -> float:
        return self._core.accumulate()[0]

    def name(self):
        return self._core.name()[0]


def _builtin(cls):
    """Gives a class its definition from the registry."""
    cls._definition = _registry.classes("metric")[cls.__name__]
    cls.__doc__ = cls._definition.doc
    cls.__signature__ = _registry._ClassSignature()
    return cls


@_builtin
class Accuracy(_BuiltinMetric):
    def compute(self, pred, label, *args) -> Tensor:
        """One where the label is the class with the i-th highest score, else zero."""
        return self._core.compute([_tensor(pred)], [_tensor(label)])[0]

    def update(self, correct, *args):
        """Counts what `compute` gave in; the share of this batch, or a list of them for several `topk`."""
        return self._one(self._core.update([_tensor(correct)]))

    def accumulate(self):
        """The share of all batches, or a list of them for several `topk`."""
        return self._one(self._core.accumulate())

    @property
    def topk(self) -> tuple[int, ...]:
        """How many of the highest scores are looked at."""
        topk = self._settings["topk"]
        return (topk,) if isinstance(topk, int) else tuple(topk)

    @property
    def maxk(self) -> int:
        """The largest of `topk`."""
        return max(self.topk)

    def _one(self, values: list[float]):
        return values[0] if len(values) == 1 else values

    def name(self) -> list[str]:
        """A name for each of its numbers."""
        return self._core.name()


@_builtin
class Precision(_BuiltinMetric):
    pass


@_builtin
class Recall(_BuiltinMetric):
    pass


@_builtin
class Auc(_BuiltinMetric):
    pass
