"""Distributions against quadrature, closed forms and the moments of their own draws."""

import math

import numpy as np
import pytest

import sampan
from sampan import distribution as D
from sampan.distribution import constraint, variable


EULER_GAMMA = 0.5772156649015329


def double(value):
    return sampan.to_tensor(np.asarray(value, dtype="float64"))


def close(actual, expected, tolerance=1e-6):
    actual = actual.numpy() if isinstance(actual, sampan.Tensor) else actual
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Each support as x(t) with dx/dt, so that one trapezoid rule in t integrates over all of it, tails included.
T = np.linspace(-36.0, 36.0, 40001)
SUPPORTS = {
    "real": (np.sinh(T), np.cosh(T)),
    "positive": (np.exp(T), np.exp(T)),
    "unit": (1 / (1 + np.exp(-T)), np.exp(-np.abs(T)) / (1 + np.exp(-np.abs(T))) ** 2),
}

CONTINUOUS = [
    (D.Normal, (0.5, 1.5), (-0.3, 0.8), "real"),
    (D.Laplace, (0.5, 1.5), (-0.3, 0.8), "real"),
    (D.Cauchy, (0.5, 1.5), (-0.3, 0.8), "real"),
    (D.Gumbel, (0.5, 1.5), None, "real"),
    (D.StudentT, (4.5, 0.5, 1.5), None, "real"),
    (D.LogNormal, (0.2, 0.6), (-0.3, 0.8), "positive"),
    (D.Gamma, (2.5, 1.5), (1.5, 0.7), "positive"),
    (D.Gamma, (0.7, 1.5), (1.2, 0.7), "positive"),
    (D.Chi2, (3.0,), (4.0,), "positive"),
    (D.Exponential, (1.5,), (0.7,), "positive"),
    (D.Beta, (2.5, 1.5), (1.2, 0.8), "unit"),
    (D.ContinuousBernoulli, (0.2,), (0.6,), "unit"),
    (D.ContinuousBernoulli, (0.48,), (0.5002,), "unit"),
]
continuous = pytest.mark.parametrize(
    "cls, own, other, support", CONTINUOUS, ids=lambda v: v.__name__ if isinstance(v, type) else None
)


def make(cls, arguments):
    return cls(*(double([value]) for value in arguments))


def integral(values, support):
    return np.trapezoid(np.where(np.isfinite(values), values, 0.0) * SUPPORTS[support][1], T)


@continuous
def test_density_moments_and_entropy_agree_with_quadrature(cls, own, other, support):
    d, x = make(cls, own), SUPPORTS[support][0]
    inside = (x > 0) & (x < 1) if support == "unit" else np.isfinite(x)
    points = np.where(inside, x, 0.5)
    p, log_p = (np.where(inside, f(double(points)).numpy(), 0.0) for f in (d.prob, d.log_prob))
    p = np.where(p < 1e-300, 0.0, p)  # An exponential may stop at the smallest normal number.
    close(integral(p, support), 1.0)
    close(d.entropy(), [-integral(p * np.where(p > 0, log_p, 0.0), support)])
    if cls is D.Cauchy:
        for name in ("mean", "variance", "stddev"):
            with pytest.raises(ValueError, match=f"no {name}"):
                getattr(d, name)
        return
    mean = integral(p * x, support)
    close(d.mean, [mean])
    close(d.variance, [integral(p * (x - mean) ** 2, support)], 1e-5)
    close(d.stddev, [math.sqrt(integral(p * (x - mean) ** 2, support))], 1e-5)


@continuous
def test_cdf_is_the_integral_of_the_density(cls, own, other, support):
    d, (x, dx) = make(cls, own), SUPPORTS[support]
    if cls in (D.StudentT, D.Beta):
        with pytest.raises(NotImplementedError, match=f"{cls.__name__} has no cdf"):
            d.cdf(0.5)
        return
    steps = np.nan_to_num(d.prob(double(x)).numpy()) * dx
    area = np.concatenate([[0.0], np.cumsum((steps[1:] + steps[:-1]) / 2)]) * (T[1] - T[0])
    some = slice(17000, 23000, 500)
    close(d.cdf(double(x[some])), area[some], 1e-5)
    if not isinstance(d, D.Gamma):
        u = double([0.01, 0.3, 0.5, 0.9])
        close(d.cdf(d.icdf(u)), u.numpy())


