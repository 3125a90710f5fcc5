"""Distributions over a finite number of classes, counted along the last axis of the parameter."""

import sampan
from sampan.nn import functional as F

from .distribution import Distribution, log_factorial, xlogy


def p_log_p(log_p):
    """p log p for p = exp(log_p), which is 0 for p = 0."""
    p = sampan.exp(log_p)
    return p * sampan.where(p == 0, 0.0, log_p)


class Categorical(Distribution):
    """One of the classes 0, 1, …, drawn with the probabilities softmax(logits).

    As in Paddle, `probs` and `log_prob` read `logits` in another way: as weights, divided by their sum. The two agree
    for no `logits` but equal ones, so give log-probabilities to draw or to compare entropies, probabilities to score.

    >>> import sampan
    >>> from sampan.distribution import Categorical
    >>> d = Categorical(sampan.to_tensor([1.0, 1.0, 2.0]))
    >>> d.probs(sampan.to_tensor([0, 2])).tolist(), round(d.entropy().item(), 4)
    ([0.25, 0.5], 0.9753)
    """

    def __init__(self, logits, name=None):
        self.name = name or "Categorical"
        shape = self._parameters(logits=logits)
        if not shape:
            raise ValueError("Categorical: logits must have at least one axis, the classes, but received a scalar")
        super().__init__(shape[:-1])

    def _log_softmax(self):
        return F.log_softmax(self.logits, axis=-1)

    def sample(self, shape=()):
        """Classes, int64, of shape `shape + batch_shape`."""
        shape = list(self._extend_shape(shape))
        draws = 1
        for n in shape[: len(shape) - len(self.batch_shape)]:
            draws *= n
        if draws == 0:
            return sampan.zeros(shape, dtype="int64")
        with sampan.no_grad():
            rows = sampan.exp(self._log_softmax()).reshape([-1, self.logits.shape[-1]])
            return sampan.multinomial(rows, draws, True).transpose([1, 0]).reshape(shape)

    def prob(self, value):
        """The weight of the classes in `value`, a share of the sum of all weights.

        With one axis in `logits`, `value` may have any shape. With more, a `value` of one axis is looked up in every
        row, and any other must have the axes of `logits`, with the classes wanted of each row along the last.
        """
        weights = self.logits / self.logits.sum(-1, keepdim=True)
        value = value if isinstance(value, sampan.Tensor) else sampan.to_tensor(value)
        value = value.astype("int64")
        if len(weights.shape) == 1:
            return sampan.gather(weights, value.reshape([-1])).reshape(value.shape)
        if len(value.shape) == 1:
            value = value.expand(list(self.batch_shape) + list(value.shape))
        return sampan.take_along_axis(weights, value, axis=-1)

    def log_prob(self, value):
        return sampan.log(self.prob(value))

    def entropy(self):
        return -p_log_p(self._log_softmax()).sum(-1)


class Multinomial(Distribution):
    """How often each class comes up in `total_count` draws with the probabilities `probs` (divided by their sum).

    >>> import sampan
    >>> from sampan.distribution import Multinomial
    >>> d = Multinomial(3, sampan.to_tensor([1.0, 1.0, 2.0]))
    >>> d.mean.tolist(), round(d.prob(sampan.to_tensor([1.0, 0.0, 2.0])).item(), 4)
    ([0.75, 0.75, 1.5], 0.1875)
    """

    def __init__(self, total_count, probs):
        if isinstance(total_count, bool) or not isinstance(total_count, int) or total_count < 1:
            raise ValueError(f"Multinomial: total_count must be an int greater than 0, but received {total_count!r}")
        shape = self._parameters(probs=probs)
        if not shape:
            raise ValueError("Multinomial: probs must have at least one axis, the classes, but received a scalar")
        self.probs = self.probs / self.probs.sum(-1, keepdim=True)
        self.total_count = total_count
        self._categorical = Categorical(sampan.log(self.probs))
        super().__init__(shape[:-1], shape[-1:])

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def variance(self):
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, shape=()):
        """Counts, in the dtype of `probs`, of shape `shape + batch_shape + event_shape`."""
        self._extend_shape(shape)
        draws = self._categorical.sample([self.total_count, *shape])
        return F.one_hot(draws, self.probs.shape[-1]).astype(self.dtype).sum(0)

    def log_prob(self, value):
        value = self._value(value)
        ways = log_factorial(value.sum(-1)) - log_factorial(value).sum(-1)
        return ways + xlogy(value, self.probs).sum(-1)

    def entropy(self):
        # log n! - sum_i log x_i! is the part of log_prob that is not linear in x; each count x_i alone is binomial.
        n = self.total_count
        k = sampan.arange(n + 1, dtype=self.dtype).reshape([-1] + [1] * len(self.probs.shape))
        all_ways = log_factorial(sampan.full([], float(n), dtype=self.dtype))
        ways = all_ways - log_factorial(k) - log_factorial(n - k)
        binomial = sampan.exp(ways + xlogy(k, self.probs) + xlogy(n - k, 1.0 - self.probs))
        expected = (binomial * log_factorial(k)).sum([0, -1])
        return n * self._categorical.entropy() - all_ways + expected
