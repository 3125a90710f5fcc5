"""Distributions made from another distribution."""

from collections.abc import Sequence

import sampan

from .distribution import Distribution, sum_rightmost
from .location_scale import Normal
from .transform import ChainTransform, ExpTransform, Transform


class Independent(Distribution):
    """`base` with its last `reinterpreted_batch_rank` batch axes taken as axes of one event.

    >>> import sampan
    >>> from sampan.distribution import Independent, Normal
    >>> d = Independent(Normal(sampan.zeros([2, 3]), sampan.ones([2, 3])), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(sampan.zeros([2, 3])).shape == [2]
    ((2,), (3,), True)
    """

    def __init__(self, base, reinterpreted_batch_rank):
        _check_base("Independent", base)
        rank = len(base.batch_shape)
        if not 0 < reinterpreted_batch_rank <= rank:
            raise ValueError(
                f"Independent: reinterpreted_batch_rank must lie between 1 and {rank}, the number of batch axes "
                f"of base, but received {reinterpreted_batch_rank}"
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        shape = tuple(base.batch_shape) + tuple(base.event_shape)
        super().__init__(shape[: rank - self._rank], shape[rank - self._rank :])

    @property
    def mean(self):
        return self._base.mean

    @property
    def variance(self):
        return self._base.variance

    def sample(self, shape=()):
        return self._base.sample(shape)

    def rsample(self, shape=()):
        return self._base.rsample(shape)

    def log_prob(self, value):
        return sum_rightmost(self._base.log_prob(value), self._rank)

    def entropy(self):
        return sum_rightmost(self._base.entropy(), self._rank)


class TransformedDistribution(Distribution):
    """The distribution of a draw from `base` after all `transforms`, in turn.

    >>> from sampan.distribution import ExpTransform, Normal, TransformedDistribution
    >>> d = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
    >>> round(d.log_prob(1.0).item(), 4)
    -0.9189
    """

    def __init__(self, base, transforms):
        _check_base("TransformedDistribution", base)
        if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
            raise TypeError(
                f"TransformedDistribution: transforms must be a sequence of Transform, but received {transforms!r}"
            )
        self._base, self._transforms = base, transforms
        batch, shape = len(base.batch_shape), tuple(base.batch_shape) + tuple(base.event_shape)
        if transforms:
            chain = ChainTransform(transforms)
            taken, given = chain._domain.event_rank, chain._codomain.event_rank
            if len(shape) < taken:
                raise ValueError(
                    f"TransformedDistribution: base must have at least {taken} axes for these transforms, "
                    f"but received the shape {shape}"
                )
            # Batch axes that the transforms mix become axes of the event.
            event = max(len(base.event_shape), taken) - taken + given
            shape = tuple(chain.forward_shape(shape))
            batch = len(shape) - event
        super().__init__(shape[:batch], shape[batch:])

    def sample(self, shape=()):
        with sampan.no_grad():
            return self._transform(self._base.sample(shape))

    def rsample(self, shape=()):
        return self._transform(self._base.rsample(shape))

    def _transform(self, x):
        for transform in self._transforms:
            x = transform.forward(x)
        return x

    def log_prob(self, value):
        if not isinstance(value, sampan.Tensor):
            value = sampan.to_tensor(value)
        rank, log_det = len(self.event_shape), 0.0
        for transform in reversed(self._transforms):
            value = transform.inverse(value)
            rank += transform._domain.event_rank - transform._codomain.event_rank
            det = transform.forward_log_det_jacobian(value)
            log_det = log_det + sum_rightmost(det, rank - transform._domain.event_rank)
        return sum_rightmost(self._base.log_prob(value), rank - len(self._base.event_shape)) - log_det


def _check_base(owner, base):
    if not isinstance(base, Distribution):
        raise TypeError(f"{owner}: base must be a Distribution, but received {type(base).__name__} {base!r}")


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for x normal of mean `loc` and standard deviation `scale`.

    >>> from sampan.distribution import LogNormal
    >>> d = LogNormal(0.0, 1.0)
    >>> [round(x.item(), 4) for x in (d.mean, d.variance, d.entropy(), d.probs(1.0), d.cdf(1.0))]
    [1.6487, 4.6708, 1.4189, 0.3989, 0.5]
    """

    def __init__(self, loc, scale):
        base = Normal(loc, scale)
        self.loc, self.scale, self.dtype = base.loc, base.scale, base.dtype
        super().__init__(base, [ExpTransform()])

    @property
    def mean(self):
        return sampan.exp(self.loc + 0.5 * self.scale**2)

    @property
    def variance(self):
        return sampan.expm1(self.scale**2) * sampan.exp(2.0 * self.loc + self.scale**2)

    def log_prob(self, value):
        return super().log_prob(self._value(value))

    def cdf(self, value):
        return self._base.cdf(sampan.log(self._value(value)))

    def icdf(self, value):
        return sampan.exp(self._base.icdf(value))

    def entropy(self):
        return self._base.entropy() + self.loc