@continuous
def test_divergence_agrees_with_quadrature(cls, own, other, support):
    if other is None:
        with pytest.raises(NotImplementedError, match="register_kl"):
            D.kl_divergence(make(cls, own), make(cls, own))
        return
    p, q, x = make(cls, own), make(cls, other), SUPPORTS[support][0]
    inside = (x > 0) & (x < 1) if support == "unit" else np.isfinite(x)
    points = double(np.where(inside, x, 0.5))
    gap = p.prob(points).numpy() * (p.log_prob(points).numpy() - q.log_prob(points).numpy())
    expected = [integral(np.where(inside, gap, 0.0), support)]
    close(D.kl_divergence(p, q), expected)
    close(p.kl_divergence(q), expected)
    close(p.kl_divergence(p), [0.0])


DISCRETE = [
    (D.Bernoulli, (0.3,), (0.6,), 2),
    (D.Geometric, (0.3,), (0.6,), 200),
    (D.Poisson, (3.5,), (2.0,), 60),
    (D.Binomial, (7, 0.3), (7, 0.6), 8),
    (D.Binomial, (5, 0.3), (7, 0.6), 6),
]


@pytest.mark.parametrize("cls, own, other, size", DISCRETE, ids=lambda v: v.__name__ if isinstance(v, type) else None)
def test_discrete_sums(cls, own, other, size):
    p, q, k = make(cls, own), make(cls, other), np.arange(size, dtype="float64")
    mass, log_p, log_q = (f(double(k)).numpy() for f in (p.prob, p.log_prob, q.log_prob))
    close(mass.sum(), 1.0)
    close(p.mean, [(mass * k).sum()])
    close(p.variance, [(mass * k**2).sum() - (mass * k).sum() ** 2])
    close(p.entropy(), [-(mass * log_p).sum()])
    close(D.kl_divergence(p, q), [(mass * (log_p - log_q)).sum()])
    if cls in (D.Bernoulli, D.Geometric):
        close(p.cdf(double(k)), np.cumsum(mass))
    if cls is D.Geometric:
        close(p.pmf(double(k)), mass)
        close(p.log_pmf(3), [log_p[3]])


def test_what_cannot_happen_has_no_probability():
    assert D.Binomial(3, 0.5).prob(4.0).item() == 0.0
    assert D.Poisson(2.0).prob(-1.0).item() == 0.0
    assert D.Exponential(1.0).prob(-1.0).item() == 0.0
    assert D.Exponential(1.0).cdf(-1.0).item() == 0.0
    assert D.Uniform(0.0, 1.0).log_prob(2.0).item() == -math.inf
    assert D.Poisson(sampan.to_tensor([0.0, 0.0])).prob(sampan.to_tensor([0.0, 1.0])).tolist() == [1.0, 0.0]
    assert D.Poisson(sampan.to_tensor([0.0])).entropy().tolist() == [0.0]
    assert D.Binomial(3, sampan.to_tensor([0.0, 1.0])).prob(sampan.to_tensor([0.0, 3.0])).tolist() == [1.0, 1.0]
    assert D.kl_divergence(D.Binomial(3, 0.5), D.Binomial(2, 0.5)).item() == math.inf
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)).item() == math.inf


def test_uniform():
    d = D.Uniform(double([1.0, 2.0]), double([3.0, 6.0]))
    close(d.mean, [2.0, 4.0])
    close(d.variance, [4 / 12, 16 / 12])
    close(d.entropy(), np.log([2.0, 4.0]))
    close(d.probs(double([2.0, 7.0])), [0.5, 0.0])
    close(d.cdf(double([0.0, 3.0])), [0.0, 0.25])
    close(D.kl_divergence(D.Uniform(1.0, 2.0), D.Uniform(0.0, 4.0)), math.log(4))


