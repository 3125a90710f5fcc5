"""Distributions of loc + scale * z, where z follows a standard distribution without parameters of place or size."""

import math

import sampan

from .distribution import Distribution, log_factorial, unit_uniform

EULER_GAMMA = 0.5772156649015329


class LocationScale(Distribution):
    """What all of them share; a subclass describes z by the methods and constants whose names end in `_z`."""

    _mean_z = 0.0
    _variance_z = 1.0
    _entropy_z = None

    def __init__(self, loc, scale, name=None):
        self.name = name or type(self).__name__
        super().__init__(self._parameters(loc=loc, scale=scale))

    def _log_prob_z(self, z):
        raise self._missing("log_prob")

    def _cdf_z(self, z):
        raise self._missing("cdf")

    def _icdf_z(self, u):
        raise self._missing("icdf")

    def _draw_z(self, shape, seed=0):
        return self._icdf_z(unit_uniform(shape, self.dtype, seed))

    def _standardize(self, value):
        return (self._value(value) - self.loc) / self.scale

    @property
    def mean(self):
        return self.loc + self.scale * self._mean_z if self._mean_z else self.loc

    @property
    def variance(self):
        return self.scale**2 * self._variance_z

    def rsample(self, shape=()):
        return self.loc + self.scale * self._draw_z(self._extend_shape(shape))

    def log_prob(self, value):
        return self._log_prob_z(self._standardize(value)) - sampan.log(self.scale)

    def cdf(self, value):
        return self._cdf_z(self._standardize(value))

    def icdf(self, value):
        return self.loc + self.scale * self._icdf_z(self._value(value))

    def entropy(self):
        return sampan.log(self.scale) + self._entropy_z


