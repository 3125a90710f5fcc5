"""The Kullback-Leibler divergence: one formula for each pair of classes, and how users add theirs."""

import math
import warnings

import sampan

from .categorical import Categorical
from .discrete import Bernoulli, Binomial, Geometric, Poisson, expectation_of_log
from .distribution import Distribution, ExponentialFamily, broadcast_shape, sum_rightmost, xlogy
from .gamma import Beta, Dirichlet, Exponential, Gamma
from .interval import ContinuousBernoulli, Uniform
from .location_scale import Cauchy, Laplace, Normal
from .multivariate import MultivariateNormal, inverse_of_lower
from .transformed import Independent, LogNormal

_FORMULAS = {}


def kl_divergence(p, q):
    """The expectation under `p` of log p - log q, by the formula of the nearest registered pair of classes.

    >>> from sampan.distribution import Normal, kl_divergence
    >>> round(kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item(), 4)
    0.5
    """
    return _formula(type(p), type(q))(p, q)


def register_kl(cls_p, cls_q):
    """A decorator that makes a function of (p, q) the formula for these two classes and their subclasses.

    >>> from sampan.distribution import Normal, kl_divergence, register_kl
    >>> class Point(Normal): pass
    >>> @register_kl(Point, Normal)
    ... def point_from_normal(p, q):
    ...     return -q.log_prob(p.loc)
    >>> round(kl_divergence(Point(0.0, 1.0), Normal(0.0, 1.0)).item(), 4)
    0.9189
    """
    for name, cls in (("cls_p", cls_p), ("cls_q", cls_q)):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"register_kl: {name} must be a subclass of Distribution, but received {cls!r}")

    def register(formula):
        _FORMULAS[cls_p, cls_q] = formula
        return formula

    return register


def _formula(cls_p, cls_q):
    pairs = [(p, q) for p, q in _FORMULAS if issubclass(cls_p, p) and issubclass(cls_q, q)]
    if not pairs:
        raise NotImplementedError(
            f"kl_divergence: there is no formula for {cls_p.__name__} and {cls_q.__name__}. "
            "Hint: add one with register_kl"
        )

    def distance(pair):
        return cls_p.__mro__.index(pair[0]), cls_q.__mro__.index(pair[1])

    by_p, by_q = min(pairs, key=distance), min(pairs, key=lambda pair: distance(pair)[::-1])
    if _FORMULAS[by_p] is not _FORMULAS[by_q]:
        warnings.warn(
            f"kl_divergence({cls_p.__name__}, {cls_q.__name__}) has two nearest formulas. "
            f"Hint: register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _FORMULAS[by_p]


@register_kl(Normal, Normal)
def _normal(p, q):
    if p._complex != q._complex:
        raise ValueError("kl_divergence: one Normal is real and the other complex; both must be of one kind")
    ratio = (p.scale / q.scale) ** 2
    shift = sampan.abs((p.loc - q.loc) / q.scale) ** 2
    return (1.0 if p._complex else 0.5) * (ratio + shift - 1.0 - sampan.log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p, q):
    return _normal(p._base, q._base)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: both MultivariateNormal must have one event_shape, but received {p.event_shape} "
            f"and {q.event_shape}"
        )
    spread = (sampan.matmul(inverse_of_lower(q._root), p._root) ** 2).sum([-2, -1])
    distance = q._distance(p.loc - q.loc)
    return q._log_volume() - p._log_volume() + 0.5 * (spread + distance - p.event_shape[0])


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    shift = sampan.abs(p.loc - q.loc)
    return sampan.log(q.scale / p.scale) + (p.scale * sampan.exp(-shift / p.scale) + shift) / q.scale - 1.0


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return sampan.log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4.0 * p.scale * q.scale))


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    inside = sampan.logical_and(q.low <= p.low, p.high <= q.high)
    return sampan.where(inside, sampan.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    # Both densities are of the form exp(c + t x), so the expectation of the difference needs no more than the mean.
    constant = p._log_constant() + p._log_rest - q._log_constant() - q._log_rest
    return constant + p.mean * (p._logit - q._logit)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    shapes = (a - b) * sampan.digamma(a) + sampan.lgamma(b) - sampan.lgamma(a)
    return shapes + b * sampan.log(p.rate / q.rate) + a * (q.rate / p.rate - 1.0)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1.0 - sampan.log(ratio)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    expected_log = sampan.digamma(a) - sampan.digamma(a.sum(-1, keepdim=True))
    return q._log_beta() - p._log_beta() + ((a - b) * expected_log).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    return -p.entropy() - q.log_prob(p.probs)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    # The expected number of failures, times what each says, and what the success says.
    failures = xlogy(1.0 - p.probs, (1.0 - p.probs) / (1.0 - q.probs)) / p.probs
    return failures + sampan.log(p.probs / q.probs)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - p.rate + q.rate


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    support = sampan.arange(int(p.total_count.max().item()) + 1, dtype=p.dtype)
    support = support.reshape([-1] + [1] * len(broadcast_shape(p.batch_shape, q.batch_shape)))
    log_p = p.log_prob(support)
    return expectation_of_log(log_p, log_p) - expectation_of_log(log_p, q.log_prob(support))


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    """The classes stay as an axis of length 1, as in Paddle."""
    log_p, log_q = p._log_softmax(), q._log_softmax()
    share = sampan.exp(log_p)
    return (share * sampan.where(share == 0, 0.0, log_p - log_q)).sum(-1, keepdim=True)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p._rank != q._rank:
        raise ValueError(
            "kl_divergence: both Independent must have one reinterpreted_batch_rank, "
            f"but received {p._rank} and {q._rank}"
        )
    return sum_rightmost(kl_divergence(p._base, q._base), p._rank)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: there is no formula for {type(p).__name__} and {type(q).__name__}. "
            "Hint: add one with register_kl"
        )
    # The Bregman divergence of the log normalizer, whose gradients are the expectations of the statistics.
    parameters, normalizer, means = p._dual()
    divergence = q._log_normalizer(*q._natural_parameters) - normalizer
    for own, other, mean in zip(parameters, q._natural_parameters, means):
        divergence = divergence - sum_rightmost((other - own) * mean, len(q.event_shape))
    return divergence