def test_student_t_without_moments():
    d = D.StudentT(sampan.to_tensor([0.5, 1.5, 3.0]), 2.0, 1.0)
    np.testing.assert_array_equal(d.mean.numpy(), [np.nan, 2.0, 2.0])
    np.testing.assert_allclose(d.variance.numpy(), [np.nan, np.inf, 3.0], rtol=1e-6)


def test_continuous_bernoulli_is_exact_near_one_half():
    d = D.ContinuousBernoulli(sampan.to_tensor([0.4985, 0.5, 0.5015]))
    close(d.variance, [1 / 12] * 3, 1e-5)
    close(d.mean, 0.5 + np.array([-0.0015, 0.0, 0.0015]) / 3)
    close(d.log_prob(0.3), [0.0] * 3, 1e-2)


needs_complex = pytest.mark.skipif(not hasattr(sampan, "complex64"), reason="there are no complex tensors")


@needs_complex
def test_complex_normal():
    d = D.Normal(1 + 2j, 2.0)
    z = sampan.to_tensor(2 + 2j)
    close(d.log_prob(z), -0.25 - math.log(4 * math.pi))
    close(d.entropy(), 1 + math.log(4 * math.pi))
    close(D.kl_divergence(d, D.Normal(0j, 2.0)), 5 / 4)
    sampan.seed(3)
    draws = d.sample([20000]).numpy() - (1 + 2j)
    close((abs(draws) ** 2).mean(), 4.0, 0.05)
    close((draws**2).mean(), 0.0, 0.1)
    with pytest.raises(ValueError, match="complex"):
        D.kl_divergence(d, D.Normal(0.0, 1.0))


def test_categorical():
    weights = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 4.0]])
    d = D.Categorical(double(weights))
    shares = weights / weights.sum(-1, keepdims=True)
    softmax = np.exp(weights) / np.exp(weights).sum(-1, keepdims=True)
    close(d.probs(sampan.to_tensor([2, 0])), shares[:, [2, 0]])
    close(d.log_prob(sampan.to_tensor([[1], [2]])), np.log([[shares[0, 1]], [shares[1, 2]]]))
    close(D.Categorical(double(weights[0])).probs(sampan.to_tensor([[0, 1]])), shares[0, [[0, 1]]])
    close(d.entropy(), -(softmax * np.log(softmax)).sum(-1))
    other = D.Categorical(double(np.zeros([2, 3])))
    close(D.kl_divergence(d, other), (softmax * np.log(softmax * 3)).sum(-1, keepdims=True))
    sampan.seed(1)
    draws = d.sample([100, 200])
    assert list(draws.shape) == [100, 200, 2]
    for row in range(2):
        counts = np.bincount(draws.numpy()[..., row].ravel(), minlength=3) / 20000
        close(counts, softmax[row], 0.02)


def test_multinomial():
    d = D.Multinomial(4, double([1.0, 2.0, 0.0, 5.0]))
    p = np.array([1.0, 2.0, 0.0, 5.0]) / 8
    counts = [(i, j, 0, 4 - i - j) for i in range(5) for j in range(5 - i)]
    ways = [24 / math.prod(math.factorial(n) for n in c) for c in counts]
    mass = np.array([w * math.prod(q**n for q, n in zip(p, c)) for w, c in zip(ways, counts)])
    close(d.prob(double(counts)), mass)
    close(d.prob(sampan.to_tensor([1, 1, 1, 1])), 0.0)
    close(d.mean, 4 * p)
    close(d.variance, 4 * p * (1 - p))
    close(d.entropy(), -(mass * np.log(mass)).sum())
    sampan.seed(1)
    draws = d.sample([5000])
    assert list(draws.shape) == [5000, 4] and (draws.sum(-1) == 4.0).all()
    close(draws.mean(0), 4 * p, 0.06)


