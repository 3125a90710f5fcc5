"""The base classes of all distributions, and the few helpers they share."""

import functools
import numbers

import sampan


def to_tensor(owner, name, value):
    """`value` as a Tensor; anything that is not a number, sequence, array or Tensor is an error that names `name`."""
    if isinstance(value, sampan.Tensor):
        return value
    if isinstance(value, (bool, str, bytes)) or not (
        isinstance(value, (numbers.Number, list, tuple)) or hasattr(value, "__array__")
    ):
        raise TypeError(
            f"{owner}: {name} must be a number, a list, an array or a Tensor, "
            f"but received {type(value).__name__} {value!r}"
        )
    if isinstance(value, numbers.Real):
        return sampan.full([], float(value), dtype=sampan.get_default_dtype())
    return sampan.to_tensor(value)


def listed(value):
    """A number as a list of one: some distributions, as in Paddle, have the batch shape [1] then and not []."""
    return [value] if isinstance(value, numbers.Number) else value


def broadcast_shape(*shapes):
    """The one shape to which all `shapes` broadcast, as a list."""
    return list(functools.reduce(sampan.broadcast_shape, [list(shape) for shape in shapes]))


def expand(x, shape):
    """`x` expanded to `shape`; `x` itself where it has that shape already, so that parameters stay shared."""
    return x if list(x.shape) == list(shape) else x.expand(list(shape))


def sum_rightmost(x, n):
    """The sum over the last `n` axes."""
    return x.sum(list(range(-n, 0))) if n > 0 else x


def unit_uniform(shape, dtype, seed=0):
    """Uniform numbers strictly between 0 and 1, so that the logarithms of u and of 1 - u are finite."""
    edge = float(sampan.finfo(dtype).eps) / 2
    return sampan.uniform(list(shape), dtype=dtype, min=edge, max=1.0 - edge, seed=seed)


def xlogy(x, y):
    """x log y, which is 0 where both are 0; so are its gradients there."""
    nothing = sampan.logical_and(x == 0, y == 0)
    return x * sampan.log(sampan.where(nothing, 1.0, y))


def log_factorial(n):
    """The logarithm of n!."""
    return sampan.lgamma(n + 1.0)


