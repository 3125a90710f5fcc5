"""Metrics: values, inputs of all kinds, and metrics of the user's own."""

import numpy as np
import pytest

import sampan
from sampan import metric

SCORES = [[0.1, 0.2, 0.3, 0.4], [0.1, 0.4, 0.3, 0.2], [0.1, 0.2, 0.4, 0.3], [0.1, 0.2, 0.3, 0.4]]
LABELS = [[0], [1], [2], [2]]


@pytest.mark.parametrize("wrap", [sampan.to_tensor, np.array])
def test_accuracy(wrap):
    m = metric.Accuracy()
    assert m.update(m.compute(wrap(SCORES), wrap(LABELS))) == 0.5
    assert m.accumulate() == 0.5 and m.name() == ["acc"]
    m.reset()
    assert m.accumulate() == 0.0
    m = metric.Accuracy(topk=(1, 2), name="a")
    assert m.update(m.compute(wrap(SCORES), wrap(LABELS))) == [0.5, 0.75]
    assert m.accumulate() == [0.5, 0.75] and m.name() == ["a_top1", "a_top2"]
    assert m.topk == (1, 2) and m.maxk == 2 and metric.Accuracy().topk == (1,)


def test_a_short_batch_counts_by_its_samples():
    m = metric.Accuracy()
    m.update(m.compute(sampan.to_tensor(SCORES), sampan.to_tensor(LABELS)))
    m.update(m.compute(sampan.to_tensor(SCORES[:1]), sampan.to_tensor([[3]])))
    assert m.accumulate() == pytest.approx(3 / 5)


def test_precision_recall_auc():
    predictions, labels = np.array([[0.1], [0.5], [0.6], [0.7]]), np.array([[0], [1], [1], [0]])
    precision, recall = metric.Precision(), metric.Recall()
    assert precision.update(predictions, labels) is None
    recall.update(sampan.to_tensor(predictions), sampan.to_tensor(labels))
    assert precision.accumulate() == pytest.approx(2 / 3) and precision.name() == "precision"
    assert recall.accumulate() == pytest.approx(1 / 2) and recall.name() == "recall"
    auc = metric.Auc()
    auc.update(np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]]), np.array([[0], [0], [1], [1]]))
    assert auc.accumulate() == pytest.approx(0.75) and auc.name() == "auc"
    with pytest.raises(ValueError, match="one row for each label"):
        auc.update(np.ones((3, 2)), np.ones((2, 1)))


def test_the_function():
    found = metric.accuracy(sampan.to_tensor(SCORES), sampan.to_tensor(LABELS), k=2)
    assert found.item() == 0.75 and found.dtype == sampan.float32


def test_a_metric_of_the_user():
    class Mean(metric.Metric):
        def __init__(self):
            super().__init__()
            self.reset()

        def reset(self):
            self.values = []

        def update(self, outputs, labels):
            self.values.append((outputs - labels).mean().item())

        def accumulate(self):
            return sum(self.values) / len(self.values)

        def name(self):
            return "mean"

    m = Mean()
    m.update(*m.compute(sampan.ones([2]), sampan.zeros([2])))
    assert m.accumulate() == 1.0 and m.name() == "mean"
    with pytest.raises(NotImplementedError, match="has no update"):
        metric.Metric().update()