def test_dirichlet():
    a, b = np.array([0.6, 2.0, 3.5]), np.array([1.0, 1.0, 2.0])
    p, q = D.Dirichlet(double(a)), D.Dirichlet(double(b))
    log_beta = sum(map(math.lgamma, a)) - math.lgamma(a.sum())
    x = np.array([0.2, 0.3, 0.5])
    close(p.log_prob(double(x)), ((a - 1) * np.log(x)).sum() - log_beta)
    close(p.mean, a / a.sum())
    close(p.variance, a * (a.sum() - a) / (a.sum() ** 2 * (a.sum() + 1)))
    sampan.seed(5)
    draws = p.sample([40000])
    close(draws.mean(0), a / a.sum(), 0.01)
    close(p.entropy(), -p.log_prob(draws).mean().item(), 0.02)
    close(p.kl_divergence(q), (p.log_prob(draws) - q.log_prob(draws)).mean().item(), 0.03)
    # Such small concentrations put all weight on one element, and draws stay finite.
    tiny = D.Dirichlet(sampan.full([3], 1e-3)).sample([50])
    close(tiny.sum(-1), np.ones(50), 1e-5)


def test_multivariate_normal():
    rng = np.random.default_rng(0)
    roots = np.linalg.cholesky(np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 3.0]]]))
    covariance, loc = roots @ np.swapaxes(roots, -1, -2), rng.normal(size=[2, 2])
    value = rng.normal(size=[5, 2, 2])
    gap = value - loc
    distance = np.einsum("sbi,bij,sbj->sb", gap, np.linalg.inv(covariance), gap)
    log_det = np.log(np.linalg.det(covariance))
    kinds = {
        "covariance_matrix": covariance,
        "precision_matrix": np.linalg.inv(covariance),
        "scale_tril": roots,
    }
    for name, matrix in kinds.items():
        d = D.MultivariateNormal(double(loc), **{name: double(matrix)})
        assert (d.batch_shape, d.event_shape) == ((2,), (2,))
        close(d.log_prob(double(value)), -0.5 * (2 * math.log(2 * math.pi) + log_det + distance))
        close(d.entropy(), 0.5 * (2 * (1 + math.log(2 * math.pi)) + log_det))
        close(d.variance, np.diagonal(covariance, axis1=-2, axis2=-1))
    other = D.MultivariateNormal(double([0.0, 0.0]), double(np.eye(2)))
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    close(D.kl_divergence(d, other), 0.5 * (trace + (loc**2).sum(-1) - 2 - log_det))
    sampan.seed(2)
    draws = d.sample([20000]).numpy()
    close(draws.mean(0), loc, 0.06)
    close(np.cov(draws[:, 1].T), covariance[1], 0.1)
    for arguments in ({}, {"covariance_matrix": double(np.eye(2)), "scale_tril": double(np.eye(2))}):
        with pytest.raises(ValueError, match="exactly one of"):
            D.MultivariateNormal(double(loc), **arguments)
    with pytest.raises(ValueError, match=r"covariance_matrix must have the shape \[..., 2, 2\]"):
        D.MultivariateNormal(double(loc), double(np.eye(3)))


@pytest.mark.parametrize("method", ["onion", "cvine"])
def test_lkj_cholesky(method):
    # With dim = 3 and concentration = 1, correlations have the density of 2 Beta(3/2, 3/2) - 1: variance 1/4.
    sampan.seed(4)
    d = D.LKJCholesky(3, 1.0, method)
    root = d.sample([8000]).numpy()
    matrix = root @ np.swapaxes(root, -1, -2)
    close(np.triu(root, 1), np.zeros_like(root))
    close(np.diagonal(matrix, axis1=1, axis2=2), np.ones([8000, 3]), 1e-5)
    for i, j in ((1, 0), (2, 0), (2, 1)):
        close(matrix[:, i, j].mean(), 0.0, 0.02)
        close((matrix[:, i, j] ** 2).mean(), 0.25, 0.02)
    many = D.LKJCholesky(4, sampan.to_tensor([0.5, 2.0]), method).sample([3, 2])
    assert list(many.shape) == [3, 2, 2, 4, 4]


