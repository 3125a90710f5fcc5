"""Distributions on an interval."""

import functools
import math

import sampan

from .distribution import Distribution, listed, unit_uniform

# The series of (coth a - 1 / a) / a in powers of a squared; up to |a| = 1/2 the rest is below 1e-14.
LANGEVIN = (
    1 / 3,
    -1 / 45,
    2 / 945,
    -1 / 4725,
    2 / 93555,
    -1382 / 638512875,
    4 / 18243225,
    -3617 / 162820783125,
    87734 / 38979295480125,
)


class Uniform(Distribution):
    """The uniform distribution on the open interval from `low` to `high`.

    >>> from sampan.distribution import Uniform
    >>> d = Uniform(1.0, 3.0)
    >>> [round(x.item(), 4) for x in (d.probs(2.0), d.probs(4.0), d.entropy(), d.mean)]
    [0.5, 0.0, 0.6931, 2.0]
    """

    def __init__(self, low, high, name=None):
        self.name = name or "Uniform"
        super().__init__(self._parameters(low=low, high=high))

    @property
    def mean(self):
        return 0.5 * (self.low + self.high)

    @property
    def variance(self):
        return (self.high - self.low) ** 2 / 12.0

    def sample(self, shape=(), seed=0):
        """Draws without gradient; the same every time for one `seed` other than 0."""
        with sampan.no_grad():
            return self._draw(shape, seed)

    def rsample(self, shape=()):
        return self._draw(shape, 0)

    def _draw(self, shape, seed):
        u = sampan.uniform(list(self._extend_shape(shape)), dtype=self.dtype, min=0.0, max=1.0, seed=seed)
        return self.low + (self.high - self.low) * u

    def log_prob(self, value):
        return sampan.log(self.prob(value))

    def prob(self, value):
        value = self._value(value)
        inside = sampan.logical_and(self.low < value, value < self.high).astype(self.dtype)
        return inside / (self.high - self.low)

    def cdf(self, value):
        return sampan.clip((self._value(value) - self.low) / (self.high - self.low), min=0.0, max=1.0)

    def icdf(self, value):
        return self.low + (self.high - self.low) * self._value(value)

    def entropy(self):
        return sampan.log(self.high - self.low)


class ContinuousBernoulli(Distribution):
    """Density proportional to probs^x (1 - probs)^(1 - x) on [0, 1]: what a pixel between 0 and 1 may follow.

    Seen from the middle it is exp(2 a x), with a = logit(probs) / 2, and all its moments come from one function,
    L(a) = coth a - 1 / a. Near probs = 0.5 that is a difference of large numbers, so there its series is summed. The
    series is used wherever it is the more exact of the two, hence `lims`, the interval of probs where Paddle uses a
    shorter one, changes nothing.

    >>> from sampan.distribution import ContinuousBernoulli
    >>> d = ContinuousBernoulli(0.2)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.entropy(), d.cdf(0.5))]
    [0.388, 0.0759, -0.0764, 0.6667]
    """

    def __init__(self, probs, lims=(0.499, 0.501)):
        shape = self._parameters(probs=listed(probs))
        eps = float(sampan.finfo(self.dtype).eps)
        self.probs = sampan.clip(self.probs, min=eps, max=1 - eps)
        self.lims = sampan.to_tensor(lims, dtype=self.dtype)
        self._log_rest = sampan.log1p(-self.probs)
        self._logit = sampan.log(self.probs) - self._log_rest
        super().__init__(shape)

    def _moments(self):
        """a and L(a) / a."""
        a = 0.5 * self._logit
        near = sampan.abs(a) < 0.5
        s = sampan.where(near, a, 0.0) ** 2
        series = functools.reduce(lambda total, factor: total * s + factor, reversed(LANGEVIN), sampan.zeros_like(s))
        far = sampan.where(near, 1.0, a)
        return a, sampan.where(near, series, (1.0 / sampan.tanh(far) - 1.0 / far) / far)

    def _log_constant(self):
        a, ratio = self._moments()
        return sampan.log1p(a * a * ratio) + math.log(2)

    @property
    def mean(self):
        a, ratio = self._moments()
        return 0.5 * (1.0 + a * ratio)

    @property
    def variance(self):
        a, ratio = self._moments()
        return 0.25 * (1.0 - (a * ratio) ** 2 - 2.0 * ratio)

    def rsample(self, shape=()):
        return self.icdf(unit_uniform(self._extend_shape(shape), self.dtype))

    def log_prob(self, value):
        return self._log_constant() + self._value(value) * self._logit + self._log_rest

    def entropy(self):
        return -(self._log_constant() + self.mean * self._logit + self._log_rest)

    def _steep(self):
        """Where the density is flat enough for a parabola as its cdf, and the logit elsewhere."""
        flat = sampan.abs(self._logit) < 1e-3
        return flat, sampan.where(flat, 1.0, self._logit)

    def cdf(self, value):
        x = sampan.clip(self._value(value), min=0.0, max=1.0)
        flat, t = self._steep()
        return sampan.where(flat, x + 0.5 * self._logit * x * (x - 1.0), sampan.expm1(t * x) / sampan.expm1(t))

    def icdf(self, value):
        u = self._value(value)
        flat, t = self._steep()
        return sampan.where(flat, u + 0.5 * self._logit * u * (1.0 - u), sampan.log1p(u * sampan.expm1(t)) / t)