class Normal(LocationScale):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    With a complex `loc` it is the circular complex one, whose real and imaginary parts have half the variance each.

    >>> from sampan.distribution import Normal
    >>> unit = Normal(0.0, 1.0)
    >>> [round(x.item(), 4) for x in (unit.log_prob(0.0), unit.entropy(), unit.cdf(0.0))]
    [-0.9189, 1.4189, 0.5]
    """

    _entropy_z = 0.5 + 0.5 * math.log(2 * math.pi)

    def __init__(self, loc, scale, name=None):
        self.name = name or "Normal"
        shape = self._parameters(complex_allowed=True, loc=loc, scale=scale)
        if sampan.is_complex(self.scale):
            raise TypeError(f"Normal: scale must be real, but received {self.scale.dtype}")
        self._complex = sampan.is_complex(self.loc)
        if self._complex:
            self.dtype = self.loc.dtype
        Distribution.__init__(self, shape)

    def sample(self, shape=(), seed=0):
        """Draws without gradient; the same every time for one `seed` other than 0."""
        with sampan.no_grad():
            return self.loc + self.scale * self._draw_z(self._extend_shape(shape), seed)

    def _draw_z(self, shape, seed=0):
        if self._complex:
            parts = (_standard_normal(shape, self.scale.dtype, seed and seed + part) for part in (0, 1))
            return sampan.complex(*parts) * math.sqrt(0.5)
        return _standard_normal(shape, self.dtype, seed)

    def log_prob(self, value):
        z = self._standardize(value)
        if self._complex:
            return -(sampan.abs(z) ** 2) - 2.0 * sampan.log(self.scale) - math.log(math.pi)
        return -0.5 * z * z - sampan.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def entropy(self):
        if self._complex:
            return 2.0 * sampan.log(self.scale) + (1.0 + math.log(math.pi))
        return super().entropy()

    def _cdf_z(self, z):
        return 0.5 * (1.0 + sampan.erf(z * math.sqrt(0.5)))

    def _icdf_z(self, u):
        return math.sqrt(2) * sampan.erfinv(2.0 * u - 1.0)


def _standard_normal(shape, dtype, seed=0):
    if seed:
        return math.sqrt(2) * sampan.erfinv(2.0 * unit_uniform(shape, dtype, seed) - 1.0)
    return sampan.randn(list(shape), dtype=dtype)


class Laplace(LocationScale):
    """The Laplace distribution: density exp(-|x - loc| / scale) / (2 scale).

    >>> from sampan.distribution import Laplace
    >>> d = Laplace(0.0, 1.0)
    >>> [round(x.item(), 4) for x in (d.log_prob(1.0), d.entropy(), d.cdf(0.0), d.variance)]
    [-1.6931, 1.6931, 0.5, 2.0]
    """

    _variance_z = 2.0
    _entropy_z = 1.0 + math.log(2)

    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def _log_prob_z(self, z):
        return -sampan.abs(z) - math.log(2)

    def _cdf_z(self, z):
        return 0.5 - 0.5 * sampan.sign(z) * sampan.expm1(-sampan.abs(z))

    def _icdf_z(self, u):
        side = u - 0.5
        return -sampan.sign(side) * sampan.log1p(-2.0 * sampan.abs(side))


class Cauchy(LocationScale):
    """The Cauchy distribution, whose tails are too heavy for a mean or a variance.

    >>> from sampan.distribution import Cauchy
    >>> d = Cauchy(0.0, 1.0)
    >>> [round(x.item(), 4) for x in (d.log_prob(0.0), d.cdf(1.0), d.entropy())]
    [-1.1447, 0.75, 2.531]
    """

    _entropy_z = math.log(4 * math.pi)

    @property
    def mean(self):
        raise ValueError("Cauchy: the distribution has no mean. Hint: loc is its median")

    @property
    def variance(self):
        raise ValueError("Cauchy: the distribution has no variance. Hint: scale is its half width at half maximum")

    @property
    def stddev(self):
        raise ValueError("Cauchy: the distribution has no stddev. Hint: scale is its half width at half maximum")

    def sample(self, shape=(), name=None):
        """Draws without gradient."""
        return super().sample(shape)

    def rsample(self, shape=(), name=None):
        """Draws with gradients to loc and scale."""
        return super().rsample(shape)

    def _log_prob_z(self, z):
        return -sampan.log1p(z * z) - math.log(math.pi)

    def _cdf_z(self, z):
        return sampan.atan(z) / math.pi + 0.5

    def _icdf_z(self, u):
        return sampan.tan(math.pi * (u - 0.5))


class Gumbel(LocationScale):
    """The Gumbel distribution of the largest of many draws: cdf exp(-exp(-(x - loc) / scale)).

    >>> from sampan.distribution import Gumbel
    >>> d = Gumbel(0.0, 1.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.entropy(), d.log_prob(0.0))]
    [0.5772, 1.5772, -1.0]
    """

    _mean_z = EULER_GAMMA
    _variance_z = math.pi**2 / 6
    _entropy_z = 1.0 + EULER_GAMMA

    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def _log_prob_z(self, z):
        return -z - sampan.exp(-z)

    def _cdf_z(self, z):
        return sampan.exp(-sampan.exp(-z))

    def _icdf_z(self, u):
        return -sampan.log(-sampan.log(u))


class StudentT(LocationScale):
    """Student's t distribution with `df` degrees of freedom, moved by `loc` and stretched by `scale`.

    >>> from sampan.distribution import StudentT
    >>> d = StudentT(df=3.0, loc=0.0, scale=1.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.log_prob(0.0))]
    [0.0, 3.0, -1.0009]
    """

    def __init__(self, df, loc, scale, name=None):
        self.name = name or "StudentT"
        Distribution.__init__(self, self._parameters(df=df, loc=loc, scale=scale))
        for what in ("df", "scale"):
            if not bool((getattr(self, what) >= 0).all()):
                raise ValueError(f"StudentT: {what} must not be negative, but received {getattr(self, what).tolist()}")

    @property
    def mean(self):
        return sampan.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self):
        finite = self.df > 2
        spread = self.scale**2 * self.df / (sampan.where(finite, self.df, 3.0) - 2.0)
        return sampan.where(finite, spread, sampan.where(self.df > 1, sampan.full_like(self.df, math.inf), math.nan))

    def _draw_z(self, shape, seed=0):
        from .gamma import standard_gamma

        half = 0.5 * self.df.expand(list(shape))
        return sampan.randn(list(shape), dtype=self.dtype) * sampan.sqrt(half / standard_gamma(half))

    def _log_beta(self):
        """The logarithm of B(df / 2, 1 / 2)."""
        return sampan.lgamma(0.5 * self.df) + math.lgamma(0.5) - log_factorial(0.5 * self.df - 0.5)

    def _log_prob_z(self, z):
        tail = 0.5 * (self.df + 1.0) * sampan.log1p(z * z / self.df)
        return -tail - 0.5 * sampan.log(self.df) - self._log_beta()

    @property
    def _entropy_z(self):
        half = 0.5 * (self.df + 1.0)
        slope = sampan.digamma(half) - sampan.digamma(0.5 * self.df)
        return half * slope + 0.5 * sampan.log(self.df) + self._log_beta()