def test_lkj_density_adds_up_to_one():
    r = np.linspace(-1, 1, 20001)[1:-1]
    roots = np.stack([np.stack([np.ones_like(r), 0 * r], -1), np.stack([r, np.sqrt(1 - r**2)], -1)], -2)
    density = D.LKJCholesky(2, double(2.5)).prob(double(roots)).numpy()
    close(np.trapezoid(density, r), 1.0)


@pytest.mark.parametrize(
    "d",
    [
        lambda: D.Normal(1.0, 2.0),
        lambda: D.Laplace(1.0, 2.0),
        lambda: D.Gumbel(1.0, 2.0),
        lambda: D.StudentT(9.0, 1.0, 2.0),
        lambda: D.LogNormal(0.1, 0.3),
        lambda: D.Uniform(1.0, 2.0),
        lambda: D.ContinuousBernoulli(0.2),
        lambda: D.ContinuousBernoulli(0.5),
        lambda: D.Gamma(2.5, 2.0),
        lambda: D.Gamma(0.3, 2.0),
        lambda: D.Chi2(3.0),
        lambda: D.Exponential(2.0),
        lambda: D.Beta(0.5, 2.0),
        lambda: D.Bernoulli(0.3),
        lambda: D.Geometric(0.3),
        lambda: D.Poisson(3.0),
        lambda: D.Binomial(5, 0.3),
    ],
)
def test_draws_have_the_right_moments(d):
    sampan.seed(7)
    d, n = d(), 40000
    draws = d.sample([n])
    assert list(draws.shape) == [n, *d.batch_shape] and draws.dtype == sampan.float32 and draws.stop_gradient
    mean, deviation = d.mean.item(), d.stddev.item()
    assert abs(draws.mean().item() - mean) < 4 * deviation / math.sqrt(n)
    assert abs(draws.astype("float64").std().item() / deviation - 1) < 0.04


def test_cauchy_draws_follow_the_cdf():
    sampan.seed(7)
    d = D.Cauchy(1.0, 2.0)
    shares = d.cdf(d.sample([20000]))
    close(shares.mean(), 0.5, 0.01)
    close((shares < 0.1).astype("float32").mean(), 0.1, 0.01)


def test_seeds_repeat_draws():
    for d in (D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0)):
        assert d.sample([3], seed=5).tolist() == d.sample([3], seed=5).tolist()
        assert d.sample([3], seed=5).tolist() != d.sample([3], seed=6).tolist()


def gradients(build, *values, draws=40000):
    """The gradients of the mean of many draws with respect to the parameters."""
    sampan.seed(11)
    parameters = [sampan.to_tensor(value, stop_gradient=False) for value in values]
    d = build(*parameters)
    d.rsample([draws]).mean().backward()
    assert d.sample([2]).stop_gradient
    return [parameter.grad.item() for parameter in parameters]


def test_gradients_flow_through_draws():
    close(gradients(D.Normal, 0.5, 2.0), [1.0, 0.0], 0.02)
    close(gradients(D.Laplace, 0.5, 2.0), [1.0, 0.0], 0.03)
    close(gradients(D.Gumbel, 0.5, 2.0), [1.0, 0.5772], 0.03)
    close(gradients(D.Uniform, 0.5, 2.0), [0.5, 0.5], 0.02)
    close(gradients(D.Exponential, 2.0), [-0.25], 0.02)
    close(gradients(D.LogNormal, 0.0, 0.5), [math.exp(0.125), 0.5 * math.exp(0.125)], 0.05)
    # The mean of a gamma is concentration / rate, of a beta alpha / (alpha + beta).
    close(gradients(D.Gamma, 2.0, 4.0), [0.25, -0.125], 0.02)
    close(gradients(D.Gamma, 0.4, 1.0), [1.0, -0.4], 0.04)
    close(gradients(D.Gamma, 80.0, 1.0), [1.0, -80.0], 0.02)
    close(gradients(D.Beta, 2.0, 3.0), [3 / 25, -2 / 25], 0.01)
    # The mean of a continuous Bernoulli rises by a third of what its parameter rises, at one half.
    close(gradients(D.ContinuousBernoulli, [0.5]), [1 / 3], 0.01)


