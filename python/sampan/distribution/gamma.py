"""The gamma distribution and those made from it."""

import math

import sampan
from sampan.nn import functional as F

from .distribution import ExponentialFamily, unit_uniform, xlogy


def standard_gamma(concentration):
    """Gamma numbers of rate 1, one for each element of `concentration`, with the gradient with respect to it.

    A draw x of shape a has dx/da = -(dP/da) / (dP/dx), where P(a, x) is the cdf: moving a keeps a draw at its quantile.
    """
    x = sampan.standard_gamma(concentration.detach())
    if concentration.stop_gradient or not sampan.is_grad_enabled():
        return x
    with sampan.no_grad():
        a, at = concentration.astype("float64"), x.astype("float64")
        step = 1e-4 * sampan.minimum(sampan.sqrt(a), a)
        slope = (sampan.gammainc(a + step, at) - sampan.gammainc(a - step, at)) / (2.0 * step)
        density = sampan.exp((a - 1.0) * sampan.log(at) - at - sampan.lgamma(a))
        rate = (-slope / density).astype(x.dtype)
    return x + rate * (concentration - concentration.detach())


def log_standard_gamma(concentration):
    """The logarithms of gamma numbers of rate 1; finite even where a small shape makes the number itself vanish."""
    # If g has the shape a + 1 and u is uniform, g u^(1/a) has the shape a.
    u = unit_uniform(concentration.shape, concentration.dtype)
    return sampan.log(standard_gamma(concentration + 1.0)) + sampan.log(u) / concentration


class Gamma(ExponentialFamily):
    """The gamma distribution: density proportional to x^(concentration - 1) exp(-rate x).

    >>> from sampan.distribution import Gamma
    >>> d = Gamma(2.0, 4.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.entropy(), d.log_prob(0.5))]
    [0.5, 0.125, 0.1909, 0.0794]
    """

    def __init__(self, concentration, rate):
        super().__init__(self._parameters(concentration=concentration, rate=rate))

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def variance(self):
        return self.concentration / self.rate**2

    def rsample(self, shape=()):
        shape = list(self._extend_shape(shape))
        return sampan.exp(log_standard_gamma(self.concentration.expand(shape))) / self.rate

    def log_prob(self, value):
        value = self._value(value)
        scale = self.concentration * sampan.log(self.rate) - sampan.lgamma(self.concentration)
        return scale + xlogy(self.concentration - 1.0, value) - self.rate * value

    def cdf(self, value):
        value, a = sampan.broadcast_tensors([self.rate * self._value(value), self.concentration])
        return sampan.gammainc(a, value)

    def entropy(self):
        a = self.concentration
        return a - sampan.log(self.rate) + sampan.lgamma(a) + (1.0 - a) * sampan.digamma(a)


class Chi2(Gamma):
    """The chi-squared distribution of a sum of `df` squared standard normal numbers.

    >>> from sampan.distribution import Chi2
    >>> d = Chi2(3.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.log_prob(1.0))]
    [3.0, 6.0, -1.4189]
    """

    def __init__(self, df):
        self._parameters(df=df)
        if not bool((self.df > 0).all()):
            raise ValueError(f"Chi2: df must be positive, but received {self.df.tolist()}")
        super().__init__(0.5 * self.df, sampan.full_like(self.df, 0.5))


class Exponential(ExponentialFamily):
    """The exponential distribution: density rate exp(-rate x) for x >= 0.

    >>> from sampan.distribution import Exponential
    >>> d = Exponential(2.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.entropy(), d.cdf(0.5), d.log_prob(0.5))]
    [0.5, 0.3069, 0.6321, -0.3069]
    """

    def __init__(self, rate):
        super().__init__(self._parameters(rate=rate))

    @property
    def mean(self):
        return 1.0 / self.rate

    @property
    def variance(self):
        return self.rate**-2

    def rsample(self, shape=()):
        return self.icdf(unit_uniform(self._extend_shape(shape), self.dtype))

    def log_prob(self, value):
        value = self._value(value)
        return sampan.where(value < 0, -math.inf, sampan.log(self.rate) - self.rate * value)

    def cdf(self, value):
        return -sampan.expm1(-self.rate * sampan.clip(self._value(value), min=0.0))

    def icdf(self, value):
        return -sampan.log1p(-self._value(value)) / self.rate

    def entropy(self):
        return 1.0 - sampan.log(self.rate)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of shares that add up to 1; the last axis of `concentration` counts them.

    >>> import sampan
    >>> from sampan.distribution import Dirichlet
    >>> d = Dirichlet(sampan.to_tensor([1.0, 2.0, 1.0]))
    >>> d.mean.tolist(), round(d.log_prob(sampan.to_tensor([0.25, 0.5, 0.25])).item(), 4)
    ([0.25, 0.5, 0.25], 1.0986)
    """

    def __init__(self, concentration):
        shape = self._parameters(concentration=concentration)
        if not shape or 0 in shape:
            raise ValueError(f"Dirichlet: concentration must have at least one axis, none empty, but received {shape}")
        super().__init__(shape[:-1], shape[-1:])

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1.0))

    def rsample(self, shape=()):
        shape = list(self._extend_shape(shape))
        return F.softmax(log_standard_gamma(self.concentration.expand(shape)), axis=-1)

    def _log_beta(self):
        """The logarithm of the multivariate beta function."""
        return sampan.lgamma(self.concentration).sum(-1) - sampan.lgamma(self.concentration.sum(-1))

    def log_prob(self, value):
        return xlogy(self.concentration - 1.0, self._value(value)).sum(-1) - self._log_beta()

    def entropy(self):
        a, total = self.concentration, self.concentration.sum(-1)
        middle = (total - a.shape[-1]) * sampan.digamma(total)
        return self._log_beta() + middle - ((a - 1.0) * sampan.digamma(a)).sum(-1)


class Beta(ExponentialFamily):
    """The beta distribution on [0, 1]: density proportional to x^(alpha - 1) (1 - x)^(beta - 1).

    >>> from sampan.distribution import Beta
    >>> d = Beta(2.0, 2.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.entropy(), d.prob(0.5))]
    [0.5, 0.05, -0.1251, 1.5]
    """

    def __init__(self, alpha, beta):
        super().__init__(self._parameters(alpha=alpha, beta=beta))
        self._dirichlet = Dirichlet(sampan.stack([self.alpha, self.beta], -1))

    @property
    def mean(self):
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self):
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total**2 * (total + 1.0))

    def rsample(self, shape=()):
        return self._dirichlet.rsample(shape)[..., 0]

    def log_prob(self, value):
        value = self._value(value)
        return self._dirichlet.log_prob(sampan.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()
