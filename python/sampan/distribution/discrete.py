"""Distributions on whole numbers."""

import math

import sampan

from .distribution import Distribution, ExponentialFamily, listed, log_factorial, unit_uniform, xlogy


def expectation_of_log(log_p, log_q):
    """The sum over the first axis, the support, of p log q, where what p never takes counts nothing."""
    never = log_p == -math.inf
    return (sampan.exp(log_p) * sampan.where(never, 0.0, log_q)).sum(0)


class Bernoulli(ExponentialFamily):
    """1 with the probability `probs`, else 0. `probs` is kept off 0 and 1 by a rounding error, so `logits` are finite.

    >>> from sampan.distribution import Bernoulli
    >>> d = Bernoulli(0.25)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.entropy(), d.prob(1.0), d.cdf(0.5))]
    [0.25, 0.1875, 0.5623, 0.25, 0.75]
    """

    def __init__(self, probs, name=None):
        self.name = name or "Bernoulli"
        shape = self._parameters(probs=probs)
        eps = float(sampan.finfo(self.dtype).eps)
        self.probs = sampan.clip(self.probs, min=eps, max=1 - eps)
        self.logits = sampan.log(self.probs) - sampan.log1p(-self.probs)
        super().__init__(shape)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1.0 - self.probs)

    def sample(self, shape=()):
        """Zeros and ones of shape `shape + batch_shape`."""
        with sampan.no_grad():
            return sampan.bernoulli(self.probs.expand(list(self._extend_shape(shape))))

    def rsample(self, shape=(), temperature=1.0):
        """Relaxed draws with gradients: the sigmoid of one comes the closer to 0 or 1, the lower the `temperature`."""
        u = unit_uniform(self._extend_shape(shape), self.dtype)
        return (sampan.log(u) - sampan.log1p(-u) + self.logits) / temperature

    def log_prob(self, value):
        # value * logits - log(1 + exp(logits)), without the overflow of the exponential
        rest = sampan.clip(self.logits, min=0.0) + sampan.log1p(sampan.exp(-sampan.abs(self.logits)))
        return self._value(value) * self.logits - rest

    def cdf(self, value):
        value = self._value(value)
        return sampan.where(value < 0, 0.0, sampan.where(value < 1, 1.0 - self.probs, 1.0))

    def entropy(self):
        return -self.log_prob(self.probs)


class Geometric(Distribution):
    """The number of failures before the first success, in trials that succeed with the probability `probs`.

    >>> from sampan.distribution import Geometric
    >>> d = Geometric(0.5)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.pmf(2), d.cdf(1), d.entropy())]
    [1.0, 2.0, 0.125, 0.75, 1.3863]
    """

    def __init__(self, probs):
        super().__init__(self._parameters(probs=probs))

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def rsample(self, shape=()):
        """Whole numbers, so no gradient flows through them."""
        u = unit_uniform(self._extend_shape(shape), self.dtype)
        return sampan.floor(sampan.log(u) / sampan.log1p(-self.probs))

    def log_pmf(self, k):
        """The logarithm of the probability of `k` failures."""
        k = self._value(k, "k")
        return sampan.where(k < 0, -math.inf, xlogy(k, 1.0 - self.probs) + sampan.log(self.probs))

    def pmf(self, k):
        """The probability of `k` failures."""
        return sampan.exp(self.log_pmf(k))

    def log_prob(self, value):
        return self.log_pmf(value)

    def cdf(self, k):
        k = sampan.floor(self._value(k, "k"))
        return 1.0 - (1.0 - self.probs) ** (sampan.clip(k, min=-1.0) + 1.0)

    def entropy(self):
        rest = 1.0 - self.probs
        return -(xlogy(rest, rest) + xlogy(self.probs, self.probs)) / self.probs


class Poisson(Distribution):
    """The number of events in a time in which `rate` are expected.

    >>> from sampan.distribution import Poisson
    >>> d = Poisson(2.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.prob(1.0), d.entropy())]
    [2.0, 2.0, 0.2707, 1.7049]
    """

    def __init__(self, rate):
        super().__init__(self._parameters(rate=listed(rate)))

    @property
    def mean(self):
        return self.rate

    @property
    def variance(self):
        return self.rate

    def sample(self, shape=()):
        """Whole numbers of shape `shape + batch_shape`."""
        with sampan.no_grad():
            return sampan.poisson(self.rate.expand(list(self._extend_shape(shape))))

    def log_prob(self, value):
        value = self._value(value)
        return sampan.where(value < 0, -math.inf, xlogy(value, self.rate) - self.rate - log_factorial(value))

    def entropy(self):
        largest = self.rate.max().item()
        # What lies more than 30 standard deviations above the mean counts less than a rounding error.
        support = sampan.arange(int(largest + 30 * math.sqrt(max(largest, 1.0))), dtype=self.dtype)
        log_p = self.log_prob(support.reshape([-1] + [1] * len(self.batch_shape)))
        return -expectation_of_log(log_p, log_p)


class Binomial(Distribution):
    """The number of successes in `total_count` trials that succeed with the probability `probs`.

    >>> from sampan.distribution import Binomial
    >>> d = Binomial(4, 0.5)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.prob(2.0), d.entropy())]
    [2.0, 1.0, 0.375, 1.4075]
    """

    def __init__(self, total_count, probs):
        super().__init__(self._parameters(total_count=total_count, probs=probs))

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def variance(self):
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, shape=()):
        """Whole numbers, in the dtype of `probs`, of shape `shape + batch_shape`."""
        shape = list(self._extend_shape(shape))
        with sampan.no_grad():
            count = self.total_count.expand(shape).astype("int32")
            return sampan.binomial(count, self.probs.expand(shape)).astype(self.dtype)

    def log_prob(self, value):
        value = self._value(value)
        rest = self.total_count - value
        outside = sampan.logical_or(value < 0, rest < 0)
        ways = log_factorial(self.total_count) - log_factorial(value) - log_factorial(rest)
        return sampan.where(outside, -math.inf, ways + xlogy(value, self.probs) + xlogy(rest, 1.0 - self.probs))

    def _support(self):
        """The whole numbers up to the largest count, along a new first axis."""
        support = sampan.arange(int(self.total_count.max().item()) + 1, dtype=self.dtype)
        return support.reshape([-1] + [1] * len(self.batch_shape))

    def entropy(self):
        log_p = self.log_prob(self._support())
        return -expectation_of_log(log_p, log_p)