def test_gradients_of_densities():
    loc = sampan.to_tensor(0.5, stop_gradient=False)
    scale = sampan.to_tensor(2.0, stop_gradient=False)
    D.Normal(loc, scale).log_prob(1.5).backward()
    close(loc.grad, 0.25)
    close(scale.grad, 0.125 - 0.5)
    probs = sampan.to_tensor([0.0, 1.0], stop_gradient=False)
    D.Binomial(2, probs).log_prob(sampan.to_tensor([0.0, 2.0])).sum().backward()
    close(probs.grad, [-2.0, 2.0])
    concentration = sampan.to_tensor([1.0, 1.0], stop_gradient=False)
    D.Gamma(concentration, 1.0).log_prob(sampan.to_tensor([0.0, 2.0])).sum().backward()
    close(concentration.grad, [EULER_GAMMA, EULER_GAMMA + math.log(2)])


def test_relaxed_bernoulli():
    sampan.seed(1)
    probs = sampan.to_tensor([0.25], stop_gradient=False)
    draws = D.Bernoulli(probs).rsample([20000], temperature=0.5)
    close((draws > 0).astype("float32").mean(), 0.25, 0.02)
    draws.mean().backward()
    close(probs.grad, [2 / (0.25 * 0.75)], 1e-3)


def test_parameters_broadcast():
    d = D.Normal(sampan.zeros([3]), sampan.ones([2, 1]))
    assert d.batch_shape == (2, 3) and list(d.sample([4]).shape) == [4, 2, 3]
    assert D.Gamma([1.0, 2.0], 3.0).batch_shape == (2,)
    assert D.Normal(np.zeros(2), 1.0).sample().dtype == sampan.float64
    assert D.Normal(0, 1).sample().dtype == sampan.float32
    loc = sampan.zeros([2])
    assert D.Normal(loc, sampan.ones([2])).loc is loc


def test_independent():
    base = D.Normal(double(np.zeros([2, 3])), double(np.ones([2, 3])))
    d, value = D.Independent(base, 1), double(np.arange(6.0).reshape(2, 3))
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    close(d.log_prob(value), base.log_prob(value).numpy().sum(-1))
    close(d.entropy(), base.entropy().numpy().sum(-1))
    other = D.Independent(D.Normal(double(np.ones([2, 3])), double(np.ones([2, 3]))), 1)
    close(D.kl_divergence(d, other), [1.5, 1.5])
    with pytest.raises(ValueError, match="reinterpreted_batch_rank must lie between 1 and 2"):
        D.Independent(base, 3)
    with pytest.raises(TypeError, match="base must be a Distribution"):
        D.Independent(1.0, 1)


def transforms():
    affine = lambda: D.AffineTransform(double(1.5), double([-2.0, 1.0, 0.5]))
    return {
        "affine": affine(),
        "exp": D.ExpTransform(),
        "power": D.PowerTransform(double(-1.5)),
        "sigmoid": D.SigmoidTransform(),
        "tanh": D.TanhTransform(),
        "stick": D.StickBreakingTransform(),
        "reshape": D.ReshapeTransform([3], [1, 3]),
        "independent": D.IndependentTransform(D.ExpTransform(), 1),
        "chain": D.ChainTransform([D.ExpTransform(), affine(), D.StickBreakingTransform()]),
        "stack": D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], -1),
    }


