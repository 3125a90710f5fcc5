"""Probability distributions, their divergences, and transforms of one into another."""

import sys

from . import (
    categorical,
    constraint,
    discrete,
    distribution,
    gamma,
    interval,
    location_scale,
    multivariate,
    transform,
    transformed,
    variable,
)
from .categorical import Categorical, Multinomial
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2, Dirichlet, Exponential, Gamma
from .interval import ContinuousBernoulli, Uniform
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Gumbel, Laplace, Normal, StudentT
from .multivariate import LKJCholesky, MultivariateNormal
from .transform import (
    AbsTransform,
    AffineTransform,
    ChainTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
)
from .transformed import Independent, LogNormal, TransformedDistribution

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "kl_divergence",
    "register_kl",
    *transform.__all__,
]

# The names of the files that Paddle keeps them in, where the file here has another.
_FILES = {
    categorical: "multinomial",
    discrete: "bernoulli binomial geometric poisson",
    distribution: "exponential_family",
    gamma: "beta chi2 dirichlet exponential",
    interval: "continuous_bernoulli uniform",
    location_scale: "cauchy gumbel laplace normal student_t",
    multivariate: "lkj_cholesky multivariate_normal",
    transformed: "independent lognormal transformed_distribution",
}
for _module, _names in _FILES.items():
    for _name in _names.split():
        globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _module