class Distribution:
    """The base of all distributions: `batch_shape` many independent ones, each over events of `event_shape`.

    A subclass gives `log_prob`, and `rsample` (or `sample`, if no gradient can flow through a sample).

    >>> from sampan.distribution import Distribution
    >>> Distribution(batch_shape=[2, 3], event_shape=[4]).batch_shape
    (2, 3)
    """

    def __init__(self, batch_shape=(), event_shape=()):
        self._batch_shape = tuple(batch_shape)
        self._event_shape = tuple(event_shape)

    @property
    def batch_shape(self):
        """The shape of the independent distributions held here."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one event."""
        return self._event_shape

    @property
    def mean(self):
        """The expected value."""
        raise self._missing("mean")

    @property
    def variance(self):
        """The expected squared distance from the mean."""
        raise self._missing("variance")

    @property
    def stddev(self):
        """The square root of the variance."""
        return sampan.sqrt(self.variance)

    def sample(self, shape=()):
        """Draws of shape `shape + batch_shape + event_shape`, through which no gradient flows."""
        with sampan.no_grad():
            return self.rsample(shape)

    def rsample(self, shape=()):
        """Draws through which gradients flow to the parameters."""
        raise self._missing("rsample")

    def entropy(self):
        """The expected value of -log_prob."""
        raise self._missing("entropy")

    def kl_divergence(self, other):
        """The Kullback-Leibler divergence from `other`: the expectation under self of log self - log other."""
        from .kl import kl_divergence

        return kl_divergence(self, other)

    def log_prob(self, value):
        """The logarithm of the density (or mass) at `value`."""
        raise self._missing("log_prob")

    def prob(self, value):
        """The density (or mass) at `value`."""
        return sampan.exp(self.log_prob(value))

    def probs(self, value):
        """The density (or mass) at `value`: another name of `prob`."""
        return self.prob(value)

    def cdf(self, value):
        """The probability of a draw not greater than `value`."""
        raise self._missing("cdf")

    def icdf(self, value):
        """The inverse of `cdf`: below it lies the share `value` of the draws."""
        raise self._missing("icdf")

    def __repr__(self):
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"

    def _missing(self, what):
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def _parameters(self, complex_allowed=False, **values):
        """Keeps `values` as tensors of one dtype and one shape in attributes of their names; returns the shape."""
        owner = type(self).__name__
        tensors = {name: to_tensor(owner, name, value) for name, value in values.items()}
        for name, tensor in tensors.items():
            if sampan.is_complex(tensor) and not complex_allowed:
                raise TypeError(f"{owner}: {name} must be real, but received {tensor.dtype}")
        # A tensor or an array decides the dtype; numbers and lists follow it.
        given = [tensors[name] for name, value in values.items() if hasattr(value, "dtype")]
        given = [tensor for tensor in given if sampan.is_floating_point(tensor)]
        dtype = functools.reduce(_wider, given).dtype if given else sampan.to_tensor(0.0).dtype
        shape = broadcast_shape(*(tensor.shape for tensor in tensors.values()))
        for name, tensor in tensors.items():
            if tensor.dtype != dtype and not sampan.is_complex(tensor):
                tensor = tensor.astype(dtype)
            setattr(self, name, expand(tensor, shape))
        self.dtype = dtype
        return shape

    def _value(self, value, name="value"):
        """An argument `value` as a tensor of this distribution's dtype."""
        tensor = to_tensor(type(self).__name__, name, value)
        return tensor if tensor.dtype == self.dtype else tensor.astype(self.dtype)

    def _extend_shape(self, sample_shape):
        """`sample_shape + batch_shape + event_shape`."""
        try:
            sample_shape = tuple(int(n) for n in sample_shape)
        except TypeError:
            raise TypeError(
                f"{type(self).__name__}: the sample shape must be a sequence of ints, "
                f"but received {type(sample_shape).__name__} {sample_shape!r}. Hint: [n] draws n times"
            ) from None
        return sample_shape + self._batch_shape + self._event_shape


def _wider(x, y):
    return x if x.dtype == y.dtype else x.flatten()[:1] + y.flatten()[:1]


class ExponentialFamily(Distribution):
    """Densities h(x) exp(θ·t(x) - A(θ)), with natural parameters θ and log normalizer A.

    A subclass that gives `_natural_parameters`, `_log_normalizer` and `_mean_carrier_measure` (the expectation of
    log h) has its entropy and its divergence from another of its kind from the gradient of A.

    >>> import sampan
    >>> from sampan.distribution import ExponentialFamily
    >>> class Rate(ExponentialFamily):
    ...     def __init__(self, rate):
    ...         self.rate = rate
    ...         super().__init__(rate.shape)
    ...     _natural_parameters = property(lambda self: (-self.rate,))
    ...     _mean_carrier_measure = 0.0
    ...     def _log_normalizer(self, x):
    ...         return -sampan.log(-x)
    >>> round(Rate(sampan.to_tensor([2.0])).entropy().item(), 4)  # 1 - log 2
    0.3069
    """

    @property
    def _natural_parameters(self):
        raise self._missing("_natural_parameters")

    def _log_normalizer(self, *parameters):
        raise self._missing("_log_normalizer")

    @property
    def _mean_carrier_measure(self):
        raise self._missing("_mean_carrier_measure")

    def _dual(self):
        """The natural parameters, A at them, and its gradients, which are the expectations of t(x)."""
        with sampan.enable_grad():
            # Copies, so that a parameter computed from another one counts as independent of it.
            copies = [x.detach() if x.stop_gradient else x * 1.0 for x in self._natural_parameters]
            for copy in copies:
                copy.stop_gradient = False
            normalizer = self._log_normalizer(*copies)
            return copies, normalizer, sampan.grad(normalizer.sum(), copies, create_graph=True)

    def entropy(self):
        parameters, normalizer, means = self._dual()
        inner = sum(sum_rightmost(p * m, len(self.event_shape)) for p, m in zip(parameters, means))
        return normalizer - inner - self._mean_carrier_measure