@pytest.mark.parametrize("name", list(transforms()))
def test_transforms(name):
    t = transforms()[name]
    x = double([[0.3, 0.7, 1.2], [2.0, 0.1, 0.4]])
    y = t.forward(x)
    close(t.inverse(y), x.numpy())
    assert list(t.forward_shape((2, 3))) == list(y.shape) and list(t.inverse_shape(tuple(y.shape))) == [2, 3]
    det = t.forward_log_det_jacobian(x)
    close(t.inverse_log_det_jacobian(y), -det.numpy())
    # The Jacobian of one row by central differences; the simplex has as many free coordinates as the row.
    row, step = x.numpy()[0], 1e-6
    f = lambda v: t.forward(double(v[None])).numpy().ravel()[:3]
    jacobian = np.stack([(f(row + step * e) - f(row - step * e)) / (2 * step) for e in np.eye(3)], -1)
    total = np.broadcast_to(det.numpy(), [2, 3] if t._domain.event_rank == 0 else [2])[0].sum()
    close(total, np.linalg.slogdet(jacobian)[1], 1e-5)


def test_transformed_distribution():
    base = D.Normal(double(np.zeros([2, 3])), double(np.ones([2, 3])))
    d = D.TransformedDistribution(base, [D.AffineTransform(double(1.0), double(2.0))])
    close(d.log_prob(base.mean), D.Normal(double(1.0), double(2.0)).log_prob(0.0).item())
    mixed = D.StickBreakingTransform()(base)
    assert (mixed.batch_shape, mixed.event_shape) == ((2,), (4,))
    draws = mixed.sample([5])
    assert list(draws.shape) == [5, 2, 4] and list(mixed.log_prob(draws).shape) == [5, 2]
    close(draws.sum(-1), np.ones([5, 2]))
    assert isinstance(D.ExpTransform()(D.TanhTransform()), D.ChainTransform)
    with pytest.raises(ValueError, match="base must have at least 1 axes"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [D.StickBreakingTransform()])
    with pytest.raises(TypeError, match="transforms must be a sequence of Transform"):
        D.TransformedDistribution(base, [1])


def test_stacked_events():
    x = double(np.arange(6.0).reshape(1, 2, 3))
    parts = [D.IndependentTransform(D.ExpTransform(), 1), D.IndependentTransform(D.TanhTransform(), 1)]
    expected = [t.forward_log_det_jacobian(x[:, i]).numpy() for i, t in enumerate(parts)]
    close(D.StackTransform(parts, 1).forward_log_det_jacobian(x), np.stack(expected, 1))
    close(D.StackTransform(parts, -2).forward_log_det_jacobian(x), np.stack(expected, 1))
    inner = D.StackTransform(parts, -1)
    close(inner.forward_log_det_jacobian(x.transpose([0, 2, 1])), sum(expected))
    d = D.TransformedDistribution(D.Normal(double(np.zeros([3, 2])), double(1.0)), [inner])
    assert (d.batch_shape, d.event_shape) == ((), (3, 2)) and d.log_prob(d.sample([4])).shape == [4]


def test_transforms_that_are_not_injective():
    x = sampan.to_tensor([[1.0, -2.0]])
    assert [v.tolist() for v in D.AbsTransform().inverse(x)] == [[[-1.0, 2.0]], [[1.0, -2.0]]]
    close(D.SoftmaxTransform().forward(x), np.exp([[1.0, -2.0]]) / np.exp([1.0, -2.0]).sum())
    for t in (D.AbsTransform(), D.SoftmaxTransform()):
        with pytest.raises(NotImplementedError, match="forward_log_det_jacobian"):
            t.forward_log_det_jacobian(x)


def test_constraints_and_variables():
    x = sampan.to_tensor([[0.5, 0.5], [-1.0, 2.0]])
    assert constraint.simplex.check(x).tolist() == [True, False]
    assert constraint.Range(-1.0, 1.0)(x).tolist() == [[True, True], [True, False]]
    assert variable.Independent(variable.positive, 1).constraint(x).tolist() == [True, False]
    stack = variable.Stack([variable.real, variable.positive], -1)
    assert stack.constraint(x).tolist() == [[True, True], [True, True]] and stack.event_rank == 0
    assert variable.Stack([variable.Real(1)] * 2, -1).event_rank == 2


class Rate(D.ExponentialFamily):
    """The exponential distribution known by its normalizer alone."""

    def __init__(self, rate):
        self.rate = rate
        super().__init__(rate.shape)

    @property
    def _natural_parameters(self):
        return (-self.rate,)

    @property
    def _mean_carrier_measure(self):
        return 0.0

    def _log_normalizer(self, x):
        return -sampan.log(-x)


def test_exponential_family():
    rate = sampan.to_tensor([2.0, 3.0], stop_gradient=False)
    p, q = Rate(rate), Rate(sampan.to_tensor([1.0, 4.0]))
    close(p.entropy(), 1 - np.log([2.0, 3.0]))
    close(D.kl_divergence(p, q), np.log([2.0, 0.75]) + np.array([0.5, 4 / 3]) - 1)
    p.entropy().sum().backward()
    close(rate.grad, [-0.5, -1 / 3])


def test_divergence_finds_the_nearest_formula():
    class Special(D.Normal):
        pass

    class MoreSpecial(Special):
        pass

    D.register_kl(Special, D.Normal)(lambda p, q: "left")
    assert D.kl_divergence(MoreSpecial(0.0, 1.0), D.Normal(0.0, 1.0)) == "left"
    D.register_kl(D.Normal, Special)(lambda p, q: "right")
    with pytest.warns(RuntimeWarning, match=r"register_kl\(Special, Special\)"):
        D.kl_divergence(Special(0.0, 1.0), Special(0.0, 1.0))
    with pytest.raises(TypeError, match="cls_p must be a subclass of Distribution"):
        D.register_kl(int, D.Normal)
    with pytest.raises(NotImplementedError, match="Normal and Laplace"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Laplace(0.0, 1.0))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: D.Normal("a", 1.0), TypeError, "Normal: loc must be a number, .* received str 'a'"),
        (lambda: D.Gamma(1.0, None), TypeError, "Gamma: rate must be a number"),
        pytest.param(
            lambda: D.Gamma(1j, 1.0), TypeError, "Gamma: concentration must be real", marks=needs_complex
        ),
        (lambda: D.Normal(0.0, 1.0).sample(3), TypeError, "sequence of ints, but received int 3"),
        (lambda: D.Normal(0.0, 1.0).log_prob("a"), TypeError, "Normal: value must be a number"),
        (lambda: D.Chi2(-1.0), ValueError, "Chi2: df must be positive"),
        (lambda: D.StudentT(-1.0, 0.0, 1.0), ValueError, "StudentT: df must not be negative"),
        (lambda: D.Dirichlet(1.0), ValueError, "Dirichlet: concentration must have at least one axis"),
        (lambda: D.Multinomial(0, [0.5, 0.5]), ValueError, "total_count must be an int greater than 0"),
        (lambda: D.LKJCholesky(1), ValueError, "dim must be at least 2"),
        (lambda: D.LKJCholesky(3, sample_method="x"), ValueError, "'onion' or 'cvine'"),
        (lambda: D.Distribution().rsample(), NotImplementedError, "Distribution has no rsample"),
        (lambda: D.Poisson(1.0).rsample(), NotImplementedError, "Poisson has no rsample"),
        (lambda: D.ExpTransform().forward(1.0), TypeError, "ExpTransform: x must be a Tensor"),
        (lambda: D.AffineTransform(1.0, 2.0), TypeError, "AffineTransform: loc must be a Tensor"),
        (lambda: D.ReshapeTransform([2], [3]), ValueError, r"\(2,\) and \(3,\)"),
        (lambda: D.ReshapeTransform([2], [2]).forward_shape([3]), ValueError, r"must end in \(2,\)"),
        (lambda: D.StackTransform([]), TypeError, "transforms must be a sequence"),
        (lambda: D.IndependentTransform(D.ExpTransform(), 0), ValueError, "must be greater than 0"),
    ],
)
def test_errors_say_what_was_expected(call, error, message):
    with pytest.raises(error, match=message):
        call()
